//! Which operator leads, for a process that does not lead itself: it watches whether the Lease is renewed.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{CallError, Cluster};
use etch_core::engine::leader::{Leader, LeaderSearch, Look};
use etch_core::request::get;
use etch_core::request::path::encoded;

/// How often Etch looks whether a Lease was renewed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Cluster {
    /// The operator that holds a Lease of this name, in any namespace; `None` if no such Lease is renewed for
    /// as long as it lasts.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn leader(&self, name: &str) -> Result<Option<Leader>, CallError> {
        let path = format!(
            "/apis/coordination.k8s.io/v1/leases?fieldSelector={}",
            encoded(&format!("metadata.name={name}"))
        );
        let began = Instant::now();
        let mut search = LeaderSearch::default();
        loop {
            let answer = self.call_for_json(get(&path)).await?;
            match search.look(&answer).map_err(CallError::malformed)? {
                Look::Renewed(leader) => return Ok(Some(leader)),
                Look::Held(longest) if began.elapsed() <= longest => sleep(LOOK_AGAIN).await,
                Look::Held(_) | Look::Free => return Ok(None),
            }
        }
    }
}
