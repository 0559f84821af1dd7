//! How long a schema stands unchanged before objects are written, and what is reported meanwhile.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::protocol::Next;
use super::task::Task;
use crate::api::{DefaultsReportStatus, Mode};
use crate::call_error::CallError;
use crate::condition::CrdStatus;
use crate::engine::Now;
use crate::engine::backoff::Backoff;
use crate::message;
use crate::rbac::{Allowed, MissingPermissions};
use crate::report::open_report::OpenReport;

/// How often a missing permission is asked for again, at first and at most.
const ASK_AGAIN: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(600)];
/// How often Etch checks permissions where none is missing. While it works on objects, a refused request
/// shows that a permission was taken away.
const ASK_WHILE_IDLE: Duration = Duration::from_secs(6 * 3600);

/// The time that a schema is given.
#[derive(Clone, Debug)]
pub(super) struct Settling {
    /// When it will have stood long enough.
    end: Option<Instant>,
    /// What was missing when it was last asked.
    missing: Option<MissingPermissions>,
    backoff: Backoff,
}

impl Settling {
    /// `seed` spreads the waits of those who fail together.
    pub(super) fn new(seed: u64) -> Self {
        let [first, last] = ASK_AGAIN;
        Self { end: None, missing: None, backoff: Backoff::new(first, last, seed) }
    }

    /// How long the schema still has to stand; none once it has stood long enough.
    pub(super) fn left(&mut self, task: &Task, first_seen: Timestamp, now: Now) -> Option<Duration> {
        let stood = Duration::try_from(now.date.duration_since(first_seen));
        let left = task.settings.settle.saturating_sub(stood.unwrap_or_default());
        // The wall clock is asked once: it may be set, and other machines' clocks differ.
        let end = *self.end.get_or_insert(now.at + left);
        Some(end.saturating_duration_since(now.at)).filter(|left| !left.is_zero())
    }

    /// Records what is permitted.
    pub(super) fn permissions_read(&mut self, answer: Result<Allowed, CallError>) {
        match answer {
            Ok(Allowed::Everywhere | Allowed::Within(_)) => self.missing = None,
            Ok(Allowed::Missing(missing)) | Err(CallError::MissingPermission(missing)) => {
                self.missing = Some(missing);
            }
            Err(_) => {}
        }
    }

    /// Status and report meanwhile.
    pub(super) fn shown(&self, task: &Task, open: &OpenReport) -> (CrdStatus, DefaultsReportStatus) {
        let until = open.state.first_seen().saturating_add(task.settings.settle);
        let until = whole_second(until.unwrap_or(Timestamp::MAX));
        let pause = task.settings.pause.as_ref().filter(|_| task.settings.mode == Mode::Persist);
        (
            task.shown(message::settling(&task.findings, pause, self.missing.as_ref(), until)),
            open.state.settling(until, &open.ledger.dropped),
        )
    }

    /// What follows where `left` is how long the schema still has to stand.
    pub(super) fn next(&mut self, left: Duration, now: Instant) -> Next {
        let ask_again = match self.missing {
            Some(_) => self.backoff.failed(now, None),
            None => ASK_WHILE_IDLE,
        };
        Next::Settle(left.min(ask_again))
    }
}

/// The first whole second that is not before a time: Kubernetes stores no fractions of a second, and Etch
/// takes a report that differs from what it wrote for another writer's.
fn whole_second(time: Timestamp) -> Timestamp {
    let second = time.as_second() + i64::from(time.subsec_nanosecond() > 0);
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}
