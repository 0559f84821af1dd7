//! For one schema, the findings about existing objects, and the outcomes for their defaults.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ExistingObjects, ObjectName, ObjectTrouble, PersistedDefaults, SETTLING};
use crate::existing::Existing;
use etch_core::condition::first_of;
use etch_core::crd::Resource;
use etch_core::object::Identity;
use etch_core::object_machine::Kept;
use etch_core::plan::Withheld;
use kube_structural_schema::json::DEPTH;

/// How many objects are named of each kind.
const NAMED: usize = 10;

/// Every object holds its defaults.
pub const ALL_PERSISTED: &str = "AllPersisted";
/// Not all objects were seen, or the outcome for some of them is unknown.
pub const INCOMPLETE: &str = "Incomplete";
/// A permission is missing.
pub const FORBIDDEN: &str = "Forbidden";
/// A write made the API server change what others own.
pub const OWNERS_LOST: &str = "OwnersLost";
/// A policy keeps objects from being written.
pub const WITHHELD: [&str; 3] = ["Paused", "AuditOnly", "Ignored"];

/// Why nothing more is written to the objects of a resource: one word, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The word.
    pub reason: &'static str,
    /// The sentence.
    pub message: String,
}

/// What was found of the objects of one schema.
#[derive(Debug, Default)]
pub struct Tally {
    objects: u64,
    denied: First<ObjectName>,
    defaulted: First<ObjectName>,
    /// Why some were not seen.
    unseen: Vec<String>,
    /// Those that are nested too deeply to be checked.
    too_deep: First<String>,
    /// The outcomes for defaults, if they are to be stored.
    persist: Option<Persist>,
}

#[derive(Debug, Default)]
struct Persist {
    /// Whether they are stored by this check.
    is_storing: bool,
    held: First<ObjectTrouble>,
    rejected: First<ObjectTrouble>,
    unanswered: First<ObjectTrouble>,
    ignored: First<String>,
    not_selected: u64,
    unknown: u64,
    /// Why nothing more is written.
    stop: Option<Stop>,
    /// Why nothing more is written to the objects of a resource: that is no reason for those of another.
    stopped: BTreeMap<Resource, Stop>,
}

/// A count, and the first few.
#[derive(Debug)]
struct First<T> {
    count: u64,
    first: Vec<T>,
}

impl<T> Default for First<T> {
    fn default() -> Self {
        Self { count: 0, first: Vec::new() }
    }
}

impl<T> First<T> {
    fn add(&mut self, make: impl FnOnce() -> T) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(make());
        }
    }
}

impl Tally {
    /// Of a schema that requests that defaults be stored (`persist`), by a check that does so (`is_storing`);
    /// it does not if API servers send requests for some objects only.
    pub fn new(persist: bool, is_storing: bool, is_restricted: bool) -> Self {
        let stop = is_restricted.then(|| Stop {
            reason: "NotSupported",
            message: "Etch cannot evaluate webhooks.matchConditions and webhooks.namespaceSelector for \
                existing objects, so it stores nothing"
                .to_owned(),
        });
        let persist = persist.then(|| Persist { is_storing, stop, ..Persist::default() });
        Self { persist, ..Self::default() }
    }

    /// Whether defaults are to be stored now in the objects of a resource.
    pub fn stores(&self, resource: &Resource) -> bool {
        self.persist.as_ref().is_some_and(|persist| {
            persist.is_storing && persist.stop.is_none() && !persist.stopped.contains_key(resource)
        })
    }

    /// Whether a policy keeps some objects from being written.
    pub fn is_withheld(&self) -> bool {
        self.persist.as_ref().is_some_and(|persist| {
            let mut stops = persist.stop.iter().chain(persist.stopped.values());
            persist.not_selected > 0 || stops.any(|stop| WITHHELD.contains(&stop.reason))
        })
    }

    /// Records that some objects were not seen.
    pub fn unseen(&mut self, why: &str) {
        self.unseen.push(why.to_owned());
    }

    /// Handles an object that is nested too deeply to be checked.
    pub fn too_deep(&mut self, resource: &Resource, object: &Identity) {
        self.too_deep.add(|| format!("{resource} {object}"));
    }

    /// Handles an object, and the outcome for its defaults, if they were to be stored.
    pub fn add(
        &mut self,
        resource: &Resource,
        name: &ObjectName,
        found: Existing,
        kept: Option<Result<Kept, Stop>>,
    ) {
        let Existing { is_denied, gains_defaults } = found;
        if matches!(kept, Some(Ok(Kept::Gone))) {
            return;
        }
        self.objects += 1;
        if is_denied {
            self.denied.add(|| name.clone());
        }
        let is_stored = matches!(kept, Some(Ok(Kept::Stored)));
        if gains_defaults && !is_stored {
            self.defaulted.add(|| name.clone());
        }
        let (Some(persist), Some(kept)) = (&mut self.persist, kept) else { return };
        let trouble = |reason: &str, message: &str| ObjectTrouble {
            object: name.clone(),
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        match kept {
            Ok(Kept::Stored | Kept::Gone) => {}
            Ok(Kept::Ignored) => persist.ignored.add(|| written(name)),
            Ok(Kept::NotSelected) => persist.not_selected += 1,
            Ok(Kept::Held(why)) => persist.held.add(|| trouble(why.as_str(), sentence(why))),
            Ok(Kept::Breaks(rule)) => {
                let why = Withheld::InvalidDefaults;
                persist.held.add(|| trouble(why.as_str(), &format!("{}: {rule}", sentence(why))));
            }
            Ok(Kept::Rejected(message)) => persist.rejected.add(|| trouble("Rejected", &message)),
            Ok(Kept::Unanswered(message)) => persist.unanswered.add(|| trouble("Unanswered", &message)),
            Ok(Kept::Unknown) => persist.unknown += 1,
            Err(stop) if stop.reason == OWNERS_LOST => persist.stop = Some(stop),
            Err(stop) => drop(persist.stopped.insert(resource.clone(), stop)),
        }
    }

    /// The findings in the form of the status.
    pub fn found(self, generation: i64, now: Timestamp) -> ExistingObjects {
        let Self { objects, denied, defaulted, mut unseen, too_deep, persist } = self;
        if too_deep.count > 0 {
            let kind = format!("{} nested more than {DEPTH} levels deep", too_deep.count);
            unseen.push(first_of(&too_deep.first, too_deep.count, &kind));
        }
        let stored = objects - defaulted.count;
        let persisted = persist.map(|persist| persist.found(objects, stored, &unseen));
        ExistingObjects {
            observed_generation: generation,
            last_looked: Some(Time(now)),
            complete: unseen.is_empty(),
            message: (!unseen.is_empty()).then(|| unseen.join("; ")),
            objects,
            denied: denied.count,
            first_denied: denied.first,
            defaulted: defaulted.count,
            first_defaulted: defaulted.first,
            persisted,
        }
    }
}

impl Persist {
    fn found(self, objects: u64, stored: u64, unseen: &[String]) -> PersistedDefaults {
        let Self { is_storing, held, rejected, unanswered, ignored, not_selected, unknown, stop, stopped } =
            self;
        let troubled = |what: &str, all: &First<ObjectTrouble>| {
            let names = all.first.iter().take(3).map(|trouble| written(&trouble.object));
            let names = names.collect::<Vec<_>>().join(", ");
            let why = all.first.first().map_or("", |first| &*first.message);
            format!("{} {what} ({names}), the first because: {why}", all.count)
        };
        // The first one gives the reason, and the message lists all.
        let stops = stop.into_iter().chain(stopped.into_values());
        let mut found: Vec<(&str, String)> = stops.map(|stop| (stop.reason, stop.message)).collect();
        found.dedup();
        if found.is_empty() && stored < objects && !is_storing {
            found.push((SETTLING, "the others follow some seconds after the last change".to_owned()));
        }
        if unknown > 0 {
            found.push((INCOMPLETE, format!("{unknown} unknown")));
        }
        if unanswered.count > 0 {
            found.push((INCOMPLETE, troubled("not written for want of an answer", &unanswered)));
        }
        if rejected.count > 0 {
            found.push(("ObjectsRejected", troubled("rejected", &rejected)));
        }
        if held.count > 0 {
            found.push(("ObjectsHeld", troubled("held", &held)));
        }
        found.extend(unseen.iter().map(|why| (INCOMPLETE, format!("not checked: {why}"))));
        let reason = found.first().map_or(ALL_PERSISTED, |(reason, _)| *reason);
        let counted = format!("{stored} of {objects} objects hold their defaults");
        // These need not be stored, but they are counted.
        let mut skipped = Vec::new();
        if ignored.count > 0 {
            let kind = format!("{} ignored by annotation", ignored.count);
            skipped.push(first_of(&ignored.first, ignored.count, &kind));
        }
        if not_selected > 0 {
            skipped.push(format!("{not_selected} not selected by the DefaultsPolicy"));
        }
        let sentences = std::iter::once(counted).chain(found.iter().map(|(_, sentence)| sentence.clone()));
        let message = sentences.chain(skipped).collect::<Vec<_>>().join("; ");
        PersistedDefaults {
            reason: reason.to_owned(),
            message,
            stored,
            held: held.count,
            first_held: held.first,
            rejected: rejected.count,
            first_rejected: rejected.first,
        }
    }
}

/// An object as conditions name it.
fn written(ObjectName { namespace, name, .. }: &ObjectName) -> String {
    namespace.as_ref().map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"))
}

/// Why an object is held.
fn sentence(why: Withheld) -> &'static str {
    match why {
        Withheld::HiddenFields => {
            "etcd may hold fields that the CRD's schema no longer has, and a write would destroy them"
        }
        Withheld::Misfit => {
            "a field has another type than the CRD's schema, so a write would clear managedFields"
        }
        Withheld::Owned => {
            "a manager owns the value that a default would replace, or the whole list that would contain it"
        }
        Withheld::InvalidDefaults => {
            "with its defaults the object would break a rule that it does not break without them"
        }
        Withheld::Dependent => {
            "a default depends on a default of another EmbeddedSchema, which the object does not hold"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_is_tried_again_and_what_was_rejected_is_named_beside_it() {
        let resource =
            Resource { group: "example.com".into(), version: "v1".into(), plural: "things".into() };
        let mut tally = Tally::new(true, true, false);
        let gains = Existing { gains_defaults: true, ..Existing::default() };
        let unanswered = || Kept::Unanswered("the API server could not call webhook w".to_owned());
        for (name, kept) in [
            ("a", unanswered()),
            ("b", Kept::Rejected("webhook v refuses it".to_owned())),
            ("c", unanswered()),
            ("d", Kept::Stored),
        ] {
            let name = ObjectName { name: name.to_owned(), ..ObjectName::default() };
            tally.add(&resource, &name, gains, Some(Ok(kept)));
        }
        let found = tally.found(1, Timestamp::UNIX_EPOCH).persisted.unwrap_or_default();
        assert_eq!((&*found.reason, found.stored, found.rejected), (INCOMPLETE, 1, 1));
        assert_eq!(
            found.message,
            "1 of 4 objects hold their defaults; 2 not written for want of an answer (a, c), the first \
             because: the API server could not call webhook w; 1 rejected (b), the first because: webhook v \
             refuses it"
        );
    }
}
