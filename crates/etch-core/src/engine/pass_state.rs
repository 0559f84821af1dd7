//! What is known of a CRD's objects after a pass, and brought up to date while they are watched.

use crate::plan::Record;
use crate::report::checkpoint::Checkpoint;
use crate::report::state::Times;
use crate::report::tally::Tally;
use crate::report::versions::ObjectVersions;

/// What is known after a pass.
#[derive(Debug)]
pub struct PassState {
    /// What became of the objects.
    pub tally: Tally,
    /// Which objects need no look.
    pub record: Record,
    /// States of objects that the pass has proved.
    pub proved: ObjectVersions,
    /// The resource version from which a watch misses nothing.
    pub watch_from: String,
    /// When the pass began and ended.
    pub times: Times,
    /// The resource version up to which every object was processed, or excepted.
    pub finished_through: Option<u64>,
    /// Since when, and why, changes of the objects are not noticed.
    pub watch_failure: Option<String>,
}

impl PassState {
    /// What remains of it for the next pass; none where it is not known which objects were processed.
    pub fn into_checkpoint(self) -> Option<Checkpoint> {
        let Self { record, proved, tally, .. } = self;
        record.through.is_some().then(|| Checkpoint {
            record,
            proved,
            writes: tally.writes(),
            ..Checkpoint::default()
        })
    }
}
