//! A custom resource as the API returned it, and the parts of its metadata that decisions need.

use std::fmt;

use serde_json::Value;

use kube_structural_schema::json::{Json, JsonError, outline};

/// The annotation that makes Etch ignore an object: with any value but `false`.
pub const IGNORE_ANNOTATION: &str = "etch-operator.io/ignore";

/// Which object it is, for records, logs and requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The namespace; none for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The uid, which distinguishes an object from a later one of the same name.
    pub uid: String,
}

/// In which form the annotation requests that Etch ignore an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreRequest {
    /// With the value `true`.
    Clear,
    /// With a value that is neither `true` nor `false`.
    Unclear,
}

/// One object in its read view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    json: Json,
    is_too_deep: bool,
}

impl Object {
    /// Reads an object. Of one that is nested too deeply it reads only what identifies it, so that Etch can
    /// skip and name it.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn read(text: &[u8]) -> serde_json::Result<Self> {
        match Json::parse(text) {
            Ok(json) => Ok(json.into()),
            Err(JsonError::TooDeep) => outline(text).map(Self::too_deep),
            Err(JsonError::Malformed(error)) => Err(error),
        }
    }

    /// An object that is nested too deeply, of which only the outline is known.
    pub fn too_deep(outline: Json) -> Self {
        Self { json: outline, is_too_deep: true }
    }

    /// The whole document; the outline of one that is nested too deeply.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Whether it is nested deeper than [`DEPTH`](kube_structural_schema::json::DEPTH): only its outline is
    /// read, and Etch does not write it.
    pub fn is_too_deep(&self) -> bool {
        self.is_too_deep
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

    /// The resource version as a number: custom resources of one type can be ordered by it (a promise since
    /// Kubernetes 1.35, and always true of etcd). `None` if it is not a number.
    pub fn revision(&self) -> Option<u64> {
        self.resource_version().parse().ok()
    }

    /// Whether the object waits for its finalizers.
    pub fn is_terminating(&self) -> bool {
        self.metadata("deletionTimestamp").is_some()
    }

    /// Whether a user asks Etch to ignore it. An unclear value counts as such a request: a write cannot be
    /// undone.
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
        self.json.get("metadata")?.get("annotations")?.get(name)
    }

    /// Its identity.
    pub fn identity(&self) -> Identity {
        Identity {
            namespace: self.namespace().map(str::to_owned),
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
        }
    }

    fn metadata(&self, field: &str) -> Option<&str> {
        self.json.get("metadata")?.get(field)?.as_str()
    }
}

/// The version at which a document is written, without its group: `v1`.
pub fn version_of(document: &Value) -> &str {
    let group_version = document.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    group_version.rsplit('/').next().unwrap_or_default()
}

impl From<Json> for Object {
    fn from(json: Json) -> Self {
        Self { json, is_too_deep: false }
    }
}

impl From<Value> for Object {
    fn from(value: Value) -> Self {
        Json::from(value).into()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kube_structural_schema::json::DEPTH;

    fn nested(levels: usize) -> Vec<u8> {
        let (open, close) = ("[".repeat(levels - 2), "]".repeat(levels - 2));
        format!(
            r#"{{"kind":"K","metadata":{{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7","annotations":{{"{IGNORE_ANNOTATION}":"true"}}}},"spec":{{"a":{open}{close}}}}}"#
        )
        .into_bytes()
    }

    #[test]
    fn beyond_a_thousand_levels_only_the_outline_is_read() {
        for (levels, is_too_deep) in [(DEPTH, false), (DEPTH + 1, true), (50_000, true)] {
            let object = Object::read(&nested(levels)).expect("JSON");
            assert_eq!(
                (object.is_too_deep(), object.json().get("spec").is_none()),
                (is_too_deep, is_too_deep)
            );
            assert_eq!((object.identity().to_string().as_str(), object.uid()), ("ns/n", "u"));
            assert_eq!((object.revision(), object.ignore_request()), (Some(7), Some(IgnoreRequest::Clear)));
            assert_eq!(object.json()["kind"], json!("K"));
        }
        assert!(Object::read(b"[").is_err());
        assert!(Object::read("[".repeat(2_000).as_bytes()).is_err());
    }
}
