//! The sentences about objects that are held, rejected, skipped or not processed: a number, and the first of
//! them by name. They name no value, and only a few objects.

use std::collections::BTreeSet;

use crate::condition::{first, first_of};
use crate::object::Identity;
use crate::object_state::{ObjectState, StateKind};
use crate::plan::{Held, Hold, RejectionKind, Skip};
use crate::report::tally::Tally;
use kube_structural_schema::json::DEPTH;

/// Whether a sentence names the first few objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    Objects,
    Nothing,
}

impl Naming {
    /// A count with what it is of, and the first of the objects.
    pub(super) fn list(self, objects: &[String], count: u64, kind: &str) -> String {
        let sentence = format!("{count} {kind}");
        match self {
            Self::Objects => first_of(objects, count, &sentence),
            Self::Nothing => sentence,
        }
    }

    /// A sentence, and the first of `count` objects in brackets.
    fn bracketed(self, sentence: String, objects: &[String], count: u64) -> String {
        match self {
            Self::Objects => format!("{sentence} ({})", first(objects, count)),
            Self::Nothing => sentence,
        }
    }
}

/// The objects that are held for one reason, with the first fields; `None` if there are none.
pub(super) fn held(tally: &Tally, reason: Hold, naming: Naming) -> Option<String> {
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
            format!("a write would destroy fields that etcd may still hold and reads do not show: {places}")
        }
        Hold::Misfit => {
            format!("{places}: a value has another type than the schema, or a list item has no key")
        }
        Hold::InvalidDefaults => {
            let them = if number == 1 { "it" } else { "them" };
            format!("the defaults at {places} would make {them} invalid")
        }
    };
    Some(naming.bracketed(format!("{number} held: {why}"), &names, number))
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
        | ObjectState::Unproved
        | ObjectState::Unknown => None,
    }
}

/// The objects that changed and have not been processed since; `None` if there are none.
pub(super) fn unknown(tally: &Tally, naming: Naming) -> Option<String> {
    let number = tally.counts().unknown;
    let names = tally.problems().filter(|(_, state)| state.kind() == StateKind::Unknown);
    let names: Vec<String> = names.map(|(identity, _)| identity.to_string()).collect();
    let their = if number == 1 { "its" } else { "their" };
    let sentence = format!("{number} not processed since {their} last change; retrying");
    (number > 0).then(|| naming.bracketed(sentence, &names, number))
}

/// The objects that are skipped for one reason: those that may lack a default, and the others.
pub(super) fn skipped(tally: &Tally, why: Skip, naming: Naming) -> Vec<String> {
    let count = tally.skipped().count(why);
    let what = match why {
        // Nothing is known of these.
        Skip::NotSelected => return Vec::new(),
        Skip::Ignored => "ignored by annotation".to_owned(),
        Skip::IgnoredUnclear => {
            "ignored by annotation (whose value is neither \"true\" nor \"false\")".to_owned()
        }
        Skip::Terminating => "being deleted".to_owned(),
        Skip::TooDeep => format!("left alone (nested more than {DEPTH} levels deep)"),
    };
    let lacking = tally.skipped().lacking_for(why);
    let mut sentences = Vec::new();
    if lacking > 0 {
        let named = tally.skipped().named(why).filter(|(_, skipped)| skipped.lacks);
        let named: Vec<String> = named.map(|(identity, _)| identity.to_string()).collect();
        let their = if lacking == 1 { "its" } else { "their" };
        let sentence = format!("{lacking} {what}, etcd may lack {their} defaults");
        sentences.push(naming.bracketed(sentence, &named, lacking));
    }
    if count > lacking {
        sentences.push(format!("{} {what}, no default missing", count - lacking));
    }
    sentences
}

/// An object that was rejected, with the first fields that the rejection is about.
pub(super) fn with_fields(identity: &Identity, state: &ObjectState) -> Option<String> {
    let ObjectState::Rejected(rejection) = state else { return None };
    Some(match (rejection.kind, &rejection.fields[..]) {
        (RejectionKind::Mutated, _) => format!("{identity} (admission changes it on each write)"),
        (RejectionKind::Forbidden, _) => format!("{identity} (forbidden)"),
        (_, []) => identity.to_string(),
        (_, fields) => format!("{identity} ({})", few_places(fields)),
    })
}

/// Why the first object was rejected, in the server's words; `None` if objects are not named, since the words
/// may name one.
pub(super) fn first_rejection(tally: &Tally, naming: Naming) -> Option<String> {
    let reason = tally.problems().find_map(|(_, state)| match state {
        ObjectState::Rejected(rejection) if !rejection.message.is_empty() => Some(&rejection.message),
        _ => None,
    })?;
    (naming == Naming::Objects).then(|| format!("the reason: {}", in_room(reason)))
}

/// A text, cut where it is long.
fn in_room(text: &str) -> String {
    const ROOM: usize = 300;
    match text.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The first few of them.
fn few_places(places: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = if places.len() > SHOWN { " and more" } else { "" };
    format!("{}{more}", places[..places.len().min(SHOWN)].join(", "))
}

/// The places in the schema that objects are held for, where `is_wanted`.
pub(super) fn places(tally: &Tally, is_wanted: impl Fn(&Held) -> bool) -> Vec<String> {
    let held = tally.problems().filter_map(held_of).filter(|(_, held)| is_wanted(held));
    let held = held.map(|(_, held)| &held.paths);
    let places: BTreeSet<String> = held.flatten().map(|path| path.to_schema().to_string()).collect();
    places.into_iter().collect()
}
