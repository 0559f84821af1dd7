//! The facts that a schema relies on: from the objects that hold them, and with their fallbacks.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::compile::{Compiled, CompiledFact, Taken};
use super::place::Location;
use super::scope::Bound;
use super::spec::{Fact, FactObject, Target};
use super::webhooks::is_asked_about;
use etch_core::crd::Resource;

impl Compiled {
    /// The objects that facts are taken from, each with the fact's name.
    pub fn fact_objects(&self) -> impl Iterator<Item = (&str, &FactObject)> {
        let facts = self.facts.iter().map(|fact| &fact.declared);
        facts.filter_map(|Fact { name, object, .. }| Some((name.as_str(), object.as_ref()?)))
    }

    /// The resources that hold extensions and that API servers send requests for, each once.
    pub fn resources(&self) -> BTreeSet<Resource> {
        let declared = self.targets.iter().map(|target| &target.declared);
        let declared = declared.filter(|target| is_asked_about(&target.group));
        let resource = |target: &Target| Resource {
            group: target.group.clone(),
            version: target.version.clone(),
            plural: target.resource.clone(),
        };
        declared.map(resource).collect()
    }

    /// The value that a fact takes from its object; `None` if the object has none, or there is no such fact.
    pub fn fact_from(&self, name: &str, object: &Value) -> Option<Value> {
        let fact = self.facts.iter().find(|fact| fact.declared.name == name)?;
        let found = match fact.taken.as_ref()? {
            Taken::Place(place) => {
                place.find(object, &Location::new()).first().map(|(_, value)| (*value).clone())
            }
            Taken::Expression(source) => {
                let bound = Bound { object: Some(object), ..Bound::default() };
                let scope = &self.scopes[source.scope];
                source.expression.value(scope.variables(), &bound.values()).0.ok().flatten()
            }
        };
        found.filter(|value| !value.is_null())
    }

    /// All facts, from those that are known: constants and fallbacks are added, and undeclared ones are left
    /// out. And the names of those without a value: without them the schema cannot be applied.
    pub fn facts(&self, known: &Map<String, Value>) -> (Value, Vec<String>) {
        self.facts_read(known, &|_| true)
    }

    /// The same where the objects of some facts have not been read. These facts have no value: a fallback is
    /// for an object that is known to give none.
    pub fn facts_read(
        &self,
        known: &Map<String, Value>,
        is_read: &dyn Fn(&FactObject) -> bool,
    ) -> (Value, Vec<String>) {
        let (mut facts, mut missing) = (Map::new(), Vec::new());
        for CompiledFact { declared, .. } in &self.facts {
            let value = known.get(&declared.name).filter(|value| !value.is_null());
            let fallback =
                declared.fallback.as_ref().filter(|_| declared.object.as_ref().is_none_or(is_read));
            let value = value.or(declared.constant.as_ref()).or(fallback);
            match value {
                Some(value) => drop(facts.insert(declared.name.clone(), value.clone())),
                None => missing.push(declared.name.clone()),
            }
        }
        (Value::Object(facts), missing)
    }
}
