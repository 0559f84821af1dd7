//! Outcomes of writes as the metrics count them, and as load of the server.

use super::outcome::Outcome;
use crate::call_error::CallError;
use crate::pace::Pressure;
use crate::words::words;
use kube_structural_schema::path::Path;

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

/// Why nothing was stored, and whether that is a failure; `None` if there is nothing to explain.
pub fn explained(outcome: &Result<Outcome, CallError>) -> Option<(String, bool)> {
    match outcome {
        Ok(Outcome::Rejected(rejection)) => Some((rejection.message.clone(), true)),
        Err(error) => Some((error.to_string(), true)),
        Ok(Outcome::Forbidden { verb }) => {
            Some((format!("the verb {} is not permitted", verb.as_str()), true))
        }
        Ok(Outcome::OwnersLost { managers }) => Some((format!("owners lost: {}", managers.join(", ")), true)),
        Ok(Outcome::FieldsDropped { paths }) => Some((format!("fields dropped: {}", in_words(paths)), true)),
        Ok(Outcome::CrdChanged) => Some(("the CRD changed".to_owned(), false)),
        Ok(Outcome::Harmful { managers }) => {
            let managers = managers.join(", ");
            Some((format!("the write would change fields of other owners: {managers}"), false))
        }
        Ok(Outcome::NeedsRewrite) => Some(("the write must rewrite the owners".to_owned(), false)),
        Ok(
            Outcome::Written { .. }
            | Outcome::Followed(_)
            | Outcome::AlreadyStored(_)
            | Outcome::Gone
            | Outcome::Conflict
            | Outcome::IdentityWritten
            | Outcome::Unproved
            | Outcome::Altered
            | Outcome::Mutated { .. },
        ) => None,
    }
}

/// Places in an object, without the keys of maps.
pub fn in_words(paths: &[Path]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.without_keys().to_string()).collect();
    paths.join(" ")
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
