//! What can go wrong with one request. Its texts hold no more of a server's answer than codes, reasons and
//! field names: it may quote values of objects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::GROUP;
use crate::crd::Resource;
use crate::rbac::MissingPermissions;
use crate::refusal::Refusal;
use crate::served_elsewhere::ServedElsewhere;
use kube_structural_schema::json::{DEPTH, Json, JsonError};

/// Why a request has no usable answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The server answered, and not with success.
    #[error("the API server answered {0}")]
    Refused(Box<Refusal>),
    /// No answer in time. The request may have been carried out.
    #[error("{0} did not answer within {secs} s", secs = .1.as_secs())]
    TimedOut(Server, Duration),
    /// The connection failed, for this cause. The request may have been carried out.
    #[error("cannot reach {0}: {1}")]
    Connection(Server, String),
    /// The connection broke in the middle of an answer, for this cause.
    #[error("the answer of {0} broke off: {1}")]
    BrokenOff(Server, String),
    /// The server does not know Etch's own resources.
    #[error("Etch's CRDs are not installed: `etch crds | kubectl apply -f -`")]
    NotInstalled,
    /// An answer that is not what the API promises; its place only, for serde's own texts quote what they
    /// found.
    #[error("cannot parse the answer of the API server at line {line}, column {column}")]
    Malformed {
        /// Counted from one; zero where the answer as a whole is meant.
        line: usize,
        /// Counted from one.
        column: usize,
    },
    /// An answer that is nested deeper than anything is read.
    #[error("cannot read the answer of the API server: it is nested more than {DEPTH} levels deep")]
    TooDeep,
    /// A watch that the server ended as soon as it had begun (fact K2).
    #[error("the API server closed the watch as soon as it opened")]
    ClosedAtOnce,
    /// Requests for a CRD's objects would reach those of another server.
    #[error("{0}")]
    ServedElsewhere(ServedElsewhere),
    /// A permission is missing without which nothing is to be asked for.
    #[error("a permission is missing: {0}")]
    MissingPermission(MissingPermissions),
}

/// Which API server was asked, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server(Option<Arc<str>>);

impl Server {
    /// The server at this URL.
    pub fn at(url: &str) -> Self {
        Self(Some(url.trim_end_matches('/').into()))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(url) => write!(f, "the API server {url}"),
            None => f.write_str("the API server"),
        }
    }
}

impl CallError {
    /// An answer that could not be read.
    pub fn malformed(error: impl Into<JsonError>) -> Self {
        match error.into() {
            JsonError::TooDeep => Self::TooDeep,
            JsonError::Malformed(error) => Self::Malformed { line: error.line(), column: error.column() },
        }
    }

    /// The HTTP status, where there was one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::NotInstalled => Some(404),
            _ => None,
        }
    }

    /// The same, where it is one of Etch's own resources that is not served.
    pub fn of_own_resource(self) -> Self {
        if self.code() == Some(404) { Self::NotInstalled } else { self }
    }

    /// Whether the CRD of what was applied lacks a field of it.
    pub fn is_of_undeclared_field(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == 500 && refusal.is_of_undeclared_field())
    }

    /// Whether the resource version that was asked for is too old: only a new list helps.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// The oldest resource version from which a watch may begin, if the server names it because an older one
    /// was asked for.
    pub fn oldest_remembered(&self) -> Option<u64> {
        match self {
            Self::Refused(refusal) if self.is_expired() => refusal.oldest_remembered(),
            _ => None,
        }
    }

    /// Whether no server was reached. A proxy in front of a server answers 502 to 504 without a reason while
    /// it reaches no server; the server itself gives a reason, which may concern only this request.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Connection(..) => true,
            Self::Refused(refusal) => matches!(refusal.code, 502..=504) && refusal.reason.is_empty(),
            _ => false,
        }
    }

    /// How long the server asked us to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            _ => None,
        }
    }
}

/// The answer about something that may not exist; `None` if it does not.
pub fn if_there<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Err(error) if error.code() == Some(404) => Ok(None),
        answer => answer.map(Some),
    }
}

/// The answer about one object; `None` if there is no such object. A 404 that names no object is an error: it
/// comes from an API server or a proxy in front of it that does not serve the resource, or not yet.
pub fn if_exists<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Err(CallError::Refused(refusal)) if refusal.is_missing_object() => Ok(None),
        answer => answer.map(Some),
    }
}

/// An answer in JSON.
pub fn json(body: &[u8]) -> Result<Json, CallError> {
    Json::parse(body).map_err(CallError::malformed)
}

/// Why objects cannot be listed. The server's own words may quote values.
pub fn unreadable(code: Option<u16>, crd: &str) -> String {
    match code {
        Some(403) => format!("Etch may not list {crd}, see `etch rbac`"),
        Some(code) => format!("the API server answered {code} to the list"),
        None => "the API server did not answer".to_owned(),
    }
}

/// An error about a resource, which may be one of Etch's own.
pub fn own(resource: &Resource, error: CallError) -> CallError {
    if resource.group == GROUP { error.of_own_resource() } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_server() {
        let server = Server::at("https://127.0.0.1:6443/");
        assert_eq!(
            CallError::Connection(server.clone(), "connection refused".to_owned()).to_string(),
            "cannot reach the API server https://127.0.0.1:6443: connection refused"
        );
        assert_eq!(
            CallError::TimedOut(server, Duration::from_secs(65)).to_string(),
            "the API server https://127.0.0.1:6443 did not answer within 65 s"
        );
    }

    #[test]
    fn a_server_that_gives_a_reason_was_reached() {
        let refused = |code: u16, body: &str| {
            CallError::Refused(Box::new(Refusal::read(code, None, body.as_bytes()))).is_lost()
        };
        assert!(refused(502, "<html>") && refused(503, "") && refused(504, "upstream request timeout"));
        assert!(!refused(503, r#"{ "reason": "ServiceUnavailable" }"#));
        assert!(!refused(504, r#"{ "reason": "Timeout" }"#));
        assert!(!refused(500, "") && !refused(404, "404 page not found"));
        assert!(CallError::Connection(Server::default(), String::new()).is_lost());
        assert!(!CallError::TimedOut(Server::default(), Duration::ZERO).is_lost());
    }
}
