//! One schema of a document, with the references that it is made of followed.
//! It follows no more than that: schemas such as that of JSON schemas contain themselves.
//!
//! A reference stands alone, has siblings, or is a clause of `allOf` beside keywords of this place only, such
//! as its default. What stands nearer counts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Document, OpenApiError};
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::DEEPEST;

/// A schema that is made of more parts than this is taken for endless; real ones are made of two.
const MOST: usize = 1 << 10;

/// A schema as a place sees it.
#[derive(Clone, Debug)]
pub(super) struct View<'d> {
    /// The schemas of the place: first what stands there, then what that refers to.
    parts: Vec<&'d Value>,
    /// The definition that it refers to.
    pub(super) name: Option<&'d str>,
}

/// A property, the items or the values of a map.
pub(super) type Below<'d> = (Step, &'d Value);

impl Document {
    /// The schema of a place, with its references followed.
    pub(super) fn view<'d>(&'d self, here: &'d Value) -> Result<View<'d>, OpenApiError> {
        let mut view = View { parts: Vec::new(), name: None };
        self.gather(here, &mut Vec::new(), &mut view)?;
        Ok(view)
    }

    fn gather<'d>(
        &'d self,
        schema: &'d Value,
        above: &mut Vec<&'d str>,
        view: &mut View<'d>,
    ) -> Result<(), OpenApiError> {
        view.parts.push(schema);
        if let Some(reference) = reference(schema) {
            let (name, target) = self.referred(reference)?;
            if above.contains(&name) || view.parts.len() > MOST {
                return Err(OpenApiError::Circular(reference.to_owned()));
            }
            view.name = view.name.or(Some(name));
            above.push(name);
            self.gather(target, above, view)?;
            above.pop();
        }
        composed(schema).try_for_each(|clause| self.gather(clause, above, view))
    }

    /// The definition that a reference names.
    fn referred<'d>(&'d self, reference: &'d str) -> Result<(&'d str, &'d Value), OpenApiError> {
        let name = reference.strip_prefix("#/components/schemas/");
        let found = name.and_then(|name| Some((name, self.definition(name)?)));
        found.ok_or_else(|| OpenApiError::Dangling(reference.to_owned()))
    }
}

/// What a schema refers to. A property may be called `$ref`, and is not a text.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)
}

/// The clauses of `allOf` where one of them refers to something: they make up the schema. Those of a CRD
/// restrict values and refer to nothing.
pub(super) fn composed(schema: &Value) -> impl Iterator<Item = &Value> {
    let clauses = schema.get("allOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let refers = |clause: &Value| reference(clause).is_some() || clause.get("allOf").is_some();
    clauses.iter().filter(move |_| clauses.iter().any(refers))
}

impl<'d> View<'d> {
    /// The schemas of the place, the nearest first.
    pub(super) fn parts(&self) -> &[&'d Value] {
        &self.parts
    }

    /// The default: that of the place, or of what it refers to. Null is none.
    pub(super) fn default(&self) -> Option<&'d Value> {
        self.keyword("default").filter(|default| !default.is_null())
    }

    /// Whether null is a value.
    pub(super) fn is_nullable(&self) -> bool {
        self.says("nullable")
    }

    /// The schema of items.
    pub(super) fn items(&self) -> Option<&'d Value> {
        self.keyword("items")
    }

    /// The schemas of the declared properties; `None` if none are declared, so that there may be any.
    pub(super) fn properties(&self) -> Option<BTreeMap<&'d str, &'d Value>> {
        let declared = |part: &&'d Value| part.get("properties").and_then(Value::as_object);
        let mut all: Option<BTreeMap<_, _>> = None;
        for properties in self.parts.iter().filter_map(declared) {
            let all = all.get_or_insert_default();
            for (name, schema) in properties {
                all.entry(name.as_str()).or_insert(schema);
            }
        }
        all
    }

    /// The schema of a property.
    pub(super) fn property(&self, name: &str) -> Option<&'d Value> {
        self.parts.iter().find_map(|part| part.get("properties")?.get(name))
    }

    /// The schema of the values of a map.
    pub(super) fn values(&self) -> Option<&'d Value> {
        self.keyword("additionalProperties").filter(|schema| schema.is_object())
    }

    /// Whether fields that are not declared are kept unchanged.
    pub(super) fn keeps_others(&self) -> bool {
        self.says("x-kubernetes-preserve-unknown-fields")
            || self.keyword("additionalProperties") == Some(&Value::Bool(true))
    }

    /// Whether a property has to be there.
    pub(super) fn requires(&self, name: &str) -> bool {
        let names = self.keyword("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    }

    /// Everything below that has a schema.
    pub(super) fn below(&self) -> impl Iterator<Item = Below<'d>> {
        let properties = self.properties().unwrap_or_default().into_iter();
        let properties = properties.map(|(name, schema)| (Step::Field(name.to_owned()), schema));
        let items = self.items().filter(|schema| schema.is_object()).map(|schema| (Step::Items, schema));
        properties.chain(items).chain(self.values().map(|schema| (Step::Values, schema)))
    }

    fn says(&self, name: &str) -> bool {
        self.keyword(name) == Some(&Value::Bool(true))
    }

    fn keyword(&self, name: &str) -> Option<&'d Value> {
        self.parts.iter().find_map(|part| part.get(name))
    }
}

/// The schema of what a step leads to.
pub(crate) fn child<'d>(schema: &'d Value, step: &Step) -> Option<&'d Value> {
    let values = || schema.get("additionalProperties");
    match step {
        Step::Field(name) | Step::Key(name) => {
            schema.get("properties").and_then(|all| all.get(name)).or_else(values)
        }
        Step::Items | Step::Index(_) => schema.get("items"),
        Step::Values => values(),
    }
}

/// The defaults of a schema by their places, without following references, so that those of a definition are
/// there once.
pub(super) fn own_defaults(schema: &Value) -> BTreeMap<Path, &Value> {
    let mut all = BTreeMap::new();
    each_default(schema, &mut Path::root(), &mut |path, default| {
        all.insert(path.clone(), default);
    });
    all
}

fn each_default<'d>(schema: &'d Value, at: &mut Path, visit: &mut dyn FnMut(&Path, &'d Value)) {
    // The places of a chain of nested defaults grow with the square of its depth.
    if at.steps().len() > DEEPEST {
        return;
    }
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        visit(at, default);
    }
    let mut down = |step: Step, schema: &'d Value, at: &mut Path| {
        at.push(step);
        each_default(schema, at, visit);
        at.pop();
    };
    let object = |name: &str| schema.get(name).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    for (name, property) in object("properties") {
        down(Step::Field(name.clone()), property, at);
    }
    if let Some(items) = schema.get("items") {
        down(Step::Items, items, at);
    }
    if let Some(values) = schema.get("additionalProperties") {
        down(Step::Values, values, at);
    }
    for clause in composed(schema).filter(|clause| reference(clause).is_none()) {
        each_default(clause, at, visit);
    }
}

/// Visits the definitions that a schema refers to, at any place.
pub(super) fn references<'d>(schema: &'d Value, found: &mut dyn FnMut(&'d str)) {
    let name = reference(schema).and_then(|reference| reference.strip_prefix("#/components/schemas/"));
    name.into_iter().for_each(&mut *found);
    for keyword in ["items", "additionalProperties", "not"] {
        schema.get(keyword).into_iter().for_each(|schema| references(schema, found));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let clauses = schema.get(keyword).and_then(Value::as_array);
        clauses.into_iter().flatten().for_each(|schema| references(schema, found));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::values).for_each(|schema| references(schema, found));
}
