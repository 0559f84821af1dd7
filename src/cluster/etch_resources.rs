//! What Etch itself publishes in the cluster: the conditions on CRDs, the reports, and the status of
//! policies.

use http::Request;
use kube::core::object::HasStatus;
use serde::Serialize;
use tracing::warn;

use super::{CallError, Cluster};
use etch_core::api::{DefaultsReport, DefaultsReportStatus, GROUP};
use etch_core::call_error::if_there;
use etch_core::condition::{self, Condition};
use etch_core::crd::Resource;
use etch_core::engine::status::CrdRevision;
use etch_core::object::Object;
use etch_core::ownership::MANAGER;
use etch_core::plan::Persisted;
use etch_core::request::get;
use etch_core::request::own::{self, report_path};
use etch_core::request::resources::{embedded_schemas, policies, reports};
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
        let answer = self.call_for_json(own::conditions(name, uid, version, conditions)).await?;
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
        self.call(own::persisted(name, uid, persisted)).await.map(drop)
    }

    /// Sets the annotation that lets the pass of a CRD's generation continue after its canary; `None` removes
    /// it.
    ///
    /// # Errors
    /// See [`CallError`]. 404 and 409 may mean that the CRD is gone or was created again.
    pub async fn set_resumed(&self, name: &str, uid: &str, generation: Option<i64>) -> Result<(), CallError> {
        self.call(own::resumed(name, uid, generation)).await.map(drop)
    }

    /// The report on a CRD; `None` if there is none yet, or it is about an earlier CRD of that name. It has
    /// no status while that is still an earlier CRD's.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn report(&self, crd: &str, uid: &str) -> Result<Option<DefaultsReport>, CallError> {
        let Some(document) = if_there(self.call_for(get(&report_path(crd))).await)? else { return Ok(None) };
        let (report, unread) = own::read_report(document, uid).map_err(CallError::malformed)?;
        if let Some(why) = unread {
            warn!(report = crd, %why, "the report cannot be read, and proves nothing");
        }
        Ok(report)
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
        self.call_for_version(own::opened_report(crd, uid)).await.map_err(CallError::of_own_resource)
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
        self.call_for_version(own::report_status(crd, status, version)).await
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
        if_there(self.call(own::deletion(path, uid)).await).map(drop)
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
        self.call(own::status::<K>(name, uid, status)).await.map(drop)
    }

    /// As [`Self::call`]; returns the resource version that the object has then.
    async fn call_for_version(&self, request: Request<Vec<u8>>) -> Result<String, CallError> {
        Ok(Object::from(self.call_for_json(request).await?).resource_version().to_owned())
    }
}
