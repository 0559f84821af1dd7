//! The state of one object: the metric's label, the report's reason and its sentence for each state, in one
//! place.

use super::object::IGNORE_ANNOTATION;
use super::plan::{Held, Hold, Rejection, RejectionKind, Skip};
use super::words::words;
use kube_structural_schema::json::DEPTH;
use kube_structural_schema::path::Path;

/// The state of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectState {
    /// Nothing was missing, and no request was needed to know.
    Stored,
    /// A write showed that nothing was missing.
    AlreadyStored,
    /// A write stored what was missing.
    Written {
        /// The object's resource version after it.
        resource_version: String,
    },
    /// It is not written, whatever it lacks.
    Skipped(Skipped),
    /// It went away.
    Gone,
    /// A write would do harm.
    Held(Held),
    /// A write was rejected.
    Rejected(Rejection),
    /// A write is due and the policy forbids it.
    Due,
    /// Only a write shows whether etcd holds its defaults, and the policy forbids it.
    Unproved,
    /// It changed, and has not been processed since.
    Unknown,
}

words! {
    /// The state of an object in one word: the label `outcome` of `etch_objects_total`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum StateKind {
        /// Nothing was missing.
        Stored,
        /// A write stored what was missing.
        Written,
        /// A write would do harm.
        Held,
        /// A write was rejected.
        Rejected,
        /// Its annotation asks for it to be ignored.
        Ignored,
        /// It is being deleted.
        Terminating,
        /// It is nested too deeply.
        TooDeep,
        /// The policy does not select it.
        NotSelected,
        /// It went away.
        Gone,
        /// A write is due and the policy forbids it.
        Due,
        /// Only a write shows whether etcd holds its defaults, and the policy forbids it.
        Unproved,
        /// It changed, and has not been processed since.
        Unknown,
    }
}

/// Why an object is not written, and whether that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Why.
    pub why: Skip,
    /// Whether etcd lacks a default of it, or may; `false` for one that is not selected, at which Etch does
    /// not look.
    pub lacks: bool,
}

/// What prevents an object's defaults from being stored, as the report shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// In one word.
    pub reason: &'static str,
    /// In a sentence without values.
    pub message: String,
    /// The fields that it is about.
    pub paths: Vec<String>,
}

impl ObjectState {
    /// The state in one word.
    pub fn kind(&self) -> StateKind {
        match self {
            Self::Stored | Self::AlreadyStored => StateKind::Stored,
            Self::Written { .. } => StateKind::Written,
            Self::Skipped(skipped) => skipped.kind(),
            Self::Gone => StateKind::Gone,
            Self::Held(_) => StateKind::Held,
            Self::Rejected(_) => StateKind::Rejected,
            Self::Due => StateKind::Due,
            Self::Unproved => StateKind::Unproved,
            Self::Unknown => StateKind::Unknown,
        }
    }

    /// What prevents the object's defaults from being stored; `None` if nothing does, or only the policy.
    pub fn problem(&self) -> Option<Problem> {
        match self {
            Self::Stored
            | Self::AlreadyStored
            | Self::Written { .. }
            | Self::Gone
            | Self::Due
            | Self::Unproved => None,
            Self::Skipped(skipped) => Some(skipped.problem()),
            Self::Held(held) => Some(Problem {
                reason: held.reason.as_str(),
                message: harm(held),
                paths: held.paths.iter().map(Path::to_string).collect(),
            }),
            Self::Rejected(rejection) => Some(Problem {
                reason: rejection.kind.as_str(),
                message: rejection.message.clone(),
                paths: rejection.fields.clone(),
            }),
            Self::Unknown => Some(Problem {
                reason: StateKind::Unknown.as_str(),
                message: "not processed since its last change: the API server did not answer; retrying"
                    .to_owned(),
                paths: Vec::new(),
            }),
        }
    }

    /// Whether etcd holds every default of the object.
    pub fn is_stored(&self) -> bool {
        match self {
            Self::Stored | Self::AlreadyStored | Self::Written { .. } => true,
            Self::Skipped(_)
            | Self::Gone
            | Self::Held(_)
            | Self::Rejected(_)
            | Self::Due
            | Self::Unproved
            | Self::Unknown => false,
        }
    }

    /// Whether a request was sent for the object.
    pub fn took_request(&self) -> bool {
        match self {
            Self::AlreadyStored | Self::Written { .. } | Self::Rejected(_) | Self::Unknown => true,
            Self::Stored | Self::Skipped(_) | Self::Gone | Self::Held(_) | Self::Due | Self::Unproved => {
                false
            }
        }
    }

    /// Whether admission changes the object on each write: the next write changes it as well.
    pub fn is_mutated(&self) -> bool {
        matches!(self, Self::Rejected(rejection) if rejection.kind == RejectionKind::Mutated)
    }

    /// Whether the object is unanswered: the API server or a webhook is away, and the object itself may be
    /// fine.
    pub fn is_unanswered(&self) -> bool {
        match self {
            Self::Rejected(rejection) => rejection.kind == RejectionKind::Unavailable,
            Self::Unknown => true,
            Self::Stored
            | Self::AlreadyStored
            | Self::Written { .. }
            | Self::Skipped(_)
            | Self::Gone
            | Self::Held(_)
            | Self::Due
            | Self::Unproved => false,
        }
    }
}

impl Skipped {
    /// The state in one word.
    pub fn kind(self) -> StateKind {
        match self.why {
            Skip::Ignored | Skip::IgnoredUnclear => StateKind::Ignored,
            Skip::Terminating => StateKind::Terminating,
            Skip::TooDeep => StateKind::TooDeep,
            Skip::NotSelected => StateKind::NotSelected,
        }
    }

    /// Why it is not written, and whether that matters.
    pub fn problem(self) -> Problem {
        let why = match self.why {
            Skip::Ignored => format!("ignored by its annotation {IGNORE_ANNOTATION}"),
            Skip::IgnoredUnclear => format!(
                "ignored by its annotation {IGNORE_ANNOTATION}, whose value is neither \"true\" nor \"false\""
            ),
            Skip::Terminating => "it is being deleted".to_owned(),
            Skip::NotSelected => "not selected by the policy (objects)".to_owned(),
            Skip::TooDeep => {
                format!("nested more than {DEPTH} levels deep, so Etch leaves it alone; make it flatter")
            }
        };
        let message = match (self.why, self.lacks) {
            (Skip::NotSelected, _) => why,
            (_, true) => format!("{why}; etcd may lack its defaults"),
            (_, false) => format!("{why}; no default missing"),
        };
        Problem { reason: self.why.as_str(), message, paths: Vec::new() }
    }
}

/// What a write would do to an object that is held, and what to do about it.
fn harm(held: &Held) -> String {
    match held.reason {
        Hold::HiddenFields => {
            "etcd may still hold these fields, which reads do not show: managedFields or last-applied name \
             them, or they had a default before; a write would destroy them"
                .to_owned()
        }
        Hold::Misfit => {
            "these values have another type than the schema, or are list items without a key; a write would \
             remove entries of managedFields"
                .to_owned()
        }
        Hold::InvalidDefaults if held.broken.is_empty() => {
            "these defaults are themselves invalid; correct them in the CRD".to_owned()
        }
        Hold::InvalidDefaults => format!(
            "the object would be invalid with these defaults ({}); correct the defaults or what they break \
             in the CRD, or set the fields in the object",
            held.broken_in_short()
        ),
    }
}

/// What kind of rejection a report names so; `None` if it is not one.
pub fn rejected_for(word: &str) -> Option<RejectionKind> {
    RejectionKind::ALL.iter().copied().find(|kind| kind.as_str() == word)
}
