//! Notices that a policy pauses or resumes writes, or another one is in force, while work is under way.

use tokio::sync::watch;

use etch_core::api::Pause;

/// The pause when some work began, and the present one.
#[derive(Clone, Debug)]
pub(crate) struct PauseWatch {
    now: watch::Receiver<Option<Pause>>,
    then: Option<Pause>,
    /// Whether another policy is in force.
    is_superseded: watch::Receiver<bool>,
}

impl PauseWatch {
    /// For work that began under the pause `then`.
    pub(crate) fn new(
        now: watch::Receiver<Option<Pause>>,
        then: Option<Pause>,
        is_superseded: watch::Receiver<bool>,
    ) -> Self {
        Self { now, then, is_superseded }
    }

    /// Waits until a pause has begun, changed or ended since the work began, or another policy is in force:
    /// nothing more of it may begin. This future may be dropped at any time.
    pub(crate) async fn changed(&self) {
        let (mut now, mut is_superseded) = (self.now.clone(), self.is_superseded.clone());
        let found = tokio::select! {
            changed = now.wait_for(|now| *now != self.then) => changed.is_ok(),
            superseded = is_superseded.wait_for(|is| *is) => superseded.is_ok(),
        };
        if !found {
            // The sender is dropped: this task ends with it.
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_brake_tells_what_was_from_what_is() {
        let pause = Some(Pause { paused: Some("default".to_owned()), ..Pause::default() });
        let policies = watch::Sender::new(None);
        let superseded = watch::Sender::new(false);
        let writing = PauseWatch::new(policies.subscribe(), None, superseded.subscribe());
        let paused = PauseWatch::new(policies.subscribe(), pause.clone(), superseded.subscribe());
        let has_changed = |watch: &PauseWatch| watch.changed().now_or_never().is_some();
        assert!(!has_changed(&writing));
        assert!(has_changed(&paused), "a pause that has ended before the work began to wait is not missed");
        policies.send_replace(pause);
        assert!(has_changed(&writing) && !has_changed(&paused));
        superseded.send_replace(true);
        assert!(has_changed(&paused));
    }
}
