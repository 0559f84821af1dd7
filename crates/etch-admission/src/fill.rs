//! Setting what is missing: the defaults of the schema, then those that are computed, until nothing more is
//! to set. A value that is there stays, except an empty one that a default is declared to replace.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::compile::{Compiled, CompiledDefault};
use super::empty::is_empty;
use super::former::Extension;
use super::place::{Location, value_at, value_at_mut};
use super::request::{Request, Subject};
use super::run::{Failure, Run};
use super::scope::Bound;
use super::spec::{Missing, Ratcheting, Scope, UnknownFields};
use super::unchanged::{Touch, is_unchanged, touch};
use etch_core::warning::shortened;
use kube_structural_schema::json::{Json, store_numbers};
use kube_structural_schema::path::Step;
use kube_structural_schema::prune::prune;

/// How often defaults continue from what was set before, at most. The cost limit ends most that continue
/// without an end, but not those that cost little.
const MOST_ROUNDS: usize = 1_000;
/// At how many places of an object defaults are set, at most: no object that is meant lacks so many.
const MOST_PLACES: usize = 10_000;
/// How many warnings there are about defaults that cannot be computed, at most.
const MOST_WARNINGS: usize = 100;

/// An object with its defaults.
#[derive(Debug, Default)]
pub struct Defaulted {
    /// The object, where anything was set or removed.
    pub object: Option<Json>,
    /// Defaults that could not be computed.
    pub warnings: Vec<String>,
}

impl Compiled {
    /// Sets the defaults that a request lacks, and removes unknown fields where the schema prunes them.
    /// `object` is its object with what other schemas have set.
    ///
    /// An update does not get defaults in parts that it does not change: otherwise a rule about changes could
    /// refuse it.
    pub fn set_defaults(&self, request: &Request<'_>, object: &Value) -> Defaulted {
        if !self.default_on.contains(&request.operation) {
            return Defaulted::default();
        }
        let current = Request { object, ..*request };
        if self.ratcheting == Ratcheting::Disabled {
            return self.with_defaults(&current);
        }
        let Some(target) = self.target(request) else { return Defaulted::default() };
        let sent = self.subject(request, &mut Run::new(self));
        let sent = sent.map_or_else(Vec::new, |subject| subject.extensions);
        if touch(request, target, &sent) != Touch::Extension {
            return Defaulted::default();
        }
        let unchanged = sent.into_iter().filter(|extension| is_unchanged(request, extension));
        let unchanged: HashSet<Location> = unchanged.map(|extension| extension.at).collect();
        self.with_defaults_in(&current, &|extension| !unchanged.contains(&extension.at))
    }

    /// Sets the defaults on any operation.
    pub(super) fn with_defaults(&self, request: &Request<'_>) -> Defaulted {
        self.with_defaults_in(request, &|_| true)
    }

    /// Sets the defaults of the object, and those of some of its extensions.
    fn with_defaults_in(&self, request: &Request<'_>, is_meant: &dyn Fn(&Extension) -> bool) -> Defaulted {
        let mut run = Run::new(self);
        let subject = self.subject(request, &mut run);
        if run.is_spent() {
            let warning = format!("defaults are not set: cannot evaluate `when`: {}", Failure::OutOfBudget);
            return Defaulted { object: None, warnings: vec![warning] };
        }
        let Some(mut subject) = subject else { return Defaulted::default() };
        subject.extensions.retain(is_meant);
        let mut filling = Filling {
            compiled: self,
            request,
            subject: &subject,
            run,
            object: None,
            changed: false,
            left: MOST_PLACES,
            is_full: false,
            warnings: Vec::new(),
        };
        filling.prune();
        if (0..MOST_ROUNDS).all(|_| filling.round()) {
            let warning = format!("defaults are set only in part: after {MOST_ROUNDS} rounds there are more");
            filling.warnings.push(warning);
        }
        if filling.is_full {
            let warning =
                format!("defaults are set only in part: in an object at {MOST_PLACES} places at most");
            filling.warnings.push(warning);
        }
        let Filling { object, changed, mut warnings, .. } = filling;
        warnings.dedup();
        Defaulted { object: object.filter(|_| changed), warnings }
    }
}

struct Filling<'c, 'r> {
    compiled: &'c Compiled,
    request: &'c Request<'r>,
    subject: &'c Subject<'c>,
    run: Run<'c>,
    /// The object to set values in: copied when there is something to set, because objects are large, and
    /// most lack nothing.
    object: Option<Json>,
    changed: bool,
    /// At how many more places defaults may be set.
    left: usize,
    /// Whether there were more.
    is_full: bool,
    warnings: Vec<String>,
}

impl Filling<'_, '_> {
    /// The object with what was set so far.
    fn object(&self) -> &Value {
        self.object.as_deref().unwrap_or(self.request.object)
    }

    /// What stands at a place of the object, to be changed.
    fn place(&mut self, location: &[Step]) -> Option<&mut Value> {
        let object = self.object.get_or_insert_with(|| Json::from(self.request.object.clone()));
        value_at_mut(object, location)
    }

    /// Whether defaults may be set at so many more places.
    fn takes(&mut self, places: usize) -> bool {
        let left = self.left.checked_sub(places);
        self.is_full |= left.is_none();
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    fn prune(&mut self) {
        let Some(extension) = &self.compiled.extension else { return };
        if self.compiled.unknown_fields != UnknownFields::Prune {
            return;
        }
        for Extension { at: location, .. } in &self.subject.extensions {
            let Some(value) = value_at(self.object(), location) else { continue };
            let (mut pruned, mut any) = (Json::from(value.clone()), false);
            prune(&mut pruned, &extension.schema, true, &mut |_| any = true);
            if let Some(value) = any.then(|| self.place(location)).flatten() {
                *value = pruned.into_inner();
                self.changed = true;
            }
        }
    }

    /// Sets what is missing now; returns whether anything was.
    fn round(&mut self) -> bool {
        // What could not be computed may have what it needs by now.
        self.warnings.clear();
        let mut any = self.fill_from_schema();
        for default in &self.compiled.defaults {
            let resource = &self.subject.target.declared.resource;
            if !default.resources.is_empty() && !default.resources.contains(resource) {
                continue;
            }
            match default.scope {
                Scope::Object => any |= self.set_below(default, None),
                Scope::Extension => {
                    for extension in &self.subject.extensions {
                        any |= self.set_below(default, Some(extension));
                    }
                }
            }
        }
        self.changed |= any;
        any
    }

    fn fill_from_schema(&mut self) -> bool {
        let Some(extension) = &self.compiled.extension else { return false };
        let mut any = false;
        if !extension.defaults.has_defaults() {
            return false;
        }
        for Extension { at: location, .. } in &self.subject.extensions {
            let Some(value) = value_at(self.object(), location) else { continue };
            let mut gaps = 0;
            extension.defaults.gaps(value, &mut |_, _| gaps += 1);
            if gaps == 0 || !self.takes(gaps) {
                continue;
            }
            if let Some(value) = self.place(location) {
                extension.defaults.fill(value);
                any = true;
            }
        }
        any
    }

    /// Sets a default at each of its places below an extension or, without one, the object.
    fn set_below(&mut self, default: &CompiledDefault, extension: Option<&Extension>) -> bool {
        let root = Location::new();
        let base = extension.map_or(&root, |extension| &extension.at);
        let Some(value) = value_at(self.object(), base) else { return false };
        let (mut places, mut count) = (Vec::new(), 0);
        default.items.visit(value, base, &mut |at, _| {
            if self.is_missing(default, at) {
                count += 1;
                if count <= MOST_PLACES {
                    places.push(at.clone());
                }
            }
        });
        if count > MOST_PLACES {
            self.is_full = true;
            return false;
        }
        let mut any = false;
        for at in places {
            match self.compute(default, extension, &at) {
                Ok(Some(_)) if self.left == 0 => self.is_full = true,
                Ok(Some(value)) => {
                    if self.set(default, &at, value) {
                        (any, self.left) = (true, self.left - 1);
                    }
                }
                Ok(None) => {}
                Err(failure) => self.warn(default, &at, &failure),
            }
        }
        any
    }

    fn warn(&mut self, default: &CompiledDefault, at: &Location, failure: &Failure) {
        if self.warnings.len() < MOST_WARNINGS {
            let fields = default.fields.iter().cloned().map(Step::Field);
            let path: Vec<_> = at.iter().cloned().chain(fields).collect();
            let path = super::place::written(&path);
            self.warnings.push(shortened(format!("{path}: cannot compute its default: {failure}")));
        }
    }

    /// Whether there is anything to set at a place, and a way to it.
    fn is_missing(&self, default: &CompiledDefault, at: &Location) -> bool {
        let mut value = value_at(self.object(), at);
        for field in &default.fields {
            match value {
                Some(Value::Object(fields)) => value = fields.get(field),
                None | Some(Value::Null) => value = None,
                Some(_) => return false,
            }
        }
        match (default.missing, value) {
            (_, None | Some(Value::Null)) => true,
            (Missing::Absent, _) => false,
            (Missing::Empty, Some(value)) => is_empty(value),
            (Missing::Merge, Some(value)) => value.is_object(),
        }
    }

    fn compute(
        &mut self,
        default: &CompiledDefault,
        extension: Option<&Extension>,
        at: &Location,
    ) -> Result<Option<Value>, Failure> {
        let below = extension.map_or(0, |extension| extension.at.len());
        let index = at[below..].last().and_then(index_of);
        // As `Self::object`, which would borrow the run as well.
        let object = self.object.as_deref().unwrap_or(self.request.object);
        let bound = Bound { object: Some(object), ..Bound::of(self.request) };
        let bound = extension.map_or(bound, |extension| bound.extension(extension));
        let bound = Bound { index: index.as_ref(), item: value_at(object, at), ..bound };
        let values = bound.values();
        if let Some(when) = &default.when
            && !self.run.holds(when, &values)?
        {
            return Ok(None);
        }
        let value = self.run.value(&default.value, &values)?.filter(|value| !value.is_null());
        let Some(mut value) = value else { return Ok(None) };
        if default.missing == Missing::Merge && !value.is_object() {
            return Err(Failure::NoObject);
        }
        // The schema's types are about the value that the API server stores.
        store_numbers(&mut value);
        let is_set = default.missing == Missing::Absent || !is_empty(&value);
        Ok(is_set.then_some(value))
    }

    fn set(&mut self, default: &CompiledDefault, at: &Location, value: Value) -> bool {
        let Some(mut place) = self.place(at) else { return false };
        for field in &default.fields {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            let Value::Object(fields) = place else { return false };
            place = fields.entry(field.as_str()).or_insert(Value::Null);
        }
        match (&mut *place, value) {
            (Value::Object(there), Value::Object(value)) => merge(there, value),
            (place, value) => {
                *place = value;
                true
            }
        }
    }
}

/// Sets the fields that are absent or empty; returns whether there were any.
fn merge(there: &mut Map<String, Value>, value: Map<String, Value>) -> bool {
    let mut any = false;
    for (name, value) in value.into_iter().filter(|(_, value)| !is_empty(value)) {
        match (there.get_mut(&name), value) {
            (Some(Value::Object(there)), Value::Object(value)) => any |= merge(there, value),
            (Some(there), value) if is_empty(there) => {
                *there = value;
                any = true;
            }
            (Some(_), _) => {}
            (None, value) => {
                there.insert(name, value);
                any = true;
            }
        }
    }
    any
}

/// What `index` is at the end of a place.
pub(super) fn index_of(step: &Step) -> Option<Value> {
    match step {
        Step::Index(index) => Some(Value::from(*index)),
        Step::Key(key) => Some(Value::from(key.as_str())),
        _ => None,
    }
}
