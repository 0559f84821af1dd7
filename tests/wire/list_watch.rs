//! A list and the watches that go on from it, by the pages and watches of the product, as a sequence that
//! tests read.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::mpsc;

use etch::cluster::{Backoff, Cluster, ResumingWatch, WatchUpdate};
use etch_core::call_error::CallError;
use etch_core::crd::Resource;
use etch_core::object::Object;

/// The state of all objects of a resource, as a sequence.
#[derive(Debug)]
pub(crate) enum ListWatchEvent {
    /// A list begins: what is not named until `Listed` is gone.
    Listing,
    /// An object as it is now.
    Applied(Object),
    /// An object that is gone.
    Deleted(Object),
    /// The list is complete.
    Listed,
    /// An attempt failed; it goes on by itself.
    Failed(CallError),
}

/// Sends a listener the objects of one resource.
pub(crate) struct ListWatch {
    cluster: Cluster,
    resource: Resource,
    backoff: Backoff,
}

impl ListWatch {
    /// Lists and watches all objects of `resource`.
    pub(crate) fn new(cluster: Cluster, resource: Resource) -> Self {
        let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
        Self { cluster, resource, backoff }
    }

    /// Runs until the listener is gone.
    pub(crate) async fn run(mut self, listener: mpsc::Sender<ListWatchEvent>) {
        tokio::select! {
            () = listener.closed() => {},
            Err(Gone) = self.list_and_watch(&listener) => {},
        }
    }

    async fn list_and_watch(&mut self, listener: &mpsc::Sender<ListWatchEvent>) -> Result<Infallible, Gone> {
        loop {
            let error = match self.list(listener).await? {
                Ok(resource_version) => {
                    self.backoff.works();
                    self.watch(resource_version, listener).await?
                }
                Err(error) => error,
            };
            let wait = self.backoff.failed(error.retry_after());
            send(listener, ListWatchEvent::Failed(error)).await?;
            tokio::time::sleep(wait).await;
        }
    }

    /// Lists everything; the resource version that a watch goes on from.
    async fn list(&self, listener: &mpsc::Sender<ListWatchEvent>) -> Result<Result<String, CallError>, Gone> {
        send(listener, ListWatchEvent::Listing).await?;
        let (mut first, mut after) = (None, None);
        loop {
            let page = match self.cluster.page(&self.resource, after.as_deref()).await {
                Ok(page) => page,
                Err(error) => return Ok(Err(error)),
            };
            for object in page.objects {
                send(listener, ListWatchEvent::Applied(object)).await?;
            }
            let resource_version = first.get_or_insert(page.resource_version);
            after = page.next;
            if after.is_none() {
                send(listener, ListWatchEvent::Listed).await?;
                return Ok(Ok(std::mem::take(resource_version)));
            }
        }
    }

    /// Watches until only a new list can help.
    async fn watch(&self, from: String, listener: &mpsc::Sender<ListWatchEvent>) -> Result<CallError, Gone> {
        let mut watch = ResumingWatch::new(self.cluster.clone(), self.resource.clone(), from);
        loop {
            let event = match watch.next().await {
                Ok(WatchUpdate::Created(object) | WatchUpdate::Applied(object)) => {
                    ListWatchEvent::Applied(object.into_parts().0)
                }
                Ok(WatchUpdate::Deleted(object)) => ListWatchEvent::Deleted(object.into_parts().0),
                Ok(WatchUpdate::Failed(error, _)) => ListWatchEvent::Failed(error),
                Ok(WatchUpdate::Resumed) => continue,
                Err(error) => return Ok(error),
            };
            send(listener, event).await?;
        }
    }
}

/// The listener is gone.
struct Gone;

async fn send(listener: &mpsc::Sender<ListWatchEvent>, event: ListWatchEvent) -> Result<(), Gone> {
    listener.send(event).await.map_err(|_| Gone)
}
