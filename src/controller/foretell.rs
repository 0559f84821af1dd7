//! What the report on a CRD says of changed defaults, for commands that foretell what the operator does.
//! It must not count anything: nothing has been done.

use crate::api::{DefaultsReportStatus, Settings};
use crate::controller::state::changed_defaults::Changes;
use crate::controller::state::checkpoint::on_record;
use crate::controller::state::report::Ledger;
use crate::domain::crd::Crd;
use crate::domain::object::Object;
use crate::domain::plan::{Change, Record};

/// The changed defaults of a CRD whose old values the operator has still to look for.
#[derive(Debug)]
pub struct DueChanges {
    changes: Changes,
    record: Record,
}

/// Which changes of defaults are due by the last report on a CRD, under the settings of its policy. The report may be about
/// earlier defaults of the CRD.
pub fn due_changes(noted: &DefaultsReportStatus, crd: &Crd, settings: &Settings) -> DueChanges {
    let ledger = Ledger::open(Some(noted), crd, settings, "");
    let about_this = Some(noted).filter(|noted| ledger.is_about(noted));
    let changes = Changes::open(about_this, ledger.previous(), crd, settings);
    DueChanges { changes, record: on_record(noted, crd) }
}

impl DueChanges {
    /// The changes that concern an object.
    pub fn of(&self, object: &Object) -> &[Change] {
        self.changes.for_object(object, &self.record)
    }
}
