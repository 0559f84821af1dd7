//! Asks the server what Etch may do, before Etch tries it.
//! It must not treat an answer as lasting: permissions change.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::call::send;
use super::{CallError, Cluster, Scope};
use etch_core::crd::Resource;
use etch_core::rbac::{MissingPermissions, Verb};
use kube_structural_schema::json::Json;

/// How long a permission counts as granted.
const PERMITTED: Duration = Duration::from_secs(10);

/// A permission that was granted, and when.
pub(super) type Permitted = Vec<((Resource, Scope, Verb), Instant)>;

impl Cluster {
    /// Which of these verbs Etch may not use on all objects of a resource; `None` if all are allowed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn missing(
        &self,
        resource: &Resource,
        verbs: &[Verb],
    ) -> Result<Option<MissingPermissions>, CallError> {
        self.missing_in(resource, &Scope::All, verbs).await
    }

    /// Which of these verbs Etch may not use on the objects of a resource that are in a scope; `None` if all
    /// are allowed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn missing_in(
        &self,
        resource: &Resource,
        scope: &Scope,
        verbs: &[Verb],
    ) -> Result<Option<MissingPermissions>, CallError> {
        self.asked.notify_one();
        let mut missing = Vec::new();
        for verb in verbs {
            let mut attributes = json!({
                "group": resource.group, "resource": resource.plural, "verb": verb.as_str(),
            });
            if let Some(namespace) = scope.namespace() {
                attributes["namespace"] = namespace.into();
            }
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": { "resourceAttributes": attributes },
            });
            let answer = self.review("selfsubjectaccessreviews", review).await?;
            if answer["status"]["allowed"] != true {
                missing.push(*verb);
            }
        }
        Ok((!missing.is_empty()).then(|| MissingPermissions::of(resource, missing)))
    }

    /// Whether Etch may use a verb on the objects of a resource that are in a scope. A permission counts as
    /// granted for a few seconds: if many objects are forbidden one by one, each of them asks.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn is_permitted(
        &self,
        resource: &Resource,
        scope: &Scope,
        verb: Verb,
    ) -> Result<bool, CallError> {
        let about = (resource.clone(), scope.clone(), verb);
        // Callers that come while a request is under way wait for its answer.
        let mut permitted = self.permitted.lock().await;
        permitted.retain(|(_, at)| at.elapsed() < PERMITTED);
        if permitted.iter().any(|(known, _)| *known == about) {
            return Ok(true);
        }
        let is_permitted = self.missing_in(resource, scope, &[verb]).await?.is_none();
        if is_permitted {
            permitted.push((about, Instant::now()));
        }
        Ok(is_permitted)
    }

    /// Has the server answer an access review about Etch itself.
    pub(super) async fn review(&self, plural: &str, review: Value) -> Result<Json, CallError> {
        let path = format!("/apis/authorization.k8s.io/v1/{plural}");
        let answer = self.call(send(Method::POST, &path, Json::from(review).to_vec())).await?;
        Json::parse(&answer).map_err(CallError::malformed)
    }
}
