//! Requests and answers as the metrics count them.

use http::{Method, Uri};

use crate::words::words;

words! {
    /// What was asked of the API server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum RequestVerb {
        /// One object.
        Get,
        /// A page of objects.
        List,
        /// A watch was opened.
        Watch,
        /// Server-side apply, merge patch or JSON patch.
        Patch,
        /// A new object of ours: an access review, a Lease.
        Create,
        /// A replaced object of ours: a Lease.
        Update,
        /// A report that is deleted, only by `etch clean`.
        Delete,
    }
}

words! {
    /// How the API server answered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum RequestOutcome {
        /// With success.
        Ok,
        /// 404.
        NotFound,
        /// 409: another client wrote first.
        Conflict,
        /// 429 or 503: throttled.
        Throttled,
        /// 401 or 403.
        Forbidden,
        /// Any other 4xx.
        Refused,
        /// Any other 5xx.
        ServerError,
        /// No answer.
        NoAnswer,
    }
}

/// A request as it is counted.
pub fn verb(method: &Method, uri: &Uri) -> RequestVerb {
    let mut asked = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split('=').next());
    match *method {
        Method::PATCH => RequestVerb::Patch,
        Method::POST => RequestVerb::Create,
        Method::PUT => RequestVerb::Update,
        Method::DELETE => RequestVerb::Delete,
        _ => match asked.find(|name| ["watch", "limit"].contains(name)) {
            Some("watch") => RequestVerb::Watch,
            Some(_) => RequestVerb::List,
            None => RequestVerb::Get,
        },
    }
}

/// How an answer is counted, by its HTTP status; `None` if there was no answer.
pub fn outcome(status: Option<u16>) -> RequestOutcome {
    match status {
        Some(200..300) => RequestOutcome::Ok,
        Some(404) => RequestOutcome::NotFound,
        Some(409) => RequestOutcome::Conflict,
        Some(429 | 503) => RequestOutcome::Throttled,
        Some(401 | 403) => RequestOutcome::Forbidden,
        Some(..500) => RequestOutcome::Refused,
        Some(_) => RequestOutcome::ServerError,
        None => RequestOutcome::NoAnswer,
    }
}
