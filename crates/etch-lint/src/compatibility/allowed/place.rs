//! The values that a schema allowed at a place.

use serde_json::{Value, json};

use crate::compatibility::keywords::{
    ANYTHING, META, NOTHING, is_set, keeps_unknown, list, present, property, text, values,
};
use kube_crd_validation::Validator;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::Step;
use kube_structural_schema::schema::Schema;

/// The values that were allowed at a place, as the new schema reads them.
#[derive(Clone)]
pub(crate) struct Allowed<'a> {
    /// What all of them satisfy. The first one is the schema outside of clauses.
    pub(super) held: Vec<&'a Value>,
    /// What none of them satisfies.
    pub(super) denied: Vec<&'a Value>,
    /// The new schema outside of clauses.
    pub(super) now: &'a Value,
    /// Whether no object has a value there.
    pub(super) is_absent: bool,
    /// Whether the values are resources.
    pub(super) is_resource: bool,
    /// Whether all fields are kept, as those of `metadata`.
    pub(super) is_open: bool,
    /// How many clauses are assumed.
    pub(super) depth: usize,
}

impl<'a> Allowed<'a> {
    /// Whole objects.
    pub(crate) fn root(old: &'a Value, now: &'a Value) -> Self {
        let mut root = Self {
            held: Vec::new(),
            denied: Vec::new(),
            now,
            is_absent: false,
            is_resource: true,
            is_open: false,
            depth: 0,
        };
        root.hold(old);
        root
    }

    /// Adds what a schema says, and the clauses that hold with it.
    pub(super) fn hold(&mut self, schema: &'a Value) {
        self.held.push(schema);
        let only = ["anyOf", "oneOf"].into_iter().map(|keyword| list(schema, keyword));
        for clause in list(schema, "allOf").iter().chain(only.filter(|clauses| clauses.len() == 1).flatten())
        {
            self.hold(clause);
        }
        self.denied.extend(present(schema, "not"));
    }

    /// Those that satisfy one of some clauses, and if only one may hold, none of the others.
    pub(super) fn in_case(&self, clauses: &'a [Value], index: usize, is_only: bool) -> Self {
        let mut case = Self { depth: self.depth + 1, ..self.clone() };
        case.hold(&clauses[index]);
        let others = clauses.iter().enumerate().filter(|(other, _)| is_only && *other != index);
        case.denied.extend(others.map(|(_, clause)| clause));
        case
    }

    /// The values at a place below.
    pub(crate) fn child(&self, step: &Step) -> Self {
        let below = |schema: &'a Value| match step {
            Step::Field(name) | Step::Key(name) => property(schema, name).or_else(|| values(schema)),
            Step::Items | Step::Index(_) => present(schema, "items"),
            Step::Values => values(schema),
        };
        let is_kept = |schema| {
            let is_of_resource = matches!(step, Step::Field(name) if META.contains(&name.as_str()));
            keeps_unknown(schema) || self.is_open || self.is_resource && is_of_resource
        };
        let declared = |schema| below(schema).or_else(|| is_kept(schema).then_some(&*ANYTHING));
        let (before, now) = (declared(self.held[0]), declared(self.now));
        let is_embedded = |schema: Option<&Value>| {
            schema.is_some_and(|schema| is_set(schema, "x-kubernetes-embedded-resource"))
        };
        let mut child = Self {
            held: Vec::new(),
            denied: Vec::new(),
            now: now.unwrap_or(&NOTHING),
            is_absent: self.is_absent || before.is_none() || now.is_none(),
            is_resource: is_embedded(before) && is_embedded(now),
            is_open: self.is_open || self.is_resource && *step == Step::Field("metadata".to_owned()),
            depth: self.depth,
        };
        child.hold(before.unwrap_or(&NOTHING));
        self.held[1..].iter().filter_map(|&schema| below(schema)).for_each(|schema| child.hold(schema));
        child
    }

    pub(super) fn field(&self, name: &str) -> Self {
        self.child(&Step::Field(name.to_owned()))
    }

    /// Whether no value has a field.
    pub(super) fn lacks(&self, name: &str) -> bool {
        let field = self.field(name);
        field.is_absent && present(field.now, "default").is_none()
    }

    pub(super) fn loses_nulls(&self) -> bool {
        is_set(self.held[0], "nullable") && !is_set(self.now, "nullable")
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

/// Whether a value satisfies a schema; `None` if the schema cannot be read.
pub(super) fn fits(value: &Value, schema: &Value) -> Option<bool> {
    const FIELD: &str = "value";
    let document = Json::from(json!({ "type": "object", "properties": { FIELD: schema } }));
    let schema = Schema::parse(&document).ok()?;
    Some(Validator::new(&schema).object(&json!({ FIELD: value })).is_empty())
}

pub(super) fn names(schema: &Value) -> impl Iterator<Item = &str> {
    list(schema, "required").iter().filter_map(Value::as_str)
}
