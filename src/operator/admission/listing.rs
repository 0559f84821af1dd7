//! The objects of a CRD, listed within a request and evaluated as far as there is time.
//!
//! ```text
//! list, page by page ─> a thread that evaluates object by object ─> what is built of them by `until`, and how far that is
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::TryStreamExt;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::cluster::{Cluster, ObjectPage, ObjectPages, ObjectSource, ReadError};
use etch_core::call_error::unreadable;
use etch_core::crd::Resource;
use etch_core::object::Object;
use etch_core::plan::{Record, Witness};
use etch_core::scope::Scope;
use etch_core::upgrade::{Extent, Findings};

/// A list within a request.
pub(super) struct Listing {
    pub(super) cluster: Cluster,
    pub(super) resource: Resource,
    /// When the answer has to be there.
    pub(super) until: Instant,
    /// What allows it to list; freed when no thread evaluates its objects any more.
    pub(super) place: OwnedSemaphorePermit,
}

/// The objects that have come so far, on the thread that evaluates them.
pub(super) struct Objects<B> {
    pages: mpsc::Receiver<ObjectPage>,
    page: std::vec::IntoIter<Object>,
    progress: Arc<Mutex<Progress<B>>>,
    stop: Stop,
}

/// How far a list has come.
struct Progress<B> {
    builder: B,
    /// How many objects there are, if the first page shows it.
    of: Option<Option<u64>>,
}

/// Ends an evaluation when no request waits for its answer any more.
#[derive(Clone, Default)]
struct Stop(Arc<AtomicBool>);

impl Listing {
    /// Has the objects evaluated, and makes findings of what was built by `until` at the latest. The
    /// evaluation may be busy for as long as it takes.
    pub(super) async fn evaluated<B: Send + 'static>(
        self,
        builder: B,
        evaluate: impl FnOnce(Objects<B>) + Send + 'static,
        findings: impl FnOnce(&B, &Extent) -> Findings,
    ) -> Findings {
        let Self { cluster, resource, until, place } = self;
        let name = format!("{}.{}", resource.plural, resource.group);
        let source = ObjectSource::from(cluster);
        let progress = Arc::new(Mutex::new(Progress { builder, of: None }));
        let (send, pages) = mpsc::channel(1);
        let stop = Stop::default();
        let objects =
            Objects { pages, page: Vec::new().into_iter(), progress: progress.clone(), stop: stop.clone() };
        let evaluated = spawn_blocking(move || {
            evaluate(objects);
            drop(place);
        });
        let checked = timeout_at(until, async {
            feed(source.pages(vec![resource], &Scope::All), send, &progress).await?;
            // It has failed only by a panic, which was logged.
            Ok::<_, ReadError>(evaluated.await.is_ok())
        });
        let why = match checked.await {
            Ok(Ok(true)) => None,
            Ok(Ok(false)) => Some("the check failed".to_owned()),
            Ok(Err(error)) => Some(unreadable(error.code(), &name)),
            Err(_) => Some("the time limit expired".to_owned()),
        };
        stop.0.store(true, Ordering::Relaxed);
        let progress = progress.lock();
        let extent = why.map_or(Extent::Whole, |why| Extent::Part { why, of: progress.of.flatten() });
        findings(&progress.builder, &extent)
    }
}

impl<B> Objects<B> {
    /// Evaluates each by what is on record, and by what those before it show of when objects were written.
    pub(super) fn each(mut self, mut record: Record, mut evaluate: impl FnMut(&Self, &Object, &Record)) {
        while let Some(object) = self.next() {
            Witness::of(&object).into_iter().for_each(|witness| record.clock.add_witness(witness));
            evaluate(&self, &object, &record);
        }
    }

    /// Changes what is built of the objects.
    pub(super) fn build(&self, change: impl FnOnce(&mut B)) {
        change(&mut self.progress.lock().builder);
    }
}

impl<B> Iterator for Objects<B> {
    type Item = Object;

    fn next(&mut self) -> Option<Object> {
        loop {
            if self.stop.0.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(object) = self.page.next() {
                return Some(object);
            }
            self.page = self.pages.blocking_recv()?.views().collect::<Vec<_>>().into_iter();
        }
    }
}

/// Passes the objects on, page by page.
async fn feed<B>(
    mut pages: ObjectPages<'_>,
    send: mpsc::Sender<ObjectPage>,
    progress: &Mutex<Progress<B>>,
) -> Result<(), ReadError> {
    while let Some(page) = pages.try_next().await? {
        progress.lock().of.get_or_insert(page.total);
        if send.send(page).await.is_err() {
            break;
        }
    }
    Ok(())
}
