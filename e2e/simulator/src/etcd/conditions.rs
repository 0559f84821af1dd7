//! Our conditions on a CRD, and what its metadata shows of them.

use etch_core::condition::Condition;
use etch_core::engine::status::CrdRevision;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Clock, Resource};
use crate::server::Revision;

/// What the metadata of a CRD depends on.
pub type CrdState = (Revision, Option<WrittenAt>, bool);

/// When our conditions were written, as metadata shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenAt {
    revision: Revision,
    /// The second.
    second: u64,
    /// Whether they are still ours.
    is_ours: bool,
}

impl Resource {
    /// The resource version of the CRD: its own, or that of our conditions.
    pub(super) fn version(&self) -> String {
        let of_conditions = self.conditions_at.map_or(0, |at| at.revision);
        self.revision.max(of_conditions).to_string()
    }

    /// The entry of Etch, whose time has seconds, as that of a server has.
    pub(super) fn managed_fields(&self) -> Value {
        let ours = self.conditions_at.filter(|at| at.is_ours && !self.conditions.is_empty()).map(|at| {
            let time =
                Timestamp::from_second(i64::try_from(at.second).unwrap_or_default()).unwrap_or_default();
            json!({ "manager": "etch", "subresource": "status", "time": time.to_string(), "fieldsV1": {} })
        });
        ours.into_iter().collect()
    }

    /// What the metadata of the CRD depends on: it is compared after each step of a life, and the metadata is
    /// not.
    pub fn crd_state(&self) -> CrdState {
        (self.revision, self.conditions_at, self.conditions.is_empty())
    }

    /// The CRD as who writes conditions knows it.
    pub fn crd_revision(&self) -> CrdRevision {
        let metadata = json!({ "resourceVersion": self.version(), "managedFields": self.managed_fields() });
        CrdRevision::of(&json!({ "metadata": metadata }))
    }

    /// Another client replaces our conditions.
    pub fn overwrite_conditions(&mut self, clock: &mut Clock) {
        self.write_conditions(Vec::new(), false, clock);
    }

    pub(super) fn write_conditions(&mut self, conditions: Vec<Condition>, is_ours: bool, clock: &mut Clock) {
        clock.revision += 1;
        let second = self.age.as_secs();
        self.conditions_at = Some(WrittenAt { revision: clock.revision, second, is_ours });
        self.conditions = conditions;
    }
}
