//! When the objects of a CRD are listed only to find out at which versions they are stored: if a pass does
//! not show it, because the CRD has no defaults or no object may be written.

use std::time::{Duration, Instant};

use super::task::Task;

/// How often such objects are listed again: meanwhile other clients' writes move objects to the storage
/// version.
pub(super) const COUNT_AGAIN: Duration = Duration::from_secs(6 * 3600);

/// When the objects were listed last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VersionCount {
    counted: Option<Instant>,
}

impl VersionCount {
    /// Whether the objects are to be listed now.
    pub(super) fn is_due(self, task: &Task, now: Instant) -> bool {
        let is_long_ago = self.counted.is_none_or(|counted| counted + COUNT_AGAIN <= now);
        task.reports_versions() && !task.proves_versions() && is_long_ago
    }

    /// Records that they were listed.
    pub(super) fn counted(&mut self, now: Instant) {
        self.counted = Some(now);
    }
}
