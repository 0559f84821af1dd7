//! Requests about what Etch itself may do.

use http::{Method, Request};
use serde_json::{Value, json};

use super::send;
use crate::crd::Resource;
use crate::rbac::Verb;
use kube_structural_schema::json::Json;

/// Whether Etch may use a verb on the objects of a resource, in one namespace or in all.
pub fn access(resource: &Resource, namespace: Option<&str>, verb: Verb) -> Request<Vec<u8>> {
    let mut attributes = json!({
        "group": resource.group, "resource": resource.plural, "verb": verb.as_str(),
    });
    if let Some(namespace) = namespace {
        attributes["namespace"] = namespace.into();
    }
    review("SelfSubjectAccessReview", "selfsubjectaccessreviews", json!({ "resourceAttributes": attributes }))
}

/// Which rules apply to Etch in a namespace.
pub fn rules(namespace: &str) -> Request<Vec<u8>> {
    review("SelfSubjectRulesReview", "selfsubjectrulesreviews", json!({ "namespace": namespace }))
}

/// The rules in the answer, sorted: the server's order changes from answer to answer.
pub fn rules_of(answer: &Value) -> Vec<String> {
    let rules = answer["status"]["resourceRules"].as_array().into_iter().flatten();
    let mut rules: Vec<String> = rules.map(Value::to_string).collect();
    rules.sort();
    rules
}

fn review(kind: &str, plural: &str, spec: Value) -> Request<Vec<u8>> {
    let body = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec });
    send(Method::POST, &format!("/apis/authorization.k8s.io/v1/{plural}"), Json::from(body).to_vec())
}
