//! What is counted beside the states of objects: values of changed defaults, and fields that writes have
//! dropped. A pass takes it along, the watch after it continues with it, and the next report is opened with
//! it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::object::{Identity, Object};
use crate::plan::{Change, Record};
use crate::report::changed_defaults::{ChangedDefaults, Followed};
use crate::report::dropped_fields::DroppedFields;
use kube_structural_schema::path::Path;

/// The outcomes so far for changed defaults, and the fields that were dropped.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The defaults that have changed.
    pub changes: ChangedDefaults,
    /// The fields that writes have dropped.
    pub dropped: DroppedFields,
}

/// What the ledger has of one object as its machine begins.
#[derive(Clone, Debug, Default)]
pub struct ObjectLedger {
    /// The defaults that have changed.
    pub changes: Arc<[Change]>,
    /// Whether they are still to be followed, or counted, in this object.
    pub concerns: bool,
    /// Whether a server that lags behind may show the object: with an old default that is not stored, or
    /// without a place that takes one.
    pub servers_may_lag: bool,
    /// Places in the schema at which the object is known to hold nothing.
    pub cleared: BTreeSet<Path>,
}

/// What the machine of an object found that concerns the ledger.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The object in versions that showed an old default, or nothing that takes one, while servers might lag
    /// behind.
    pub suspects: Vec<u64>,
    /// The outcome for the changed defaults, if it is known.
    pub followed: Option<Followed>,
    /// The fields that a write has left the object without, and whether it changed the object: then etcd may
    /// have held them until then.
    pub cleared: Vec<(Vec<Path>, bool)>,
}

impl ObjectLedger {
    /// Those of the fields of an object that are not known to be gone.
    pub fn at_risk(&self, mut paths: Vec<Path>) -> Vec<Path> {
        paths.retain(|path| !self.cleared.contains(&path.to_schema()));
        paths
    }
}

impl Ledger {
    /// What it has of one object.
    pub fn of_object(&self, object: &Object, identity: &Identity, record: &Record) -> ObjectLedger {
        ObjectLedger {
            changes: self.changes.list().clone(),
            concerns: !self.changes.for_object(object, record).is_empty(),
            servers_may_lag: self.changes.servers_may_lag(),
            cleared: self.dropped.cleared_of(identity),
        }
    }

    /// Enters what the machine of an object found.
    pub fn enter(&mut self, identity: &Identity, found: Found) {
        let Found { suspects, followed, cleared } = found;
        self.changes.note_suspects(suspects);
        if let Some(followed) = followed {
            self.changes.count(&identity.uid, &followed);
        }
        for (paths, dropped) in cleared {
            self.dropped.clear(identity, &paths, dropped);
        }
    }
}
