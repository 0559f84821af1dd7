//! A list and the watches that go on from it, healed for as long as somebody listens.
//! It must not keep objects.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Backoff, CallError, Cluster, Follow, News};
use crate::domain::crd::Resource;
use crate::domain::object::Object;

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
        tokio::select! {
            () = listener.closed() => {},
            Err(Gone) = self.feed(&listener) => {},
        }
    }

    async fn feed(&mut self, listener: &mpsc::Sender<FeedEvent>) -> Result<Infallible, Gone> {
        loop {
            let error = match self.list(listener).await? {
                Ok(resource_version) => {
                    self.backoff.works();
                    self.watch(resource_version, listener).await?
                }
                Err(error) => error,
            };
            let wait = self.backoff.failed(error.retry_after());
            tell(listener, FeedEvent::Failed(error, wait)).await?;
            tokio::time::sleep(wait).await;
        }
    }

    /// Lists everything; the resource version that a watch goes on from.
    async fn list(&self, listener: &mpsc::Sender<FeedEvent>) -> Result<Result<String, CallError>, Gone> {
        tell(listener, FeedEvent::Listing).await?;
        let (mut first, mut after) = (None, None);
        loop {
            let page = match self.cluster.page(&self.resource, after.as_deref()).await {
                Ok(page) => page,
                Err(error) => return Ok(Err(error)),
            };
            for object in page.objects {
                tell(listener, FeedEvent::Applied(object)).await?;
            }
            let resource_version = first.get_or_insert(page.resource_version);
            after = page.next;
            if after.is_none() {
                tell(listener, FeedEvent::Listed).await?;
                return Ok(Ok(std::mem::take(resource_version)));
            }
        }
    }

    /// Watches until only a new list can help.
    async fn watch(&self, from: String, listener: &mpsc::Sender<FeedEvent>) -> Result<CallError, Gone> {
        let mut follow = Follow::new(self.cluster.clone(), self.resource.clone(), from);
        loop {
            let event = match follow.next().await {
                Ok(News::Created(object) | News::Applied(object)) => FeedEvent::Applied(object),
                Ok(News::Deleted(object)) => FeedEvent::Deleted(object),
                Ok(News::Failed(error, wait)) => FeedEvent::Failed(error, wait),
                Ok(News::Resumed) => continue,
                Err(error) => return Ok(error),
            };
            tell(listener, event).await?;
        }
    }
}

/// The listener is gone.
struct Gone;

async fn tell(listener: &mpsc::Sender<FeedEvent>, event: FeedEvent) -> Result<(), Gone> {
    listener.send(event).await.map_err(|_| Gone)
}
