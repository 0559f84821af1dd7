//! What the policies of the cluster say against a pass by hand.
//! It must not keep anybody from it.

use std::collections::BTreeMap;
use std::time::Duration;

use etch::api::{DefaultsPolicy, Mode, Policies, assign};
use etch::cluster::{CallError, Cluster};
use etch::domain::json::Json;
use etch::domain::plan::{Ownership, Terms};
use serde_json::Value;

/// How many CRDs a warning names.
const NAMED: usize = 3;

/// The policies that this version can read; none where Etch is not installed.
pub(super) async fn policies(cluster: &Cluster) -> Result<Policies, CallError> {
    let documents = cluster.all_policies().await?;
    let read = documents.iter().filter_map(|document| {
        let policy: DefaultsPolicy = serde_json::from_slice(&document.json().to_vec()).ok()?;
        Some((document.name().to_owned(), policy.spec))
    });
    Ok(read.collect())
}

/// What the policies say against writing to the objects of a CRD on these terms.
pub(super) fn against(policies: &Policies, crd: &Json, terms: &Terms) -> Vec<String> {
    if policies.is_empty() {
        return Vec::new();
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let labels = crd["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: BTreeMap<_, _> = labels.map(|(name, value)| (name.clone(), text(value))).collect();
    let (name, group) = (text(&crd["metadata"]["name"]), text(&crd["spec"]["group"]));
    let Some(assigned) = assign(policies, &name, &group, &labels, Duration::ZERO) else {
        return vec!["no DefaultsPolicy selects it".to_owned()];
    };
    let settings = assigned.settings;
    let policy = &settings.policy;
    let mut said = Vec::new();
    match settings.mode {
        Mode::Ignore => said.push(format!("DefaultsPolicy {policy} says mode: Ignore")),
        Mode::Audit => said.push(format!("DefaultsPolicy {policy} says mode: Audit")),
        Mode::Persist => {}
    }
    said.extend(settings.pause.map(|pause| format!("writes are paused by {pause}")));
    // Where the operator writes nothing, it does not undo anything either.
    if said.is_empty() {
        match (settings.terms.ownership, terms.ownership) {
            (Ownership::Own, Ownership::None) => said.push(format!(
                "DefaultsPolicy {policy} says ownership: Own, and this releases what the operator takes again"
            )),
            (Ownership::None, Ownership::Own) => said.push(format!(
                "DefaultsPolicy {policy} says ownership: None, and the operator releases again what this takes"
            )),
            _ => {}
        }
    }
    said
}

/// One warning for each thing that is said, with the first CRDs that it is said of.
pub(super) fn warnings<'a>(all: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Vec<String> {
    let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (crd, said) in all {
        for text in said {
            by_text.entry(text).or_default().push(crd);
        }
    }
    let warning = |(text, crds): (&str, Vec<&str>)| {
        let more = match crds.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more}: {text}", crds[..crds.len().min(NAMED)].join(", "))
    };
    by_text.into_iter().map(warning).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(policies: &[(&str, Value)], ownership: Ownership) -> Vec<String> {
        let policies = policies.iter().map(|(name, spec)| {
            let spec = serde_json::from_value(spec.clone()).expect("a policy");
            ((*name).to_owned(), spec)
        });
        let crd = json!({
            "metadata": { "name": "things.example.com", "labels": { "tier": "gold" } },
            "spec": { "group": "example.com" },
        });
        against(&policies.collect(), &Json::from(crd), &Terms { ownership, ..Terms::default() })
    }

    #[test]
    fn what_a_policy_keeps_from_being_written_is_said() {
        let all = ("default", json!({}));
        let gold =
            |mode: &str| ("gold", json!({ "selector": { "matchLabels": { "tier": "gold" } }, "mode": mode }));
        let none: [&str; 0] = [];
        assert_eq!(said(&[], Ownership::Own), none);
        assert_eq!(said(std::slice::from_ref(&all), Ownership::None), none);
        assert_eq!(said(&[all.clone(), gold("Persist")], Ownership::None), none);
        assert_eq!(
            said(&[all.clone(), gold("Ignore")], Ownership::Own),
            ["DefaultsPolicy gold says mode: Ignore"]
        );
        assert_eq!(said(&[all, gold("Audit")], Ownership::None), ["DefaultsPolicy gold says mode: Audit"]);
        let other = ("default", json!({ "selector": { "groups": ["other.io"] } }));
        assert_eq!(said(&[other], Ownership::None), ["no DefaultsPolicy selects it"]);
        let paused = ("default", json!({ "paused": true }));
        assert_eq!(
            said(&[paused], Ownership::None),
            ["writes are paused by DefaultsPolicy default (paused)"]
        );
        let own = ("default", json!({ "ownership": "Own" }));
        assert!(said(&[own], Ownership::None)[0].contains("releases what the operator takes again"));
    }

    #[test]
    fn the_same_is_said_once_with_the_first_crds() {
        let (a, b) = (vec!["no".to_owned()], vec!["no".to_owned(), "never".to_owned()]);
        let all = [("one", &a), ("two", &b), ("three", &a), ("four", &a), ("five", &a)];
        let all = all.iter().map(|(name, said)| (*name, said.as_slice()));
        assert_eq!(warnings(all), ["two: never", "one, two, three and 2 more: no"]);
    }
}
