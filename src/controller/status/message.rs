//! The sentence about a CRD, from what became of its objects.
//! It must not name values, nor more than a few objects.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::api::{Mode, Pause, Settings};
use crate::cluster::MissingPermissions;
use crate::controller::crd::check::SchemaFindings;
use crate::controller::state::tally::Tally;
use crate::domain::condition::{CrdStatus, Reason, first, list};
use crate::domain::crd::Crd;
use crate::domain::object::Identity;
use crate::domain::object_state::{ObjectState, StateKind};
use crate::domain::plan::{Held, Hold, RejectionKind, Skip};

/// How a sentence about missing permissions begins.
pub(in crate::controller) const MISSING_PERMISSION: &str = "a permission is missing";

/// The status where no object needs to be read; none where some do, or where there is nothing to report.
pub(in crate::controller) fn without_objects(
    crd: &Crd,
    settings: &Settings,
    findings: &SchemaFindings,
) -> Option<CrdStatus> {
    let defaults = crd.compiled().has_defaults();
    let status = |persisted, reason, message: String| Some(crd_status(findings, persisted, reason, message));
    if !findings.non_structural.is_empty() {
        return Some(unreadable(findings));
    }
    if !defaults && !findings.invalid_defaults.is_empty() {
        return status(Some(true), Reason::NoDefaults, String::new());
    }
    if !defaults {
        return None;
    }
    if settings.mode == Mode::Ignore {
        let message = format!("DefaultsPolicy {} has mode: Ignore", settings.policy);
        return status(None, Reason::Ignored, message);
    }
    if crd.is_shadowed() {
        return status(Some(false), Reason::NotServed, shadowed(crd));
    }
    if !crd.storage().served {
        let message = format!("the storage version {} is not served", crd.storage().name);
        return status(Some(false), Reason::NotServed, message);
    }
    None
}

/// Why nothing is read or written for a CRD in a group of the API server's own.
pub(in crate::controller) fn shadowed(crd: &Crd) -> String {
    format!(
        "the API server serves the group {} itself; this CRD's defaults would reach built-in objects",
        crd.group()
    )
}

/// The status of a CRD whose schema is not structural, or cannot be read at all.
pub(in crate::controller) fn unreadable(findings: &SchemaFindings) -> CrdStatus {
    let message = "the API server applies no defaults to the objects of a CRD whose schema is not structural";
    crd_status(findings, Some(false), Reason::NonStructural, message.to_owned())
}

/// The status while the schema settles.
pub(in crate::controller) fn settling(
    findings: &SchemaFindings,
    pause: Option<&Pause>,
    missing: Option<&MissingPermissions>,
    until: Timestamp,
) -> CrdStatus {
    let mut message = format!("the schema changed; writing starts at {until:.0}");
    if let Some(missing) = missing {
        message.push_str(&format!("; {}", forbidden(missing)));
    }
    if let Some(pause) = pause {
        message.push_str(&format!("; {}", paused(pause)));
    }
    crd_status(findings, Some(false), Reason::Settling, message)
}

/// The status while a pass is under way, or has just been paused. `verified` is the number of objects that were re-checked.
pub(in crate::controller) fn in_progress(
    findings: &SchemaFindings,
    pause: Option<&Pause>,
    tally: &Tally,
    verified: Option<u64>,
) -> CrdStatus {
    let counts = tally.counts();
    let mut message = match counts.objects {
        0 => "scanning objects".to_owned(),
        count => format!("{} processed, {} written", objects(count), counts.written),
    };
    if let Some(verified) = verified {
        message.push_str(&format!("; {verified} re-checked"));
    }
    match pause {
        // What is due is not known yet.
        Some(pause) => {
            let persisted = (counts.due + counts.written > 0).then_some(false);
            crd_status(findings, persisted, Reason::Paused, format!("{}; {message}", paused(pause)))
        }
        None => crd_status(findings, Some(false), Reason::InProgress, message),
    }
}

/// What is to be done about permissions that are missing.
pub(in crate::controller) fn forbidden(missing: &MissingPermissions) -> String {
    format!("{MISSING_PERMISSION}; add this rule to Etch's ClusterRole: {missing}")
}

/// Who has paused writes, and how.
fn paused(pause: &Pause) -> String {
    format!("writes are paused by {pause}")
}

/// The status after every object was processed.
pub(in crate::controller) fn of(findings: &SchemaFindings, settings: &Settings, tally: &Tally) -> CrdStatus {
    let counts = tally.counts();
    // An audit writes nothing anyhow.
    let pause = settings.pause.as_ref().filter(|_| settings.mode == Mode::Persist).map(paused);
    let rejected = tally.problems().filter_map(|(identity, state)| with_fields(identity, state));
    let rejected: Vec<String> = rejected.collect();
    let stored = counts.written + counts.already_stored;
    let mut sentences = vec![stored_of(stored, counts.objects)];
    if counts.due > 0 {
        let why = pause.as_deref().unwrap_or("the policy asks for an audit only");
        let due: Vec<String> = tally.due().map(ToString::to_string).collect();
        sentences.push(list(&due, &format!("{} would be written, but {why}", counts.due)));
    } else {
        sentences.extend(pause.clone());
    }
    if counts.rejected > 0 {
        sentences.push(list(&rejected, &format!("{} rejected", counts.rejected)));
    }
    let held: Vec<(Hold, String)> =
        Hold::ALL.iter().filter_map(|reason| Some((*reason, held(tally, *reason)?))).collect();
    sentences.extend(held.iter().map(|(_, sentence)| sentence.clone()));
    sentences.extend(unknown(tally));
    sentences.extend(Skip::ALL.iter().flat_map(|why| skipped(tally, *why)));
    let reason = match () {
        // Held and rejected objects wait for its end too.
        () if pause.is_some() => Reason::Paused,
        () if counts.rejected > 0 => Reason::ObjectsRejected,
        // Of more objects than are remembered, some are held for whatever reason.
        () if counts.held > 0 => held.first().map_or(Reason::HiddenFields, |(hold, _)| held_reason(*hold)),
        () if counts.unknown > 0 => Reason::InProgress,
        () if settings.mode == Mode::Audit || counts.due > 0 => Reason::AuditOnly,
        () => Reason::AllPersisted,
    };
    let persisted = match reason {
        Reason::AllPersisted => Some(true),
        Reason::AuditOnly if counts.due == 0 => None,
        Reason::Paused if counts.due + counts.rejected + counts.held + counts.unknown == 0 => None,
        _ => Some(false),
    };
    CrdStatus {
        breaking_defaults: places(tally, |held| {
            held.reason == Hold::InvalidDefaults && !held.broken.is_empty()
        }),
        ..crd_status(findings, persisted, reason, sentences.join("; "))
    }
}

/// The status while changes of the objects are not noticed, by what is known of them from before.
pub(in crate::controller) fn watch_failing(known: CrdStatus, failure: &str) -> CrdStatus {
    let message = format!("{failure}; before that: {}", known.message);
    CrdStatus { persisted: None, reason: Reason::WatchFailing, message, ..known }
}

/// The reason of a CRD for objects that are held.
fn held_reason(hold: Hold) -> Reason {
    match hold {
        Hold::HiddenFields => Reason::HiddenFields,
        Hold::Misfit => Reason::Misfit,
        Hold::InvalidDefaults => Reason::InvalidDefaults,
    }
}

/// The objects that are held for one reason, with the first fields; none where none is.
fn held(tally: &Tally, reason: Hold) -> Option<String> {
    let all: Vec<(&Identity, &Held)> = tally.problems().filter_map(held_of).collect();
    let names: Vec<String> = all
        .iter()
        .filter(|(_, held)| held.reason == reason)
        .map(|(identity, _)| identity.to_string())
        .collect();
    if names.is_empty() {
        return None;
    }
    // More may be held than are remembered; where all that are have one reason, so may the others.
    let number = if names.len() == all.len() { tally.counts().held } else { names.len() as u64 };
    let places = few_places(&places(tally, |held| held.reason == reason));
    let why = match reason {
        Hold::HiddenFields => {
            format!("managedFields (or last-applied) name fields that the schema no longer knows: {places}")
        }
        Hold::Misfit => {
            format!("values of another type than the schema's, or items without a key, at {places}")
        }
        Hold::InvalidDefaults => {
            let them = if number == 1 { "it" } else { "them" };
            format!("the defaults at {places} would make {them} invalid")
        }
    };
    Some(format!("{number} held: {why} ({})", first(&names, number)))
}

fn held_of<'a>((identity, state): (&'a Identity, &'a ObjectState)) -> Option<(&'a Identity, &'a Held)> {
    match state {
        ObjectState::Held(held) => Some((identity, held)),
        ObjectState::Stored
        | ObjectState::AlreadyStored
        | ObjectState::Written { .. }
        | ObjectState::Skipped(_)
        | ObjectState::Gone
        | ObjectState::Rejected(_)
        | ObjectState::Due
        | ObjectState::Unknown => None,
    }
}

/// The objects that changed and have not been processed since; none where there are none.
fn unknown(tally: &Tally) -> Option<String> {
    let number = tally.counts().unknown;
    let names = tally.problems().filter(|(_, state)| state.kind() == StateKind::Unknown);
    let names: Vec<String> = names.map(|(identity, _)| identity.to_string()).collect();
    let their = if number == 1 { "its" } else { "their" };
    let named = first(&names, number);
    (number > 0).then(|| format!("{number} not processed since {their} last change; retrying ({named})"))
}

/// The objects that are skipped for one reason: those that may lack a default, and the others.
fn skipped(tally: &Tally, why: Skip) -> Vec<String> {
    let counts = tally.counts();
    let (count, what) = match why {
        Skip::Ignored => (counts.ignored, "ignored by annotation"),
        Skip::Terminating => (counts.terminating, "being deleted"),
    };
    let lacking = tally.skipped().lacking_for(why);
    let mut sentences = Vec::new();
    if lacking > 0 {
        let named = tally.skipped().named(why).filter(|(_, skipped)| skipped.lacks);
        let named: Vec<String> = named.map(|(identity, _)| identity.to_string()).collect();
        let named = first(&named, lacking);
        sentences.push(format!("{lacking} {what}, not stored as far as is known ({named})"));
    }
    if count > lacking {
        sentences.push(format!("{} {what}, lacking no default", count - lacking));
    }
    sentences
}

/// How many objects store their defaults.
fn stored_of(stored: u64, all: u64) -> String {
    let verb = if stored == 1 || all == 1 { "stores its defaults" } else { "store their defaults" };
    format!("{stored} of {} {verb}", objects(all))
}

/// A number of objects.
fn objects(count: u64) -> String {
    format!("{count} {}", if count == 1 { "object" } else { "objects" })
}

/// An object that was rejected, with the first fields that the rejection is about.
fn with_fields(identity: &Identity, state: &ObjectState) -> Option<String> {
    let ObjectState::Rejected(rejection) = state else { return None };
    Some(match (rejection.kind, &rejection.fields[..]) {
        (RejectionKind::Mutated, _) => format!("{identity} (admission changes it on each write)"),
        (RejectionKind::Forbidden, _) => format!("{identity} (forbidden)"),
        (_, []) => identity.to_string(),
        (_, fields) => format!("{identity} ({})", few_places(fields)),
    })
}

/// The first few of them.
fn few_places(places: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = if places.len() > SHOWN { " and more" } else { "" };
    format!("{}{more}", places[..places.len().min(SHOWN)].join(", "))
}

/// The places in the schema that objects are held for, where `is_wanted`.
fn places(tally: &Tally, is_wanted: impl Fn(&Held) -> bool) -> Vec<String> {
    let held = tally.problems().filter_map(held_of).filter(|(_, held)| is_wanted(held));
    let held = held.map(|(_, held)| &held.paths);
    let places: BTreeSet<String> = held.flatten().map(|path| path.to_schema().to_string()).collect();
    places.into_iter().collect()
}

/// What is wrong with the CRD itself, and this about its objects.
pub(in crate::controller) fn crd_status(
    findings: &SchemaFindings,
    persisted: Option<bool>,
    reason: Reason,
    message: String,
) -> CrdStatus {
    CrdStatus {
        non_structural: findings.non_structural.clone(),
        invalid_defaults: findings.invalid_defaults.clone(),
        breaking_defaults: Vec::new(),
        persisted,
        reason,
        message,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::object_state::Skipped;
    use crate::domain::plan::Terms;

    fn status(states: Vec<(&str, ObjectState)>) -> (Option<bool>, String) {
        let mut tally = Tally::default();
        for (name, state) in states {
            let (namespace, name) = (Some("default".to_owned()), name.to_owned());
            tally.add(Identity { namespace, uid: name.clone(), name }, state, &[]);
        }
        let crd_status = of(&SchemaFindings::default(), &settings(), &tally);
        (crd_status.persisted, format!("{}: {}", crd_status.reason.as_str(), crd_status.message))
    }

    fn settings() -> Settings {
        Settings {
            policy: "default".to_owned(),
            mode: Mode::Persist,
            terms: Terms::default(),
            settle: Duration::ZERO,
            max_writes_per_second: None,
            stop_after_rejected: None,
            pause: None,
            follow: Vec::new(),
        }
    }

    #[test]
    fn nothing_is_read_for_a_crd_in_a_group_of_the_servers_own() {
        let schema = serde_json::json!({ "type": "object", "properties": { "spec": {
            "type": "object", "properties": { "replicas": { "type": "integer", "default": 1 } } } } });
        let crd = |group: &str| {
            let document = serde_json::json!({
                "metadata": { "name": format!("deployments.{group}") },
                "spec": { "group": group, "names": { "kind": "Deployment", "plural": "deployments" }, "versions": [
                    { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] },
            });
            Crd::read(&document.into()).expect("a CRD")
        };
        let (settings, findings) = (settings(), SchemaFindings::default());
        let refused = without_objects(&crd("apps"), &settings, &findings).expect("a status");
        assert_eq!((refused.persisted, refused.reason), (Some(false), Reason::NotServed));
        assert!(refused.message.contains("the group apps itself"), "{}", refused.message);
        assert!(without_objects(&crd("apps.example.com"), &settings, &findings).is_none());
    }

    fn skipped(why: Skip, lacks: bool) -> ObjectState {
        ObjectState::Skipped(Skipped { why, lacks })
    }

    #[test]
    fn what_managed_fields_only_suggest_is_said_as_a_suggestion_with_the_fields() {
        let held = |paths: &[&str]| {
            let paths = paths.iter().map(|path| path.parse().expect("a path"));
            ObjectState::Held(Held::new(Hold::HiddenFields, paths.collect()))
        };
        assert_eq!(
            status(vec![("a", held(&[".spec.legacy"])), ("b", held(&[".spec.legacy", ".spec.old"])), ("c", ObjectState::Stored)]),
            (
                Some(false),
                "HiddenFields: 1 of 3 objects stores its defaults; 2 held: managedFields (or last-applied) name fields that \
                 the schema no longer knows: .spec.legacy, .spec.old (default/a, default/b)"
                    .to_owned()
            )
        );
    }

    #[test]
    fn who_is_ignored_or_being_deleted_is_named_and_not_said_to_be_stored() {
        let ignored = || skipped(Skip::Ignored, true);
        assert_eq!(
            status(vec![("a", ignored()), ("b", ignored()), ("c", ObjectState::Stored)]),
            (
                Some(true),
                "AllPersisted: 1 of 3 objects stores its defaults; 2 ignored by annotation, not stored as far as is known \
                 (default/a, default/b)"
                    .to_owned()
            )
        );
        assert_eq!(
            status(vec![("a", skipped(Skip::Terminating, true)), ("b", skipped(Skip::Ignored, false))]).1,
            "AllPersisted: 0 of 2 objects store their defaults; 1 ignored by annotation, lacking no default; 1 being deleted, \
             not stored as far as is known (default/a)"
        );
        let names: Vec<String> = (0..9).map(|index| format!("o{index}")).collect();
        let many = status(names.iter().map(|name| (name.as_str(), ignored())).collect()).1;
        assert!(
            many.ends_with("(default/o0, default/o1, default/o2, default/o3, default/o4 and 4 more)"),
            "{many}"
        );
    }
}
