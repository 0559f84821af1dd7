//! The certificates of admission where Etch makes them itself: every replica watches the Secret, and the
//! leader renews what is in it. `etch_admission::renewal` decides when.
//!
//! ```text
//! watch of the Secret ─> presented ─> server ─> authority ─> webhooks, by the leader ─> trusted ─┐
//!                    └─> read ─> decide ─> make ─> write, if the Secret is still the same   <────┘
//! ```

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::Event;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use super::issue::{Issued, presented};
use crate::cluster::{Backoff, Cluster, SecretData};
use crate::operator::options::Clock;
use crate::server::admission::Presented;
use crate::tasks::Tasks;
use etch_admission::renewal::{Lifetimes, Step, decide};
use etch_core::call_error::CallError;

/// The waits after a write that failed.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LAST_WAIT: Duration = Duration::from_secs(60);
/// How soon what was written is looked at again, if the watch has not shown it before.
const WRITTEN: Duration = Duration::from_secs(5);

/// Where certificates are, for whom, and how long they are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfManaged {
    /// The namespace of the Secret.
    pub namespace: String,
    /// Its name.
    pub secret: String,
    /// The name or the address by which API servers reach the server.
    pub host: String,
    /// How long what is made is valid.
    pub lifetimes: Lifetimes,
}

/// What API servers trust, as far as the leader has written it.
#[derive(Clone, Debug)]
pub(super) struct Trusted {
    /// The authorities in the webhooks, in PEM.
    pub(super) bundle: Vec<u8>,
    /// Since when they are there.
    pub(super) since: Instant,
}

/// The certificates in a Secret, current for as long as this lives.
pub(super) struct SelfManagedCertificates {
    presented: watch::Receiver<Option<Presented>>,
    leads: Arc<watch::Sender<bool>>,
    tasks: [JoinHandle<()>; 2],
}

/// The Secret as it was last seen.
#[derive(Clone, Default)]
enum Found {
    #[default]
    Unknown,
    Missing,
    There {
        resource_version: String,
        data: SecretData,
    },
}

impl SelfManagedCertificates {
    /// Begins to watch the Secret. If it holds no certificate to present, the first replica that sees that
    /// makes one, so that it need not wait for a leader that does not know the Secret yet; everything else is
    /// the leader's work.
    pub(super) fn start(
        cluster: Cluster,
        options: SelfManaged,
        trusted: watch::Receiver<Option<Trusted>>,
        clock: Clock,
        tasks: &Tasks,
    ) -> Self {
        let (found, seen) = watch::channel(Found::default());
        let (present, presented) = watch::channel(None);
        let leads = Arc::new(watch::Sender::new(false));
        let follow = follow(cluster.clone(), options.clone(), found, present);
        let renewer =
            CertificateRenewer { cluster, options, clock, found: seen, trusted, leads: leads.subscribe() };
        let renew = async move { match renewer.run().await {} };
        let follow = tasks.spawn("watches the Secret of the certificates", follow);
        let renew = tasks.spawn("renews the certificates", renew);
        Self { presented, leads, tasks: [follow, renew] }
    }

    /// What is to be presented, as it changes.
    pub(super) fn presented(&self) -> watch::Receiver<Option<Presented>> {
        self.presented.clone()
    }

    /// Has this replica renew what is in the Secret for as long as it is polled, which only the leader may
    /// do.
    pub(super) async fn lead(&self) -> Infallible {
        let _leads = Leads::begin(self.leads.clone());
        pending().await
    }
}

impl Drop for SelfManagedCertificates {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// That this replica leads, until this is dropped.
struct Leads(Arc<watch::Sender<bool>>);

impl Leads {
    fn begin(leads: Arc<watch::Sender<bool>>) -> Self {
        leads.send_replace(true);
        Self(leads)
    }
}

impl Drop for Leads {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

async fn follow(
    cluster: Cluster,
    options: SelfManaged,
    found: watch::Sender<Found>,
    present: watch::Sender<Option<Presented>>,
) {
    let mut events = cluster.watch_secret(&options.namespace, &options.secret).boxed();
    let mut is_there = false;
    while let Some(event) = events.next().await {
        let now = match event {
            Event::Init => {
                is_there = false;
                continue;
            }
            Event::InitApply(secret) | Event::Apply(secret) => {
                is_there = true;
                there(secret)
            }
            Event::InitDone if is_there => continue,
            Event::InitDone | Event::Delete(_) => Found::Missing,
        };
        // If the Secret is gone, the server keeps presenting the last certificate.
        if let Found::There { data, .. } = &now {
            present.send_replace(Some(presented(data)));
        }
        found.send_replace(now);
    }
}

fn there(secret: Secret) -> Found {
    let data = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
    Found::There { resource_version: secret.metadata.resource_version.unwrap_or_default(), data }
}

struct CertificateRenewer {
    cluster: Cluster,
    options: SelfManaged,
    clock: Clock,
    found: watch::Receiver<Found>,
    trusted: watch::Receiver<Option<Trusted>>,
    leads: watch::Receiver<bool>,
}

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("no certificate can be made: {0}")]
    Make(#[from] rcgen::Error),
}

impl CertificateRenewer {
    async fn run(mut self) -> Infallible {
        let mut backoff = Backoff::new(FIRST_WAIT, LAST_WAIT);
        let mut has_had_one = false;
        loop {
            self.found.mark_unchanged();
            self.trusted.mark_unchanged();
            self.leads.mark_unchanged();
            let wait = match self.renew_if_due(&mut has_had_one).await {
                Ok(wait) => {
                    backoff.succeeded();
                    wait
                }
                Err(failure) => self.failed(&failure, &mut backoff),
            };
            let Self { found, trusted, leads, .. } = &mut self;
            tokio::select! {
                () = sleep(wait) => {}
                Ok(()) = found.changed() => {}
                Ok(()) = trusted.changed() => {}
                Ok(()) = leads.changed() => {}
            }
        }
    }

    /// Takes the step that is due, if it is this replica's; returns how long to wait then.
    async fn renew_if_due(&self, has_had_one: &mut bool) -> Result<Duration, Failure> {
        let (found, now) = (self.found.borrow().clone(), self.clock.now());
        let (resource_version, data) = match found {
            Found::Unknown => return Ok(LAST_WAIT),
            Found::Missing => (None, SecretData::new()),
            Found::There { resource_version, data } => (Some(resource_version), data),
        };
        let SelfManaged { namespace, secret, host, lifetimes } = &self.options;
        let issued = Issued::read(&data, host, now);
        let trusted = self.trusted.borrow().clone();
        let trusted = trusted.filter(|trusted| issued.signer_is_in(&trusted.bundle));
        let decision = decide(&issued.held(), trusted.map(|trusted| trusted.since.elapsed()), now, lifetimes);
        *has_had_one |= !decision.is_urgent;
        let is_for_this = *self.leads.borrow() || (decision.is_urgent && !*has_had_one);
        if decision.step == Step::Nothing || !is_for_this {
            return Ok(decision.wait);
        }
        let data = issued.after(decision.step, host, lifetimes, now)?;
        match resource_version {
            None => self.cluster.create_secret(namespace, secret, &data).await?,
            Some(version) => self.cluster.write_secret(namespace, secret, &version, &data).await?,
        }
        info!(secret, namespace, made = ?decision.step, "wrote the certificates for admission");
        Ok(WRITTEN)
    }

    fn failed(&self, failure: &Failure, backoff: &mut Backoff) -> Duration {
        let SelfManaged { namespace, secret, .. } = &self.options;
        match failure {
            // Another replica was first: the watch shows what it wrote.
            Failure::Call(error) if error.code() == Some(409) => {
                debug!(secret, namespace, "another replica wrote the certificates for admission");
                backoff.failed(None)
            }
            failure => {
                let asked = match failure {
                    Failure::Call(error) => error.retry_after(),
                    Failure::Make(_) => None,
                };
                let wait = backoff.failed(asked);
                self.cluster.metrics().certificate_failures.inc();
                let retry_in_seconds = wait.as_secs_f64();
                warn!(secret, namespace, error = %failure, retry_in_seconds, "cannot write the certificates \
                    for admission");
                wait
            }
        }
    }
}
