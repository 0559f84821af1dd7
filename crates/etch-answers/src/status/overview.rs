//! What `etch status` shows of what was read from a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use etch_core::api::{
    Assignment, DefaultsReport, DefaultsReportStatus, Mode, ObjectProblem, Policies, assign,
};
use etch_core::condition::{Condition, EventType, PERSISTED, Reason, TYPES};
use etch_core::message::{MISSING_PERMISSION, OLD_CRDS};
use etch_core::policy::{CONFLICTING, NOTHING_SELECTED, UNKNOWN_PATHS};
use etch_core::upgrade::GuardMode;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition as ServerCondition;
use serde::Serialize;

use super::facts::{CrdFacts, Facts, LeaderView};
use crate::rbac::SERVICE_ACCOUNT;

/// How many objects with a problem are named.
const NAMED: usize = 5;
/// How long an operator takes at most to set the conditions of a CRD that it may write.
const SOON: i64 = 300;
/// What is shown of a CRD that a policy governs and that has no condition.
const NO_CONDITION: &str = "NoCondition";

/// Everything that the command shows, as programs read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// See [`Facts::flags`].
    #[serde(skip)]
    pub(super) flags: String,
    pub(super) versions: Versions,
    /// `None` if no operator leads, or if that could not be read.
    pub(super) leader: Option<LeaderView>,
    #[serde(skip)]
    pub(super) is_leaderless: bool,
    /// Whether Etch's CRDs are installed; `None` if that could not be read.
    pub(super) installed: Option<bool>,
    /// Whether the CRD of DefaultsReports alone is missing.
    pub(super) lacks_reports: bool,
    /// Whether they are of an older Etch, and lack a field of a report.
    pub(super) old_crds: bool,
    pub(super) policies: Vec<PolicyView>,
    pub(super) policy_problems: Vec<PolicyProblem>,
    /// Why API servers do not ask the guard; `None` if they do, or if that could not be read.
    pub(super) unguarded: Option<String>,
    pub(super) schema_problems: Vec<SchemaProblem>,
    /// How many CRDs no policy selects; `None` if policies could not be read.
    pub(super) ungoverned: Option<u64>,
    /// How many CRDs have each reason of `DefaultsPersisted`, and how many have the other two conditions.
    pub(super) crds: Vec<StateView>,
    pub(super) passes: Vec<PassView>,
    pub(super) missing_permissions: Vec<MissingView>,
    pub(super) problems: ProblemsView,
    /// What could not be read, with the reason.
    pub unread: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Versions {
    pub(super) etch: &'static str,
    pub(super) kubernetes: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct PolicyView {
    pub(super) name: String,
    pub(super) mode: String,
    /// How many CRDs it governs.
    pub(super) crds: u64,
    pub(super) guard: String,
    /// Who has paused writes to the objects of its CRDs.
    pub(super) paused: Option<String>,
}

/// What a policy's own conditions ask its author to look at.
#[derive(Debug, Serialize)]
pub(super) struct PolicyProblem {
    pub(super) policy: String,
    pub(super) reason: String,
    pub(super) message: String,
}

/// A condition of an EmbeddedSchema that is `False`, or the lack of all.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SchemaProblem {
    pub(super) embedded_schema: String,
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Debug, Serialize)]
pub(super) struct StateView {
    pub(super) state: String,
    pub(super) crds: u64,
    /// The first of them, by name, where a user has to look.
    pub(super) names: Vec<String>,
    #[serde(rename = "isProblem")]
    pub(super) is_problem: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PassView {
    pub(super) crd: String,
    /// How many objects are processed.
    pub(super) objects: u64,
    pub(super) written: u64,
    pub(super) started: Option<Timestamp>,
    /// How many objects are processed per second, since it started.
    pub(super) per_second: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct MissingView {
    /// The policy that governs the CRDs; none if none does.
    pub(super) policy: Option<String>,
    /// The CRDs whose objects Etch may not read or write.
    pub(super) crds: Vec<String>,
    /// Grants what is missing.
    pub(super) command: String,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct ProblemsView {
    pub(super) held: u64,
    pub(super) rejected: u64,
    /// The first of them.
    pub(super) objects: Vec<ProblemView>,
}

#[derive(Debug, Serialize)]
pub(super) struct ProblemView {
    pub(super) crd: String,
    /// `namespace/name`
    pub(super) object: String,
    pub(super) state: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

/// Sums up what was read.
pub(super) fn overview(facts: Facts) -> Overview {
    let Facts { flags, kubernetes, leader, policies, policy_conditions, .. } = facts;
    let Facts { unguarded, schema_conditions, reports, crds, unread, now, .. } = facts;
    let are_known = crds.is_some() && policies.is_some();
    let lacks_reports = matches!((&policies, &reports), (Some(Some(_)), Some(None)));
    let (crds, mut reports) = (crds.unwrap_or_default(), reports.flatten().unwrap_or_default());
    let installed = policies.as_ref().map(Option::is_some);
    let policies = policies.flatten().unwrap_or_default();
    let is_old =
        |since: Option<Timestamp>| since.is_some_and(|since| now.duration_since(since).as_secs() > SOON);
    let leads_for_long = leader.iter().flatten().any(|leader| is_old(leader.since));
    let (mut governed, mut bare) = (BTreeMap::new(), Vec::new());
    for crd in &crds {
        let assigned = assign(&policies, &crd.name, &crd.group, &crd.labels, Duration::ZERO);
        let Some(Assignment { settings, .. }) = assigned else { continue };
        let has_none = !crd.conditions.iter().any(|condition| condition.r#type == PERSISTED);
        if has_none && settings.mode != Mode::Ignore && leads_for_long && is_old(crd.created) {
            bare.push(crd.name.as_str());
        }
        governed.insert(crd.name.as_str(), settings.policy);
    }
    // The report of a CRD that no policy selects any more is outdated.
    reports.retain(|report| !are_known || governed.contains_key(report.spec.crd.as_str()));
    let is_elsewhere = |leader: &&LeaderView| !SERVICE_ACCOUNT.starts_with(&format!("{}:", leader.namespace));
    let account = leader.iter().flatten().find(is_elsewhere);
    let account = account.map(|leader| format!(" --service-account {}:etch", leader.namespace));
    Overview {
        versions: Versions { etch: env!("CARGO_PKG_VERSION"), kubernetes },
        is_leaderless: matches!(leader, Some(None)),
        leader: leader.flatten(),
        installed,
        old_crds: conditions_of(&crds).any(|condition| condition.message.contains(OLD_CRDS)),
        policies: policy_views(&policies, &governed),
        policy_problems: policy_problems(policy_conditions, &policies),
        unguarded: unguarded.flatten(),
        schema_problems: schema_conditions.into_iter().flat_map(schema_problems).collect(),
        ungoverned: installed.map(|_| (crds.len() - governed.len()) as u64),
        lacks_reports,
        crds: states(&crds, bare),
        passes: reports.iter().filter_map(|report| pass(report, now)).collect(),
        missing_permissions: missing(&crds, &governed, account.as_deref(), &flags),
        problems: problems(&reports),
        unread,
        flags,
    }
}

impl Overview {
    /// Whether there is nothing to look at.
    pub fn is_clean(&self) -> bool {
        let is_broken =
            self.is_leaderless || self.installed == Some(false) || self.lacks_reports || self.old_crds;
        !is_broken
            // A policy may be there before its CRDs are.
            && self.policy_problems.iter().all(|problem| problem.reason == NOTHING_SELECTED)
            && !(self.unguarded.is_some() && self.denies())
            && self.schema_problems.is_empty()
            && self.missing_permissions.is_empty()
            && self.problems.held + self.problems.rejected == 0
            && !self.crds.iter().any(|state| state.is_problem)
    }

    /// Whether a policy has harmful upgrades refused.
    pub(super) fn denies(&self) -> bool {
        self.policies.iter().any(|policy| policy.guard == format!("{:?}", GuardMode::Deny))
    }
}

fn conditions_of(crds: &[CrdFacts]) -> impl Iterator<Item = &Condition> {
    crds.iter().flat_map(|crd| &crd.conditions)
}

fn policy_views(policies: &Policies, governed: &BTreeMap<&str, String>) -> Vec<PolicyView> {
    let view = |(name, spec): (&String, &etch_core::api::DefaultsPolicySpec)| PolicyView {
        name: name.clone(),
        mode: format!("{:?}", spec.mode.unwrap_or_default()),
        crds: governed.values().filter(|policy| *policy == name).count() as u64,
        guard: format!("{:?}", spec.guard_mode()),
        paused: etch_core::api::pause(policies, name).map(|pause| pause.to_string()),
    };
    policies.iter().map(view).collect()
}

fn policy_problems(
    conditions: Vec<(String, Vec<ServerCondition>)>,
    policies: &Policies,
) -> Vec<PolicyProblem> {
    let problems = conditions.into_iter().flat_map(|(policy, conditions)| {
        // A policy that only pauses all CRDs has its effect without one of its own.
        let pauses_all = policies.get(&policy).is_some_and(|spec| spec.pause_all == Some(true));
        let is_problem = move |condition: &ServerCondition| match condition.type_.as_str() {
            "Ready" if condition.reason == NOTHING_SELECTED => !pauses_all,
            "Ready" => condition.status == "False",
            CONFLICTING | UNKNOWN_PATHS => condition.status == "True",
            _ => false,
        };
        conditions.into_iter().filter(is_problem).map(move |condition| PolicyProblem {
            policy: policy.clone(),
            reason: condition.reason,
            message: condition.message,
        })
    });
    problems.collect()
}

fn schema_problems((name, conditions): (String, Vec<ServerCondition>)) -> Vec<SchemaProblem> {
    let problem = |reason: &str, message: &str| SchemaProblem {
        embedded_schema: name.clone(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    if conditions.is_empty() {
        return vec![problem("NoCondition", "Etch has not read it: install config/admission")];
    }
    let wrong = conditions.iter().filter(|condition| condition.status == "False");
    wrong.map(|condition| problem(&condition.reason, &condition.message)).collect()
}

/// The state of a CRD that has changed since its conditions were set.
const OUTDATED: &str = "Outdated";

/// The CRDs by the reason of `DefaultsPersisted`, and those with either of the other conditions.
fn states(crds: &[CrdFacts], bare: Vec<&str>) -> Vec<StateView> {
    let [non_structural, invalid_defaults, persisted] = TYPES;
    let mut states: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
    if !bare.is_empty() {
        states.insert((false, NO_CONDITION), bare);
    }
    for crd in crds {
        for condition in &crd.conditions {
            let is_outdated = condition.observed_generation.is_some_and(|seen| crd.generation > Some(seen));
            let (state, is_problem) = match condition.r#type.as_str() {
                kind if is_outdated && kind == persisted => (OUTDATED, false),
                _ if is_outdated => continue,
                kind if kind == persisted => {
                    let reason = Reason::named(&condition.reason);
                    let is_warning = reason.and_then(Reason::event) == Some(EventType::Warning);
                    // A user has to look at what the canary wrote, and to resume.
                    (condition.reason.as_str(), is_warning || reason == Some(Reason::CanaryWaiting))
                }
                _ if condition.status != "True" => continue,
                kind if kind == non_structural => (non_structural, true),
                _ => (invalid_defaults, true),
            };
            let names = states.entry((!is_problem, state)).or_default();
            // One CRD may have a reason and a condition of the same name.
            if !names.contains(&crd.name.as_str()) {
                names.push(&crd.name);
            }
        }
    }
    let view = |((is_fine, state), names): ((bool, &str), Vec<&str>)| StateView {
        state: state.to_owned(),
        crds: names.len() as u64,
        names: names.iter().filter(|_| !is_fine).take(NAMED).map(ToString::to_string).collect(),
        is_problem: !is_fine,
    };
    states.into_iter().map(view).collect()
}

fn pass(report: &DefaultsReport, now: Timestamp) -> Option<PassView> {
    let DefaultsReportStatus { state, counts, started, .. } = report.status.as_ref()?;
    let started = started.as_ref().map(|started| started.0);
    let seconds = started.map(|started| now.duration_since(started).as_secs());
    let per_second = seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    (state == Reason::InProgress.as_str()).then(|| PassView {
        crd: report.spec.crd.clone(),
        objects: counts.objects,
        written: counts.written,
        started,
        per_second: per_second.map(|seconds| counts.objects / seconds),
    })
}

/// The CRDs for which a permission is missing, by the policy that governs them. `account` names the
/// operator's ServiceAccount where it is another one than `etch rbac` assumes, which would take the
/// permissions away.
fn missing(
    crds: &[CrdFacts],
    governed: &BTreeMap<&str, String>,
    account: Option<&str>,
    flags: &str,
) -> Vec<MissingView> {
    let account = account.unwrap_or_default();
    let [.., persisted] = TYPES;
    let is_missing = |condition: &Condition| {
        condition.r#type == persisted
            && (condition.reason == Reason::Forbidden.as_str()
                || condition.message.contains(MISSING_PERMISSION))
    };
    let mut missing: BTreeMap<Option<&String>, BTreeSet<&str>> = BTreeMap::new();
    for crd in crds.iter().filter(|crd| crd.conditions.iter().any(is_missing)) {
        missing.entry(governed.get(crd.name.as_str())).or_default().insert(&crd.name);
    }
    let view = |(policy, crds): (Option<&String>, BTreeSet<&str>)| MissingView {
        policy: policy.cloned(),
        crds: crds.into_iter().map(str::to_owned).collect(),
        command: match policy {
            Some(policy) => {
                format!("etch rbac --policy {policy}{account}{flags} | kubectl apply{flags} -f -")
            }
            None => format!("etch rbac --live{account}{flags} | kubectl apply{flags} -f -"),
        },
    };
    missing.into_iter().map(view).collect()
}

/// The objects that Etch does not write, the rejected ones first.
fn problems(reports: &[DefaultsReport]) -> ProblemsView {
    let mut view = ProblemsView::default();
    // The numbers of an ignored CRD are those of an earlier pass.
    let is_present = |status: &&DefaultsReportStatus| status.state != Reason::Ignored.as_str();
    let with_status = || {
        reports
            .iter()
            .filter_map(|report| Some((&report.spec.crd, report.status.as_ref().filter(is_present)?)))
    };
    for (_, status) in with_status() {
        view.held += status.counts.held;
        view.rejected += status.counts.rejected;
    }
    let named = |crd: &String, state, problem: &ObjectProblem| ProblemView {
        crd: crd.clone(),
        object: match &problem.namespace {
            Some(namespace) => format!("{namespace}/{}", problem.name),
            None => problem.name.clone(),
        },
        state,
        reason: problem.reason.clone(),
        message: problem.in_words(),
    };
    let rejected = with_status()
        .flat_map(|(crd, status)| status.rejected.iter().map(move |problem| named(crd, "Rejected", problem)));
    let held = with_status()
        .flat_map(|(crd, status)| status.held.iter().map(move |problem| named(crd, "Held", problem)));
    view.objects = rejected.chain(held).take(NAMED).collect();
    view
}
