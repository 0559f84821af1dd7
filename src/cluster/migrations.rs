//! Kubernetes' own migrator: whether it has work with the objects of a CRD.

use serde::Deserialize;

use super::{CallError, Cluster};
use etch_core::call_error::if_there;
use etch_core::crd::Crd;
use etch_core::request::get;
use etch_core::stored_versions::{is_migrated, running_migration};
use serde_json::Value;

/// What a server answers about a group.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    group_version: String,
}

impl Cluster {
    /// Whether a StorageVersionMigration of a CRD's objects waits or runs. A server without that API has
    /// none.
    ///
    /// # Errors
    /// See [`CallError`].
    pub(super) async fn is_migrated(&self, crd: &Crd) -> Result<bool, CallError> {
        Ok(is_migrated(crd, &self.migrations().await?))
    }

    /// The name of the StorageVersionMigration that writes a CRD's objects now.
    ///
    /// # Errors
    /// See [`CallError`].
    pub(crate) async fn running_migration(&self, crd: &Crd) -> Result<Option<String>, CallError> {
        Ok(running_migration(crd, &self.migrations().await?))
    }

    /// The list of all StorageVersionMigrations; null where the server does not have that API.
    async fn migrations(&self) -> Result<Value, CallError> {
        let group = if_there(self.call_for(get("/apis/storagemigration.k8s.io")).await)?;
        let Some(Group { preferred_version }) = group else { return Ok(Value::Null) };
        let path = format!("/apis/{}/storageversionmigrations", preferred_version.group_version);
        Ok(if_there(self.call_for(get(&path)).await)?.unwrap_or_default())
    }
}
