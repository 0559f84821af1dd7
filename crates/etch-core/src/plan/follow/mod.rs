//! Following changed defaults: which values are an old default without an owner, and are moved to the new
//! one. It must not move a value that may have an owner: if that is not known, the value is kept.

mod change;
mod places;
mod unowned;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::room::{ROOM, Room, size};
use super::{
    Body, Broken, Held, HiddenFields, Hold, Plan, Record, Strategy, Terms, Write, body, breach, misfit,
    still_hidden,
};
use crate::crd::Crd;
use crate::object::Object;
use crate::without::remove;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::Path;

pub use change::{Change, OldDefault, changes, is_followable, past, past_of};
pub(super) use places::each as each_place;
pub(super) use unowned::Unowned;

/// The most values that one write moves: a server takes a JSON patch of 10,000 operations, and an object is
/// looked at again after each write.
const MOST: usize = 5_000;
/// How many bytes these places may take: a server takes 3 MiB, and a place is named twice at most.
const BYTES: usize = 1 << 20;

/// What changed defaults mean for one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Following {
    /// The places whose value is an old default, and is moved: to the new one, or away with a default that is
    /// gone.
    pub moved: Vec<Path>,
    /// The places whose value is an old default, and stays: a manager owns it or may, or the policy does not
    /// ask to follow. The lowest ones only.
    pub kept: Vec<Path>,
    /// The write that moves, or why it would do harm; `None` if nothing is to be moved.
    pub plan: Option<Plan>,
}

/// Decides about one object of a CRD whose defaults have changed. An object that is not ours to touch is left
/// out.
///
/// To be asked where [`super::decide()`] plans no rewrite of owners: a write of a value that an owner's
/// version cannot express would cost the object all its owners (fact W8).
pub fn follow(object: &Object, crd: &Crd, terms: &Terms, changes: &[Change], record: &Record) -> Following {
    if terms.skip(object).is_some() {
        return Following::default();
    }
    // What stays leaves room for what is moved.
    let (mut to_move, mut to_stay) = (Room::of(ROOM), Room::of(ROOM));
    let mut found = Vec::new();
    let mut unowned = Unowned::of(object, crd);
    for change in changes {
        places::each(object.json(), change.path(), &mut |place, value| {
            if change.is_past(value) {
                let may_move = change.is_followed() && unowned.has(place);
                let room = if may_move { &mut to_move } else { &mut to_stay };
                if room.take(size(place)) {
                    found.push((place.clone(), change, may_move));
                }
            }
        });
    }
    if found.is_empty() {
        return Following::default();
    }
    found.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let mut moves: Vec<(Path, Option<&Json>)> = Vec::new();
    let mut room = Room::of(BYTES);
    let mut kept = BTreeSet::new();
    for (place, change, may_move) in found {
        let is_moved_already = moves.last().is_some_and(|(above, _)| above.contains(&place));
        if is_moved_already {
            continue;
        }
        if may_move && moves.len() < MOST && room.take(size(&place)) {
            moves.push((place, change.present()));
        } else {
            kept.insert(place);
        }
    }
    let kept = lowest(kept, &moves);
    let plan = (!moves.is_empty()).then(|| plan(object, crd, terms, &moves, record));
    Following { moved: moves.into_iter().map(|(place, _)| place).collect(), kept, plan }
}

/// Whether an object shows, at the place of a default that has changed, what it gave before.
pub fn shows_past(object: &Object, changes: &[Change]) -> bool {
    !shown_past(object, changes).is_empty()
}

/// The places of an object that show what a changed default gave before, in order, the topmost ones only,
/// with what it gives now.
pub(super) fn shown_past<'c>(object: &Object, changes: &'c [Change]) -> Vec<(Path, Option<&'c Json>)> {
    topmost(object, changes, |change, value| change.is_past(value).then(|| change.present()))
}

/// The places of an object that show what a changed default gives now, in order, the topmost ones only, with
/// their values.
pub(super) fn present<'v>(object: &'v Object, changes: &[Change]) -> Vec<(Path, &'v Value)> {
    topmost(object, changes, |change, value| {
        change.present().is_some_and(|present| same(present, value)).then_some(value)
    })
}

/// The topmost places of changed defaults at which `pick` finds something, in order, with that.
fn topmost<'c, 'v, T>(
    object: &'v Object,
    changes: &'c [Change],
    pick: impl Fn(&'c Change, &'v Value) -> Option<T>,
) -> Vec<(Path, T)> {
    let mut found = Vec::new();
    let mut room = Room::of(ROOM);
    for change in changes {
        places::each(object.json(), change.path(), &mut |place, value| {
            let picked = pick(change, value).filter(|_| room.take(size(place)));
            found.extend(picked.map(|picked| (place.clone(), picked)));
        });
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut topmost: Vec<(Path, T)> = Vec::new();
    let mut room = Room::of(BYTES);
    for (place, picked) in found {
        if topmost.last().is_some_and(|(above, _)| above.contains(&place)) {
            continue;
        }
        if topmost.len() == MOST || !room.take(size(&place)) {
            break;
        }
        topmost.push((place, picked));
    }
    topmost
}

/// What stays, without the places that another one or a moved one lies below: those are more precise.
fn lowest(kept: BTreeSet<Path>, moves: &[(Path, Option<&Json>)]) -> Vec<Path> {
    let all: Vec<Path> = kept.into_iter().collect();
    let is_above = |path: &Path, next: Option<&Path>| next.is_some_and(|next| path.contains(next));
    let is_lowest = |index: usize, path: &Path| {
        let first_after = moves.partition_point(|(place, _)| place < path);
        !is_above(path, all.get(index + 1)) && !is_above(path, moves.get(first_after).map(|(place, _)| place))
    };
    all.iter()
        .enumerate()
        .filter(|(index, path)| is_lowest(*index, path))
        .map(|(_, path)| path.clone())
        .collect()
}

fn plan(object: &Object, crd: &Crd, terms: &Terms, moves: &[(Path, Option<&Json>)], record: &Record) -> Plan {
    if let Some(held) = held(object, crd, terms, moves, record) {
        return Plan::Hold(held);
    }
    let missing: Vec<Path> = moves.iter().map(|(place, _)| place.clone()).collect();
    let body = Body::Operations(patch(object, moves));
    Plan::Write(Write::new(Strategy::Follow, body, missing))
}

/// What harm a write would do that moves these values, if any.
pub(super) fn held(
    object: &Object,
    crd: &Crd,
    terms: &Terms,
    moves: &[(Path, Option<&Json>)],
    record: &Record,
) -> Option<Held> {
    if terms.hidden_fields == HiddenFields::Hold {
        let paths = still_hidden(object, crd, record);
        if !paths.is_empty() {
            return Some(Held::new(Hold::HiddenFields, paths));
        }
    }
    let paths = misfit::misfits(object.json(), &crd.storage().schema);
    if !paths.is_empty() {
        return Some(Held::new(Hold::Misfit, paths));
    }
    let paths = moves.iter().map(|(place, _)| place.clone()).collect();
    let broken = broken(object, crd, moves);
    (!broken.is_empty()).then_some(Held { reason: Hold::InvalidDefaults, paths, broken })
}

/// What the object would break with the moved values and does not break with those that it has.
fn broken(object: &Object, crd: &Crd, moves: &[(Path, Option<&Json>)]) -> Vec<Broken> {
    // What a default that is gone leaves behind is outside of the scopes of the present defaults.
    let is_reached =
        |(place, present): &(Path, Option<&Json>)| present.is_none() || crd.breakable_scopes().covers(place);
    if !moves.iter().any(is_reached) {
        return Vec::new();
    }
    let mut before = object.json().clone();
    crd.compiled().fill(&mut before);
    let mut after = before.clone();
    for (place, present) in moves {
        match present {
            Some(value) => {
                if let Some(slot) = after.pointer_mut(&place.pointer()) {
                    *slot = Value::clone(value);
                }
            }
            None => remove(&mut after, place.steps()),
        }
    }
    breach::broken_by_change(&before, &after, crd)
}

/// The patch that moves these values.
fn patch(object: &Object, moves: &[(Path, Option<&Json>)]) -> Json {
    let mut operations = body::of_this(object);
    operations.extend(moves.iter().map(|(place, present)| match present {
        Some(value) => body::replace(&place.pointer(), Value::clone(value)),
        None => json!({ "op": "remove", "path": place.pointer() }),
    }));
    Json::from(Value::from(operations))
}

/// Whether a write that followed has left what it should: no moved place still has the value that it had
/// before.
pub fn has_followed(before: &Object, after: &Object, write: &Write) -> bool {
    write.missing.iter().all(|place| match (place.value_in(before.json()), place.value_in(after.json())) {
        (Some(before), Some(after)) => !same(before, after),
        _ => true,
    })
}

/// Whether an object shows this value at a place, or none there.
pub(super) fn shows(object: &Object, place: &Path, value: Option<&Json>) -> bool {
    match (place.value_in(object.json()), value) {
        (Some(shown), Some(value)) => same(shown, value),
        (shown, value) => shown.is_none() && value.is_none(),
    }
}
