//! A control plane with objects in ten states, and the commands that look at them.
//! It must not know what the commands are to answer: etcd is asked for that.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, Patch, crd, eventually};
use e2e::control_plane::{ControlPlane, Options};
use e2e::operator;
use k8s_openapi::ByteString;
use kube::client::Body;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const GROUP: &str = "live.example.com";
pub(crate) const TABS: &str = "/apis/live.example.com/v1/namespaces/default/tabs";
const OLD_PAIRS: &str = "/apis/live.example.com/v1beta1/namespaces/default/pairs";
const PAIRS: &str = "/apis/live.example.com/v1/namespaces/default/pairs";
/// Objects in each state.
const EACH: usize = 10;

/// A running control plane, and the states of its objects.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) endpoint: String,
    dir: TempDir,
    _control_plane: ControlPlane,
}

/// What a command printed, and its exit status.
pub(crate) struct Printed {
    pub(crate) code: Option<i32>,
    pub(crate) json: Value,
}

impl Stage {
    pub(crate) async fn start() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
        let cluster = Cluster::of(&control_plane).await?;
        let endpoints: Value =
            serde_json::from_slice(&std::fs::read(dir.path().join("cluster/endpoints.json"))?)?;
        let endpoint = endpoints["etcd"][0].as_str().context("an etcd endpoint")?.to_owned();
        let stage = Self { cluster, endpoint, dir, _control_plane: control_plane };
        stage.set().await?;
        Ok(stage)
    }

    /// Objects from before there were defaults, the upgrade that brings them, and what is done to some objects after it.
    async fn set(&self) -> Result<()> {
        let Self { cluster, .. } = self;
        cluster.apply_crd(&tabs(&tab_schema(false))).await?;
        cluster.apply_crd(&pairs(&[("v1beta1", true, pair_schema(false))])).await?;
        for index in 0..EACH {
            let create = async |state: &str, spec: Value| {
                cluster.create(TABS, "creator", &tab(&format!("{state}-{index}"), spec)).await.map(drop)
            };
            create("phantom", json!({ "schedule": "x" })).await?;
            create("stored", json!({ "schedule": "x" })).await?;
            create("hidden", json!({ "legacy": "secret" })).await?;
            create("cleared", json!({ "schedule": "x" })).await?;
            create("atomic", json!({ "a": 1, "ports": [{ "n": 1 }, { "n": 2, "protocol": "TCP" }] })).await?;
            create("listmap", json!({ "rules": [{ "name": "r" }, { "name": "s", "weight": 10 }] })).await?;
            create("held", json!({ "odd": { "k": {} } })).await?;
            let owned = tab(&format!("owned-{index}"), json!({ "a": 1, "o": { "x": 5 } }));
            let path = format!("{TABS}/owned-{index}");
            cluster.patch(&path, Patch::Apply, "owner", &owned).await?.ok()?;
            for state in ["gap", "versions"] {
                cluster.create(OLD_PAIRS, "creator", &pair("v1beta1", &format!("{state}-{index}"))).await?;
            }
        }
        cluster.apply_crd(&tabs(&tab_schema(true))).await?;
        let both = [("v1beta1", false, pair_schema(false)), ("v1", true, pair_schema(true))];
        cluster.apply_crd(&pairs(&both)).await?;
        self.shows(&format!("{TABS}/phantom-0"), "/spec/a").await?;
        self.shows(&format!("{PAIRS}/gap-0"), "/spec/a").await?;
        for index in 0..EACH {
            cluster.patch(&format!("{TABS}/stored-{index}"), Patch::Merge, "x", &json!({})).await?.ok()?;
            let written = json!({ "spec": { "a": 2, "color": "red" } });
            cluster.patch(&format!("{PAIRS}/versions-{index}"), Patch::Merge, "x", &written).await?.ok()?;
            self.clear_owners(&format!("cleared-{index}")).await?;
        }
        Ok(())
    }

    /// Waits until a reader sees a value: a changed schema is served some milliseconds after the change.
    pub(crate) async fn shows(&self, path: &str, place: &str) -> Result<()> {
        eventually(Duration::from_secs(20), &format!("{path} shows {place}"), async || {
            let object = self.cluster.get(path).await?;
            Ok(object.pointer(place).is_some().then_some(()))
        })
        .await
    }

    /// Takes the owners off an object without storing anything else.
    async fn clear_owners(&self, name: &str) -> Result<()> {
        let key = e2e::control_plane::object_key(GROUP, "tabs", Some("default"), name);
        let (bytes, _) = self.cluster.etcd().get(&key).await?.context("the object")?;
        let mut object: Value = serde_json::from_slice(&bytes)?;
        object["metadata"].as_object_mut().context("metadata")?.remove("managedFields");
        self.cluster.etcd().put(&key, &serde_json::to_vec(&object)?).await
    }

    /// What etcd holds of all objects of a type, by their names.
    pub(crate) async fn raw(&self, plural: &str) -> Result<BTreeMap<String, Value>> {
        let values = self.cluster.etcd().list(&format!("/registry/{GROUP}/{plural}/")).await?;
        let name = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
        values.iter().map(|value| Ok((name(&value.key), serde_json::from_slice(&value.bytes)?))).collect()
    }

    /// What readers see of all objects of a type at v1, by their names.
    pub(crate) async fn read(&self, plural: &str) -> Result<BTreeMap<String, Value>> {
        let list = self.cluster.get(&format!("/apis/{GROUP}/v1/{plural}")).await?;
        let items = list["items"].as_array().context("items")?;
        Ok(items
            .iter()
            .map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item.clone()))
            .collect())
    }

    /// Runs a command as the administrator, with its output in JSON.
    pub(crate) fn etch(&self, arguments: &[&str]) -> Result<Printed> {
        let output = Command::new(operator::binary()?)
            .args(arguments)
            .args(["-o", "json"])
            .env("KUBECONFIG", self.dir.path().join("cluster/kubeconfig"))
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {said}");
        let json =
            serde_json::from_slice(&output.stdout).with_context(|| format!("{arguments:?}: {said}"))?;
        Ok(Printed { code: output.status.code(), json })
    }

    /// A file in the directory of the stage.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path)
    }

    /// A snapshot, as `etcdctl snapshot save` would write it.
    pub(crate) async fn snapshot(&self) -> Result<PathBuf> {
        let client = kube::Client::try_from(kube::Config::new(self.endpoint.parse()?))?;
        let request = http::Request::post("/v3/maintenance/snapshot").body(Body::from(b"{}".to_vec()))?;
        let body = client.send(request).await?.into_body().collect_bytes().await?;
        let mut bytes = Vec::new();
        for part in body.split(|byte| *byte == b'\n').filter(|part| !part.is_empty()) {
            let part: Value = serde_json::from_slice(part)?;
            let blob: ByteString = serde_json::from_value(part["result"]["blob"].clone()).unwrap_or_default();
            bytes.extend(blob.0);
        }
        self.file("snapshot.db", &bytes)
    }
}

/// The places whose default etcd does not hold, by what the schemas of this stage say.
pub(crate) fn missing(plural: &str, raw: &Value) -> Vec<String> {
    let spec = &raw["spec"];
    let mut places = Vec::new();
    let mut lacks = |value: &Value, place: String| {
        if value.is_null() {
            places.push(place);
        }
    };
    if plural == "pairs" {
        lacks(&spec["color"], ".spec.color".to_owned());
        return places;
    }
    lacks(&spec["a"], ".spec.a".to_owned());
    match &spec["o"] {
        Value::Null => lacks(&Value::Null, ".spec.o".to_owned()),
        o => lacks(&o["x"], ".spec.o.x".to_owned()),
    }
    for (list, field) in [("ports", "protocol"), ("rules", "weight")] {
        for (index, item) in spec[list].as_array().into_iter().flatten().enumerate() {
            lacks(&item[field], format!(".spec.{list}[{index}].{field}"));
        }
    }
    for (key, value) in spec["odd"].as_object().into_iter().flatten() {
        lacks(&value["n"], format!(".spec.odd[{key:?}].n"));
    }
    places.sort();
    places
}

pub(crate) fn tabs(schema: &Value) -> Value {
    crd(GROUP, "Tab", &[("v1", true, schema.clone())])
}

fn pairs(versions: &[(&str, bool, Value)]) -> Value {
    crd(GROUP, "Pair", versions)
}

/// The schema of tabs, with the defaults and without the field `legacy`, or the other way round.
pub(crate) fn tab_schema(defaults: bool) -> Value {
    let with = |mut schema: Value, default: Value| {
        if defaults {
            schema["default"] = default;
        }
        schema
    };
    let integer = || json!({ "type": "integer" });
    let mut schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "schedule": { "type": "string" },
        "legacy": { "type": "string" },
        "a": with(integer(), json!(1)),
        "o": with(json!({ "type": "object", "properties": { "x": with(integer(), json!(5)) } }), json!({})),
        "ports": { "type": "array", "items": { "type": "object", "properties": {
            "n": { "type": "integer" }, "protocol": with(json!({ "type": "string" }), json!("TCP")),
        } } },
        "rules": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": { "type": "object", "required": ["name"], "properties": {
                "name": { "type": "string" }, "weight": with(integer(), json!(10)),
        } } },
        // The server does not look for invalid defaults below a map.
        "odd": { "type": "object", "additionalProperties": { "type": "object", "properties": {
            "n": with(json!({ "type": "integer", "maximum": 5 }), json!(9)),
        } } },
    } } } });
    if defaults && let Some(fields) = schema["properties"]["spec"]["properties"].as_object_mut() {
        fields.remove("legacy");
    }
    schema
}

fn pair_schema(color: bool) -> Value {
    let mut schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "a": { "type": "integer" },
    } } } });
    if color {
        schema["properties"]["spec"]["properties"]["color"] = json!({ "type": "string", "default": "red" });
    }
    schema
}

pub(crate) fn tab(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Tab", "metadata": { "name": name }, "spec": spec })
}

fn pair(version: &str, name: &str) -> Value {
    let api_version = format!("{GROUP}/{version}");
    json!({ "apiVersion": api_version, "kind": "Pair", "metadata": { "name": name }, "spec": { "a": 1 } })
}
