//! When objects that could not be written are retried.

use std::time::{Duration, Instant};

use super::backoff::Backoff;
use crate::object::Identity;
use crate::report::tally::Tally;

/// Waits before objects that were rejected are retried, from the first to the last.
const RETRY_FIRST: Duration = Duration::from_secs(20);
const RETRY_LAST: Duration = Duration::from_secs(3600);
/// How long objects wait that were rejected in an earlier run: a restart changes nothing about them.
const RETRY_AFTER_RESTART: Duration = Duration::from_secs(600);
/// Waits before some of the objects about which the server did not answer are retried, from the first to the
/// last.
const PROBE_FIRST: Duration = Duration::from_secs(5);
const PROBE_LAST: Duration = Duration::from_secs(120);
/// The longest wait for a webhook that does not answer: the request goes through an API server that works.
const WEBHOOK_LAST: Duration = Duration::from_secs(30);
/// How many of them: enough to find out, and few if nothing answers.
const PROBES: usize = 4;

/// When to retry what could not be written.
///
/// Rejected objects are retried at growing intervals. Objects without an answer are probed steadily, a few at
/// a time and each in turn; once one is answered, all others are tried at once.
#[derive(Clone, Debug)]
pub struct Retries {
    rejected: Timer,
    unanswered: Timer,
    /// The last that was probed.
    probed: Option<Identity>,
    /// Whether there was an answer about one.
    answered: bool,
}

/// A timer with growing waits.
#[derive(Clone, Debug)]
struct Timer {
    backoff: Backoff,
    at: Option<Instant>,
}

impl Retries {
    /// With nothing to retry; for `seed` see [`Backoff::new`].
    pub fn new(seed: u64) -> Self {
        Self {
            rejected: Timer { backoff: Backoff::new(RETRY_FIRST, RETRY_LAST, seed), at: None },
            unanswered: Timer { backoff: Backoff::new(PROBE_FIRST, PROBE_LAST, seed + 5), at: None },
            probed: None,
            answered: false,
        }
    }

    /// Records whether there is something to retry. Rejected objects stay so if nothing is written.
    pub fn arm(&mut self, now: Instant, tally: &Tally, writes: bool) {
        let is_rejected = writes && (!tally.rejected().is_empty() || tally.overflows_with_rejected());
        self.rejected.arm(now, Duration::MAX, is_rejected || tally.overflows_with_unanswered());
        self.unanswered.arm(now, longest_probe(tally), !tally.unanswered().is_empty());
    }

    /// Records that some objects, rejected in an earlier run, were not tried again yet.
    pub fn postpone(&mut self, now: Instant) {
        self.rejected.at.get_or_insert_with(|| now + RETRY_AFTER_RESTART);
    }

    /// Whether it is time to try what was rejected again, where a pass over all objects is to do so.
    pub fn take_rejected(&mut self, now: Instant) -> bool {
        self.rejected.is_over(now, Duration::MAX)
    }

    /// Records that there was an answer about one of them.
    pub fn answered(&mut self, now: Instant) {
        self.answered = self.unanswered.at.is_some();
        self.unanswered.at = self.unanswered.at.map(|_| now);
    }

    /// When the next are due, if any are.
    pub fn due(&self) -> Option<Instant> {
        self.rejected.at.into_iter().chain(self.unanswered.at).min()
    }

    /// The objects to be retried now; `None` means all objects, because the tally does not name all that
    /// are to be.
    pub fn take(&mut self, now: Instant, tally: &Tally) -> Option<Vec<Identity>> {
        let rejected = self.rejected.is_over(now, Duration::MAX);
        let unanswered = self.unanswered.is_over(now, longest_probe(tally));
        let answered = unanswered && std::mem::take(&mut self.answered);
        if rejected && tally.overflows_with_rejected()
            || (rejected || answered) && tally.overflows_with_unanswered()
        {
            return None;
        }
        let mut taken = if rejected { tally.rejected() } else { Vec::new() };
        if answered {
            taken.extend(tally.unanswered());
        } else if unanswered {
            taken.extend(self.probes(tally));
        }
        Some(taken)
    }

    /// The next few in turn.
    fn probes(&mut self, tally: &Tally) -> Vec<Identity> {
        let mut unanswered = tally.unanswered();
        let next = unanswered.partition_point(|identity| Some(identity) <= self.probed.as_ref());
        let count = unanswered.len().max(1);
        unanswered.rotate_left(next % count);
        unanswered.truncate(PROBES);
        self.probed = unanswered.last().cloned();
        unanswered
    }
}

fn longest_probe(tally: &Tally) -> Duration {
    if tally.waits_for_webhook() { WEBHOOK_LAST } else { Duration::MAX }
}

impl Timer {
    fn arm(&mut self, now: Instant, longest: Duration, needed: bool) {
        if !needed {
            self.at = None;
            self.backoff.succeeded();
        } else if self.at.is_none() {
            self.set(now, longest);
        }
    }

    fn set(&mut self, now: Instant, longest: Duration) {
        self.at = Some(now + self.backoff.failed(now, None).min(longest));
    }

    /// Whether its moment has come; the next is set then.
    fn is_over(&mut self, now: Instant, longest: Duration) -> bool {
        let over = self.at.is_some_and(|at| at <= now);
        if over {
            self.set(now, longest);
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::start;
    use crate::object_state::ObjectState;
    use crate::plan::{Rejection, RejectionKind};

    /// A tally of this many objects that were rejected, and as many that a webhook did not answer for.
    fn rejected_and_unanswered(rejected: usize, unavailable: usize) -> Tally {
        let mut tally = Tally::default();
        let all = (0..rejected).map(|index| (format!("rejected-{index}"), RejectionKind::Admission));
        let away = (0..unavailable).map(|index| (format!("away-{index}"), RejectionKind::Unavailable));
        for (name, kind) in all.chain(away) {
            let rejection = Rejection { kind, message: String::new(), fields: Vec::new() };
            let identity = Identity { name, ..Identity::default() };
            tally.add(identity, ObjectState::Rejected(rejection), &[]);
        }
        tally
    }

    fn next(retries: &mut Retries, now: &mut Instant, tally: &Tally) -> (Duration, Option<Vec<String>>) {
        let due = retries.due().expect("there is something to retry").max(*now);
        let waited = due - *now;
        *now = due;
        let taken = retries.take(due, tally);
        (waited, taken.map(|all| all.into_iter().map(|identity| identity.name).collect()))
    }

    #[test]
    fn what_was_rejected_is_retried_ever_more_seldom_and_at_least_about_every_hour() {
        let (tally, mut retries, mut now) = (rejected_and_unanswered(2, 0), Retries::new(0), start());
        retries.arm(now, &tally, true);
        let mut last = Duration::ZERO;
        for _ in 0..12 {
            let (waited, taken) = next(&mut retries, &mut now, &tally);
            assert_eq!(taken.expect("names"), ["rejected-0", "rejected-1"]);
            assert!(waited > last || waited >= RETRY_LAST, "{waited:?} after {last:?}");
            last = waited;
        }
        assert!(last <= RETRY_LAST * 5 / 4, "{last:?}");
    }

    #[test]
    fn what_was_not_answered_about_is_probed_in_turn_until_there_is_an_answer() {
        let (tally, mut retries, mut now) = (rejected_and_unanswered(0, 6), Retries::new(0), start());
        retries.arm(now, &tally, true);
        let mut probed = std::collections::BTreeSet::new();
        for _ in 0..20 {
            let (waited, taken) = next(&mut retries, &mut now, &tally);
            let taken = taken.expect("names");
            assert!(waited <= WEBHOOK_LAST && taken.len() == PROBES, "{taken:?} after {waited:?}");
            probed.extend(taken);
        }
        assert_eq!(probed.len(), 6);
        retries.answered(now);
        let (waited, taken) = next(&mut retries, &mut now, &tally);
        assert_eq!((waited, taken.map(|all| all.len())), (Duration::ZERO, Some(6)));
    }

    #[test]
    fn of_more_than_are_remembered_everything_is_tried_again_once_there_is_an_answer() {
        let (tally, mut retries, mut now) = (rejected_and_unanswered(0, 2001), Retries::new(0), start());
        retries.arm(now, &tally, true);
        retries.answered(now);
        assert_eq!(next(&mut retries, &mut now, &tally).1, None);
        let (waited, _) = next(&mut retries, &mut now, &tally);
        assert!(waited > Duration::ZERO, "and not again at once");
    }

    #[test]
    fn an_answer_about_one_object_is_no_reason_to_try_thousands_that_were_rejected() {
        let (tally, mut retries, mut now) = (rejected_and_unanswered(1500, 1), Retries::new(0), start());
        retries.arm(now, &tally, true);
        retries.answered(now);
        let (waited, taken) = next(&mut retries, &mut now, &tally);
        assert_eq!((waited, taken), (Duration::ZERO, Some(vec!["away-0".to_owned()])));
    }

    #[test]
    fn an_answer_is_about_what_was_unanswered_by_then() {
        let (none, some) = (rejected_and_unanswered(0, 0), rejected_and_unanswered(0, 6));
        let (mut retries, mut now) = (Retries::new(0), start());
        retries.arm(now, &none, true);
        retries.answered(now);
        retries.arm(now, &some, true);
        let (_, taken) = next(&mut retries, &mut now, &some);
        assert_eq!(taken.map(|all| all.len()), Some(PROBES));
    }
}
