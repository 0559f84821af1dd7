//! A list and the watches that go on from it, healed for as long as somebody listens.
//! It must not keep objects.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Backoff, CallError, Change, Cluster};
use crate::domain::crd::Resource;
use crate::domain::object::Object;

/// A watch that ends sooner than this without a word was closed at once (fact K2).
const AT_ONCE: Duration = Duration::from_secs(1);

/// The state of all objects of a resource, as a sequence.
#[derive(Debug)]
pub enum FeedEvent {
    /// A list begins: what is not named until `Listed` is gone.
    Listing,
    /// An object as it is now.
    Applied(Object),
    /// An object that is gone.
    Deleted(Object),
    /// The list is complete.
    Listed,
    /// An attempt failed; the feed goes on by itself after this wait.
    Failed(CallError, Duration),
}

/// Feeds a listener with the objects of one resource.
pub struct Feed {
    cluster: Cluster,
    resource: Resource,
    backoff: Backoff,
}

impl Feed {
    /// A feed of all objects of `resource`.
    pub fn new(cluster: Cluster, resource: Resource) -> Self {
        let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
        Self { cluster, resource, backoff }
    }

    /// Runs until the listener is gone.
    pub async fn run(mut self, listener: mpsc::Sender<FeedEvent>) {
        while !listener.is_closed() {
            self.backoff.begin();
            let error = match self.list(&listener).await {
                Ok(Some(resource_version)) => match self.watch(resource_version, &listener).await {
                    Some(error) => error,
                    None => return,
                },
                Ok(None) => return,
                Err(error) => error,
            };
            let wait = self.backoff.failed(error.retry_after());
            if listener.send(FeedEvent::Failed(error, wait)).await.is_err() {
                return;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Lists everything; none if the listener is gone.
    async fn list(&self, listener: &mpsc::Sender<FeedEvent>) -> Result<Option<String>, CallError> {
        let mut after = None;
        if listener.send(FeedEvent::Listing).await.is_err() {
            return Ok(None);
        }
        loop {
            let page = self.cluster.page(&self.resource, after.as_deref()).await?;
            for object in page.objects {
                if listener.send(FeedEvent::Applied(object)).await.is_err() {
                    return Ok(None);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(listener.send(FeedEvent::Listed).await.is_ok().then_some(page.resource_version));
            }
        }
    }

    /// Watches from one resource version to the next until only a new list can help; none if the listener is gone.
    async fn watch(&mut self, mut from: String, listener: &mpsc::Sender<FeedEvent>) -> Option<CallError> {
        loop {
            self.backoff.begin();
            let error = match self.one_watch(&mut from, listener).await {
                Ok(true) => continue,
                Ok(false) => return None,
                Err(error) if error.is_expired() => return Some(error),
                Err(error) => error,
            };
            let wait = self.backoff.failed(error.retry_after());
            if listener.send(FeedEvent::Failed(error, wait)).await.is_err() {
                return None;
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// One watch to its end; whether the listener is still there.
    async fn one_watch(
        &self,
        from: &mut String,
        listener: &mpsc::Sender<FeedEvent>,
    ) -> Result<bool, CallError> {
        let began = Instant::now();
        let mut watch = self.cluster.watch(&self.resource, from).await?;
        let mut silent = true;
        loop {
            let event = tokio::select! {
                () = listener.closed() => return Ok(false),
                change = watch.next() => match change? {
                    None if silent && began.elapsed() < AT_ONCE => return Err(CallError::ClosedAtOnce),
                    None => return Ok(true),
                    Some(Change::Bookmark(resource_version)) => {
                        *from = resource_version;
                        silent = false;
                        continue;
                    }
                    Some(Change::Applied(object)) => {
                        object.resource_version().clone_into(from);
                        FeedEvent::Applied(object)
                    }
                    Some(Change::Deleted(object)) => {
                        object.resource_version().clone_into(from);
                        FeedEvent::Deleted(object)
                    }
                },
            };
            silent = false;
            if listener.send(event).await.is_err() {
                return Ok(false);
            }
        }
    }
}
