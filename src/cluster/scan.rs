//! All objects of a resource, page by page, the next page on its way while one is parsed and processed.
//! It holds one page parsed, and one as it came.

use std::time::Duration;

use futures::stream::{self, Stream};

use super::page::{Page, RawPage};
use super::{Backoff, CallError, Cluster, Form, PrefetchedPage, Scope};
use etch_core::crd::Resource;

/// How often a page is asked for that the server is not ready to give.
const ATTEMPTS: u32 = 5;

/// The objects of a resource that are in a scope, page by page. The first page is asked for at once, and a
/// request ends with the stream.
///
/// It waits for errors that pass by themselves: for some seconds after a change of a CRD its objects may not
/// be listed (fact A1).
pub(super) fn scan(
    cluster: Cluster,
    resource: Resource,
    scope: Scope,
) -> impl Stream<Item = Result<Page, CallError>> + Send {
    let ask = move |after: Option<String>| {
        let (cluster, resource, scope) = (cluster.clone(), resource.clone(), scope.clone());
        let reading = async move { read_page(&cluster, &resource, &scope, after.as_deref()).await };
        PrefetchedPage::read_by(reading)
    };
    stream::try_unfold((Some(ask(None)), ask), async |(under_way, ask)| {
        let Some(mut asked) = under_way else { return Ok(None) };
        let page = asked.page().await?;
        let next = page.next.clone().map(|token| ask(Some(token)));
        Ok(Some((page.parse()?, (next, ask))))
    })
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
            Err(error) if left > 0 && passes(&error, after.is_some()) => {
                tokio::time::sleep(backoff.failed(error.retry_after())).await;
            }
            page => return page,
        }
    }
}

/// Whether an error passes by itself. A server that cannot be reached before the first page has come does not
/// come back while a user waits at a terminal; behind a page it is one that restarts.
fn passes(error: &CallError, has_answered: bool) -> bool {
    match error {
        CallError::Refused(refusal) => {
            matches!(refusal.code, 429 | 503 | 504) && !refusal.is_failed_conversion()
        }
        CallError::TimedOut(..) | CallError::BrokenOff(..) => true,
        CallError::Connection(..) => has_answered,
        _ => false,
    }
}
