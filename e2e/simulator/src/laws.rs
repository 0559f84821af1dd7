//! The laws, as what one request of Etch's may make of an object, and what must be so where nothing is left
//! to be done. It must not ask Etch.

use etch_core::ownership::MANAGER;
use etch_core::plan::{HiddenFields, Ownership};
use serde_json::{Value, json};

use super::fields::{self, Fields};
use super::server::{Content, Entry, Release};
use super::worlds::World;

/// What can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Law {
    /// Law 1: a value that is present is changed.
    Values,
    /// Law 1: a race against another writer is won.
    Race,
    /// Law 2: an object is created or brought back.
    Creates,
    /// Law 3: an owner loses a field, or Etch keeps one.
    Owners,
    /// Law 4: a field that only etcd holds is destroyed.
    Hidden,
    /// Law 5: a value that etcd does not hold is reported as stored.
    Persisted,
    /// Laws 6 and 10: what is stored is written again.
    Idempotence,
    /// Law 8: something is left undone.
    Undone,
    /// The same: a value without an owner stays at an old default.
    Follows,
    /// The same: two replicas lead at once.
    Leads,
    /// What the policy forbids is written, or an object that is ignored or being deleted.
    Allowed,
}

impl Law {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Values, "1: no value that is present is changed"),
        (Self::Race, "1: no race is won"),
        (Self::Creates, "2: nothing is created or brought back"),
        (Self::Owners, "3: no owner loses a field, and Etch keeps none"),
        (Self::Hidden, "4: no hidden field is destroyed"),
        (Self::Persisted, "5: what is said to be stored is in etcd"),
        (Self::Idempotence, "6 and 10: what is stored is not written again"),
        (Self::Undone, "8: everything is stored in the end"),
        (Self::Follows, "8: what nobody owns has followed in the end"),
        (Self::Leads, "8: one replica leads at a time"),
        (Self::Allowed, "only what policy, annotation and deletion allow is written"),
    ];

    /// Its number, and what it asks for.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(other, _)| *other == self).map_or("", |(_, name)| name)
    }
}

/// Which law a change of bytes by Etch breaks. `release` is the newest one, `reader` the same where Etch knew
/// it, those that Etch has `reported`, and with `moves` values may follow.
///
/// Five limits: a server that lags behind, `served`, destroys by any write what it does not know. So a field
/// that is new to it is lost where Etch writes through such a server what it has read through another. And it
/// does not store a new default of another version at which the object is stored, which other servers show
/// until then. And it stores the old default of a status, of which a request for the object carries nothing.
/// And where a webhook converts and an owner is at another version, no request carries a value. And it stores
/// the old default at a `doubtful` place: the dry run was refused that asks whether etcd holds the value
/// which such a server shows there. Without `served` that counts.
pub fn broken(
    world: &World,
    (release, served, reader, reported): (&Release, Option<&Release>, Option<&Release>, &[&Release]),
    (before, after): (&Content, &Content),
    moves: bool,
    doubtful: &[String],
) -> Option<Law> {
    let known = release.known(before);
    let kept = served.map(|served| served.known(before));
    let shown = served.and_then(|served| served.view(before, release.storage()).ok());
    let lags = served.is_some_and(|served| !std::ptr::eq(served, release));
    let is_elsewhere = before.version != release.storage();
    let has_converted_owners = release.is_converted_by_webhook()
        && before.owners.iter().any(|owner| owner.version != release.storage());
    let is_owned = |path: &String| {
        let others = before.owners.iter().filter(|owner| owner.manager != MANAGER);
        others.flat_map(|owner| &owner.fields).any(|place| place == path)
    };
    let follow: Vec<String> =
        world.follow.iter().map(ToString::to_string).filter(|path| moves && !is_owned(path)).collect();
    let mut law = None;
    let mut judge = |before: &Value, after: &Value| {
        fields::leaves(before, "", &mut |place, value| {
            let is_new =
                kept.as_ref().is_some_and(|kept| get(kept, place).is_none() && get(&known, place).is_some());
            let is_phantom = get(&known, place).is_none();
            let is_new_elsewhere =
                is_elsewhere && is_phantom && shown.as_ref().is_some_and(|shown| get(shown, place).is_none());
            let is_old_status = lags && is_phantom && place.starts_with(".status");
            let is_converted = lags && is_phantom && has_converted_owners;
            let is_doubtful = lags && is_phantom && doubtful.iter().any(|path| path == place);
            let is_kept = get(after, place) == Some(value)
                || is_void(value)
                || is_new
                || is_new_elsewhere
                || is_old_status
                || is_converted
                || is_doubtful;
            if !is_kept && !follow.iter().any(|path| path == place) {
                law = Some(Law::Values);
            }
        });
    };
    judge(&known, &after.value);
    // Nor does a reader see another value than before, wherever that comes from.
    let views = reader.map(|reader| [before, after].map(|content| reader.view(content, reader.storage())));
    if let Some([Ok(before), Ok(after)]) = &views {
        judge(before, after);
    }
    if law.is_none() && loses_owners(before, after) {
        law = Some(Law::Owners);
    }
    if law.is_none() && world.terms.hidden_fields == HiddenFields::Hold {
        fields::leaves(&before.value, "", &mut |place, _| {
            let is_hidden = get(&known, place).is_none() && get(&after.value, place).is_none();
            let is_former = || reported.iter().any(|earlier| gives(earlier, &before.value, place));
            if is_hidden && (before.owners.iter().any(|owner| is_named(&owner.fields, place)) || is_former())
            {
                law = Some(Law::Hidden);
            }
        });
    }
    law
}

/// Whether a release gives a default at this place of an object.
fn gives(release: &Release, value: &Value, place: &str) -> bool {
    let mut without = value.clone();
    let Some((above, name)) = place.rsplit_once('.') else { return false };
    let parent = above.split('.').skip(1).try_fold(&mut without, |value, name| value.get_mut(name));
    if let Some(fields) = parent.and_then(Value::as_object_mut) {
        fields.remove(name);
    }
    get(&release.fill(without, release.storage()), place).is_some()
}

/// Whether a value without an owner is still what a default gave in an `earlier` release, though it should
/// follow. An object without any owners does not show whose its values are: they stay.
pub fn stays_behind(world: &World, release: &Release, earlier: &Release, content: &Content) -> bool {
    let default = |release: &Release, place: &str| {
        get(&release.fill(json!({ "spec": {} }), release.storage()), place).cloned()
    };
    let is_known = !content.owners.is_empty();
    is_known
        && world.follow.iter().map(ToString::to_string).any(|place| {
            let (before, now) = (default(earlier, &place), default(release, &place));
            let is_owned = content.owners.iter().any(|owner| owner.fields.contains(&place));
            before != now && before.is_some() && get(&content.value, &place) == before.as_ref() && !is_owned
        })
}

/// Whether Etch has kept an entry that it should not have.
pub fn keeps_an_entry(world: &World, content: &Content) -> bool {
    world.terms.ownership == Ownership::None && content.owners.iter().any(|owner| owner.manager == MANAGER)
}

/// Whether an owner names a place, or something that holds it as a whole.
fn is_named(fields: &Fields, place: &str) -> bool {
    let is_inside = |place: &str, path: &str| {
        place.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    fields.iter().any(|path| {
        let has_parts = fields.iter().any(|other| other != path && is_inside(other, path));
        is_inside(place, path) && (place == path || !has_parts)
    })
}

fn loses_owners(before: &Content, after: &Content) -> bool {
    let writer = |entry: &Entry| (entry.is_update, entry.manager.clone());
    before.owners.iter().filter(|owner| owner.manager != MANAGER).any(|owner| {
        let now: Vec<&Entry> = after.owners.iter().filter(|other| writer(other) == writer(owner)).collect();
        let is_there =
            |place: &&String| get(&before.value, place).is_some() && get(&after.value, place).is_some();
        owner
            .fields
            .iter()
            .filter(is_there)
            .any(|place| !now.iter().any(|entry| entry.fields.contains(place)))
    })
}

fn get<'v>(value: &'v Value, place: &str) -> Option<&'v Value> {
    place.split('.').skip(1).try_fold(value, |value, name| value.get(name))
}

/// A null that the schema does not want, or a map that holds nothing.
fn is_void(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}
