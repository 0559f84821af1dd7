//! The CronTabs of one API group: a CRD that a test changes as it likes, requests by any manager, and what
//! etcd holds.
//!
//! A group belongs to one row, so rows run side by side.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result, bail, ensure};
use e2e::cluster::{GUARD, eventually};
use http::Method;
use kube::Client;
use kube_structural_schema::json::Json;
use serde_json::{Map, Value, json};

use crate::cluster::{APPLY, Answer, Cluster, JSON, JSON_PATCH, MERGE, send};

/// The manager that writes as Etch does.
pub(crate) const ETCH: &str = "etch";

/// The CronTabs of one group, in the namespace `default`.
pub(crate) struct Tabs<'a> {
    pub(crate) cluster: &'a Cluster,
    client: Client,
    pub(crate) group: String,
    definitions: AtomicU32,
}

/// The versions of a CRD; the last one is the storage version.
pub(crate) struct Definition {
    versions: Vec<(String, Value)>,
    status: bool,
    scale: bool,
    conversion: Value,
}

/// What etcd holds for an object.
#[derive(Debug, PartialEq)]
pub(crate) struct Stored {
    /// The version of the bytes.
    pub(crate) version: String,
    pub(crate) spec: Value,
    pub(crate) generation: i64,
    /// As [`owners`] shows them.
    pub(crate) owners: Vec<String>,
}

/// A property of type string.
pub(crate) fn text() -> Value {
    json!({"type": "string"})
}

/// A property of type string with a default.
pub(crate) fn defaulted(default: &str) -> Value {
    json!({"type": "string", "default": default})
}

/// A schema whose `spec` has these properties.
pub(crate) fn spec(properties: Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

/// Versions with these schemas, the storage version last.
pub(crate) fn versions<const N: usize>(versions: [(&str, Value); N]) -> Definition {
    let versions = versions.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    Definition { versions, status: false, scale: false, conversion: json!({"strategy": "None"}) }
}

/// The single version v1 whose `spec` has these properties.
pub(crate) fn v1(properties: Value) -> Definition {
    versions([("v1", spec(properties))])
}

impl Definition {
    /// The status subresource in every version.
    pub(crate) fn with_status(self) -> Self {
        Self { status: true, ..self }
    }

    /// The scale subresource in every version, of `.spec.replicas`.
    pub(crate) fn with_scale(self) -> Self {
        Self { scale: true, ..self }
    }

    pub(crate) fn converted(self, conversion: Value) -> Self {
        Self { conversion, ..self }
    }

    /// The CRD; `probe` is a top-level property that distinguishes this definition from those before it.
    pub(crate) fn manifest(&self, group: &str, probe: &str) -> Value {
        let storage = self.versions.len() - 1;
        let versions = self.versions.iter().enumerate().map(|(index, (name, schema))| {
            let mut schema = schema.clone();
            schema["properties"][probe] = text();
            let mut subresources = json!({});
            if self.status {
                subresources["status"] = json!({});
            }
            if self.scale {
                subresources["scale"] =
                    json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
            }
            json!({"name": name, "served": true, "storage": index == storage, "subresources": subresources,
                   "schema": {"openAPIV3Schema": schema}})
        });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("crontabs.{group}")},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
                "conversion": self.conversion,
                "versions": versions.collect::<Vec<_>>(),
            },
        })
    }
}

impl<'a> Tabs<'a> {
    /// The group of the row `name`, without a CRD.
    pub(crate) fn new(cluster: &'a Cluster, name: &str) -> Self {
        let group = format!("{}.example.com", name.replace('_', "-"));
        Self { cluster, client: cluster.admin().clone(), group, definitions: AtomicU32::new(0) }
    }

    /// The same objects, asked for by another user.
    pub(crate) fn seen_by(&self, client: Client) -> Self {
        Self { cluster: self.cluster, client, group: self.group.clone(), definitions: AtomicU32::new(0) }
    }

    pub(crate) fn crd(&self) -> String {
        format!("crontabs.{}", self.group)
    }

    pub(crate) fn crd_path(&self) -> String {
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", self.crd())
    }

    /// Creates or replaces the CRD, and waits until it is served.
    pub(crate) async fn define(&self, definition: Definition) -> Result<()> {
        let probe = format!("probe{}", self.definitions.fetch_add(1, Ordering::Relaxed));
        let manifest = definition.manifest(&self.group, &probe);
        let path = format!("{}?fieldManager=facts&force=true", self.crd_path());
        self.cluster.patch(APPLY, &path, &manifest).await?.ok().context("apply the CRD")?;
        let (version, _) = definition.versions.last().context("a CRD without versions")?;
        self.until_served(version, &probe).await
    }

    /// Waits until objects of `version` may have the top-level property `probe`, which none ever has.
    async fn until_served(&self, version: &str, probe: &str) -> Result<()> {
        let path = format!("{}?dryRun=All&fieldValidation=Strict", self.path(version, ""));
        let mut object = self.object(version, "probe", json!({}));
        object[probe] = json!("");
        eventually(GUARD, &format!("the CRD of {} is served", self.group), async || {
            let answer = self.cluster.post(&path, &object).await?;
            let unknown = answer.code == 400 && answer.body["message"].to_string().contains(probe);
            Ok((answer.code != 404 && !unknown).then_some(()))
        })
        .await
    }

    /// Forgets that objects may be stored at other versions than these, as a storage migration does at its
    /// end.
    pub(crate) async fn forget_versions_but(&self, kept: &[&str]) -> Result<()> {
        let path = format!("{}/status", self.crd_path());
        self.cluster.patch(MERGE, &path, &json!({"status": {"storedVersions": kept}})).await?.ok()?;
        Ok(())
    }

    /// The path of an object; with an empty name that of the collection.
    pub(crate) fn path(&self, version: &str, name: &str) -> String {
        let separator = if name.is_empty() { "" } else { "/" };
        format!("/apis/{}/{version}/namespaces/default/crontabs{separator}{name}", self.group)
    }

    /// Creates an object with an Update (POST) by `manager`.
    pub(crate) async fn create(
        &self,
        version: &str,
        name: &str,
        manager: &str,
        fields: Value,
    ) -> Result<Json> {
        let path = format!("{}?fieldManager={manager}", self.path(version, ""));
        let body = self.object(version, name, fields).to_string();
        let answer = send(&self.client, Method::POST, &path, JSON, body).await?;
        answer.ok().with_context(|| format!("create {name}"))
    }

    /// Server-side apply of `fields`, beside the identity; `name` may have a subresource: `a/status`.
    pub(crate) async fn apply(
        &self,
        version: &str,
        name: &str,
        manager: &str,
        fields: Value,
    ) -> Result<Answer> {
        let path = format!("{}?fieldManager={manager}", self.path(version, name));
        let name = name.split('/').next().unwrap_or(name);
        let body = self.object(version, name, fields).to_string();
        send(&self.client, Method::PATCH, &path, APPLY, body).await
    }

    /// The identity-only apply of W2: no fields, but the uid and the resourceVersion of the object as it is
    /// (W6).
    pub(crate) async fn identity(&self, version: &str, name: &str) -> Result<Answer> {
        let object = name.split('/').next().unwrap_or(name);
        let metadata = self.precondition(version, object).await?;
        self.apply(version, name, ETCH, json!({"metadata": metadata})).await
    }

    pub(crate) async fn merge(
        &self,
        version: &str,
        name: &str,
        manager: &str,
        patch: Value,
    ) -> Result<Answer> {
        let path = format!("{}?fieldManager={manager}", self.path(version, name));
        send(&self.client, Method::PATCH, &path, MERGE, patch.to_string()).await
    }

    pub(crate) async fn json_patch(&self, version: &str, name: &str, operations: Value) -> Result<Answer> {
        let path = format!("{}?fieldManager={ETCH}", self.path(version, name));
        send(&self.client, Method::PATCH, &path, JSON_PATCH, operations.to_string()).await
    }

    /// Replaces an object with what it is read as, so with what changes nothing.
    pub(crate) async fn put_unchanged(&self, version: &str, name: &str, manager: &str) -> Result<Answer> {
        let body = self.read(version, name).await?.to_vec();
        let path = format!("{}?fieldManager={manager}", self.path(version, name));
        send(&self.client, Method::PUT, &path, JSON, body).await
    }

    /// The read view.
    pub(crate) async fn read(&self, version: &str, name: &str) -> Result<Json> {
        self.get(version, name).await?.ok().with_context(|| format!("read {name}"))
    }

    pub(crate) async fn get(&self, version: &str, name: &str) -> Result<Answer> {
        send(&self.client, Method::GET, &self.path(version, name), JSON, Vec::new()).await
    }

    /// The `spec` of the read view.
    pub(crate) async fn seen(&self, version: &str, name: &str) -> Result<Value> {
        Ok(self.read(version, name).await?["spec"].clone())
    }

    /// What etcd holds, whole.
    pub(crate) async fn raw(&self, name: &str) -> Result<Value> {
        let raw = self.cluster.etcd().raw_object(&self.group, "crontabs", Some("default"), name).await?;
        raw.with_context(|| format!("{name} is not in etcd"))
    }

    /// What etcd holds, in short.
    pub(crate) async fn stored(&self, name: &str) -> Result<Stored> {
        let raw = self.raw(name).await?;
        let version = raw["apiVersion"].as_str().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
        let generation = raw["metadata"]["generation"].as_i64().context("an object without a generation")?;
        let spec = raw["spec"].clone();
        Ok(Stored { version: version.to_owned(), spec, generation, owners: owners(&raw) })
    }

    /// Whether there is an object of this name in etcd.
    pub(crate) async fn exists(&self, name: &str) -> Result<bool> {
        let raw = self.cluster.etcd().raw_object(&self.group, "crontabs", Some("default"), name).await?;
        Ok(raw.is_some())
    }

    /// The revision in etcd, which the API shows as resourceVersion.
    pub(crate) async fn revision(&self, name: &str) -> Result<i64> {
        let key = e2e::control_plane::object_key(&self.group, "crontabs", Some("default"), name);
        let (_, revision) = self.cluster.etcd().get(&key).await?.context("not in etcd")?;
        Ok(revision)
    }

    /// Fails unless the request, sent twice, changes nothing in etcd the second time.
    pub(crate) async fn settled(&self, version: &str, name: &str) -> Result<()> {
        let before = self.revision(name).await?;
        self.identity(version, name).await?.ok()?;
        ensure!(self.revision(name).await? == before, "an identity-only apply changed {name}");
        Ok(())
    }

    /// The merge patch of W9: the owners, re-versioned to `to`, of the object as it is read at `version`.
    pub(crate) async fn reversion(&self, version: &str, name: &str, to: &str) -> Result<Answer> {
        let object = self.read(version, name).await?;
        let mut entries = object["metadata"]["managedFields"].clone();
        for entry in entries.as_array_mut().into_iter().flatten() {
            entry["apiVersion"] = json!(format!("{}/{to}", self.group));
        }
        self.set_owners(version, name, entries).await
    }

    /// Writes these managedFields on the object as it is.
    pub(crate) async fn set_owners(&self, version: &str, name: &str, entries: Value) -> Result<Answer> {
        let mut metadata = self.precondition(version, name).await?;
        metadata["managedFields"] = entries;
        self.merge(version, name, ETCH, json!({"metadata": metadata})).await
    }

    /// `metadata` with the uid and the resourceVersion of the object as it is.
    pub(crate) async fn precondition(&self, version: &str, name: &str) -> Result<Value> {
        let object = self.read(version, name).await?;
        let Value::Object(metadata) = &object["metadata"] else { bail!("{name} without metadata") };
        let kept = ["uid", "resourceVersion"].map(|key| (key.to_owned(), metadata[key].clone()));
        Ok(Value::Object(Map::from_iter(kept)))
    }

    fn object(&self, version: &str, name: &str, fields: Value) -> Value {
        let mut object = fields;
        object["apiVersion"] = json!(format!("{}/{version}", self.group));
        object["kind"] = json!("CronTab");
        object["metadata"]["name"] = json!(name);
        object
    }
}

/// The owners in an order of their own, each as `manager Operation version[/subresource]: path path …`.
pub(crate) fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut owners: Vec<_> = entries.into_iter().flatten().map(owner).collect();
    owners.sort();
    owners
}

fn owner(entry: &Value) -> String {
    let string = |key: &str| entry[key].as_str().unwrap_or_default();
    let version = string("apiVersion").rsplit('/').next().unwrap_or_default();
    let mut shown = format!("{} {} {version}", string("manager"), string("operation"));
    if let Some(subresource) = entry["subresource"].as_str() {
        let _ = write!(shown, "/{subresource}");
    }
    shown.push(':');
    let mut paths = Vec::new();
    walk(&entry["fieldsV1"], "", &mut paths);
    paths.sort();
    for path in paths {
        let _ = write!(shown, " {path}");
    }
    shown
}

/// The paths that a set of FieldsV1 holds: leaves, and parents that have a `.`.
fn walk(fields: &Value, path: &str, paths: &mut Vec<String>) {
    for (key, children) in fields.as_object().into_iter().flatten() {
        if key == "." {
            paths.push(path.to_owned());
            continue;
        }
        let path = format!("{path}.{}", key.trim_start_matches("f:"));
        if children.as_object().is_some_and(Map::is_empty) {
            paths.push(path);
        } else {
            walk(children, &path, paths);
        }
    }
}
