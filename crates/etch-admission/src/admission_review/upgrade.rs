//! Updates and deletions of CRDs, and migrations of their objects: which of them are judged, and the answer.

use serde_json::{Value, json};

use super::{Asked, Reviewed, enveloped};
use crate::spec::Operation;
use etch_core::upgrade::{GuardDecision, matters};
use kube_structural_schema::json::Json;

/// Etch's own CRDs: the guard must not keep Etch from starting.
const OWN: &str = "etch-operator.io";

/// An update of a CRD that can touch objects.
#[derive(Debug)]
pub struct Update {
    /// The CRD as it is.
    pub old: Json,
    /// The CRD as it is to be.
    pub new: Json,
}

/// A request about a CRD that may harm objects.
#[derive(Debug)]
pub enum CrdRequest {
    /// It changes the CRD.
    Update(Update),
    /// It deletes the CRD, which is this.
    Deletion(Json),
    /// It is about the objects of a resource, which may be a CRD's.
    Migration(Migration),
}

/// A StorageVersionMigration that is to be created.
#[derive(Debug)]
pub struct Migration {
    /// The name of the CRD whose objects it has written, if they are those of a CRD.
    pub crd: String,
    /// Its metadata.
    pub metadata: Json,
}

/// What a request does with a CRD; `None` if it cannot touch an object, or is of another kind.
pub fn crd_request(asked: &Asked) -> Option<CrdRequest> {
    let is = |pointer: &str, wanted: &str| asked.text(pointer) == wanted;
    if is("/resource/group", "storagemigration.k8s.io")
        && is("/resource/resource", "storageversionmigrations")
    {
        return migration(asked).map(CrdRequest::Migration);
    }
    let is_crd = is("/resource/group", "apiextensions.k8s.io")
        && is("/resource/version", "v1")
        && is("/resource/resource", "customresourcedefinitions");
    let (old, new) = (&asked.request()["oldObject"], &asked.request()["object"]);
    if !is_crd || is("/object/spec/group", OWN) || is("/oldObject/spec/group", OWN) {
        return None;
    }
    // A request about the status is about no operation on the object.
    if asked.subject() == Some(Operation::Update) {
        let update = || Update { old: old.clone().into(), new: new.clone().into() };
        return matters(old, new).then(update).map(CrdRequest::Update);
    }
    let is_deletion = asked.operation() == "DELETE" && is("/subResource", "") && old.is_object();
    // The objects of one that is being deleted are on their way already.
    let is_first = old["metadata"]["deletionTimestamp"].is_null();
    (is_deletion && is_first).then(|| CrdRequest::Deletion(old.clone().into()))
}

fn migration(asked: &Asked) -> Option<Migration> {
    let (object, resource) =
        (&asked.request()["object"], |field| asked.text(&format!("/object/spec/resource/{field}")));
    let (group, plural) = (resource("group"), resource("resource"));
    let is_of_crd = asked.operation() == "CREATE" && !group.is_empty() && !plural.is_empty() && group != OWN;
    is_of_crd
        .then(|| Migration { crd: format!("{plural}.{group}"), metadata: object["metadata"].clone().into() })
}

/// The answer in the form that the API server reads.
pub fn answer(asked: &Asked, decision: &GuardDecision) -> (Json, Reviewed) {
    let GuardDecision { refusal, warnings } = decision;
    let mut response = json!({ "uid": asked.text("/uid"), "allowed": refusal.is_none() });
    if let Some(message) = refusal {
        response["status"] = status(message);
    }
    if !warnings.is_empty() {
        response["warnings"] = json!(warnings);
    }
    let reviewed = match (refusal, warnings.is_empty()) {
        (Some(_), _) => Reviewed::Denied,
        (None, false) => Reviewed::Warned,
        (None, true) => Reviewed::Allowed,
    };
    (enveloped(response), reviewed)
}

fn status(message: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": message, "reason": "Forbidden", "code": 403,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(maximum: u64) -> Value {
        json!({
            "metadata": { "name": "tabs.example.com" },
            "spec": { "group": "example.com", "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "maximum": maximum } } }] },
        })
    }

    fn asked(change: impl FnOnce(&mut Value)) -> Asked {
        let mut request = json!({
            "uid": "7", "operation": "UPDATE", "name": "tabs.example.com",
            "kind": { "group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition" },
            "resource": {
                "group": "apiextensions.k8s.io", "version": "v1", "resource": "customresourcedefinitions",
            },
            "object": crd(2), "oldObject": crd(1),
        });
        change(&mut request);
        let review =
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
        Asked::parse(review.to_string().as_bytes()).expect("a review")
    }

    #[test]
    fn only_updates_that_can_touch_objects_are_judged() {
        let judged = |change: fn(&mut Value)| crd_request(&asked(change)).is_some();
        assert!(judged(|_| ()));
        assert!(judged(|request| request["dryRun"] = json!(true)));
        assert!(!judged(|request| request["subResource"] = json!("status")));
        assert!(!judged(|request| request["operation"] = json!("CREATE")));
        assert!(!judged(|request| request["resource"]["resource"] = json!("things")));
        assert!(!judged(|request| request["object"]["spec"]["group"] = json!(OWN)));
        assert!(!judged(|request| request["object"] = {
            let mut crd = crd(1);
            crd["metadata"]["finalizers"] = json!(["a"]);
            crd["status"] = json!({ "conditions": [] });
            crd
        }));
        assert!(!judged(|request| request["object"]["metadata"]["deletionTimestamp"] = json!("now")));
    }

    #[test]
    fn only_the_first_deletion_of_a_crd_is_judged() {
        let judged = |change: fn(&mut Value)| {
            let deletion = |request: &mut Value| {
                request["operation"] = json!("DELETE");
                request["object"] = Value::Null;
                change(request);
            };
            match crd_request(&asked(deletion)) {
                Some(CrdRequest::Deletion(crd)) => crd["metadata"]["name"] == "tabs.example.com",
                Some(request) => panic!("{request:?}"),
                None => false,
            }
        };
        assert!(judged(|_| ()));
        assert!(!judged(|request| request["subResource"] = json!("status")));
        assert!(!judged(|request| request["resource"]["resource"] = json!("things")));
        assert!(!judged(|request| request["oldObject"]["spec"]["group"] = json!(OWN)));
        assert!(!judged(|request| request["oldObject"] = Value::Null));
        assert!(!judged(|request| request["oldObject"]["metadata"]["deletionTimestamp"] = json!("now")));
    }

    #[test]
    fn only_new_migrations_of_custom_resources_are_judged() {
        let judged = |change: fn(&mut Value)| {
            let creation = |request: &mut Value| {
                let resource = json!({ "group": "storagemigration.k8s.io", "version": "v1",
                    "resource": "storageversionmigrations" });
                request["operation"] = json!("CREATE");
                request["resource"] = resource;
                request["oldObject"] = Value::Null;
                request["object"] = json!({ "metadata": { "name": "m" },
                    "spec": { "resource": { "group": "example.com", "resource": "tabs" } } });
                change(request);
            };
            match crd_request(&asked(creation)) {
                Some(CrdRequest::Migration(Migration { crd, metadata })) => {
                    assert_eq!(metadata["name"], "m");
                    Some(crd)
                }
                Some(request) => panic!("{request:?}"),
                None => None,
            }
        };
        assert_eq!(judged(|_| ()).as_deref(), Some("tabs.example.com"));
        assert_eq!(
            judged(|request| request["resource"]["version"] = json!("v1beta1")).as_deref(),
            Some("tabs.example.com")
        );
        let update = |request: &mut Value| {
            request["operation"] = json!("UPDATE");
            request["oldObject"] = request["object"].clone();
        };
        assert_eq!(judged(update), None);
        assert_eq!(judged(|request| request["object"]["spec"]["resource"]["group"] = json!("")), None);
        assert_eq!(judged(|request| request["object"]["spec"]["resource"]["group"] = json!(OWN)), None);
    }

    #[test]
    fn a_refusal_has_the_words_and_the_code() {
        let decision = GuardDecision { refusal: Some("no".to_owned()), warnings: Vec::new() };
        let (answer, reviewed) = answer(&asked(|_| ()), &decision);
        assert_eq!(reviewed, Reviewed::Denied);
        let response = &answer["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("7"), &json!(false)));
        assert_eq!(
            (&response["status"]["code"], &response["status"]["message"]),
            (&json!(403), &json!("no"))
        );
    }
}
