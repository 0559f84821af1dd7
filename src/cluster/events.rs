//! Events about CRDs and objects, through `events.k8s.io/v1`. It neither blocks its callers nor retries: what
//! cannot be sent soon is dropped, since conditions and reports have the same content.

use std::collections::HashMap;
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{CallError, Cluster};
use etch_core::event::Event;
use etch_core::plan::PatchKind;
use etch_core::request::path::encoded;
use etch_core::request::{patch, send};
use kube_structural_schema::json::Json;

/// The reporting controller: a name that no other controller has.
const CONTROLLER: &str = "etch-operator.io/etch";
/// Notes are cut at this many bytes: the server takes no more.
const LONGEST_NOTE: usize = 1024;
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

/// What is read of an event.
#[derive(Deserialize)]
struct StoredEvent {
    series: Option<Series>,
}

#[derive(Deserialize)]
struct Series {
    count: u64,
}

impl Events {
    /// Where to publish events, and what sends them for as long as it runs. `instance` distinguishes this
    /// process from its replicas.
    pub fn new(cluster: Cluster, instance: &str) -> (Self, Dispatch) {
        let (sender, queued) = mpsc::channel(WAITING);
        let instance = cut(instance, 128);
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
        let collection = format!("/apis/events.k8s.io/v1/namespaces/{}/events", encoded(namespace));
        let now = format!("{:.6}", Timestamp::now());
        let count = self.counts.get(&name).copied().unwrap_or_default();
        let created = match count {
            0 => {
                let body = body_of(event, &name, namespace, &self.instance, &now);
                self.cluster.call(send(Method::POST, &collection, Json::from(body).to_vec())).await
            }
            _ => self.count_up(&collection, &name, count + 1, &now).await,
        };
        let count = match created {
            Ok(_) => count + 1,
            // A process before this one has published it.
            Err(error) if count == 0 && error.code() == Some(409) => {
                let count = self.count_of(&collection, &name).await? + 1;
                self.count_up(&collection, &name, count, &now).await?;
                count
            }
            // The API server keeps events for about an hour.
            Err(error) if count > 0 && error.code() == Some(404) => {
                self.counts.remove(&name);
                return Box::pin(self.send(event)).await;
            }
            Err(error) => return Err(error),
        };
        if self.counts.len() >= REMEMBERED {
            self.counts.clear();
        }
        self.counts.insert(name, count);
        Ok(())
    }

    /// How often an event was published. A patch of nothing reads it: no other verb is needed for that.
    async fn count_of(&self, collection: &str, name: &str) -> Result<u64, CallError> {
        let path = format!("{collection}/{}", encoded(name));
        let event: StoredEvent =
            self.cluster.call_for(patch(&path, PatchKind::Merge, b"{}".to_vec())).await?;
        Ok(event.series.map_or(1, |series| series.count))
    }

    async fn count_up(
        &self,
        collection: &str,
        name: &str,
        count: u64,
        now: &str,
    ) -> Result<Vec<u8>, CallError> {
        let body = json!({ "series": { "count": count, "lastObservedTime": now } });
        let path = format!("{collection}/{}", encoded(name));
        self.cluster.call(patch(&path, PatchKind::Merge, Json::from(body).to_vec())).await
    }
}

/// `NAME.HASH`, the same for the same event whichever process publishes it.
fn name_of(event: &Event) -> String {
    let Event { regarding, warning, reason, action, note } = event;
    let mut hash = Sha256::new();
    for part in [regarding.uid.as_str(), &regarding.api_version, reason, action, note] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update([u8::from(*warning)]);
    let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{}.{hash}", cut(&regarding.name, 200).trim_end_matches(['.', '-']))
}

fn body_of(event: &Event, name: &str, namespace: &str, instance: &str, now: &str) -> Value {
    let Event { regarding, warning, reason, action, note } = event;
    let mut object = json!({
        "apiVersion": regarding.api_version,
        "kind": regarding.kind,
        "name": regarding.name,
        "uid": regarding.uid,
    });
    if let Some(namespace) = &regarding.namespace {
        object["namespace"] = Value::from(namespace.as_str());
    }
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "type": if *warning { "Warning" } else { "Normal" },
        "reason": reason,
        "action": action,
        "note": cut(note, LONGEST_NOTE),
        "regarding": object,
        "eventTime": now,
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
    })
}

/// As much of a text as fits.
fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use etch_core::event::Regarding;

    fn event(name: &str, note: &str) -> Event {
        Event {
            regarding: Regarding {
                api_version: "example.com/v1".to_owned(),
                kind: "Thing".to_owned(),
                namespace: Some("ns".to_owned()),
                name: name.to_owned(),
                uid: "u".to_owned(),
            },
            warning: true,
            reason: "Admission".to_owned(),
            action: "PersistDefaults",
            note: note.to_owned(),
        }
    }

    #[test]
    fn a_name_is_the_same_for_the_same_event_and_fits() {
        assert_eq!(name_of(&event("a", "x")), name_of(&event("a", "x")));
        assert_ne!(name_of(&event("a", "x")), name_of(&event("a", "y")));
        assert_ne!(name_of(&event("a", "x")), name_of(&Event { warning: false, ..event("a", "x") }));
        let long = name_of(&event(&format!("{}.{}", "a".repeat(199), "b".repeat(53)), "x"));
        assert!(long.len() <= 253 && !long.contains(".."), "{long}");
    }

    #[test]
    fn a_note_is_cut_where_a_character_ends() {
        let body = body_of(&event("a", &"ü".repeat(600)), "n", "ns", "i", "now");
        assert_eq!(body["note"].as_str().map(str::len), Some(1024));
        let body = body_of(&event("a", &format!("x{}", "ü".repeat(600))), "n", "ns", "i", "now");
        assert_eq!(body["note"].as_str().map(str::len), Some(1023));
    }
}
