//! Writing the statuses of policies.
//! It must not decide what they contain.

use std::time::Duration;

use tokio::sync::watch;
use tracing::{debug, warn};

use crate::api::DefaultsPolicyStatus;
use crate::cluster::{Backoff, Cluster};

/// The least time between two rounds, whoever else writes there.
const ROUND: Duration = Duration::from_secs(2);

/// A status that a policy should have, and has not.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) struct PolicyStatus {
    pub(in crate::controller) name: String,
    pub(in crate::controller) uid: String,
    pub(in crate::controller) status: DefaultsPolicyStatus,
}

/// Writes whatever is wanted, for ever.
pub(in crate::controller) async fn write_statuses(
    cluster: Cluster,
    mut wanted: watch::Receiver<Vec<PolicyStatus>>,
) {
    let mut backoff = Backoff::new(ROUND, Duration::from_secs(300));
    loop {
        let statuses = wanted.borrow_and_update().clone();
        let mut failed = None;
        for PolicyStatus { name, uid, status } in &statuses {
            match cluster.set_policy_status(name, uid, status).await {
                Ok(()) => {}
                Err(error) if matches!(error.code(), Some(404 | 409)) => debug!(policy = name, "it is gone"),
                Err(error) => failed = Some((name, error)),
            }
        }
        if let Some((policy, error)) = failed {
            warn!(policy, %error, "the status of a policy cannot be written");
            tokio::time::sleep(backoff.failed(error.retry_after())).await;
            continue;
        }
        backoff.succeeded();
        tokio::time::sleep(ROUND).await;
        if wanted.changed().await.is_err() {
            return;
        }
    }
}
