//! A control plane with many random clusters on it, one CRD each, and what is asked of it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::admission::deny_updates;
use e2e::cluster::{CRDS, GUARD, Patch, eventually};
use e2e::process::{self, Printed};
use e2e::scene::{self, Scene};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use crate::model::{Phase, Truth};
use crate::random::{BEFORE, Deed, GROUP, NAMESPACES, NOW, Plan, Thing};

/// Requests under way at once.
const AT_ONCE: usize = 8;

/// A control plane, and the clusters that are planned for it.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) plans: Vec<Plan>,
    endpoint: String,
}

/// The bytes of all objects: by the plural of their type, and then by `namespace/name` or `name`.
pub(crate) type Raw = BTreeMap<String, BTreeMap<String, Value>>;

impl Stage {
    /// A control plane with the CRDs and objects in their first state.
    pub(crate) async fn start(plans: Vec<Plan>) -> Result<Self> {
        let scene = Scene::start(&[GROUP]).await?;
        let endpoint = scene.control_plane.etcd_url().to_owned();
        let stage = Self { scene, plans, endpoint };
        for namespace in NAMESPACES.iter().filter(|namespace| **namespace != "default") {
            let object =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            scene::apply(&stage.scene.cluster, &object).await?;
        }
        stage.policies().await?;
        stage.upgrade(BEFORE).await?;
        stage.each_object(async |plan, thing| stage.make(plan, thing).await).await?;
        stage.refuse().await?;
        Ok(stage)
    }

    /// The policies of all clusters; the one that is shipped selects none of them.
    async fn policies(&self) -> Result<()> {
        self.scene.policy("default", json!({ "selector": { "exclude": [format!("*.{GROUP}")] } })).await?;
        for plan in &self.plans {
            if let Some(spec) = &plan.policy {
                let mut spec = spec.clone();
                spec["selector"] = json!({ "names": [plan.crd()] });
                self.scene.policy(&plan.plural, spec).await?;
            }
        }
        Ok(())
    }

    /// Brings all CRDs into a state, and waits until it is served.
    pub(crate) async fn upgrade(&self, phase: usize) -> Result<()> {
        let upgrades = stream::iter(&self.plans).map(async |plan| {
            let cluster = &self.scene.cluster;
            let document = plan.document(phase);
            cluster.apply_crd(&document).await.with_context(|| format!("{document:#}"))?;
            let versions = plan.phases[phase].versions.iter();
            for (version, ..) in versions {
                let probe = json!({
                    "apiVersion": format!("{GROUP}/{version}"), "kind": plan.kind, "metadata": {
                        "name": "probe",
                    },
                    "spec": { "serving": format!("phase-{phase}") },
                });
                let namespace = plan.namespaced.then_some("default");
                let path = format!("{}?dryRun=All", plan.collection(version, namespace));
                let body = serde_json::to_vec(&probe)?;
                eventually(GUARD, &format!("{} is served as {version}", plan.crd()), async || {
                    let answer = cluster.send("POST", &path, "application/json", body.clone()).await?;
                    ensure!(answer.code == 201, "{}", answer.body);
                    Ok(Some(()))
                })
                .await?;
            }
            anyhow::Ok(())
        });
        upgrades.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await.map(drop)
    }

    async fn make(&self, plan: &Plan, thing: &Thing) -> Result<()> {
        let cluster = &self.scene.cluster;
        let mut metadata = json!({ "name": thing.name });
        if thing.ignored {
            metadata["annotations"] = json!({ "etch-operator.io/ignore": "true" });
        }
        if thing.refused {
            metadata["labels"] = json!({ "refuse": "true" });
        }
        if thing.terminating {
            metadata["finalizers"] = json!(["answers.example.com/kept"]);
        }
        let object = json!({
            "apiVersion": format!("{GROUP}/{}", thing.version), "kind": plan.kind, "metadata": metadata,
            "spec": thing.spec,
        });
        match thing.applied {
            true => drop(
                cluster
                    .patch(&plan.path(thing, &thing.version), Patch::Apply, "owner", &object)
                    .await?
                    .ok()?,
            ),
            false => drop(
                cluster.create(&plan.collection(&thing.version, thing.namespace), "creator", &object).await?,
            ),
        }
        if let Some(status) = &thing.status {
            let path = format!("{}/status", plan.path(thing, &thing.version));
            cluster.patch(&path, Patch::Merge, "controller", &json!({ "status": status })).await?.ok()?;
        }
        if thing.ownerless {
            let nobody = json!({ "metadata": { "managedFields": [{}] } });
            cluster.patch(&plan.path(thing, &thing.version), Patch::Merge, "x", &nobody).await?.ok()?;
        }
        if thing.terminating {
            cluster.delete(&plan.path(thing, &thing.version)).await?;
        }
        Ok(())
    }

    /// From here on, admission refuses every update of an object that is labelled so.
    async fn refuse(&self) -> Result<()> {
        let cluster = &self.scene.cluster;
        let validation = json!({
            "expression": "!has(object.metadata.labels) || !('refuse' in object.metadata.labels)",
        });
        deny_updates(cluster, "refuse", GROUP, "*", validation).await?;
        let all = self.plans.iter().flat_map(|plan| plan.objects.iter().map(move |thing| (plan, thing)));
        let Some((plan, thing)) = all.into_iter().find(|(_, thing)| thing.refused) else { return Ok(()) };
        let path = format!("{}?dryRun=All", plan.path(thing, &thing.version));
        eventually(GUARD, "admission refuses", async || {
            let body = br#"{"metadata":{"labels":{"probe":"x"}}}"#.to_vec();
            let answer = cluster.send("PATCH", &path, "application/merge-patch+json", body).await?;
            Ok((answer.code == 422).then_some(()))
        })
        .await
    }

    /// Does to all objects what the plan has for after the upgrade (0), or for after the operator's pass (1).
    pub(crate) async fn deeds(&self, turn: usize) -> Result<()> {
        self.each_object(async |plan, thing| match &thing.deeds[turn] {
            Some(deed) => self
                .does(plan, thing, deed)
                .await
                .with_context(|| format!("{} {} {deed:?}", plan.plural, thing.name)),
            None => Ok(()),
        })
        .await
    }

    async fn does(&self, plan: &Plan, thing: &Thing, deed: &Deed) -> Result<()> {
        let cluster = &self.scene.cluster;
        let now = plan.path(thing, plan.phases[NOW].storage());
        let oldest = plan.phases[NOW].versions.first().map_or("v1", |(name, ..)| name);
        let answer = match deed {
            Deed::Touch => cluster.patch(&now, Patch::Merge, "x", &json!({})).await?,
            Deed::TouchOld => cluster.patch(&plan.path(thing, oldest), Patch::Merge, "x", &json!({})).await?,
            Deed::Set(values) => cluster.patch(&now, Patch::Merge, "x", values).await?,
            Deed::Note => {
                let version = plan.phases[NOW].storage();
                let object = json!({
                    "apiVersion": format!("{GROUP}/{version}"), "kind": plan.kind, "metadata": {
                        "name": thing.name,
                    },
                    "spec": { "note": "new" },
                });
                cluster.patch(&now, Patch::Apply, "x", &object).await?
            }
            Deed::Ignore => {
                let ignore = json!({ "metadata": { "annotations": { "etch-operator.io/ignore": "true" } } });
                cluster.patch(&now, Patch::Merge, "x", &ignore).await?
            }
            Deed::Delete => {
                let kept = json!({ "metadata": { "finalizers": ["answers.example.com/kept"] } });
                let answer = cluster.patch(&now, Patch::Merge, "x", &kept).await?;
                return if answer.code == 200 { cluster.delete(&now).await.map(drop) } else { Ok(()) };
            }
        };
        // What the schema, a type or another owner forbids is not done; whatever stands there is what is
        // judged.
        ensure!(answer.code != 404, "{}", answer.body);
        Ok(())
    }

    async fn each_object(&self, act: impl AsyncFn(&Plan, &Thing) -> Result<()>) -> Result<()> {
        let all = self.plans.iter().flat_map(|plan| plan.objects.iter().map(move |thing| (plan, thing)));
        let acts = stream::iter(all).map(|(plan, thing)| {
            let act = &act;
            async move { act(plan, thing).await.with_context(|| format!("{} {thing:?}", plan.plural)) }
        });
        acts.buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await
    }

    /// The bytes of all objects.
    pub(crate) async fn raw(&self) -> Result<Raw> {
        let prefix = format!("/registry/{GROUP}/");
        let mut raw: Raw = self.plans.iter().map(|plan| (plan.plural.clone(), BTreeMap::new())).collect();
        for value in self.scene.cluster.etcd().list(&prefix).await? {
            let key = value.key.strip_prefix(&prefix).context("a key of the group")?;
            let (plural, id) = key.split_once('/').context("a key of an object")?;
            raw.entry(plural.to_owned())
                .or_default()
                .insert(id.to_owned(), serde_json::from_slice(&value.bytes)?);
        }
        Ok(raw)
    }

    /// What readers see of all objects of a cluster, by `namespace/name` or `name`.
    pub(crate) async fn read(&self, plan: &Plan, version: &str) -> Result<BTreeMap<String, Value>> {
        let list = self.scene.cluster.get(&plan.collection(version, None)).await?;
        let items = list["items"].as_array().context("items")?;
        Ok(items.iter().map(|item| (id(&item["metadata"]), item.clone())).collect())
    }

    /// Runs a command as the administrator, with its output in JSON.
    pub(crate) async fn etch(&self, arguments: &[&str]) -> Result<Printed> {
        let json = [arguments, &["-o", "json"]].concat();
        let command = process::command(&self.scene.control_plane.kubeconfig(0), &json)?;
        let ended = tokio::task::spawn_blocking(|| process::ended(command)).await??;
        ensure!(matches!(ended.code, Some(0 | 1)), "{arguments:?}: {ended:?}");
        ended.try_into()
    }

    /// The same with access to etcd.
    pub(crate) async fn etch_exact(&self, arguments: &[&str]) -> Result<Printed> {
        self.etch(&[arguments, &["--etcd-endpoints", &self.endpoint]].concat()).await
    }

    /// The present CRD.
    pub(crate) async fn crd(&self, plan: &Plan) -> Result<Value> {
        self.scene.cluster.get(&format!("{CRDS}/{}", plan.crd())).await
    }
}

impl Plan {
    /// Where the objects of a version are.
    pub(crate) fn collection(&self, version: &str, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("/apis/{GROUP}/{version}/namespaces/{namespace}/{}", self.plural),
            None => format!("/apis/{GROUP}/{version}/{}", self.plural),
        }
    }

    fn path(&self, thing: &Thing, version: &str) -> String {
        format!("{}/{}", self.collection(version, thing.namespace), thing.name)
    }

    /// What is so of each object in a state of the CRD.
    pub(crate) fn truths(&self, phase: usize, raw: &Raw) -> BTreeMap<String, Truth> {
        let phase: &Phase = &self.phases[phase];
        let all = raw.get(&self.plural).into_iter().flatten();
        all.map(|(id, raw)| (id.clone(), phase.truth(raw))).collect()
    }
}

/// `namespace/name`, or `name`, of whatever names both.
pub(crate) fn id(named: &Value) -> String {
    let name = named["name"].as_str().unwrap_or_default();
    match named["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}
