//! Finds CRDs: all their names, or one by its name.
//! It holds one CRD at a time: schemas are large.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{CallError, Cluster};
use etch_core::call_error::{if_exists, if_there, json};
use etch_core::plan::PatchKind;
use etch_core::request::path::{collection, crd_path, encoded};
use etch_core::request::resources::crds;
use etch_core::request::{METADATA, METADATA_LIST, accepting, answered_with, get, patch_as, try_apply};
use kube_structural_schema::json::Json;

/// How often a CRD is read and patched that changes in between.
const PATCH_ATTEMPTS: u32 = 5;
#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: ListMeta,
    /// Null where there are none.
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMeta {
    r#continue: String,
}

#[derive(Deserialize)]
struct Partial {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    uid: String,
    generation: i64,
}

impl Cluster {
    /// The namespace of the kubeconfig's context, or the one of the pod.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Whether there is a namespace of this name; assumed if Etch may not read it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn has_namespace(&self, name: &str) -> Result<bool, CallError> {
        match if_there(self.call(accepting(&format!("/api/v1/namespaces/{}", encoded(name)), METADATA)).await)
        {
            Err(error) if error.code() == Some(403) => Ok(true),
            namespace => Ok(namespace?.is_some()),
        }
    }

    /// The names of all CRDs, in their order.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn crd_names(&self) -> Result<Vec<String>, CallError> {
        let mut names = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("{}?limit=500&continue={}", collection(&crds(), None), encoded(&after));
            let body = self.call(accepting(&path, METADATA_LIST)).await?;
            let list: List<'_> = serde_json::from_slice(&body).map_err(CallError::malformed)?;
            for item in list.items.into_iter().flatten() {
                let crd: Partial = serde_json::from_str(item.get()).map_err(CallError::malformed)?;
                names.push(crd.metadata.name);
            }
            after = list.metadata.r#continue;
            if after.is_empty() {
                names.sort();
                return Ok(names);
            }
        }
    }

    /// A CRD by its name; `None` if there is none.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn crd(&self, name: &str) -> Result<Option<Json>, CallError> {
        let body = if_exists(self.call_in_turn(get(&crd_path(name)), &self.turns.crds).await)?;
        body.map(|body| json(&body)).transpose()
    }

    /// Patches the status of a CRD by what `body` makes of it as it is read, and again if it changes in between.
    /// Returns the CRD as it is then, and whether there was anything to patch.
    ///
    /// # Errors
    /// See [`CallError`]; 409 if it changes each time.
    pub(super) async fn patch_crd_status(
        &self,
        name: &str,
        manager: &str,
        body: impl Fn(&Json) -> Option<Json> + Send,
    ) -> Result<(Json, bool), CallError> {
        let path = format!("{}/status", crd_path(name));
        let mut attempts = 0;
        loop {
            attempts += 1;
            let document = self.crd(name).await?.unwrap_or_default();
            let Some(body) = body(&document) else { return Ok((document, false)) };
            let request = answered_with(patch_as(manager, &path, PatchKind::Merge, body.to_vec()), METADATA);
            match self.call_for_json(request).await {
                Err(error) if error.code() == Some(409) && attempts < PATCH_ATTEMPTS => {}
                answer => return answer.map(|answer| (answer, true)),
            }
        }
    }

    /// What the API server would make of a CRD that the user applies as `manager`: a dry run, which stores
    /// nothing. It takes over fields of other managers only if it is `forced`.
    ///
    /// # Errors
    /// See [`CallError`]; 409 if other managers own fields that change.
    pub async fn try_crd(
        &self,
        name: &str,
        crd: &Json,
        manager: &str,
        forced: bool,
    ) -> Result<Json, CallError> {
        self.call_for_json(try_apply(&crd_path(name), manager, forced, crd.to_vec())).await
    }

    /// Whether there is a CRD of this name, without its schema.
    pub(super) async fn has_crd(&self, name: &str) -> Result<bool, CallError> {
        Ok(self.crd_metadata(name).await?.is_some())
    }

    /// Whether etcd holds this very CRD, and still at this generation: then no server has served a newer one.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn has_generation(&self, name: &str, uid: &str, generation: i64) -> Result<bool, CallError> {
        let metadata = self.crd_metadata(name).await?;
        Ok(metadata.is_some_and(|metadata| metadata.uid == uid && metadata.generation == generation))
    }

    /// A CRD without its schema; `None` if there is none.
    async fn crd_metadata(&self, name: &str) -> Result<Option<Metadata>, CallError> {
        let read = self.call_for(accepting(&crd_path(name), METADATA)).await;
        Ok(if_exists(read)?.map(|Partial { metadata }| metadata))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_may_have_no_crds() {
        let empty = r#"{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"7"},"items":null}"#;
        let list: List<'_> = serde_json::from_str(empty).expect("a list");
        assert!(list.items.is_none() && list.metadata.r#continue.is_empty());
    }
}
