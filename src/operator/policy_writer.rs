//! Writing the statuses of policies.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::cluster::{Backoff, Cluster};
use etch_core::api::{DefaultsPolicy, DefaultsPolicyStatus};
use etch_core::engine::reapply_backoff::ReapplyBackoff;

/// The least time between two rounds, even if another client writes the statuses as well.
const ROUND: Duration = Duration::from_secs(2);

/// A policy status to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PolicyStatus {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) status: DefaultsPolicyStatus,
}

/// What was written to a policy last.
struct Last {
    uid: String,
    status: DefaultsPolicyStatus,
    /// Whether another client keeps writing a different status.
    reapply_backoff: ReapplyBackoff,
    /// When it may be written again.
    again_at: Instant,
}

/// Writes policy statuses, forever.
pub(crate) async fn write_statuses(cluster: Cluster, mut wanted: watch::Receiver<Vec<PolicyStatus>>) {
    let mut backoff = Backoff::new(ROUND, Duration::from_secs(300));
    let mut written: HashMap<String, Last> = HashMap::new();
    loop {
        let statuses = wanted.borrow_and_update().clone();
        let (mut failed, mut later) = (None, None);
        for wanted in &statuses {
            if let Some(again_at) = contested_until(&written, wanted) {
                later = later.into_iter().chain([again_at]).min();
                continue;
            }
            let PolicyStatus { name, uid, status } = wanted;
            match cluster.set_status::<DefaultsPolicy>(name, uid, status).await {
                // If it is still wanted then, another client has replaced it.
                Ok(()) => later = later.into_iter().chain([note(&mut written, wanted)]).min(),
                // One that is gone is not wanted any more as soon as its watch reports it.
                Err(error) if error.code() == Some(404) => debug!(policy = name, "the policy is gone"),
                Err(error) => failed = Some((name, error)),
            }
        }
        if let Some((policy, error)) = failed {
            warn!(policy, %error, "cannot write the status of a policy");
            tokio::time::sleep(backoff.failed(error.retry_after())).await;
            continue;
        }
        backoff.succeeded();
        tokio::time::sleep(ROUND).await;
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() {
                return;
            },
            () = tokio::time::sleep_until(later.unwrap_or_else(Instant::now)), if later.is_some() => {}
        }
    }
}

/// Until when a status waits that another client has replaced; `None` if it may be written now.
fn contested_until(written: &HashMap<String, Last>, wanted: &PolicyStatus) -> Option<Instant> {
    let last = written.get(&wanted.name).filter(|last| last.is_again(wanted))?;
    (last.again_at > Instant::now()).then_some(last.again_at)
}

/// Notes that a status was written; when it may be written again.
fn note(written: &mut HashMap<String, Last>, wanted: &PolicyStatus) -> Instant {
    let PolicyStatus { name, uid, status } = wanted.clone();
    let (mut reapply_backoff, now) = (ReapplyBackoff::default(), Instant::now());
    if let Some(last) = written.remove(&name).filter(|last| last.is_again(wanted)) {
        reapply_backoff = last.reapply_backoff;
        reapply_backoff.overwritten(now.into_std());
    }
    let again_at = now + reapply_backoff.wait(now.into_std());
    written.insert(name, Last { uid, status, reapply_backoff, again_at });
    again_at
}

impl Last {
    /// Whether the status that was written is wanted again: another client has changed it meanwhile.
    fn is_again(&self, wanted: &PolicyStatus) -> bool {
        self.uid == wanted.uid && without_times(&self.status) == without_times(&wanted.status)
    }
}

/// A status whose conditions carry no times: a client that replaces the conditions changes the times as well.
fn without_times(status: &DefaultsPolicyStatus) -> DefaultsPolicyStatus {
    let mut status = status.clone();
    for condition in &mut status.conditions {
        condition.last_transition_time = Time(Timestamp::UNIX_EPOCH);
    }
    status
}
