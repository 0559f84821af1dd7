//! Watches that follow each other: what happens to a resource from a version on, until only a new list can
//! help. It neither lists nor keeps objects.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::{Backoff, CallError, Change, Cluster, Received, Watch};
use etch_core::crd::{Crd, Resource};
use etch_core::served_elsewhere::ServedVersions;

/// A watch that ends sooner than this was closed at once (fact K2), whatever it delivered until then.
const AT_ONCE: Duration = Duration::from_secs(1);
/// After a failure, a watch that stays open this long works again, even without an event.
const STEADY: Duration = Duration::from_secs(10);

/// What happens to the objects of one resource.
pub struct ResumingWatch {
    cluster: Cluster,
    resource: Resource,
    /// None for all objects.
    namespace: Option<String>,
    /// For objects of a CRD: before each watch, Etch checks that the API server itself serves them.
    served: Option<ServedVersions>,
    /// The resource version up to which everything was delivered.
    from: String,
    backoff: Backoff,
    state: State,
    /// Whether the last watch failed, and none has worked since.
    fails: bool,
}

/// What the watch brings.
#[derive(Debug)]
pub enum WatchUpdate {
    /// An object was created.
    Created(Received),
    /// An object was changed.
    Applied(Received),
    /// An object was deleted; its last state.
    Deleted(Received),
    /// A watch failed. Another follows by itself after this wait.
    Failed(CallError, Duration),
    /// After a failure, a watch works again, and nothing has happened in between. Any other item implies
    /// that.
    Resumed,
}

enum State {
    Closed { until: Instant },
    Opening(BoxFuture<'static, Result<Watch, CallError>>),
    Open { watch: Watch, since: Instant },
}

impl ResumingWatch {
    /// See [`Watch::rest`].
    pub fn rest(&mut self) {
        if let State::Open { watch, .. } = &mut self.state {
            watch.rest();
        }
    }

    /// Follows the objects of `resource` from a resource version on.
    pub fn new(cluster: Cluster, resource: Resource, from: String) -> Self {
        Self {
            cluster,
            resource,
            namespace: None,
            served: None,
            from,
            backoff: Backoff::new(Duration::from_millis(500), Duration::from_secs(30)),
            state: State::Closed { until: Instant::now() },
            fails: false,
        }
    }

    /// The same for the objects of one namespace.
    #[must_use]
    pub fn within(self, namespace: Option<String>) -> Self {
        Self { namespace, ..self }
    }

    /// The same for the objects of a CRD, as long as no other server takes over its group and version.
    #[must_use]
    pub fn served_by(self, crd: &Crd) -> Self {
        Self { served: Some(crd.into()), ..self }
    }

    /// The resource version up to which everything was delivered; `None` if it is not a number.
    pub fn delivered(&self) -> Option<u64> {
        self.from.parse().ok()
    }

    /// The namespace whose objects it follows; `None` if all.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Whether the last watch failed, and none has worked since.
    pub fn fails(&self) -> bool {
        self.fails
    }

    /// Continues from a resource version up to which nothing more has happened.
    pub fn resume_from(&mut self, resource_version: String) {
        // The wait after the failure stays: a server may continue to refuse.
        self.from = resource_version;
        self.fails = false;
    }

    /// The next update. This future may be dropped at any time: nothing is lost by it, nor asked for twice.
    ///
    /// # Errors
    /// Only where the resource version is too old: everything has to be listed again.
    pub async fn next(&mut self) -> Result<WatchUpdate, CallError> {
        loop {
            let ended = match &mut self.state {
                State::Closed { until } => {
                    tokio::time::sleep_until(*until).await;
                    self.state = State::Opening(self.open());
                    continue;
                }
                State::Opening(opening) => match opening.await {
                    Ok(watch) => {
                        self.backoff.works();
                        self.state = State::Open { watch, since: Instant::now() };
                        continue;
                    }
                    Err(error) => error,
                },
                State::Open { watch, since } => {
                    match next(watch, self.fails.then(|| *since + STEADY)).await {
                        None => {
                            self.fails = false;
                            return Ok(WatchUpdate::Resumed);
                        }
                        Some(Ok(Some(change))) => {
                            change.resource_version().clone_into(&mut self.from);
                            let failed = std::mem::take(&mut self.fails);
                            return Ok(match change {
                                Change::Created(object) => WatchUpdate::Created(object),
                                Change::Applied(object) => WatchUpdate::Applied(object),
                                Change::Deleted(object) => WatchUpdate::Deleted(object),
                                Change::Bookmark(_) if failed => WatchUpdate::Resumed,
                                Change::Bookmark(_) => continue,
                            });
                        }
                        Some(Ok(None)) if since.elapsed() >= AT_ONCE => {
                            self.state = State::Opening(self.open());
                            continue;
                        }
                        Some(Ok(None)) => CallError::ClosedAtOnce,
                        Some(Err(error)) => error,
                    }
                }
            };
            return self.failed(ended);
        }
    }

    fn failed(&mut self, error: CallError) -> Result<WatchUpdate, CallError> {
        let wait = self.backoff.failed(error.retry_after());
        self.fails = true;
        self.state = State::Closed { until: Instant::now() + wait };
        if error.is_expired() { Err(error) } else { Ok(WatchUpdate::Failed(error, wait)) }
    }

    fn open(&self) -> BoxFuture<'static, Result<Watch, CallError>> {
        let (cluster, resource, from) = (self.cluster.clone(), self.resource.clone(), self.from.clone());
        let (served, namespace) = (self.served.clone(), self.namespace.clone());
        Box::pin(async move {
            if let Some(served) = served {
                cluster.check_server(&served).await?;
            }
            cluster.watch_in(&resource, namespace.as_deref(), &from).await
        })
    }
}

/// The next change; `None` if there is none until then.
async fn next(watch: &mut Watch, until: Option<Instant>) -> Option<Result<Option<Change>, CallError>> {
    match until {
        Some(until) => tokio::time::timeout_at(until, watch.next()).await.ok(),
        None => Some(watch.next().await),
    }
}
