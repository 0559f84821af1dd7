//! What the outcome of a write counts as: in the metrics, and as load of the server.

use crate::cluster::Pressure;
use crate::metrics::WriteOutcome;
use etch_core::call_error::CallError;
use etch_core::plan::Outcome;

/// How the metrics count the outcome.
pub(crate) fn counted(outcome: &Result<Outcome, CallError>) -> WriteOutcome {
    match outcome {
        Ok(Outcome::Written { .. }) => WriteOutcome::Written,
        Ok(Outcome::Followed(_)) => WriteOutcome::Followed,
        Ok(Outcome::AlreadyStored(_)) => WriteOutcome::AlreadyStored,
        Ok(Outcome::Gone) => WriteOutcome::Gone,
        Ok(Outcome::Conflict) => WriteOutcome::Conflict,
        Ok(
            Outcome::NeedsRewrite
            | Outcome::IdentityWritten
            | Outcome::Unproved
            | Outcome::Altered
            | Outcome::Mutated { .. },
        ) => WriteOutcome::Unproved,
        // Nothing was written.
        Ok(Outcome::Harmful { .. } | Outcome::CrdChanged) => WriteOutcome::Conflict,
        Ok(Outcome::Rejected(_)) => WriteOutcome::Rejected,
        Ok(Outcome::Forbidden { .. }) => WriteOutcome::Forbidden,
        Ok(Outcome::OwnersLost { .. }) => WriteOutcome::OwnersLost,
        Ok(Outcome::FieldsDropped { .. }) => WriteOutcome::FieldsDropped,
        Err(_) => WriteOutcome::Failed,
    }
}

/// What an outcome indicates about the server's load.
pub(crate) fn pressure(outcome: &Result<Outcome, CallError>) -> Pressure {
    match outcome {
        Err(error) if matches!(error.code(), Some(429 | 503 | 504)) => {
            Pressure::Overload(error.retry_after())
        }
        Err(CallError::TimedOut(..) | CallError::Connection(..) | CallError::BrokenOff(..)) => {
            Pressure::Overload(None)
        }
        Ok(Outcome::Written { .. }) => Pressure::None,
        Ok(_) | Err(_) => Pressure::Unknown,
    }
}
