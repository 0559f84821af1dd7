//! At which versions etcd holds objects, and which versions could go out of `status.storedVersions`, on a
//! real API server; the truth is the raw value in etcd.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use e2e::aged::{self, BEFORE};
use e2e::cluster::{CRDS, Cluster, GUARD, Patch, crd, eventually, plural, with_spec};
use e2e::control_plane::Options;
use e2e::process;
use e2e::scene::{MIGRATOR, Scene};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const GROUP: &str = "moved.example.com";

#[tokio::test(flavor = "multi_thread")]
async fn old_versions_go_on_proof_only() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    without_defaults(&scene).await.context("a CRD without defaults")?;
    with_defaults(&scene).await.context("a CRD with defaults")?;
    trimmed(&scene).await.context("a policy that trims")?;
    trimmed_without_defaults(&scene).await.context("a policy that trims, and a CRD without defaults")?;
    shortened(&scene).await.context("a list that a user has shortened")?;
    asked_about_all_but_one(&scene).await.context("an object that Etch is to ignore")?;
    Ok(())
}

const MIGRATION: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations/tasks";
/// Enough for the migrator, which makes twenty requests a second, to be stopped in the middle.
const TASKS: usize = 150;

/// Etch waits for Kubernetes' own migrator, and writes nothing again that this has stored.
#[tokio::test(flavor = "multi_thread")]
async fn the_migrator_of_kubernetes_is_waited_for() -> Result<()> {
    let migrator = |options: &mut Options| options.controllers = MIGRATOR.map(str::to_owned).to_vec();
    let mut scene = Scene::start_with(&[GROUP], migrator).await?;
    let kind = Kind { cluster: &scene.cluster.clone(), kind: "Task" };
    scene.policy("trim", json!({ "selector": { "names": [kind.crd()] }, "storedVersions": "Trim" })).await?;
    kind.moved(&spec(json!({ "color": { "type": "string", "default": "red" } }))).await?;
    let collection = format!("/apis/{GROUP}/v1/namespaces/default/tasks");
    for task in 0..TASKS {
        let object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind.kind,
            "metadata": { "name": format!("task-{task}") }, "spec": { "schedule": "s" } });
        scene.cluster.create(&collection, "user", &object).await?;
    }
    let (all, resource) = MIGRATION.rsplit_once('/').context("a name")?;
    let migration = json!({ "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": { "name": resource }, "spec": { "resource": { "group": GROUP,
            "resource": kind.plural() } } });
    let runs = async |condition: &str| -> Result<bool> {
        let migration = kind.cluster.get(MIGRATION).await?;
        let mut conditions = migration["status"]["conditions"].as_array().into_iter().flatten();
        ensure!(!conditions.clone().any(|other| other["type"] == "Failed"), "{migration:#}");
        Ok(conditions.any(|other| other["type"] == condition && other["status"] == "True"))
    };
    // On a machine that hurries it may be over before it is stopped.
    loop {
        scene.cluster.create(all, "user", &migration).await?;
        eventually(GUARD, "the migration runs", async || {
            Ok((runs("Running").await? || runs("Succeeded").await?).then_some(()))
        })
        .await?;
        scene.control_plane.pause_controllers().await?;
        if !runs("Succeeded").await? {
            break;
        }
        scene.control_plane.resume_controllers();
        scene.cluster.delete(MIGRATION).await?;
    }
    let operator = scene.operator(&[])?;
    let waits = scene.cluster.persisted(&kind.crd(), "InProgress", GUARD).await?;
    ensure!(waits.message.contains("the StorageVersionMigration tasks writes the objects"), "{waits:?}");
    let before = kind.revisions().await?;
    let mut command = Command::new(e2e::operator::binary()?);
    command.args(["persist", &kind.crd()]).env("KUBECONFIG", scene.kubeconfig()).kill_on_drop(true);
    let mut persist = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut notes = BufReader::new(persist.stderr.take().context("its standard error")?).lines();
    let waits = async {
        while let Some(note) = notes.next_line().await? {
            if note.contains("waiting for the StorageVersionMigration tasks") {
                return Ok(());
            }
        }
        bail!("etch persist has not waited for the migrator")
    };
    timeout(GUARD, waits).await.context("the note of etch persist")??;
    scene.barrier().await?;
    ensure!(kind.revisions().await? == before, "Etch wrote beside the migrator");
    scene.control_plane.resume_controllers();
    eventually(GUARD, "the migration has ended", async || Ok(runs("Succeeded").await?.then_some(()))).await?;
    let migrated = kind.revisions().await?;
    ensure!(timeout(2 * GUARD, persist.wait()).await.context("etch persist")??.success());
    // It asks every thirty seconds.
    scene.cluster.persisted(&kind.crd(), "AllPersisted", 2 * GUARD).await?;
    ensure!(kind.revisions().await? == migrated, "Etch wrote again what the migrator had stored");
    ensure!(kind.stored_at("a").await? == "v1", "the migrator has left it where it was");
    ensure!(kind.listed().await? == json!(["v1"]), "the migrator has left the old version in the list");
    operator.stop().await
}

/// Etch writes none of its objects, and finds out at which versions they are stored only by reading.
async fn without_defaults(scene: &Scene) -> Result<()> {
    let kind = Kind { cluster: &scene.cluster, kind: "Plain" };
    kind.moved(&spec(json!({}))).await?;
    let seen = kind.audit(scene, &[])?;
    ensure!(seen["oldVersions"][0]["removable"] == false && seen["unknown"] == 2, "{seen:#}");
    let etcd = format!("--etcd-endpoints={}", scene.control_plane.etcd_url());
    let seen = kind.audit(scene, &[&etcd, "--objects"])?;
    ensure!(seen["at"] == json!({ "v1beta1": 2 }) && seen["proved"] == 0, "{seen:#}");
    ensure!(seen["details"][0]["storedAt"] == "v1beta1", "{seen:#}");
    // A user writes one: the API server stores it at the storage version.
    let edit = json!({ "metadata": { "labels": { "seen": "yes" } } });
    scene.cluster.patch(&kind.path("v1beta1", "a"), Patch::Merge, "user", &edit).await?.ok()?;
    let seen = kind.audit(scene, &[&etcd])?;
    ensure!((&seen["at"], &seen["proved"]) == (&json!({ "v1beta1": 1 }), &json!(1)), "{seen:#}");
    let kept = &seen["oldVersions"][0];
    ensure!(kept["name"] == "v1beta1" && kept["removable"] == false, "{seen:#}");
    ensure!(kept["kept"][0] == "1 object is stored at v1beta1", "{seen:#}");
    let operator = scene.operator(&[])?;
    let report = kind.reported(scene, |versions| versions["unknown"] == 2).await?;
    ensure!(report["removable"] == json!([]), "{report:#}");
    ensure!(report["kept"][0]["reasons"][0] == "2 objects are not proved to be stored at v1", "{report:#}");
    scene.cluster.persisted(&kind.crd(), "NoDefaults", GUARD).await?;
    operator.stop().await?;
    ensure!(kind.stored_at("b").await? == "v1beta1", "Etch wrote an object without defaults");
    // A user shortens the list by hand, which only etcd shows.
    let shortened = json!({ "status": { "storedVersions": ["v1"] } });
    let status = format!("{CRDS}/{}/status", kind.crd());
    scene.cluster.patch(&status, Patch::Merge, "user", &shortened).await?.ok()?;
    let all = audit(scene, &[&etcd])?;
    let crds = all["crds"].as_array().context("CRDs")?;
    ensure!(crds.len() == 1 && crds[0]["at"] == json!({ "v1beta1": 1 }), "{all:#}");
    let kept = "1 object is stored at v1beta1, which status.storedVersions does not list";
    ensure!(crds[0]["crd"] == kind.crd() && crds[0]["oldVersions"][0]["kept"][0] == kept, "{all:#}");
    let all = audit(scene, &[])?;
    ensure!(all["crds"] == json!([]) && all["skipped"].as_u64() > Some(0), "{all:#}");
    scene.cluster.delete(&format!("{CRDS}/{}", kind.crd())).await.map(drop)
}

/// Each object that Etch stores is then at the storage version. That is proved once no API server lags
/// behind.
async fn with_defaults(scene: &Scene) -> Result<()> {
    let kind = Kind { cluster: &scene.cluster, kind: "Rich" };
    kind.moved(&spec(json!({ "color": { "type": "string", "default": "red" } }))).await?;
    let operator = scene.operator(&[])?;
    scene.cluster.persisted(&kind.crd(), "AllPersisted", GUARD).await?;
    for name in ["a", "b"] {
        ensure!(kind.stored_at(name).await? == "v1", "{name} is not at the storage version");
    }
    let report = kind.reported(scene, |versions| versions["unknown"] == 2).await?;
    ensure!(report["removable"] == json!([]), "{report:#}");
    ensure!(report["kept"][0]["reasons"].to_string().contains("lag behind"), "{report:#}");
    operator.stop().await?;
    scene.verify_now(&kind.crd()).await?;
    let operator = scene.operator(&[])?;
    let report = kind.reported(scene, |versions| versions["proved"] == 2).await?;
    ensure!(report["removable"] == json!(["v1beta1"]) && report["kept"] == json!([]), "{report:#}");
    operator.stop().await
}

/// Etch takes the old version out, and not before no object can be there any more.
async fn trimmed(scene: &Scene) -> Result<()> {
    let kind = Kind { cluster: &scene.cluster, kind: "Trim" };
    let both = json!(["v1beta1", "v1"]);
    let selector = json!({ "names": [kind.crd()] });
    let repaired = json!({ "selector": selector, "storedVersions": "Trim", "managedFields": "Repair" });
    scene.policy("trim", repaired).await?;
    // The owner of one object has Etch ignore it.
    kind.moved_but(&spec(json!({ "color": { "type": "string", "default": "red" } })), "b").await?;
    let operator = scene.operator(&[])?;
    scene.cluster.persisted(&kind.crd(), "AllPersisted", GUARD).await?;
    scene.barrier().await?;
    ensure!(kind.listed().await? == both, "taken out while servers may lag behind");
    operator.stop().await?;
    scene.verify_now(&kind.crd()).await?;
    let operator = scene.operator(&[])?;
    let report = kind.reported(scene, |versions| versions["verified"] == true).await?;
    ensure!(report["kept"][0]["reasons"] == json!(["1 object is ignored by annotation"]), "{report:#}");
    scene.barrier().await?;
    ensure!(kind.listed().await? == both, "taken out although nothing is proved of an object");
    ensure!(kind.stored_at("b").await? == "v1beta1", "Etch wrote an object that it is to leave alone");
    let not_ignored = json!({ "metadata": { "annotations": { "etch-operator.io/ignore": null } } });
    scene.cluster.patch(&kind.path("v1", "b"), Patch::Merge, "user", &not_ignored).await?.ok()?;
    eventually(GUARD, "the old version is taken out", async || {
        Ok((kind.listed().await? == json!(["v1"])).then_some(()))
    })
    .await?;
    for name in ["a", "b"] {
        ensure!(kind.stored_at(name).await? == "v1", "{name} is not at the storage version");
    }
    // The API server lets the version go from the CRD.
    let only = spec(json!({ "color": { "type": "string", "default": "red" } }));
    scene.cluster.apply_crd(&crd(GROUP, kind.kind, &[("v1", true, only)])).await?;
    eventually(GUARD, "the report says no more of it", async || {
        let report = scene.report(&kind.crd()).await?;
        Ok(report["status"]["storedVersions"].is_null().then_some(()))
    })
    .await?;
    for name in ["a", "b"] {
        kind.owner_repaired(scene, name).await?;
    }
    operator.stop().await
}

/// Etch writes objects without defaults only to move them, and the condition reports all along that there are
/// none.
async fn trimmed_without_defaults(scene: &Scene) -> Result<()> {
    let kind = Kind { cluster: &scene.cluster, kind: "Bare" };
    let selector = json!({ "names": [kind.crd()] });
    let policy = json!({ "selector": selector, "storedVersions": "Trim", "managedFields": "Repair" });
    scene.policy("trim-bare", policy).await?;
    kind.moved(&spec(json!({}))).await?;
    let operator = scene.operator(&[])?;
    for name in ["a", "b"] {
        eventually(GUARD, "the object is moved", async || {
            Ok((kind.stored_at(name).await? == "v1").then_some(()))
        })
        .await?;
    }
    let report = kind.reported(scene, |versions| versions["unknown"] == 2).await?;
    ensure!(report["kept"][0]["reasons"].to_string().contains("lag behind"), "{report:#}");
    scene.barrier().await?;
    ensure!(kind.listed().await? == json!(["v1beta1", "v1"]), "taken out while servers may lag behind");
    let before = scene.cluster.persisted(&kind.crd(), "NoDefaults", GUARD).await?;
    operator.stop().await?;
    scene.verify_now(&kind.crd()).await?;
    let operator = scene.operator(&[])?;
    eventually(GUARD, "the old version is taken out", async || {
        Ok((kind.listed().await? == json!(["v1"])).then_some(()))
    })
    .await?;
    eventually(GUARD, "the report says no more of it", async || {
        let report = scene.report(&kind.crd()).await?;
        Ok(report["status"]["storedVersions"].is_null().then_some(()))
    })
    .await?;
    let after = scene.cluster.persisted(&kind.crd(), "NoDefaults", GUARD).await?;
    ensure!(before.status == "True" && after.status == "True", "{before:?} {after:?}");
    ensure!(before.last_transition_time == after.last_transition_time, "{before:?} {after:?}");
    operator.stop().await?;
    // The report keeps it: nothing else shows where these objects are.
    let document = kind.impact(scene, &kind.without_old_version())?;
    ensure!(!document.to_string().contains("not known to be stored"), "{document:#}");
    // No version is left to take out, and owners are repaired nevertheless.
    scene.cluster.apply_crd(&kind.crd_without_old_version()).await?;
    let operator = scene.operator(&[])?;
    for name in ["a", "b"] {
        kind.owner_repaired(scene, name).await?;
    }
    let repaired = scene.cluster.persisted(&kind.crd(), "NoDefaults", GUARD).await?;
    ensure!(repaired.message.contains("owners in managedFields are repaired"), "{repaired:?}");
    operator.stop().await
}

/// `status.storedVersions` proves nothing. Objects that may be unreadable after an upgrade are named until
/// every object was asked about.
async fn shortened(scene: &Scene) -> Result<()> {
    let kind = Kind { cluster: &scene.cluster, kind: "Short" };
    kind.moved(&spec(json!({}))).await?;
    kind.age().await?;
    let short = json!({ "status": { "storedVersions": ["v1"] } });
    let status = format!("{CRDS}/{}/status", kind.crd());
    scene.cluster.patch(&status, Patch::Merge, "user", &short).await?.ok()?;
    let upgrade = kind.without_old_version();
    let what = "not known to be stored at v1: at v1beta1 it cannot be read any more";
    let document = kind.impact(scene, &upgrade)?;
    let objects = &document["crds"][0]["objects"];
    ensure!(document.to_string().matches(what).count() >= 2, "{document:#}");
    ensure!(objects.as_array().is_none_or(|objects| objects.len() == 2), "{document:#}");
    let file = upgrade.path().to_str().context("a path")?;
    let (_, plan) = scene.etch_json(&["plan", "-f", file, "--live"])?;
    let step = format!("persist {} --every-object", kind.crd());
    ensure!(plan.to_string().contains(&step), "{plan:#}");
    let raw = [kind.stored_at("a").await?, kind.stored_at("b").await?];
    ensure!(raw == ["v1beta1", "v1beta1"], "{raw:?}");
    scene.etch_json(&["persist", &kind.crd(), "--every-object"])?;
    let raw = [kind.stored_at("a").await?, kind.stored_at("b").await?];
    ensure!(raw == ["v1", "v1"], "{raw:?}");
    // A question about what is stored there already leaves its trace on the CRD alone.
    kind.age().await?;
    let path = format!("{CRDS}/{}", kind.crd());
    let forgotten = json!({ "metadata": { "annotations": { "etch-operator.io/persisted": null } } });
    scene.cluster.patch(&path, Patch::Merge, "user", &forgotten).await?.ok()?;
    let document = kind.impact(scene, &upgrade)?;
    ensure!(document.to_string().contains(what), "{document:#}");
    let revisions = kind.revisions().await?;
    let (_, persisted) = scene.etch_json(&["persist", &kind.crd(), "--every-object"])?;
    ensure!(kind.revisions().await? == revisions, "what is stored was written again");
    let stored = scene.cluster.get(&path).await?;
    let annotation = &stored["metadata"]["annotations"]["etch-operator.io/persisted"];
    ensure!(annotation.to_string().contains("everyObject"), "{persisted:#} {annotation}");
    let document = kind.impact(scene, &upgrade)?;
    ensure!(!document.to_string().contains(what), "{document:#}");
    let seen = kind.audit(scene, &[])?;
    ensure!(seen["proved"] == 2 && seen["unknown"] == 0, "{seen:#}");
    Ok(())
}

/// What `etch persist --every-object` has asked about counts, also where it had to leave an object alone.
async fn asked_about_all_but_one(scene: &Scene) -> Result<()> {
    let kind = Kind { cluster: &scene.cluster, kind: "Partly" };
    kind.moved_but(&spec(json!({})), "b").await?;
    kind.age().await?;
    let short = json!({ "status": { "storedVersions": ["v1"] } });
    let status = format!("{CRDS}/{}/status", kind.crd());
    scene.cluster.patch(&status, Patch::Merge, "user", &short).await?.ok()?;
    scene.etch_json(&["persist", &kind.crd(), "--every-object"])?;
    let raw = [kind.stored_at("a").await?, kind.stored_at("b").await?];
    ensure!(raw == ["v1", "v1beta1"], "{raw:?}");
    let unknown = async || -> Result<Vec<Value>> {
        let document = kind.impact(scene, &kind.without_old_version())?;
        let details = document["crds"][0]["details"].as_array().context("objects")?;
        let of_versions = details.iter().filter(|object| {
            object["problems"].to_string().contains("not known to be stored at v1: at v1beta1")
        });
        Ok(of_versions.map(|object| object["name"].clone()).collect())
    };
    let left = unknown().await?;
    ensure!(left == ["b"], "{left:?}");
    // Nothing else shows it.
    let forgotten = json!({ "metadata": { "annotations": { "etch-operator.io/persisted": null } } });
    let path = format!("{CRDS}/{}", kind.crd());
    scene.cluster.patch(&path, Patch::Merge, "user", &forgotten).await?.ok()?;
    let left = unknown().await?;
    ensure!(left == ["a", "b"], "{left:?}");
    Ok(())
}

struct Kind<'a> {
    cluster: &'a Cluster,
    kind: &'static str,
}

impl Kind<'_> {
    fn plural(&self) -> String {
        plural(self.kind)
    }

    fn crd(&self) -> String {
        format!("{}.{GROUP}", self.plural())
    }

    fn path(&self, version: &str, name: &str) -> String {
        format!("/apis/{GROUP}/{version}/namespaces/default/{}/{name}", self.plural())
    }

    /// Defines the CRD with `v1beta1`, creates `a` and `b` there, and makes `v1` the storage version.
    async fn moved(&self, schema: &Value) -> Result<()> {
        self.moved_but(schema, "").await
    }

    /// The same; the object of this name has the annotation with which Etch ignores it.
    async fn moved_but(&self, schema: &Value, ignored: &str) -> Result<()> {
        let plain = spec(json!({}));
        let versions = [("v1beta1", true, plain.clone()), ("v1", false, plain.clone())];
        self.cluster.apply_crd(&crd(GROUP, self.kind, &versions)).await?;
        for name in ["a", "b"] {
            let is_ignored = name == ignored;
            let annotations = json!({ "etch-operator.io/ignore": is_ignored.to_string() });
            let object = json!({ "apiVersion": format!("{GROUP}/v1beta1"), "kind": self.kind,
                "metadata": { "name": name, "namespace": "default", "annotations": annotations },
                "spec": { "schedule": "s" } });
            let collection = format!("/apis/{GROUP}/v1beta1/namespaces/default/{}", self.plural());
            self.cluster.create(&collection, "user", &object).await?;
            ensure!(self.stored_at(name).await? == "v1beta1", "{name} is not where it was created");
        }
        let versions = [("v1beta1", false, schema.clone()), ("v1", true, schema.clone())];
        self.cluster.apply_crd(&crd(GROUP, self.kind, &versions)).await?;
        eventually(GUARD, "both versions are listed", async || {
            Ok((self.listed().await? == json!(["v1beta1", "v1"])).then_some(()))
        })
        .await
    }

    async fn listed(&self) -> Result<Value> {
        Ok(self.cluster.get(&format!("{CRDS}/{}", self.crd())).await?["status"]["storedVersions"].clone())
    }

    /// At which version etcd holds an object.
    async fn stored_at(&self, name: &str) -> Result<String> {
        let raw = self.cluster.raw(GROUP, &self.plural(), Some("default"), name).await?;
        let version = raw["apiVersion"].as_str().and_then(|version| version.split_once('/'));
        Ok(version.context("a version")?.1.to_owned())
    }

    /// The managers that own fields of an object in etcd, and the versions in whose terms they do.
    async fn owners(&self, name: &str) -> Result<Vec<(String, String)>> {
        let raw = self.cluster.raw(GROUP, &self.plural(), Some("default"), name).await?;
        let entries = raw["metadata"]["managedFields"].as_array().context("owners")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(entries.iter().map(|entry| (text(&entry["manager"]), text(&entry["apiVersion"]))).collect())
    }

    /// Waits until the user owns an object at the storage version. An owner at a version that is gone has the
    /// API server refuse every apply.
    async fn owner_repaired(&self, scene: &Scene, name: &str) -> Result<()> {
        eventually(GUARD, "the owner is repaired", async || {
            let owners = self.owners(name).await?;
            Ok((owners == [("user".to_owned(), format!("{GROUP}/v1"))]).then_some(()))
        })
        .await?;
        let apply = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": self.kind,
            "metadata": { "name": name }, "spec": { "schedule": "s" } });
        scene.cluster.patch(&self.path("v1", name), Patch::Apply, "another", &apply).await?.ok().map(drop)
    }

    /// The revisions at which etcd holds the objects.
    async fn revisions(&self) -> Result<Vec<i64>> {
        let all = self.cluster.etcd().list(&format!("/registry/{GROUP}/{}/", self.plural())).await?;
        Ok(all.iter().map(|raw| raw.mod_revision).collect())
    }

    /// The part of the report about versions, once it is as expected.
    async fn reported(&self, scene: &Scene, is_expected: impl Fn(&Value) -> bool) -> Result<Value> {
        eventually(GUARD, "the report is as expected", async || {
            let Ok(report) = scene.report(&self.crd()).await else { return Ok(None) };
            let versions = report["status"]["storedVersions"].clone();
            Ok(is_expected(&versions).then_some(versions))
        })
        .await
    }

    /// The CRD with `v1` alone.
    fn crd_without_old_version(&self) -> Value {
        crd(GROUP, self.kind, &[("v1", true, spec(json!({})))])
    }

    /// The same, in a file.
    fn without_old_version(&self) -> NamedTempFile {
        let document = self.crd_without_old_version();
        let file = NamedTempFile::with_suffix(".json").expect("a file");
        std::fs::write(file.path(), document.to_string()).expect("the file is written");
        file
    }

    /// Has everything be older than eleven minutes: the objects, and then the CRD.
    async fn age(&self) -> Result<()> {
        aged::values(self.cluster, &format!("{GROUP}/{}/", self.plural()), BEFORE).await?;
        aged::crd(self.cluster, &self.crd()).await
    }

    /// What `etch impact` prints of an upgrade as JSON.
    fn impact(&self, scene: &Scene, upgrade: &NamedTempFile) -> Result<Value> {
        let file = upgrade.path().to_str().context("a path")?;
        Ok(scene.etch_json(&["impact", "-f", file, "--live"])?.1)
    }

    /// What `etch audit --stored-versions` prints of the CRD as JSON.
    fn audit(&self, scene: &Scene, flags: &[&str]) -> Result<Value> {
        let name = self.crd();
        Ok(audit(scene, &[&[&*name], flags].concat())?["crds"][0].take())
    }
}

/// What `etch audit --stored-versions` prints as JSON.
fn audit(scene: &Scene, more: &[&str]) -> Result<Value> {
    let arguments = [&["audit", "--stored-versions", "-o", "json"], more].concat();
    process::etch(scene.kubeconfig(), &arguments)?.json()
}

fn spec(mut properties: Value) -> Value {
    properties["schedule"] = json!({ "type": "string" });
    with_spec(properties)
}
