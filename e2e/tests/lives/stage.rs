//! A control plane on which many lives go on at once, and what happens to each of them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Answer, CRDS, Condition, GUARD, eventually};
use e2e::operator::Operator;
use e2e::process::{self, Printed};
use e2e::scene::Scene;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use crate::schema::{Change, Crd, GROUP};
use crate::story::{Admission, Deed, Life, Part, Step};
use crate::webhooks::Webhooks;

/// Lives that act at once.
const AT_ONCE: usize = 8;

/// A control plane with Etch installed.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    webhooks: Webhooks,
    endpoint: String,
}

/// A life as far as it has come.
pub(crate) struct Living {
    pub(crate) life: Life,
    pub(crate) crd: Crd,
    pub(crate) policy: Value,
    /// Whether admission strips fields from each write.
    pub(crate) strips: bool,
    /// What has happened, with the server's answers.
    pub(crate) log: Vec<String>,
    /// How many steps of the chapter are made.
    pub(crate) done: usize,
    /// How often the CRD was applied.
    applied: usize,
    markers: usize,
}

/// What Etch reports of a CRD at rest.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: Value,
    pub(crate) condition: Condition,
}

/// Bytes and views of all objects, by plural and name.
pub(crate) struct Snapshot {
    pub(crate) raw: BTreeMap<String, BTreeMap<String, Value>>,
    pub(crate) views: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Living {
    pub(crate) fn new(life: Life) -> Self {
        let (crd, policy) = (life.crd.clone(), life.policy.clone());
        Self { life, crd, policy, strips: false, log: Vec::new(), done: 0, applied: 0, markers: 0 }
    }

    pub(crate) fn name(&self) -> String {
        format!("{}.{GROUP}", self.life.plural)
    }

    fn collection(&self, version: &str) -> String {
        format!("/apis/{GROUP}/{version}/namespaces/default/{}", self.life.plural)
    }

    fn object(&self, version: &str, name: &str, values: &Value) -> Value {
        let mut object = values.clone();
        object["apiVersion"] = json!(format!("{GROUP}/{version}"));
        object["kind"] = json!(self.life.kind);
        object["metadata"]["name"] = json!(name);
        object
    }

    /// Whether Etch reports anything of its objects, by the versions at which they may be stored: they show
    /// the defaults of these (fact R2).
    fn is_reported(&self, stored_versions: &Value) -> bool {
        let may_store = |name: &str| stored_versions.as_array().into_iter().flatten().any(|one| one == name);
        let mut versions =
            self.crd.versions.iter().filter(|version| version.storage || may_store(version.name));
        versions.any(|version| version.has_defaults()) && self.policy["mode"] != "Ignore"
    }

    /// Whether Etch may write its objects.
    pub(crate) fn is_written(&self) -> bool {
        self.policy["mode"] == "Persist" && self.policy["paused"] != true
    }
}

impl Stage {
    /// A control plane with the CRDs and policies of these lives.
    pub(crate) async fn start(lives: &mut [Living]) -> Result<Self> {
        let scene = Scene::start(&[GROUP]).await?;
        let endpoint = scene.control_plane.etcd_url().to_owned();
        let stage = Self { scene, webhooks: Webhooks::start().await?, endpoint };
        stage.scene.policy("default", json!({ "selector": { "exclude": [format!("*.{GROUP}")] } })).await?;
        stage
            .each(lives, async |living| {
                let document = stage.document(living);
                stage.serve(living, &document).await.with_context(|| format!("{document:#}"))?;
                stage.set_policy(living).await
            })
            .await?;
        stage.admit(lives).await?;
        Ok(stage)
    }

    /// Has the API server ask a webhook about the lives in which admission changes anything.
    async fn admit(&self, lives: &[Living]) -> Result<()> {
        let has_admission = |living: &&Living| {
            living.life.chapters.iter().flatten().any(|step| matches!(step, Step::Admission(_)))
        };
        let asked: Vec<&Living> = lives.iter().filter(has_admission).collect();
        let Some(first) = asked.first() else { return Ok(()) };
        let plurals: Vec<&str> = asked.iter().map(|living| living.life.plural.as_str()).collect();
        let configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        self.scene.cluster.create(configurations, "admin", &self.webhooks.configuration(&plurals)).await?;
        self.webhooks.set(&first.life.plural, Admission::Stamp);
        let version = first.crd.storage().name;
        let path = format!("{}?dryRun=All", first.collection(version));
        let body = serde_json::to_vec(&first.object(version, "probe", &json!({ "spec": {} })))?;
        eventually(GUARD, "the webhook is asked", async || {
            let answer = self.scene.cluster.send("POST", &path, "application/json", body.clone()).await?;
            Ok((answer.body["metadata"]["labels"]["stamped"] == "yes").then_some(()))
        })
        .await?;
        self.webhooks.set(&first.life.plural, Admission::None);
        Ok(())
    }

    /// Does something with each life, several at once.
    pub(crate) async fn each(
        &self,
        lives: &mut [Living],
        act: impl AsyncFn(&mut Living) -> Result<()>,
    ) -> Result<()> {
        let acts = stream::iter(lives).map(|living| {
            let act = &act;
            async move {
                let seed = living.life.seed;
                act(living).await.with_context(|| format!("life {seed}:\n{}", living.log.join("\n")))
            }
        });
        acts.buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await
    }

    pub(crate) fn operator(&self) -> Result<Operator> {
        // One that was killed would leave a Lease behind, which the next has to wait for.
        self.scene.operator(&["--leader-elect=false"])
    }

    fn document(&self, living: &Living) -> Value {
        let conversion = self.webhooks.conversion(living.crd.conversion);
        living.crd.document(&living.life.kind, &format!("state-{}", living.applied), &conversion)
    }

    /// The CRD as it would be after some changes.
    pub(crate) fn changed(&self, living: &Living, changes: &[Change]) -> (Crd, Value) {
        let mut crd = living.crd.clone();
        changes.iter().for_each(|change| crd.apply(change));
        let conversion = self.webhooks.conversion(crd.conversion);
        let document = crd.document(&living.life.kind, &format!("state-{}", living.applied + 1), &conversion);
        (crd, document)
    }

    /// Applies the CRD, and waits until the schema is served.
    async fn serve(&self, living: &Living, document: &Value) -> Result<()> {
        let cluster = &self.scene.cluster;
        cluster.apply_crd(document).await?;
        let serving = json!({ "spec": { "serving": format!("state-{}", living.applied) } });
        for version in &living.crd.versions {
            let path = format!("{}?dryRun=All", living.collection(version.name));
            let body = serde_json::to_vec(&living.object(version.name, "probe", &serving))?;
            let expected = if version.served { 201 } else { 404 };
            eventually(GUARD, &format!("{} at {}", living.name(), version.name), async || {
                let answer = cluster.send("POST", &path, "application/json", body.clone()).await?;
                ensure!(answer.code == expected, "{}", answer.body);
                Ok(Some(()))
            })
            .await?;
        }
        Ok(())
    }

    async fn set_policy(&self, living: &Living) -> Result<()> {
        let mut spec = living.policy.clone();
        spec["selector"] = json!({ "names": [living.name()] });
        self.scene.policy(&living.life.plural, spec).await
    }

    /// Makes one step of a life.
    pub(crate) async fn step(&self, living: &mut Living, step: &Step) -> Result<()> {
        let answer = match step {
            Step::Crd(changes) => {
                let (crd, document) = self.changed(living, changes);
                let before = (std::mem::replace(&mut living.crd, crd), living.applied);
                living.applied += 1;
                match self.serve(living, &document).await {
                    Ok(()) => "served".to_owned(),
                    Err(error) if format!("{error:#}").contains("waited") => return Err(error),
                    Err(error) => {
                        (living.crd, living.applied) = before;
                        format!("{error:#}")
                    }
                }
            }
            Step::Policy(policy) => {
                living.policy = policy.clone();
                self.set_policy(living).await?;
                "set".to_owned()
            }
            Step::Admission(habit) => {
                self.webhooks.set(&living.life.plural, *habit);
                living.strips = matches!(habit, Admission::Strip);
                "set".to_owned()
            }
            Step::Act { object, version, deed } => match self.act(living, *object, version, deed).await? {
                Some(Answer { code: 200..=299, .. }) => "done".to_owned(),
                Some(Answer { code, body, .. }) => format!("{code} {}", body["message"]),
                None => "not there".to_owned(),
            },
        };
        living.log.push(format!("    {step:?}: {answer}"));
        Ok(())
    }

    async fn act(
        &self,
        living: &Living,
        object: usize,
        version: &str,
        deed: &Deed,
    ) -> Result<Option<Answer>> {
        let name = format!("o{object}");
        let path = format!("{}/{name}", living.collection(version));
        let of = |part: &Part| match part {
            Part::Main => path.clone(),
            Part::Status => format!("{path}/status"),
        };
        let merge = async |path: &str, body: Value| {
            self.send("PATCH", path, "user", "application/merge-patch+json", &body).await.map(Some)
        };
        match deed {
            Deed::Create { spec, status, ignored } => {
                let mut object = living.object(version, &name, &json!({ "spec": spec }));
                if *status {
                    object["status"] = json!({ "seen": 1 });
                }
                if *ignored {
                    object["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
                }
                let path = living.collection(version);
                self.send("POST", &path, "creator", "application/json", &object).await.map(Some)
            }
            Deed::Put { part, values } => {
                let Some(mut object) = self.read(&path).await? else { return Ok(None) };
                for (key, values) in values.as_object().into_iter().flatten() {
                    for (name, value) in values.as_object().into_iter().flatten() {
                        object[key][name] = value.clone();
                    }
                }
                self.send("PUT", &of(part), "putter", "application/json", &object).await.map(Some)
            }
            Deed::Merge { part, values } => merge(&of(part), values.clone()).await,
            Deed::JsonPatch(patch) => {
                self.send("PATCH", &path, "patcher", "application/json-patch+json", patch).await.map(Some)
            }
            Deed::Apply { manager, part, values } => {
                let object = living.object(version, &name, values);
                self.send("PATCH", &of(part), manager, "application/apply-patch+yaml", &object)
                    .await
                    .map(Some)
            }
            Deed::Scale { replicas, put } => {
                let path = format!("{path}/scale");
                let Some(mut scale) = self.read(&path).await? else { return Ok(None) };
                if !put {
                    return merge(&path, json!({ "spec": { "replicas": replicas } })).await;
                }
                scale["spec"]["replicas"] = json!(replicas);
                self.send("PUT", &path, "scaler", "application/json", &scale).await.map(Some)
            }
            Deed::Finalizer(has) => {
                let finalizers = has.then(|| json!(["lives.example.com/kept"]));
                merge(&path, json!({ "metadata": { "finalizers": finalizers } })).await
            }
            Deed::Delete => {
                self.send("DELETE", &path, "user", "application/json", &json!({})).await.map(Some)
            }
            Deed::Ignore(ignored) => {
                let value = ignored.then_some("true");
                merge(&path, json!({ "metadata": { "annotations": { "etch-operator.io/ignore": value } } }))
                    .await
            }
            Deed::Disown => merge(&path, json!({ "metadata": { "managedFields": [{}] } })).await,
        }
    }

    async fn read(&self, path: &str) -> Result<Option<Value>> {
        let answer = self.send("GET", path, "user", "application/json", &Value::Null).await?;
        Ok((answer.code == 200).then_some(answer.body))
    }

    /// Sends a request until the server is ready for it: after a change of the CRD it may not be for a
    /// moment.
    async fn send(
        &self,
        method: &str,
        path: &str,
        manager: &str,
        media: &str,
        body: &Value,
    ) -> Result<Answer> {
        let path = if method == "GET" || method == "DELETE" {
            path.to_owned()
        } else {
            format!("{path}?fieldManager={manager}")
        };
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        eventually(GUARD, &path, async || {
            let answer = self.scene.cluster.send(method, &path, media, body.clone()).await?;
            ensure!(!matches!(answer.code, 429 | 503), "{}", answer.body);
            Ok(Some(answer))
        })
        .await
    }

    /// Waits until Etch has seen all that has happened to a life, and is done with it: what it reports then
    /// is judged. A marker that is created now comes after everything else in the watch, and the report names
    /// it, since it is ignored.
    ///
    /// # Errors
    /// It never becomes idle; the error has its last reports.
    pub(crate) async fn rest(&self, living: &mut Living) -> Result<Option<Said>> {
        let cluster = &self.scene.cluster;
        let (plural, name) = (&living.life.plural, living.name());
        let mut crd = cluster.get(&format!("{CRDS}/{name}")).await?;
        let generation = crd["metadata"]["generation"].take();
        let policy = format!("/apis/etch-operator.io/v1alpha1/defaultspolicies/{plural}");
        eventually(GUARD, &format!("the policy {plural} is known"), async || {
            let policy = cluster.get(&policy).await?;
            Ok((policy["status"]["observedGeneration"] == policy["metadata"]["generation"]).then_some(()))
        })
        .await?;
        if !living.is_reported(&crd["status"]["storedVersions"]) {
            return self.silence(&name).await.map(|()| None);
        }
        living.markers += 1;
        let marker = format!("marker-{}", living.markers);
        let version = living.crd.storage().name;
        let mut object = living.object(version, &marker, &json!({ "spec": {} }));
        object["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
        self.send("POST", &living.collection(version), "marker", "application/json", &object).await?.ok()?;
        let (mut last, mut reached) = (Value::Null, None);
        let wording = eventually(GUARD, &format!("{name} comes to rest"), async || {
            last = self.scene.report(&name).await?["status"].clone();
            let names = last["ignored"].as_array().into_iter().flatten();
            let is_seen = names.into_iter().any(|ignored| ignored["name"] == marker.as_str());
            if !is_seen || last["generation"] != generation || !last["finished"].is_string() {
                return Ok(None);
            }
            let condition = cluster.condition(&name, "DefaultsPersisted").await?;
            let Some(condition) = condition.filter(|condition| condition.current) else { return Ok(None) };
            // What is written again and again waits for some time, and nothing is claimed of it.
            let since = *reached.get_or_insert_with(std::time::Instant::now);
            let is_busy = last["counts"]["unknown"] != 0 || condition.reason == "InProgress";
            let is_patient = since.elapsed() < std::time::Duration::from_secs(5);
            let agrees = last["state"] == condition.reason.as_str();
            Ok((agrees && !(is_busy && is_patient)).then(|| Said { status: last.clone(), condition }))
        })
        .await;
        wording.map(Some).with_context(|| format!("{last}"))
    }

    /// Waits until nothing is claimed of a CRD that is ignored, or has no defaults.
    async fn silence(&self, name: &str) -> Result<()> {
        let mut last = None;
        let found = eventually(GUARD, &format!("nothing is claimed of {name}"), async || {
            last = self.scene.cluster.condition(name, "DefaultsPersisted").await?;
            let is_silent = last.as_ref().is_none_or(|condition| {
                condition.current && matches!(condition.reason.as_str(), "Ignored" | "NoDefaults")
            });
            Ok(is_silent.then_some(()))
        })
        .await;
        found.with_context(|| format!("{last:?}"))
    }

    /// What etcd holds, and what readers see at the storage versions.
    pub(crate) async fn snapshot(&self, lives: &[Living]) -> Result<Snapshot> {
        let mut raw: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
        let prefix = format!("/registry/{GROUP}/");
        for value in self.scene.cluster.etcd().list(&prefix).await? {
            let key = value.key.strip_prefix(&prefix).context("a key of the group")?;
            let (plural, name) = key.split_once("/default/").context("a key of an object")?;
            raw.entry(plural.to_owned())
                .or_default()
                .insert(name.to_owned(), serde_json::from_slice(&value.bytes)?);
        }
        let mut views = BTreeMap::new();
        for living in lives {
            views.insert(living.life.plural.clone(), self.views(living).await?);
            raw.entry(living.life.plural.clone()).or_default();
        }
        Ok(Snapshot { raw, views })
    }

    async fn views(&self, living: &Living) -> Result<BTreeMap<String, Value>> {
        let collection = living.collection(living.crd.storage().name);
        let list = self.send("GET", &collection, "", "application/json", &Value::Null).await?.ok()?;
        let items = list["items"].as_array().context("items")?;
        let named = |item: &Value| Some((item["metadata"]["name"].as_str()?.to_owned(), item.clone()));
        Ok(items.iter().filter_map(named).collect())
    }

    /// Runs a command as the administrator, with its output in JSON.
    pub(crate) async fn etch(&self, arguments: &[&str], exact: bool) -> Result<Printed> {
        let json = [arguments, &["-o", "json"]].concat();
        let mut command = process::command(&self.scene.control_plane.kubeconfig(0), &json)?;
        if exact {
            command.args(["--etcd-endpoints", &self.endpoint]);
        }
        let ended = tokio::task::spawn_blocking(|| process::ended(command)).await??;
        ended.try_into()
    }
}
