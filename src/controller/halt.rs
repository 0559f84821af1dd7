//! Why the task of a CRD cannot go on, and what is said about it meanwhile.
//! It must not decide how long to wait.

use super::judge::Judged;
use super::pass::Interruption;
use super::tend::Stop;
use super::verdict::verdict;
use crate::cluster::{CallError, Missing};
use crate::domain::condition::{Reason, Verdict};

/// Why a task has to begin again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Halt {
    #[error("{0}")]
    Forbidden(Missing),
    #[error(transparent)]
    Interrupted(#[from] Interruption),
    #[error("{0} objects could not be written yet")]
    Incomplete(u64),
    #[error("more objects are in trouble than are remembered by name; all are looked at again")]
    Overflow,
    #[error("the CRD has no defaults any more, and no object waits for what they left behind")]
    NothingLeft,
    #[error("the watch ended: {0}")]
    Watch(CallError),
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Halt {
    /// What there is to say; none where it is over at once.
    pub(super) fn verdict(&self, judged: &Judged) -> Option<Verdict> {
        let say = |reason, message: String| Some(verdict(judged, Some(false), reason, message));
        match self {
            Self::Forbidden(missing) => say(
                Reason::Forbidden,
                format!("a permission is missing; add this rule to a role of Etch's: {missing}"),
            ),
            Self::Interrupted(Interruption::Stop(Stop::Forbidden { verb })) => {
                say(Reason::Forbidden, format!("the permission to {verb} the objects is missing"))
            }
            Self::Interrupted(Interruption::Stop(lost @ Stop::OwnersLost { .. })) => {
                say(Reason::ObjectsRejected, lost.to_string())
            }
            Self::Interrupted(Interruption::TooManyRejected(_)) => {
                say(Reason::ObjectsRejected, self.to_string())
            }
            Self::Overflow | Self::NothingLeft => None,
            Self::Watch(error) if error.is_expired() => None,
            Self::Interrupted(Interruption::List(CallError::Refused(refusal)))
            | Self::Watch(CallError::Refused(refusal))
                if refusal.is_failed_conversion() =>
            {
                say(
                    Reason::ConversionFailed,
                    "objects cannot be read at the storage version: the conversion webhook fails".to_owned(),
                )
            }
            other => say(Reason::InProgress, format!("{other}; tried again by itself")),
        }
    }
}
