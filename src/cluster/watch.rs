//! One watch: from a resource version until the server, the network or silence ends it.
//! It must not start another; the caller decides when and how to go on.
//!
//! Not kube-runtime's watcher: that one parses with a depth limit (C7), never relists after an HTTP 410 (K3), and starts
//! over at once when a watch is closed at once (K2).

use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt, TryStreamExt};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::{encoded, get};
use super::call_error::cause;
use super::read::{collection, object, own};
use super::{CallError, Cluster, Server};
use crate::domain::crd::Resource;
use crate::domain::object::Object;
use crate::domain::refusal::Refusal;

/// How long the server is asked to keep the watch open, and how long it may be silent beyond that.
const LIFETIME: Duration = Duration::from_secs(290);
const GRACE: Duration = Duration::from_secs(15);

/// What a watch delivers.
#[derive(Debug)]
pub enum Change {
    /// An object was created.
    Created(Object),
    /// An object was changed.
    Applied(Object),
    /// An object was deleted; its last state.
    Deleted(Object),
    /// Nothing happened up to this resource version.
    Bookmark(String),
}

/// An open watch.
pub struct Watch {
    lines: Box<dyn AsyncBufRead + Send + Unpin>,
    line: Vec<u8>,
    server: Server,
}

#[derive(Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl Cluster {
    /// Opens a watch on all objects of a resource, for what happens after `resource_version`.
    ///
    /// # Errors
    /// See [`CallError`]; [`CallError::is_expired`] asks for a new list.
    pub async fn watch(&self, resource: &Resource, resource_version: &str) -> Result<Watch, CallError> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
            collection(resource, None),
            LIFETIME.as_secs(),
            encoded(resource_version),
        );
        let response = self.open(get(&path)).await.map_err(|error| own(resource, error))?;
        let body = response.into_body().into_data_stream().map_err(std::io::Error::other);
        let server = self.server.clone();
        Ok(Watch { lines: Box::new(body.into_async_read()), line: Vec::new(), server })
    }
}

impl Watch {
    /// The next change; none when the server has ended the watch in good order.
    ///
    /// # Errors
    /// See [`CallError`]; the watch is over then.
    pub async fn next(&mut self) -> Result<Option<Change>, CallError> {
        let silence = LIFETIME + GRACE;
        // A line that was begun when this future was dropped stays in the buffer, and is gone on with.
        let read = self.lines.read_until(b'\n', &mut self.line);
        let count = tokio::time::timeout(silence, read)
            .await
            .map_err(|_| CallError::TimedOut(self.server.clone(), silence))?
            .map_err(|error| CallError::BrokenOff(self.server.clone(), cause(&error)))?;
        if count == 0 {
            return Ok(None);
        }
        let change = Change::parse(&self.line);
        self.line.clear();
        change.map(Some)
    }
}

impl Change {
    /// Reads a line of a watch: a `WatchEvent` of `meta.k8s.io/v1`.
    ///
    /// # Errors
    /// It is none, or one of type `ERROR`; see [`CallError`].
    pub fn parse(line: &[u8]) -> Result<Self, CallError> {
        let event: Event<'_> = serde_json::from_slice(line).map_err(CallError::malformed)?;
        if event.r#type == "ERROR" {
            let refusal = Refusal::read(0, None, event.object.get().as_bytes());
            return Err(CallError::Refused(Box::new(refusal)));
        }
        let object = object(event.object)?;
        if object.resource_version().is_empty() {
            // To go on from nowhere would be to begin anywhere.
            return Err(CallError::malformed(serde::de::Error::missing_field("resourceVersion")));
        }
        Ok(match event.r#type {
            "BOOKMARK" => Self::Bookmark(object.resource_version().to_owned()),
            "DELETED" => Self::Deleted(object),
            "ADDED" => Self::Created(object),
            _ => Self::Applied(object),
        })
    }

    /// The resource version that a watch goes on from after this.
    pub fn resource_version(&self) -> &str {
        match self {
            Self::Created(object) | Self::Applied(object) | Self::Deleted(object) => {
                object.resource_version()
            }
            Self::Bookmark(resource_version) => resource_version,
        }
    }
}
