//! What admission reads and writes: webhook configurations, and whether an object exists. Of an object that
//! only has to exist, it reads the metadata alone.

use serde_json::json;

use super::{CallError, Cluster};
use etch_admission::{CONFIGURATION, Lookup};
use etch_core::call_error::{if_exists, if_there};
use etch_core::crd::Resource;
use etch_core::plan::PatchKind;
use etch_core::request::own::apply;
use etch_core::request::path::named;
use etch_core::request::{METADATA, accepting, get, patch};
use kube_structural_schema::json::Json;

/// One of the two webhook configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookConfiguration {
    /// The MutatingWebhookConfiguration.
    Mutating,
    /// The ValidatingWebhookConfiguration.
    Validating,
}

impl WebhookConfiguration {
    /// Both, in the order in which the API server asks.
    pub const BOTH: [Self; 2] = [Self::Mutating, Self::Validating];

    /// The resource as kubectl writes it.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfiguration",
            Self::Validating => "validatingwebhookconfiguration",
        }
    }

    /// The resource as RBAC writes it.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }

    fn path(self) -> String {
        format!("/apis/admissionregistration.k8s.io/v1/{}/{CONFIGURATION}", self.plural())
    }
}

impl Cluster {
    /// Whether an object exists. Only its metadata is asked for.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn exists(&self, lookup: &Lookup<'_>) -> Result<bool, CallError> {
        let Lookup { group, version, resource, namespace, name } = *lookup;
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let path = named(&Resource::new(group, version, resource), namespace, name);
        Ok(if_exists(self.call(accepting(&path, METADATA)).await)?.is_some())
    }

    /// Etch's own webhook configuration; `None` if there is none.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn webhook_configuration(
        &self,
        which: WebhookConfiguration,
    ) -> Result<Option<Json>, CallError> {
        if_there(self.call_for_json(get(&which.path())).await)
    }

    /// Applies Etch's own webhook configuration.
    ///
    /// # Errors
    /// See [`CallError`]; 409 if another client has changed Etch's fields.
    pub async fn apply_webhook_configuration(
        &self,
        which: WebhookConfiguration,
        body: serde_json::Value,
    ) -> Result<(), CallError> {
        self.call(apply(&which.path(), body)).await.map(drop)
    }

    /// Replaces the webhooks of Etch's own configuration, if it is still as it was at a resource version, and
    /// returns it: an apply leaves in a webhook what another client has added.
    ///
    /// # Errors
    /// See [`CallError`]; 409 where it has changed since.
    pub async fn replace_webhooks(
        &self,
        which: WebhookConfiguration,
        resource_version: &str,
        webhooks: serde_json::Value,
    ) -> Result<Json, CallError> {
        let operations = json!([
            // A precondition: the server answers 409 if the object has another resource version.
            { "op": "replace", "path": "/metadata/resourceVersion", "value": resource_version },
            { "op": "add", "path": "/webhooks", "value": webhooks },
        ]);
        self.call_for_json(patch(&which.path(), PatchKind::Json, Json::from(operations).to_vec())).await
    }

    /// Whether the API server would take a webhook configuration; nothing is stored.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn try_webhook_configuration(
        &self,
        which: WebhookConfiguration,
        body: serde_json::Value,
    ) -> Result<(), CallError> {
        self.call(apply(&format!("{}?dryRun=All", which.path()), body)).await.map(drop)
    }

    /// Deletes a webhook configuration, if it is still this one. The operator has no permission for that, and
    /// no need of it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn delete_webhook_configuration(
        &self,
        which: WebhookConfiguration,
        uid: &str,
    ) -> Result<(), CallError> {
        self.delete(&which.path(), uid).await
    }
}
