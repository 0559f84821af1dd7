//! What is known about EmbeddedSchemas and the objects of their facts, and what to serve by it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;
use serde_json::Value;

use super::checked_schema::{CheckedSchema, Inputs};
use crate::server::admission::{Schemas, Served};
use etch_admission::api::{EmbeddedSchemaStatus, ExistingObjects, PersistedDefaults};
use etch_admission::tally::OWNERS_LOST;
use etch_admission::{Compiled, Declaration, FactObject, OnExisting, Problem, Webhooks};
use kube_structural_schema::json::DEPTH;

/// Changes are gathered for this long before the leader acts on them.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(200);

/// The shared state.
pub(super) type Shared = Arc<Mutex<State>>;

/// A change of its value has existing objects checked once more.
const RECHECK: &str = "etch-operator.io/recheck";

/// An EmbeddedSchema as it was read.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) uid: String,
    pub(super) generation: i64,
    pub(super) status: EmbeddedSchemaStatus,
    /// What was found of existing objects since this replica leads.
    pub(super) existing: Option<ExistingObjects>,
    /// The value of its annotation [`RECHECK`].
    asked: Option<String>,
    /// What was declared, as it was read.
    spec: Value,
    /// What keeps that from being served.
    pub(super) problems: Vec<Problem>,
    /// The last generation that can be served.
    pub(super) good: Option<Good>,
}

/// A generation that can be served.
#[derive(Debug)]
pub(super) struct Good {
    pub(super) generation: i64,
    pub(super) declared: Declaration,
    compiled: Arc<Compiled>,
}

/// What is known of an object that facts are taken from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FactState {
    /// Etch may not or cannot read it, for this reason.
    Unread(String),
    /// The API server does not answer, for this reason, which may pass.
    Unanswered(String),
    /// There is no such object.
    Absent,
    /// Its present state.
    Found(Value),
}

/// Everything that is known.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) schemas: BTreeMap<String, Schema>,
    /// The objects that facts are taken from. One without an entry is not known yet.
    facts: BTreeMap<FactObject, FactState>,
    /// The names of a list under way.
    seen: BTreeSet<String>,
    pub(super) is_listed: bool,
}

impl State {
    /// Handles an event of an EmbeddedSchema.
    pub(super) fn schema_event(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Init => self.seen.clear(),
            Event::InitApply(object) => {
                self.seen.extend(object.metadata.name.clone());
                self.apply(object);
            }
            Event::InitDone => {
                let seen = std::mem::take(&mut self.seen);
                self.schemas.retain(|name, _| seen.contains(name));
                self.is_listed = true;
            }
            Event::Apply(object) => self.apply(object),
            Event::Delete(object) => {
                self.schemas.remove(object.metadata.name.as_deref().unwrap_or_default());
            }
        }
    }

    fn apply(&mut self, mut object: DynamicObject) {
        let (Some(name), Some(uid)) = (object.metadata.name, object.metadata.uid) else { return };
        let generation = object.metadata.generation.unwrap_or_default();
        let asked = object.metadata.annotations.and_then(|mut all| all.remove(RECHECK));
        let status = serde_json::from_value(object.data["status"].take()).unwrap_or_default();
        let spec = object.data["spec"].take();
        let before = self.schemas.remove(&name);
        // A new EmbeddedSchema of that name inherits nothing from the old one.
        let before = before.filter(|before| before.uid == uid);
        let mut schema = match before {
            Some(before) if before.spec == spec => Schema { generation, status, asked, ..before },
            before => {
                let (good, existing) = before.map_or((None, None), |before| (before.good, before.existing));
                let (good, problems) = match compiled(&spec) {
                    // An EmbeddedSchema has a spec. It is not read where it is nested too deeply.
                    _ if spec.is_null() => (good, vec![too_deep()]),
                    Ok((declared, compiled)) => (Some(Good { generation, declared, compiled }), Vec::new()),
                    Err(problems) => (good, problems),
                };
                Schema { uid, generation, status, existing, asked, spec, problems, good }
            }
        };
        if schema.good.is_none() {
            schema.good = remembered(&schema.status);
        }
        self.schemas.insert(name, schema);
    }

    /// Records what is known of an object that facts are taken from. What was known of it stands while it
    /// cannot be read.
    pub(super) fn fact(&mut self, object: FactObject, fact: FactState) {
        let is_unread = matches!(fact, FactState::Unread(_) | FactState::Unanswered(_));
        if !is_unread || !self.is_read(&object) {
            self.facts.insert(object, fact);
        }
    }

    /// The objects that facts are taken from. Others are forgotten.
    pub(super) fn fact_objects(&mut self) -> BTreeSet<FactObject> {
        let good = self.schemas.values().filter_map(|schema| schema.good.as_ref());
        let objects: BTreeSet<FactObject> =
            good.flat_map(|good| good.compiled.fact_objects().map(|(_, object)| object.clone())).collect();
        self.facts.retain(|object, _| objects.contains(object));
        objects
    }

    /// Whether everything is known that there is to know.
    pub(super) fn is_complete(&self) -> bool {
        self.is_listed && self.needed().all(|object| self.is_read(object))
    }

    /// Whether everything is known but what may not or cannot be read.
    pub(super) fn is_settled(&self) -> bool {
        let is_unread = |object| matches!(self.facts.get(object), Some(FactState::Unread(_)));
        self.is_listed && self.needed().all(|object| self.is_read(object) || is_unread(object))
    }

    /// The objects that facts are taken from.
    fn needed(&self) -> impl Iterator<Item = &FactObject> {
        let good = self.schemas.values().filter_map(|schema| schema.good.as_ref());
        good.flat_map(|good| good.compiled.fact_objects().map(|(_, object)| object))
    }

    /// What is to be served.
    pub(super) fn serving(&self) -> Schemas {
        let served = self.schemas.iter().filter_map(|(name, schema)| {
            let compiled = schema.good.as_ref()?.compiled.clone();
            let (facts, missing) = self.facts(&compiled);
            Some((name.clone(), Served { schema: compiled, facts, missing }))
        });
        served.collect()
    }

    /// The schemas that existing objects can be judged by, with all their facts.
    pub(super) fn checked_schemas(&self) -> Vec<CheckedSchema> {
        self.schemas.keys().filter_map(|name| self.checked_schema(name)).collect()
    }

    /// The one of this name.
    pub(super) fn checked_schema(&self, name: &str) -> Option<CheckedSchema> {
        let known = self.schemas.get(name).filter(|_| self.is_listed)?;
        let good = known.good.as_ref()?;
        let (facts, missing) = self.facts(&good.compiled);
        let (uid, generation, asked) = (known.uid.clone(), good.generation, known.asked.clone());
        let inputs = Inputs { uid, generation, asked, facts };
        let schema = good.compiled.clone();
        let restricted = good.declared.webhooks.as_ref().is_some_and(Webhooks::restricts);
        let persist = good.declared.existing == Some(OnExisting::Persist)
            && known.owners_lost(good.generation).is_none();
        let schema = || CheckedSchema { name: name.to_owned(), inputs, schema, persist, restricted };
        missing.is_empty().then(schema)
    }

    /// Handles the result of a check of existing objects; its time counts in any case if a user has asked
    /// for the check.
    pub(super) fn checked(
        &mut self,
        name: &str,
        inputs: &Inputs,
        mut found: ExistingObjects,
        is_asked: bool,
    ) {
        if let Some(schema) = self.schemas.get_mut(name).filter(|schema| schema.uid == inputs.uid) {
            if let Some(lost) = schema.owners_lost(found.observed_generation) {
                found.persisted = Some(lost.clone());
            }
            let before = schema.existing.take().or_else(|| schema.status.existing.clone());
            schema.existing = Some(match before {
                Some(before) if !is_asked => found.or_as_it_was(before),
                _ => found,
            });
        }
    }

    /// Forgets what was found of existing objects: another replica may have checked since.
    pub(super) fn forget_looks(&mut self) {
        self.schemas.values_mut().for_each(|schema| schema.existing = None);
    }

    /// The facts without a value, each with what keeps its object from being read; `None` if the schema is
    /// not served.
    pub(super) fn missing_facts(&self, name: &str) -> Option<Vec<String>> {
        let compiled = &self.schemas.get(name)?.good.as_ref()?.compiled;
        let (_, missing) = self.facts(compiled);
        let described = |fact: String| {
            let object = compiled.fact_objects().find(|(name, _)| *name == fact).map(|(_, object)| object);
            match object.and_then(|object| self.facts.get(object)) {
                Some(FactState::Unread(why) | FactState::Unanswered(why)) => format!("{fact} ({why})"),
                _ => fact,
            }
        };
        Some(missing.into_iter().map(described).collect())
    }

    /// The facts of a schema, and the names of those without a value.
    fn facts(&self, schema: &Compiled) -> (Value, Vec<String>) {
        let known = schema.fact_objects().filter_map(|(name, object)| match self.facts.get(object)? {
            FactState::Found(object) => Some((name.to_owned(), schema.fact_from(name, object)?)),
            FactState::Unread(_) | FactState::Unanswered(_) | FactState::Absent => None,
        });
        schema.facts_read(&known.collect(), &|object| self.is_read(object))
    }

    /// Whether it is known what an object gives, or that there is none.
    fn is_read(&self, object: &FactObject) -> bool {
        matches!(self.facts.get(object), Some(FactState::Absent | FactState::Found(_)))
    }
}

impl Schema {
    /// What a write by a generation has found that cost owners their fields. Nothing is written by that
    /// generation any more, and the status is the memory of it: it outlives this replica.
    fn owners_lost(&self, generation: i64) -> Option<&PersistedDefaults> {
        let existing = self.existing.as_ref().or(self.status.existing.as_ref())?;
        let persisted = existing.persisted.as_ref().filter(|persisted| persisted.reason == OWNERS_LOST)?;
        (existing.observed_generation == generation).then_some(persisted)
    }
}

/// The generation that was served before this replica started, if the present one cannot be.
fn remembered(status: &EmbeddedSchemaStatus) -> Option<Good> {
    let last = status.last_good.as_ref()?;
    let (declared, compiled) = compiled(&last.spec).ok()?;
    Some(Good { generation: last.generation, declared, compiled })
}

fn too_deep() -> Problem {
    Problem { field: "spec".to_owned(), problem: format!("nested more than {DEPTH} levels deep") }
}

fn compiled(spec: &Value) -> Result<(Declaration, Arc<Compiled>), Vec<Problem>> {
    let declared = Declaration::read(spec)?;
    let compiled = Compiled::new(&declared)?;
    Ok((declared, Arc::new(compiled)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(name: &str, uid: &str, generation: i64, path: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema",
            "metadata": { "name": name, "uid": uid, "generation": generation },
            "spec": {
                "targets": [{ "version": "v1", "resource": "things", "path": path }],
                "facts": [{ "name": "id", "path": ".id",
                            "object": { "version": "v1", "resource": "configs", "name": "it" } }],
            },
        }))
        .expect("an object")
    }

    #[test]
    fn the_last_good_one_is_served() {
        let mut state = State::default();
        state.schema_event(Event::Apply(schema("a", "1", 1, ".spec")));
        state.schema_event(Event::Apply(schema("a", "1", 2, "spec[")));
        let known = &state.schemas["a"];
        assert!(!known.problems.is_empty());
        assert_eq!((known.generation, known.good.as_ref().map(|good| good.generation)), (2, Some(1)));
        assert_eq!(state.serving().len(), 1);
        state.schema_event(Event::Apply(schema("a", "2", 1, "spec[")));
        assert!(state.serving().is_empty(), "another one of the same name");
        state.schema_event(Event::Apply(schema("a", "2", 2, ".spec")));
        assert!(state.schemas["a"].problems.is_empty() && state.serving().len() == 1);
    }

    #[test]
    fn a_replica_that_starts_serves_the_last_good_one_as_soon_as_the_status_has_it() {
        let mut state = State::default();
        let mut broken = schema("a", "1", 2, "spec[");
        state.schema_event(Event::Apply(broken.clone()));
        assert!(state.serving().is_empty());
        let spec = schema("a", "1", 1, ".spec").data["spec"].take();
        broken.data["status"] = json!({ "lastGood": { "generation": 1, "spec": spec } });
        state.schema_event(Event::Apply(broken));
        let known = &state.schemas["a"];
        assert_eq!((known.generation, known.good.as_ref().map(|good| good.generation)), (2, Some(1)));
        assert!(!known.problems.is_empty() && state.serving().len() == 1);
    }

    #[test]
    fn a_list_takes_away_what_it_does_not_have() {
        let mut state = State::default();
        state.schema_event(Event::Apply(schema("a", "1", 1, ".spec")));
        assert!(!state.is_listed);
        state.schema_event(Event::Init);
        state.schema_event(Event::InitApply(schema("b", "2", 1, ".spec")));
        assert_eq!(state.serving().len(), 2, "until the list is complete");
        state.schema_event(Event::InitDone);
        assert_eq!(state.serving().into_keys().collect::<Vec<_>>(), ["b"]);
        state.schema_event(Event::Delete(schema("b", "2", 1, ".spec")));
        assert!(state.serving().is_empty() && state.is_complete());
    }

    #[test]
    fn facts_are_those_of_the_objects_as_they_are_now() {
        let mut state = State::default();
        state.schema_event(Event::Init);
        state.schema_event(Event::InitApply(schema("a", "1", 1, ".spec")));
        state.schema_event(Event::InitDone);
        let object = state.fact_objects().pop_first().expect("one");
        assert!(!state.is_complete());
        assert_eq!(state.serving()["a"].missing, ["id"]);
        state.fact(object.clone(), FactState::Found(json!({ "id": "x" })));
        assert!(state.is_complete());
        assert_eq!(state.serving()["a"].facts, json!({ "id": "x" }));
        state.fact(object.clone(), FactState::Found(json!({ "id": "y" })));
        assert_eq!(state.serving()["a"].facts, json!({ "id": "y" }));
        state.fact(object, FactState::Absent);
        assert_eq!(state.serving()["a"].missing, ["id"]);
    }

    #[test]
    fn a_fallback_is_for_an_object_that_is_known_to_give_no_value() {
        let mut state = State::default();
        let mut with_fallback = schema("a", "1", 1, ".spec");
        with_fallback.data["spec"]["facts"][0]["fallback"] = json!("z");
        for event in [Event::Init, Event::InitApply(with_fallback), Event::InitDone] {
            state.schema_event(event);
        }
        let object = state.fact_objects().pop_first().expect("one");
        let missing = |state: &State| (state.serving()["a"].missing.clone(), state.missing_facts("a"));
        let of = |fact: &str| (vec!["id".to_owned()], Some(vec![fact.to_owned()]));
        assert_eq!(missing(&state), of("id"));
        assert!(!state.is_complete() && state.checked_schemas().is_empty());
        let unread = || FactState::Unread("the API server answered 500 to the list".to_owned());
        state.fact(object.clone(), unread());
        assert_eq!(missing(&state), of("id (the API server answered 500 to the list)"));
        assert!(!state.is_complete() && state.checked_schemas().is_empty());
        for (fact, value) in [
            (FactState::Absent, "z"),
            (FactState::Found(json!({})), "z"),
            (FactState::Found(json!({ "id": "x" })), "x"),
            (unread(), "x"),
        ] {
            state.fact(object.clone(), fact);
            assert_eq!(state.serving()["a"].facts, json!({ "id": value }));
            assert!(state.is_complete() && missing(&state).1 == Some(Vec::new()));
        }
    }
}
