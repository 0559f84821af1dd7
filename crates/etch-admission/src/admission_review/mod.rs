//! One AdmissionReview and its answer. A request holds values of objects, so nothing here may be logged.
//!
//! Source: `admission.k8s.io/v1`.

mod refusal;
pub mod upgrade;

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use self::refusal::{About, refusal};
use crate::answer::Answer;
use crate::compile::Compiled;
use crate::request::{Lookup, Named, Request};
use crate::spec::Operation;
use etch_core::patch::{Change, patch_at_most};
use etch_core::warning::shortened;
use kube_structural_schema::json::{DEPTH, Json, JsonError, store_numbers};

/// What the API server wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// What the object lacks.
    Mutate,
    /// What is wrong with it.
    Validate,
}

/// A schema with its facts.
#[derive(Clone, Debug)]
pub struct Served {
    /// What is declared, made ready.
    pub schema: Arc<Compiled>,
    /// All facts that have a value; see [`Compiled::facts`].
    pub facts: Value,
    /// The names of those that have none. Such a schema is not applied.
    pub missing: Vec<String>,
}

/// A review that can be answered.
#[derive(Debug)]
pub struct Asked {
    review: Json,
    /// `None` for operations that no schema is about.
    operation: Option<Operation>,
}

/// Why a body is not a review that can be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is not JSON.
    #[error("the body is not JSON")]
    NotJson,
    /// Its object is nested too deeply to be reviewed.
    #[error("{0} is nested more than {DEPTH} levels deep, and Etch does not review it; make it flatter")]
    TooDeep(String),
    /// It is something else, or of another version.
    #[error("the body is not an AdmissionReview of admission.k8s.io/v1")]
    NotReview,
    /// A field that every review has is missing, or is of another type.
    #[error("{0} is missing or has another type")]
    Field(&'static str),
}

/// The outcome of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reviewed {
    /// It is allowed.
    Allowed,
    /// It is allowed, and something was set.
    Changed,
    /// It is allowed, and its author is warned.
    Warned,
    /// It is refused.
    Denied,
}

/// How many operations a patch has for one list or map; one with more changes is replaced as a whole.
const MOST_CHANGES: usize = 1_000;

/// How many levels of a review its object stands in.
const WRAPPING: usize = 2;

/// What a review that is nested too deeply is about, as far as it can be read.
fn named(body: &[u8]) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Outline {
        request: Target,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Target {
        kind: Kind,
        name: String,
        namespace: String,
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Kind {
        kind: String,
    }

    let Target { kind: Kind { kind }, name, namespace } =
        serde_json::from_slice::<Outline>(body).unwrap_or_default().request;
    match (&*kind, &*namespace, &*name) {
        ("", ..) => "the object".to_owned(),
        (kind, _, "") => format!("the {kind}"),
        (kind, "", name) => format!("{kind} {name}"),
        (kind, namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

impl Asked {
    /// Reads a body.
    ///
    /// # Errors
    /// See [`Malformed`].
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut review = Json::parse_around(body, WRAPPING).map_err(|error| match error {
            JsonError::TooDeep => Malformed::TooDeep(named(body)),
            JsonError::Malformed(_) => Malformed::NotJson,
        })?;
        // An API server writes the float `-0.0` as `-0`.
        store_numbers(&mut review);
        let is = |field: &str, wanted: &str| review.get(field).and_then(Value::as_str) == Some(wanted);
        if !is("apiVersion", "admission.k8s.io/v1") || !is("kind", "AdmissionReview") {
            return Err(Malformed::NotReview);
        }
        let request = review.get("request").filter(|request| request.is_object());
        let request = request.ok_or(Malformed::Field("request"))?;
        let has_text = |pointer: &str| request.pointer(pointer).is_some_and(Value::is_string);
        for (pointer, field) in [
            ("/uid", "request.uid"),
            ("/operation", "request.operation"),
            ("/resource/version", "request.resource.version"),
            ("/resource/resource", "request.resource.resource"),
        ] {
            if !has_text(pointer) {
                return Err(Malformed::Field(field));
            }
        }
        let operation = match request["operation"].as_str() {
            Some("CREATE") => Some(Operation::Create),
            Some("UPDATE") => Some(Operation::Update),
            _ => None,
        };
        if operation.is_some() && !request["object"].is_object() {
            return Err(Malformed::Field("request.object"));
        }
        if operation == Some(Operation::Update) && !request["oldObject"].is_object() {
            return Err(Malformed::Field("request.oldObject"));
        }
        // A schema is about objects, not about their status or scale.
        let operation = operation.filter(|_| request["subResource"].as_str().is_none_or(str::is_empty));
        Ok(Self { review, operation })
    }

    /// What [`Self::operation`] may be.
    pub const OPERATIONS: [&str; 5] = ["CREATE", "UPDATE", "DELETE", "CONNECT", "OTHER"];

    /// The operation as the API server writes it, of those that there are.
    pub fn operation(&self) -> &'static str {
        let is_asked = |known: &&str| self.request()["operation"] == **known;
        Self::OPERATIONS.into_iter().find(is_asked).unwrap_or("OTHER")
    }

    /// The object of the request, as a refusal names it.
    fn about(&self) -> About<'_> {
        let name = match self.text("/name") {
            "" => self.text("/object/metadata/name"),
            name => name,
        };
        About { group: self.text("/kind/group"), kind: self.text("/kind/kind"), name }
    }

    /// What is done to the object itself; `None` for other operations, and for its status.
    pub fn subject(&self) -> Option<Operation> {
        self.operation
    }

    /// The request in the review.
    pub fn request(&self) -> &Value {
        &self.review["request"]
    }

    /// The text at a place of the request; empty where there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.request().pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Answers a review by these schemas, in their order: the whole AdmissionReview to send back, and the
/// outcome.
///
/// `exists` returns whether an object exists; `None` if that is not known. A dry run is answered like any
/// other request.
pub fn review(
    phase: Phase,
    schemas: &[(&str, &Served)],
    asked: &Asked,
    exists: &dyn Fn(&Lookup<'_>) -> Option<bool>,
) -> (Json, Reviewed) {
    let Some(operation) = asked.operation else {
        return answer(asked, &Answer::default(), &[]);
    };
    let request = Request {
        named: Named::Resource {
            group: asked.text("/resource/group"),
            version: asked.text("/resource/version"),
            resource: asked.text("/resource/resource"),
        },
        operation,
        object: &asked.request()["object"],
        old_object: (operation == Operation::Update).then(|| &asked.request()["oldObject"]),
        facts: &Value::Null,
        exists,
    };
    let mut wording = Answer::default();
    let mut known = Vec::new();
    for (name, served) in schemas {
        if served.missing.is_empty() {
            known.push(*served);
        } else if served.schema.is_for(&Request { facts: &served.facts, ..request }) {
            let missing = served.missing.join(", ");
            wording
                .warnings
                .push(format!("Etch does not apply EmbeddedSchema {name}: no value for {missing}"));
        }
    }
    match phase {
        Phase::Mutate => {
            let changes = set_defaults(&known, &request, &mut wording);
            answer(asked, &wording, &changes)
        }
        Phase::Validate => {
            for served in known {
                let Answer { errors, warnings } =
                    served.schema.judge(&Request { facts: &served.facts, ..request });
                wording.errors.extend(errors);
                wording.warnings.extend(warnings);
            }
            answer(asked, &wording, &[])
        }
    }
}

fn set_defaults(schemas: &[&Served], request: &Request<'_>, wording: &mut Answer) -> Vec<Change> {
    let mut object: Option<Json> = None;
    for served in schemas {
        let current = object.as_deref().unwrap_or(request.object);
        let defaulted = served.schema.set_defaults(&Request { facts: &served.facts, ..*request }, current);
        wording.warnings.extend(defaulted.warnings);
        object = defaulted.object.or(object);
    }
    object.map(|object| patch_at_most(MOST_CHANGES, request.object, &object)).unwrap_or_default()
}

/// The answer in the form that the API server reads.
fn answer(asked: &Asked, wording: &Answer, changes: &[Change]) -> (Json, Reviewed) {
    let mut response = json!({ "uid": asked.text("/uid"), "allowed": wording.is_allowed() });
    let mut seen = HashSet::new();
    let warnings = wording.warnings.iter().cloned().map(shortened);
    let warnings: Vec<String> = warnings.filter(|warning| seen.insert(warning.clone())).collect();
    let reviewed = match (wording.is_allowed(), changes.is_empty(), warnings.is_empty()) {
        (false, ..) => Reviewed::Denied,
        (true, false, _) => Reviewed::Changed,
        (true, true, false) => Reviewed::Warned,
        (true, true, true) => Reviewed::Allowed,
    };
    if !wording.is_allowed() {
        response["status"] = refusal(asked.about(), &wording.errors);
    }
    if !warnings.is_empty() {
        response["warnings"] = json!(warnings);
    }
    if !changes.is_empty() {
        let changes: Vec<Json> = changes.iter().map(operation).collect();
        let changes = Json::from(Value::Array(changes.into_iter().map(Json::into_inner).collect()));
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(k8s_openapi::ByteString(changes.to_vec()));
    }
    (enveloped(response), reviewed)
}

/// The same answer with one more warning.
pub fn warned((mut answer, reviewed): (Json, Reviewed), warning: Option<String>) -> (Json, Reviewed) {
    let Some(warning) = warning else { return (answer, reviewed) };
    let warnings = &mut answer["response"]["warnings"];
    match warnings.as_array_mut() {
        Some(warnings) => warnings.push(Value::from(warning)),
        None => *warnings = json!([warning]),
    }
    (answer, if reviewed == Reviewed::Allowed { Reviewed::Warned } else { reviewed })
}

/// The whole AdmissionReview around a response.
pub fn enveloped(response: Value) -> Json {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response }).into()
}

/// One operation of a JSON patch.
fn operation(change: &Change) -> Json {
    let (op, path, value) = match change {
        Change::Add { path, value } => ("add", path, Some(value)),
        Change::Replace { path, value } => ("replace", path, Some(value)),
        Change::Remove { path } => ("remove", path, None),
    };
    let mut operation = json!({ "op": op, "path": path });
    if let Some(value) = value {
        operation["value"] = Value::clone(value);
    }
    operation.into()
}

#[cfg(test)]
mod tests;
