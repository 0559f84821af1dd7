//! Steps about versions: which may still be stored, and how they go out of `status.storedVersions`.

use etch_core::object::IGNORE_ANNOTATION;
use etch_core::shell::quoted;
use etch_core::words::counted;
use serde_json::json;

use super::known::{Upgrade, Words, names, stored};
use super::objects::{of_policy, serve, to_save};
use super::step::{StepKind, UpgradePlan};

/// The versions that the upgrade takes out of the CRD have to be out of `status.storedVersions` before.
pub(super) fn before(upgrade: &Upgrade<'_>, plan: &mut UpgradePlan) {
    let Some((document, old)) = upgrade.old else { return };
    let storage = old.storage().name.as_str();
    let gone = upgrade.going();
    if gone.contains(&storage) {
        let what = format!(
            "Upgrade in two steps: the CRD no longer has {storage}, the version that objects are stored at"
        );
        let after = &upgrade.new.1.storage().name;
        let why = vec![
            format!("apply a CRD that has both {storage} and {after}, with {after} as the storage version"),
            format!("then store every object at {after}, and take {storage} out of status.storedVersions"),
        ];
        plan.before(StepKind::Fix, what, why, Some(stored_versions(upgrade)));
        return;
    }
    let elsewhere = upgrade.of_place_in_etcd();
    let stored_elsewhere = upgrade.places(|place| place.is_one_of(&elsewhere));
    if gone.is_empty() {
        if !stored_elsewhere.is_empty() {
            if old.storage().served {
                unignore(upgrade, plan);
            }
            let (what, command) = match old.storage().served {
                true => moving(upgrade, storage),
                false => (serve(storage), None),
            };
            plan.before(StepKind::Move, what, stored_elsewhere, command);
        }
        return;
    }
    let list = gone.join(", ");
    let why = match stored(document) {
        Some(_) => format!(
            "the upgrade takes out {list}, and the API server refuses it while status.storedVersions has it"
        ),
        None => {
            format!("the upgrade takes out {list}; skip this where status.storedVersions does not have it")
        }
    };
    if !old.storage().served && !upgrade.has_no_objects() {
        plan.before(StepKind::Move, serve(storage), vec![why], None);
        return;
    }
    let kept = stored(document).map(|stored| without(&stored, &gone));
    let kept = kept.unwrap_or_else(|| vec![storage.to_owned()]);
    if upgrade.policy.trims() {
        let (what, command) = trimmed(upgrade, &list);
        plan.before(StepKind::Trim, what, vec![why], Some(command));
        return;
    }
    if !upgrade.has_no_objects() {
        unignore(upgrade, plan);
        let (what, command) = moving(upgrade, storage);
        plan.before(StepKind::Move, what, vec![why.clone()], command);
    }
    let what = format!("Take {list} out of status.storedVersions, once every object is stored at {storage}");
    let why = [why].into_iter().chain(kept_by_selection(upgrade)).chain(proof(upgrade)).collect();
    plan.before(StepKind::Trim, what, why, Some(trim(upgrade, stored(document).as_deref(), &kept)));
}

/// What can go out of `status.storedVersions` once all objects are stored at the storage version.
pub(super) fn after(upgrade: &Upgrade<'_>, plan: &mut UpgradePlan) {
    let Some((document, old)) = upgrade.old else { return };
    let (storage, new) = (upgrade.new.1.storage().name.as_str(), upgrade.new.1);
    let before = stored(document);
    let mut stored = before.clone().unwrap_or_else(|| vec![old.storage().name.clone()]);
    // What is taken out before the upgrade is no longer there.
    stored.retain(|name| names(upgrade.new.0).any(|other| other == name));
    if !stored.iter().any(|name| name == storage) {
        stored.push(storage.to_owned());
    }
    let others = without(&stored, &[storage]);
    if others.is_empty() {
        return;
    }
    let list = others.join(", ");
    if !new.storage().served && !upgrade.has_no_objects() {
        if !plan.steps.iter().any(|step| step.kind == StepKind::Store) {
            plan.after(
                StepKind::Move,
                serve(storage),
                vec![format!("status.storedVersions has {list}")],
                None,
            );
        }
        return;
    }
    if upgrade.policy.trims() {
        let (what, command) = trimmed(upgrade, &list);
        plan.after(StepKind::Trim, what, of_policy(upgrade), Some(command));
        return;
    }
    // What stores the defaults of all objects also moves them.
    let stores_all = !(upgrade.policy.writes && upgrade.policy.selects_some());
    let is_moved = stores_all
        && new.compiled().has_defaults()
        && plan.steps.iter().any(|step| step.kind == StepKind::Store);
    // An object with a hidden field is not written any more.
    let is_before = !upgrade.moves() && to_save(upgrade).is_some();
    if !upgrade.has_no_objects() && (is_before || !is_moved) {
        let (what, command) = moving(upgrade, storage);
        let why = vec![format!("status.storedVersions has {list}")];
        match is_before {
            true => plan.before(StepKind::Move, what, why, command),
            false => plan.after(StepKind::Move, what, why, command),
        }
    }
    let what = format!("Take {list} out of status.storedVersions, once every object is stored at {storage}");
    let mut why = Vec::new();
    if upgrade.moves() {
        why.push(format!("the storage version was {} and is {storage}", old.storage().name));
    }
    if before.is_none() {
        why.push(
            "which versions are stored is not known: compare with status.storedVersions first".to_owned(),
        );
    }
    why.extend(kept_by_selection(upgrade));
    why.extend(proof(upgrade));
    let kept = vec![storage.to_owned()];
    let known = before.map(|_| stored);
    plan.after(StepKind::Trim, what, why, Some(trim(upgrade, known.as_deref(), &kept)));
}

/// Objects that `etch persist` skips stay at a version that goes.
fn unignore(upgrade: &Upgrade<'_>, plan: &mut UpgradePlan) {
    let Some(ignored @ 1..) = upgrade.objects.map(|objects| objects.counts.ignored) else { return };
    let Words { etch, cluster, .. } = upgrade.words;
    let what = format!(
        "Remove {IGNORE_ANNOTATION}: `etch persist` skips {}, and what is stored at a version that is gone \
         cannot be read",
        counted(ignored, "object")
    );
    let command = format!("{etch} audit {} --objects --limit 0{cluster}", upgrade.word());
    plan.before(StepKind::Unignore, what, Vec::new(), Some(command));
}

/// How to see that the operator has taken versions out.
fn trimmed(upgrade: &Upgrade<'_>, list: &str) -> (String, String) {
    let what = format!(
        "Wait until the operator has taken {list} out of status.storedVersions (storedVersions: Trim): the \
         command ends with 0 then, and else names what keeps it"
    );
    (what, audit(upgrade))
}

/// How to store all objects at the storage version.
fn moving(upgrade: &Upgrade<'_>, storage: &str) -> (String, Option<String>) {
    (format!("Store every object at {storage}"), Some(upgrade.persist(" --every-object")))
}

/// Why `storedVersions: Trim` takes nothing out here.
fn kept_by_selection(upgrade: &Upgrade<'_>) -> Option<String> {
    let policy = &upgrade.policy;
    (policy.writes && policy.terms.moves && policy.selects_some()).then(|| {
        "the operator does not take it out: the policy selects only some objects (`objects`)".to_owned()
    })
}

/// What shows whether every object is stored there; `None` if there are no objects.
fn proof(upgrade: &Upgrade<'_>) -> Option<String> {
    (!upgrade.has_no_objects()).then(|| format!("`{}` shows whether it could go", audit(upgrade)))
}

fn audit(upgrade: &Upgrade<'_>) -> String {
    let Words { etch, cluster, .. } = upgrade.words;
    format!("{etch} audit --stored-versions {}{cluster}", upgrade.word())
}

/// The change of the list; where the list is known, only as long as it is that.
fn trim(upgrade: &Upgrade<'_>, known: Option<&[String]>, kept: &[String]) -> String {
    let Words { cluster, .. } = upgrade.words;
    let name = upgrade.word();
    let (kind, patch) = match known {
        Some(known) => {
            let at = "/status/storedVersions";
            let test = json!({ "op": "test", "path": at, "value": known });
            ("json", json!([test, { "op": "replace", "path": at, "value": kept }]))
        }
        None => ("merge", json!({ "status": { "storedVersions": kept } })),
    };
    format!(
        "kubectl patch crd {name}{cluster} --subresource status --type {kind} --patch {}",
        quoted(&patch.to_string())
    )
}

fn stored_versions(upgrade: &Upgrade<'_>) -> String {
    let Words { cluster, .. } = upgrade.words;
    format!("kubectl get crd {}{cluster} --output jsonpath='{{.status.storedVersions}}'", upgrade.word())
}

fn without(names: &[String], others: &[&str]) -> Vec<String> {
    names.iter().filter(|name| !others.contains(&name.as_str())).cloned().collect()
}
