//! All objects of a resource, page by page, the next page on its way while one is parsed and processed.
//! It must not hold more than one page parsed and one as it came.

use std::time::Duration;

use super::{Backoff, CallError, Cluster, Form, Page, PrefetchedPage, RawPage, Scope};
use etch_core::crd::Resource;

/// How often a page is asked for that the server is not ready to give.
const ATTEMPTS: u32 = 5;

/// A list under way; its request ends with it.
pub struct Scan {
    cluster: Cluster,
    resource: Resource,
    scope: Scope,
    under_way: Option<PrefetchedPage>,
}

impl Scan {
    /// Begins to read the objects of a resource that are in a scope.
    pub fn new(cluster: Cluster, resource: Resource, scope: Scope) -> Self {
        let mut scan = Self { cluster, resource, scope, under_way: None };
        scan.ask(None);
        scan
    }

    /// The next page; none after the last, or after an error.
    ///
    /// # Errors
    /// See [`CallError`]. What passes by itself is waited for: for some seconds after a change of a CRD its
    /// objects may not be listed (fact A1).
    pub async fn next(&mut self) -> Result<Option<Page>, CallError> {
        let Some(asked) = self.under_way.as_mut() else { return Ok(None) };
        let page = asked.page().await;
        self.under_way = None;
        let page = page?;
        if let Some(token) = &page.next {
            self.ask(Some(token.clone()));
        }
        page.parse().map(Some)
    }

    fn ask(&mut self, after: Option<String>) {
        let (cluster, resource, scope) = (self.cluster.clone(), self.resource.clone(), self.scope.clone());
        let reading = async move { read_page(&cluster, &resource, &scope, after.as_deref()).await };
        self.under_way = Some(PrefetchedPage::read_by(reading));
    }
}

async fn read_page(
    cluster: &Cluster,
    resource: &Resource,
    scope: &Scope,
    after: Option<&str>,
) -> Result<RawPage, CallError> {
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match cluster.raw_page(resource, scope, Form::Whole, after).await {
            Err(error) if left > 0 && passes(&error) => {
                tokio::time::sleep(backoff.failed(error.retry_after())).await;
            }
            page => return page,
        }
    }
}

fn passes(error: &CallError) -> bool {
    match error {
        CallError::Refused(refusal) => {
            matches!(refusal.code, 429 | 503 | 504) && !refusal.is_failed_conversion()
        }
        CallError::TimedOut(..) | CallError::BrokenOff(..) => true,
        // Nobody is there: that does not change while somebody waits at a terminal.
        _ => false,
    }
}
