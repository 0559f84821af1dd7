//! One request and its whole answer, within a deadline. Only the reads of commands are sent again.
//! It must not log: request and answer hold values of objects.

use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::cause::cause;
use super::object_budget::LARGEST;
use super::retries::is_broken_off;
use super::{CallError, Cluster, Held, ObjectRoom};
use crate::metrics::{RequestOutcome, RequestVerb};
use etch_core::plan::PatchKind;
use etch_core::refusal::Refusal;
use kube_structural_schema::json::Json;

/// How long a request may take; kube itself would wait forever (fact K4). The server ends its own after 60 s.
pub(super) const DEADLINE: Duration = Duration::from_secs(65);

impl Cluster {
    /// Sends a request and reads the whole answer.
    pub(super) async fn call(&self, request: Request<Vec<u8>>) -> Result<Vec<u8>, CallError> {
        self.call_with_retries(request, None).await
    }

    /// As [`Self::call`], for an answer in JSON of any depth that Etch reads.
    pub(super) async fn call_for_json(&self, request: Request<Vec<u8>>) -> Result<Json, CallError> {
        json(&self.call(request).await?)
    }

    /// As [`Self::call`], for an answer of which a part is read.
    pub(super) async fn call_for<T: DeserializeOwned>(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<T, CallError> {
        serde_json::from_slice(&self.call(request).await?).map_err(CallError::malformed)
    }

    /// As [`Self::call`], for answers that may be large: only a limited number are read at once. A caller
    /// that still waits for its answer to begin takes up no turn.
    pub(super) async fn call_in_turn(
        &self,
        request: Request<Vec<u8>>,
        turns: &Semaphore,
    ) -> Result<Vec<u8>, CallError> {
        self.call_with_retries(request, Some(turns)).await
    }

    async fn call_with_retries(
        &self,
        request: Request<Vec<u8>>,
        turns: Option<&Semaphore>,
    ) -> Result<Vec<u8>, CallError> {
        let mut retries = self.retries(request.method());
        loop {
            match self.call_up_to(request.clone(), turns, usize::MAX).await {
                Err(error) => retries.wait_after(error).await?,
                answer => return answer.map(Option::unwrap_or_default),
            }
        }
    }

    /// As [`Self::call_in_turn`], but sent only once: pages are asked for again by those who list them.
    /// `None` if the answer has more than `most` bytes: then the rest is not read.
    pub(super) async fn call_up_to(
        &self,
        request: Request<Vec<u8>>,
        turns: Option<&Semaphore>,
        most: usize,
    ) -> Result<Option<Vec<u8>>, CallError> {
        let answer = async {
            let response = self.open(request).await?;
            let _turn = match turns {
                Some(turns) => Some(turns.acquire().await),
                None => None,
            };
            match Limited::new(response.into_body(), most).collect().await {
                Ok(body) => Ok(Some(body.to_bytes().into())),
                Err(error) if error.is::<LengthLimitError>() => Ok(None),
                Err(error) => Err(self.broken_off(&*error)),
            }
        };
        tokio::time::timeout(DEADLINE, answer).await.unwrap_or_else(|_| Err(self.timed_out(DEADLINE)))
    }

    /// As [`Self::call`], for an object: it is read as soon as there is room for it. A caller that still
    /// waits for its answer to begin holds no room.
    pub(super) async fn call_with_room(
        &self,
        request: Request<Vec<u8>>,
        room: &ObjectRoom,
    ) -> Result<(Vec<u8>, Held), CallError> {
        let response = self.open(request).await?;
        let read = async {
            let held = room.hold(LARGEST).await;
            response.into_body().collect().await.map(|body| (held, body))
        };
        let (mut held, body) = tokio::time::timeout(DEADLINE, read)
            .await
            .map_err(|_| self.timed_out(DEADLINE))?
            .map_err(|error| self.broken_off(&error))?;
        let body: Vec<u8> = body.to_bytes().into();
        held.shrink(body.len());
        Ok((body, held))
    }

    /// Sends a request and returns its answer unread, if it is success.
    pub(super) async fn open(&self, request: Request<Vec<u8>>) -> Result<Response<Body>, CallError> {
        let verb = verb(request.method(), request.uri());
        if matches!(verb, RequestVerb::List | RequestVerb::Patch) {
            self.worked.send_replace(Instant::now());
        }
        self.outage.admit().await;
        let answer = self.exchange(request).await;
        let status =
            answer.as_ref().map_or_else(CallError::code, |response| Some(response.status().as_u16()));
        // A request without an answer shows neither that the server is up nor that it is down.
        if !matches!(answer, Err(CallError::TimedOut(..))) {
            self.outage.record(!answer.as_ref().is_err_and(is_lost));
        }
        self.metrics.request(verb, outcome(status));
        answer
    }

    /// The timeout error after this time.
    pub(super) fn timed_out(&self, after: Duration) -> CallError {
        CallError::TimedOut(self.server.clone(), after)
    }

    fn broken_off(&self, error: &(dyn std::error::Error + 'static)) -> CallError {
        CallError::BrokenOff(self.server.clone(), cause(error))
    }

    /// For the operator it does not matter when the connection was lost: the request may have been carried
    /// out.
    fn unanswered(&self, error: &kube::Error) -> CallError {
        match self.is_retrying && is_broken_off(error) {
            true => self.broken_off(error),
            false => CallError::Connection(self.server.clone(), cause(error)),
        }
    }

    async fn exchange(&self, request: Request<Vec<u8>>) -> Result<Response<Body>, CallError> {
        let sent = self.client.send(request.map(Body::from));
        let response = tokio::time::timeout(DEADLINE, sent)
            .await
            .map_err(|_| self.timed_out(DEADLINE))?
            .map_err(|error| self.unanswered(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(&response);
        let body = tokio::time::timeout(DEADLINE, response.into_body().collect())
            .await
            .map_err(|_| self.timed_out(DEADLINE))?
            .map_err(|error| self.broken_off(&error))?;
        Err(CallError::Refused(Box::new(Refusal::read(status.as_u16(), retry_after, &body.to_bytes()))))
    }
}

pub(super) fn get(path: &str) -> Request<Vec<u8>> {
    built(Request::get(path), Vec::new())
}

/// A request with a JSON body.
pub(super) fn send(method: Method, path: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    built(Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json"), body)
}

/// A patch by our field manager; an apply is not forced.
pub(super) fn patch(path: &str, kind: PatchKind, body: Vec<u8>) -> Request<Vec<u8>> {
    patch_as(etch_core::ownership::MANAGER, path, kind, body)
}

/// A patch by another field manager than `etch`, which owns fields that must not be `etch`'s.
pub(super) fn patch_as(manager: &str, path: &str, kind: PatchKind, body: Vec<u8>) -> Request<Vec<u8>> {
    let media_type = match kind {
        PatchKind::Apply | PatchKind::ApplyDryRun => "application/apply-patch+yaml",
        PatchKind::Merge => "application/merge-patch+json",
        PatchKind::Json | PatchKind::DryRun => "application/json-patch+json",
    };
    let dry = match kind {
        PatchKind::DryRun | PatchKind::ApplyDryRun => "?dryRun=All",
        PatchKind::Apply | PatchKind::Merge | PatchKind::Json => "",
    };
    let path = format!("{path}{dry}");
    let joint = if path.contains('?') { '&' } else { '?' };
    let target = format!("{path}{joint}fieldManager={manager}");
    built(Request::patch(target).header(CONTENT_TYPE, media_type), body)
}

/// A forced apply by our field manager, only of what is Etch's own.
pub(super) fn forced(path: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    let joint = if path.contains('?') { '&' } else { '?' };
    patch(&format!("{path}{joint}force=true"), PatchKind::Apply, body)
}

/// A dry run of an apply by another field manager, the one with which the user is going to apply.
pub(super) fn try_apply(path: &str, manager: &str, forced: bool, body: Vec<u8>) -> Request<Vec<u8>> {
    let target = format!("{path}?dryRun=All&fieldManager={}&force={forced}", encoded(manager));
    built(Request::patch(target).header(CONTENT_TYPE, "application/apply-patch+yaml"), body)
}

/// Text made fit for one segment of a path or one value of a query.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The answer about something that may not exist; `None` if it does not.
pub(super) fn if_there<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Err(error) if error.code() == Some(404) => Ok(None),
        answer => answer.map(Some),
    }
}

/// The answer about one object; `None` if there is no such object. A 404 that names no object is an error: it
/// comes from an API server or a proxy in front of it that does not serve the resource, or not yet.
pub(super) fn if_exists<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Err(CallError::Refused(refusal)) if refusal.is_missing_object() => Ok(None),
        answer => answer.map(Some),
    }
}

/// An answer in JSON.
pub(super) fn json(body: &[u8]) -> Result<Json, CallError> {
    Json::parse(body).map_err(CallError::malformed)
}

fn built(request: http::request::Builder, body: Vec<u8>) -> Request<Vec<u8>> {
    request.body(body).expect("method, headers and an encoded path make a request")
}

/// Whether no server was reached. A proxy in front of a server answers 502 to 504 without a reason while it
/// reaches no server; the server itself gives a reason, which may concern only this request.
fn is_lost(error: &CallError) -> bool {
    match error {
        CallError::Connection(..) => true,
        CallError::Refused(refusal) => matches!(refusal.code, 502..=504) && refusal.reason.is_empty(),
        _ => false,
    }
}

/// A request as it is counted.
pub(super) fn verb(method: &Method, uri: &Uri) -> RequestVerb {
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
pub(super) fn outcome(status: Option<u16>) -> RequestOutcome {
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

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etch_core::call_error::Server;

    #[test]
    fn a_server_that_gives_a_reason_was_reached() {
        let refused = |code: u16, body: &str| {
            is_lost(&CallError::Refused(Box::new(Refusal::read(code, None, body.as_bytes()))))
        };
        assert!(refused(502, "<html>") && refused(503, "") && refused(504, "upstream request timeout"));
        assert!(!refused(503, r#"{ "reason": "ServiceUnavailable" }"#));
        assert!(!refused(504, r#"{ "reason": "Timeout" }"#));
        assert!(!refused(500, "") && !refused(404, "404 page not found"));
        assert!(is_lost(&CallError::Connection(Server::default(), String::new())));
        assert!(!is_lost(&CallError::TimedOut(Server::default(), DEADLINE)));
    }
}
