//! What an upgrade of a CRD will do: to its defaults and fields, and to the objects that are there.
//! It must not say that a value is stored or not stored beyond what the object's owners tell.

mod difference;
mod kind;
mod schemas;
mod stored;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde_json::Value;

use crate::domain::crd::Crd;
use crate::domain::decode::{Decoder, Undecodable, View};
use crate::domain::finding::Finding;
use crate::domain::json::{Json, copy};
use crate::domain::object::Object;
use crate::domain::path::Path;
use crate::domain::plan::{Change, Held, Prediction, Record, Terms, has_gap, predict};
use crate::domain::validate::Validator;
use difference::{Difference, difference};

pub use kind::Kind;
pub use schemas::{Changed, SchemaChanges, compare, compare_crds};
pub use stored::presumed;
pub use tally::{Counted, Counts, EffectKind, Place, Tally, by_effect};

/// An upgrade from one state of a CRD to another, made ready for looking at many objects.
#[derive(Debug)]
pub struct Upgrade<'a> {
    old: &'a Crd,
    new: &'a Crd,
    old_decoder: Decoder<'a>,
    decoder: Decoder<'a>,
    before: Validator<'a>,
    after: Validator<'a>,
    terms: Terms,
    changes: Vec<Change>,
    writes: bool,
}

/// What an upgrade does to one object. Places are the object's own, the topmost ones, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Values that it shows afterwards and did not show before.
    pub appears: Vec<Path>,
    /// Values that are others afterwards: they were never stored, and their default is another.
    pub changes: Vec<Path>,
    /// Values that it no longer shows, and that were never stored.
    pub disappears: Vec<Path>,
    /// Values that it no longer shows and that etcd goes on holding, until the next write destroys them (facts R4, W12).
    pub hidden: Vec<Path>,
    /// Stored values that are the old default, and that Etch then moves to the new one, or removes with a default that is gone.
    pub follows: Vec<Path>,
    /// Those of `changes` and `disappears` that would stay as they are if the present defaults were stored first.
    pub protected: Vec<Path>,
    /// Whether Etch then writes the object, which destroys what is `hidden`.
    pub dropped: bool,
    /// Why Etch then holds the object.
    pub held: Option<Held>,
    /// What makes it invalid afterwards, without values.
    pub problems: Vec<Problem>,
    /// What of this happens only if etcd holds what nothing shows, or does not hold it.
    pub open: Open,
}

/// What may happen to an object: it depends on what etcd holds, and that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// The places, with what may happen there; sorted.
    pub places: Vec<(EffectKind, Path)>,
    /// What may be wrong with it.
    pub problems: Vec<Problem>,
}

impl Open {
    /// Whether everything is known.
    pub fn is_none(&self) -> bool {
        self.places.is_empty() && self.problems.is_empty()
    }

    /// Whether this is what may happen, and not what does.
    pub fn is_open(&self, effect: EffectKind, place: &Path) -> bool {
        self.places.iter().any(|(kind, open)| *kind == effect && open == place)
    }
}

/// One thing that is wrong with an object after an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It breaks the new schema. Writes that leave the part alone are let through (fact C6); others are refused, and so is
    /// its creation elsewhere.
    Invalid {
        /// The place as the API server writes it.
        field: String,
        /// The kind of violation, as the API server names it.
        kind: &'static str,
        /// Whether it breaks the old schema in the same way.
        before: bool,
    },
    /// It could not be read any more.
    Unreadable(Undecodable),
    /// It is in the terms of another version than the storage version, and a webhook would have to convert it.
    NotConverted {
        /// The version that it is in.
        version: String,
        /// The version that it would have to be in.
        storage: String,
    },
    /// Nothing is known of it: the bytes in etcd cannot be read.
    Opaque {
        /// What they are, in a word or two.
        why: String,
    },
    /// Whether it will be valid is not known: a webhook makes of it what the storage version has.
    NotJudged {
        /// The version at which etcd holds it.
        version: String,
    },
}

/// What is known of the bytes in etcd.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What etcd holds, or is taken to hold.
    pub value: Json,
    /// The version in whose terms it holds it.
    pub version: String,
}

impl Problem {
    /// Whether it was there before the upgrade.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Invalid { before: true, .. })
    }

    /// Whether it says only that nothing could be found out.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::NotConverted { .. } | Self::Opaque { .. } | Self::NotJudged { .. })
    }
}

impl Effect {
    /// What may happen where either of two things is stored. What is hidden or held, and so lost, is as in the first.
    fn or(mut self, other: Self) -> Self {
        unite(&mut self.appears, other.appears);
        unite(&mut self.changes, other.changes);
        unite(&mut self.disappears, other.disappears);
        self.protected.extend(other.protected);
        self.protected.retain(|path| self.changes.contains(path) || self.disappears.contains(path));
        self.protected.sort();
        self.protected.dedup();
        for problem in other.problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        self
    }

    /// Whether the object is the same to its readers and writers, before and after.
    pub fn is_none(&self) -> bool {
        self.appears.is_empty()
            && self.changes.is_empty()
            && self.disappears.is_empty()
            && self.follows.is_empty()
            && self.hidden.is_empty()
            && self.problems.is_empty()
    }
}

impl<'a> Upgrade<'a> {
    /// An upgrade from `old` to `new`, which are two states of one CRD, in a cluster in which nobody writes to objects.
    pub fn new(old: &'a Crd, new: &'a Crd) -> Self {
        Self {
            terms: Terms::default(),
            changes: Vec::new(),
            writes: false,
            old,
            new,
            old_decoder: Decoder::new(old),
            decoder: Decoder::new(new),
            before: Validator::new(&old.storage().schema),
            after: Validator::new(&new.storage().schema),
        }
    }

    /// The same upgrade in a cluster with a policy: what writes may do, the `changes` of defaults that come with the upgrade, and
    /// whether the operator `writes` to objects at all.
    pub fn under(self, terms: Terms, changes: Vec<Change>, writes: bool) -> Self {
        Self { terms, changes, writes, ..self }
    }

    /// What changes in the schema of the storage version.
    pub fn schemas(&self) -> SchemaChanges {
        compare_crds(Some(self.old), self.new)
    }

    /// What happens to an object as a server returned it, by what its owners say is stored; and to one that somebody wrote, as
    /// if just that were stored.
    pub fn object(&self, object: &Object) -> Effect {
        let storage = &self.old.storage().name;
        let version = version_of(object);
        let is_returned = !object.uid().is_empty();
        if is_returned && version == storage {
            return self.presumed_effect(object);
        }
        if !self.old.names_fields_alike(version) {
            let problem = Problem::NotConverted { version: version.to_owned(), storage: storage.clone() };
            return Effect { problems: vec![problem], ..Effect::default() };
        }
        let View { object: view, .. } = match self.old_decoder.view(object.json(), version) {
            Ok(view) => view,
            Err(why) => return Effect { problems: vec![Problem::Unreadable(why)], ..Effect::default() },
        };
        if is_returned {
            return self.presumed_effect(&Object::from(view));
        }
        let stored = Stored { value: object.json().clone(), version: version.to_owned() };
        self.effect(&view, &stored)
    }

    /// What happens to an object as a server returned it at the storage version, all of which is known to be stored.
    pub fn proved(&self, object: &Object) -> Effect {
        let stored = Stored { value: object.json().clone(), version: self.old.storage().name.clone() };
        self.effect(object.json(), &stored)
    }

    /// What happens to an object of which this is what etcd holds; it comes with the object as it is read before.
    ///
    /// # Errors
    /// See [`Undecodable`].
    pub fn stored(&self, value: Json) -> Result<(Object, Effect), Undecodable> {
        let version = version_of_document(&value).to_owned();
        let View { object: view, hidden: before } = self.old_decoder.view(&value, &version)?;
        let mut effect = self.effect(&view, &Stored { value, version });
        // What no reader saw before is not hidden by the upgrade.
        effect.hidden.retain(|path| !before.contains(path));
        Ok((view.into(), effect))
    }

    /// What happens to an object by whatever etcd may hold of it, together.
    fn presumed_effect(&self, object: &Object) -> Effect {
        let storage = &self.old.storage().name;
        // Stored at S, it would show all defaults of S (fact R2).
        let others = self.old.versions().iter().filter(|version| &version.name != storage);
        let version = match has_gap(object, self.old) {
            true => others.map(|version| &version.name).next_back(),
            false => None,
        };
        let first = [(version.unwrap_or(storage).as_str(), self.old.compiled())];
        // At another version, its own defaults are shown and may change.
        let elsewhere = self.old.defaults_elsewhere().filter(|_| version.is_none());
        let presumed = first.into_iter().chain(elsewhere).flat_map(|(version, defaults)| {
            let stored = presumed(object, self.old, defaults).into_iter();
            stored.map(move |value| Stored { value, version: version.to_owned() })
        });
        let mut all: Vec<Stored> = presumed.collect();
        // Etcd may hold all that is shown.
        let whole = Stored { value: object.json().clone(), version: all[0].version.clone() };
        if !all.iter().any(|stored| stored.version == whole.version && stored.value == whole.value) {
            all.push(whole);
        }
        let effects: Vec<Effect> = all.iter().map(|stored| self.effect(object.json(), stored)).collect();
        let open = open(&effects);
        let mut effects = effects.into_iter();
        let first = effects.next().unwrap_or_default();
        Effect { open, ..effects.fold(first, Effect::or) }
    }

    /// What happens to an object that is read as `view` at the old storage version, and of which etcd holds `stored`.
    pub fn effect(&self, view: &Value, stored: &Stored) -> Effect {
        let View { object: after, hidden } = match self.decoder.view(&stored.value, &stored.version) {
            Ok(view) => view,
            Err(why) => return Effect { problems: vec![Problem::Unreadable(why)], ..Effect::default() },
        };
        let Difference { appears, changes, disappears } = self.difference(view, &after);
        let disappears: Vec<Path> = disappears
            .into_iter()
            .filter(|path| !hidden.iter().any(|hidden| hidden.contains(path)))
            .collect();
        let protected = self.protected(view, &changes, &disappears);
        let problems = match self.new.names_fields_alike(&stored.version) {
            true => self.problems(view, &after),
            false => vec![Problem::NotJudged { version: stored.version.clone() }],
        };
        let effect =
            Effect { appears, changes, disappears, hidden, protected, problems, ..Effect::default() };
        match self.written(after) {
            Some(written) => Effect {
                dropped: !effect.hidden.is_empty() && written.is_written(),
                held: written.held().cloned(),
                follows: written.moved,
                ..effect
            },
            None => effect,
        }
    }

    /// What the operator does with an object after the upgrade; none where it writes to none.
    fn written(&self, after: Json) -> Option<Prediction> {
        // The schema of a CRD that keeps unknown fields is not structural, and the operator writes none of its objects.
        let may_write = self.writes && !self.new.preserves_unknown_fields();
        let has_work = self.new.compiled().has_defaults() || !self.changes.is_empty();
        let written = || predict(&after.into(), self.new, &self.terms, &Record::default(), &self.changes);
        (may_write && has_work).then(written)
    }

    fn difference(&self, before: &Value, after: &Value) -> Difference {
        difference(before, after, &self.old.storage().schema, &self.new.storage().schema)
    }

    /// Of these places, those whose value stays if etcd holds all that is shown now.
    fn protected(&self, view: &Value, changes: &[Path], disappears: &[Path]) -> Vec<Path> {
        if changes.is_empty() && disappears.is_empty() {
            return Vec::new();
        }
        let Ok(View { object: after, hidden }) = self.decoder.view(view, &self.old.storage().name) else {
            return Vec::new();
        };
        let left = self.difference(view, &after);
        let follows = self.written(after).map(|written| written.moved).unwrap_or_default();
        let is_lost = |path: &&Path| {
            let mut lost = left.changes.iter().chain(&left.disappears).chain(&hidden).chain(&follows);
            !lost.any(|lost| lost.contains(path) || path.contains(lost))
        };
        let mut protected: Vec<Path> = changes.iter().chain(disappears).filter(is_lost).cloned().collect();
        protected.sort();
        protected
    }

    /// What is wrong with an object as the storage versions have it, and would be in any write of it: with the defaults that
    /// no reader sees while it is stored at another version (fact R2).
    fn problems(&self, before: &Value, after: &Value) -> Vec<Problem> {
        let found = self.after.object(&written(after, self.new));
        if found.is_empty() {
            return Vec::new();
        }
        let before = self.before.object(&written(before, self.old));
        let mut problems: Vec<Problem> = Vec::new();
        for finding in found.iter() {
            let same = |other: &Finding| other.field == finding.field && other.kind == finding.kind;
            let problem = Problem::Invalid {
                field: finding.field.clone(),
                kind: finding.kind.as_str(),
                before: before.iter().any(same),
            };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }
}

/// What happens in some of several cases, and not in all.
fn open(cases: &[Effect]) -> Open {
    let of_cases: Vec<HashSet<(EffectKind, &Path)>> = cases
        .iter()
        .map(|case| {
            by_effect(case)
                .into_iter()
                .flat_map(|(kind, places)| places.iter().map(move |place| (kind, place)))
        })
        .map(Iterator::collect)
        .collect();
    // A place is sure where it, or what it is in, is one of every case.
    let is_sure = |kind: EffectKind, place: &Path| {
        of_cases.iter().all(|of_case| {
            let mut place = place.clone();
            of_case.contains(&(kind, &place))
                || std::iter::from_fn(|| place.pop().map(|_| of_case.contains(&(kind, &place)))).any(|is| is)
        })
    };
    let mut found = Open::default();
    for case in cases {
        for (kind, places) in by_effect(case) {
            let open = places.iter().filter(|place| !is_sure(kind, place));
            found.places.extend(open.map(|place| (kind, place.clone())));
        }
        for problem in &case.problems {
            let is_sure = cases.iter().all(|case| case.problems.contains(problem));
            if !is_sure && !found.problems.contains(problem) {
                found.problems.push(problem.clone());
            }
        }
    }
    found.places.sort();
    found.places.dedup();
    found
}

/// The topmost places of both, in order.
fn unite(places: &mut Vec<Path>, others: Vec<Path>) {
    places.extend(others);
    places.sort();
    // A place comes before what is in it, with nothing else between them.
    places.dedup_by(|next, place| place.contains(next));
}

/// An object as a write at the storage version would leave it.
fn written(view: &Value, crd: &Crd) -> Json {
    let mut object = Json::from(copy(view));
    crd.compiled().fill(&mut object);
    object
}

/// The version in whose terms an object is written.
fn version_of(object: &Object) -> &str {
    version_of_document(object.json())
}

fn version_of_document(document: &Value) -> &str {
    let group_version = document.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    group_version.rsplit('/').next().unwrap_or_default()
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid { field, kind, before: false } => {
                write!(
                    f,
                    "{field}: {kind}; writes that change it are rejected, and so is creating the object again"
                )
            }
            Self::Invalid { field, kind, before: true } => {
                write!(f, "{field}: {kind}, under the old schema too")
            }
            Self::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            Self::NotConverted { version, storage } => {
                write!(
                    f,
                    "not checked: the object is at {version}, and a webhook converts it; provide it at {storage}"
                )
            }
            Self::Opaque { why } => write!(f, "not checked: its value in etcd is {why}"),
            Self::NotJudged { version } => {
                write!(f, "not known to be valid: it is stored at {version}, and a webhook converts it")
            }
        }
    }
}
