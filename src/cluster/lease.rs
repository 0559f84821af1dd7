//! Leadership by a Lease, with client-go's times: who holds it may write. It must not trust another machine's
//! clock: a lease runs out when no change of it was observed for its duration.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use super::call::{get, if_there, send};
use super::{CallError, Cluster};
use kube_structural_schema::json::Json;

/// How long others wait after the last renewal they saw.
const DURATION: Duration = Duration::from_secs(15);
/// How long the holder goes on without a renewal; shorter than [`DURATION`], so that it has stopped before
/// others begin.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often the lease is renewed, or tried.
const PERIOD: Duration = Duration::from_secs(2);
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A claim to one Lease.
pub struct Lease {
    cluster: Cluster,
    path: String,
    namespace: String,
    name: String,
    identity: String,
    seen: Option<Seen>,
    /// When the request began by which it became ours.
    taken: Instant,
    /// The times of renewals, of which the lease that is held has one: the last that was answered, and those
    /// after it.
    renewals: Vec<String>,
    /// Changes when it has another.
    set_back: watch::Sender<()>,
}

/// The lease as of its last observed change.
struct Seen {
    resource_version: String,
    /// How long it is to be respected from then on.
    duration: Duration,
    at: Instant,
}

impl Lease {
    /// A claim to the Lease `name`, under an identity that no other process has.
    pub fn new(cluster: Cluster, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            cluster,
            path: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            seen: None,
            taken: Instant::now(),
            renewals: Vec::new(),
            set_back: watch::Sender::default(),
        }
    }

    /// Changes when the lease, while it is held, is not as it was written last: etcd may have been restored
    /// to an earlier state.
    pub fn set_back(&self) -> watch::Receiver<()> {
        self.set_back.subscribe()
    }

    /// Waits until the lease is ours. `known` is called whenever it is known whose it is.
    pub async fn acquire(&mut self, known: impl Fn()) {
        loop {
            // Others may have renewed it since.
            self.renewals.clear();
            self.taken = Instant::now();
            let taken = timeout(PATIENCE, self.take()).await;
            if let Ok(Ok(_)) = taken {
                known();
            }
            match taken {
                Ok(Ok(true)) => {
                    info!(identity = self.identity, "acquired the lease; leading");
                    return;
                }
                Ok(Ok(false)) => {}
                Ok(Err(error)) => warn!(%error, "cannot acquire the lease"),
                Err(_) => warn!("cannot acquire the lease: no answer"),
            }
            tokio::time::sleep(self.until_run_out().map_or(PERIOD, |left| left.min(PERIOD))).await;
        }
    }

    /// How long the lease of another lasts, if it is not renewed; none where it is not known, or has run out.
    fn until_run_out(&self) -> Option<Duration> {
        let seen = self.seen.as_ref()?;
        seen.duration.checked_sub(seen.at.elapsed()).filter(|left| !left.is_zero())
    }

    /// Renews the lease for as long as that succeeds in time. When this returns, nothing more may be written.
    pub async fn hold(&mut self) {
        let mut renewed = self.taken;
        loop {
            tokio::time::sleep(PERIOD).await;
            let began = Instant::now();
            let left = (renewed + DEADLINE).saturating_duration_since(began);
            match timeout(PATIENCE.min(left), self.take()).await {
                Ok(Ok(true)) => renewed = began,
                Ok(Ok(false)) => {
                    warn!("lost the lease: another replica holds it");
                    return;
                }
                Ok(Err(error)) => debug!(%error, "cannot renew the lease"),
                Err(_) => debug!("cannot renew the lease: no answer"),
            }
            if renewed.elapsed() >= DEADLINE {
                warn!("could not renew the lease in time");
                return;
            }
        }
    }

    /// Gives the lease up if it is ours, so that another need not wait for it to run out.
    pub async fn release(&mut self) {
        let given_up = async {
            let lease = self.read().await?;
            let Some(lease) = lease.filter(|lease| lease["spec"]["holderIdentity"] == self.identity.as_str())
            else {
                return Ok(false);
            };
            self.write(&lease, "", 1, micro_time()).await.map(|()| true)
        };
        match timeout(PATIENCE, given_up).await {
            Ok(Ok(true)) => info!("released the lease"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => warn!(%error, "cannot release the lease"),
            Err(_) => warn!("cannot release the lease: no answer"),
        }
    }

    /// Takes or renews the lease, if it is ours, free, or run out.
    async fn take(&mut self) -> Result<bool, CallError> {
        let lease = self.read().await?;
        let renewed = lease.as_ref().and_then(|lease| lease["spec"]["renewTime"].as_str());
        if !self.renewals.is_empty() && !self.renewals.iter().any(|renewal| Some(renewal.as_str()) == renewed)
        {
            info!("the lease differs from our last renewal: etcd may have been restored");
            self.set_back.send_replace(());
        }
        let Some(lease) = lease else {
            return self.create().await;
        };
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let resource_version = lease["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let known = self.seen.take().filter(|seen| seen.resource_version == resource_version);
        self.seen = Some(known.unwrap_or_else(|| Seen {
            resource_version: resource_version.to_owned(),
            duration: lease["spec"]["leaseDurationSeconds"].as_u64().map_or(DURATION, Duration::from_secs),
            at: Instant::now(),
        }));
        let run_out = self.until_run_out().is_none();
        if !holder.is_empty() && holder != self.identity && !run_out {
            return Ok(false);
        }
        let now = self.renewal();
        match self.write(&lease, &self.identity, DURATION.as_secs(), now).await {
            Ok(()) => {
                self.renewed();
                Ok(true)
            }
            // Whoever changed it while we held it need not have taken it: the next read shows that.
            Err(error) if error.code() == Some(409) && holder != self.identity => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The time of a renewal that begins now.
    fn renewal(&mut self) -> String {
        let now = micro_time();
        self.renewals.push(now.clone());
        now
    }

    /// The last renewal was answered.
    fn renewed(&mut self) {
        self.renewals.drain(..self.renewals.len().saturating_sub(1));
    }

    async fn read(&self) -> Result<Option<Json>, CallError> {
        let body = if_there(self.cluster.call(get(&format!("{}/{}", self.path, self.name))).await)?;
        body.map(|body| Json::parse(&body).map_err(CallError::malformed)).transpose()
    }

    async fn create(&mut self) -> Result<bool, CallError> {
        let now = self.renewal();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.name, "namespace": self.namespace },
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": DURATION.as_secs(),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        });
        match self.cluster.call(send(Method::POST, &self.path, Json::from(lease).to_vec())).await {
            Ok(_) => {
                self.renewed();
                Ok(true)
            }
            Err(error) if error.code() == Some(409) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces the lease that was read, unless it has changed since.
    async fn write(&self, lease: &Json, holder: &str, seconds: u64, now: String) -> Result<(), CallError> {
        let mut lease = lease.clone();
        let changes_hands = lease["spec"]["holderIdentity"] != holder;
        let transitions = lease["spec"]["leaseTransitions"].as_u64().unwrap_or_default();
        let spec = &mut lease["spec"];
        spec["holderIdentity"] = Value::from(holder);
        spec["leaseDurationSeconds"] = Value::from(seconds);
        spec["renewTime"] = Value::from(now.clone());
        if changes_hands && !holder.is_empty() {
            spec["acquireTime"] = Value::from(now);
            spec["leaseTransitions"] = Value::from(transitions + 1);
        }
        let path = format!("{}/{}", self.path, self.name);
        self.cluster.call(send(Method::PUT, &path, lease.to_vec())).await.map(drop)
    }
}

/// The time of day as a `MicroTime`.
fn micro_time() -> String {
    format!("{:.6}", Timestamp::now())
}
