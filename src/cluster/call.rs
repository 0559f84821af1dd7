//! One request and its whole answer, within a deadline.
//! It must not retry, and must not log: request and answer hold values of objects.

use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;

use super::{CallError, Cluster, Refusal};

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
            let body =
                response.into_body().collect().await.map_err(|error| CallError::BrokenOff(error.into()))?;
            Ok(body.to_bytes().to_vec())
        };
        tokio::time::timeout(DEADLINE, answer).await.unwrap_or(Err(CallError::TimedOut(DEADLINE)))
    }

    /// Sends a request and returns its answer unread, if it is success.
    pub(super) async fn open(&self, request: Request<Vec<u8>>) -> Result<Response<Body>, CallError> {
        let sent = self.client.send(request.map(Body::from));
        let response = tokio::time::timeout(DEADLINE, sent)
            .await
            .map_err(|_| CallError::TimedOut(DEADLINE))?
            .map_err(|error| CallError::Connection(Box::new(error)))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(&response);
        let body = tokio::time::timeout(DEADLINE, response.into_body().collect())
            .await
            .map_err(|_| CallError::TimedOut(DEADLINE))?
            .map_err(|error| CallError::BrokenOff(error.into()))?;
        Err(CallError::Refused(Box::new(Refusal::read(status.as_u16(), retry_after, &body.to_bytes()))))
    }
}

pub(super) fn get(path: &str) -> Request<Vec<u8>> {
    built(Request::get(path), Vec::new())
}

pub(super) fn post(path: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    built(Request::post(path).header(CONTENT_TYPE, "application/json"), body)
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

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
