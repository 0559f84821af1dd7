//! The Lease whose holder may write: the requests that a [claim](lease::Claim) to it takes.

use etch_core::engine::lease::{self, ATTEMPT_TIMEOUT, Claim, DURATION, Take};
use http::Method;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use super::{CallError, Cluster};
use etch_core::call_error::if_exists;
use etch_core::request::{get, send};
use kube_structural_schema::json::Json;

/// A claim to one Lease.
pub struct Lease {
    cluster: Cluster,
    path: String,
    namespace: String,
    name: String,
    claim: Claim,
    /// Changes when it has another renewal than ours.
    set_back: watch::Sender<()>,
}

impl Lease {
    /// A claim to the Lease `name`, under an identity that no other process has.
    pub fn new(cluster: Cluster, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            cluster,
            path: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            claim: Claim::new(identity, now()),
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
        self.claim.release();
        loop {
            let taken = timeout(self.claim.begin(now()), self.take()).await;
            if let Ok(Ok(_)) = taken {
                known();
            }
            match taken {
                Ok(Ok(true)) => {
                    info!(identity = self.claim.identity(), "acquired the lease; leading");
                    return;
                }
                Ok(Ok(false)) => {}
                Ok(Err(error)) => warn!(%error, "cannot acquire the lease"),
                Err(_) => warn!("cannot acquire the lease: no answer"),
            }
            tokio::time::sleep(self.claim.wait(now())).await;
        }
    }

    /// Renews the lease for as long as that succeeds in time. When this returns, nothing more may be written.
    pub async fn hold(&mut self) {
        while self.claim.leads(now()) {
            tokio::time::sleep(self.claim.wait(now())).await;
            let patience = self.claim.begin(now());
            match timeout(patience, self.take()).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => {
                    warn!("lost the lease: another replica holds it");
                    return;
                }
                Ok(Err(error)) => debug!(%error, "cannot renew the lease"),
                Err(_) => debug!("cannot renew the lease: no answer"),
            }
        }
        warn!("could not renew the lease in time");
    }

    /// Gives the lease up if it is ours, so that another need not wait for it to run out.
    pub async fn release(&mut self) {
        let given_up = async {
            let is_ours = |lease: &Json| lease["spec"]["holderIdentity"] == self.claim.identity();
            while let Some(lease) = self.read().await?.filter(is_ours) {
                match self.write(&lease, "", 1, micro_time()).await {
                    // A renewal in flight was written in between.
                    Err(error) if error.code() == Some(409) => {}
                    written => return written.map(|()| true),
                }
            }
            Ok(false)
        };
        match timeout(ATTEMPT_TIMEOUT, given_up).await {
            Ok(Ok(true)) => info!("released the lease"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => warn!(%error, "cannot release the lease"),
            Err(_) => warn!("cannot release the lease: no answer"),
        }
    }

    /// Takes or renews the lease, if it is ours, free, or run out.
    async fn take(&mut self) -> Result<bool, CallError> {
        let document = self.read().await?;
        let lease = document.as_ref().map(|document| lease::Lease::read(document));
        if self.claim.is_set_back(lease.as_ref()) {
            info!("the lease was set back: etcd may have been restored");
            self.set_back.send_replace(());
        }
        let take = self.claim.read(lease.as_ref(), now());
        if take == Take::Respect {
            return Ok(false);
        }
        let time = micro_time();
        self.claim.renews(time.clone());
        let written = match &document {
            Some(document) => self.write(document, self.claim.identity(), DURATION.as_secs(), time).await,
            None => self.create(time).await,
        };
        match written {
            Ok(()) => {
                self.claim.renewed();
                Ok(true)
            }
            Err(error) if error.code() == Some(409) && self.claim.conflicted(take) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn read(&self) -> Result<Option<Json>, CallError> {
        if_exists(self.cluster.call_for_json(get(&format!("{}/{}", self.path, self.name))).await)
    }

    async fn create(&self, now: String) -> Result<(), CallError> {
        let lease = lease::created(&self.namespace, &self.name, self.claim.identity(), &now);
        self.cluster.call(send(Method::POST, &self.path, Json::from(lease).to_vec())).await.map(drop)
    }

    /// Replaces the lease that was read, unless it has changed since.
    async fn write(&self, lease: &Json, holder: &str, seconds: u64, now: String) -> Result<(), CallError> {
        let lease = lease::replaced(lease, holder, seconds, now);
        let path = format!("{}/{}", self.path, self.name);
        self.cluster.call(send(Method::PUT, &path, lease.to_vec())).await.map(drop)
    }
}

/// A moment as the claim takes it in.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// The time of day as a `MicroTime`.
fn micro_time() -> String {
    format!("{:.6}", Timestamp::now())
}
