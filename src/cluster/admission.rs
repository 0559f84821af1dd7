//! What admission reads and writes: EmbeddedSchemas, the objects of facts, webhook configurations, whether an
//! object exists. Of an object that only has to exist, it reads the metadata alone.

use kube::Resource as _;
use serde_json::json;

use super::call::{encoded, get, if_there, patch};
use super::crds::{METADATA, accepting};
use super::{CallError, Cluster};
use etch_admission::api::{EmbeddedSchema, EmbeddedSchemaStatus};
use etch_admission::{CONFIGURATION, Lookup};
use etch_core::api::GROUP;
use etch_core::plan::PatchKind;
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
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", encoded(group)) };
        let namespace = match namespace {
            "" => String::new(),
            namespace => format!("/namespaces/{}", encoded(namespace)),
        };
        let (version, resource, name) = (encoded(version), encoded(resource), encoded(name));
        let path = format!("{root}/{version}{namespace}/{resource}/{name}");
        match self.call(accepting(&path, METADATA)).await {
            Ok(_) => Ok(true),
            Err(CallError::Refused(refusal)) if refusal.is_missing_object() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces the status of an EmbeddedSchema. The uid makes sure that it is the one that was read.
    ///
    /// # Errors
    /// See [`CallError`]. 404 and 409 mean that it is gone or was created again.
    pub async fn set_embedded_schema_status(
        &self,
        name: &str,
        uid: &str,
        status: &EmbeddedSchemaStatus,
    ) -> Result<(), CallError> {
        let body = json!({
            "apiVersion": EmbeddedSchema::api_version(&()),
            "kind": EmbeddedSchema::kind(&()),
            "metadata": { "name": name, "uid": uid },
            "status": status,
        });
        self.apply(&format!("/apis/{GROUP}/v1alpha1/embeddedschemas/{}/status", encoded(name)), body).await
    }

    /// Etch's own webhook configuration; `None` if there is none.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn webhook_configuration(
        &self,
        which: WebhookConfiguration,
    ) -> Result<Option<Json>, CallError> {
        let body = if_there(self.call(get(&which.path())).await)?;
        body.map(|body| Json::parse(&body).map_err(CallError::malformed)).transpose()
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
        self.apply(&which.path(), body).await
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
        let request = patch(&which.path(), PatchKind::Json, Json::from(operations).to_vec());
        Json::parse(&self.call(request).await?).map_err(CallError::malformed)
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
        self.apply(&format!("{}?dryRun=All", which.path()), body).await
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
