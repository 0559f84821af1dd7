//! Why the task of a CRD cannot go on, and its conditions meanwhile.
//! It must not decide how long to wait.

use std::time::Duration;

use etch_core::api::LostOwners;
use etch_core::call_error::CallError;
use etch_core::condition::{CrdStatus, Reason};
use etch_core::crd::Unserved;
use etch_core::engine::pass::PassError;
use etch_core::engine::stop_reason::StopReason;
use etch_core::engine::sweep::SweepError;
use etch_core::findings::SchemaFindings;
use etch_core::message::{crd_status, forbidden};
use etch_core::rbac::MissingPermissions;
use etch_core::served_elsewhere::ServedElsewhere;

/// How many field managers a report names whose entries are gone.
const MANAGERS: usize = 10;

/// Why a task has to begin again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    #[error("a permission is missing: {0}")]
    Forbidden(MissingPermissions),
    #[error("{0}")]
    ServedElsewhere(ServedElsewhere),
    #[error("the API server does not serve this CRD: {0}")]
    NotServed(Unserved),
    #[error(transparent)]
    Interrupted(SweepError),
    #[error("too many pending objects to track; rescanning")]
    Incomplete,
    #[error("more objects failed than Etch tracks by name; rescanning")]
    Overflow,
    #[error("the CRD no longer has defaults, and no object waits for a write because of the old ones")]
    NothingLeft,
    #[error("verifying again the objects written since the schema changed")]
    Verify,
    #[error("etcd may have been restored: {0}; verifying every object")]
    Restored(Sign),
    #[error("the watch ended: {0}")]
    Watch(CallError),
    #[error(transparent)]
    Call(CallError),
}

/// What shows that the cluster is not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Sign {
    #[error("the DefaultsReport is not the one that Etch wrote last")]
    Report,
    #[error("the resource version of the objects is lower than before")]
    Revision,
}

/// Why a CRD could not be reconciled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("a task panicked")]
    Panicked,
}

impl From<LostOwners> for TaskError {
    fn from(lost: LostOwners) -> Self {
        let LostOwners { object, managers } = lost;
        Self::Interrupted(SweepError::Stop(StopReason::OwnersLost { object, managers }))
    }
}

impl From<CallError> for TaskError {
    fn from(error: CallError) -> Self {
        Self::call(error)
    }
}

impl From<PassError> for TaskError {
    fn from(error: PassError) -> Self {
        match error {
            PassError::Sweep(error) => error.into(),
            PassError::Restored => Self::Restored(Sign::Revision),
        }
    }
}

impl From<SweepError> for TaskError {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::List(error) => {
                Self::of_call(error, |error| Self::Interrupted(SweepError::List(error)))
            }
            error => Self::Interrupted(error),
        }
    }
}

impl TaskError {
    /// Of a request.
    pub(crate) fn call(error: CallError) -> Self {
        Self::of_call(error, Self::Call)
    }

    /// Of a watch.
    pub(crate) fn watch(error: CallError) -> Self {
        Self::of_call(error, Self::Watch)
    }

    /// Where another server has taken over, or nobody may ask who serves the objects, that is what went
    /// wrong.
    fn of_call(error: CallError, otherwise: impl FnOnce(CallError) -> Self) -> Self {
        match error {
            CallError::ServedElsewhere(elsewhere) => Self::ServedElsewhere(elsewhere),
            CallError::MissingPermission(missing) => Self::Forbidden(missing),
            error => otherwise(error),
        }
    }
}

impl Error {
    /// How long the server asked us to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.retry_after(),
            Self::Panicked => None,
        }
    }
}

impl TaskError {
    /// Whether it is for the conversion webhook that objects cannot be read.
    pub(crate) fn is_failed_conversion(&self) -> bool {
        match self {
            Self::Interrupted(SweepError::List(CallError::Refused(refusal)))
            | Self::Watch(CallError::Refused(refusal)) => refusal.is_failed_conversion(),
            _ => false,
        }
    }

    /// The write that lost owners, where that is why, as the report keeps it.
    pub(crate) fn owners_lost(&self) -> Option<LostOwners> {
        match self {
            Self::Interrupted(SweepError::Stop(StopReason::OwnersLost { object, managers })) => {
                let managers = managers.iter().take(MANAGERS).cloned().collect();
                Some(LostOwners { object: object.clone(), managers })
            }
            _ => None,
        }
    }

    /// Whether the CRD's objects are not served.
    pub(crate) fn is_not_served(&self) -> bool {
        match self {
            Self::Call(error) | Self::Watch(error) | Self::Interrupted(SweepError::List(error)) => {
                error.code() == Some(404)
            }
            _ => false,
        }
    }

    /// The conditions meanwhile; none where it is retried at once.
    pub(crate) fn crd_status(&self, findings: &SchemaFindings) -> Option<CrdStatus> {
        let status = |reason, message: String| Some(crd_status(findings, Some(false), reason, message));
        let nameless = |crd_status: Option<CrdStatus>, nameless: String| {
            crd_status.map(|crd_status| CrdStatus { nameless: Some(nameless), ..crd_status })
        };
        match self {
            Self::Forbidden(missing)
            | Self::Interrupted(SweepError::Stop(StopReason::Forbidden(missing))) => {
                status(Reason::Forbidden, forbidden(missing))
            }
            Self::NotServed(_) => status(Reason::NotServed, self.to_string()),
            Self::ServedElsewhere(elsewhere) => {
                nameless(status(Reason::NotServed, self.to_string()), elsewhere.without_names())
            }
            Self::Interrupted(SweepError::Stop(lost @ StopReason::OwnersLost { .. })) => {
                nameless(status(Reason::ObjectsRejected, lost.to_string()), lost.without_names())
            }
            Self::Interrupted(SweepError::TooManyRejected(_)) => {
                status(Reason::ObjectsRejected, self.to_string())
            }
            Self::Overflow
            | Self::NothingLeft
            | Self::Verify
            | Self::Interrupted(SweepError::Stop(StopReason::CrdChanged)) => None,
            Self::Interrupted(SweepError::Stop(dropped @ StopReason::FieldsDropped { .. })) => {
                nameless(status(Reason::InProgress, dropped.to_string()), dropped.without_names())
            }
            Self::Watch(error) if error.is_expired() => None,
            failed if failed.is_failed_conversion() => {
                let message = "cannot read objects at the storage version: the conversion webhook fails or does not answer";
                status(Reason::ConversionFailed, message.to_owned())
            }
            Self::Interrupted(SweepError::List(CallError::Refused(refusal)))
            | Self::Watch(CallError::Refused(refusal))
                if refusal.is_of_lost_version() =>
            {
                let message = "cannot read objects: etcd holds some at a version that the CRD no longer has";
                status(Reason::ConversionFailed, message.to_owned())
            }
            Self::Incomplete | Self::Restored(_) => status(Reason::InProgress, self.to_string()),
            other => status(Reason::InProgress, format!("{other}; retrying")),
        }
    }
}
