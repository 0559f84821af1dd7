//! Writing the statuses of policies.

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::cluster::{Cluster, random};
use etch_core::api::DefaultsPolicy;
use etch_core::engine::policy_writes::{PolicyWrites, ROUND};
use etch_core::policy_index::PolicyStatus;

/// Writes policy statuses, forever.
pub(crate) async fn write_statuses(cluster: Cluster, mut wanted: watch::Receiver<Vec<PolicyStatus>>) {
    let mut writes = PolicyWrites::default();
    loop {
        let statuses = wanted.borrow_and_update().clone();
        writes.retain(&statuses);
        let mut later: Option<std::time::Instant> = None;
        for wanted in &statuses {
            let PolicyStatus { name, uid, status } = wanted;
            let again_at = match writes.waits(wanted, now()) {
                Some(again_at) => Some(again_at),
                None => match cluster.set_status::<DefaultsPolicy>(name, uid, status).await {
                    // If it is still wanted then, another client has replaced it.
                    Ok(()) => Some(writes.written(wanted, now())),
                    // One that is gone is not wanted any more as soon as its watch reports it.
                    Err(error) if error.code() == Some(404) => {
                        debug!(policy = name, "the policy is gone");
                        None
                    }
                    Err(error) => {
                        warn!(policy = name, %error, "cannot write the status of a policy");
                        Some(writes.failed(name, error.retry_after(), now(), random()))
                    }
                },
            };
            later = later.into_iter().chain(again_at).min();
        }
        tokio::time::sleep(ROUND).await;
        let later = later.map(Instant::from_std);
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() {
                return;
            },
            () = tokio::time::sleep_until(later.unwrap_or_else(Instant::now)), if later.is_some() => {}
        }
    }
}

/// A moment as the writes take it in.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}
