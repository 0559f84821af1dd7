//! When a CRD's report is read, to find out whether etcd was restored to an earlier state: no event says so.
//! It must not read it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// How often, where nothing else shows a restore.
const OFTEN: Duration = Duration::from_secs(240);
/// How often, where something does: the report may be gone for another reason.
const SELDOM: Duration = Duration::from_secs(3600);
/// After a sign of a restore all reports are read within this time, and not all at once.
const SPREAD: Duration = Duration::from_secs(30);

/// When the report of one CRD is to be read.
pub(crate) struct RestoreCheck {
    /// Changes when something shows that etcd may have been restored; none where nothing does.
    sign: Option<watch::Receiver<()>>,
    due: Instant,
    /// How long to wait after a sign.
    turn: Duration,
}

impl RestoreCheck {
    /// For the CRD `name`, whose report is read now.
    pub(crate) fn new(name: &str, sign: Option<&watch::Receiver<()>>) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let turn = SPREAD.mul_f64(f64::from(hasher.finish() as u16) / f64::from(u16::MAX));
        let mut sign = sign.cloned();
        if let Some(sign) = &mut sign {
            sign.mark_unchanged();
        }
        let mut check = Self { sign, due: Instant::now(), turn };
        check.checked();
        check
    }

    /// The report is read now, or was written.
    pub(crate) fn checked(&mut self) {
        self.due = Instant::now() + if self.sign.is_some() { SELDOM } else { OFTEN };
    }

    /// There is a reason to read it at once.
    pub(crate) fn check_now(&mut self) {
        self.due = Instant::now();
    }

    /// Waits until it is to be read.
    ///
    /// This future may be dropped at any time: what is due stays due.
    pub(crate) async fn due(&mut self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(self.due) => return,
                () = changes(self.sign.as_mut()) => self.due = self.due.min(Instant::now() + self.turn),
            }
        }
    }
}

/// Waits for a sign; for ever where there is none, or nobody gives any more.
async fn changes(sign: Option<&mut watch::Receiver<()>>) {
    if let Some(sign) = sign
        && sign.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn wait(check: &mut RestoreCheck) -> Duration {
        let begun = Instant::now();
        check.due().await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_is_read_often_where_nothing_else_shows_a_restore() {
        let mut check = RestoreCheck::new("a", None);
        assert_eq!(wait(&mut check).await, OFTEN);
        assert_eq!(wait(&mut check).await, Duration::ZERO, "it stays due");
        check.checked();
        assert_eq!(wait(&mut check).await, OFTEN);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_sign_each_has_its_turn_and_else_they_are_read_seldom() {
        let sender = watch::Sender::new(());
        sender.send_replace(());
        let mut turns = Vec::new();
        for name in ["a", "b", "c"] {
            let mut check = RestoreCheck::new(name, Some(&sender.subscribe()));
            assert_eq!(wait(&mut check).await, SELDOM, "a sign from before is none");
            check.checked();
            sender.send_replace(());
            turns.push(wait(&mut check).await);
            check.checked();
            assert_eq!(wait(&mut check).await, SELDOM, "one sign is one read");
        }
        assert!(turns.iter().all(|turn| *turn <= SPREAD), "{turns:?}");
        assert!(turns[0] != turns[1] && turns[1] != turns[2], "{turns:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_no_more_signs_hastens_nothing() {
        let sender = watch::Sender::new(());
        let mut check = RestoreCheck::new("a", Some(&sender.subscribe()));
        drop(sender);
        assert_eq!(wait(&mut check).await, SELDOM);
    }
}
