//! One watch: from a resource version until the server, the network or silence ends it.
//! The caller decides when and how to continue.
//!
//! Not kube-runtime's watcher: that one parses with a depth limit (C7), never relists after an HTTP 410 (K3),
//! and starts over at once when a watch is closed at once (K2).

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{AsyncBufRead, AsyncBufReadExt, FutureExt, TryStreamExt};
use http::Request;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::de::Error;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::cause::cause;
use super::object_budget::LARGEST;
use super::page::object;
use super::{CallError, Cluster, Held, ObjectRoom, Received, Server};
use etch_core::call_error::own;
use etch_core::crd::Resource;
use etch_core::refusal::Refusal;
use etch_core::request::get;
use etch_core::request::path::{collection, encoded};

/// How long the server is asked to keep the watch open, and how long it may be silent beyond that.
const LIFETIME: Duration = Duration::from_secs(290);
const GRACE: Duration = Duration::from_secs(15);
/// How much of a line is read before there is room for an object, in bytes; and how long the rest of it may
/// take from then on, for others may wait for the room.
const BEGINNING: usize = 32 << 10;
const LINE: Duration = Duration::from_secs(60);

/// What a watch delivers.
#[derive(Debug)]
pub enum Change {
    /// An object was created.
    Created(Received),
    /// An object was changed.
    Applied(Received),
    /// An object was deleted; its last state.
    Deleted(Received),
    /// Nothing happened up to this resource version.
    Bookmark(String),
}

/// An open watch.
pub struct Watch {
    lines: Box<dyn AsyncBufRead + Send + Unpin>,
    line: Vec<u8>,
    /// When it was opened, or the last line came.
    heard: Instant,
    server: Server,
    room: ObjectRoom,
    /// The room for the line that is being read; `None` for the beginning of one.
    room_of_line: Option<LineRoom>,
    /// The wait for that room, which keeps its turn while it is not polled, until [`Watch::rest`].
    waiting: Option<BoxFuture<'static, Held>>,
    is_complete: bool,
}

/// Room for a line.
struct LineRoom {
    held: Held,
    since: Instant,
    /// For how many bytes of it.
    bytes: usize,
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
        self.watch_in(resource, None, resource_version).await
    }

    /// The same for the objects of one namespace.
    pub(super) async fn watch_in(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        resource_version: &str,
    ) -> Result<Watch, CallError> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
            collection(resource, namespace),
            LIFETIME.as_secs(),
            encoded(resource_version),
        );
        self.watch_at(resource, get(&path)).await
    }

    /// Opens a watch by a request that is made already.
    pub(super) async fn watch_at(
        &self,
        resource: &Resource,
        request: Request<Vec<u8>>,
    ) -> Result<Watch, CallError> {
        let response = self.open(request).await.map_err(|error| own(resource, error))?;
        let body = response.into_body().into_data_stream().map_err(std::io::Error::other);
        let server = self.server.clone();
        let lines = Box::new(body.into_async_read());
        let room = self.object_room(resource);
        Ok(Watch {
            lines,
            line: Vec::new(),
            heard: Instant::now(),
            server,
            room,
            room_of_line: None,
            waiting: None,
            is_complete: false,
        })
    }
}

impl Watch {
    /// The next change; `None` when the server closed the watch normally. This future may be dropped
    /// at any time; that does not extend the time after which a silent server counts as lost.
    ///
    /// # Errors
    /// See [`CallError`]; the watch is over then.
    pub async fn next(&mut self) -> Result<Option<Change>, CallError> {
        loop {
            if let Some(bytes) = self.needs_room() {
                // A task that waits must not hold room that others wait for.
                self.room_of_line = None;
                let room = self.room.clone();
                let waiting =
                    self.waiting.get_or_insert_with(|| async move { room.hold(bytes).await }.boxed());
                let held = waiting.await;
                self.waiting = None;
                self.heard = Instant::now();
                self.room_of_line = Some(LineRoom { held, since: self.heard, bytes });
            }
            if self.is_complete {
                self.is_complete = false;
                // A long line must not leave its large buffer to the short ones after it.
                let line = std::mem::take(&mut self.line);
                let mut held = self.room_of_line.take().map(|room| room.held).unwrap_or_default();
                held.shrink(line.len());
                return Change::received(&line, held).map(Some);
            }
            if self.read().await? {
                return Ok(None);
            }
        }
    }

    /// Gives back the room that it has and its turn for more, until the next change is asked for: what is
    /// under way may wait for that room.
    pub fn rest(&mut self) {
        (self.waiting, self.room_of_line) = (None, None);
    }

    /// For how many bytes room is needed before anything more may be done; `None` if there is enough.
    fn needs_room(&self) -> Option<usize> {
        let needed = match self.line.len() {
            length if self.is_complete => length,
            ..BEGINNING => 0,
            BEGINNING..LARGEST => LARGEST,
            // Then it is the only line in the buffer.
            _ => usize::MAX,
        };
        (needed > self.room_of_line.as_ref().map_or(0, |room| room.bytes)).then_some(needed)
    }

    /// Reads on in a line; whether the watch has ended.
    async fn read(&mut self) -> Result<bool, CallError> {
        let silence = LIFETIME + GRACE;
        let ended = self.heard + silence;
        let until = self.room_of_line.as_ref().map_or(ended, |room| ended.min(room.since + LINE));
        let Self { lines, line, server, .. } = self;
        let bytes = tokio::time::timeout_at(until, lines.fill_buf())
            .await
            .map_err(|_| CallError::TimedOut(server.clone(), silence))?
            .map_err(|error| CallError::BrokenOff(server.clone(), cause(&error)))?;
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let (is_over, count) = (bytes.is_empty(), end.unwrap_or(bytes.len()));
        line.extend_from_slice(&bytes[..count]);
        lines.consume_unpin(count);
        if end.is_some() {
            self.heard = Instant::now();
        }
        self.is_complete = end.is_some() || is_over && !self.line.is_empty();
        Ok(is_over && !self.is_complete)
    }
}

impl Change {
    /// Reads a line of a watch: a `WatchEvent` of `meta.k8s.io/v1`.
    ///
    /// # Errors
    /// It is none, or one of type `ERROR`; see [`CallError`].
    pub fn parse(line: &[u8]) -> Result<Self, CallError> {
        Self::received(line, Held::default())
    }

    fn received(line: &[u8], held: Held) -> Result<Self, CallError> {
        let event: Event<'_> = serde_json::from_slice(line).map_err(CallError::malformed)?;
        if event.r#type == "ERROR" {
            let refusal = Refusal::read(0, None, event.object.get().as_bytes());
            return Err(CallError::Refused(Box::new(refusal)));
        }
        let object = object(event.object)?;
        if object.resource_version().is_empty() {
            // Without a resource version the next watch could begin anywhere.
            return Err(CallError::malformed(serde_json::Error::missing_field("resourceVersion")));
        }
        if event.r#type == "BOOKMARK" {
            return Ok(Self::Bookmark(object.resource_version().to_owned()));
        }
        let received = Received::new(object, held);
        Ok(match event.r#type {
            "DELETED" => Self::Deleted(received),
            "ADDED" => Self::Created(received),
            _ => Self::Applied(received),
        })
    }

    /// The resource version that a watch continues from after this.
    pub fn resource_version(&self) -> &str {
        match self {
            Self::Created(object) | Self::Applied(object) | Self::Deleted(object) => {
                object.resource_version()
            }
            Self::Bookmark(resource_version) => resource_version,
        }
    }
}
