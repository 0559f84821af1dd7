//! What happens to a CRD and its objects while faults happen, and what etcd must hold in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::cluster::{Cluster, Patch, crd, plural};
use e2e::scene::Scene;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::history::{CRDS, History};
use crate::schema::{Defaults, filled, schema};

pub(crate) const GROUP: &str = "faults.example.com";

/// Longer than any back-off that a fault leads to.
pub(crate) const LONG: Duration = Duration::from_secs(180);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    /// Defaults are added, one of them within another, and some of them where users have set nothing or null.
    Upgrade,
    /// The storage version changes, and the new one has a default: owners are moved to it. Later, users write
    /// at the old one.
    NewVersion,
    /// Objects without an owner, as old clients left them.
    Unowned,
    /// A default changes, and a policy has unowned values follow it.
    Follow,
    /// Users edit, delete, recreate and take over objects, some just after the upgrade and some later; one is
    /// terminating.
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
    /// The spec as users have set it, without any default.
    pub(crate) values: Value,
    /// The managers in `managedFields`.
    pub(crate) owners: BTreeSet<String>,
    pub(crate) uid: String,
    /// Whether it is being deleted: Etch need not store what it lacks.
    pub(crate) is_terminating: bool,
    /// How often Etch writes it at most, where no answer is lost.
    pub(crate) writes: usize,
}

/// What users have done so far.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<String, Expected>,
    /// The revisions that they have written.
    pub(crate) revisions: BTreeSet<i64>,
    /// Those of them that cost an object what its old version does not know (fact W10).
    pub(crate) setbacks: BTreeSet<i64>,
    /// What they have deleted.
    pub(crate) deleted: BTreeSet<String>,
    pub(crate) defaults: Defaults,
    /// The storage version.
    pub(crate) version: &'static str,
}

/// A CRD and its objects.
pub(crate) struct Subject {
    pub(crate) kind: String,
    pub(crate) workload: Workload,
    /// Locked while a user acts.
    pub(crate) state: Mutex<State>,
}

impl State {
    /// What an object that is not being deleted must hold as its spec.
    pub(crate) fn spec(&self, expected: &Expected) -> Value {
        filled(&schema(self.defaults)["properties"]["spec"], expected.values.clone())
    }

    pub(super) fn wrote(&mut self, answer: &Value) {
        let version = answer["metadata"]["resourceVersion"].as_str();
        self.revisions.extend(version.and_then(|version| version.parse::<i64>().ok()));
    }
}

impl Workload {
    fn objects(self) -> usize {
        if self == Self::Users { 6 } else { 4 }
    }

    /// How often Etch writes an object for one change of its defaults.
    pub(crate) fn writes(self) -> usize {
        match self {
            Self::Hidden => 0,
            // A move, or a rewrite of the owners, is one patch, and another one that takes our own entry
            // away.
            Self::NewVersion | Self::Follow => 2,
            Self::Upgrade | Self::Unowned | Self::Users => 1,
        }
    }
}

pub(crate) fn name(index: usize) -> String {
    format!("object-{index}")
}

/// Whether an object has a finalizer: some have to be deleted at once.
pub(crate) fn has_finalizer(index: usize) -> bool {
    index.is_multiple_of(3)
}

impl Subject {
    pub(crate) fn new(index: usize, workload: Workload) -> Self {
        let legacy = workload == Workload::Hidden;
        let defaults = Defaults { size: None, late: false, legacy };
        let state = State {
            objects: BTreeMap::new(),
            revisions: BTreeSet::new(),
            setbacks: BTreeSet::new(),
            deleted: BTreeSet::new(),
            defaults,
            version: "v1",
        };
        Self { kind: format!("Plan{index}"), workload, state: Mutex::new(state) }
    }

    pub(crate) fn plural(&self) -> String {
        plural(&self.kind)
    }

    pub(crate) fn crd(&self) -> String {
        format!("{}.{GROUP}", self.plural())
    }

    pub(crate) fn crd_key(&self) -> String {
        format!("{CRDS}{}", self.crd())
    }

    /// What the keys of all objects begin with.
    pub(crate) fn keys(&self) -> String {
        format!("/registry/{GROUP}/{}/default/", self.plural())
    }

    /// The path of all objects at a version.
    pub(crate) fn collection(&self, version: &str) -> String {
        format!("/apis/{GROUP}/{version}/namespaces/default/{}", self.plural())
    }

    /// The condition's reason in the end.
    pub(crate) fn reason(&self) -> &'static str {
        if self.workload == Workload::Hidden { "HiddenFields" } else { "AllPersisted" }
    }

    pub(crate) fn object(&self, version: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": self.kind,
            "metadata": { "name": name, "namespace": "default" }, "spec": spec,
        })
    }

    /// Changes the schema.
    pub(crate) async fn define(
        &self,
        cluster: &Cluster,
        state: &mut MutexGuard<'_, State>,
        change: impl FnOnce(&mut State),
    ) -> Result<()> {
        change(state);
        let now = schema(state.defaults);
        let mut before = schema(Defaults { size: None, ..state.defaults });
        // A write at the old version drops what only the new one has.
        before["properties"]["spec"]["properties"].as_object_mut().map(|fields| fields.remove("nested"));
        let versions = match state.version {
            "v1" => vec![("v1", true, now)],
            version => vec![("v1", false, before), (version, true, now)],
        };
        let applied = cluster.apply_crd(&crd(GROUP, &self.kind, &versions)).await?;
        state.wrote(&applied);
        Ok(())
    }

    /// The CRD and its objects before anything happens.
    pub(crate) async fn set_up(&self, scene: &Scene) -> Result<()> {
        let cluster = &scene.cluster;
        let mut state = self.state.lock().await;
        if self.workload == Workload::Follow {
            let policy = json!({
                "selector": { "names": [self.crd()] },
                "onChange": [{ "path": ".spec.size", "action": "Follow" }],
            });
            scene.policy(&self.kind.to_lowercase(), policy).await?;
        }
        self.define(cluster, &mut state, |_| ()).await?;
        for index in 0..self.workload.objects() {
            let expected = self.create(cluster, index).await?;
            state.objects.insert(name(index), expected);
        }
        Ok(())
    }

    async fn create(&self, cluster: &Cluster, index: usize) -> Result<Expected> {
        let name = name(index);
        let mut values = json!({
            "note": name, "empty": "", "zero": 0, "off": false, "list": [], "map": {}, "nothing": null,
            "maybe": null,
        });
        if self.workload == Workload::Hidden {
            values["legacy"] = json!("precious");
        }
        let mut object = self.object("v1", &name, &values);
        object["metadata"]["labels"] = json!({ "team": "users", "empty": "" });
        object["metadata"]["annotations"] = json!({ "example.com/empty": "" });
        let is_terminating = self.workload == Workload::Users && index == 5;
        if has_finalizer(index) || is_terminating {
            object["metadata"]["finalizers"] = json!(["example.com/wait"]);
        }
        let path = format!("{}/{name}", self.collection("v1"));
        cluster.patch(&path, Patch::Apply, "owner", &object).await?.ok()?;
        let status = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": { "name": name },
            "status": { "phase": "", "count": 0 },
        });
        cluster.patch(&format!("{path}/status"), Patch::Apply, "prober", &status).await?.ok()?;
        let mut raw = cluster.raw(GROUP, &self.plural(), Some("default"), &name).await?;
        let mut owners = BTreeSet::from(["owner".to_owned(), "prober".to_owned()]);
        if self.workload == Workload::Unowned {
            raw["metadata"].as_object_mut().context("metadata")?.remove("managedFields");
            let key = format!("{}{name}", self.keys());
            cluster.etcd().put_json(&key, &raw).await?;
            owners.clear();
        }
        if is_terminating {
            cluster.delete(&path).await?;
        }
        let writes = match self.workload {
            _ if is_terminating => 0,
            // It is stored, and moved later.
            Workload::Follow => 3,
            workload => workload.writes(),
        };
        let uid = raw["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        Ok(Expected { values, owners, uid, is_terminating, writes })
    }

    /// What happens.
    pub(crate) async fn happen(&self, cluster: &Cluster, history: &History) -> Result<()> {
        let mut state = self.state.lock().await;
        let is_new = self.workload == Workload::NewVersion;
        self.define(cluster, &mut state, |state| {
            state.defaults = Defaults { size: Some(1), legacy: false, ..state.defaults };
            state.version = if is_new { "v2" } else { "v1" };
        })
        .await?;
        match self.workload {
            Workload::Users => self.users_at_once(cluster, &mut state).await?,
            Workload::NewVersion | Workload::Follow => {}
            Workload::Upgrade | Workload::Unowned | Workload::Hidden => return Ok(()),
        }
        drop(state);
        // Etch learns of what is done now by its watch.
        history.until(LONG, "the first pass", || self.is_worded(history).then_some(())).await?;
        let mut state = self.state.lock().await;
        match self.workload {
            Workload::Follow => self.define(cluster, &mut state, |state| state.defaults.size = Some(5)).await,
            Workload::NewVersion => self.users_at_old_version(cluster, &mut state).await,
            _ => self.users_later(cluster, &mut state).await,
        }
    }

    /// Whether the condition has its last reason, for the CRD's present generation.
    pub(crate) fn is_worded(&self, history: &History) -> bool {
        let Some(crd) = history.now(&self.crd_key()) else { return false };
        let wording = persisted(&crd);
        let generation = &wording["observedGeneration"];
        // Servers before 1.35 do not keep it (fact C3).
        let is_current = generation.is_null() || *generation == crd["metadata"]["generation"];
        is_current && wording["reason"] == self.reason()
    }
}

/// The condition `DefaultsPersisted` of a CRD; null if it is not there.
pub(crate) fn persisted(crd: &Value) -> Value {
    let all = crd["status"]["conditions"].as_array();
    let found = all.into_iter().flatten().find(|condition| condition["type"] == "DefaultsPersisted");
    found.cloned().unwrap_or_default()
}
