//! What Etch itself publishes in the cluster: the conditions on CRDs, the reports, and the status of
//! policies. It must not name a field that another manager sets: its applies are forced.

use http::Method;
use kube::Resource as _;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::{Value, json};
use tracing::warn;

use super::call::{forced, get, if_there, patch, send};
use super::crds::{METADATA, answered_with, crd_path};
use super::read::named;
use super::{CallError, Cluster};
use etch_core::api::{DefaultsReport, DefaultsReportStatus, GROUP, RESUME_ANNOTATION};
use etch_core::condition::{self, Condition};
use etch_core::crd::Resource;
use etch_core::engine::status::CrdRevision;
use etch_core::object::Object;
use etch_core::ownership::MANAGER;
use etch_core::plan::{PERSISTED_ANNOTATION, PatchKind, Persisted};
use kube_structural_schema::json::Json;

impl Cluster {
    /// Sets our conditions, all of them, on a CRD that has this resource version; an empty list removes them.
    /// Without a version they are set whatever it is. Returns the CRD as it is then.
    ///
    /// The uid makes sure that it is the CRD that was judged, and the version that no request which arrives
    /// late replaces what was set since.
    ///
    /// # Errors
    /// See [`CallError`]. 404 and 409 may mean that the CRD is gone or was created again; 409 also that it
    /// has another version.
    pub async fn set_conditions(
        &self,
        name: &str,
        uid: &str,
        version: Option<&str>,
        conditions: &[Condition],
    ) -> Result<CrdRevision, CallError> {
        if conditions.is_empty() {
            let is_this = |document: &Json| document["metadata"]["uid"] == uid;
            let removed = |document: &Json| condition::removal(document).filter(|_| is_this(document));
            let (document, _) = self.patch_crd_status(name, MANAGER, removed).await?;
            return Ok(CrdRevision::of(&Some(document).filter(is_this).unwrap_or_default()));
        }
        match self.apply_conditions(name, uid, version, conditions).await {
            // Servers before 1.35 do not know the generation in a CRD's condition, and refuse to apply what
            // they do not know.
            Err(CallError::Refused(refusal)) if refusal.is_of_undeclared_field() => {
                let without: Vec<Condition> = conditions
                    .iter()
                    .map(|condition| Condition { observed_generation: None, ..condition.clone() })
                    .collect();
                self.apply_conditions(name, uid, version, &without).await
            }
            answer => answer,
        }
    }

    async fn apply_conditions(
        &self,
        name: &str,
        uid: &str,
        version: Option<&str>,
        conditions: &[Condition],
    ) -> Result<CrdRevision, CallError> {
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
        let answer = self.apply_for_metadata(&format!("{}/status", crd_path(name)), body).await?;
        Ok(CrdRevision::of(&answer))
    }

    /// Sets on a CRD the annotation with the result of `etch persist`, or removes it.
    ///
    /// # Errors
    /// See [`CallError`]. 404 and 409 may mean that the CRD is gone or was created again.
    pub async fn set_persisted(
        &self,
        name: &str,
        uid: &str,
        persisted: Option<&Persisted>,
    ) -> Result<(), CallError> {
        let annotations = persisted.map(|persisted| json!({ PERSISTED_ANNOTATION: persisted.annotation() }));
        let body = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": name, "uid": uid, "annotations": annotations.unwrap_or_else(|| json!({})) },
        });
        self.apply(&crd_path(name), body).await
    }

    /// Sets the annotation that lets the pass of a CRD's generation continue after its canary; `None` removes
    /// it.
    ///
    /// # Errors
    /// See [`CallError`]. 404 and 409 may mean that the CRD is gone or was created again.
    pub async fn set_resumed(&self, name: &str, uid: &str, generation: Option<i64>) -> Result<(), CallError> {
        let generation = generation.map(|generation| generation.to_string());
        let body = json!({ "metadata": { "uid": uid, "annotations": { RESUME_ANNOTATION: generation } } });
        let request = patch(&crd_path(name), PatchKind::Merge, Json::from(body).to_vec());
        self.call(answered_with(request, METADATA)).await.map(drop)
    }

    /// The report on a CRD; `None` if there is none yet, or it is about an earlier CRD of that name. It has
    /// no status while that is still an earlier CRD's.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn report(&self, crd: &str, uid: &str) -> Result<Option<DefaultsReport>, CallError> {
        let read: Option<Value> = if_there(self.call_for(get(&report_path(crd))).await)?;
        let Some(mut document) = read else { return Ok(None) };
        let status = document["status"].take();
        let mut report: DefaultsReport = serde_json::from_value(document).map_err(CallError::malformed)?;
        if !status.is_null() {
            let (status, why) = DefaultsReportStatus::read(status).map_err(CallError::malformed)?;
            if let Some(why) = why {
                warn!(report = crd, %why, "the report cannot be read, and proves nothing");
            }
            report.status = Some(status);
        }
        // Reports of releases that did not set it have none.
        report.status = report.status.filter(|status| ["", uid].contains(&status.crd_uid.as_str()));
        Ok(Some(report).filter(|report| report.spec.crd_uid == uid))
    }

    /// Whether the cluster serves the API of Etch.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn has_etch(&self) -> Result<bool, CallError> {
        Ok(if_there(self.call(get(&format!("/apis/{GROUP}"))).await)?.is_some())
    }

    /// Creates the report on a CRD, or assigns to this CRD a report that is left from an earlier CRD of that
    /// name. Returns its resource version.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn open_report(&self, crd: &str, uid: &str) -> Result<String, CallError> {
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
        // An apply creates what is not there.
        self.apply_for_version(&report_path(crd), body).await.map_err(CallError::of_own_resource)
    }

    /// Replaces the status of the report on a CRD if the report has this resource version; returns its new
    /// one.
    ///
    /// # Errors
    /// See [`CallError`]; 404 where there is no report yet, 409 where it has another resource version.
    pub async fn set_report(
        &self,
        crd: &str,
        status: &DefaultsReportStatus,
        version: &str,
    ) -> Result<String, CallError> {
        let body = json!({
            "apiVersion": DefaultsReport::api_version(&()),
            "kind": DefaultsReport::kind(&()),
            "metadata": { "name": crd, "resourceVersion": version },
            "status": status,
        });
        self.apply_for_version(&format!("{}/status", report_path(crd)), body).await
    }

    /// All reports; `None` where their CRD is not installed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn all_reports(&self) -> Result<Option<Vec<Object>>, CallError> {
        self.all_of(&reports()).await
    }

    /// All policies; `None` where their CRD is not installed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn all_policies(&self) -> Result<Option<Vec<Object>>, CallError> {
        self.all_of(&policies()).await
    }

    /// All EmbeddedSchemas; `None` where Etch's CRDs are not installed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn all_embedded_schemas(&self) -> Result<Option<Vec<Object>>, CallError> {
        self.all_of(&embedded_schemas()).await
    }

    /// All objects of a resource; `None` where there is no such resource.
    async fn all_of(&self, resource: &Resource) -> Result<Option<Vec<Object>>, CallError> {
        let (mut found, mut next) = (Vec::new(), None);
        loop {
            let Some(page) = if_there(self.page(resource, next.as_deref()).await)? else { return Ok(None) };
            found.extend(page.objects);
            next = page.next;
            if next.is_none() {
                return Ok(Some(found));
            }
        }
    }

    /// Deletes a report, if it is still this one. The operator has no permission for that, and no need of it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn delete_report(&self, name: &str, uid: &str) -> Result<(), CallError> {
        self.delete(&report_path(name), uid).await
    }

    /// Deletes what is at a path and has this uid, if it is there.
    pub(super) async fn delete(&self, path: &str, uid: &str) -> Result<(), CallError> {
        let body = json!({ "preconditions": { "uid": uid } });
        if_there(self.call(send(Method::DELETE, path, Json::from(body).to_vec())).await).map(drop)
    }

    /// Replaces the status of a policy or an EmbeddedSchema. The uid makes sure that it is the one that was
    /// read.
    ///
    /// # Errors
    /// See [`CallError`]. 404 and 409 may mean that it is gone or was created again.
    pub async fn set_status<K>(&self, name: &str, uid: &str, status: &K::Status) -> Result<(), CallError>
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
        self.apply(&format!("{}/status", named(&resource, None, name)), body).await
    }

    /// Applies fields that only Etch sets. Forced: a client that replaces all conditions of a CRD owns ours
    /// as well from then on, and the server would refuse an apply that is not forced. The answer for a large
    /// CRD is as large as the CRD and is not needed, so it is not read.
    pub(super) async fn apply(&self, path: &str, body: Value) -> Result<(), CallError> {
        let request = answered_with(forced(path, Json::from(body).to_vec()), METADATA);
        self.call(request).await.map(drop)
    }

    /// As [`Self::apply`]; returns the resource version that the object has then.
    async fn apply_for_version(&self, path: &str, body: Value) -> Result<String, CallError> {
        let answer = self.apply_for_metadata(path, body).await?;
        Ok(Object::from(answer).resource_version().to_owned())
    }

    /// As [`Self::apply`]; returns the object's metadata as it is then.
    async fn apply_for_metadata(&self, path: &str, body: Value) -> Result<Json, CallError> {
        let request = answered_with(forced(path, Json::from(body).to_vec()), METADATA);
        self.call_for_json(request).await
    }
}

/// Where policies are.
pub fn policies() -> Resource {
    Resource::new(GROUP, "v1alpha1", "defaultspolicies")
}

/// Where EmbeddedSchemas are.
pub fn embedded_schemas() -> Resource {
    Resource::new(GROUP, "v1alpha1", "embeddedschemas")
}

/// Where reports are.
pub fn reports() -> Resource {
    Resource::new(GROUP, "v1alpha1", "defaultsreports")
}

/// Where CRDs are.
pub fn crds() -> Resource {
    Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions")
}

fn report_path(name: &str) -> String {
    named(&reports(), None, name)
}
