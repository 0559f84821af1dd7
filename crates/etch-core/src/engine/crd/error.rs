//! Why the machine of a CRD cannot continue, the CRD's conditions meanwhile, and what follows.

use std::time::{Duration, Instant};

use super::protocol::Next;
use crate::api::LostOwners;
use crate::call_error::CallError;
use crate::condition::{CrdStatus, Reason};
use crate::crd::Unserved;
use crate::engine::backoff::Backoff;
use crate::engine::pass::PassError;
use crate::engine::stop_reason::StopReason;
use crate::engine::sweep::SweepError;
use crate::findings::SchemaFindings;
use crate::message::{crd_status, forbidden};
use crate::rbac::MissingPermissions;
use crate::refusal::Refusal;
use crate::served_elsewhere::ServedElsewhere;

/// The longest wait for a conversion webhook: the request goes through an API server that works.
const CONVERT_AGAIN: Duration = Duration::from_secs(30);
/// The longest wait for a resource that is not served, as while a CRD is established, or again after a
/// restore: the API server answers so without reading etcd, and nothing else shows when it is over.
const SERVED_AGAIN: Duration = Duration::from_secs(10);
/// The wait while another server answers for the CRD: nothing shows when that is over.
const SERVED_BY_CRD_AGAIN: Duration = Duration::from_secs(600);
/// The longest wait after a write was forbidden.
const FORBIDDEN_AGAIN: Duration = Duration::from_secs(30);
/// The wait for the end of a StorageVersionMigration.
const MIGRATED_AGAIN: Duration = Duration::from_secs(30);
/// How many field managers a report names whose entries are gone.
const MANAGERS: usize = 10;

/// Why the machine has to begin again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CrdError {
    /// A permission is missing.
    #[error("a permission is missing: {0}")]
    Forbidden(MissingPermissions),
    /// Permissions reach other objects than when the attempt began.
    #[error("Etch may read the objects of other namespaces than before; reading them again")]
    PermissionsChanged,
    /// Another server answers for the CRD's objects.
    #[error("{0}")]
    ServedElsewhere(ServedElsewhere),
    /// The CRD's objects are not served.
    #[error("the API server does not serve this CRD: {0}")]
    NotServed(Unserved),
    /// A sweep, or the processing of an object.
    #[error(transparent)]
    Interrupted(SweepError),
    /// A sweep left more objects open than the tally names.
    #[error("too many pending objects to track; rescanning")]
    Incomplete,
    /// More objects are to be tried again than the tally names.
    #[error("more objects failed than Etch tracks by name; rescanning")]
    Overflow,
    /// The canary is over, and the others are to be written.
    #[error("the canary wrote {0} objects; writing all others")]
    CanaryPassed(u64),
    /// The API server or a webhook has not answered about some objects of the canary.
    #[error("no answer to the writes of {0} of the canary's objects")]
    CanaryUnanswered(u64),
    /// Nothing is to be done for a CRD without defaults.
    #[error("the CRD no longer has defaults, and no object waits for a write because of the old ones")]
    NothingLeft,
    /// Versions were taken out of `status.storedVersions`.
    #[error("old versions were taken out of status.storedVersions")]
    Trimmed,
    /// Kubernetes' own migrator (a StorageVersionMigration) writes the objects.
    #[error("the StorageVersionMigration {0} writes the objects; Etch waits for its end")]
    Migrated(String),
    /// It is time to verify, or a change may have been missed.
    #[error("verifying again the objects written since the schema changed")]
    Verify,
    /// What is on record may be about another past.
    #[error("etcd may have been restored: {0}; verifying every object")]
    Restored(Sign),
    /// The report could not be written that names the defaults, and nothing is stored before.
    #[error(
        "nothing is stored before the DefaultsReport names the defaults, and it cannot be written, see \
         Etch's log"
    )]
    Unreported,
    /// A watch.
    #[error("the watch ended: {0}")]
    Watch(CallError),
    /// A request.
    #[error(transparent)]
    Call(CallError),
}

/// What shows that the cluster is not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Sign {
    /// The report is another one.
    #[error("the DefaultsReport is not the one that Etch wrote last")]
    Report,
    /// The Lease is an older one, and the report lacks what objects have changed since.
    #[error("the Lease is older than before")]
    Lease,
    /// The list is older than what is on record.
    #[error("the resource version of the objects is lower than before")]
    Revision,
}

impl From<LostOwners> for CrdError {
    fn from(lost: LostOwners) -> Self {
        let LostOwners { object, managers } = lost;
        Self::Interrupted(SweepError::Stop(StopReason::OwnersLost { object, managers }))
    }
}

impl From<CallError> for CrdError {
    fn from(error: CallError) -> Self {
        Self::call(error)
    }
}

impl From<PassError> for CrdError {
    fn from(error: PassError) -> Self {
        match error {
            PassError::Sweep(error) => error.into(),
            PassError::Restored => Self::Restored(Sign::Revision),
        }
    }
}

impl From<SweepError> for CrdError {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::List(error) => {
                Self::of_call(error, |error| Self::Interrupted(SweepError::List(error)))
            }
            error => Self::Interrupted(error),
        }
    }
}

impl CrdError {
    /// Of a request.
    pub fn call(error: CallError) -> Self {
        Self::of_call(error, Self::Call)
    }

    /// Of a watch.
    pub fn watch(error: CallError) -> Self {
        Self::of_call(error, Self::Watch)
    }

    /// `otherwise`, unless another server has taken over, or Etch may not find out which server serves the
    /// objects: then that is the error.
    fn of_call(error: CallError, otherwise: impl FnOnce(CallError) -> Self) -> Self {
        match error {
            CallError::ServedElsewhere(elsewhere) => Self::ServedElsewhere(elsewhere),
            CallError::MissingPermission(missing) => Self::Forbidden(missing),
            error => otherwise(error),
        }
    }
}

impl CrdError {
    /// Whether objects cannot be read because the conversion webhook fails.
    pub fn is_failed_conversion(&self) -> bool {
        self.refusal().is_some_and(Refusal::is_failed_conversion)
    }

    /// What the API server answered instead of objects, if it did.
    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Interrupted(SweepError::List(CallError::Refused(refusal)))
            | Self::Watch(CallError::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }

    /// The write that lost owners, if that is the reason, in the form of the report.
    pub fn owners_lost(&self) -> Option<LostOwners> {
        match self {
            Self::Interrupted(SweepError::Stop(StopReason::OwnersLost { object, managers })) => {
                let managers = managers.iter().take(MANAGERS).cloned().collect();
                Some(LostOwners { object: object.clone(), managers })
            }
            _ => None,
        }
    }

    /// Whether the CRD's objects are not served.
    pub fn is_not_served(&self) -> bool {
        match self {
            Self::Call(error) | Self::Watch(error) | Self::Interrupted(SweepError::List(error)) => {
                error.code() == Some(404)
            }
            _ => false,
        }
    }

    /// What follows. If a write has dropped fields, the API server shows whether the CRD has changed.
    pub fn next(&self, backoff: &mut Backoff, now: Instant) -> Next {
        match self {
            Self::Trimmed | Self::Interrupted(SweepError::Stop(StopReason::CrdChanged)) => Next::Changed,
            Self::Forbidden(missing) => Next::Permission(missing.clone()),
            // A refused write names one verb. The next attempt asks about all of them before it writes.
            Self::Interrupted(SweepError::Stop(StopReason::Forbidden(_))) => {
                Next::Wait(backoff.failed(now, None).min(FORBIDDEN_AGAIN))
            }
            Self::ServedElsewhere(_) => Next::Wait(SERVED_BY_CRD_AGAIN),
            Self::Migrated(_) => Next::Wait(MIGRATED_AGAIN),
            Self::Interrupted(
                SweepError::TooManyRejected(_) | SweepError::Stop(StopReason::OwnersLost { .. }),
            ) => Next::Idle,
            Self::Call(failed) | Self::Watch(failed) | Self::Interrupted(SweepError::List(failed)) => {
                let wait = backoff.failed(now, failed.retry_after());
                let longest = if self.is_failed_conversion() {
                    CONVERT_AGAIN
                } else if self.is_not_served() {
                    SERVED_AGAIN
                } else {
                    wait
                };
                Next::Wait(wait.min(longest))
            }
            // The wait is over already.
            Self::Overflow
            | Self::PermissionsChanged
            | Self::NothingLeft
            | Self::CanaryPassed(_)
            | Self::Verify
            | Self::Interrupted(SweepError::Stop(StopReason::Pause)) => Next::Wait(Duration::ZERO),
            // No user can cancel a sweep of the operator.
            Self::Incomplete
            | Self::CanaryUnanswered(_)
            | Self::NotServed(_)
            | Self::Restored(_)
            | Self::Unreported
            | Self::Interrupted(SweepError::Stop(StopReason::Ended | StopReason::FieldsDropped { .. })) => {
                Next::Wait(backoff.failed(now, None))
            }
        }
    }

    /// The conditions meanwhile; `None` if the attempt is repeated at once.
    pub fn crd_status(&self, findings: &SchemaFindings) -> Option<CrdStatus> {
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
            | Self::PermissionsChanged
            | Self::NothingLeft
            | Self::CanaryPassed(_)
            | Self::Trimmed
            | Self::Verify
            | Self::Interrupted(SweepError::Stop(StopReason::CrdChanged | StopReason::Pause)) => None,
            Self::Interrupted(SweepError::Stop(dropped @ StopReason::FieldsDropped { .. })) => {
                nameless(status(Reason::InProgress, dropped.to_string()), dropped.without_names())
            }
            Self::Watch(error) if error.is_expired() => None,
            failed if failed.is_failed_conversion() => {
                let message = "cannot read objects at the storage version: the conversion webhook fails or \
                    does not answer";
                status(Reason::ConversionFailed, message.to_owned())
            }
            failed if failed.refusal().is_some_and(Refusal::is_of_lost_version) => {
                let message = "cannot read objects: etcd holds some at a version that the CRD no longer has";
                status(Reason::ConversionFailed, message.to_owned())
            }
            failed if failed.refusal().is_some_and(Refusal::is_of_undecodable_value) => {
                let message = "cannot read objects: etcd holds a value that the API server cannot decode";
                status(Reason::ObjectsUnreadable, message.to_owned())
            }
            Self::Incomplete | Self::Migrated(_) | Self::Restored(_) => {
                status(Reason::InProgress, self.to_string())
            }
            other => status(Reason::InProgress, format!("{other}; retrying")),
        }
    }
}
