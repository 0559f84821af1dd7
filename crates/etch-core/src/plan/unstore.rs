//! Removing what recorded passes have stored, after a CRD was rolled back: a value goes if it is a default
//! that the schema gave and no longer gives, and no manager owns it. A value stays if the server would fill
//! it in again, or if no record proves where it comes from.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::clock::created;
use super::follow::{Unowned, each_place, held, is_followable};
use super::places::skip;
use super::room::{ROOM, Room, size};
use super::{Body, Exceptions, HiddenEvidence, Plan, Record, Skip, Strategy, Terms, Write, body};
use crate::crd::Crd;
use crate::object::Object;
use crate::words::words;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::Path;
use kube_structural_schema::prune::keeps;

/// The most values that one write removes: each takes two operations, and a server accepts 10,000. Etch
/// decides about the object again after each write.
const MOST: usize = 2_000;

/// A default that schemas on record gave.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedDefault {
    /// Where it stands or stood.
    pub path: Path,
    /// What passes have stored there, the latest first.
    pub stored: Vec<StoredDefault>,
    /// Whether a pass has stored a value that is too long for the report.
    pub is_too_long: bool,
}

/// A value that a pass has stored wherever it was missing.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredDefault {
    /// The value, with the defaults below it.
    pub value: Json,
    /// The resource version up to which the pass has processed every object.
    pub through: u64,
    /// When it ended.
    pub finished: Timestamp,
    /// The uids of the objects that it has not written.
    pub exceptions: Exceptions,
}

/// Whether values of a recorded default can be removed from objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They can.
    Removable,
    /// This version of the CRD still has a default there: the server would fill it in again.
    StillDefault(String),
    /// The storage version no longer has the field: no read shows what etcd holds, and the next write drops
    /// it.
    FieldGone,
    /// It is in `status` or `metadata`, is an item or a map's value itself, identifies a list item, or may
    /// come through a scale subresource.
    NotRemovable,
    /// No complete pass is on record that stored it.
    NoPass,
    /// The report does not have its value, which is too long.
    NoValue,
}

words! {
    /// Why an object keeps a value at the place of a default that can be removed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum KeptBecause {
        /// It is not what a recorded pass has stored.
        Changed,
        /// A field manager owns it.
        Owned,
        /// `managedFields` do not show who owns what: they are missing, or name fields at a version that
        /// lacks some.
        OwnersUnknown,
        /// No recorded pass has written it: the object was created later, or was held, rejected or unknown.
        NotByPass,
        /// It is a part of a value that another default still gives.
        StillDefault,
    }
}

impl Standing {
    /// The name of the reason.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Removable => "Removable",
            Self::StillDefault(_) => "StillDefault",
            Self::FieldGone => "FieldGone",
            Self::NotRemovable => "NotRemovable",
            Self::NoPass => "NoPass",
            Self::NoValue => "NoValue",
        }
    }
}

/// What of the recorded defaults of a CRD can be removed from its objects.
#[derive(Clone, Debug)]
pub struct Unstorable {
    defaults: Vec<(RecordedDefault, Standing)>,
    /// What the CRD still gives, at any version.
    present: Vec<(Path, Json)>,
    /// What is known of fields that no read shows.
    hidden: Arc<HiddenEvidence>,
}

/// What is to be removed from one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unstoring {
    /// The places whose value goes: the topmost ones.
    pub removed: Vec<Path>,
    /// The places whose value stays although it is where a default can be removed: the lowest ones.
    pub kept: Vec<(Path, KeptBecause)>,
    /// Whether the object is as the pass left it.
    pub is_unchanged: bool,
    /// The write that removes the values, or why there is none; `None` if there is nothing to remove.
    pub plan: Option<Plan>,
}

impl Unstorable {
    /// What can be removed from the objects of a CRD as it is now.
    pub fn new(recorded: Vec<RecordedDefault>, crd: &Crd) -> Self {
        let mut present = Vec::new();
        let mut sites = Vec::new();
        for version in crd.versions() {
            for site in Compiled::new(&version.schema).defaults() {
                present.push((site.path.clone(), site.value()));
                sites.push((site.path.clone(), version.name.clone()));
            }
        }
        let standing = |default: &RecordedDefault| {
            let schema = &crd.storage().schema;
            let still = sites.iter().find(|(path, _)| *path == default.path);
            match still {
                Some((_, version)) => Standing::StillDefault(version.clone()),
                None if !keeps(schema, default.path.steps()) => Standing::FieldGone,
                None if !is_followable(&default.path, crd) => Standing::NotRemovable,
                None if !default.stored.is_empty() => Standing::Removable,
                None if default.is_too_long => Standing::NoValue,
                None => Standing::NoPass,
            }
        };
        let defaults = recorded.into_iter().map(|default| (standing(&default), default));
        let defaults = defaults.map(|(standing, default)| (default, standing)).collect();
        Self { defaults, present, hidden: Arc::default() }
    }

    /// The same with what is on record of fields that no read shows.
    #[must_use]
    pub fn knowing(self, hidden: Arc<HiddenEvidence>) -> Self {
        Self { hidden, ..self }
    }

    /// The recorded defaults in the order of their paths, and whether their values can be removed.
    pub fn defaults(&self) -> impl Iterator<Item = (&RecordedDefault, &Standing)> {
        self.defaults.iter().map(|(default, standing)| (default, standing))
    }

    /// Decides about one object.
    ///
    /// | a value at the place of a default that can be removed | |
    /// |---|---|
    /// | is not what a recorded pass has stored | stays |
    /// | is in an object that no such pass has written | stays |
    /// | is a part of a value that another default still gives | stays |
    /// | may belong to a field manager other than Etch | stays |
    /// | otherwise | goes, unless the write would do harm: as any write of Etch's, it is held then |
    pub fn decide(&self, object: &Object, crd: &Crd, terms: &Terms) -> Unstoring {
        let why = skip(object);
        if why == Some(Skip::TooDeep) {
            return Unstoring { plan: why.map(Plan::Skip), ..Unstoring::default() };
        }
        let mut found: Vec<(Path, &Value, Result<u64, KeptBecause>)> = Vec::new();
        let mut unowned = Unowned::of(object, crd);
        // What stays leaves room for what goes.
        let (mut to_go, mut to_stay) = (Room::of(ROOM), Room::of(ROOM));
        for (default, _) in self.defaults.iter().filter(|(_, standing)| *standing == Standing::Removable) {
            each_place(object.json(), &default.path, &mut |place, value| {
                let judged = self.judge(object, place, value, default, &mut unowned);
                let room = if judged.is_ok() { &mut to_go } else { &mut to_stay };
                if room.take(size(place)) {
                    found.push((place.clone(), value, judged));
                }
            });
        }
        if found.is_empty() {
            return Unstoring::default();
        }
        found.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        let (mut removed, mut kept) = (Vec::<(Path, &Value)>::new(), Vec::new());
        let mut is_unchanged = true;
        for (place, value, judged) in found {
            if removed.last().is_some_and(|(above, _)| above.contains(&place)) {
                continue;
            }
            match judged {
                Err(why) => kept.push((place, why)),
                Ok(through) => {
                    is_unchanged &= object.revision().is_some_and(|revision| revision <= through);
                    removed.push((place, value));
                }
            }
        }
        let kept = lowest(kept, &removed);
        removed.truncate(MOST);
        let plan = (!removed.is_empty()).then(|| match why {
            Some(why) => Plan::Skip(why),
            None => {
                let record = Record { hidden: self.hidden.clone(), ..Record::default() };
                plan(object, crd, terms, &removed, &record)
            }
        });
        let is_unchanged = is_unchanged && !removed.is_empty();
        Unstoring { removed: removed.into_iter().map(|(place, _)| place).collect(), kept, is_unchanged, plan }
    }

    /// The resource version up to which the pass that stored this value has gone; or why the value stays.
    fn judge(
        &self,
        object: &Object,
        place: &Path,
        value: &Value,
        default: &RecordedDefault,
        unowned: &mut Unowned<'_>,
    ) -> Result<u64, KeptBecause> {
        let mut stored = default.stored.iter().filter(|stored| same(&stored.value, value)).peekable();
        if stored.peek().is_none() {
            return Err(KeptBecause::Changed);
        }
        if !unowned.are_known() {
            return Err(KeptBecause::OwnersUnknown);
        }
        if !unowned.has(place) {
            return Err(KeptBecause::Owned);
        }
        if self.is_given_above(object, place) {
            return Err(KeptBecause::StillDefault);
        }
        let was_there = |stored: &&StoredDefault| {
            created(object).is_some_and(|created| created <= stored.finished)
                && !stored.exceptions.contains(object.uid())
        };
        stored.filter(was_there).map(|stored| stored.through).max().ok_or(KeptBecause::NotByPass)
    }

    /// Whether a value above a place is what a default gives there: what is below it is the default's.
    fn is_given_above(&self, object: &Object, place: &Path) -> bool {
        let steps = place.steps();
        let mut value: &Value = object.json();
        for (depth, step) in steps.iter().enumerate() {
            let Some(next) = step.part_of(value) else { return false };
            value = next;
            let above = Path::from(steps[..=depth].to_vec()).to_schema();
            let is_given = |(path, given): &(Path, Json)| *path == above && same(given, value);
            if depth + 1 < steps.len() && self.present.iter().any(is_given) {
                return true;
            }
        }
        false
    }
}

/// What stays, without the places that another one lies below: those are more precise.
fn lowest(kept: Vec<(Path, KeptBecause)>, removed: &[(Path, &Value)]) -> Vec<(Path, KeptBecause)> {
    let mut all: Vec<&Path> = kept.iter().map(|(place, _)| place).collect();
    all.extend(removed.iter().map(|(place, _)| place));
    all.sort();
    let is_lowest = |place: &Path| {
        let next = all.get(all.partition_point(|other| *other <= place));
        !next.is_some_and(|next| place.contains(next))
    };
    let lowest: Vec<bool> = kept.iter().map(|(place, _)| is_lowest(place)).collect();
    kept.into_iter().zip(lowest).filter(|(_, lowest)| *lowest).map(|(kept, _)| kept).collect()
}

fn plan(object: &Object, crd: &Crd, terms: &Terms, removed: &[(Path, &Value)], record: &Record) -> Plan {
    let moves: Vec<(Path, Option<&Json>)> = removed.iter().map(|(place, _)| (place.clone(), None)).collect();
    if let Some(held) = held(object, crd, terms, &moves, record) {
        return Plan::Hold(held);
    }
    let body = Body::Operations(patch(object, removed));
    let missing = removed.iter().map(|(place, _)| place.clone()).collect();
    Plan::Write(Write::new(Strategy::Follow, body, missing))
}

/// A JSON patch of this very object, as it was read, that tests for each value before it removes it.
fn patch(object: &Object, removed: &[(Path, &Value)]) -> Json {
    let mut operations = body::of_this(object);
    for (place, value) in removed {
        let path = place.pointer();
        operations.push(json!({ "op": "test", "path": path, "value": value }));
        operations.push(json!({ "op": "remove", "path": path }));
    }
    Json::from(Value::from(operations))
}

#[cfg(test)]
#[path = "tests/unstoring.rs"]
mod tests;
