//! `etch admit`: one request of many, and its answer as a JSON object.

use std::collections::BTreeSet;

use etch_admission::{Answer, Compiled, Lookup, Named, Operation, Request, Review, plural, review};
use kube_structural_schema::json::{Json, JsonError, store_numbers};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::documents::Embedded;
use crate::first;

/// A request, with its own settings; the others are those of all.
#[derive(Debug, Default)]
pub struct Asked {
    id: Option<Value>,
    object: Json,
    old_object: Option<Json>,
    operation: Option<Operation>,
    facts: Map<String, Value>,
    secrets: Option<Vec<String>>,
    resource: Option<Resource>,
    /// An AdmissionReview that no schema is about, as those of a subresource or a deletion: it passes.
    passes: bool,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// It is no JSON.
    #[error(transparent)]
    Malformed(#[from] JsonError),
    /// A field is missing or wrong.
    #[error("{0}")]
    Field(&'static str),
    /// A schema for it needs facts that are not given.
    #[error("{schema} needs the facts {facts}; provide a file with them in --facts")]
    NeedsFacts {
        /// The schema.
        schema: String,
        /// The names of the facts.
        facts: String,
    },
}

/// The resource of an AdmissionReview, which need not be the usual plural of the object's kind.
#[derive(Debug, Deserialize)]
struct Resource {
    #[serde(default)]
    group: String,
    version: String,
    resource: String,
}

/// The answer to a request.
#[derive(Debug)]
pub struct Answered {
    /// The answer, as it is printed.
    pub answer: Json,
    /// The type of the object, if no schema targets its resource.
    pub other: Option<String>,
}

/// A schema that targets the resource of a request, with its facts and the names of those without a value.
struct Targeting<'s> {
    name: &'s str,
    schema: &'s Compiled,
    facts: Value,
    missing: Vec<String>,
}

impl Targeting<'_> {
    /// Refuses a request that it is for, if facts are missing.
    fn has_facts(&self, request: &Request<'_>) -> Result<(), RequestError> {
        let Self { name, schema, facts, missing } = self;
        if !missing.is_empty() && schema.is_for(&Request { facts, ..*request }) {
            let (schema, facts) = ((*name).to_owned(), missing.join(", "));
            return Err(RequestError::NeedsFacts { schema, facts });
        }
        Ok(())
    }
}

/// What answers requests.
#[derive(Debug)]
pub struct Asking {
    schemas: Vec<Embedded>,
    facts: Map<String, Value>,
    secrets: Option<Vec<String>>,
    operation: Option<Operation>,
}

impl Asked {
    /// A request without settings of its own.
    pub fn new(object: Json, old_object: Option<Json>) -> Self {
        Self { object, old_object, ..Self::default() }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// It is no request.
    pub fn parse(line: &[u8]) -> Result<Self, RequestError> {
        // The object is in the request, which may be in an AdmissionReview.
        let mut json = Json::parse_around(line, 2)?.into_inner();
        // As an API server sends them.
        store_numbers(&mut json);
        let Value::Object(mut fields) = json else { return Err(RequestError::Field("is not a JSON object")) };
        if !fields.contains_key("request") {
            Json::parse_around(line, 1)?;
        }
        let mut facts = Map::new();
        let (mut secrets, mut resource, mut passes) = (None, None, false);
        if let Some(Value::Object(request)) = fields.remove("request") {
            // An AdmissionReview.
            fields = request;
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
            passes = !text("subResource").is_empty() || ["DELETE", "CONNECT"].contains(&text("operation"));
            resource = match fields.remove("resource") {
                Some(Value::Null) | None => None,
                Some(named) => Some(serde_json::from_value(named).map_err(|_| {
                    RequestError::Field("request.resource is not a group, a version and a resource")
                })?),
            };
        } else {
            facts = match fields.remove("facts") {
                Some(Value::Object(facts)) => facts,
                Some(Value::Null) | None => Map::new(),
                Some(_) => return Err(RequestError::Field("facts is not a map")),
            };
            secrets = match fields.remove("secrets") {
                Some(Value::Null) | None => None,
                Some(names) => Some(
                    serde_json::from_value(names)
                        .map_err(|_| RequestError::Field("secrets is not a list of names"))?,
                ),
            };
        }
        let operation = match fields.remove("operation") {
            _ if passes => None,
            Some(Value::Null) | None => None,
            Some(operation) => Some(
                serde_json::from_value(operation)
                    .map_err(|_| RequestError::Field("operation is neither CREATE nor UPDATE"))?,
            ),
        };
        let mut taken = |name: &str| fields.remove(name).filter(|value| !value.is_null());
        let object = match taken("object") {
            None if !passes => return Err(RequestError::Field("has no object")),
            object => object.unwrap_or_default(),
        };
        Ok(Self {
            id: taken("id").or_else(|| taken("uid")),
            object: object.into(),
            old_object: taken("oldObject").map(Json::from),
            operation,
            facts,
            secrets,
            resource,
            passes,
        })
    }
}

impl Answered {
    /// Whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.answer.get("allowed") == Some(&Value::Bool(true))
    }
}

impl Asking {
    /// What answers requests by these schemas. Facts, Secrets and the operation are those of requests that
    /// have none of their own; without Secrets no reference is checked.
    pub fn new(
        schemas: Vec<Embedded>,
        facts: Map<String, Value>,
        secrets: Option<Vec<String>>,
        operation: Option<Operation>,
    ) -> Self {
        Self { schemas, facts, secrets, operation }
    }

    /// The answer to a request.
    ///
    /// # Errors
    /// A fact is missing that a schema for this request counts on.
    pub fn answer(&self, asked: Asked) -> Result<Answered, RequestError> {
        let Asked { id, object, old_object, operation, facts, secrets, resource, passes } = asked;
        if passes {
            return Ok(Answered { answer: printed(Answer::default(), Some(object), id), other: None });
        }
        let update = if old_object.is_some() { Operation::Update } else { Operation::Create };
        let operation = operation.or(self.operation).unwrap_or(update);
        let secrets = secrets.as_ref().or(self.secrets.as_ref());
        let exists = |lookup: &Lookup<'_>| {
            let is_known = (lookup.group, lookup.resource) == ("", "secrets");
            secrets.filter(|_| is_known).map(|secrets| secrets.iter().any(|secret| is_named(secret, lookup)))
        };
        let mut known = self.facts.clone();
        known.extend(facts);
        let named = match &resource {
            Some(Resource { group, version, resource }) => Named::Resource { group, version, resource },
            None => Named::Kind,
        };
        let request = Request {
            named,
            operation,
            object: &object,
            old_object: old_object.as_deref().filter(|_| operation == Operation::Update),
            facts: &Value::Null,
            exists: &exists,
        };
        let targeting: Vec<Targeting<'_>> = self
            .schemas
            .iter()
            .filter(|embedded| embedded.schema.targets(&request))
            .map(|Embedded { name, schema, .. }| {
                let (facts, missing) = schema.facts(&known);
                Targeting { name, schema, facts, missing }
            })
            .collect();
        let other = targeting.is_empty().then(|| what(&object, resource.as_ref()));
        targeting.iter().try_for_each(|targeting| targeting.has_facts(&request))?;
        let complete = targeting.iter().filter(|targeting| targeting.missing.is_empty());
        let schemas: Vec<(&Compiled, &Value)> =
            complete.map(|targeting| (targeting.schema, &targeting.facts)).collect();
        let reviewed = review(&schemas, &request);
        // What one sets may be what another one's `when` asks for.
        if let Some(object) = &reviewed.object {
            let set = Request { object, ..request };
            targeting.iter().try_for_each(|targeting| targeting.has_facts(&set))?;
        }
        let Review { object, answer } = reviewed;
        Ok(Answered { answer: printed(answer, object, id), other })
    }

    /// Why no schema has answered for objects of these types.
    pub fn no_target(&self, others: &BTreeSet<String>) -> String {
        let all = self.schemas.iter().flat_map(|embedded| embedded.schema.targets_in_words());
        let targets: BTreeSet<String> = all.collect();
        format!(
            "no EmbeddedSchema targets {}; the targets are {}; for a resource that is not the usual plural \
             of its kind, set kind in the target",
            first(others),
            first(&targets)
        )
    }
}

fn printed(answer: Answer, object: Option<Json>, id: Option<Value>) -> Json {
    let mut printed = json!({
        "allowed": answer.is_allowed(),
        "errors": answer.errors,
        "warnings": answer.warnings,
    });
    printed["object"] = object.map_or(Value::Null, Json::into_inner);
    if let Some(id) = id {
        printed["id"] = id;
    }
    printed.into()
}

/// The type of an object, with the resource that a file stands for.
fn what(object: &Json, named: Option<&Resource>) -> String {
    if let Some(Resource { group, version, resource }) = named {
        let group = if group.is_empty() { String::new() } else { format!("{group}/") };
        return format!("{resource} of {group}{version}");
    }
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    match (text("kind"), text("apiVersion")) {
        ("", _) => "an object without a kind".to_owned(),
        (kind, "") => format!("{kind} without an apiVersion"),
        (kind, version) => format!("{kind} of {version} (usual plural {})", plural(kind)),
    }
}

/// Whether a Secret, as it was typed, is the one that is looked for. A name without a namespace is one in
/// any.
fn is_named(secret: &str, lookup: &Lookup<'_>) -> bool {
    match secret.split_once('/') {
        Some((namespace, name)) => (namespace, name) == (lookup.namespace, lookup.name),
        None => secret == lookup.name,
    }
}

#[cfg(test)]
mod tests {
    use kube_manifests::Origin;

    use super::*;

    fn embedded(name: &str, more: Value) -> Embedded {
        let mut declared = json!({
            "targets": [{
                "group": "example.com", "version": "v1", "resource": "things", "path": ".spec.ext",
            }],
            "enforcement": "Deny",
        });
        declared.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        let declared = serde_json::from_value(declared).expect("a declaration");
        let schema = Compiled::new(&declared).unwrap_or_else(|problems| panic!("{problems:?}"));
        let origin = Origin { file: "a.yaml".into(), document: 1, item: None };
        Embedded { origin, name: name.to_owned(), schema }
    }

    #[test]
    fn a_schema_is_asked_with_what_the_others_have_set() {
        let kind = embedded(
            "kind",
            json!({ "defaults": [{ "scope": "Object", "path": ".spec.kind", "value": "'x'" }] }),
        );
        let fact = json!({ "name": "least", "object": { "version": "v1", "resource": "configs", "name": "a" },
                           "path": ".spec.least" });
        let of_kind = embedded(
            "of-kind",
            json!({
                "when": "object.spec.?kind.orValue('') == 'x'",
                "facts": [fact],
                "rules": [{ "rule": "self.size >= facts.least", "message": "too small" }],
            }),
        );
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "spec": { "ext": { "size": 1 } },
        });
        let facts = json!({ "least": 2 }).as_object().cloned().expect("a map");
        let asking = Asking::new(vec![kind, of_kind], facts, None, None);
        let asked = || Asked::new(object.clone().into(), None);
        let answer = asking.answer(asked()).expect("an answer").answer;
        assert_eq!(
            (&answer["allowed"], &answer["errors"][0]["detail"]),
            (&json!(false), &json!("too small"))
        );
        let without = Asking { facts: Map::new(), ..asking };
        let error = without.answer(asked()).expect_err("a fact is missing").to_string();
        assert_eq!(error, "of-kind needs the facts least; provide a file with them in --facts");
    }

    #[test]
    fn a_review_that_no_schema_is_about_passes() {
        let asking = Asking::new(Vec::new(), Map::new(), None, None);
        let object = json!({ "apiVersion": "example.com/v1", "kind": "Thing" });
        for request in [
            json!({ "uid": "1", "operation": "UPDATE", "subResource": "status", "object": object }),
            json!({ "uid": "1", "operation": "DELETE", "oldObject": object }),
            json!({ "uid": "1", "operation": "CONNECT", "object": null }),
        ] {
            let line = json!({ "request": request }).to_string();
            let Answered { answer, other } =
                Asked::parse(line.as_bytes()).and_then(|asked| asking.answer(asked)).expect("an answer");
            assert_eq!((&answer["allowed"], &answer["id"], other), (&json!(true), &json!("1"), None));
        }
        let created = json!({ "request": { "operation": "CREATE" } }).to_string();
        assert!(Asked::parse(created.as_bytes()).is_err(), "it has no object");
    }
}
