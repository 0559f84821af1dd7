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
use etch_core::policy_index::PolicyStatus;

/// The least time between two rounds, even if another client writes the statuses as well.
const ROUND: Duration = Duration::from_secs(2);
/// The longest wait after one that was refused.
const LAST_WAIT: Duration = Duration::from_secs(300);

/// What was written to a policy last.
struct Last {
    uid: String,
    status: DefaultsPolicyStatus,
    /// Whether another client keeps writing a different status.
    reapply_backoff: ReapplyBackoff,
    /// When it may be written again.
    again_at: Instant,
}

/// The waits after the status of one policy was refused: that of another one does not wait with it.
struct Failing {
    backoff: Backoff,
    again_at: Instant,
}

/// Writes policy statuses, forever.
pub(crate) async fn write_statuses(cluster: Cluster, mut wanted: watch::Receiver<Vec<PolicyStatus>>) {
    let (mut written, mut failing) = (HashMap::<String, Last>::new(), HashMap::<String, Failing>::new());
    loop {
        let statuses = wanted.borrow_and_update().clone();
        failing.retain(|name, _| statuses.iter().any(|wanted| wanted.name == *name));
        let mut later: Option<Instant> = None;
        for wanted in &statuses {
            let PolicyStatus { name, uid, status } = wanted;
            let waits = failing.get(name).map(|failing| failing.again_at);
            let waits = waits.filter(|at| *at > Instant::now()).or_else(|| contested_until(&written, wanted));
            let again_at = match waits {
                Some(again_at) => Some(again_at),
                None => match cluster.set_status::<DefaultsPolicy>(name, uid, status).await {
                    Ok(()) => {
                        failing.remove(name);
                        // If it is still wanted then, another client has replaced it.
                        Some(note(&mut written, wanted))
                    }
                    // One that is gone is not wanted any more as soon as its watch reports it.
                    Err(error) if error.code() == Some(404) => {
                        debug!(policy = name, "the policy is gone");
                        None
                    }
                    Err(error) => {
                        warn!(policy = name, %error, "cannot write the status of a policy");
                        let failing = failing.entry(name.clone()).or_insert_with(Failing::new);
                        Some(failing.failed(error.retry_after()))
                    }
                },
            };
            later = later.into_iter().chain(again_at).min();
        }
        tokio::time::sleep(ROUND).await;
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() {
                return;
            },
            () = tokio::time::sleep_until(later.unwrap_or_else(Instant::now)), if later.is_some() => {}
        }
    }
}

impl Failing {
    fn new() -> Self {
        Self { backoff: Backoff::new(ROUND, LAST_WAIT), again_at: Instant::now() }
    }

    /// When it may be written again, now that it has failed once more.
    fn failed(&mut self, asked: Option<Duration>) -> Instant {
        self.again_at = Instant::now() + self.backoff.failed(asked);
        self.again_at
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
