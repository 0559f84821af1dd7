//! What is known about EmbeddedSchemas and the objects of their facts, and what to serve by it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::core::DynamicObject;
use serde_json::{Map, Value};

use crate::admission_review::Served;
use crate::api::{EmbeddedSchemaStatus, ExistingObjects, PersistedDefaults};
use crate::checked_schema::{CheckedSchema, Inputs};
use crate::tally::OWNERS_LOST;
use crate::{Compiled, Declaration, FactObject, OnExisting, Problem, Webhooks};
use kube_structural_schema::json::DEPTH;

/// Schemas that requests are answered by, by the names of their `EmbeddedSchema`.
pub type Schemas = BTreeMap<String, Served>;

/// A change of its value has existing objects checked once more.
const RECHECK: &str = "etch-operator.io/recheck";

/// An EmbeddedSchema as it was read.
#[derive(Debug)]
pub struct Schema {
    /// Its uid.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// The status that it has.
    pub status: EmbeddedSchemaStatus,
    /// What was found of existing objects since this replica leads.
    pub existing: Option<ExistingObjects>,
    /// Whether the API server served none of its targets then.
    pub is_unserved: bool,
    /// The value of its annotation [`RECHECK`].
    asked: Option<String>,
    /// What was declared, as it was read.
    spec: Value,
    /// What keeps that from being served.
    pub problems: Vec<Problem>,
    /// The last generation that can be served.
    pub good: Option<Good>,
}

/// A generation that can be served.
#[derive(Debug)]
pub struct Good {
    /// Its number.
    pub generation: i64,
    /// What it declares.
    pub declared: Declaration,
    compiled: Arc<Compiled>,
    /// The values of its facts, by the object that they were taken from.
    taken: BTreeMap<FactObject, Taken>,
}

/// The values of facts from one state of an object.
#[derive(Clone, Debug)]
struct Taken {
    from: Arc<Value>,
    values: Arc<Map<String, Value>>,
}

/// The facts that a schema is to take from an object. The expressions of an author may cost some time: they
/// are evaluated without the lock, once for each state of the object.
#[derive(Clone, Debug)]
pub struct Taking {
    schema: String,
    compiled: Arc<Compiled>,
    object: FactObject,
    from: Arc<Value>,
}

impl Taking {
    /// Takes them.
    pub fn values(&self) -> Map<String, Value> {
        let of_object = self.compiled.fact_objects().filter(|(_, object)| **object == self.object);
        of_object
            .filter_map(|(name, _)| Some((name.to_owned(), self.compiled.fact_from(name, &self.from)?)))
            .collect()
    }

    /// Whether it is about the same facts of the same object, in whatever state that is.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.compiled, &other.compiled) && self.object == other.object
    }
}

/// What is known of an object that facts are taken from.
#[derive(Clone, Debug, PartialEq)]
pub enum FactState {
    /// Etch may not or cannot read it, for this reason.
    Unread(String),
    /// The API server does not answer, for this reason, which may pass.
    Unanswered(String),
    /// There is no such object.
    Absent,
    /// There are objects of that name in namespaces, and no namespace is declared: none of them counts.
    Namespaced(String),
    /// Its present state.
    Found(Arc<Value>),
}

impl FactState {
    /// What an object shows that the API server has found. Without a namespace, any tenant's object of that
    /// name would be found.
    pub fn of(declared: &FactObject, found: DynamicObject) -> Self {
        if found.metadata.namespace != declared.namespace {
            let resource = &declared.resource;
            return Self::Namespaced(format!("{resource} is a namespaced resource: set object.namespace"));
        }
        serde_json::to_value(found).map_or_else(
            |_| Self::Unread("Etch cannot read the object".to_owned()),
            |found| Self::Found(Arc::new(found)),
        )
    }
}

/// Everything that is known.
#[derive(Debug, Default)]
pub struct State {
    /// The EmbeddedSchemas, by name.
    pub schemas: BTreeMap<String, Schema>,
    /// The objects that facts are taken from. One without an entry is not known yet.
    facts: BTreeMap<FactObject, FactState>,
    /// The names of a list under way.
    seen: Option<BTreeSet<String>>,
    /// Whether all EmbeddedSchemas have been listed once.
    pub is_listed: bool,
}

impl State {
    /// A list of all EmbeddedSchemas begins.
    pub fn list_schemas(&mut self) {
        self.seen = Some(BTreeSet::new());
    }

    /// That list has ended: a schema that it has not shown is gone.
    pub fn schemas_listed(&mut self) {
        let seen = self.seen.take().unwrap_or_default();
        self.schemas.retain(|name, _| seen.contains(name));
        self.is_listed = true;
    }

    /// An EmbeddedSchema is gone.
    pub fn schema_deleted(&mut self, name: &str) {
        self.schemas.remove(name);
    }

    /// An EmbeddedSchema is there.
    pub fn schema_applied(&mut self, mut object: DynamicObject) {
        if let Some(seen) = &mut self.seen {
            seen.extend(object.metadata.name.clone());
        }
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
                    Ok((declared, compiled)) => {
                        let before = good.filter(|before| before.declared.facts == declared.facts);
                        let taken = before.map(|before| before.taken).unwrap_or_default();
                        (Some(Good { generation, declared, compiled, taken }), Vec::new())
                    }
                    Err(problems) => (good, problems),
                };
                Schema { uid, generation, status, existing, is_unserved: false, asked, spec, problems, good }
            }
        };
        if schema.good.is_none() {
            schema.good = remembered(&schema.status, generation);
        }
        self.schemas.insert(name, schema);
    }

    /// Records what is known of an object that facts are taken from. What was known of it stands while it
    /// cannot be read.
    pub fn fact(&mut self, object: FactObject, fact: FactState) {
        let is_unread = matches!(fact, FactState::Unread(_) | FactState::Unanswered(_));
        if is_unread && self.is_read(&object) || self.facts.get(&object) == Some(&fact) {
            return;
        }
        if !matches!(fact, FactState::Found(_)) {
            let good = self.schemas.values_mut().filter_map(|schema| schema.good.as_mut());
            good.for_each(|good| drop(good.taken.remove(&object)));
        }
        self.facts.insert(object, fact);
    }

    /// The facts that are to be taken from objects as they are now.
    pub fn takings(&self) -> Vec<Taking> {
        let good = self.schemas.iter().filter_map(|(name, schema)| Some((name, schema.good.as_ref()?)));
        let takings = good.flat_map(|(name, good)| {
            let objects: BTreeSet<&FactObject> =
                good.compiled.fact_objects().map(|(_, object)| object).collect();
            objects.into_iter().filter_map(|object| {
                let Some(FactState::Found(from)) = self.facts.get(object) else { return None };
                let is_taken = |taken: &Taken| Arc::ptr_eq(&taken.from, from);
                (!good.taken.get(object).is_some_and(is_taken)).then(|| Taking {
                    schema: name.clone(),
                    compiled: good.compiled.clone(),
                    object: object.clone(),
                    from: from.clone(),
                })
            })
        });
        takings.collect()
    }

    /// Records what was taken, unless the schema or the object is another one by now. A newer state of the
    /// object is no reason to discard it: the object may change faster than its facts can be taken.
    pub fn taken(&mut self, taking: Taking, values: Map<String, Value>) {
        let Taking { schema, compiled, object, from } = taking;
        let good = self.schemas.get_mut(&schema).and_then(|schema| schema.good.as_mut());
        let good = good.filter(|good| Arc::ptr_eq(&good.compiled, &compiled));
        if let (Some(good), Some(FactState::Found(_))) = (good, self.facts.get(&object)) {
            good.taken.insert(object, Taken { from, values: Arc::new(values) });
        }
    }

    /// The objects that facts are taken from. Others are forgotten.
    pub fn fact_objects(&mut self) -> BTreeSet<FactObject> {
        let good = self.schemas.values().filter_map(|schema| schema.good.as_ref());
        let objects: BTreeSet<FactObject> =
            good.flat_map(|good| good.compiled.fact_objects().map(|(_, object)| object.clone())).collect();
        self.facts.retain(|object, _| objects.contains(object));
        objects
    }

    /// Whether everything is known that there is to know.
    pub fn is_complete(&self) -> bool {
        self.is_listed && self.needed().all(|(good, object)| self.is_known(good, object))
    }

    /// Whether everything is known but what may not or cannot be read.
    pub fn is_settled(&self) -> bool {
        let is_unread =
            |object| matches!(self.facts.get(object), Some(FactState::Unread(_) | FactState::Namespaced(_)));
        self.is_listed && self.needed().all(|(good, object)| self.is_known(good, object) || is_unread(object))
    }

    /// The objects that facts are taken from, by each schema.
    fn needed(&self) -> impl Iterator<Item = (&Good, &FactObject)> {
        let good = self.schemas.values().filter_map(|schema| schema.good.as_ref());
        good.flat_map(|good| good.compiled.fact_objects().map(move |(_, object)| (good, object)))
    }

    /// What is to be served, where `before` is served now. A schema whose facts are still to be taken stays
    /// as it was: it would not be applied.
    pub fn serving(&self, before: &Schemas) -> Schemas {
        let served = self.schemas.iter().filter_map(|(name, schema)| {
            let good = schema.good.as_ref()?;
            let is_taking = |(_, object): (&str, &FactObject)| {
                matches!(self.facts.get(object), Some(FactState::Found(_)))
                    && !good.taken.contains_key(object)
            };
            let before = before.get(name).filter(|_| good.compiled.fact_objects().any(is_taking));
            let now = || {
                let (facts, missing) = self.facts(good);
                Served { schema: good.compiled.clone(), facts, missing }
            };
            Some((name.clone(), before.cloned().unwrap_or_else(now)))
        });
        served.collect()
    }

    /// The schemas that existing objects can be judged by, with all their facts.
    pub fn checked_schemas(&self) -> Vec<CheckedSchema> {
        self.schemas.keys().filter_map(|name| self.checked_schema(name)).collect()
    }

    /// The one of this name.
    pub fn checked_schema(&self, name: &str) -> Option<CheckedSchema> {
        let known = self.schemas.get(name).filter(|_| self.is_listed)?;
        let good = known.good.as_ref()?;
        let (facts, missing) = self.facts(good);
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
    pub fn checked(
        &mut self,
        name: &str,
        inputs: &Inputs,
        mut found: ExistingObjects,
        is_asked: bool,
        is_unserved: bool,
    ) {
        if let Some(schema) = self.schemas.get_mut(name).filter(|schema| schema.uid == inputs.uid) {
            schema.is_unserved = is_unserved;
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
    pub fn forget_looks(&mut self) {
        self.schemas.values_mut().for_each(|schema| schema.existing = None);
    }

    /// The facts without a value, each with what keeps its object from being read; `None` if the schema is
    /// not served.
    pub fn missing_facts(&self, name: &str) -> Option<Vec<String>> {
        let good = self.schemas.get(name)?.good.as_ref()?;
        let (_, missing) = self.facts(good);
        let described = |fact: String| {
            let mut objects = good.compiled.fact_objects();
            let object = objects.find(|(name, _)| *name == fact).map(|(_, object)| object);
            match object.and_then(|object| self.facts.get(object).zip(Some(object))) {
                Some((
                    FactState::Unread(why) | FactState::Unanswered(why) | FactState::Namespaced(why),
                    _,
                )) => format!("{fact} ({why})"),
                Some((FactState::Found(_), object)) if !good.taken.contains_key(object) => {
                    format!("{fact} (its expression is being evaluated)")
                }
                _ => fact,
            }
        };
        Some(missing.into_iter().map(described).collect())
    }

    /// The facts of a schema, and the names of those without a value.
    fn facts(&self, good: &Good) -> (Value, Vec<String>) {
        let known = good.compiled.fact_objects().filter_map(|(name, object)| {
            let value = good.taken.get(object)?.values.get(name)?;
            Some((name.to_owned(), value.clone()))
        });
        good.compiled.facts_read(&known.collect(), &|object| self.is_known(good, object))
    }

    /// Whether it is known what an object gives a schema, or that there is none.
    fn is_known(&self, good: &Good, object: &FactObject) -> bool {
        match self.facts.get(object) {
            Some(FactState::Found(_)) => good.taken.contains_key(object),
            known => known == Some(&FactState::Absent),
        }
    }

    /// Whether it is known what an object is, or that there is none.
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

/// The generation that was served before this replica started, if the present one cannot be. One that is not
/// earlier is that of another object, such as of a restored one.
fn remembered(status: &EmbeddedSchemaStatus, generation: i64) -> Option<Good> {
    let last = status.last_good.as_ref().filter(|last| last.generation < generation)?;
    let (declared, compiled) = compiled(&last.spec).ok()?;
    Some(Good { generation: last.generation, declared, compiled, taken: BTreeMap::new() })
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
mod tests;
