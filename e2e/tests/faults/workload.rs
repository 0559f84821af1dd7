//! What happens to a CRD and its objects while faults happen, and what etcd must hold in the end.
//! It must not know any fault.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use e2e::cluster::{Cluster, Patch, crd};
use e2e::scene::Scene;
use serde_json::{Value, json};

pub(crate) const GROUP: &str = "faults.example.com";
/// How many objects each CRD has.
const OBJECTS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Two defaults are added, one of them within another.
    Upgrade,
    /// The storage version changes, and the new one has a default: owners are moved to it.
    NewVersion,
    /// Objects that nobody owns, as old clients left them.
    Unowned,
    /// A default changes, and a policy has unowned values follow it.
    Follow,
    /// Users edit, delete and recreate objects just after the upgrade.
    Users,
    /// Objects hold a field that the schema no longer knows.
    Hidden,
}

pub(crate) const WORKLOADS: [Workload; 6] = [
    Workload::Upgrade,
    Workload::NewVersion,
    Workload::Unowned,
    Workload::Follow,
    Workload::Users,
    Workload::Hidden,
];

/// What etcd must hold of an object.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) spec: Value,
    /// The managers in `managedFields`.
    pub(crate) owners: BTreeSet<String>,
    /// Writes by Etch without any fault.
    pub(crate) writes: i64,
}

/// A CRD and its objects.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) kind: String,
    pub(crate) workload: Workload,
    /// What users have done to each object, as writes.
    pub(crate) by_users: BTreeMap<String, i64>,
    pub(crate) uids: BTreeMap<String, String>,
    pub(crate) expected: BTreeMap<String, Expected>,
}

impl Subject {
    pub(crate) fn new(index: usize, workload: Workload) -> Self {
        let empty = BTreeMap::new();
        Self {
            kind: format!("Plan{index}"),
            workload,
            by_users: empty,
            uids: BTreeMap::new(),
            expected: BTreeMap::new(),
        }
    }

    pub(crate) fn plural(&self) -> String {
        format!("{}s", self.kind.to_lowercase())
    }

    pub(crate) fn crd(&self) -> String {
        format!("{}.{GROUP}", self.plural())
    }

    fn path(&self, version: &str, name: &str) -> String {
        format!("/apis/{GROUP}/{version}/namespaces/default/{}/{name}", self.plural())
    }

    /// The path of an object at the storage version.
    pub(crate) fn stored_path(&self, name: &str) -> String {
        self.path(if self.workload == Workload::NewVersion { "v2" } else { "v1" }, name)
    }

    /// The condition's reason in the end.
    pub(crate) fn reason(&self) -> &'static str {
        if self.workload == Workload::Hidden { "HiddenFields" } else { "AllPersisted" }
    }

    fn object(&self, version: &str, name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": self.kind,
            "metadata": { "name": name, "namespace": "default" }, "spec": spec,
        })
    }

    async fn define(&self, cluster: &Cluster, versions: &[(&str, bool, Value)]) -> Result<()> {
        cluster.apply_crd(&crd(GROUP, &self.kind, versions)).await.map(drop)
    }

    /// The CRD and its objects before anything happens.
    pub(crate) async fn set_up(&mut self, scene: &Scene) -> Result<()> {
        let cluster = &scene.cluster;
        match self.workload {
            Workload::Hidden => self.define(cluster, &[("v1", true, with_legacy())]).await?,
            Workload::Follow => {
                let policy = json!({
                    "selector": { "names": [self.crd()] },
                    "onChange": [{ "path": ".spec.size", "action": "Follow" }],
                });
                scene.policy(&self.kind.to_lowercase(), policy).await?;
                self.define(cluster, &[("v1", true, plain())]).await?;
            }
            _ => self.define(cluster, &[("v1", true, plain())]).await?,
        }
        for index in 0..OBJECTS {
            let name = format!("object-{index}");
            let mut spec = json!({ "note": name, "empty": "", "zero": 0, "list": [] });
            if self.workload == Workload::Hidden {
                spec["legacy"] = json!("precious");
            }
            let object = self.object("v1", &name, spec.clone());
            let path = self.path("v1", &name);
            cluster.patch(&path, Patch::Apply, "owner", &object).await?.ok()?;
            let mut raw = cluster.raw(GROUP, &self.plural(), Some("default"), &name).await?;
            let mut owners = BTreeSet::from(["owner".to_owned()]);
            self.by_users.insert(name.clone(), 1);
            if self.workload == Workload::Unowned {
                raw["metadata"].as_object_mut().context("metadata")?.remove("managedFields");
                let key = format!("/registry/{GROUP}/{}/default/{name}", self.plural());
                cluster.etcd().put(&key, &serde_json::to_vec(&raw)?).await?;
                owners.clear();
                self.by_users.insert(name.clone(), 2);
            }
            self.uids.insert(name.clone(), raw["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
            let writes = match self.workload {
                Workload::Hidden => 0,
                // A rewrite is one patch, and another one that takes our own entry away.
                Workload::NewVersion => 2,
                // Stored, moved, and given back to nobody.
                Workload::Follow => 4,
                _ => 1,
            };
            self.expected.insert(name, Expected { spec, owners, writes });
        }
        Ok(())
    }

    /// What happens.
    pub(crate) async fn happen(&mut self, cluster: &Cluster) -> Result<()> {
        match self.workload {
            Workload::NewVersion => {
                let versions = [("v1", false, plain()), ("v2", true, defaulted(1))];
                self.define(cluster, &versions).await?;
            }
            Workload::Hidden => self.define(cluster, &[("v1", true, defaulted(1))]).await?,
            Workload::Follow => {
                self.define(cluster, &[("v1", true, defaulted(1))]).await?;
                cluster.persisted(&self.crd(), "AllPersisted", LONG).await?;
                self.define(cluster, &[("v1", true, defaulted(5))]).await?;
            }
            _ => self.define(cluster, &[("v1", true, defaulted(1))]).await?,
        }
        if self.workload == Workload::Users {
            self.users(cluster).await?;
        }
        let size = if self.workload == Workload::Follow { 5 } else { 1 };
        if self.workload != Workload::Hidden {
            for expected in self.expected.values_mut() {
                if expected.spec.get("size").is_none() {
                    expected.spec["size"] = json!(size);
                }
                expected.spec["nested"] = json!({ "depth": 2 });
            }
        }
        Ok(())
    }

    async fn users(&mut self, cluster: &Cluster) -> Result<()> {
        let names: Vec<String> = self.expected.keys().cloned().collect();
        let [edited, deleted, recreated, noted] = &names[..] else { anyhow::bail!("four objects") };
        let edit = json!({ "spec": { "size": -1 } });
        cluster.patch(&self.path("v1", edited), Patch::Merge, "user", &edit).await?.ok()?;
        self.change(edited, |expected| expected.spec["size"] = json!(-1));
        cluster.delete(&self.path("v1", deleted)).await?;
        self.expected.remove(deleted);
        cluster.delete(&self.path("v1", recreated)).await?;
        let again = self.object("v1", recreated, json!({ "note": "again" }));
        let collection = self.path("v1", "");
        let made = cluster.create(collection.trim_end_matches('/'), "user", &again).await?;
        self.uids.insert(recreated.clone(), made["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
        self.by_users.insert(recreated.clone(), 0);
        self.change(recreated, |expected| {
            *expected =
                Expected { spec: json!({ "note": "again" }), owners: BTreeSet::new(), ..expected.clone() };
        });
        let note = json!({ "spec": { "note": "noted" } });
        cluster.patch(&self.path("v1", noted), Patch::Merge, "user", &note).await?.ok()?;
        self.change(noted, |expected| expected.spec["note"] = json!("noted"));
        Ok(())
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Expected)) {
        *self.by_users.entry(name.to_owned()).or_default() += 1;
        if let Some(expected) = self.expected.get_mut(name) {
            change(expected);
            expected.owners.insert("user".to_owned());
        }
    }
}

/// Longer than any back-off that a fault leads to.
pub(crate) const LONG: std::time::Duration = std::time::Duration::from_secs(180);

fn properties() -> Value {
    json!({
        "note": { "type": "string" }, "empty": { "type": "string" }, "zero": { "type": "integer" },
        "list": { "type": "array", "items": { "type": "string" } },
        "size": { "type": "integer" },
        "nested": { "type": "object", "properties": { "depth": { "type": "integer" } } },
    })
}

fn schema(properties: Value) -> Value {
    json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": properties } } })
}

fn plain() -> Value {
    schema(properties())
}

fn with_legacy() -> Value {
    let mut all = properties();
    all["legacy"] = json!({ "type": "string" });
    schema(all)
}

fn defaulted(size: i64) -> Value {
    let mut all = properties();
    all["size"]["default"] = json!(size);
    all["nested"]["default"] = json!({});
    all["nested"]["properties"]["depth"]["default"] = json!(2);
    schema(all)
}
