//! One project's CRD in a cluster, before and after its upgrade, with the objects that were made of it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::aged;
use e2e::cluster::{CRDS, Cluster, GUARD, eventually};
use e2e::corpus::{Made, load, storage_version, text};
use e2e::scene::Scene;
use etch_core::crd::Crd;
use kube_structural_schema::json::Json;
use serde_json::{Value, json};

use crate::values::all_of;

/// Reasons with which a pass may end.
pub(crate) const FINAL: [&str; 5] =
    ["AllPersisted", "HiddenFields", "InvalidDefaults", "Misfit", "ObjectsRejected"];

/// A CRD, and its objects.
pub(crate) struct Release<'s> {
    pub(crate) scene: &'s Scene,
    pub(crate) name: String,
    pub(crate) old: Value,
    pub(crate) new: Value,
    pub(crate) objects: Vec<Made>,
}

impl<'s> Release<'s> {
    /// The upgrade in a folder of the corpus, without objects.
    pub(crate) fn load(scene: &'s Scene, pair: &Path) -> Result<Self> {
        let (old, new) = (load(pair, "old.yaml")?, load(pair, "new.yaml")?);
        let name = text(&new, &["metadata", "name"])?;
        Ok(Self { scene, name, old, new, objects: Vec::new() })
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.scene.cluster
    }

    fn resource(&self) -> Result<(String, String)> {
        Ok((text(&self.new, &["spec", "group"])?, text(&self.new, &["spec", "names", "plural"])?))
    }

    /// Has the last change of the CRD be so long ago that no API server lags behind it.
    pub(crate) async fn age_crd(&self) -> Result<()> {
        aged::crd(self.cluster(), &self.name).await
    }

    /// The objects as they are read at the storage version of a CRD, which is served.
    pub(crate) async fn read(&self, crd: &Value) -> Result<Vec<Value>> {
        let version = storage_version(crd)?;
        let mut all = Vec::new();
        for object in &self.objects {
            all.push(self.cluster().get(&path_at(object, &version)).await?);
        }
        Ok(all)
    }

    /// What etcd holds of an object.
    pub(crate) async fn stored(&self, object: &Made) -> Result<Value> {
        let (group, plural) = self.resource()?;
        let namespace = (self.new["spec"]["scope"] == "Namespaced").then_some("default");
        self.cluster().raw(&group, &plural, namespace, &object.name).await
    }

    /// All that is shown of an object is in etcd.
    pub(crate) async fn is_stored(&self, object: &Made, shown: &Value) -> Result<()> {
        all_of(shown, &self.stored(object).await?).context("what etcd holds")
    }

    /// Etcd holds every object at the storage version of a CRD.
    pub(crate) async fn is_stored_at(&self, crd: &Value) -> Result<()> {
        let version = format!("{}/{}", self.resource()?.0, storage_version(crd)?);
        for object in &self.objects {
            let at = self.stored(object).await?["apiVersion"].clone();
            ensure!(at == version, "{} is stored at {at}", object.name);
        }
        Ok(())
    }

    /// The versions at which objects may be stored, as the CRD lists them.
    pub(crate) async fn listed(&self) -> Result<Value> {
        let crd = self.cluster().get(&format!("{CRDS}/{}", self.name)).await?;
        Ok(crd["status"]["storedVersions"].clone())
    }

    /// Waits until an operator that audits has looked at the CRD as it is now.
    pub(crate) async fn seen(&self, crd: &Value) -> Result<()> {
        match has_defaults(crd)? {
            true => self.audited().await.map(drop),
            false => self.cluster().persisted(&self.name, "NoDefaults", GUARD).await.map(drop),
        }
    }

    /// The status of the report of an audit, once it is finished.
    pub(crate) async fn audited(&self) -> Result<Value> {
        eventually(GUARD, "an audit ends", async || {
            let crd = self.cluster().get(&format!("{CRDS}/{}", self.name)).await?;
            let status = self.scene.report(&self.name).await?["status"].clone();
            let current =
                status["generation"] == crd["metadata"]["generation"] && status["finished"].is_string();
            Ok((current && status["state"] != "InProgress").then_some(status))
        })
        .await
    }

    /// How many of the operator's requests could have written an object.
    pub(crate) fn writes(&self) -> Result<usize> {
        let (group, plural) = self.resource()?;
        let found = self.scene.requests(|event| {
            let reference = &event["objectRef"];
            reference["apiGroup"] == group.as_str()
                && reference["resource"] == plural.as_str()
                && ["patch", "update", "create", "delete"].iter().any(|verb| event["verb"] == *verb)
        })?;
        Ok(found.len())
    }

    /// Lets the operator do what a policy says.
    pub(crate) async fn policy(&self, spec: Value) -> Result<()> {
        let mut spec = spec;
        spec["selector"] = json!({ "names": [self.name] });
        self.scene.policy(&self.name, spec).await
    }

    /// Lets the operator look, and write nothing.
    pub(crate) async fn audit_only(&self) -> Result<()> {
        self.policy(json!({ "mode": "Audit" })).await
    }

    /// Has the operator leave the CRD alone, and waits until its report says so: after that it writes none.
    /// An audit may still be about to write one that looks like the last.
    pub(crate) async fn left_alone(&self) -> Result<()> {
        self.policy(json!({ "mode": "Ignore" })).await?;
        eventually(GUARD, "the CRD is left alone", async || {
            let report = self.scene.report(&self.name).await?;
            Ok((report["status"]["state"] == "Ignored").then_some(()))
        })
        .await
    }

    pub(crate) async fn delete(&self) -> Result<()> {
        let path = format!("{CRDS}/{}", self.name);
        self.cluster().delete(&path).await?;
        eventually(GUARD, "the CRD is gone", async || {
            Ok(self.cluster().get(&path).await.is_err().then_some(()))
        })
        .await
    }
}

/// Where an object is at a version.
pub(crate) fn path_at(object: &Made, version: &str) -> String {
    object.path.replace(&format!("/{}/", object.version), &format!("/{version}/"))
}

/// Whether the storage version of a CRD has defaults.
pub(crate) fn has_defaults(crd: &Value) -> Result<bool> {
    Ok(Crd::read(&Json::from(crd.clone()))?.compiled().has_defaults())
}
