//! Calls the judge of updates and deletions of CRDs.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::time::Instant;

use etch_admission::admission_review::upgrade::CrdRequest;
use etch_core::upgrade::GuardDecision;

type Judge = dyn Fn(CrdRequest, Instant) -> BoxFuture<'static, GuardDecision> + Send + Sync;

/// The judge of requests about CRDs; none by default, and then all of them pass.
#[derive(Clone, Default)]
pub struct Upgrades(Option<Arc<Judge>>);

impl Upgrades {
    /// Asks this, with the moment at which the answer has to be there.
    pub fn new(
        judge: impl Fn(CrdRequest, Instant) -> BoxFuture<'static, GuardDecision> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(judge)))
    }

    pub(super) async fn judge(&self, request: Option<CrdRequest>, until: Instant) -> GuardDecision {
        match (&self.0, request) {
            (Some(judge), Some(request)) => judge(request, until).await,
            _ => GuardDecision::default(),
        }
    }
}
