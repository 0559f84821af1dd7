//! The control plane that all facts share, and what it answers to a plain request.
//!
//! It knows no resource: `tabs` does.

use anyhow::{Context, Result, ensure};
use e2e::control_plane::{ControlPlane, EtcdRaw, Kubernetes, Options, read_kubeconfig};
use http::{Method, Request, header::CONTENT_TYPE};
use kube::{Client, Config, client::Body};
use kube_structural_schema::json::Json;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The media types of a request's body.
pub(crate) const JSON: &str = "application/json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";

/// A control plane with an admin's client.
pub(crate) struct Cluster {
    client: Client,
    control_plane: ControlPlane,
    // Removed last.
    _dir: TempDir,
}

/// What the API server answered, whatever its code.
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// The text itself, as a string, if it is no JSON.
    pub(crate) body: Json,
}

impl Cluster {
    pub(crate) async fn start() -> Result<Self> {
        Self::with_flags(&[]).await
    }

    /// One whose API server has these flags.
    pub(crate) async fn with_flags(flags: &[&str]) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let apiserver_flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let options = Options { apiserver_flags, ..Options::new(dir.path()) };
        let control_plane = ControlPlane::start(options).await?;
        let client = client(control_plane.config(0).await?)?;
        Ok(Self { client, control_plane, _dir: dir })
    }

    /// Whether the server is of the release `X.Y` or a later one.
    pub(crate) fn since(&self, release: &str) -> Result<bool> {
        Ok(*self.control_plane.kubernetes() >= Kubernetes::supported_release(release)?)
    }

    pub(crate) fn etcd(&self) -> &EtcdRaw {
        self.control_plane.etcd()
    }

    pub(crate) fn admin(&self) -> &Client {
        &self.client
    }

    /// A client of a new service account of this name that may do `verbs` with everything in `group`.
    pub(crate) async fn service_account(&self, name: &str, group: &str, verbs: &[&str]) -> Result<Client> {
        let account = "/api/v1/namespaces/default/serviceaccounts";
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({"metadata": {"name": name},
                          "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": verbs}]});
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
        });
        self.post(account, &json!({"metadata": {"name": name}})).await?.ok()?;
        self.post(&format!("{rbac}/clusterroles"), &role).await?.ok()?;
        self.post(&format!("{rbac}/clusterrolebindings"), &binding).await?.ok()?;
        let kubeconfig = self.control_plane.service_account_kubeconfig(0, "default", name).await?;
        client(read_kubeconfig(&kubeconfig).await?)
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Answer> {
        send(&self.client, Method::GET, path, JSON, Vec::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        send(&self.client, Method::POST, path, JSON, body.to_string()).await
    }

    pub(crate) async fn patch(&self, media_type: &str, path: &str, body: &Value) -> Result<Answer> {
        send(&self.client, Method::PATCH, path, media_type, body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Answer> {
        send(&self.client, Method::DELETE, path, JSON, Vec::new()).await
    }
}

/// A client that does not retry: what is answered is the fact, 429 included.
fn client(mut config: Config) -> Result<Client> {
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Sends one request and takes any answer; an error only if there is none.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    media_type: &str,
    body: impl Into<Vec<u8>>,
) -> Result<Answer> {
    let what = format!("{method} {path}");
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, media_type);
    let response = client.send(request.body(Body::from(body.into()))?).await.with_context(|| what.clone())?;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.with_context(|| what)?;
    let text = || Json::from(Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Ok(Answer { code, body: Json::parse(&bytes).unwrap_or_else(|_| text()) })
}

impl Answer {
    /// The body of a success.
    pub(crate) fn ok(self) -> Result<Json> {
        let Self { code, body } = self;
        ensure!(code < 300, "answered {code}: {}", String::from_utf8_lossy(&body.to_vec()));
        Ok(body)
    }

    /// Fails unless this is a `Status` with `code`, `reason` (empty: none) and a message that contains
    /// `message`.
    pub(crate) fn refused(&self, code: u16, reason: &str, message: &str) -> Result<()> {
        let shown = String::from_utf8_lossy(&self.body.to_vec()).into_owned();
        ensure!(self.code == code, "answered {} instead of {code}: {shown}", self.code);
        ensure!(self.body["reason"].as_str().unwrap_or_default() == reason, "not {reason:?}: {shown}");
        let found = self.body["message"].as_str().unwrap_or_default();
        ensure!(found.contains(message), "does not say {message:?}: {shown}");
        Ok(())
    }

    /// The `field` of each cause, as a validation error lists them.
    pub(crate) fn fields(&self) -> Vec<&str> {
        let causes = self.body["details"]["causes"].as_array();
        causes.into_iter().flatten().filter_map(|cause| cause["field"].as_str()).collect()
    }
}
