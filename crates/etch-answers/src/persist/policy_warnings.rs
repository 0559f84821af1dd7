//! Where a pass by hand differs from what the policies of the cluster allow.
//! It warns, and prevents nothing.

use std::collections::BTreeMap;

use etch_core::api::Mode;
use etch_core::plan::{Ownership, Terms};

use crate::first;
use crate::policy::Rules;

/// Where the policies of the cluster forbid writing to the objects of a CRD on these terms.
pub fn conflicts(rules: &Rules, terms: &Terms) -> Vec<String> {
    let settings = match rules {
        Rules::Assumed => return Vec::new(),
        Rules::Unselected => return vec!["no DefaultsPolicy selects it".to_owned()],
        Rules::Governed(settings, _) => settings,
    };
    let policy = &settings.policy;
    let mut wording = Vec::new();
    match settings.mode {
        Mode::Ignore => wording.push(format!("DefaultsPolicy {policy} has mode: Ignore")),
        Mode::Audit => wording.push(format!("DefaultsPolicy {policy} has mode: Audit")),
        Mode::Persist => {}
    }
    wording.extend(settings.pause.as_ref().map(|pause| format!("{pause} has paused writes")));
    // Where the operator writes nothing, it does not undo anything either.
    if wording.is_empty() {
        match (settings.terms.ownership, terms.ownership) {
            (Ownership::Own, Ownership::None) => wording.push(format!(
                "DefaultsPolicy {policy} has ownership: Own, so the operator takes back the fields that this \
                 releases"
            )),
            (Ownership::None, Ownership::Own) => wording.push(format!(
                "DefaultsPolicy {policy} has ownership: None, so the operator releases the fields that this \
                 takes"
            )),
            _ => {}
        }
    }
    wording.extend(settings.terms.selection.selector().map(|selector| {
        format!(
            "DefaultsPolicy {policy} selects only objects with {selector}, and this writes the others as well"
        )
    }));
    wording
}

/// One warning for each conflict, with the first CRDs that have it.
pub fn warnings<'a>(all: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Vec<String> {
    let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (crd, wording) in all {
        for text in wording {
            by_text.entry(text).or_default().push(crd);
        }
    }
    by_text.into_iter().map(|(text, crds)| format!("{}: {text}", first(&crds))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use etch_core::api::{Policies, assign};
    use serde_json::{Value, json};

    use super::*;

    fn wording(policies: &[(&str, Value)], ownership: Ownership) -> Vec<String> {
        let policies = policies.iter().map(|(name, spec)| {
            let spec = serde_json::from_value(spec.clone()).expect("a policy");
            ((*name).to_owned(), spec)
        });
        let labels = BTreeMap::from([("tier".to_owned(), "gold".to_owned())]);
        let policies: Policies = policies.collect();
        let assigned = assign(&policies, "things.example.com", "example.com", &labels, Duration::ZERO);
        let rules =
            assigned.map_or(Rules::Unselected, |assigned| Rules::Governed(assigned.settings, assigned.ties));
        conflicts(&rules, &Terms { ownership, ..Terms::default() })
    }

    #[test]
    fn what_a_policy_keeps_from_being_written_is_said() {
        let all = ("default", json!({}));
        let gold =
            |mode: &str| ("gold", json!({ "selector": { "matchLabels": { "tier": "gold" } }, "mode": mode }));
        let none: [&str; 0] = [];
        assert_eq!(conflicts(&Rules::Assumed, &Terms::default()), none);
        assert_eq!(wording(&[], Ownership::Own), ["no DefaultsPolicy selects it"]);
        assert_eq!(wording(std::slice::from_ref(&all), Ownership::None), none);
        assert_eq!(wording(&[all.clone(), gold("Persist")], Ownership::None), none);
        assert_eq!(
            wording(&[all.clone(), gold("Ignore")], Ownership::Own),
            ["DefaultsPolicy gold has mode: Ignore"]
        );
        assert_eq!(wording(&[all, gold("Audit")], Ownership::None), ["DefaultsPolicy gold has mode: Audit"]);
        let other = ("default", json!({ "selector": { "groups": ["other.io"] } }));
        assert_eq!(wording(&[other], Ownership::None), ["no DefaultsPolicy selects it"]);
        let paused = ("default", json!({ "paused": true }));
        assert_eq!(
            wording(&[paused], Ownership::None),
            ["DefaultsPolicy default (paused) has paused writes"]
        );
        let one = ("default", json!({ "objects": { "namespaces": ["team-a"] } }));
        let others = "selects only objects with namespaces team-a, and this writes the others as well";
        assert_eq!(wording(&[one], Ownership::None), [format!("DefaultsPolicy default {others}")]);
        let own = ("default", json!({ "ownership": "Own" }));
        assert!(wording(&[own], Ownership::None)[0].contains("takes back the fields that this releases"));
    }

    #[test]
    fn the_same_is_said_once_with_the_first_crds() {
        let (a, b) = (vec!["no".to_owned()], vec!["no".to_owned(), "never".to_owned()]);
        let all = [("one", &a), ("two", &b), ("three", &a), ("four", &a), ("five", &a)];
        let all = all.iter().map(|(name, wording)| (*name, wording.as_slice()));
        assert_eq!(warnings(all), ["two: never", "one, two, three and 2 more: no"]);
    }
}
