//! What scenarios do to a cluster as its users would: apply, patch, read, wait.
//! It must not use Etch's own client: what is tested is not what tests.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, EtcdRaw};

/// An API server and the etcd behind it.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    etcd: EtcdRaw,
}

/// An answer of the API server: the HTTP status and the body.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The body; a string where it is not JSON.
    pub body: Value,
    /// What it warns of, as kubectl shows it.
    pub warnings: Vec<String>,
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// Server-side apply, not forced.
    Apply,
    /// JSON merge patch.
    Merge,
    /// JSON patch.
    Json,
}

impl Cluster {
    /// The first API server of a control plane, as its administrator.
    ///
    /// # Errors
    /// No client can be made.
    pub async fn of(control_plane: &ControlPlane) -> Result<Self> {
        let etcd = control_plane.etcd().clone();
        Ok(Self { client: control_plane.client(0).await?, etcd })
    }

    /// The same server, as the user of a kubeconfig.
    ///
    /// # Errors
    /// It cannot be read, or no client can be made.
    pub async fn with_kubeconfig(&self, path: &Path) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(path)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Self { client: Client::try_from(config)?, etcd: self.etcd.clone() })
    }

    /// Sends a request and returns whatever is answered.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn send(&self, method: &str, path: &str, media_type: &str, body: Vec<u8>) -> Result<Answer> {
        use kube::client::Body;
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let response = self.client.send(request.body(Body::from(body))?).await.context("no answer")?;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter().filter_map(warning).collect();
        let bytes = response.into_body().collect_bytes().await?;
        let body = kube_structural_schema::json::Json::parse(&bytes)
            .map(kube_structural_schema::json::Json::into_inner)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Ok(Answer { code, body, warnings })
    }

    /// Reads a path.
    ///
    /// # Errors
    /// See [`Answer::ok`].
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.send("GET", path, "application/json", Vec::new()).await?.ok()
    }

    /// Reads a collection as `kubectl get` does: a `Table` of `meta.k8s.io/v1`.
    ///
    /// # Errors
    /// See [`Answer::ok`].
    pub async fn table(&self, path: &str) -> Result<Value> {
        use kube::client::Body;
        let request =
            Request::builder().uri(path).header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
        let response = self.client.send(request.body(Body::empty())?).await.context("no answer")?;
        let code = response.status().as_u16();
        let body = serde_json::from_slice(&response.into_body().collect_bytes().await?)?;
        Answer { code, body, warnings: Vec::new() }.ok()
    }

    /// Creates an object in a collection.
    ///
    /// # Errors
    /// See [`Answer::ok`].
    pub async fn create(&self, collection: &str, manager: &str, object: &Value) -> Result<Value> {
        let path = format!("{collection}?fieldManager={manager}");
        self.send("POST", &path, "application/json", serde_json::to_vec(object)?).await?.ok()
    }

    /// Patches an object.
    ///
    /// # Errors
    /// There is no answer; a refusal is an answer.
    pub async fn patch(&self, path: &str, kind: Patch, manager: &str, body: &Value) -> Result<Answer> {
        let media_type = match kind {
            Patch::Apply => "application/apply-patch+yaml",
            Patch::Merge => "application/merge-patch+json",
            Patch::Json => "application/json-patch+json",
        };
        let path = format!("{path}?fieldManager={manager}");
        self.send("PATCH", &path, media_type, serde_json::to_vec(body)?).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// See [`Answer::ok`].
    pub async fn delete(&self, path: &str) -> Result<Value> {
        self.send("DELETE", path, "application/json", Vec::new()).await?.ok()
    }

    /// Applies a CRD by server-side apply, forced, and waits until each of its versions is served.
    ///
    /// # Errors
    /// It is refused, or not served within [`GUARD`].
    pub async fn apply_crd(&self, crd: &Value) -> Result<Value> {
        let name = crd["metadata"]["name"].as_str().context("the CRD's name")?;
        let path = format!("{CRDS}/{name}");
        let target = format!("{path}?fieldManager=author&force=true");
        let applied = self
            .send("PATCH", &target, "application/apply-patch+yaml", serde_json::to_vec(crd)?)
            .await?
            .ok()?;
        let (group, plural) = (&crd["spec"]["group"], &crd["spec"]["names"]["plural"]);
        let (group, plural) = (group.as_str().context("a group")?, plural.as_str().context("a plural")?);
        let versions = crd["spec"]["versions"].as_array().context("versions")?;
        // Each version: one that is new is served later than those that were there before.
        for version in versions.iter().filter(|version| version["served"] == true) {
            let version = version["name"].as_str().context("a version's name")?;
            let objects = format!("/apis/{group}/{version}/{plural}?limit=1");
            eventually(GUARD, &format!("{name} is served at {version}"), async || {
                // Objects that cannot be converted to a version are no reason to wait for it.
                let answer = self.send("GET", &objects, "application/json", Vec::new()).await?;
                Ok(matches!(answer.code, 200 | 500).then_some(()))
            })
            .await?;
        }
        Ok(applied)
    }

    /// The condition of a CRD; none if it is not there.
    ///
    /// # Errors
    /// The CRD cannot be read.
    pub async fn condition(&self, crd: &str, condition: &str) -> Result<Option<Condition>> {
        let crd = self.get(&format!("{CRDS}/{crd}")).await?;
        let generation = crd["metadata"]["generation"].as_i64();
        let all = crd["status"]["conditions"].as_array().into_iter().flatten();
        let mut found = all.filter(|other| other["type"] == condition).map(|other| {
            let mut condition: Condition = serde_json::from_value(other.clone())?;
            condition.current =
                condition.observed_generation.is_none_or(|observed| Some(observed) == generation);
            Ok(condition)
        });
        found.next_back().transpose()
    }

    /// Waits until `DefaultsPersisted` of a CRD has this reason, for the CRD's present generation.
    ///
    /// # Errors
    /// It does not come within `limit`; the error names the last condition.
    pub async fn persisted(&self, crd: &str, reason: &str, limit: Duration) -> Result<Condition> {
        let mut last = None;
        let found = eventually(limit, &format!("{crd} DefaultsPersisted/{reason}"), async || {
            last = self.condition(crd, "DefaultsPersisted").await?;
            let Some(condition) =
                last.clone().filter(|condition| condition.current && condition.reason == reason)
            else {
                return Ok(None);
            };
            let is_known_to_be_current =
                condition.observed_generation.is_some() || self.is_reported(crd).await?;
            Ok(is_known_to_be_current.then_some(condition))
        })
        .await;
        found.with_context(|| format!("the condition was {last:?}"))
    }

    /// Whether the report on a CRD is about its present generation: what servers before 1.35 do not keep in
    /// conditions.
    async fn is_reported(&self, crd: &str) -> Result<bool> {
        let generation = self.get(&format!("{CRDS}/{crd}")).await?["metadata"]["generation"].clone();
        let report = self.get(&format!("/apis/etch-operator.io/v1alpha1/defaultsreports/{crd}")).await?;
        Ok(report["status"]["generation"] == generation && report["status"]["finished"].is_string())
    }

    /// What etcd holds of a custom resource.
    ///
    /// # Errors
    /// It is not there, or etcd does not answer.
    pub async fn raw(&self, group: &str, plural: &str, namespace: Option<&str>, name: &str) -> Result<Value> {
        let raw = self.etcd.raw_object(group, plural, namespace, name).await?;
        raw.with_context(|| format!("etcd has no {plural}.{group} {name}"))
    }

    /// The etcd behind the API server.
    pub fn etcd(&self) -> &EtcdRaw {
        &self.etcd
    }
}

/// Where CRDs are.
pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A condition of a CRD.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// A sentence; empty where the server was given none.
    #[serde(default)]
    pub message: String,
    /// The generation that was judged, where the server keeps it.
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    pub last_transition_time: String,
    /// Whether it is about the CRD's present generation, as far as that is known.
    #[serde(skip)]
    pub current: bool,
}

/// The text of a warning, which is in quotes behind its code and its agent.
fn warning(header: &http::HeaderValue) -> Option<String> {
    let quoted = header.to_str().ok()?.split_once('"')?.1.strip_suffix('"')?;
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        text.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    Some(text)
}

impl Answer {
    /// The body of a success.
    ///
    /// # Errors
    /// The answer is a refusal; the error holds it.
    pub fn ok(self) -> Result<Value> {
        if (200..300).contains(&self.code) {
            return Ok(self.body);
        }
        bail!("the API server answered {}: {}", self.code, self.body["message"].as_str().unwrap_or_default())
    }
}

/// The least that anything is waited for: a guard against hanging, since no test knows how fast its machine
/// is.
pub const GUARD: Duration = Duration::from_secs(60);

/// The waits before it is asked again.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LAST_WAIT: Duration = Duration::from_millis(100);

/// Asks again and again until there is an answer.
///
/// # Errors
/// There is none within `limit`, or within [`GUARD`] where that is longer; the error names what was waited
/// for.
pub async fn eventually<T>(
    limit: Duration,
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let limit = limit.max(GUARD);
    let begun = Instant::now();
    let mut wait = FIRST_WAIT;
    loop {
        let error = match ask().await {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        if begun.elapsed() > limit {
            let error = error.unwrap_or_else(|| anyhow::anyhow!("not yet"));
            return Err(error.context(format!("waited {} s for: {what}", limit.as_secs())));
        }
        tokio::time::sleep(wait).await;
        wait = LAST_WAIT.min(2 * wait);
    }
}

/// The YAML documents of a file.
///
/// # Errors
/// The file cannot be read, or is not YAML.
pub fn documents(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse_documents(&text).with_context(|| path.display().to_string())
}

/// The YAML documents of a text.
///
/// # Errors
/// It is not YAML.
pub fn parse_documents(text: &str) -> Result<Vec<Value>> {
    let mut documents = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(text) {
        let value = Value::deserialize(document)?;
        if !value.is_null() {
            documents.push(value);
        }
    }
    Ok(documents)
}

/// The plural of a kind, as [`crd`] names it.
pub fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

/// The schema of objects whose spec has these fields.
pub fn with_spec(fields: impl Serialize) -> Value {
    json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": fields } } })
}

/// A CRD of one group with these versions: `(name, storage, openAPIV3Schema)`.
pub fn crd(group: &str, kind: &str, versions: &[(&str, bool, Value)]) -> Value {
    let (singular, plural) = (kind.to_lowercase(), plural(kind));
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, storage, schema)| {
            json!({
                "name": name, "served": true, "storage": storage,
                "schema": { "openAPIV3Schema": schema },
                "subresources": { "status": {} },
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": singular },
            "versions": versions,
        },
    })
}
