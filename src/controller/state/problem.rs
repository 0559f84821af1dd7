//! Why the defaults of one object are not stored.
//! It must not show a value of the object.

use crate::api::ObjectProblem;
use crate::domain::object::Identity;
use crate::domain::path::Path;
use crate::domain::plan::{Held, Hold, Rejection, RejectionKind};

/// Why the defaults of one object are not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controller) enum Trouble {
    /// A write would do harm.
    Held(Held),
    /// A write was refused.
    Rejected(Rejection),
    /// It changed, and could not be seen to since.
    Unknown,
}

impl Trouble {
    /// Whether it is not the object that is in the way, but something that is away.
    pub(in crate::controller) fn may_pass(&self) -> bool {
        match self {
            Self::Held(..) => false,
            Self::Rejected(rejection) => rejection.kind == RejectionKind::Unavailable,
            Self::Unknown => true,
        }
    }

    /// The trouble of an object, as the report has it.
    pub(in crate::controller) fn describe(&self, identity: &Identity) -> ObjectProblem {
        let (reason, message, paths) = match self {
            Self::Held(held) => {
                (held.reason.as_str(), harm(held), held.paths.iter().map(Path::to_string).collect())
            }
            Self::Rejected(rejection) => {
                let reason = match rejection.kind {
                    RejectionKind::Invalid => "Invalid",
                    RejectionKind::Admission => "Admission",
                    RejectionKind::TooLarge => "TooLarge",
                    RejectionKind::Unavailable => "Unavailable",
                    RejectionKind::Owners => "Owners",
                    RejectionKind::Other => "Refused",
                };
                (reason, rejection.message.clone(), rejection.fields.clone())
            }
            Self::Unknown => (
                "Unknown",
                "the API server could not be asked about it; tried again by itself".to_owned(),
                Vec::new(),
            ),
        };
        ObjectProblem {
            namespace: identity.namespace.clone(),
            name: identity.name.clone(),
            uid: identity.uid.clone(),
            reason: reason.to_owned(),
            message,
            paths,
        }
    }
}

/// What a write would do to an object that is held, and what to do about it.
fn harm(held: &Held) -> String {
    match held.reason {
        Hold::HiddenFields => {
            "managedFields (or last-applied) still name these fields, which the schema no longer knows, so etcd may hold them; \
             a write would destroy them"
                .to_owned()
        }
        Hold::Misfit => {
            "these values have another type than the schema says; a write would make the server forget who owns what"
                .to_owned()
        }
        Hold::InvalidDefaults if held.broken.is_empty() => {
            "these defaults are themselves invalid; correct them in the CRD".to_owned()
        }
        Hold::InvalidDefaults => format!(
            "the object would be invalid with these defaults ({}); correct the defaults or what they break in the CRD, or set \
             the fields in the object",
            held.broken_in_short()
        ),
    }
}
