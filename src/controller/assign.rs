//! Which policy a CRD falls under.
//! It must not start or stop anything.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::{DefaultsPolicySpec, Settings};

/// The policies of the cluster, by name.
pub(super) type Policies = BTreeMap<String, DefaultsPolicySpec>;

/// What a CRD is to be given.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    /// The settings of the most specific policy that selects it.
    pub(super) settings: Settings,
    /// Other policies that select it just as specifically; the first by name has won.
    pub(super) ties: Vec<String>,
}

/// The settings for a CRD; none if no policy selects it.
pub(super) fn assign(
    policies: &Policies,
    name: &str,
    group: &str,
    labels: &BTreeMap<String, String>,
    settle: Duration,
) -> Option<Assignment> {
    let weighed: Vec<_> = policies
        .iter()
        .filter_map(|(policy, spec)| Some((spec.selector.weight(name, group, labels)?, policy, spec)))
        .collect();
    let best = weighed.iter().map(|(weight, ..)| *weight).max()?;
    let mut winners = weighed.into_iter().filter(|(weight, ..)| *weight == best);
    let (_, policy, spec) = winners.next()?;
    let ties = winners.map(|(_, policy, _)| policy.clone()).collect();
    Some(Assignment { settings: spec.settings(policy, settle), ties })
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
        assert_eq!(assignment.ties, ["b"]);
    }
}
