//! What can go wrong with one request.
//! Its texts must not hold what a server said beyond codes, reasons and field names: it may quote values of objects.

use std::time::Duration;

use super::Refusal;

/// Why a request has no usable answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered, and not with success.
    #[error("the API server answered {0}")]
    Refused(Box<Refusal>),
    /// No answer in time. The request may have been carried out.
    #[error("the API server did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The connection failed. The request may have been carried out.
    #[error("the connection to the API server failed: {0}")]
    Connection(#[source] Box<kube::Error>),
    /// The connection broke in the middle of an answer.
    #[error("the answer of the API server broke off: {0}")]
    BrokenOff(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An answer that is not what the API promises; its place only, for serde's own texts quote what they found.
    #[error("the answer of the API server is not understood at line {line}, column {column}")]
    Malformed {
        /// Counted from one; zero where the answer as a whole is meant.
        line: usize,
        /// Counted from one.
        column: usize,
    },
    /// A watch that the server ended as soon as it had begun (fact K2).
    #[error("the API server closed the watch as soon as it had begun")]
    ClosedAtOnce,
}

impl CallError {
    /// An answer that could not be read.
    pub(super) fn malformed(error: serde_json::Error) -> Self {
        Self::Malformed { line: error.line(), column: error.column() }
    }

    /// The HTTP status, where there was one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            _ => None,
        }
    }

    /// Whether the resource version that was asked for is too old: only a new list helps.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// How long the server asked us to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            _ => None,
        }
    }
}
