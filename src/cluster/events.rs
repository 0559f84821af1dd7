//! Events about CRDs and objects, through `events.k8s.io/v1`. It neither blocks its callers nor retries: what
//! cannot be sent soon is dropped, since conditions and reports have the same content.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{CallError, Cluster};
use etch_core::event::Event;
use etch_core::request::event::{count, created, instance_of, name_of, patched};

/// How many events wait at most; the others are dropped.
const WAITING: usize = 1024;
/// The least time between two events, from the moment on that more come than that.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// How long one may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How many events are remembered, to raise their counts instead of publishing them again.
const REMEMBERED: usize = 4096;

/// Where events are published.
#[derive(Clone, Debug)]
pub struct Events(mpsc::Sender<Event>);

/// Sends the events that are published, one by one.
pub struct Dispatch {
    cluster: Cluster,
    instance: String,
    queued: mpsc::Receiver<Event>,
    /// How often each event was published, by its name.
    counts: HashMap<String, u64>,
    failing: bool,
}

impl Events {
    /// Where to publish events, and what sends them for as long as it runs. `instance` distinguishes this
    /// process from its replicas.
    pub fn new(cluster: Cluster, instance: &str) -> (Self, Dispatch) {
        let (sender, queued) = mpsc::channel(WAITING);
        let instance = instance_of(instance);
        (Self(sender), Dispatch { cluster, instance, queued, counts: HashMap::new(), failing: false })
    }

    /// Queues an event. If too many wait already, it is dropped.
    pub fn publish(&self, event: Event) {
        if self.0.try_send(event).is_err() {
            debug!("dropped an event");
        }
    }
}

impl Dispatch {
    /// Runs until nothing can be published any more.
    pub async fn run(mut self) {
        while let Some(event) = self.queued.recv().await {
            let sent = tokio::time::timeout(SEND_TIMEOUT, self.send(&event)).await;
            let sent = sent.unwrap_or_else(|_| Err(self.cluster.timed_out(SEND_TIMEOUT)));
            let asked = sent.as_ref().err().and_then(CallError::retry_after);
            match sent {
                Ok(()) => self.failing = false,
                Err(error) if self.failing => debug!(%error, "cannot send an event"),
                Err(error) => {
                    warn!(%error, "cannot send events; conditions and reports show the same");
                    self.failing = true;
                }
            }
            tokio::time::sleep(MIN_INTERVAL.max(asked.unwrap_or_default())).await;
        }
    }

    /// Creates the event, or raises its count if it exists already: its name contains a hash of its content.
    async fn send(&mut self, event: &Event) -> Result<(), CallError> {
        let name = name_of(event);
        let namespace = event.regarding.namespace.as_deref().unwrap_or("default");
        let now = format!("{:.6}", Timestamp::now());
        let known = self.counts.get(&name).copied().unwrap_or_default();
        let sent = match known {
            0 => self.cluster.call(created(event, &name, namespace, &self.instance, &now)).await,
            _ => self.count_up(namespace, &name, known + 1, &now).await,
        };
        let published = match sent {
            Ok(_) => known + 1,
            // A process before this one has published it.
            Err(error) if known == 0 && error.code() == Some(409) => {
                let published = self.count_of(namespace, &name).await? + 1;
                self.count_up(namespace, &name, published, &now).await?;
                published
            }
            // The API server keeps events for about an hour.
            Err(error) if known > 0 && error.code() == Some(404) => {
                self.counts.remove(&name);
                return Box::pin(self.send(event)).await;
            }
            Err(error) => return Err(error),
        };
        if self.counts.len() >= REMEMBERED {
            self.counts.clear();
        }
        self.counts.insert(name, published);
        Ok(())
    }

    /// How often an event was published. A patch of nothing reads it: no other verb is needed for that.
    async fn count_of(&self, namespace: &str, name: &str) -> Result<u64, CallError> {
        let read = patched(namespace, name, &json!({}));
        self.cluster.call_for_json(read).await.map(|event| count(&event))
    }

    async fn count_up(
        &self,
        namespace: &str,
        name: &str,
        count: u64,
        now: &str,
    ) -> Result<Vec<u8>, CallError> {
        let body = json!({ "series": { "count": count, "lastObservedTime": now } });
        self.cluster.call(patched(namespace, name, &body)).await
    }
}
