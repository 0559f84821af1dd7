//! What happens to the objects of a scope: one watch of all objects, or one of each of its namespaces.
//! A namespace in which much happens does not keep another one waiting.

use futures::FutureExt;
use futures::future::select_all;

use super::{CallError, Cluster, ResumingWatch, Scope, WatchUpdate};
use etch_core::crd::{Crd, Resource};

/// What happens to the objects of a scope.
pub struct ScopedWatch {
    /// At least one.
    watches: Vec<ResumingWatch>,
    /// Which of them is asked first.
    turn: usize,
}

impl ScopedWatch {
    /// Follows the objects of `resource` in a scope, from a resource version on.
    pub fn new(cluster: &Cluster, resource: &Resource, scope: &Scope, from: &str) -> Self {
        let watch = |namespace: Option<&str>| {
            let watch = ResumingWatch::new(cluster.clone(), resource.clone(), from.to_owned());
            watch.within(namespace.map(str::to_owned))
        };
        Self { watches: scope.lists().into_iter().map(watch).collect(), turn: 0 }
    }

    /// The same for the objects of a CRD, as long as no other server takes over its group and version.
    #[must_use]
    pub fn served_by(self, crd: &Crd) -> Self {
        let watches = self.watches.into_iter().map(|watch| watch.served_by(crd));
        Self { watches: watches.collect(), ..self }
    }

    /// The resource version up to which everything was delivered, of each namespace; `None` if it is not a
    /// number.
    pub fn delivered(&self) -> Option<u64> {
        let delivered: Option<Vec<u64>> = self.watches.iter().map(ResumingWatch::delivered).collect();
        delivered?.into_iter().min()
    }

    /// The same of each watch, with its namespace; of one of which it is not a number, this.
    pub fn each_delivered(&self, otherwise: u64) -> Vec<(Option<String>, u64)> {
        let delivered = |watch: &ResumingWatch| {
            (watch.namespace().map(str::to_owned), watch.delivered().unwrap_or(otherwise))
        };
        self.watches.iter().map(delivered).collect()
    }

    /// Whether the last watch of a namespace failed, and none has worked since.
    pub fn fails(&self) -> bool {
        self.watches.iter().any(ResumingWatch::fails)
    }

    /// Continues from a resource version up to which nothing more has happened.
    pub fn resume_from(&mut self, resource_version: &str) {
        self.watches.iter_mut().for_each(|watch| watch.resume_from(resource_version.to_owned()));
    }

    /// Holds no room for objects that others wait for, until the next update is asked for.
    pub fn rest(&mut self) {
        self.watches.iter_mut().for_each(ResumingWatch::rest);
    }

    /// The next update. This future may be dropped at any time: nothing is lost by it, nor asked for twice.
    /// Where [`Self::fails`] after it, it does not show that the watches of other namespaces work.
    ///
    /// # Errors
    /// Only where the resource version is too old for one of the watches: everything has to be listed again.
    pub async fn next(&mut self) -> Result<WatchUpdate, CallError> {
        if let [only] = &mut self.watches[..] {
            return only.next().await;
        }
        self.turn = (self.turn + 1) % self.watches.len().max(1);
        let (last, first) = self.watches.split_at_mut(self.turn);
        let all = first.iter_mut().chain(last).map(|watch| watch.next().boxed());
        select_all(all).await.0
    }
}
