//! One request and its whole answer, within a deadline.
//! It must not retry, and must not log: request and answer hold values of objects.

use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::Instant;

use super::failure::cause;
use super::{CallError, Cluster, Refusal};
use crate::metrics::{RequestOutcome, RequestVerb};

/// How long a request may take; kube itself would wait for ever (fact K4). The server ends its own after 60 s.
const DEADLINE: Duration = Duration::from_secs(65);

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchType {
    Apply,
    Merge,
    Json,
}

impl Cluster {
    /// Sends a request and reads the whole answer.
    pub(super) async fn call(&self, request: Request<Vec<u8>>) -> Result<Vec<u8>, CallError> {
        let answer = async {
            let response = self.open(request).await?;
            let body = response.into_body().collect().await.map_err(|error| self.broken_off(&error))?;
            Ok(body.to_bytes().to_vec())
        };
        tokio::time::timeout(DEADLINE, answer).await.unwrap_or_else(|_| Err(self.timed_out(DEADLINE)))
    }

    /// Sends a request and returns its answer unread, if it is success.
    pub(super) async fn open(&self, request: Request<Vec<u8>>) -> Result<Response<Body>, CallError> {
        let verb = verb(&request);
        if matches!(verb, RequestVerb::List | RequestVerb::Patch) {
            self.worked.send_replace(Instant::now());
        }
        let answer = self.exchange(request).await;
        self.metrics.request(verb, outcome(&answer));
        answer
    }

    /// That there was no answer for so long.
    pub(super) fn timed_out(&self, after: Duration) -> CallError {
        CallError::TimedOut(self.server.clone(), after)
    }

    fn broken_off(&self, error: &(dyn std::error::Error + 'static)) -> CallError {
        CallError::BrokenOff(self.server.clone(), cause(error))
    }

    async fn exchange(&self, request: Request<Vec<u8>>) -> Result<Response<Body>, CallError> {
        let sent = self.client.send(request.map(Body::from));
        let response = tokio::time::timeout(DEADLINE, sent)
            .await
            .map_err(|_| self.timed_out(DEADLINE))?
            .map_err(|error| CallError::Connection(self.server.clone(), cause(&error)))?;
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

/// A patch by our field manager; an apply is never forced.
pub(super) fn patch(path: &str, kind: PatchType, body: Vec<u8>) -> Request<Vec<u8>> {
    let media_type = match kind {
        PatchType::Apply => "application/apply-patch+yaml",
        PatchType::Merge => "application/merge-patch+json",
        PatchType::Json => "application/json-patch+json",
    };
    let target = format!("{path}?fieldManager={}", crate::domain::ownership::MANAGER);
    built(Request::patch(target).header(CONTENT_TYPE, media_type), body)
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

fn built(request: http::request::Builder, body: Vec<u8>) -> Request<Vec<u8>> {
    request.body(body).expect("method, headers and an encoded path make a request")
}

fn verb(request: &Request<Vec<u8>>) -> RequestVerb {
    let query = request.uri().query().unwrap_or_default();
    match *request.method() {
        Method::PATCH => RequestVerb::Patch,
        Method::POST => RequestVerb::Create,
        Method::PUT => RequestVerb::Update,
        Method::DELETE => RequestVerb::Delete,
        _ if query.starts_with("watch=") => RequestVerb::Watch,
        _ if query.starts_with("limit=") => RequestVerb::List,
        _ => RequestVerb::Get,
    }
}

fn outcome(answer: &Result<Response<Body>, CallError>) -> RequestOutcome {
    match answer {
        Ok(_) => RequestOutcome::Ok,
        Err(error) => match error.code() {
            Some(404) => RequestOutcome::NotFound,
            Some(409) => RequestOutcome::Conflict,
            Some(429 | 503) => RequestOutcome::Throttled,
            Some(401 | 403) => RequestOutcome::Forbidden,
            Some(code) if code < 500 => RequestOutcome::Refused,
            Some(_) => RequestOutcome::ServerError,
            None => RequestOutcome::NoAnswer,
        },
    }
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
