//! Who judges updates of CRDs.
//! It must not judge: who does is given to it.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::time::Instant;

use etch_admission::admission_review::upgrade::Update;
use etch_core::upgrade::GuardDecision;

type Judge = dyn Fn(Update, Instant) -> BoxFuture<'static, GuardDecision> + Send + Sync;

/// Who judges updates; nobody by default, and then all of them pass.
#[derive(Clone, Default)]
pub struct Upgrades(Option<Arc<Judge>>);

impl Upgrades {
    /// Asks this, with the moment at which the answer has to be there.
    pub fn new(
        judge: impl Fn(Update, Instant) -> BoxFuture<'static, GuardDecision> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(judge)))
    }

    pub(super) async fn judge(&self, update: Option<Update>, until: Instant) -> GuardDecision {
        match (&self.0, update) {
            (Some(judge), Some(update)) => judge(update, until).await,
            _ => GuardDecision::default(),
        }
    }
}
