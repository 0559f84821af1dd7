//! Steps about objects and their values: what to correct, store and save before the upgrade, and what to
//! store after it.

use std::collections::BTreeSet;

use etch_core::api::{AfterCanary, Canary};
use etch_core::impact::{Changed, EffectKind, Kind, Place};
use etch_core::object::IGNORE_ANNOTATION;
use etch_core::plan::HiddenFields;
use etch_core::shell::quoted;
use etch_core::words::{counted, cut};

use kube_structural_schema::path::Path;
use serde_json::Value;

use super::known::{Upgrade, Words};
use super::step::{StepKind, UpgradePlan, first};
use crate::compatibility::{DEFAULT_READ_BY_RULE, OLD_DEFAULT_INVALID};
use crate::rule::Finding;

/// How long a default is that a reason quotes.
const VALUE: usize = 100;

pub(super) fn before(upgrade: &Upgrade<'_>, plan: &mut UpgradePlan) {
    if upgrade.has_no_objects() {
        return;
    }
    let Words { etch, new, old, cluster, .. } = upgrade.words;
    let name = upgrade.word();
    let impact = || Some(format!("{etch} impact {new}{old} --live --limit 0{cluster}"));
    if let Some(objects) = upgrade.objects {
        let (elsewhere, owned) = (upgrade.of_place_in_etcd(), upgrade.of_owners());
        // Objects are moved away from versions that go, and their owners as well.
        let is_left = |place: &Place| {
            place.kind == Kind::Problem && !place.is_one_of(&elsewhere) && !place.is_one_of(&owned)
        };
        let invalid = upgrade.places(|place| place.effect == EffectKind::Problem && is_left(place));
        if !invalid.is_empty() {
            let what = "Correct the objects that become invalid, or that cannot be judged";
            plan.before(StepKind::Repair, what, first(invalid), impact());
        }
        let owned = upgrade.places(|place| place.is_one_of(&owned));
        if !owned.is_empty() {
            let what = match upgrade.policy.terms.repairs && upgrade.policy.writes {
                true => {
                    "Have owners apply at a version that stays, where the operator does not move their \
                     entries (`managedFields: Repair`)"
                }
                false => {
                    "Have owners apply at a version that stays, or a policy with `managedFields: Repair` \
                     move their entries"
                }
            };
            plan.before(StepKind::Repair, what, first(owned), impact());
        }
        if objects.counts.unprotected > 0 {
            let count = counted(objects.counts.unprotected, "object");
            let what =
                format!("Remove {IGNORE_ANNOTATION} where values are to stay: `etch persist` skips {count}");
            let command = format!("{etch} audit {name} --objects --limit 0{cluster}");
            plan.before(StepKind::Unignore, what, Vec::new(), Some(command));
        }
        let gives_defaults = upgrade.old.is_some_and(|(_, old)| old.gives_defaults());
        let is_about_versions = objects.summary.keys().any(|place| place.is_one_of(&elsewhere));
        let write = match gives_defaults && !is_about_versions {
            // It would store what the new schema refuses.
            _ if objects.may_break() => "",
            true => "`etch persist` before the upgrade settles it, and ",
            false => "`etch persist --every-object` before the upgrade settles it, and ",
        };
        let mut unknown = |what: String| {
            plan.unknown.push(format!(
                "{what}: {write}`etch impact` with --etcd-endpoints or --etcd-snapshot reads it"
            ));
        };
        if objects.counts.claimed > 0 {
            let count = counted(objects.counts.claimed, "object");
            unknown(format!(
                "whether etcd holds defaults of {count} that managedFields name, which can be stale"
            ));
        }
        if objects.counts.open > 0 {
            let count = counted(objects.counts.open, "object");
            unknown(format!("what etcd holds of {count}, on which it depends what happens there"));
        }
    }
    if let (None, Some((_, old)), true) = (upgrade.objects, upgrade.old, upgrade.is_moved_by_webhook()) {
        let (before, after) = (old.storage(), upgrade.new.1.storage());
        let lacking = &upgrade.schemas.fields_removed;
        if !lacking.is_empty() {
            let lacking = first(lacking.iter().map(ToString::to_string)).join(", ");
            plan.unknown.push(format!(
                "what the conversion webhook makes of fields of {} that {} does not have: {lacking}",
                before.name, after.name
            ));
        }
    }
    if upgrade.objects.is_none() {
        let read =
            upgrade.incompatible.iter().filter(|finding| finding.rule.code == DEFAULT_READ_BY_RULE.code);
        let read: BTreeSet<String> = read.map(|finding| finding.path.to_string()).collect();
        if !read.is_empty() {
            plan.unknown.push(format!(
                "whether objects stay valid where a rule around a default that changes reads it: {}; \
                 `etch impact` with objects shows it",
                first(read).join(", ")
            ));
        }
    }
    match (to_persist(upgrade), refused(upgrade)) {
        (Some(why), None) => {
            let what = "Store the values that objects show now, so that they stay";
            plan.before(StepKind::Persist, what, first(why), Some(upgrade.persist("")));
        }
        (Some(why), Some(refused)) => plan.unknown.push(format!(
            "whether to store the values that objects show now ({}): the new schema refuses the old default \
             of {refused}, so `etch persist` makes objects invalid that do not set it; `etch impact` shows \
             which",
            first(why).join("; ")
        )),
        (None, _) => {}
    }
    let Some(hidden) = to_save(upgrade) else { return };
    let everywhere = upgrade.everywhere();
    // No manifest by its ending: the folder that it lands in may be the one that is applied, with the CRD in
    // a file of the CRD's name.
    let file = quoted(&format!("{}-before-upgrade.yaml.bak", upgrade.name()));
    let objects = quoted(&at_storage_version(upgrade));
    let command = format!("kubectl get {objects}{everywhere}{cluster} --output yaml >{file}");
    let what =
        "Save the values that no reader sees after the upgrade; the next write of the object destroys them";
    plan.before(StepKind::Save, what, first(hidden), Some(command));
    if let (Some(policy), true) = (upgrade.policy.name, upgrade.policy.writes)
        && upgrade.policy.terms.hidden_fields == HiddenFields::Drop
    {
        let what = format!(
            "Hold objects with hidden fields: DefaultsPolicy {policy} lets Etch destroy these at once"
        );
        let command = format!(
            "kubectl patch defaultspolicy {}{cluster} --type merge --patch \
             '{{\"spec\":{{\"hiddenFields\":\"Hold\"}}}}'",
            quoted(policy)
        );
        plan.before(StepKind::Hold, what, Vec::new(), Some(command));
    }
}

/// The resource in kubectl's words, at the version that shows all that is stored: kubectl takes the version
/// that the API server prefers, which may have fewer fields.
fn at_storage_version(upgrade: &Upgrade<'_>) -> String {
    let name = upgrade.name();
    let shown = upgrade.old.map(|(_, old)| old).filter(|old| {
        old.storage().served && old.versions().iter().filter(|version| version.served).count() > 1
    });
    match (shown, name.split_once('.')) {
        (Some(old), Some((plural, group))) => format!("{plural}.{}.{group}", old.storage().name),
        _ => name.to_owned(),
    }
}

pub(super) fn after(upgrade: &Upgrade<'_>, plan: &mut UpgradePlan) {
    let added = &upgrade.schemas.defaults_added;
    let gains = match upgrade.objects {
        Some(objects) => objects.counts.gaining + objects.counts.gaining_on_write > 0,
        None => !added.is_empty(),
    };
    let moves = upgrade.moves();
    if upgrade.has_no_objects() || !(gains || moves) || !upgrade.new.1.compiled().has_defaults() {
        return;
    }
    let mut why = match upgrade.objects {
        Some(_) => {
            upgrade.places(|place| matches!(place.effect, EffectKind::Appears | EffectKind::AppearsOnWrite))
        }
        None => added.iter().map(|(path, value)| format!("{path}: {} is new", shown(value))).collect(),
    };
    if let (true, Some((_, old))) = (moves, upgrade.old) {
        let (before, after) = (&old.storage().name, &upgrade.new.1.storage().name);
        why.insert(0, format!("objects are stored at {before}, and the storage version is {after}"));
    }
    let (name, Words { cluster, .. }) = (upgrade.word(), upgrade.words);
    let storage = upgrade.new.1.storage();
    if !storage.served {
        plan.after(StepKind::Store, serve(&storage.name), first(why), None);
        return;
    }
    let policy = &upgrade.policy;
    let (what, command) = match policy.writes {
        true => (
            "Wait until the operator has stored the defaults of the new schema",
            format!(
                "kubectl wait --for condition=DefaultsPersisted --timeout {} crd/{name}{cluster}",
                policy.timeout()
            ),
        ),
        false => ("Store the defaults of the new schema", upgrade.persist("")),
    };
    let why = [first(why), of_policy(upgrade)].concat();
    plan.after(StepKind::Store, what, why, Some(command));
}

/// What to do where the storage version is not served.
pub(super) fn serve(storage: &str) -> String {
    format!(
        "Serve {storage}, or make a served version the storage version: nothing writes objects at a version \
         that is not served"
    )
}

/// What in the policy keeps the operator from storing everything at once.
pub(super) fn of_policy(upgrade: &Upgrade<'_>) -> Vec<String> {
    let (policy, Words { etch, new, old, cluster, .. }) = (&upgrade.policy, upgrade.words);
    if let Some(idle) = &policy.idle {
        return vec![format!("{idle}; `etch persist` writes all the same")];
    }
    let mut found = Vec::new();
    if let Some(held @ 1..) = upgrade.objects.map(|objects| objects.counts.held) {
        let drop = match policy.terms.hidden_fields {
            HiddenFields::Hold if hides(upgrade) => {
                "; a policy with `hiddenFields: Drop` lets it destroy what becomes hidden"
            }
            HiddenFields::Hold | HiddenFields::Drop => "",
        };
        found.push(format!(
            "the operator holds {}, which a write would harm, and the condition is False until that is \
             resolved (`{etch} impact {new}{old} --live -o json{cluster}` names them){drop}",
            counted(held, "object")
        ));
    }
    if policy.selects_some() {
        found.push(
            "the policy selects only some objects (`objects`): the others go on lacking them".to_owned(),
        );
    }
    if let Some(Canary { objects, then: AfterCanary::Wait }) = policy.canary {
        let resume = format!("{etch} resume {}{cluster}", upgrade.word());
        found.push(format!(
            "a canary ({objects} of the objects) comes first; the operator writes the other objects after \
             `{resume}`"
        ));
    }
    found
}

/// Why the present values are to be stored first; `None` if that would keep nothing.
fn to_persist(upgrade: &Upgrade<'_>) -> Option<Vec<String>> {
    match upgrade.objects {
        Some(objects) => (objects.counts.protected > 0).then(|| {
            let is_so = |place: &Place| matches!(place.effect, EffectKind::Changes | EffectKind::Disappears);
            upgrade.places(is_so)
        }),
        None => {
            let (schemas, not_kept) = (&upgrade.of_stored(), upgrade.not_kept());
            let is_kept = |path: &Path| !not_kept.iter().any(|lost| lost.contains(path));
            let changed = schemas.defaults_changed.iter().filter(|changed| is_kept(&changed.path));
            let changed = changed
                .map(|Changed { path, old, new }| format!("{path}: {} becomes {}", shown(old), shown(new)));
            let removed = schemas.defaults_removed.iter().filter(|(path, _)| is_kept(path));
            let removed =
                removed.map(|(path, old)| format!("{path}: {} is no longer the default", shown(old)));
            let why: Vec<String> = changed.chain(removed).collect();
            (!why.is_empty()).then_some(why)
        }
    }
}

/// The places of old defaults that the new schema refuses; `None` if there are none, or if objects were read:
/// then it is known of each whether storing them harms it.
fn refused(upgrade: &Upgrade<'_>) -> Option<String> {
    let (_, old) = upgrade.old.filter(|_| upgrade.objects.is_none())?;
    let is_so = |finding: &&Finding| {
        finding.rule.code == OLD_DEFAULT_INVALID.code && finding.version == old.storage().name
    };
    let places: Vec<String> =
        upgrade.incompatible.iter().filter(is_so).map(|finding| finding.path.to_string()).collect();
    (!places.is_empty()).then(|| first(places).join(", "))
}

/// Whether fields go, whatever objects have there.
fn hides(upgrade: &Upgrade<'_>) -> bool {
    !upgrade.schemas.fields_removed.is_empty() || !upgrade.schemas.unknown_removed.is_empty()
}

/// What becomes hidden; `None` if nothing does.
pub(super) fn to_save(upgrade: &Upgrade<'_>) -> Option<Vec<String>> {
    let why: Vec<String> = match upgrade.objects {
        Some(_) => upgrade.places(|place| matches!(place.effect, EffectKind::Hidden | EffectKind::Dropped)),
        None => {
            let of_stored = upgrade.of_stored();
            let schemas = if upgrade.is_moved_by_webhook() { &of_stored } else { upgrade.schemas };
            let removed = &schemas.fields_removed;
            let unknown = &schemas.unknown_removed;
            let removed = removed.iter().map(|path| format!("{path}: the field is gone"));
            let unknown =
                unknown.iter().map(|path| format!("{path}: fields that are not declared are no longer kept"));
            removed.chain(unknown).collect()
        }
    };
    (!why.is_empty()).then_some(why)
}

/// A default, its beginning only where it is long.
fn shown(value: &Value) -> String {
    cut(&value.to_string(), VALUE)
}
