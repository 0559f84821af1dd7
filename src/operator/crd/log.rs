//! Lines of the log about one CRD.

use tracing::{info, warn};

use etch_core::api::Counts;
use etch_core::call_error::CallError;
use etch_core::stored_versions::Trim;

/// That old versions were taken out of `status.storedVersions`, or why not.
pub(super) fn trimmed(versions: &[String], trimmed: &Result<Trim, CallError>) {
    match trimmed {
        Ok(Trim::Done) => info!(?versions, "took old versions out of status.storedVersions"),
        Ok(Trim::Changed) => info!(?versions, "the CRD has changed; no version was taken out"),
        Ok(Trim::Migrated) => {
            info!(?versions, "waiting for a StorageVersionMigration; no version was taken out")
        }
        Err(error) => warn!(?versions, %error, "cannot take versions out of status.storedVersions"),
    }
}

/// The end of a pass; `asked` is the number of objects that needed a request.
pub(super) fn pass_ended(counts: Counts, asked: u64) {
    info!(
        objects = counts.objects,
        written = counts.written,
        already_stored = counts.already_stored,
        followed = counts.followed,
        kept = counts.kept,
        due = counts.due,
        unproved = counts.unproved,
        held = counts.held,
        rejected = counts.rejected,
        unknown = counts.unknown,
        ignored = counts.ignored,
        terminating = counts.terminating,
        too_deep = counts.too_deep,
        not_selected = counts.not_selected,
        asked,
        "pass ended"
    );
}
