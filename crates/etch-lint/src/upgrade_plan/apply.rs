//! The step that applies the CRD.

use kube_structural_schema::json::{Json, same};
use serde_json::{Map, Value};

use super::dry_run::DryRun;
use super::known::{Upgrade, Words};
use super::step::{Phase, Step, StepKind, UpgradePlan};

/// What `kubectl apply` keeps for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

pub(super) fn add(upgrade: &Upgrade<'_>, plan: &mut UpgradePlan) {
    let is_same = match upgrade.dry_run {
        DryRun::SameAsInstalled => true,
        DryRun::Accepted { .. } | DryRun::Guarded { .. } => false,
        DryRun::NotAsked | DryRun::Refused(_) | DryRun::Failed(_) => upgrade.old.is_some_and(|(old, _)| {
            same(&old["spec"], &upgrade.new.0["spec"]) && has_same_marks(old, upgrade.new.0)
        }),
    };
    if is_same {
        return;
    }
    let takes_over = match upgrade.dry_run {
        DryRun::Accepted { conflicts } | DryRun::Guarded { conflicts, .. } => *conflicts,
        DryRun::NotAsked | DryRun::SameAsInstalled | DryRun::Refused(_) | DryRun::Failed(_) => false,
    };
    let force = if takes_over { " --force-conflicts" } else { "" };
    let why = takes_over.then(|| {
        "other field managers own fields that change, such as Helm: upgrade with their tool, or take the \
         fields over with --force-conflicts"
            .to_owned()
    });
    let Words { apply, cluster, .. } = upgrade.words;
    let what = if apply.is_some() { "Apply the CRD" } else { "Apply the CRD, which was piped in" };
    plan.steps.push(Step {
        kind: StepKind::Apply,
        phase: Phase::Upgrade,
        what: what.to_owned(),
        why: why.into_iter().collect(),
        command: apply.as_ref().map(|files| format!("kubectl apply --server-side{force}{cluster} {files}")),
    });
}

/// Whether applying a CRD changes neither labels nor annotations: they select its policy and its webhook's
/// certificate, among other things. One that a server returned may have more of them, from other managers.
fn has_same_marks(old: &Json, new: &Json) -> bool {
    let is_returned = old["metadata"]["uid"].is_string();
    let marks = |crd: &Json, field: &str| -> Map<String, Value> {
        let mut marks = crd["metadata"][field].as_object().cloned().unwrap_or_default();
        marks.remove(LAST_APPLIED);
        marks
    };
    ["labels", "annotations"].iter().all(|field| {
        let (old, new) = (marks(old, field), marks(new, field));
        new.iter().all(|(name, value)| old.get(name) == Some(value))
            && (is_returned || old.len() == new.len())
    })
}
