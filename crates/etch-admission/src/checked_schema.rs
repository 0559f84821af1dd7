//! What existing objects are judged by.

use std::sync::Arc;

use serde_json::Value;

use crate::api::ObjectName;
use crate::{Compiled, Existing, existing};
use etch_core::crd::Resource;
use etch_core::object::Object;

/// A schema that existing objects can be judged by.
#[derive(Clone, Debug)]
pub struct CheckedSchema {
    /// The name of its `EmbeddedSchema`.
    pub name: String,
    /// What else an outcome depends on.
    pub inputs: Inputs,
    /// The schema.
    pub schema: Arc<Compiled>,
    /// Whether defaults of existing objects are to be stored.
    pub persist: bool,
    /// Whether API servers ask about some objects only.
    pub restricted: bool,
}

/// What the outcome of a check depends on, except the objects themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// The uid of the `EmbeddedSchema`.
    pub uid: String,
    /// The generation that is judged by.
    pub generation: i64,
    /// What its author asks for by an annotation.
    pub asked: Option<String>,
    /// The values of its facts.
    pub facts: Value,
}

/// An object that counts, and what each schema means for it.
pub struct Judged {
    /// The object.
    pub object: Object,
    /// Its name, as the status shows it.
    pub name: ObjectName,
    /// By each schema, in their order; `None` if it is not about the object.
    pub found: Vec<Option<Existing>>,
}

/// Judges objects by schemas.
pub fn judge(objects: Vec<Object>, resource: &Resource, judges: &[CheckedSchema]) -> Vec<Judged> {
    let schemas: Vec<(&Compiled, &Value)> =
        judges.iter().map(|judge| (&*judge.schema, &judge.inputs.facts)).collect();
    let judged = objects.into_iter().map(|object| {
        let (name, found) = (named(&object, resource), existing(&schemas, resource, object.json()));
        Judged { object, name, found }
    });
    judged.collect()
}

fn named(object: &Object, resource: &Resource) -> ObjectName {
    let Resource { group, plural, .. } = resource;
    ObjectName {
        resource: if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") },
        namespace: object.namespace().map(str::to_owned),
        name: object.name().to_owned(),
    }
}
