//! Which policy governs a CRD, and whether its writes are paused.

use std::collections::BTreeMap;

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::policy::{DefaultsPolicySpec, Pause, Settings};
use super::selector::CrdSelector;
use crate::upgrade::GuardMode;

/// The policies of the cluster, by name.
pub type Policies = BTreeMap<String, DefaultsPolicySpec>;

/// The labels of a CRD.
pub type Labels = BTreeMap<String, String>;

/// What the policies set for one CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The settings of the most specific policy that selects it: the policy that governs it.
    pub settings: Settings,
    /// Other policies that select it just as specifically; the first by name governs.
    pub ties: Vec<String>,
    /// Policies that select it less specifically.
    pub outranked: Vec<String>,
}

/// What the policies set for a CRD; `None` if no policy selects it. `settle` is the operator's own.
///
/// Everything that asks whether objects may be written asks this function: [`Settings::pause`] is decided
/// nowhere else.
pub fn assign(
    policies: &Policies,
    name: &str,
    group: &str,
    labels: &BTreeMap<String, String>,
    settle: Duration,
) -> Option<Assignment> {
    let mut weighed: Vec<_> = policies
        .iter()
        .filter_map(|(policy, spec)| Some((spec.selector.weight(name, group, labels)?, policy, spec)))
        .collect();
    let best = weighed.iter().map(|(weight, ..)| *weight).max()?;
    let outranked = weighed.extract_if(.., |(weight, ..)| *weight < best);
    let outranked = outranked.map(|(_, policy, _)| policy.clone()).collect();
    let mut winners = weighed.into_iter();
    let (_, policy, spec) = winners.next()?;
    let ties = winners.map(|(_, policy, _)| policy.clone()).collect();
    let settings = Settings { pause: pause(policies, policy), ..spec.settings(policy, settle) };
    Some(Assignment { settings, ties, outranked })
}

/// The labels in a document.
pub fn labels(document: &Value) -> Labels {
    let labels = document["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// What counts of a policy by its `spec` as it stands in the cluster: all of it. Where this version cannot
/// read it, the policy governs the CRDs that it selects, so that no broader one has them written, and pauses
/// writes to their objects; of the rest only `pauseAll` and `guard` count.
pub fn counting(spec: &Value) -> DefaultsPolicySpec {
    DefaultsPolicySpec::deserialize(spec).unwrap_or_else(|_| {
        let selector = match &spec["selector"] {
            Value::Null => Some(CrdSelector::default()),
            selector => CrdSelector::deserialize(selector).ok(),
        };
        let nothing = || CrdSelector { exclude: vec!["*".to_owned()], ..CrdSelector::default() };
        DefaultsPolicySpec {
            guard: match &selector {
                Some(_) => GuardMode::deserialize(&spec["guard"]).ok(),
                None => Some(GuardMode::Off),
            },
            selector: selector.unwrap_or_else(nothing),
            paused: Some(true),
            pause_all: (spec["pauseAll"] == true).then_some(true),
            ..DefaultsPolicySpec::default()
        }
    })
}

/// Which policies have paused the CRDs that this one governs; none if they may be written.
pub fn pause(policies: &Policies, governing: &str) -> Option<Pause> {
    let is_paused = policies.get(governing).is_some_and(|spec| spec.paused == Some(true));
    let pause_all = policies.iter().filter(|(_, spec)| spec.pause_all == Some(true));
    let pause = Pause {
        paused: is_paused.then(|| governing.to_owned()),
        pause_all: pause_all.map(|(policy, _)| policy.clone()).collect(),
    };
    Some(pause).filter(|pause| pause.paused.is_some() || !pause.pause_all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Mode;

    fn policies(specs: &[(&str, &str)]) -> Policies {
        let parse = |spec: &str| serde_json::from_str(spec).expect("a policy");
        specs.iter().map(|(name, spec)| ((*name).to_owned(), parse(spec))).collect()
    }

    fn assigned(policies: &Policies) -> Option<Assignment> {
        let settle = Duration::from_secs(10);
        assign(policies, "crontabs.stable.example.com", "stable.example.com", &BTreeMap::new(), settle)
    }

    fn paused(specs: &[(&str, &str)]) -> String {
        let pause = assigned(&policies(specs)).expect("selected").settings.pause;
        pause.map(|pause| pause.to_string()).unwrap_or_default()
    }

    #[test]
    fn nothing_is_assigned_without_a_policy_that_selects() {
        assert_eq!(assigned(&policies(&[])), None);
        assert_eq!(assigned(&policies(&[("other", r#"{"selector": {"groups": ["other.io"]}}"#)])), None);
    }

    #[test]
    fn the_most_specific_policy_wins_and_ties_go_by_name() {
        let all = policies(&[
            ("default", "{}"),
            ("b", r#"{"selector": {"groups": ["stable.example.com"]}, "mode": "Ignore"}"#),
            ("a", r#"{"selector": {"groups": ["stable.example.com"]}, "mode": "Audit", "settle": "2h"}"#),
        ]);
        let assignment = assigned(&all).expect("selected");
        assert_eq!((assignment.settings.policy.as_str(), assignment.settings.mode), ("a", Mode::Audit));
        assert_eq!(assignment.settings.settle, Duration::from_secs(7200));
        assert_eq!(
            (assignment.ties, assignment.outranked),
            (vec!["b".to_owned()], vec!["default".to_owned()])
        );
    }

    #[test]
    fn a_policy_that_cannot_be_read_guards_as_it_says() {
        for (guard, expected) in
            [("Deny", GuardMode::Deny), ("Off", GuardMode::Off), ("Dream", GuardMode::Warn)]
        {
            let spec = counting(&serde_json::json!({ "mode": "Dream", "guard": guard }));
            assert_eq!(spec.guard_mode(), expected, "{guard}");
        }
    }

    #[test]
    fn a_policy_that_cannot_be_read_keeps_what_it_selects_from_being_written() {
        let with = |odd: serde_json::Value| {
            let all = Policies::from([
                ("default".to_owned(), DefaultsPolicySpec::default()),
                ("odd".to_owned(), counting(&odd)),
            ]);
            let Settings { policy, pause, .. } = assigned(&all).expect("selected").settings;
            (policy, pause.map(|pause| pause.to_string()))
        };
        let reported = |policy: &str, pause: &str| (policy.to_owned(), Some(pause.to_owned()));
        let names = serde_json::json!({ "names": ["crontabs.stable.example.com"] });
        assert_eq!(
            with(serde_json::json!({ "mode": "Dream", "selector": names })),
            reported("odd", "DefaultsPolicy odd (paused)")
        );
        // What it selects cannot be read either.
        let odd = serde_json::json!({ "mode": "Dream", "selector": { "names": 5 }, "pauseAll": true });
        assert_eq!(with(odd), reported("default", "DefaultsPolicy odd (pauseAll)"));
        assert_eq!(counting(&serde_json::json!({ "mode": "Audit" })).mode, Some(Mode::Audit));
    }

    #[test]
    fn paused_counts_where_the_policy_governs_and_pause_all_everywhere() {
        let own = ("own", r#"{"selector": {"names": ["crontabs.stable.example.com"]}}"#);
        let own_paused = ("own", r#"{"selector": {"names": ["crontabs.*"]}, "paused": true}"#);
        let other = ("other", r#"{"selector": {"groups": ["other.io"]}, "pauseAll": true}"#);
        assert_eq!(paused(&[("default", r#"{"paused": true}"#), own]), "");
        assert_eq!(paused(&[("default", r#"{"paused": true}"#)]), "DefaultsPolicy default (paused)");
        assert_eq!(paused(&[("default", r#"{"pauseAll": true}"#), own]), "DefaultsPolicy default (pauseAll)");
        let both = policies(&[("default", r#"{"paused": true}"#), ("other", r#"{"pauseAll": true}"#)]);
        let remedy = pause(&both, "default").expect("a pause").remedy();
        assert_eq!(
            remedy,
            "set pauseAll to false in DefaultsPolicy other and paused to false in DefaultsPolicy default"
        );
        assert_eq!(paused(&[("default", r#"{"pauseAll": false, "paused": false}"#), own]), "");
        assert_eq!(
            paused(&[("default", r#"{"pauseAll": true}"#), own_paused, other]),
            "DefaultsPolicy default (pauseAll) and DefaultsPolicy other (pauseAll) and DefaultsPolicy own \
             (paused)"
        );
    }
}
