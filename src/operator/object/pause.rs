//! Notices that a policy pauses or resumes writes while work is under way.

use tokio::sync::watch;

use etch_core::api::Pause;

/// The pause when some work began, and the present one.
#[derive(Clone, Debug)]
pub(crate) struct PauseWatch {
    now: watch::Receiver<Option<Pause>>,
    then: Option<Pause>,
}

impl PauseWatch {
    /// For work that began under the pause `then`.
    pub(crate) fn new(now: watch::Receiver<Option<Pause>>, then: Option<Pause>) -> Self {
        Self { now, then }
    }

    /// Waits until a pause has begun, changed or ended since the work began: nothing more of it may begin.
    /// This future may be dropped at any time.
    pub(crate) async fn changed(&self) {
        let mut now = self.now.clone();
        let found = now.wait_for(|now| *now != self.then).await.is_ok();
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
        let writing = PauseWatch::new(policies.subscribe(), None);
        let paused = PauseWatch::new(policies.subscribe(), pause.clone());
        let has_changed = |watch: &PauseWatch| watch.changed().now_or_never().is_some();
        assert!(!has_changed(&writing));
        assert!(has_changed(&paused), "a pause that has ended before the work began to wait is not missed");
        policies.send_replace(pause);
        assert!(has_changed(&writing) && !has_changed(&paused));
    }
}
