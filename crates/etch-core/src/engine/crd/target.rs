//! What a CRD is reconciled to, and whether what is under way is still for that.

use crate::api::Settings;
use crate::engine::status::CrdRevision;

/// What a CRD is reconciled to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its uid.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// See [`crate::policy_index::CrdEntry::generation_falls`].
    pub generation_falls: u64,
    /// The settings of its policy; `None` if no policy governs it. A pause that begins or ends interrupts
    /// nothing but writes.
    pub settings: Option<Settings>,
    /// The generation that a user has resumed after its canary.
    pub resumed: Option<i64>,
    /// See [`crate::policy_index::CrdEntry::revision`].
    pub revision: CrdRevision,
    /// See [`crate::policy_index::CrdEntry::version_edits`].
    pub version_edits: u64,
}

impl Target {
    /// Whether what has begun for `begun` is for this one.
    pub fn is_met_by(&self, begun: &Self) -> bool {
        let same_settings = match (&begun.settings, &self.settings) {
            (Some(begun), Some(target)) => begun.same_apart_from_pause(target),
            (begun, target) => begun == target,
        };
        self.is_of(begun) && same_settings
    }

    /// Whether what has begun for `begun` is for the CRD as it is, under whichever policy. A CRD that was
    /// read later than the index saw it is not older.
    pub fn is_of(&self, begun: &Self) -> bool {
        begun.uid == self.uid
            && begun.generation_falls == self.generation_falls
            && begun.version_edits == self.version_edits
            && begun.generation >= self.generation
    }
}
