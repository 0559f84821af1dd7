//! The schemas of one place, outside of clauses.

use serde_json::{Value, json};

use crate::compatibility::keywords::{is_set, list, present, text};
use kube_crd_validation::Validator;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::schema::Schema;

/// The values that were allowed at a place.
pub(crate) struct Allowed<'a> {
    /// What all of them satisfy. The first one is the old schema.
    pub(super) held: Vec<&'a Value>,
    now: &'a Value,
}

impl<'a> Allowed<'a> {
    pub(crate) fn at(old: &'a Value, now: &'a Value) -> Self {
        let mut allowed = Self { held: Vec::new(), now };
        allowed.hold(old);
        allowed
    }

    /// Adds what a schema says, and the clauses that hold with it.
    fn hold(&mut self, schema: &'a Value) {
        self.held.push(schema);
        let only = ["anyOf", "oneOf"].into_iter().map(|keyword| list(schema, keyword));
        for clause in list(schema, "allOf").iter().chain(only.filter(|clauses| clauses.len() == 1).flatten())
        {
            self.hold(clause);
        }
    }

    /// A default that objects get though the old schema did not give it.
    pub(super) fn new_default(&self) -> Option<&'a Value> {
        let old = present(self.held[0], "default");
        present(self.now, "default").filter(|new| !old.is_some_and(|old| same(old, new)))
    }

    /// The type of the values; `None` if there may be several.
    pub(super) fn kind(&self) -> Option<&'a str> {
        let is_any = is_set(self.held[0], "x-kubernetes-int-or-string");
        Some(text(self.held[0], "type")).filter(|kind| !is_any && !kind.is_empty())
    }
}

/// Whether a value satisfies a schema, its rules left out; `None` if the schema cannot be read.
pub(super) fn fits(value: &Value, schema: &Value) -> Option<bool> {
    const FIELD: &str = "value";
    let mut schema = schema.clone();
    // A rule may allow on an update what it refuses at first.
    schema.as_object_mut()?.remove("x-kubernetes-validations");
    let document = Json::from(json!({ "type": "object", "properties": { FIELD: schema } }));
    let schema = Schema::parse(&document).ok()?;
    Some(Validator::new(&schema).object(&json!({ FIELD: value })).is_empty())
}
