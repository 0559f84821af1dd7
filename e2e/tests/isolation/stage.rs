//! The cluster and the operator that all cases share, the widgets of one case, and the search for values that
//! leaked.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Cluster, Condition, GUARD, Patch, crd, eventually, with_spec};
use e2e::logs;
use e2e::operator::Operator;
use e2e::scene::Scene;
use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::RwLock;

use crate::Case;

/// How long the operator may take for anything, unless a longer time is documented.
pub(crate) const SOON: Duration = GUARD;
/// Values of objects. Whatever else objects hold is too common to be searched for.
pub(crate) const CANARY: &str = "hunter2";
pub(crate) const CANARY_NUMBER: i64 = 730_588_193;
/// Values of defaults, which reports list and nothing else shows.
pub(crate) const DEFAULT: &str = "swordfish";
pub(crate) const DEFAULT_NUMBER: i64 = 519_302_447;

/// A cluster with an operator at work.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    operator: Operator,
    metrics: Client,
    /// Held for writing by a case that measures.
    turn: RwLock<()>,
}

/// The widgets of one API group, in the namespace `default`.
pub(crate) struct Widgets<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) cluster: &'a Cluster,
    pub(crate) group: String,
}

impl Stage {
    pub(crate) async fn set() -> Result<Self> {
        let scene = Scene::start(&[]).await?;
        let operator = scene.operator(&["--log-format=json"])?;
        let listening = eventually(SOON, "the operator listens", async || {
            // The last line may be half written.
            let log = operator.log()?;
            let lines = logs::parse(log.rsplit_once('\n').map_or("", |(whole, _)| whole))?;
            let address = lines.iter().find_map(|line| line["fields"]["listening"].as_str());
            Ok(address.map(str::to_owned))
        })
        .await?;
        let metrics = Client::try_from(Config::new(format!("http://{listening}").parse()?))?;
        Ok(Self { scene, operator, metrics, turn: RwLock::default() })
    }

    /// Plays one case, and looks for values in everything that Etch has printed or written until then.
    pub(crate) async fn play(&self, case: &Case) -> Result<()> {
        let (mut shared, mut alone) = (None, None);
        match case.alone {
            true => alone = Some(self.turn.write().await),
            false => shared = Some(self.turn.read().await),
        }
        (case.play)(self, case.name).await?;
        drop((shared.take(), alone.take()));
        self.keeps_secrets().await
    }

    /// The widgets of a case, which the operator may process.
    pub(crate) async fn widgets(&self, name: impl AsRef<str>) -> Result<Widgets<'_>> {
        let widgets = self.forbidden_widgets(name.as_ref());
        self.scene.grant(&widgets.group).await?;
        Ok(widgets)
    }

    /// The same, without permission for the operator.
    pub(crate) fn forbidden_widgets(&self, name: &str) -> Widgets<'_> {
        let group = format!("{}.example.com", name.replace('_', "-"));
        Widgets { stage: self, cluster: &self.scene.cluster, group }
    }

    /// Fails if anything that Etch has printed or written holds a value of an object.
    async fn keeps_secrets(&self) -> Result<()> {
        let cluster = &self.scene.cluster;
        let crds = cluster.get(CRDS).await?;
        let conditions =
            crds["items"].as_array().into_iter().flatten().map(|crd| &crd["status"]["conditions"]);
        let metrics = Request::get("/metrics").body(Body::empty())?;
        let metrics = self.metrics.send(metrics).await?.into_body().collect_bytes().await?;
        let reports = cluster.get("/apis/etch-operator.io/v1alpha1/defaultsreports").await?;
        let log = self.operator.log()?;
        logs::parse(log.rsplit_once('\n').map_or("", |(whole, _)| whole)).context("the log")?;
        let wording = [
            ("the log", log),
            ("a condition", json!(conditions.collect::<Vec<_>>()).to_string()),
            ("a report", without_defaults(reports).to_string()),
            ("an event", cluster.get("/apis/events.k8s.io/v1/events").await?.to_string()),
            ("the metrics", String::from_utf8(metrics.to_vec())?),
        ];
        for (whence, text) in wording {
            ensure!(!text.is_empty(), "{whence} cannot be searched");
            let numbers = [CANARY_NUMBER.to_string(), DEFAULT_NUMBER.to_string()];
            for canary in [CANARY, DEFAULT, &numbers[0], &numbers[1]] {
                if let Some(at) = text.find(canary) {
                    let begin = text[..at].rfind('\n').unwrap_or(at.saturating_sub(300));
                    let around: String = text[begin..].chars().take(800).collect();
                    anyhow::bail!("{whence} holds a value: {around}");
                }
            }
        }
        Ok(())
    }
}

impl Widgets<'_> {
    pub(crate) fn crd(&self) -> String {
        format!("widgets.{}", self.group)
    }

    /// Defines the CRD with one version.
    pub(crate) async fn define(&self, schema: Value) -> Result<()> {
        self.define_versions(&[("v1", true, schema)]).await
    }

    pub(crate) async fn define_versions(&self, versions: &[(&str, bool, Value)]) -> Result<()> {
        self.cluster.apply_crd(&crd(&self.group, "Widget", versions)).await.map(drop)
    }

    /// The collection at a version.
    pub(crate) fn collection(&self, version: &str) -> String {
        format!("/apis/{}/{version}/namespaces/default/widgets", self.group)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.collection("v1"))
    }

    /// A widget that holds the canaries.
    pub(crate) fn widget(&self, version: &str, name: &str) -> Value {
        json!({
            "apiVersion": format!("{}/{version}", self.group),
            "kind": "Widget",
            "metadata": { "name": name, "annotations": { "note": CANARY } },
            "spec": { "secret": CANARY, "number": CANARY_NUMBER },
        })
    }

    pub(crate) async fn create(&self, name: &str) -> Result<Value> {
        self.cluster.create(&self.collection("v1"), "owner", &self.widget("v1", name)).await
    }

    /// Changes a widget in a way that means nothing.
    pub(crate) async fn touch(&self, name: &str) -> Result<()> {
        let labels = json!({ "metadata": { "labels": { "touched": fastrand::u32(..).to_string() } } });
        self.cluster.patch(&self.path(name), Patch::Merge, "user", &labels).await?.ok().map(drop)
    }

    /// What etcd holds of a widget.
    pub(crate) async fn raw(&self, name: &str) -> Result<Value> {
        self.cluster.raw(&self.group, "widgets", Some("default"), name).await
    }

    /// Whether etcd holds the default of a widget.
    pub(crate) async fn is_stored(&self, name: &str) -> Result<bool> {
        Ok(!self.raw(name).await?["spec"]["size"].is_null())
    }

    pub(crate) async fn persisted(&self, reason: &str, limit: Duration) -> Result<Condition> {
        self.cluster.persisted(&self.crd(), reason, limit).await
    }

    /// The status of the report.
    pub(crate) async fn report(&self) -> Result<Value> {
        Ok(self.stage.scene.report(&self.crd()).await?["status"].clone())
    }

    /// The status of the report, which follows the condition, once its state is this.
    pub(crate) async fn reported(&self, state: &str) -> Result<Value> {
        eventually(SOON, &format!("the report says {state}"), async || {
            Ok(Some(self.report().await?)
                .filter(|report| report["state"] == state && report["finished"].is_string()))
        })
        .await
    }

    /// The one widget that the report names under `held` or `rejected`.
    pub(crate) async fn problem(&self, list: &str) -> Result<Value> {
        let report = self.reported("ObjectsRejected").await?;
        let problems = report[list].as_array().context("a list of problems")?;
        ensure!(problems.len() == 1, "not one problem: {problems:?}");
        Ok(problems[0].clone())
    }

    /// How many requests about these widgets the operator has made.
    pub(crate) fn requests(&self) -> Result<usize> {
        let ours = |event: &Value| event["objectRef"]["apiGroup"] == self.group.as_str();
        Ok(self.stage.scene.requests(ours)?.len())
    }
}

/// Reports, without the values of the schema's defaults.
fn without_defaults(mut document: Value) -> Value {
    match &mut document {
        Value::Object(fields) => {
            let listed = fields.remove("value").is_some();
            debug_assert!(!listed || fields.contains_key("path"), "the value of a default");
            fields.values_mut().for_each(|field| *field = without_defaults(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_defaults(item.take())),
        _ => {}
    }
    document
}

/// A schema without defaults.
pub(crate) fn plain() -> Value {
    with_spec(json!({
        "secret": { "type": "string" }, "number": { "type": "integer" },
    }))
}

/// The same with a default, `spec.size`.
pub(crate) fn defaulted() -> Value {
    with("size", json!({ "type": "integer", "default": 3 }))
}

/// The same with another property.
pub(crate) fn with(name: &str, property: Value) -> Value {
    let mut schema = plain();
    schema["properties"]["spec"]["properties"][name] = property;
    schema
}
