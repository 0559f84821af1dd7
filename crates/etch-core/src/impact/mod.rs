//! What a CRD upgrade changes: its defaults and fields, and the existing objects.

mod effect;
mod elsewhere;
mod kind;
mod known;
mod removed;
mod schemas;
mod stored;
mod tally;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use crate::crd::{Crd, Version};
use crate::decode::{Decoder, Undecodable, View};
use crate::difference::{Difference, difference, place};
use crate::object::{Object, version_of};
use crate::plan::{
    Broken, Change, FormerDefault, HiddenEvidence, Prediction, Record, StoredAt, Terms, has_gap, predict,
    stored_at,
};
use crate::report::carried::has_all_of;
use effect::open;
use known::known;
use kube_crd_validation::Validator;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Trail};

pub use effect::{Effect, EffectKind, Open, Problem, by_effect};
pub use kind::Kind;
pub use schemas::{Changed, SchemaChanges, compare, compare_crds, compare_other_defaults};
pub use stored::{presumed, proved};
use stored::{with_nulls, without_unproved};
pub use tally::{Counted, Counts, Place, Tally};

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
    /// What is known of the objects when the operator meets the new schema.
    record: Record,
    /// Whether what is proved under the old schema is proved under the new one as well.
    is_carried: bool,
    /// The problems of an object that may be stored at another version.
    elsewhere: Vec<Problem>,
    /// The versions that do not show all fields which the upgrade removes.
    partial: Vec<&'a str>,
}

/// What is stored in etcd, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// What etcd holds, or is taken to hold.
    pub value: Json,
    /// The version at which it holds it.
    pub version: String,
}

impl<'a> Upgrade<'a> {
    /// An upgrade from `old` to `new`, which are two states of one CRD, in a cluster in which no client
    /// writes to objects.
    pub fn new(old: &'a Crd, new: &'a Crd) -> Self {
        Self {
            terms: Terms::default(),
            changes: Vec::new(),
            writes: false,
            record: Record::default(),
            is_carried: old.digest() == new.digest() && old.storage().name == new.storage().name,
            elsewhere: Problem::if_stored_elsewhere(old, new),
            partial: partial(old, new),
            old,
            new,
            old_decoder: Decoder::new(old),
            decoder: Decoder::new(new),
            before: Validator::new(&old.storage().schema),
            after: Validator::new(&new.storage().schema),
        }
    }

    /// The CRD before and after.
    pub(crate) fn crds(&self) -> (&'a Crd, &'a Crd) {
        (self.old, self.new)
    }

    /// The upgrade in a cluster with a policy: what writes may do, the `changes` of defaults that come with
    /// the upgrade, and whether the operator `writes` to objects. `former` are the fields that have no
    /// default any more, as the operator remembers them.
    pub fn under(self, terms: Terms, changes: Vec<Change>, former: Vec<FormerDefault>, writes: bool) -> Self {
        let hidden = Arc::new(HiddenEvidence { former, ..HiddenEvidence::default() });
        let is_carried = self.is_carried || has_all_of(self.old, self.new);
        Self { terms, changes, writes, is_carried, record: Record { hidden, ..Record::default() }, ..self }
    }

    /// What changes in the schema of the storage version.
    pub fn schemas(&self) -> SchemaChanges {
        compare_crds(Some(self.old), self.new)
    }

    /// What happens to an object as a server returned it, if what its owners claim is stored; and to one that
    /// a user wrote (without a uid), as if exactly that were stored.
    pub fn object(&self, object: &Object) -> Effect {
        self.presumed(object, &Record::default())
    }

    /// Like [`Self::object`], with what is on record.
    fn presumed(&self, object: &Object, record: &Record) -> Effect {
        if object.is_too_deep() {
            return Effect { problems: vec![Problem::TooDeep], ..Effect::default() };
        }
        let storage = &self.old.storage().name;
        let version = version_of(object.json());
        let is_returned = !object.uid().is_empty();
        if is_returned && version == storage {
            return self.presumed_effect(object, record);
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
            let mut effect = self.presumed_effect(&Object::from(view), record);
            if self.partial.contains(&version) {
                effect
                    .problems
                    .push(Problem::PartlyShown { version: version.to_owned(), storage: storage.clone() });
            }
            return effect;
        }
        let stored = Stored { value: object.json().clone(), version: version.to_owned() };
        self.effect(&view, &stored)
    }

    /// What happens to an object as a server returned it at the storage version, by what is on record, and
    /// whether that is certain.
    pub fn on_record(&self, object: &Object, record: &Record) -> (Effect, bool) {
        // What is on record of an outline shows nothing about the rest of the object.
        let proved = proved(object, self.old, record).filter(|_| !object.is_too_deep());
        let (mut effect, is_certain) = match proved {
            Some(value) => {
                let stored = Stored { value, version: self.old.storage().name.clone() };
                (self.effect(object.json(), &stored), true)
            }
            None => (self.presumed(object, record), false),
        };
        self.leave_alone(object, record, &mut effect);
        self.add_owners_at_removed(object, &mut effect);
        self.add_maybe_stored_elsewhere(object, record, &mut effect);
        (effect, is_certain)
    }

    /// Takes out what a write would do where the operator has no reason to write an object: its defaults stay
    /// what they were, and all of them are on record.
    fn leave_alone(&self, object: &Object, record: &Record, effect: &mut Effect) {
        let follows = self.changes.iter().any(Change::is_followed);
        if self.is_carried && !follows && record.covers(object, self.old).is_some() {
            (effect.dropped, effect.held) = (false, None);
        }
    }

    /// What happens to an object of which this is what etcd holds since a revision (0 if that is not known),
    /// with what is on record; it comes with the object as it is read before.
    ///
    /// # Errors
    /// See [`Undecodable`].
    pub fn stored(
        &self,
        value: Json,
        revision: u64,
        record: &Record,
    ) -> Result<(Object, Effect), Undecodable> {
        let version = version_of(&value).to_owned();
        let View { object: mut view, hidden: before } = self.old_decoder.view(&value, &version)?;
        let mut effect = self.effect(&view, &Stored { value, version });
        // What no reader saw before is not hidden by the upgrade.
        effect.hidden.retain(|path| !before.contains(path));
        view["metadata"]["resourceVersion"] = match revision {
            0 => Value::Null,
            revision => revision.to_string().into(),
        };
        let object = Object::from(view);
        self.leave_alone(&object, record, &mut effect);
        self.add_owners_at_removed(&object, &mut effect);
        Ok((object, effect))
    }

    /// What happens to an object by whatever etcd may hold of it, together. What owners name counts as
    /// stored; where that decides what happens is in [`Effect::claimed`].
    fn presumed_effect(&self, object: &Object, record: &Record) -> Effect {
        let storage = &self.old.storage().name;
        // Stored at S, it would show all defaults of S (fact R2).
        let others = self.old.versions().iter().filter(|version| &version.name != storage);
        let version = match has_gap(object, self.old) {
            true => others.map(|version| &version.name).next_back(),
            false => None,
        };
        let first = [(version.unwrap_or(storage).as_str(), self.old.compiled())];
        let at = |(version, defaults): (&str, &Compiled)| -> Vec<Stored> {
            let stored = presumed(object, self.old, defaults).into_iter();
            stored.map(|value| Stored { value, version: version.to_owned() }).collect()
        };
        let mut all: Vec<Stored> = first.into_iter().flat_map(at).collect();
        let may_be_elsewhere =
            self.old.stored_elsewhere() && stored_at(object, self.old, record) != StoredAt::Storage;
        if may_be_elsewhere {
            // At another version, its own defaults are shown and may change. What that version prunes is not
            // shown, so an object that shows it is not stored there.
            let elsewhere = self.old.defaults_elsewhere().flat_map(at);
            all.extend(elsewhere.filter(|stored| {
                let read = self.old_decoder.view(&stored.value, &stored.version);
                read.is_ok_and(|view| view.hidden.is_empty())
            }));
        }
        // Etcd may hold all that is shown.
        let whole = Stored { value: object.json().clone(), version: all[0].version.clone() };
        if !all.contains(&whole) {
            all.push(whole);
        }
        let version = all[0].version.clone();
        let with_nulls = with_nulls(object, self.old, &record.history);
        all.extend(with_nulls.map(|value| Stored { value, version: version.clone() }));
        let mut effects: Vec<Effect> = all.iter().map(|stored| self.effect(object.json(), stored)).collect();
        if may_be_elsewhere && self.old.is_converted_by_webhook() {
            // Of what a webhook makes of the object nothing is known: it may show the same as before.
            effects.push(Effect { problems: effects[0].problems.clone(), ..Effect::default() });
        }
        let open = open(&effects);
        let mut effects = effects.into_iter();
        let first = effects.next().unwrap_or_default();
        let effect = effects.fold(first, Effect::or);
        let unproved = Stored { value: without_unproved(object, self.old, record), version };
        // Where no owner names an unproved default, that case is one of the others.
        let claimed = match all.contains(&unproved) {
            true => Vec::new(),
            false => effect.lacks(&self.effect(object.json(), &unproved)),
        };
        Effect { open, claimed, ..effect }
    }

    /// What happens to an object that is read as `view` at the old storage version, and of which etcd holds
    /// `stored`.
    pub fn effect(&self, view: &Value, stored: &Stored) -> Effect {
        let View { object: after, hidden } = match self.decoder.view(&stored.value, &stored.version) {
            Ok(view) => view,
            Err(why) => return Effect { problems: vec![Problem::Unreadable(why)], ..Effect::default() },
        };
        // A null that the old schema drops as well (fact R1) was no value to any reader.
        let was_null = |path: &Path| {
            path.value_in(view).is_none() && path.value_in(&stored.value).is_some_and(Value::is_null)
        };
        let hidden: Vec<Path> = hidden.into_iter().filter(|path| !was_null(path)).collect();
        let hidden = self.places(&hidden);
        let Difference { appears, changes, disappears } = self.difference(view, &after);
        let disappears: Vec<Path> = disappears
            .into_iter()
            .filter(|path| !hidden.iter().any(|hidden| hidden.contains(path)))
            .collect();
        let problems = match self.new.names_fields_alike(&stored.version) {
            true => self.problems(view, &after),
            false => vec![Problem::NotJudged { version: stored.version.clone() }],
        };
        let protected = self.protected(view, &changes, &disappears, &problems);
        let appears_on_write = self.appears_on_write(view, &after, &stored.version);
        let effect = Effect {
            appears,
            appears_on_write,
            changes,
            disappears,
            hidden,
            protected,
            problems,
            ..Effect::default()
        };
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

    /// What the operator does with an object after the upgrade; `None` if it writes to no object.
    fn written(&self, after: Json) -> Option<Prediction> {
        // The schema of a CRD that keeps unknown fields is not structural, and the operator writes none of
        // its objects.
        let may_write = self.writes && !self.new.preserves_unknown_fields();
        let has_work = self.new.gives_defaults()
            || !self.changes.is_empty()
            || self.terms.moves && self.new.stored_elsewhere()
            || self.terms.repairs;
        let written = || predict(&after.into(), self.new, &self.terms, &self.record, &self.changes);
        (may_write && has_work).then(written)
    }

    /// The defaults that the next write of an object stores, and that no read shows while it is stored at
    /// another version; not those of which the same was so before. What a webhook would give is not known.
    fn appears_on_write(&self, before: &Value, after: &Value, version: &str) -> Vec<Path> {
        if version == self.new.storage().name || !self.new.names_fields_alike(version) {
            return Vec::new();
        }
        let was_so = gaps(before, self.old);
        gaps(after, self.new).into_iter().filter(|gap| !was_so.contains(gap)).map(|(path, _)| path).collect()
    }

    fn difference(&self, before: &Value, after: &Value) -> Difference {
        difference(before, after, &self.old.storage().schema, &self.new.storage().schema)
    }

    fn places(&self, paths: &[Path]) -> Vec<Path> {
        let (old, new) = (&self.old.storage().schema, &self.new.storage().schema);
        paths.iter().map(|path| place(path, old, new)).collect()
    }

    /// Of these places, those whose value stays if etcd holds all that is shown now. None, if the object then
    /// has a problem that is not one of those which it has without that.
    fn protected(
        &self,
        view: &Value,
        changes: &[Path],
        disappears: &[Path],
        problems: &[Problem],
    ) -> Vec<Path> {
        if changes.is_empty() && disappears.is_empty() {
            return Vec::new();
        }
        let Ok(View { object: after, hidden }) = self.decoder.view(view, &self.old.storage().name) else {
            return Vec::new();
        };
        let is_new = |problem: &Problem| !problem.is_known() && !problems.contains(problem);
        // What the old default gave may be a value that the new schema refuses.
        if self.problems(view, &after).iter().any(is_new) {
            return Vec::new();
        }
        let (left, hidden) = (self.difference(view, &after), self.places(&hidden));
        let follows = self.written(after).map(|written| written.moved).unwrap_or_default();
        let is_lost = |path: &&Path| {
            let mut lost = left.changes.iter().chain(&left.disappears).chain(&hidden).chain(&follows);
            !lost.any(|lost| lost.contains(path) || path.contains(lost))
        };
        let mut protected: Vec<Path> = changes.iter().chain(disappears).filter(is_lost).cloned().collect();
        protected.sort();
        protected
    }

    /// What is wrong with an object as the storage versions have it, and would be in any write of it: with
    /// the defaults that no reader sees while it is stored at another version (fact R2).
    fn problems(&self, before: &Value, after: &Value) -> Vec<Problem> {
        let after = written(after, self.new);
        let found = self.after.existing(&after);
        if found.is_empty() {
            return Vec::new();
        }
        let before = self.before.existing(&written(before, self.old));
        let schema = &self.new.storage().schema;
        let problem =
            |(finding, before)| Problem::Invalid { broken: Broken::of(finding, schema, &after), before };
        known(found.iter(), before.iter()).into_iter().map(problem).collect()
    }
}

/// The topmost defaults of the storage version that an object lacks, with what a write gives there.
fn gaps(view: &Value, crd: &Crd) -> Vec<(Path, Json)> {
    let written = written(view, crd);
    let mut found = Vec::new();
    crd.compiled().gaps(view, &mut |at: &Trail<'_>, _: &Value| {
        let path = at.to_path();
        let value = path.value_in(&written).cloned().map(Json::from);
        found.extend(value.map(|value| (path, value)));
    });
    found
}

/// An object as a write at the storage version would leave it.
fn written(view: &Value, crd: &Crd) -> Json {
    let mut object = Json::from(view.clone());
    crd.compiled().fill(&mut object);
    object
}

/// The versions of the old CRD in which objects do not show all the fields that an upgrade removes.
fn partial<'a>(old: &'a Crd, new: &Crd) -> Vec<&'a str> {
    let removed = compare_crds(Some(old), new).fields_removed;
    let lacks = |version: &&Version| {
        let lacking = compare(&old.storage().schema, &version.schema).fields_removed;
        removed
            .iter()
            .any(|path| lacking.iter().any(|lacking| lacking.contains(path) || path.contains(lacking)))
    };
    let others = old.versions().iter().filter(|version| version.name != old.storage().name);
    let others = others.filter(|version| !removed.is_empty() && lacks(version));
    others.map(|version| version.name.as_str()).collect()
}
