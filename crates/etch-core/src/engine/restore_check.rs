//! When a CRD's report is read, to find out whether etcd was restored to an earlier state: no event shows it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// The interval if nothing else shows a restore.
const OFTEN: Duration = Duration::from_secs(240);
/// How often, where something does: the report may be gone for another reason.
const SELDOM: Duration = Duration::from_secs(3600);
/// After a sign of a restore all reports are read within this time, and not all at once.
const SPREAD: Duration = Duration::from_secs(30);

/// When the report of one CRD is to be read.
#[derive(Clone, Debug)]
pub struct RestoreCheck {
    every: Duration,
    due: Instant,
    /// How long to wait after a sign.
    turn: Duration,
    /// Whether a sign came while the report lacked something, since the report was read.
    is_suspect: bool,
}

impl RestoreCheck {
    /// For the CRD `name`, whose report is read now; `has_sign` is whether something else shows a restore.
    pub fn new(name: &str, has_sign: bool, now: Instant) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let turn = SPREAD.mul_f64(f64::from(hasher.finish() as u16) / f64::from(u16::MAX));
        let every = if has_sign { SELDOM } else { OFTEN };
        Self { every, due: now + every, turn, is_suspect: false }
    }

    /// The report is read now, or was written.
    pub fn checked(&mut self, now: Instant) {
        (self.due, self.is_suspect) = (now + self.every, false);
    }

    /// It could not be read. `was_suspect` is whether it was suspect when it was asked for.
    pub fn failed(&mut self, now: Instant, was_suspect: bool) {
        self.due = self.due.min(now + SPREAD);
        self.is_suspect |= was_suspect;
    }

    /// There is a reason to read it at once.
    pub fn check_now(&mut self, now: Instant) {
        self.due = now;
    }

    /// Something shows that etcd may have been restored. `had_unreported` is whether the report may lack what
    /// was set back: then a report that is the right one proves nothing.
    pub fn sign(&mut self, now: Instant, had_unreported: bool) {
        self.due = self.due.min(now + self.turn);
        self.is_suspect |= had_unreported;
    }

    /// Whether a sign came while the report lacked something, since it was read.
    pub fn is_suspect(&self) -> bool {
        self.is_suspect
    }

    /// When it is to be read.
    pub fn due(&self) -> Instant {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::start;

    #[test]
    fn a_report_is_read_often_where_nothing_else_shows_a_restore() {
        let mut check = RestoreCheck::new("a", false, start());
        assert_eq!(check.due(), start() + OFTEN);
        check.checked(start() + OFTEN);
        assert_eq!(check.due(), start() + OFTEN * 2);
    }

    #[test]
    fn after_a_sign_each_has_its_turn_and_else_they_are_read_seldom() {
        let now = start();
        let mut turns = Vec::new();
        for name in ["a", "b", "c"] {
            let mut check = RestoreCheck::new(name, true, now);
            assert_eq!(check.due(), now + SELDOM);
            check.sign(now, true);
            turns.push(check.due() - now);
            assert!(check.is_suspect());
            check.checked(now);
            assert!(!check.is_suspect());
            assert_eq!(check.due(), now + SELDOM, "one sign is one read");
            check.failed(now, true);
            assert!(check.is_suspect() && check.due() <= now + SPREAD, "it was not read");
        }
        assert!(turns.iter().all(|turn| *turn <= SPREAD), "{turns:?}");
        assert!(turns[0] != turns[1] && turns[1] != turns[2], "{turns:?}");
    }
}
