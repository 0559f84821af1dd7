//! One request and its whole answer, within a deadline. Only the reads of commands are sent again.
//! It must not log: request and answer hold values of objects.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::cause::cause;
use super::object_budget::LARGEST;
use super::retries::{is_broken_off, wait_after};
use super::{CallError, Cluster, Held, ObjectRoom};
use etch_core::call_error::json;
use etch_core::refusal::Refusal;
use etch_core::request::counted::{RequestVerb, outcome, verb};
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
                Err(error) => wait_after(&mut retries, error).await?,
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
            self.outage.record(!answer.as_ref().is_err_and(CallError::is_lost));
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

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
