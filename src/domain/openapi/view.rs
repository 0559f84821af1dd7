//! One schema of a document, with the reference that it consists of followed.
//! It must not follow more than that: schemas such as that of JSON schemas contain themselves.
//!
//! A reference stands alone, or in an `allOf` of one beside what is said of this place only, such as its default.

use serde_json::{Map, Value};

use super::{Document, OpenApiError};

/// A schema as a place sees it.
#[derive(Clone, Copy)]
pub(super) struct View<'d> {
    /// What stands at the place itself.
    here: &'d Value,
    /// What that refers to; the same where it refers to nothing.
    target: &'d Value,
    /// The name of the target.
    pub(super) name: Option<&'d str>,
}

/// What is known of an object's fields.
#[derive(Clone, Copy)]
pub(super) enum Fields<'d> {
    /// These, and any other with a schema of its own if there is one.
    Known { properties: Option<&'d Map<String, Value>>, others: Option<&'d Value> },
    /// Nothing: any field is kept as it is.
    Any,
}

impl Document {
    /// The schema of a place, with its references followed.
    pub(super) fn view<'d>(&'d self, here: &'d Value) -> Result<View<'d>, OpenApiError> {
        let mut view = View { here, target: here, name: None };
        let mut seen: Vec<&str> = Vec::new();
        while let Some(reference) = reference(view.target) {
            let name = reference.strip_prefix("#/components/schemas/");
            let found = name.and_then(|name| Some((name, self.schemas()?.get(name)?)));
            let (name, target) = found.ok_or_else(|| OpenApiError::Dangling(reference.to_owned()))?;
            if seen.contains(&name) {
                return Err(OpenApiError::Circular(reference.to_owned()));
            }
            seen.push(name);
            view = View { here, target, name: Some(name) };
        }
        Ok(view)
    }
}

fn reference(schema: &Value) -> Option<&str> {
    let alone = schema.get("$ref");
    let wrapped = || match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only.get("$ref"),
        _ => None,
    };
    alone.or_else(wrapped).and_then(Value::as_str)
}

impl<'d> View<'d> {
    /// The default: that of the place, or of what it refers to. Null is none.
    pub(super) fn default(&self) -> Option<&'d Value> {
        self.keyword("default").filter(|default| !default.is_null())
    }

    /// Whether null is a value.
    pub(super) fn is_nullable(&self) -> bool {
        self.keyword("nullable") == Some(&Value::Bool(true))
    }

    /// The schema of items.
    pub(super) fn items(&self) -> Option<&'d Value> {
        self.keyword("items")
    }

    /// What is known of fields. A type that declares none, such as `RawExtension` or `FieldsV1`, may have any.
    pub(super) fn fields(&self) -> Fields<'d> {
        let properties = self.keyword("properties").and_then(Value::as_object);
        let others = self.keyword("additionalProperties").filter(|schema| schema.is_object());
        let keeps = self.keyword("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
            || self.keyword("additionalProperties") == Some(&Value::Bool(true));
        match (properties, others) {
            (None, None) => Fields::Any,
            (properties, None) if keeps => Fields::Known { properties, others: Some(&Value::Null) },
            (properties, others) => Fields::Known { properties, others },
        }
    }

    fn keyword(&self, name: &str) -> Option<&'d Value> {
        self.here.get(name).or_else(|| self.target.get(name))
    }
}
