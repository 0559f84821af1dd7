//! Everything that talks to an API server: requests with a deadline, watches that retry, writes with a
//! classified outcome. It is the only folder that names `kube::Client`.

mod access_review;
mod admission;
mod api_services;
mod backoff;
mod call;
mod cause;
mod connect;
mod crds;
mod credential_renewal;
mod credentials;
pub mod etcd;
mod etch_resources;
mod events;
mod generation_check;
mod kubeconfig;
mod leader;
mod lease;
mod migrations;
mod multiplex;
mod namespaced_pages;
mod object_budget;
mod object_source;
mod openapi;
mod outage;
mod pace;
mod page;
mod page_budget;
mod past_events;
mod perform;
mod permission_watch;
mod prefetched_page;
mod proxy;
mod read;
mod resolve;
mod resume_check;
mod resuming_watch;
mod retries;
mod scan;
mod scoped_watch;
mod secret;
mod stored_versions;
mod token_file;
mod version;
mod watch;
mod watch_health;
mod watcher;
mod witnesses;

use std::sync::Arc;

use tokio::sync::{Mutex, Notify, Semaphore, watch as watch_channel};
use tokio::time::Instant;

use access_review::{NamespacesInUse, Permitted};
use object_budget::ObjectBudget;
use outage::OutageThrottle;
use page_budget::PageBudget;

use crate::metrics::Metrics;
use etch_core::call_error::{CallError, Server};
use etch_core::engine::sweep::Form;
use etch_core::pace::limits::PaceMode;
use etch_core::scope::Scope;

pub use admission::WebhookConfiguration;
pub use backoff::{Backoff, random};
pub use connect::{ConnectError, Target};
pub use events::{Dispatch, Events};
pub use generation_check::{Dropped, GenerationCheck};
pub use lease::Lease;
pub use object_budget::{Held, ObjectRoom, Received};
pub use object_source::{ObjectPage, ObjectPages, ObjectSource, ReadError, Shown};
pub use openapi::PublishedError;
pub use pace::{MAX_IN_FLIGHT, Pace, Permit};
pub use page_budget::PAGE_SIZE;
pub use permission_watch::Permissions;
pub use prefetched_page::PrefetchedPage;
pub use resuming_watch::{ResumingWatch, WatchUpdate};
pub use scoped_watch::ScopedWatch;
pub use secret::SecretData;
pub use watch::{Change, Watch};
pub use watch_health::WatchHealth;
pub use watcher::CrdMeta;
pub use witnesses::Witnesses;

/// Pages of lists that are read at once, and CRDs.
const PAGES: usize = 8;
const CRDS: usize = 1;

/// A connection to one API server; cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    server: Server,
    metrics: Arc<Metrics>,
    /// When objects were last listed or anything was patched, by any clone of this.
    worked: watch_channel::Sender<Instant>,
    /// Notified when Etch asks what it may do.
    asked: Arc<Notify>,
    /// The permissions that it has recently granted.
    permitted: Arc<Mutex<Permitted>>,
    /// The namespaces to whose objects its permissions are limited.
    permitted_in: Arc<NamespacesInUse>,
    /// How large pages are asked for.
    page_budget: Arc<PageBudget>,
    /// How much of objects is held.
    object_budget: Arc<ObjectBudget>,
    turns: Arc<Turns>,
    outage: Arc<OutageThrottle>,
    /// Whether reads are sent again that the server puts off or that are lost.
    is_retrying: bool,
    /// Changes when CRDs, policies and what admission needs must be listed again.
    relists: watch_channel::Sender<()>,
}

/// How many large answers are read at once; each may be of some MiB.
struct Turns {
    pages: Semaphore,
    crds: Semaphore,
}

impl Cluster {
    /// A connection through an existing client, which must not retry by itself (fact K4).
    pub fn new(client: kube::Client, metrics: Arc<Metrics>) -> Self {
        let (server, worked) = (Server::default(), watch_channel::Sender::new(Instant::now()));
        let turns = Arc::new(Turns { pages: Semaphore::new(PAGES), crds: Semaphore::new(CRDS) });
        let (page_budget, object_budget, permitted) = (Arc::default(), Arc::default(), Arc::default());
        let outage = Arc::new(OutageThrottle::new());
        Self {
            client,
            server,
            metrics,
            worked,
            asked: Arc::default(),
            permitted,
            permitted_in: Arc::default(),
            page_budget,
            object_budget,
            turns,
            outage,
            is_retrying: false,
            relists: watch_channel::Sender::default(),
        }
    }

    /// This connection, with its requests counted beside those of another.
    #[must_use]
    pub fn counted_in(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// This connection, with pages as large as suits a pace of writes.
    #[must_use]
    pub fn paced(self, pace: PaceMode) -> Self {
        Self { page_budget: Arc::new(PageBudget::beside(pace)), ..self }
    }

    /// Forgets a CRD that is gone.
    pub fn forget(&self, crd: &str) {
        self.metrics.forget(crd);
        self.page_budget.forget(crd);
    }

    /// Where requests are counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }
}
