//! A custom resource as the API returned it, and the parts of its metadata that decisions need.

use std::fmt;

use serde_json::Value;

use kube_structural_schema::json::Json;

/// The annotation by which one object is left alone: with any value but `false`.
pub const IGNORE_ANNOTATION: &str = "etch-operator.io/ignore";

/// Which object it is, for records, logs and requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The namespace; none for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The uid, which tells an object from a later one of the same name.
    pub uid: String,
}

/// How the annotation asks that an object be left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreRequest {
    /// With the value `true`.
    Clear,
    /// With a value that is neither `true` nor `false`.
    Unclear,
}

/// One object in its read view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Json);

impl Object {
    /// The whole document.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// The namespace; none for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.metadata("namespace").filter(|namespace| !namespace.is_empty())
    }

    /// The name; empty where a document has none.
    pub fn name(&self) -> &str {
        self.metadata("name").unwrap_or_default()
    }

    /// The uid; empty where a document does not come from an API server.
    pub fn uid(&self) -> &str {
        self.metadata("uid").unwrap_or_default()
    }

    /// The resource version as it is sent back.
    pub fn resource_version(&self) -> &str {
        self.metadata("resourceVersion").unwrap_or_default()
    }

    /// The resource version as a number: custom resources of one type can be ordered by it (Kubernetes 1.35
    /// made that a promise; etcd has always kept it). None where it is not a number.
    pub fn revision(&self) -> Option<u64> {
        self.resource_version().parse().ok()
    }

    /// Whether the object waits for its finalizers.
    pub fn is_terminating(&self) -> bool {
        self.metadata("deletionTimestamp").is_some()
    }

    /// Whether somebody asked that it be left alone. A value that is not clear is one who asks: a write
    /// cannot be taken back.
    pub fn ignore_request(&self) -> Option<IgnoreRequest> {
        match self.annotation_value(IGNORE_ANNOTATION)? {
            Value::Null => None,
            value if value == "false" => None,
            value if value == "true" => Some(IgnoreRequest::Clear),
            _ => Some(IgnoreRequest::Unclear),
        }
    }

    /// The text of an annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotation_value(name)?.as_str()
    }

    fn annotation_value(&self, name: &str) -> Option<&Value> {
        self.0.get("metadata")?.get("annotations")?.get(name)
    }

    /// Who it is.
    pub fn identity(&self) -> Identity {
        Identity {
            namespace: self.namespace().map(str::to_owned),
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
        }
    }

    fn metadata(&self, field: &str) -> Option<&str> {
        self.0.get("metadata")?.get(field)?.as_str()
    }
}

impl From<Json> for Object {
    fn from(json: Json) -> Self {
        Self(json)
    }
}

impl From<Value> for Object {
    fn from(value: Value) -> Self {
        Self(value.into())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}
