//! What is done in the story: releases are rolled out, objects written, Etch started, its conditions read.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Request;
use serde_json::{Value, json};

use super::cast::{Actor, Field, Kind};
use super::view::Snapshot;
use crate::cluster::{Answer, CRDS, Cluster, Condition, Patch, eventually};
use crate::operator::Operator;
use crate::scene::Scene;

/// How long anything may take that is waited for.
const LIMIT: Duration = Duration::from_secs(20);

/// What the demo runs on: a control plane on which Etch is installed.
pub(super) struct Stage {
    scene: Scene,
}

/// How a server-side apply is tried out.
pub(super) struct ActorApply<'a> {
    /// On which object.
    pub(super) actor: &'a Actor,
    /// The manager that applies.
    pub(super) manager: &'a str,
    /// With which document.
    pub(super) document: Value,
}

impl Stage {
    /// Starts the control plane, installs Etch, and lets it process these kinds.
    ///
    /// # Errors
    /// Anything that is not as it should be.
    pub(super) async fn set(kinds: &[&Kind]) -> Result<Self> {
        let groups: Vec<&str> = kinds.iter().map(|kind| kind.group).collect();
        Ok(Self { scene: Scene::start(&groups).await? })
    }

    /// The scene itself.
    pub(super) fn scene(&mut self) -> &mut Scene {
        &mut self.scene
    }

    /// The release of Kubernetes.
    pub(super) fn kubernetes(&self) -> String {
        self.scene.control_plane.kubernetes().to_string()
    }

    /// Where etcd answers to JSON.
    pub(super) fn etcd_url(&self) -> &str {
        self.scene.control_plane.etcd_url()
    }

    /// The administrator's kubeconfig.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.scene.control_plane.kubeconfig(0)
    }

    /// Starts Etch.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start_etch(&self) -> Result<Operator> {
        self.scene.operator(&[])
    }

    /// Has a policy take old versions of a kind out of `status.storedVersions`.
    ///
    /// # Errors
    /// Anything is refused.
    pub(super) async fn trim(&self, kind: &Kind) -> Result<()> {
        let selector = json!({ "names": [kind.crd_name()] });
        self.scene.policy("trim", json!({ "selector": selector, "storedVersions": "Trim" })).await.map(drop)
    }

    /// Sets the time at which Etch verifies what it has stored to the past, while it is stopped.
    ///
    /// # Errors
    /// See [`Scene::verify_now`].
    pub(super) async fn verify_now(&self, kind: &Kind) -> Result<()> {
        self.scene.verify_now(&kind.crd_name()).await
    }

    /// Ends that Etch ignores an object.
    ///
    /// # Errors
    /// It is refused.
    pub(super) async fn end_ignoring(&self, actor: &Actor) -> Result<()> {
        let change = json!({ "metadata": { "annotations": { "etch-operator.io/ignore": null } } });
        self.cluster().patch(&actor.path(), Patch::Merge, actor.manager, &change).await?.ok().map(drop)
    }

    /// Waits until the part of the report about versions is as expected.
    ///
    /// # Errors
    /// That does not happen in time.
    pub(super) async fn reported(&self, kind: &Kind, is_expected: impl Fn(&Value) -> bool) -> Result<Value> {
        eventually(LIMIT, &format!("the report on the versions of {}", kind.crd_name()), async || {
            let versions = self.scene.report(&kind.crd_name()).await?["status"]["storedVersions"].take();
            Ok(is_expected(&versions).then_some(versions))
        })
        .await
    }

    /// Waits until the CRD lists these versions and no other in `status.storedVersions`.
    ///
    /// # Errors
    /// That does not happen in time.
    pub(super) async fn until_listed(&self, kind: &Kind, versions: &[&str]) -> Result<()> {
        let name = kind.crd_name();
        eventually(LIMIT, &format!("{name} lists {versions:?}"), async || {
            let crd = self.cluster().get(&format!("{CRDS}/{name}")).await?;
            Ok((crd["status"]["storedVersions"] == json!(versions)).then_some(()))
        })
        .await
    }

    /// Tries out whether a CRD would be accepted.
    ///
    /// # Errors
    /// There is no answer; a refusal is an answer.
    pub(super) async fn dry_run_crd(&self, crd: &Value) -> Result<Answer> {
        let name = crd["metadata"]["name"].as_str().context("a name")?;
        let path = format!("{CRDS}/{name}?fieldManager=e2e&force=true&dryRun=All");
        self.cluster().send("PATCH", &path, "application/apply-patch+yaml", serde_json::to_vec(crd)?).await
    }

    /// Applies a CRD; it is served, but maybe still as it was before.
    ///
    /// # Errors
    /// It is refused.
    pub(super) async fn roll_out(&self, crd: &Value) -> Result<()> {
        self.cluster().apply_crd(crd).await.map(drop)
    }

    /// Writes an object for the first time.
    ///
    /// # Errors
    /// It is refused.
    pub(super) async fn write(&self, actor: &Actor) -> Result<()> {
        let manifest = actor.manifest()?;
        if actor.applied {
            let apply = ActorApply { actor, manager: actor.manager, document: manifest };
            return self.apply(&apply, "").await?.ok().map(drop);
        }
        self.cluster().create(&actor.kind.collection(), actor.manager, &manifest).await.map(drop)
    }

    /// Reads objects from both sides.
    ///
    /// # Errors
    /// See [`Snapshot::take`].
    pub(super) async fn look(&self, actors: &[Actor]) -> Result<Snapshot> {
        Snapshot::take(self.cluster(), actors).await
    }

    /// Waits until the API shows this value in an object, or none.
    ///
    /// # Errors
    /// It does not come in time.
    pub(super) async fn until_shown(&self, actor: &Actor, field: Field, value: Option<&Value>) -> Result<()> {
        eventually(LIMIT, &format!("{actor} shows the new schema at {field}"), async || {
            let shown = self.cluster().get(&actor.path()).await?;
            Ok((field.of(&shown) == value).then_some(()))
        })
        .await
    }

    /// Waits until Etch reports that the defaults of a CRD at its present generation are stored.
    ///
    /// # Errors
    /// It does not report that in time; the error quotes the condition.
    pub(super) async fn persisted(&self, kind: &Kind) -> Result<Condition> {
        let name = kind.crd_name();
        let condition = self.cluster().persisted(&name, "AllPersisted", LIMIT).await?;
        // Before 1.36 the server drops a condition's `observedGeneration`; the report has it.
        let crd = self.cluster().get(&format!("{CRDS}/{name}")).await?;
        let generation = &crd["metadata"]["generation"];
        eventually(LIMIT, &format!("{name}: the report of generation {generation}"), async || {
            let status = self.scene.report(&name).await?["status"].take();
            Ok((status["generation"] == *generation && status["state"] == "AllPersisted").then_some(()))
        })
        .await?;
        ensure!(condition.status == "True", "{name}: DefaultsPersisted is {}", condition.status);
        Ok(condition)
    }

    /// The conditions that Etch has put on a CRD: type, status, reason and message of each.
    ///
    /// # Errors
    /// The CRD cannot be read.
    pub(super) async fn conditions(&self, kind: &Kind) -> Result<Vec<Vec<String>>> {
        let mut rows = Vec::new();
        for name in etch_core::condition::TYPES {
            if let Some(Condition { status, reason, message, .. }) =
                self.cluster().condition(&kind.crd_name(), name).await?
            {
                rows.push(vec![name.to_owned(), status, reason, message]);
            }
        }
        Ok(rows)
    }

    /// What `kubectl get defaultsreports` prints, which is up to the server: the head first.
    ///
    /// # Errors
    /// There is no such answer.
    pub(super) async fn printed_reports(&self, kinds: &[&Kind]) -> Result<Vec<Vec<String>>> {
        let request = Request::get("/apis/etch-operator.io/v1alpha1/defaultsreports")
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Vec::new())?;
        let client = self.scene.control_plane.client(0).await?;
        let answer: Value = client.request(request).await.context("the reports as a table")?;
        let columns = answer["columnDefinitions"].as_array().context("no columns")?;
        let shown: Vec<usize> = (0..columns.len()).filter(|index| columns[*index]["priority"] == 0).collect();
        let name = |index: &usize| columns[*index]["name"].as_str().unwrap_or_default().to_uppercase();
        let mut rows = vec![shown.iter().map(name).collect()];
        for row in answer["rows"].as_array().into_iter().flatten() {
            if kinds.iter().any(|kind| row["object"]["metadata"]["name"] == kind.crd_name()) {
                rows.push(shown.iter().map(|index| cell(&row["cells"][*index])).collect());
            }
        }
        Ok(rows)
    }

    /// How many requests of Etch the API server's audit log has for an object, by verb:
    /// `[patch, any other write]`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) fn writes_of_etch(&self, actor: &Actor) -> Result<[usize; 2]> {
        let about = |event: &Value| {
            let object = &event["objectRef"];
            (&object["apiGroup"], &object["resource"], &object["name"])
                == (&json!(actor.kind.group), &json!(actor.kind.plural), &json!(actor.name))
        };
        let patches = self.scene.requests(|event| about(event) && event["verb"] == "patch")?.len();
        let reads = ["get", "list", "watch"];
        let all =
            self.scene.requests(|event| about(event) && !reads.iter().any(|verb| event["verb"] == *verb))?;
        Ok([patches, all.len() - patches])
    }

    /// Tries out a server-side apply without force, and without leaving a trace.
    ///
    /// # Errors
    /// There is no answer; a conflict is an answer.
    pub(super) async fn dry_run(&self, apply: &ActorApply<'_>) -> Result<Answer> {
        self.apply(apply, "&dryRun=All").await
    }

    async fn apply(&self, apply: &ActorApply<'_>, parameters: &str) -> Result<Answer> {
        let ActorApply { actor, manager, document } = apply;
        let path = format!("{}?fieldManager={manager}{parameters}", actor.path());
        let body = serde_json::to_vec(document)?;
        self.cluster().send("PATCH", &path, "application/apply-patch+yaml", body).await
    }

    fn cluster(&self) -> &Cluster {
        &self.scene.cluster
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "<none>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
