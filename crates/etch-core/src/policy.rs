//! What each policy does at present, for its status: the CRDs that fall under it, and the policies that it
//! ties with. The caller gives the assignments.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::{Assignment, DefaultsPolicySpec, DefaultsPolicyStatus, Policies, PolicyConflict, pause};
use crate::condition::list;
use crate::crd::Crd;
use crate::words;
use kube_structural_schema::path::Path;

/// How many CRDs a status names, and how many a conflict does.
const NAMED: usize = 10;
const NAMED_IN_CONFLICT: usize = 3;
/// How many conflicts a status lists.
const CONFLICTS: usize = 10;
/// The condition of a policy whose `onChange` names fields that are not there.
pub const UNKNOWN_PATHS: &str = "UnknownPaths";
/// The condition of a policy that is as specific as another one.
pub const CONFLICTING: &str = "Conflicting";
/// The condition of what is not `Ready`, and does not become it until a user changes it.
pub const STALLED: &str = "Stalled";
/// The reason of `Ready` where the selector matches no CRD.
pub const NOTHING_SELECTED: &str = "NothingSelected";

/// A policy as it was read.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its uid.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// `None` if this version of Etch cannot read it.
    pub spec: Option<DefaultsPolicySpec>,
    /// What counts of it: see [`counting`](crate::api::counting).
    pub counts: DefaultsPolicySpec,
    /// Its status, as it was read.
    pub status: DefaultsPolicyStatus,
}

/// What a policy has to do with the CRDs there are.
#[derive(Clone, Debug, Default)]
struct Part<'a> {
    governs: Vec<&'a str>,
    /// How many CRDs it selects that a more specific policy governs.
    outranked: usize,
    /// The places that its `onChange` names, and that no schema of the CRDs it governs has.
    unknown: Vec<&'a str>,
    /// The CRDs of each tie, by the other policy's name and the winner's.
    ties: BTreeMap<(&'a str, &'a str), Vec<&'a str>>,
}

/// What there is in the cluster.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// All policies.
    pub policies: &'a BTreeMap<String, Policy>,
    /// What counts of them; see [`counted`].
    pub counted: &'a Policies,
    /// A CRD by its name; `None` if it cannot be read.
    pub crd: &'a dyn Fn(&str) -> Option<&'a Crd>,
}

/// What counts of each policy.
pub fn counted(policies: &BTreeMap<String, Policy>) -> Policies {
    policies.iter().map(|(name, policy)| (name.clone(), policy.counts.clone())).collect()
}

/// The status that each policy should have, where it has another.
pub fn statuses<'a>(
    scope: Scope<'a>,
    assignments: impl Iterator<Item = (&'a str, &'a Assignment)>,
    now: Timestamp,
) -> Vec<(String, DefaultsPolicyStatus)> {
    let Scope { policies, counted, crd } = scope;
    let mut parts = parts(assignments);
    let wanted = policies.iter().map(|(name, policy)| {
        let mut part = parts.remove(name.as_str()).unwrap_or_default();
        if let Some(spec) = &policy.spec {
            part.unknown = unknown(spec, part.governs.iter().filter_map(|name| crd(name)));
        }
        (name.clone(), status(name, policy, counted, &part, now))
    });
    wanted.filter(|(name, status)| policies[name].status != *status).collect()
}

/// The places of a policy's `onChange` that none of these CRDs has in a schema. Empty if there is no CRD to
/// compare with.
fn unknown<'a, 'b>(spec: &'a DefaultsPolicySpec, crds: impl Iterator<Item = &'b Crd>) -> Vec<&'a str> {
    if spec.on_change.is_empty() {
        return Vec::new();
    }
    let crds: Vec<&Crd> = crds.collect();
    let is_unknown = |text: &&str| {
        let Ok(path) = text.parse::<Path>() else { return true };
        let mut schemas = crds.iter().flat_map(|crd| crd.versions()).map(|version| &version.schema);
        !schemas.any(|schema| schema.describes(path.steps()))
    };
    let named = spec.on_change.iter().map(|rule| rule.path.as_str());
    named.filter(|text| !crds.is_empty() && is_unknown(text)).collect()
}

fn parts<'a>(assignments: impl Iterator<Item = (&'a str, &'a Assignment)>) -> BTreeMap<&'a str, Part<'a>> {
    let mut parts: BTreeMap<&str, Part<'_>> = BTreeMap::new();
    for (crd, Assignment { settings, ties, outranked }) in assignments {
        let winner = settings.policy.as_str();
        for policy in outranked {
            parts.entry(policy).or_default().outranked += 1;
        }
        parts.entry(winner).or_default().governs.push(crd);
        for loser in ties {
            parts.entry(winner).or_default().ties.entry((loser, winner)).or_default().push(crd);
            parts.entry(loser).or_default().ties.entry((winner, winner)).or_default().push(crd);
        }
    }
    parts
}

fn status(
    name: &str,
    policy: &Policy,
    counted: &Policies,
    part: &Part<'_>,
    now: Timestamp,
) -> DefaultsPolicyStatus {
    let names = |crds: &[&str], most: usize| crds.iter().take(most).map(|crd| (*crd).to_owned()).collect();
    let conflicts = part.ties.iter().map(|((other, winner), crds)| PolicyConflict {
        policy: (*other).to_owned(),
        winner: (*winner).to_owned(),
        crds: crds.len() as u64,
        names: names(crds, NAMED_IN_CONFLICT),
    });
    let count = part.governs.len();
    let selects = part.outranked + part.ties.values().map(Vec::len).sum::<usize>();
    let ready = match (&policy.spec, count) {
        (None, _) => {
            let held = format!(
                "Etch writes no objects of the {} that it governs",
                words::counted(count as u64, "CRD")
            );
            (
                "False",
                "Unreadable",
                format!("spec has values that this version of Etch does not support: {held}"),
            )
        }
        (Some(_), 0) if selects > 0 => {
            ("True", "Outranked", "other policies govern every CRD that this one selects".to_owned())
        }
        // It is in force for every CRD that comes: one that waits for Ready must not keep them from coming.
        (Some(_), 0) => ("True", NOTHING_SELECTED, "the selector matches no CRD in the cluster".to_owned()),
        (Some(_), _) => {
            ("True", "InForce", format!("this policy governs {}", words::counted(count as u64, "CRD")))
        }
    };
    let paused = match pause(counted, name) {
        None => ("False", "NotPaused", String::new()),
        Some(_) if policy.counts.pause_all == Some(true) => {
            ("True", "PauseAll", "Etch writes no objects of any CRD until pauseAll is false".to_owned())
        }
        Some(pause) => {
            let reason = if pause.pause_all.is_empty() { "Paused" } else { "PauseAll" };
            let objects = format!("the objects of {}", words::counted(count as u64, "CRD"));
            ("True", reason, format!("Etch does not write {objects}: writes are paused by {pause}"))
        }
    };
    let unknown: Vec<String> = part.unknown.iter().map(|path| (*path).to_owned()).collect();
    let unknown = match &unknown[..] {
        [] => ("False", "AllKnown", String::new()),
        paths => ("True", "NoSuchField", list(paths, "onChange names fields that no schema of its CRDs has")),
    };
    let conflicting = match &part.ties.keys().map(|(other, _)| *other).collect::<Vec<_>>()[..] {
        [] => ("False", "NoTie", String::new()),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            let winners: BTreeSet<&str> = part.ties.keys().map(|(_, winner)| *winner).collect();
            let winners: Vec<&str> = winners.into_iter().collect();
            let message = format!(
                "{first}{more} and this policy select CRDs and are equally specific; {} governs them, as the \
                 first by name: see conflicts",
                winners.join(" or ")
            );
            ("True", "Tie", message)
        }
    };
    // As kstatus knows it: waiting does not help. It is there only where something is wrong.
    let stalled = (ready.0 == "False").then(|| (STALLED, ("True", ready.1, ready.2.clone())));
    let conditions =
        [(CONFLICTING, conflicting), ("Paused", paused), ("Ready", ready), (UNKNOWN_PATHS, unknown)];
    let before = &policy.status.conditions;
    let conditions = conditions
        .into_iter()
        .chain(stalled)
        .map(|(kind, found)| condition_after(before, kind, found, policy.generation, now));
    DefaultsPolicyStatus {
        observed_generation: policy.generation,
        mode: policy.spec.as_ref().map(|spec| spec.mode.unwrap_or_default()),
        crds: count as u64,
        names: names(&part.governs, NAMED),
        conflicts: conflicts.take(CONFLICTS).collect(),
        conditions: conditions.collect(),
    }
}

/// A condition of a resource of Etch's own, found as its status, reason and message: it keeps the time of its
/// last transition while it keeps its status.
pub fn condition_after(
    before: &[Condition],
    kind: &str,
    (status, reason, message): (&str, &str, String),
    generation: i64,
    now: Timestamp,
) -> Condition {
    let kept = before.iter().find(|before| before.type_ == kind && before.status == status);
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: Some(generation),
        last_transition_time: kept.map_or(Time(now), |before| before.last_transition_time.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::{assign, counting};

    fn policy(spec: &str) -> Policy {
        let counts = counting(&serde_json::from_str(spec).expect("JSON"));
        let spec = serde_json::from_str(spec).ok();
        let status = DefaultsPolicyStatus::default();
        Policy { uid: "u".to_owned(), generation: 3, spec, counts, status }
    }

    fn judged(
        policies: &BTreeMap<String, Policy>,
        crds: &[&str],
        second: i64,
    ) -> Vec<(String, DefaultsPolicyStatus)> {
        let counted = counted(policies);
        let assigned: Vec<_> = crds
            .iter()
            .filter_map(|crd| {
                let group = crd.split_once('.').expect("a CRD's name").1;
                Some((*crd, assign(&counted, crd, group, &BTreeMap::new(), Duration::ZERO)?))
            })
            .collect();
        let now = Timestamp::from_second(second).expect("a time");
        let things = things();
        let scope = Scope {
            policies,
            counted: &counted,
            crd: &|name| Some(&things).filter(|_| name == "things.x.io"),
        };
        statuses(scope, assigned.iter().map(|(crd, assignment)| (*crd, assignment)), now)
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
            let conflicting = condition(status, "Conflicting");
            let says =
                "select CRDs and are equally specific; a governs them, as the first by name: see conflicts";
            assert_eq!(conflicting.status, "True");
            assert_eq!(conflicting.message, format!("{other} and this policy {says}"));
        }
        let ready = condition(b, "Ready");
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Outranked"));
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

    fn wording(status: &DefaultsPolicyStatus, kind: &str) -> String {
        let Condition { status, reason, message, .. } = condition(status, kind);
        format!("{status} {reason}: {message}")
    }

    fn only(policies: &BTreeMap<String, Policy>, name: &str, crds: &[&str]) -> DefaultsPolicyStatus {
        judged(policies, crds, 0).into_iter().find(|(found, _)| found == name).expect("it").1
    }

    /// A CRD with `.spec.image` and `.spec.pools{}.size`.
    fn things() -> Crd {
        let pools = serde_json::json!({ "type": "object", "additionalProperties": {
            "type": "object", "properties": { "size": { "type": "integer" } } } });
        let spec = serde_json::json!({
            "type": "object", "properties": { "image": { "type": "string" }, "pools": pools },
        });
        let schema = serde_json::json!({ "type": "object", "properties": { "spec": spec } });
        let document = serde_json::json!({
            "metadata": { "name": "things.x.io", "uid": "crd" },
            "spec": {
                "group": "x.io", "scope": "Namespaced", "names": { "kind": "Thing", "plural": "things" },
                "versions": [
                    {
                        "name": "v1", "served": true, "storage": true, "schema": {
                            "openAPIV3Schema": schema,
                        },
                    },
                ],
            },
        });
        Crd::read(&document.into()).expect("a CRD")
    }

    #[test]
    fn a_policy_is_ready_whatever_it_selects() {
        let policies = BTreeMap::from([
            ("default".to_owned(), policy("{}")),
            ("own".to_owned(), policy(r#"{"selector": {"groups": ["x.io"]}}"#)),
            ("typo".to_owned(), policy(r#"{"selector": {"groups": ["y.io"]}}"#)),
        ]);
        let ready = |name: &str| wording(&only(&policies, name, &["things.x.io"]), "Ready");
        assert_eq!(ready("default"), "True Outranked: other policies govern every CRD that this one selects");
        assert_eq!(ready("own"), "True InForce: this policy governs 1 CRD");
        assert_eq!(ready("typo"), "True NothingSelected: the selector matches no CRD in the cluster");
    }

    #[test]
    fn a_pause_is_shown_on_every_policy_that_it_stops() {
        let mut policies = BTreeMap::from([
            ("default".to_owned(), policy(r#"{"paused": true}"#)),
            ("own".to_owned(), policy(r#"{"selector": {"groups": ["x.io"]}}"#)),
        ]);
        let paused =
            |policies: &_, name: &str| wording(&only(policies, name, &["things.x.io", "a.y.io"]), "Paused");
        assert_eq!(
            paused(&policies, "default"),
            "True Paused: Etch does not write the objects of 1 CRD: writes are paused by DefaultsPolicy \
             default (paused)"
        );
        assert_eq!(paused(&policies, "own"), "False NotPaused: ");
        let all = "True PauseAll: Etch writes no objects of any CRD until pauseAll is false";
        let others = "True PauseAll: Etch does not write the objects of 1 CRD: writes are paused by \
            DefaultsPolicy switch (pauseAll)";
        // It counts although the rest cannot be read.
        for spec in [
            r#"{"selector": {"groups": ["z.io"]}, "pauseAll": true}"#,
            r#"{"mode": "Dream", "pauseAll": true}"#,
        ] {
            policies.insert("switch".to_owned(), policy(spec));
            assert_eq!(
                (paused(&policies, "switch").as_str(), paused(&policies, "own").as_str()),
                (all, others)
            );
        }
    }

    #[test]
    fn a_place_that_no_schema_has_is_named() {
        let rules = r#"{"onChange": [
            {"path": ".spec.image", "action": "Follow"}, {"path": ".spec.imgae", "action": "Follow"},
            {"path": ".spec.pools{}.size", "action": "Keep"}, {"path": ".spec.pools[].size", "action": "Keep"}
        ]}"#;
        let policies = BTreeMap::from([("default".to_owned(), policy(rules))]);
        assert_eq!(
            wording(&only(&policies, "default", &["things.x.io"]), UNKNOWN_PATHS),
            "True NoSuchField: onChange names fields that no schema of its CRDs has: .spec.imgae, \
             .spec.pools[].size"
        );
        let unread = only(&policies, "default", &["others.x.io"]);
        assert_eq!(
            condition(&unread, UNKNOWN_PATHS).status,
            "False",
            "of a CRD that is not known nobody can tell"
        );
    }

    #[test]
    fn a_policy_that_cannot_be_read_says_so() {
        let policies = BTreeMap::from([("odd".to_owned(), policy(r#"{"mode": "Dream"}"#))]);
        let statuses = judged(&policies, &["ones.x.io"], 0);
        let ready = condition(&statuses[0].1, "Ready");
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "Unreadable"));
        assert_eq!(
            ready.message,
            "spec has values that this version of Etch does not support: Etch writes no objects of the 1 CRD \
             that it governs"
        );
        assert_eq!(condition(&statuses[0].1, "Paused").reason, "Paused");
        assert_eq!(wording(&statuses[0].1, STALLED), format!("True Unreadable: {}", ready.message));
        let fine = only(&BTreeMap::from([("fine".to_owned(), policy("{}"))]), "fine", &["ones.x.io"]);
        assert!(fine.conditions.iter().all(|condition| condition.type_ != STALLED));
    }
}
