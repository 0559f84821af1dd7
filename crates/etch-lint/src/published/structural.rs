//! A type as a structural schema, for code that works on schemas of CRDs: each reference is replaced by what
//! it refers to. Recursion ends: a type that contains itself may hold anything from there on.

use serde_json::{Map, Value};

use super::view::{View, composed};
use super::{Document, OpenApiError, TypeName};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::DEEPEST;

/// A type with more places than this is refused; those of Kubernetes have some thousands.
const MOST: usize = 1 << 18;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// What a schema of a CRD has as well, below or beside its structure.
const KEPT: [&str; 30] = [
    "type",
    "format",
    "nullable",
    "default",
    "enum",
    "required",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "additionalProperties",
];

impl Document {
    /// The schema of a type as a CRD would have it in `openAPIV3Schema`; `None` if the document does not
    /// describe it.
    ///
    /// # Errors
    /// References that lead nowhere or back to themselves, and a type without end.
    pub fn structural(&self, of: &TypeName) -> Result<Option<Json>, OpenApiError> {
        let Some((name, schema)) = self.schema_of(of) else { return Ok(None) };
        let mut expansion = Expansion { document: self, above: vec![name], left: MOST, depth: 0 };
        let view = self.view(schema)?;
        expansion.view(&view).map(|schema| Some(schema.into()))
    }

    /// The definition that declares a place of a type, and the place in it. Without references on the way
    /// that is the type itself.
    pub fn declares(&self, of: &TypeName, place: &Path) -> Option<(&str, Path)> {
        let (mut name, schema) = self.schema_of(of)?;
        let (mut view, mut within) = (self.view(schema).ok()?, Path::root());
        for step in place.steps() {
            // The keywords beside a reference are in the definition around it, so the name changes only
            // below.
            if let Some(named) = view.name {
                (name, within) = (named, Path::root());
            }
            let below = match step {
                Step::Field(field) | Step::Key(field) => view.property(field).or_else(|| view.values()),
                Step::Items | Step::Index(_) => view.items(),
                Step::Values => view.values(),
            };
            within.push(step.clone());
            view = self.view(below?).ok()?;
        }
        Some((name, within))
    }
}

struct Expansion<'d> {
    document: &'d Document,
    /// The definitions that the place is in.
    above: Vec<&'d str>,
    left: usize,
    depth: usize,
}

impl<'d> Expansion<'d> {
    fn schema(&mut self, schema: &'d Value) -> Result<Value, OpenApiError> {
        self.left = self.left.checked_sub(1).ok_or(OpenApiError::TooLarge)?;
        if self.depth == DEEPEST {
            return Err(OpenApiError::TooLarge);
        }
        self.depth += 1;
        let expanded = self.within(schema);
        self.depth -= 1;
        expanded
    }

    fn within(&mut self, schema: &'d Value) -> Result<Value, OpenApiError> {
        let view = self.document.view(schema)?;
        let Some(name) = view.name else { return self.view(&view) };
        if self.above.contains(&name) {
            let mut any = self.keywords(&view);
            any.retain(|name, _| matches!(name.as_str(), "type" | "nullable" | "default"));
            any.insert(PRESERVE.to_owned(), Value::Bool(true));
            return Ok(any.into());
        }
        self.above.push(name);
        let expanded = self.view(&view);
        self.above.pop();
        expanded
    }

    fn view(&mut self, view: &View<'d>) -> Result<Value, OpenApiError> {
        let mut keywords = self.keywords(view);
        let mut properties = Map::new();
        for (step, schema) in view.below() {
            let expanded = self.schema(schema)?;
            match step {
                Step::Items => drop(keywords.insert("items".to_owned(), expanded)),
                Step::Field(name) => drop(properties.insert(name, expanded)),
                _ => drop(keywords.insert("additionalProperties".to_owned(), expanded)),
            }
        }
        // A type that declares nothing, such as `RawExtension`, may hold anything.
        let is_open = view.properties().is_none()
            && view.values().is_none()
            && keywords.get("type").is_some_and(|kind| kind == "object");
        if view.keeps_others() || is_open {
            keywords.remove("additionalProperties");
            keywords.insert(PRESERVE.to_owned(), Value::Bool(true));
        }
        if !properties.is_empty() {
            keywords.insert("properties".to_owned(), properties.into());
        }
        Ok(keywords.into())
    }

    /// The keywords of a place beside its structure, the nearest first.
    fn keywords(&self, view: &View<'d>) -> Map<String, Value> {
        let mut all = Map::new();
        for part in view.parts() {
            for name in KEPT {
                let Some(value) = part.get(name).filter(|_| !all.contains_key(name)) else { continue };
                let is_structure = name == "additionalProperties" && value.is_object();
                let is_composed = name == "allOf" && composed(part).next().is_some();
                // A clause that refers to something restricts values by a definition, which no schema of a
                // CRD can.
                if !is_structure && !is_composed && !has_reference(name, value) {
                    all.insert(name.to_owned(), value.clone());
                }
            }
        }
        all
    }
}

/// Whether a clause refers to a definition.
fn has_reference(keyword: &str, value: &Value) -> bool {
    let mut found = false;
    let mut look = |schema| super::view::references(schema, &mut |_| found = true);
    match value {
        Value::Array(clauses) if keyword.ends_with("Of") => clauses.iter().for_each(look),
        clause if keyword == "not" => look(clause),
        _ => {}
    }
    found
}
