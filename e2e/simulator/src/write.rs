//! What a write stores, and who owns it then: updates, and server-side applies.
//! It must not look at preconditions.
//!
//! Source: apimachinery `util/managedfields`; structured-merge-diff v6 `merge/update.go`.

use serde_json::{Value, json};

use super::admission::Admission;
use super::fields::{self, Fields};
use super::server::{
    Content, Effect, Entry, Refused, Release, Request, Untypable, Verb, payload, refused, united,
};

/// A write that is being carried out.
pub(super) struct Write<'a> {
    pub(super) release: &'a Release,
    pub(super) untypable: Untypable,
    pub(super) admission: Option<Admission>,
    pub(super) request: &'a Request,
}

/// What an apply makes of an object, before that is validated.
pub(super) struct Applied {
    value: Value,
    owners: Vec<Entry>,
    is_valid: bool,
}

impl Write<'_> {
    /// A create, a put, or a patch that is no apply: `body` is what the object is to be.
    pub(super) fn update(&self, live: Option<&Content>, body: &Value) -> Result<Effect, Refused> {
        let Self { release, request: Request { version, .. }, .. } = *self;
        let before = live.map_or(Ok(json!({})), |live| release.view(live, version))?;
        let mut after = release.decode(&payload(body), version)?;
        self.leave_others(live.map(|_| &before), &mut after);
        let given = body["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
        let known = live.map(|live| live.owners.clone()).unwrap_or_default();
        let owners = match given {
            [only] if *only == json!({}) => Vec::new(),
            [] => known.clone(),
            given => united(given.iter().map(Entry::read)),
        };
        // An update of an object without owners adds none.
        if owners.is_empty() && live.is_some() {
            return Ok(self.store(after, owners));
        }
        let owners = match self.updated(&before, &after, owners, self.key(true)) {
            Ok(owners) => owners,
            Err(_) if self.untypable == Untypable::Wipes => Vec::new(),
            Err(_) => known,
        };
        Ok(self.store(after, owners))
    }

    fn updated(
        &self,
        before: &Value,
        after: &Value,
        owners: Vec<Entry>,
        key: Entry,
    ) -> Result<Vec<Entry>, Refused> {
        self.expressible(before, &owners)?;
        let (mut owners, difference) = self.taken(before, after, owners, &key, true)?;
        let index = owners.iter().position(|owner| owner.is_same(&key));
        let mut entry = index.map_or(key, |index| owners.remove(index));
        entry.fields.retain(|place| !difference.removed.contains(place));
        let changed = difference.modified.iter().chain(&difference.added);
        entry.fields.extend(changed.filter(|place| self.may_own(place)).cloned());
        owners.push(entry);
        Ok(owners)
    }

    pub(super) fn apply(&self, live: Option<&Content>) -> Result<Applied, Refused> {
        let Self { release, request: Request { version, verb, body, .. }, .. } = *self;
        let mut config = payload(body);
        self.leave_others(None, &mut config);
        release.declares(config.clone(), version)?;
        let before = live.map_or(Ok(json!({})), |live| release.view(live, version))?;
        let mut owners = live.map(|live| live.owners.clone()).unwrap_or_default();
        let key = self.key(false);
        if let (true, Some(_)) = (owners.is_empty(), live) {
            let first = Entry { is_update: true, manager: "before-first-apply".to_owned(), ..key.clone() };
            owners = self.updated(&json!({}), &before, owners, first)?;
        }
        self.expressible(&before, &owners)?;
        let index = owners.iter().position(|owner| owner.is_same(&key));
        let last = index.map(|index| owners.remove(index));
        let entry = Entry { fields: fields::applied(&config), ..key.clone() };
        owners.push(entry);
        let mut after = fields::merged(&before, &config);
        if let Some(last) = last {
            after = self.given_up(&after, &owners, &last)?;
        }
        let (owners, _) = self.taken(&before, &after, owners, &key, *verb == Verb::Force)?;
        // What changes nothing is stored as it was read, and gets no default (fact W6).
        if live.is_some() && before == after {
            return Ok(Applied { value: before, owners, is_valid: true });
        }
        let mut after = release.fill(after, version);
        // A map that has lost all it had is null by now. Unlike a decoder, an apply does not drop that.
        let is_valid = release.decode(&after, version)? == after;
        self.leave_others(live.map(|_| &before), &mut after);
        Ok(Applied { value: after, owners, is_valid })
    }

    /// Stores what an apply has made of an object, unless it is not valid.
    pub(super) fn validated(&self, applied: Applied) -> Result<Effect, Refused> {
        let Applied { value, owners, is_valid } = applied;
        match is_valid {
            true => Ok(self.store(value, owners)),
            false => refused(422, "must be of type object: \"null\""),
        }
    }

    /// The entry that a write makes, before it has fields.
    fn key(&self, is_update: bool) -> Entry {
        let Request { version, manager, is_to_status, .. } = self.request;
        Entry {
            is_update,
            manager: manager.clone(),
            version: version.clone(),
            is_of_status: *is_to_status,
            fields: Fields::new(),
        }
    }

    /// Whether a write may own a place: who writes to the status owns nothing else, and otherwise the
    /// reverse.
    fn may_own(&self, place: &str) -> bool {
        let is_status =
            place.strip_prefix(".status").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if self.request.is_to_status { is_status } else { !(self.release.has_status && is_status) }
    }

    /// The status stays as it is where it has a subresource, and a create drops it (fact D11); a request to
    /// that leaves everything else as it is.
    fn leave_others(&self, before: Option<&Value>, after: &mut Value) {
        let Value::Object(after) = after else { return };
        let other = match self.request.is_to_status {
            true => "spec",
            false if self.release.has_status => "status",
            false => return,
        };
        after.remove(other);
        if let Some(value) = before.and_then(|before| before.get(other)) {
            after.insert(other.to_owned(), value.clone());
        }
    }

    /// Whether an object can be put into the terms of all its owners.
    fn expressible(&self, before: &Value, owners: &[Entry]) -> Result<(), Refused> {
        let mut others = owners.iter().filter(|owner| owner.version != self.request.version);
        others.try_for_each(|owner| self.release.express(before, &owner.version))
    }

    fn converted(&self, value: &Value, version: &str) -> Value {
        self.release.convert(value.clone(), &self.request.version, version)
    }

    /// How the object changes in an owner's terms, where these are others.
    fn seen_by(&self, owner: &Entry, before: &Value, after: &Value) -> Option<fields::Difference> {
        let is_other = owner.version != self.request.version && self.release.is_converted_by_webhook();
        let terms = |value| self.converted(value, &owner.version);
        is_other.then(|| fields::compare(&terms(before), &terms(after)))
    }

    /// What the other owners keep, and how the object changes.
    fn taken(
        &self,
        before: &Value,
        after: &Value,
        mut owners: Vec<Entry>,
        key: &Entry,
        force: bool,
    ) -> Result<(Vec<Entry>, fields::Difference), Refused> {
        let difference = fields::compare(before, after);
        let mut conflict = None;
        for owner in owners.iter_mut().filter(|owner| !owner.is_same(key)) {
            if owner.version != self.request.version {
                self.release.express(before, &owner.version)?;
                self.release.express(after, &owner.version)?;
            }
            let seen = self.seen_by(owner, before, after);
            let difference = seen.as_ref().unwrap_or(&difference);
            let is_taken =
                |place: &String| difference.modified.contains(place) || difference.added.contains(place);
            if !force && owner.fields.iter().any(is_taken) {
                conflict = conflict.or_else(|| Some(owner.manager.clone()));
            }
            owner.fields.retain(|place| !is_taken(place) && !difference.removed.contains(place));
        }
        // What cannot be put into an owner's terms is refused as such, whatever else conflicts.
        match conflict {
            Some(manager) => refused(409, &format!("Apply failed: conflict with {manager:?}")),
            None => Ok((owners, difference)),
        }
    }

    /// A merged object without what an applier named before and does not name any more, unless others own it.
    fn given_up(&self, merged: &Value, owners: &[Entry], last: &Entry) -> Result<Value, Refused> {
        if last.fields.is_empty() {
            return Ok(merged.clone());
        }
        if last.version != self.request.version {
            self.release.express(merged, &last.version)?;
        }
        let last = fields::with_parents(&last.fields);
        let all = fields::with_parents(&fields::applied(merged));
        let mut left = fields::with_parents(&fields::applied(&fields::without(merged, &last)));
        owners.iter().for_each(|owner| left.extend(fields::with_parents(&owner.fields)));
        let gone = all.difference(&left).filter(|place| last.contains(*place)).cloned().collect();
        Ok(fields::without(merged, &gone))
    }

    fn store(&self, mut value: Value, mut owners: Vec<Entry>) -> Effect {
        if self.admission.is_some_and(|admission| admission.change(&mut value)) {
            value = self.release.fill(value, &self.request.version);
        }
        owners.retain(|owner| !owner.fields.is_empty());
        owners.sort();
        let storage = self.release.storage();
        let value = self.release.convert(value, &self.request.version, storage);
        Effect::Stored(Content { version: storage.to_owned(), value, owners })
    }
}
