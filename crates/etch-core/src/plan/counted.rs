//! Outcomes of writes as the metrics count them, and as load of the server.

use super::outcome::Outcome;
use crate::call_error::CallError;
use crate::pace::Pressure;
use crate::words::words;

words! {
    /// The outcome of one write to an object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum WriteOutcome {
        /// Something was missing in etcd, and is there now.
        Written,
        /// A stored default was moved to the new one, as a policy asks for.
        Followed,
        /// Nothing was missing.
        AlreadyStored,
        /// The object is gone.
        Gone,
        /// Another client wrote first.
        Conflict,
        /// It is not proved that the defaults are stored; the object is read and decided about again.
        Unproved,
        /// The object was rejected.
        Rejected,
        /// A permission is missing.
        Forbidden,
        /// The server forgot owners.
        OwnersLost,
        /// The server dropped fields that it no longer knew.
        FieldsDropped,
        /// The server could not answer.
        Failed,
    }
}

/// How the metrics count the outcome.
pub fn counted(outcome: &Result<Outcome, CallError>) -> WriteOutcome {
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
pub fn pressure(outcome: &Result<Outcome, CallError>) -> Pressure {
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
