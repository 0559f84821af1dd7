//! The step that applies the CRD.

use kube_structural_schema::json::same;

use super::known::{DryRun, Upgrade, Words};
use super::step::{Phase, Step, StepKind, UpgradePlan};

pub(super) fn add(upgrade: &Upgrade<'_>, plan: &mut UpgradePlan) {
    let is_same = *upgrade.dry_run == DryRun::SameAsInstalled
        || upgrade.old.is_some_and(|(old, _)| same(&old["spec"], &upgrade.new.0["spec"]));
    if is_same {
        return;
    }
    let takes_over = match upgrade.dry_run {
        DryRun::Accepted { conflicts } | DryRun::Guarded { conflicts, .. } => *conflicts,
        DryRun::NotAsked | DryRun::SameAsInstalled | DryRun::Refused(_) | DryRun::Failed(_) => false,
    };
    let force = if takes_over { " --force-conflicts" } else { "" };
    let why = takes_over.then(|| {
        "other field managers own fields that change, such as Helm: upgrade with their tool, or take the fields over \
         with --force-conflicts"
            .to_owned()
    });
    let Words { apply, cluster, .. } = upgrade.words;
    let what = if apply.is_some() { "Apply the CRD" } else { "Apply the CRD, which was piped in" };
    plan.steps.push(Step {
        kind: StepKind::Apply,
        phase: Phase::Upgrade,
        what: "Apply the CRD".to_owned(),
        why: why.into_iter().collect(),
        command: apply.as_ref().map(|files| format!("kubectl apply --server-side{force}{cluster} {files}")),
    });
}
