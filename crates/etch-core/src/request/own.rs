//! Requests for what Etch itself publishes: the conditions on CRDs, the reports, and the status of policies
//! and EmbeddedSchemas. They name no field that another manager sets: the applies are forced, since a client that
//! replaces all conditions of a CRD owns ours as well from then on. Each answer has the metadata alone: that
//! for a large CRD would be as large as the CRD.

use http::{Method, Request};
use kube::Resource as _;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::{Value, json};

use super::path::{crd_path, named};
use super::resources::reports;
use super::{METADATA, answered_with, forced, patch, send};
use crate::api::{DefaultsReport, DefaultsReportStatus, GROUP, RESUME_ANNOTATION};
use crate::condition::Condition;
use crate::crd::Resource;
use crate::plan::{PERSISTED_ANNOTATION, PatchKind, Persisted};
use kube_structural_schema::json::Json;

/// Applies fields that only Etch sets.
pub fn apply(path: &str, body: Value) -> Request<Vec<u8>> {
    answered_with(forced(path, Json::from(body).to_vec()), METADATA)
}

/// Sets our conditions on the CRD of this uid; with a version, only while the CRD has that one.
pub fn conditions(
    name: &str,
    uid: &str,
    version: Option<&str>,
    conditions: &[Condition],
) -> Request<Vec<u8>> {
    let mut body = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": name, "uid": uid },
        "status": { "conditions": conditions },
    });
    // The server refuses a null.
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = version.into();
    }
    apply(&format!("{}/status", crd_path(name)), body)
}

/// Sets on a CRD the annotation with the result of `etch persist`, or removes it.
pub fn persisted(name: &str, uid: &str, persisted: Option<&Persisted>) -> Request<Vec<u8>> {
    let annotations = persisted.map(|persisted| json!({ PERSISTED_ANNOTATION: persisted.annotation() }));
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": name, "uid": uid, "annotations": annotations.unwrap_or_else(|| json!({})) },
    });
    apply(&crd_path(name), body)
}

/// Sets the annotation that lets the pass of a CRD's generation continue after its canary; `None` removes it.
pub fn resumed(name: &str, uid: &str, generation: Option<i64>) -> Request<Vec<u8>> {
    let generation = generation.map(|generation| generation.to_string());
    let body = json!({ "metadata": { "uid": uid, "annotations": { RESUME_ANNOTATION: generation } } });
    answered_with(patch(&crd_path(name), PatchKind::Merge, Json::from(body).to_vec()), METADATA)
}

/// The path of the report on a CRD.
pub fn report_path(crd: &str) -> String {
    named(&reports(), None, crd)
}

/// Creates the report on a CRD, or assigns to this CRD a report that is left from an earlier CRD of that
/// name: an apply creates what is not there.
pub fn opened_report(crd: &str, uid: &str) -> Request<Vec<u8>> {
    let owner = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "name": crd,
        "uid": uid,
    });
    let body = json!({
        "apiVersion": DefaultsReport::api_version(&()),
        "kind": DefaultsReport::kind(&()),
        "metadata": { "name": crd, "ownerReferences": [owner] },
        "spec": { "crd": crd, "crdUid": uid },
    });
    apply(&report_path(crd), body)
}

/// Replaces the status of the report on a CRD if the report has this resource version.
pub fn report_status(crd: &str, status: &DefaultsReportStatus, version: &str) -> Request<Vec<u8>> {
    let body = json!({
        "apiVersion": DefaultsReport::api_version(&()),
        "kind": DefaultsReport::kind(&()),
        "metadata": { "name": crd, "resourceVersion": version },
        "status": status,
    });
    apply(&format!("{}/status", report_path(crd)), body)
}

/// Replaces the status of the policy or the EmbeddedSchema of this uid.
pub fn status<K>(name: &str, uid: &str, status: &K::Status) -> Request<Vec<u8>>
where
    K: kube::Resource<DynamicType = ()> + HasStatus<Status: Serialize>,
{
    let body = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": name, "uid": uid },
        "status": status,
    });
    let resource = Resource::new(GROUP, &K::version(&()), &K::plural(&()));
    apply(&format!("{}/status", named(&resource, None, name)), body)
}

/// Deletes what is at a path, if it has this uid.
pub fn deletion(path: &str, uid: &str) -> Request<Vec<u8>> {
    let body = json!({ "preconditions": { "uid": uid } });
    send(Method::DELETE, path, Json::from(body).to_vec())
}

/// The report on the CRD of this uid, as it was read; `None` if it is about an earlier CRD of that name. It
/// has no status while that is still an earlier CRD's. Returns also why its status cannot be read: then it
/// proves nothing.
///
/// # Errors
/// It is no report.
pub fn read_report(
    mut document: Value,
    uid: &str,
) -> Result<(Option<DefaultsReport>, Option<serde_json::Error>), serde_json::Error> {
    let status = document["status"].take();
    let mut report: DefaultsReport = serde_json::from_value(document)?;
    let mut unread = None;
    if !status.is_null() {
        let (status, why) = DefaultsReportStatus::read(status)?;
        unread = why;
        report.status = Some(status);
    }
    // Reports of releases that did not set it have none.
    report.status = report.status.filter(|status| ["", uid].contains(&status.crd_uid.as_str()));
    Ok((Some(report).filter(|report| report.spec.crd_uid == uid), unread))
}
