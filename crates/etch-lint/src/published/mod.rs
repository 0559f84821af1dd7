//! Built-in and aggregated types, from the OpenAPI v3 documents that an API server publishes under
//! `/openapi/v3`. Do not use it to decide what to write: what is published is not all that the server does.
//!
//! The defaults in these documents come from markers on the Go types. Those that are set by Go functions
//! (`SetDefaults_Deployment` and the like) are not in them, so an object that is read with the help of a
//! document may lack defaults that the server's own answer has; it never has others.

mod changes;
mod default;
pub mod index;
mod installed;
mod named;
mod publishing;
mod read;
mod structural;
mod view;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use kube_structural_schema::json::Json;

pub use changes::{Changes, DefaultChange, changes, changes_without};
pub use default::{AppliesWhen, PublishedDefault};
pub use installed::installed;
pub use named::{NameError, Named, named};
pub use publishing::{Unpublished, Why, unpublished};
pub(crate) use view::child;

/// One published document: the types of a group and version, and all that these refer to.
#[derive(Debug)]
pub struct Document {
    json: Json,
    /// The names of the schemas of types with a group, version and kind.
    types: BTreeMap<TypeName, String>,
}

/// A type of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName {
    /// `apps/v1`, or `v1` for the core group.
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
}

/// Why a document or an object cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenApiError {
    /// Not OpenAPI v3.
    #[error("not an OpenAPI v3 document: {0}")]
    Malformed(&'static str),
    /// A reference that does not resolve in this document.
    #[error("$ref {0:?} does not resolve in this document")]
    Dangling(String),
    /// References that come back to where they started.
    #[error("$ref {0:?} is circular")]
    Circular(String),
    /// Defaults that would be filled in without end.
    #[error("the defaults of {0:?} contain it again without end")]
    Endless(String),
    /// A type with more places than any real one.
    #[error("it has too many fields, or is nested too deeply")]
    TooLarge,
}

impl Document {
    /// Reads a document as it is served: `kubectl get --raw /openapi/v3/apis/apps/v1`. Those of `/version`
    /// and the like have no types.
    ///
    /// # Errors
    /// [`OpenApiError::Malformed`]; references are followed when an object needs them.
    pub fn read(json: Json) -> Result<Self, OpenApiError> {
        if json.get("swagger").is_some() {
            return Err(OpenApiError::Malformed(
                "it is OpenAPI v2; save /openapi/v3/apis/GROUP/VERSION instead",
            ));
        }
        if json.get("paths").is_some_and(|paths| !paths.is_null()) && json.get("openapi").is_none() {
            return Err(OpenApiError::Malformed(
                "it lists other documents; save one of them, such as /openapi/v3/apis/apps/v1",
            ));
        }
        let version = json.get("openapi").and_then(Value::as_str).unwrap_or_default();
        if !version.starts_with("3.") {
            return Err(OpenApiError::Malformed("its field openapi is not 3.…"));
        }
        let mut types = BTreeMap::new();
        for (name, schema) in schemas(&json).into_iter().flatten() {
            for of in type_names(schema) {
                types.insert(of, name.clone());
            }
        }
        Ok(Self { json, types })
    }

    /// The types that it describes, in their order.
    pub fn types(&self) -> impl Iterator<Item = &TypeName> {
        self.types.keys()
    }

    /// Whether it describes a type.
    pub fn describes(&self, name: &TypeName) -> bool {
        self.types.contains_key(name)
    }

    /// The types of objects: those with metadata, or of which nothing is known. Lists of them, and what only
    /// answers and requests are made of, are types as well.
    pub fn kinds(&self) -> impl Iterator<Item = &TypeName> {
        self.types().filter(|name| self.schema_of(name).is_some_and(|(_, schema)| is_kind(schema)))
    }

    /// The definition of a type, with its name.
    fn schema_of(&self, of: &TypeName) -> Option<(&str, &Value)> {
        let name = self.types.get(of)?;
        Some((name, self.definition(name)?))
    }

    fn definition(&self, name: &str) -> Option<&Value> {
        schemas(&self.json)?.get(name)
    }
}

fn schemas(document: &Json) -> Option<&Map<String, Value>> {
    document.pointer("/components/schemas").and_then(Value::as_object)
}

/// The types that a definition is the schema of.
fn type_names(schema: &Value) -> impl Iterator<Item = TypeName> {
    let listed = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
    listed.into_iter().flatten().map(type_name)
}

/// The type that an entry of `x-kubernetes-group-version-kind` names.
fn type_name(of: &Value) -> TypeName {
    let text = |field: &str| of.get(field).and_then(Value::as_str).unwrap_or_default();
    let api_version = match (text("group"), text("version")) {
        ("", version) => version.to_owned(),
        (group, version) => format!("{group}/{version}"),
    };
    TypeName { api_version, kind: text("kind").to_owned() }
}

fn is_kind(schema: &Value) -> bool {
    let Some(properties) = schema.get("properties") else { return true };
    let is_list_meta = |schema: &Value| {
        let reference = schema.get("$ref").and_then(Value::as_str);
        reference.is_some_and(|reference| short(reference) == "ListMeta")
    };
    let is_list = |metadata: &Value| {
        let clauses = metadata.get("allOf").and_then(Value::as_array);
        is_list_meta(metadata) || clauses.into_iter().flatten().any(is_list_meta)
    };
    properties.get("metadata").is_some_and(|metadata| !is_list(metadata))
}

impl TypeName {
    /// `apps`; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// `v1`
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }

    /// `Deployment.apps`, or `Service` of the core group: a type of any version, as API servers write it.
    pub fn group_kind(&self) -> String {
        match self.group() {
            "" => self.kind.clone(),
            group => format!("{}.{group}", self.kind),
        }
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.kind, self.api_version)
    }
}

/// The last part of a definition's name: `ServicePort` of `io.k8s.api.core.v1.ServicePort`.
pub fn short(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

#[cfg(test)]
mod tests;
