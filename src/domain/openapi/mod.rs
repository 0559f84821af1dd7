//! Built-in and aggregated types, from the OpenAPI v3 documents that an API server publishes under `/openapi/v3`.
//! It must not be used for deciding what to write: what is published is not all that the server does.
//!
//! The defaults in these documents come from markers on the Go types. Those that are set by Go functions
//! (`SetDefaults_Deployment` and the like) are not in them, so an object that is read with the help of a document may lack
//! defaults that the server's own answer has; it never has others.

mod read;
mod view;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::json::Json;

/// One published document: the types of a group and version, and all that these refer to.
#[derive(Debug)]
pub struct Document {
    json: Json,
    /// The names of the schemas of types with a group, version and kind.
    types: HashMap<TypeName, String>,
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
    #[error("no OpenAPI v3 document: {0}")]
    Malformed(&'static str),
    /// A reference that leads nowhere in this document.
    #[error("$ref {0:?} leads nowhere in this document")]
    Dangling(String),
    /// References that come back to where they started.
    #[error("$ref {0:?} leads back to itself")]
    Circular(String),
    /// Defaults that would be filled in without end.
    #[error("the defaults of {0:?} bring more of it without end")]
    Endless(String),
}

impl Document {
    /// Reads a document as it is served: `kubectl get --raw /openapi/v3/apis/apps/v1`.
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
        let schemas = json.pointer("/components/schemas").and_then(Value::as_object);
        let schemas = schemas.ok_or(OpenApiError::Malformed("it has no components.schemas"))?;
        let mut types = HashMap::new();
        for (name, schema) in schemas {
            let named = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            for named in named.into_iter().flatten() {
                let text = |field: &str| named.get(field).and_then(Value::as_str).unwrap_or_default();
                let api_version = match (text("group"), text("version")) {
                    ("", version) => version.to_owned(),
                    (group, version) => format!("{group}/{version}"),
                };
                types.insert(TypeName { api_version, kind: text("kind").to_owned() }, name.clone());
            }
        }
        Ok(Self { json, types })
    }

    /// The types that it describes, in no order.
    pub fn types(&self) -> impl Iterator<Item = &TypeName> {
        self.types.keys()
    }

    /// Whether it describes a type.
    pub fn describes(&self, name: &TypeName) -> bool {
        self.types.contains_key(name)
    }

    fn schemas(&self) -> Option<&Map<String, Value>> {
        self.json.pointer("/components/schemas").and_then(Value::as_object)
    }
}

#[cfg(test)]
mod tests;
