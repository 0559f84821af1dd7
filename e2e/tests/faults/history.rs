//! Everything that etcd has ever held of the CRDs and their objects, in the order in which it was written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::control_plane::EtcdRaw;
use futures::StreamExt;
use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::ByteString;
use kube::client::Body;
use kube::{Client, Config};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where the API server stores CRDs.
pub(crate) const CRDS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
/// A key of the test's own, which no API server reads.
const MARK: &str = "/registry/faults-mark";

/// One write of one key.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) key: String,
    pub(crate) revision: i64,
    /// `None` if it was deleted.
    pub(crate) value: Option<Arc<Value>>,
}

/// What etcd holds under keys, and how it came there; written down until dropped.
pub(crate) struct History {
    log: Arc<Mutex<Log>>,
    revision: watch::Receiver<i64>,
    reader: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    events: Vec<Event>,
    now: BTreeMap<String, Arc<Value>>,
    failure: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    result: Option<Watched>,
}

#[derive(Deserialize)]
struct Watched {
    #[serde(default)]
    events: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    /// Absent for a write.
    r#type: Option<String>,
    kv: KeyValue,
}

#[derive(Deserialize)]
struct KeyValue {
    key: ByteString,
    #[serde(default)]
    value: ByteString,
    mod_revision: String,
}

impl History {
    /// Reads everything from the first revision on; of objects, those of a group.
    pub(crate) async fn start(etcd: &str, group: &str) -> Result<Self> {
        let mut config = Config::new(etcd.parse()?);
        config.read_timeout = None;
        let client = Client::try_from(config)?;
        let watch = json!({ "create_request": {
            "key": ByteString(b"/registry/".to_vec()), "range_end": ByteString(b"/registry0".to_vec()),
            "start_revision": "1",
        } });
        let request = Request::post("/v3/watch").body(Body::from(serde_json::to_vec(&watch)?))?;
        let body = client.send(request).await.context("a watch of etcd")?.into_body();
        let log = Arc::new(Mutex::new(Log::default()));
        let (sender, revision) = watch::channel(0);
        let (shared, group) = (Arc::clone(&log), format!("/registry/{group}/"));
        let reader = tokio::spawn(async move {
            let failure = read(body, &shared, &group, &sender).await;
            shared.lock().failure = Some(format!("{failure:?}"));
            sender.send_modify(|_| ());
        });
        Ok(Self { log, revision, reader })
    }

    /// What a key holds.
    pub(crate) fn now(&self, key: &str) -> Option<Arc<Value>> {
        self.log.lock().now.get(key).cloned()
    }

    /// What the keys that begin so hold, by the rest of the key.
    pub(crate) fn below(&self, prefix: &str) -> BTreeMap<String, Arc<Value>> {
        let log = self.log.lock();
        let range = log.now.range(prefix.to_owned()..);
        let range = range.take_while(|(key, _)| key.starts_with(prefix));
        range.map(|(key, value)| (key[prefix.len()..].to_owned(), Arc::clone(value))).collect()
    }

    /// The writes of the keys that begin so, in order.
    pub(crate) fn of(&self, wanted: impl Fn(&str) -> bool) -> Vec<Event> {
        self.log.lock().events.iter().filter(|event| wanted(&event.key)).cloned().collect()
    }

    /// Waits until everything that has been written is here; the revision of a write after it.
    pub(crate) async fn settle(&self, etcd: &EtcdRaw) -> Result<i64> {
        etcd.put(MARK, b"").await?;
        let (_, marked) = etcd.get(MARK).await?.context("the mark")?;
        self.until(Duration::from_secs(60), "the history of etcd", || (self.last() >= marked).then_some(()))
            .await?;
        Ok(marked)
    }

    fn last(&self) -> i64 {
        *self.revision.borrow()
    }

    /// Waits until something holds of what etcd holds.
    pub(crate) async fn until<T>(
        &self,
        limit: Duration,
        what: &str,
        mut ask: impl FnMut() -> Option<T>,
    ) -> Result<T> {
        let mut revision = self.revision.clone();
        let answered = tokio::time::timeout(limit, async {
            loop {
                revision.borrow_and_update();
                if let Some(answer) = ask() {
                    return Ok(answer);
                }
                if let Some(failure) = &self.log.lock().failure {
                    bail!("the watch of etcd ended: {failure}");
                }
                // What is asked may depend on more than etcd.
                let _ = tokio::time::timeout(Duration::from_millis(250), revision.changed()).await;
            }
        });
        answered.await.with_context(|| format!("waited {} s for: {what}", limit.as_secs()))?
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Reads until the watch ends.
async fn read(body: Body, log: &Mutex<Log>, group: &str, revision: &watch::Sender<i64>) -> Result<()> {
    let mut pieces = body.into_data_stream();
    let mut rest = Vec::new();
    while let Some(piece) = pieces.next().await {
        rest.extend_from_slice(&piece?);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let after = rest.split_off(end + 1);
            let line = std::mem::replace(&mut rest, after);
            let text = || String::from_utf8_lossy(&line).into_owned();
            let parsed: Line = serde_json::from_slice(&line).with_context(text)?;
            let watched = parsed.result.with_context(text)?;
            let mut last = 0;
            for change in watched.events {
                let event = change.event(group)?;
                last = event.revision;
                let mut log = log.lock();
                if !event.key.starts_with(group) && !event.key.starts_with(CRDS) {
                    continue;
                }
                match &event.value {
                    Some(value) => drop(log.now.insert(event.key.clone(), Arc::clone(value))),
                    None => drop(log.now.remove(&event.key)),
                }
                log.events.push(event);
            }
            if last > 0 {
                revision.send_replace(last);
            }
        }
    }
    bail!("without an error")
}

impl Change {
    fn event(self, group: &str) -> Result<Event> {
        let key = String::from_utf8_lossy(&self.kv.key.0).into_owned();
        let is_wanted = key.starts_with(group) || key.starts_with(CRDS);
        let is_write = self.r#type.as_deref().is_none_or(|kind| kind == "PUT");
        ensure!(is_write || self.r#type.as_deref() == Some("DELETE"), "an event of another kind");
        let value = match is_wanted && is_write {
            true => Some(Arc::new(serde_json::from_slice(&self.kv.value.0).with_context(|| key.clone())?)),
            false => None,
        };
        Ok(Event { key, revision: self.kv.mod_revision.parse()?, value })
    }
}
