//! A page of a list that is requested while the pages before it are processed.
//! It never waits for the task that requested it.

use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::page::RawPage;
use super::{CallError, Cluster, Form, Scope};
use etch_core::crd::Resource;

/// A page that is on its way; its request ends with it.
#[derive(Debug)]
pub struct PrefetchedPage(JoinHandle<Result<RawPage, CallError>>);

impl PrefetchedPage {
    /// Begins what reads the page.
    pub(super) fn read_by(
        reading: impl Future<Output = Result<RawPage, CallError>> + Send + 'static,
    ) -> Self {
        Self(tokio::spawn(reading.in_current_span()))
    }

    /// Waits for the page; not to be called again once it has come. This future may be dropped at any time.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn page(&mut self) -> Result<RawPage, CallError> {
        let page = (&mut self.0).await;
        // The task is never cancelled, so it fails only by a panic, which is resumed here.
        page.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}

impl Drop for PrefetchedPage {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Cluster {
    /// Asks for a page, as [`Self::raw_page`] does, without waiting for it.
    pub fn prefetch(
        &self,
        resource: &Resource,
        scope: &Scope,
        form: Form,
        after: Option<&str>,
    ) -> PrefetchedPage {
        let (cluster, resource, scope) = (self.clone(), resource.clone(), scope.clone());
        let after = after.map(str::to_owned);
        PrefetchedPage::read_by(
            async move { cluster.raw_page(&resource, &scope, form, after.as_deref()).await },
        )
    }

    /// Whether a page may be asked for while another one is held: pages that a list needs to continue come
    /// first.
    pub fn can_prefetch(&self) -> bool {
        self.page_budget.is_half_free()
    }
}
