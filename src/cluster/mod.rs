//! Everything that talks to an API server: requests with a deadline, watches that heal, writes with a classified outcome.
//! It must not decide what to write; the only folder that names `kube::Client`.

mod access;
mod admission;
mod asked_page;
mod backoff;
mod call;
mod connect;
mod definitions;
pub mod etcd;
mod events;
mod failure;
mod feed;
mod follow;
mod lease;
mod multiplex;
mod openapi;
mod own;
mod pace;
mod page_room;
mod perform;
mod permissions;
mod reach;
mod read;
mod resolve;
mod scan;
mod secret;
mod watch;
mod watch_health;
mod watcher;

use std::sync::Arc;

use tokio::sync::{Mutex, Notify, Semaphore, watch as watch_channel};
use tokio::time::Instant;

use access::Permitted;
use multiplex::Clients;
use page_room::PageRoom;
use reach::Reach;

use crate::metrics::Metrics;

pub use access::MissingPermissions;
pub use admission::WebhookConfiguration;
pub use asked_page::AskedPage;
pub use backoff::Backoff;
pub use connect::{ConnectError, Target};
pub use events::{Dispatch, Event, Events, Regarding};
pub use failure::{CallError, Server};
pub use feed::{Feed, FeedEvent};
pub use follow::{Follow, News};
pub use lease::Lease;
pub use openapi::{OpenApiIndex, PublishedError};
pub use own::{crds, embedded_schemas, policies, reports};
pub use pace::{MAX_IN_FLIGHT, Pace, PaceMode, Permit, Pressure};
pub use page_room::PAGE_SIZE;
pub use permissions::Permissions;
pub use read::{Form, Page, RawPage, Scope};
pub use resolve::ResolveError;
pub use scan::Scan;
pub use secret::SecretData;
pub use watch::{Change, Watch};
pub use watch_health::WatchHealth;
pub use watcher::CrdMeta;

/// Pages of lists that are read at once, and CRDs.
const PAGES: usize = 8;
const CRDS: usize = 1;

/// A connection to one API server; cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    clients: Clients,
    server: Server,
    metrics: Arc<Metrics>,
    /// When objects were last listed or anything was patched, by any clone of this.
    worked: watch_channel::Sender<Instant>,
    /// Told when it was asked what we may do.
    asked: Arc<Notify>,
    /// What it has lately answered yes to.
    permitted: Arc<Mutex<Permitted>>,
    /// How large pages are asked for.
    page_room: Arc<PageRoom>,
    turns: Arc<Turns>,
    reach: Arc<Reach>,
}

/// How many large answers are read at once; each may be of some MiB.
struct Turns {
    pages: Semaphore,
    crds: Semaphore,
}

impl Cluster {
    /// A connection through a client that is already at hand. It must not retry by itself (fact K4).
    pub fn new(client: kube::Client, metrics: Arc<Metrics>) -> Self {
        Self::through(Clients::of(client), metrics)
    }

    fn through(clients: Clients, metrics: Arc<Metrics>) -> Self {
        let (server, worked) = (Server::default(), watch_channel::Sender::new(Instant::now()));
        let turns = Arc::new(Turns { pages: Semaphore::new(PAGES), crds: Semaphore::new(CRDS) });
        let (page_room, permitted) = (Arc::default(), Arc::default());
        let reach = Arc::new(Reach::new());
        Self { clients, server, metrics, worked, asked: Arc::default(), permitted, page_room, turns, reach }
    }

    /// This connection, with its requests counted beside those of another.
    #[must_use]
    pub fn counted_in(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Where requests are counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }
}
