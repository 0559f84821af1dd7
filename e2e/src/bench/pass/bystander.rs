//! Another client of the same API server, with rights and flow control like any other: how long it waits for
//! its answers.

use anyhow::{Context, Result};
use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::bench::steady::times;
use crate::cluster::{Cluster, GUARD, eventually};
use crate::control_plane::{ControlPlane, read_kubeconfig};
use crate::scene::apply_all;

/// How many requests begin in a second: reads and writes in turn.
const PER_SECOND: u32 = 50;
const ACCOUNT: &str = "bystander";
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
/// How many objects it reads and writes in turn: each is written once in twenty seconds. Writes of one object
/// that overlap make each other begin again, and a server that is slow for a moment would never catch up with
/// them.
const OBJECTS: u64 = 500;

/// A client that asks at a steady rate.
pub(super) struct Bystander {
    end: oneshot::Sender<()>,
    asking: JoinHandle<Result<Vec<f64>>>,
}

/// Creates the client's account, and the objects that it reads and writes; its configuration.
pub(super) async fn account(cluster: &Cluster, control_plane: &ControlPlane) -> Result<Config> {
    let rbac = "rbac.authorization.k8s.io";
    apply_all(
        cluster,
        &[
            json!({ "apiVersion": "v1", "kind": "ServiceAccount",
                    "metadata": { "name": ACCOUNT, "namespace": "default" } }),
            json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role",
                    "metadata": { "name": ACCOUNT, "namespace": "default" },
                    "rules": [{ "apiGroups": [""], "resources": ["configmaps"],
                                "verbs": ["get", "create", "patch"] }] }),
            json!({ "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
                    "metadata": { "name": ACCOUNT, "namespace": "default" },
                    "roleRef": { "apiGroup": rbac, "kind": "Role", "name": ACCOUNT },
                    "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default" }] }),
        ],
    )
    .await?;
    let kubeconfig = control_plane.service_account_kubeconfig(0, "default", ACCOUNT).await?;
    let mut config = read_kubeconfig(&kubeconfig).await?;
    config.default_retry = false;
    let client = Client::try_from(config.clone())?;
    // The authorizer learns of the role with a delay.
    eventually(GUARD, "the bystander may write", async || {
        Ok(ask(client.clone(), 1).await.is_ok().then_some(()))
    })
    .await?;
    for object in 0..OBJECTS {
        ask(client.clone(), 2 * object + 1).await?;
    }
    Ok(config)
}

impl Bystander {
    /// Begins to ask.
    pub(super) fn start(config: Config) -> Result<Self> {
        let client = Client::try_from(config)?;
        let (end, ended) = oneshot::channel();
        Ok(Self {
            end,
            asking: tokio::spawn(times(PER_SECOND, ended, move |number| ask(client.clone(), number))),
        })
    }

    /// How long each answer took from when its request was due, in milliseconds, the shortest first.
    pub(super) async fn stop(self) -> Result<Vec<f64>> {
        let _ = self.end.send(());
        self.asking.await?
    }
}

/// Reads an object where the number is even, and writes it where it is odd.
async fn ask(client: Client, number: u64) -> Result<()> {
    let name = format!("{ACCOUNT}-{}", number / 2 % OBJECTS);
    let path = format!("{COLLECTION}/{name}");
    let request = if number.is_multiple_of(2) {
        Request::get(path).body(Body::empty())?
    } else {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
                             "data": { "number": number.to_string() } });
        Request::patch(format!("{path}?fieldManager={ACCOUNT}&force=true"))
            .header("content-type", "application/apply-patch+yaml")
            .body(Body::from(serde_json::to_vec(&object)?))?
    };
    let response = client.send(request).await.context("the bystander got no answer")?;
    let status = response.status();
    anyhow::ensure!(status.is_success(), "the bystander was answered {status}");
    response.into_body().collect_bytes().await?;
    Ok(())
}
