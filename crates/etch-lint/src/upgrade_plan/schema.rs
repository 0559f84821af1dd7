//! Steps about the CRD itself: what the API server refuses, and what is incompatible.

use super::dry_run::DryRun;
use super::known::{Upgrade, Words};
use super::step::{Phase, Step, StepKind, UpgradePlan, first};
use crate::rule::{Finding, Severity};
use etch_core::upgrade::ALLOW_ANNOTATION;

pub(super) fn add(upgrade: &Upgrade<'_>, plan: &mut UpgradePlan) {
    let command = || Some(upgrade.words.lint.clone());
    // That a stored version goes is not a fault of the CRD: steps about versions correct it.
    let is_of_crd = |refusal: &&Finding| !refusal.place().starts_with("status.storedVersions");
    let refusals: Vec<&Finding> = upgrade.refusals.iter().filter(is_of_crd).collect();
    if !refusals.is_empty() {
        let why = refusals.iter().map(|refusal| format!("{}: {}", refusal.place(), refusal.message));
        let what = "Correct the CRD: the API server refuses it";
        plan.before(StepKind::Fix, what, first(why), command());
    }
    match upgrade.dry_run {
        DryRun::Refused(words) => {
            // Etch gives the same errors with their places; a webhook's refusal it cannot know.
            if upgrade.refusals.is_empty() && !words.contains("status.storedVersions") {
                let what = "Correct the CRD: this cluster refuses it in a dry run";
                let Words { apply, cluster, .. } = upgrade.words;
                let command =
                    |files| format!("kubectl apply --server-side --dry-run=server{cluster} {files}");
                plan.before(StepKind::Fix, what, vec![words.clone()], apply.as_ref().map(command));
            }
        }
        DryRun::Guarded { refusal, digest, .. } => {
            let what = "Allow exactly this upgrade once all that comes before it is done: Etch's guard \
                refuses it";
            let (name, Words { cluster, .. }) = (upgrade.word(), upgrade.words);
            // An upgrade before this one may have left its digest.
            let command =
                format!("kubectl annotate crd {name}{cluster} --overwrite {ALLOW_ANNOTATION}={digest}");
            plan.steps.push(Step {
                kind: StepKind::Review,
                phase: Phase::Upgrade,
                what: what.to_owned(),
                why: vec![refusal.clone()],
                command: Some(command),
            });
        }
        DryRun::Failed(why) => plan.unknown.push(format!(
            "whether the cluster's admission accepts the CRD: the dry run failed ({why}); Etch has checked \
             the CRD itself"
        )),
        DryRun::NotAsked => plan.unknown.push(
            "what is in the cluster: how many objects are affected, the versions that they are stored at, \
             and whether admission accepts the CRD; --live reads it"
                .to_owned(),
        ),
        DryRun::SameAsInstalled | DryRun::Accepted { .. } => {}
    }
    let serious = |finding: &&Finding| finding.rule.severity > Severity::Info;
    let why = upgrade.incompatible.iter().filter(serious).map(|finding| {
        let path = Some(finding.path.to_string()).filter(|_| !finding.path.is_root()).unwrap_or_default();
        let place = [finding.rule.code, &finding.version, &path].join(" ");
        let place: Vec<&str> = place.split(' ').filter(|word| !word.is_empty()).collect();
        format!("{}: {}", place.join(" "), finding.message)
    });
    let why: Vec<String> = why.collect();
    if !why.is_empty() {
        let what = "Check who depends on what is incompatible: manifests, clients and stored objects";
        plan.before(StepKind::Review, what, first(why), command());
    }
}
