//! The conditions of a CRD: what stands there, what should, and which events follow from the difference.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use kube_structural_schema::json::Json;
use serde_json::Value;

use super::command::Subject;
use crate::condition::{self, Condition, CrdStatus, PERSISTED, Reason, same};
use crate::engine::Now;
use crate::event::{self, Event};
use crate::message::OLD_CRDS;
use crate::ownership::MANAGER;

/// The revision of a CRD and of our conditions on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrdRevision {
    /// Its resource version.
    pub version: String,
    /// See [`Self::entry`].
    pub entry: Option<u64>,
}

impl CrdRevision {
    /// Of a CRD, or of its metadata alone.
    pub fn of(document: &Value) -> Self {
        let metadata = &document["metadata"];
        let entries = metadata["managedFields"].as_array().into_iter().flatten();
        Self {
            version: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
            entry: entries.into_iter().find_map(Self::entry),
        }
    }

    /// A hash of the entry in managedFields that names our conditions; `None` if it is another entry.
    ///
    /// It changes with our conditions: a client that changes one takes its fields from the entry, and an
    /// apply in our name that changes one sets the time.
    pub fn entry(entry: &Value) -> Option<u64> {
        if entry["manager"] != MANAGER || entry["subresource"] != "status" {
            return None;
        }
        let time = entry["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
        let mut hasher = DefaultHasher::new();
        (time.map(Timestamp::as_second), entry["fieldsV1"].to_string()).hash(&mut hasher);
        Some(hasher.finish())
    }
}

/// Our conditions on one CRD.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    /// As the CRD was last known to carry them.
    present: Arc<[Condition]>,
    /// The CRD when it carried them.
    revision: CrdRevision,
    desired: Desired,
    /// As they were last set; those from before are in the CRD.
    last: Option<Arc<[Condition]>>,
    /// Whether the CRD of reports is of an older Etch, and lacks a field of the report: the conditions name
    /// it.
    is_undeclared: bool,
}

/// The conditions that the CRD should carry.
#[derive(Clone, Debug)]
pub(super) enum Desired {
    /// Not known yet: what stands there stays.
    Unknown,
    /// This.
    Status(CrdStatus),
    /// None.
    None,
}

/// Whether these conditions claim that the defaults are stored.
pub(super) fn claims_storage(conditions: &[Condition]) -> bool {
    conditions.iter().any(|condition| condition.r#type == PERSISTED && condition.status == "True")
}

/// What brings the desired conditions there.
pub(super) struct Change {
    /// The reason under which the CRD counts.
    pub(super) counted: Option<Reason>,
    /// What to write; `None` if it stands there already.
    pub(super) write: Option<Arc<[Condition]>>,
    /// The events about it.
    pub(super) news: Vec<Event>,
}

impl Conditions {
    /// Of a CRD that carries these.
    pub(super) fn new(present: Vec<Condition>, revision: CrdRevision) -> Self {
        let present = present.into();
        Self { present, revision, desired: Desired::Unknown, last: None, is_undeclared: false }
    }

    /// The CRD when it was last known to carry them.
    pub(super) fn revision(&self) -> &CrdRevision {
        &self.revision
    }

    /// Whether the CRD may carry others where the watch of CRDs shows it at this revision. Two writes within
    /// a second leave the same entry, and a process that does not lead any more may have sent the second one;
    /// a restored etcd gives out resource versions once more.
    pub(super) fn may_differ_at(&self, shown: &CrdRevision) -> bool {
        *shown != self.revision
    }

    /// The last reason that was given.
    pub(super) fn reason(&self) -> Option<Reason> {
        match &self.desired {
            Desired::Status(crd_status) => Some(crd_status.reason),
            Desired::Unknown | Desired::None => None,
        }
    }

    /// Whether the CRD carries this reason.
    pub(super) fn has_reason(&self, reason: Reason) -> bool {
        self.present.iter().any(|condition| condition.reason == reason.as_str())
    }

    /// Whether the CRD should carry conditions that claim that its defaults are stored.
    pub(super) fn claim_storage(&self) -> bool {
        matches!(&self.desired, Desired::Status(crd_status) if crd_status.persisted == Some(true))
    }

    /// The conditions that the CRD should carry.
    pub(super) fn desired(&self) -> Desired {
        self.desired.clone()
    }

    /// Records which ones the CRD should carry.
    pub(super) fn set_desired(&mut self, desired: Desired) {
        self.desired = desired;
    }

    /// Records whether the CRD of reports lacks a field; returns whether that changes the conditions.
    pub(super) fn set_undeclared(&mut self, is_undeclared: bool) -> bool {
        std::mem::replace(&mut self.is_undeclared, is_undeclared) != is_undeclared
    }

    /// The write that sets these; `None` if what stands there stays.
    pub(super) fn change(&mut self, desired: Desired, subject: &Subject, now: Now) -> Option<Change> {
        match desired {
            Desired::Unknown => None,
            Desired::Status(crd_status) => Some(self.set(crd_status, subject, now)),
            Desired::None => Some(self.remove()),
        }
    }

    fn set(&mut self, mut crd_status: CrdStatus, subject: &Subject, now: Now) -> Change {
        if self.is_undeclared {
            crd_status.append(OLD_CRDS);
        }
        let counted = Some(crd_status.reason).filter(|reason| *reason != Reason::NoDefaults);
        let present = self.present.clone();
        let conditions: Arc<[Condition]> =
            crd_status.conditions(subject.generation, &present, &now.date.to_string()).into();
        let before = self.last.replace(conditions.clone()).unwrap_or_else(|| present.clone());
        let news = event::about_crd(&subject.regarding(), &before, &conditions, crd_status.without_names());
        if same(&conditions, &present) {
            self.last = Some(present);
            return Change { counted, write: None, news };
        }
        Change { counted, write: Some(conditions), news }
    }

    fn remove(&mut self) -> Change {
        self.last = None;
        let write = (!self.present.is_empty()).then(Arc::default);
        Change { counted: None, write, news: Vec::new() }
    }

    /// Records that these were written; the CRD has this revision since.
    pub(super) fn written(&mut self, conditions: Arc<[Condition]>, revision: CrdRevision) {
        (self.present, self.revision) = (conditions, revision);
    }

    /// Whether the CRD was last known to carry these.
    pub(super) fn stand(&self, conditions: &[Condition]) -> bool {
        same(conditions, &self.present)
    }

    /// Records what the CRD carries; returns whether another client has changed it.
    pub(super) fn read(&mut self, document: &Json) -> bool {
        self.revision = CrdRevision::of(document);
        let stood = std::mem::replace(&mut self.present, condition::present(document).into());
        !same(&stood, &self.present)
    }
}
