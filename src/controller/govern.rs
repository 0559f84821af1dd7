//! What each policy does at present, for its status: the CRDs that fall under it, and the policies that it ties with.
//! It must not assign anything: the assignments are given.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::assign::Assignment;
use crate::api::{DefaultsPolicySpec, DefaultsPolicyStatus, PolicyConflict};

/// How many CRDs a status names, and how many a conflict does.
const NAMED: usize = 10;
const NAMED_IN_CONFLICT: usize = 3;
/// How many conflicts a status lists.
const CONFLICTS: usize = 10;

/// A policy as it was read.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) uid: String,
    pub(super) generation: i64,
    /// None where this version of Etch cannot read it.
    pub(super) spec: Option<DefaultsPolicySpec>,
    pub(super) status: DefaultsPolicyStatus,
}

/// What a policy has to do with the CRDs there are.
#[derive(Clone, Debug, Default)]
struct Part<'a> {
    governs: Vec<&'a str>,
    /// The CRDs of each tie, by the other policy's name and the winner's.
    ties: BTreeMap<(&'a str, &'a str), Vec<&'a str>>,
}

/// The status that each policy should have, where it has another.
pub(super) fn statuses<'a>(
    policies: &BTreeMap<String, Policy>,
    assignments: impl Iterator<Item = (&'a str, &'a Assignment)>,
    now: Timestamp,
) -> Vec<(String, DefaultsPolicyStatus)> {
    let parts = parts(assignments);
    let none = Part::default();
    let wanted = policies.iter().map(|(name, policy)| {
        let part = parts.get(name.as_str()).unwrap_or(&none);
        (name.clone(), status(policy, part, now))
    });
    wanted.filter(|(name, status)| policies[name].status != *status).collect()
}

fn parts<'a>(assignments: impl Iterator<Item = (&'a str, &'a Assignment)>) -> BTreeMap<&'a str, Part<'a>> {
    let mut parts: BTreeMap<&str, Part<'_>> = BTreeMap::new();
    for (crd, Assignment { settings, ties }) in assignments {
        let winner = settings.policy.as_str();
        parts.entry(winner).or_default().governs.push(crd);
        for loser in ties {
            parts.entry(winner).or_default().ties.entry((loser, winner)).or_default().push(crd);
            parts.entry(loser).or_default().ties.entry((winner, winner)).or_default().push(crd);
        }
    }
    parts
}

fn status(policy: &Policy, part: &Part<'_>, now: Timestamp) -> DefaultsPolicyStatus {
    let names = |crds: &[&str], most: usize| crds.iter().take(most).map(|crd| (*crd).to_owned()).collect();
    let conflicts = part.ties.iter().map(|((other, winner), crds)| PolicyConflict {
        policy: (*other).to_owned(),
        winner: (*winner).to_owned(),
        crds: crds.len() as u64,
        names: names(crds, NAMED_IN_CONFLICT),
    });
    let count = part.governs.len();
    let ready = match (&policy.spec, count) {
        (None, _) => {
            ("False", "Unreadable", "this version of Etch does not know all that the policy says".to_owned())
        }
        (Some(spec), _) if spec.paused == Some(true) => (
            "True",
            "Paused",
            format!("nothing is written to the objects of {count} CRDs until the pause ends"),
        ),
        (Some(_), 0) => ("True", "NothingSelected", "no CRD falls under this policy".to_owned()),
        (Some(_), _) => ("True", "InForce", format!("{count} CRDs fall under this policy")),
    };
    let conflicting = match &part.ties.keys().map(|(other, _)| *other).collect::<Vec<_>>()[..] {
        [] => ("False", "NoTie", String::new()),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            let message = format!(
                "{first}{more} selects CRDs as specifically as this policy; the first by name wins: see conflicts"
            );
            ("True", "Tie", message)
        }
    };
    let generation = Some(policy.generation);
    let conditions = [("Conflicting", conflicting), ("Ready", ready)];
    let conditions = conditions.into_iter().map(|(kind, (status, reason, message))| {
        let before = policy.status.conditions.iter().find(|before| before.type_ == kind);
        let kept = before.filter(|before| before.status == status);
        Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: generation,
            last_transition_time: kept.map_or(Time(now), |before| before.last_transition_time.clone()),
        }
    });
    DefaultsPolicyStatus {
        observed_generation: policy.generation,
        mode: policy.spec.as_ref().map(|spec| spec.mode.unwrap_or_default()),
        crds: count as u64,
        names: names(&part.governs, NAMED),
        conflicts: conflicts.take(CONFLICTS).collect(),
        conditions: conditions.collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::controller::assign::{Policies, assign};

    fn policy(spec: &str) -> Policy {
        let spec = serde_json::from_str(spec).ok();
        Policy { uid: "u".to_owned(), generation: 3, spec, status: DefaultsPolicyStatus::default() }
    }

    fn judged(
        policies: &BTreeMap<String, Policy>,
        crds: &[&str],
        second: i64,
    ) -> Vec<(String, DefaultsPolicyStatus)> {
        let readable =
            policies.iter().filter_map(|(name, policy)| Some((name.clone(), policy.spec.clone()?)));
        let readable: Policies = readable.collect();
        let assigned: Vec<_> = crds
            .iter()
            .filter_map(|crd| {
                let group = crd.split_once('.').expect("a CRD's name").1;
                Some((*crd, assign(&readable, crd, group, &BTreeMap::new(), Duration::ZERO)?))
            })
            .collect();
        let now = Timestamp::from_second(second).expect("a time");
        statuses(policies, assigned.iter().map(|(crd, assignment)| (*crd, assignment)), now)
    }

    fn condition<'a>(status: &'a DefaultsPolicyStatus, kind: &str) -> &'a Condition {
        status.conditions.iter().find(|condition| condition.type_ == kind).expect("a condition")
    }

    #[test]
    fn a_tie_is_told_on_both_sides_and_the_first_by_name_wins() {
        let policies = BTreeMap::from([
            ("b".to_owned(), policy(r#"{"selector": {"groups": ["x.io"]}}"#)),
            ("a".to_owned(), policy(r#"{"selector": {"groups": ["x.io"]}, "mode": "Audit"}"#)),
            ("default".to_owned(), policy("{}")),
        ]);
        let statuses: BTreeMap<_, _> =
            judged(&policies, &["ones.x.io", "twos.x.io", "ones.y.io"], 0).into_iter().collect();
        let (a, b, rest) = (&statuses["a"], &statuses["b"], &statuses["default"]);
        assert_eq!((a.crds, b.crds, rest.crds), (2, 0, 1));
        assert_eq!(a.names, ["ones.x.io", "twos.x.io"]);
        for (status, other) in [(a, "b"), (b, "a")] {
            let [conflict] = &status.conflicts[..] else { panic!("{:?}", status.conflicts) };
            assert_eq!((conflict.policy.as_str(), conflict.winner.as_str(), conflict.crds), (other, "a", 2));
            assert_eq!(condition(status, "Conflicting").status, "True");
        }
        assert_eq!(condition(b, "Ready").reason, "NothingSelected");
        assert_eq!(condition(rest, "Conflicting").status, "False");
        assert_eq!(rest.observed_generation, 3);
    }

    #[test]
    fn what_stands_there_already_is_not_wanted_again() {
        let mut policies = BTreeMap::from([("default".to_owned(), policy("{}"))]);
        let first = judged(&policies, &["ones.x.io"], 0);
        policies.get_mut("default").expect("it").status = first[0].1.clone();
        assert!(judged(&policies, &["ones.x.io"], 60).is_empty());
        let later = judged(&policies, &["ones.x.io", "twos.x.io"], 60);
        assert_eq!(later[0].1.crds, 2);
        assert_eq!(
            condition(&later[0].1, "Ready").last_transition_time,
            condition(&first[0].1, "Ready").last_transition_time,
            "it was ready before"
        );
    }

    #[test]
    fn a_policy_that_cannot_be_read_says_so() {
        let policies = BTreeMap::from([("odd".to_owned(), policy(r#"{"mode": "Dream"}"#))]);
        let statuses = judged(&policies, &["ones.x.io"], 0);
        let ready = condition(&statuses[0].1, "Ready");
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "Unreadable"));
    }
}
