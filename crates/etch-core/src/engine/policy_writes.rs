//! When the status of each policy may be written.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::backoff::Backoff;
use super::reapply_backoff::ReapplyBackoff;
use crate::api::DefaultsPolicyStatus;
use crate::policy_index::PolicyStatus;

/// The least time between two rounds, even if another client writes the statuses as well.
pub const ROUND: Duration = Duration::from_secs(2);
/// The longest wait after one that was refused.
const LAST_WAIT: Duration = Duration::from_secs(300);

/// What was written, and what was refused, by the names of policies.
#[derive(Debug, Default)]
pub struct PolicyWrites {
    written: HashMap<String, Last>,
    failing: HashMap<String, Failing>,
}

/// What was written to a policy last.
#[derive(Debug)]
struct Last {
    uid: String,
    status: DefaultsPolicyStatus,
    /// Whether another client keeps writing a different status.
    reapply_backoff: ReapplyBackoff,
    /// When it may be written again.
    again_at: Instant,
}

/// The waits after the status of one policy was refused: that of another one does not wait with it.
#[derive(Debug)]
struct Failing {
    backoff: Backoff,
    again_at: Instant,
}

impl PolicyWrites {
    /// Forgets the failures of statuses that are not wanted any more.
    pub fn retain(&mut self, wanted: &[PolicyStatus]) {
        self.failing.retain(|name, _| wanted.iter().any(|wanted| wanted.name == *name));
    }

    /// Until when a status waits, because it was refused or another client has replaced it; `None` if it may
    /// be written now.
    pub fn waits(&self, wanted: &PolicyStatus, now: Instant) -> Option<Instant> {
        let refused = self.failing.get(&wanted.name).map(|failing| failing.again_at);
        let replaced = || {
            let last = self.written.get(&wanted.name).filter(|last| last.is_again(wanted))?;
            Some(last.again_at).filter(|at| *at > now)
        };
        refused.filter(|at| *at > now).or_else(replaced)
    }

    /// Notes that a status was written; when it may be written again.
    pub fn written(&mut self, wanted: &PolicyStatus, now: Instant) -> Instant {
        let PolicyStatus { name, uid, status } = wanted.clone();
        self.failing.remove(&name);
        let mut reapply_backoff = ReapplyBackoff::default();
        if let Some(last) = self.written.remove(&name).filter(|last| last.is_again(wanted)) {
            reapply_backoff = last.reapply_backoff;
            reapply_backoff.overwritten(now);
        }
        let again_at = now + reapply_backoff.wait(now);
        self.written.insert(name, Last { uid, status, reapply_backoff, again_at });
        again_at
    }

    /// Notes that a status was refused, with the wait that the server asked for; when it may be written
    /// again. `seed` differs from call to call.
    pub fn failed(&mut self, name: &str, asked: Option<Duration>, now: Instant, seed: u64) -> Instant {
        let new = || Failing { backoff: Backoff::new(ROUND, LAST_WAIT, seed), again_at: now };
        let failing = self.failing.entry(name.to_owned()).or_insert_with(new);
        failing.again_at = now + failing.backoff.failed(now, asked);
        failing.again_at
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::start;

    fn status(name: &str, crds: u64) -> PolicyStatus {
        let status = DefaultsPolicyStatus { crds, ..DefaultsPolicyStatus::default() };
        PolicyStatus { name: name.to_owned(), uid: format!("uid of {name}"), status }
    }

    #[test]
    fn a_refused_status_holds_up_no_other() {
        let (mut writes, now) = (PolicyWrites::default(), start());
        let (refused, other) = (status("a", 1), status("b", 1));
        let again = writes.failed("a", Some(Duration::from_secs(7)), now, 1);
        assert!(again >= now + Duration::from_secs(7));
        assert_eq!([writes.waits(&refused, now), writes.waits(&other, now)], [Some(again), None]);
        assert_eq!(writes.waits(&refused, again), None);
        assert!(writes.failed("a", None, again, 1) > again, "it waits again");
        writes.retain(&[other]);
        assert_eq!(writes.waits(&refused, now), None, "it is not wanted any more");
    }

    #[test]
    fn what_another_client_replaces_is_written_ever_more_seldom() {
        let (mut writes, mut now) = (PolicyWrites::default(), start());
        let wanted = status("a", 1);
        let mut waits = Vec::new();
        for _ in 0..4 {
            let again = writes.written(&wanted, now);
            assert_eq!(writes.waits(&wanted, now), Some(again));
            assert_eq!(writes.waits(&status("a", 2), now), None, "another status is no repetition");
            waits.push((again - now).as_secs());
            now = again;
        }
        assert_eq!(waits, [10, 20, 40, 80]);
    }
}
