//! The paths of the admission server, and their limits in size, time and number.
//! It must not log what is asked.

use std::cell::RefCell;
use std::collections::HashSet;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::Instant;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::{BoxError, ServiceBuilder};

use super::references::{Answers, Reference, References};
use super::room::{Held, LARGEST, Room, Taken};
use super::served_schemas::ServedSchemas;
use super::upgrades::Upgrades;
use crate::metrics::{Metrics, ReviewOutcome};
use etch_admission::Lookup;
use etch_admission::admission_review::{Asked, Malformed, Phase, Reviewed, Served, review, upgrade, warned};
use kube_structural_schema::json::Json;
use kube_validation_rules::until_stopped;

/// How long a request may take; the webhooks' own `timeoutSeconds` is 3.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an upgrade is checked, from the request on.
const GUARD_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How many requests are taken at once; further ones are refused, and the API server continues as
/// `failurePolicy` has it.
const MOST: usize = 256;
/// How many of them are evaluated at once for each processor, including those whose answer no client waits
/// for any more: two, so that one whose expressions take long does not hold up the others. More would only
/// take each other's turns.
const EVALUATED_PER_PROCESSOR: usize = 2;
/// In place of a schema's name: all of them, and one that is not served.
const ALL: &str = "*";
const NOT_SERVED: &str = "";
/// The same for upgrades of CRDs. No schema can be called so.
const GUARD: &str = "/guard";

/// What answers requests; cheap to clone.
#[derive(Clone)]
pub struct AdmissionHandler {
    serving: ServedSchemas,
    references: References,
    upgrades: Upgrades,
    metrics: Arc<Metrics>,
    room: Room,
    evaluations: Arc<Semaphore>,
}

/// An answer as it is sent, and the outcome of the request.
struct Answered {
    body: Vec<u8>,
    operation: &'static str,
    reviewed: Reviewed,
}

/// The outcome of the first review of a request.
enum FirstReview {
    /// Its answer.
    Answered(Answered),
    /// It needs a lookup before it can be answered.
    Wanting { asked: Asked, unknown: HashSet<Reference>, room: Held },
    /// The body is not an AdmissionReview.
    Malformed(Malformed),
}

impl AdmissionHandler {
    /// Answers by what is served, and counts.
    pub fn new(serving: ServedSchemas, references: References, metrics: Arc<Metrics>) -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        let evaluations = Arc::new(Semaphore::new(processors * EVALUATED_PER_PROCESSOR));
        Self { serving, references, upgrades: Upgrades::default(), metrics, room: Room::new(), evaluations }
    }

    /// Enables the judge of CRD upgrades.
    #[must_use]
    pub fn guarded_by(self, upgrades: Upgrades) -> Self {
        Self { upgrades, ..self }
    }

    /// `/mutate/NAME` and `/validate/NAME`, by one schema, without a name by all; and `/guard`. The caller
    /// that serves this router has to check the key.
    pub fn router(self) -> Router {
        let metrics = self.metrics.clone();
        let limits = ServiceBuilder::new()
            .layer(HandleErrorLayer::new(move |error| refused(error, metrics.clone())))
            .load_shed()
            .layer(GlobalConcurrencyLimitLayer::new(MOST))
            .timeout(REQUEST_TIMEOUT);
        let all = |phase: Phase| {
            post(move |State(handler): State<Self>, request: Request| handler.answer(phase, None, request))
        };
        let one = |phase: Phase| {
            post(move |State(handler): State<Self>, Path(name): Path<String>, request: Request| {
                handler.answer(phase, Some(name), request)
            })
        };
        Router::new()
            .route("/mutate", all(Phase::Mutate))
            .route("/validate", all(Phase::Validate))
            .route("/mutate/{name}", one(Phase::Mutate))
            .route("/validate/{name}", one(Phase::Validate))
            .route("/guard", post(|State(handler): State<Self>, request: Request| handler.guard(request)))
            .layer(limits)
            .with_state(self)
    }

    async fn answer(self, phase: Phase, name: Option<String>, request: Request) -> Response {
        let begun = Instant::now();
        let Some(Taken { body, room }) = self.take(request).await else { return self.too_large() };
        let (handler, schema) = (self.clone(), name.clone());
        let first = move || {
            let asked = match Asked::parse(&body) {
                Ok(asked) => asked,
                Err(malformed) => return FirstReview::Malformed(malformed),
            };
            let (answer, unknown) = handler.try_review(phase, schema.as_deref(), &asked, &Answers::new());
            match unknown.is_empty() {
                true => FirstReview::Answered(Answered::new(&asked, answer)),
                false => FirstReview::Wanting { asked, unknown, room },
            }
        };
        let answered = match self.evaluated(first).await {
            Ok(FirstReview::Answered(answered)) => answered,
            Ok(FirstReview::Wanting { asked, unknown, room }) => {
                let found = self.references.find(unknown).await;
                let (handler, schema) = (self.clone(), name.clone());
                let again = move || {
                    let (answer, unknown) = handler.try_review(phase, schema.as_deref(), &asked, &found);
                    let answered = Answered::new(&asked, warned(answer, unchecked(unknown.len())));
                    drop(room);
                    answered
                };
                match self.evaluated(again).await {
                    Ok(answered) => answered,
                    Err(_) => return self.failed(),
                }
            }
            Ok(FirstReview::Malformed(malformed)) => return self.malformed(malformed),
            Err(_) => return self.failed(),
        };
        let schema = match name {
            None => ALL.to_owned(),
            Some(name) if self.serving.now().contains_key(&name) => name,
            Some(_) => NOT_SERVED.to_owned(),
        };
        self.answered(&schema, answered, begun)
    }

    /// Answers about an upgrade or the deletion of a CRD by what was found out in time.
    async fn guard(self, request: Request) -> Response {
        let begun = Instant::now();
        let Some(Taken { body, room }) = self.take(request).await else { return self.too_large() };
        let parse = move || {
            let asked = Asked::parse(&body)?;
            let request = upgrade::crd_request(&asked);
            Ok((asked, request))
        };
        let (asked, request) = match self.evaluated(parse).await {
            Ok(Ok(parsed)) => parsed,
            Ok(Err(malformed)) => return self.malformed(malformed),
            Err(_) => return self.failed(),
        };
        let decision = self.upgrades.judge(request, begun + GUARD_TIMEOUT).await;
        let answered = Answered::new(&asked, upgrade::answer(&asked, &decision));
        drop(room);
        self.answered(GUARD, answered, begun)
    }

    fn answered(&self, schema: &str, answered: Answered, begun: Instant) -> Response {
        let Answered { body, operation, reviewed } = answered;
        self.metrics.reviewed(schema, operation, reviewed.into());
        self.metrics.review_duration.observe(begun.elapsed().as_secs_f64());
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    }

    /// Reads a body; `None` if it is too large, or breaks off.
    async fn take(&self, request: Request) -> Option<Taken> {
        let declared = request.headers().get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|declared| declared.to_str().ok()?.parse().ok());
        if declared.is_some_and(|declared: usize| declared > LARGEST) {
            return None;
        }
        self.room.take(request.into_body()).await
    }

    /// Evaluates apart: schemas are bounded by cost, not by time, and would hold up a thread of the runtime.
    /// What is not waited for any more stops, and its place is free.
    async fn evaluated<T: Send + 'static>(
        &self,
        evaluate: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let place = self.evaluations.clone().acquire_owned().await;
        let stop = Arc::new(AtomicBool::new(false));
        let _stopped_with_the_request = StopOnDrop(stop.clone());
        let evaluate = move || {
            let answer = until_stopped(stop, evaluate);
            drop(place);
            answer
        };
        spawn_blocking(evaluate).await
    }

    /// The answer by what was found out for it, and what else has to be before it counts. A schema that is
    /// not served, since it has gone or is not known yet, has nothing against a request.
    fn try_review(
        &self,
        phase: Phase,
        name: Option<&str>,
        asked: &Asked,
        found: &Answers,
    ) -> ((Json, Reviewed), HashSet<Reference>) {
        let serving = self.serving.now();
        let is_meant = |schema: &str| name.is_none_or(|name| name == schema);
        let schemas: Vec<(&str, &Served)> = serving
            .iter()
            .filter(|(schema, _)| is_meant(schema))
            .map(|(schema, served)| (schema.as_str(), served))
            .collect();
        let unknown = RefCell::new(HashSet::new());
        let exists = |lookup: &Lookup<'_>| {
            let reference = Reference::from(lookup);
            let known = found.get(&reference).copied().or_else(|| self.references.known(&reference));
            if known.is_none() {
                unknown.borrow_mut().insert(reference);
            }
            known.flatten()
        };
        let answer = review(phase, &schemas, asked, &exists);
        (answer, unknown.into_inner())
    }

    fn too_large(&self) -> Response {
        self.metrics.reviewed(NOT_SERVED, "OTHER", ReviewOutcome::Malformed);
        (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large, or broke off\n").into_response()
    }

    fn malformed(&self, malformed: Malformed) -> Response {
        self.metrics.reviewed(NOT_SERVED, "OTHER", ReviewOutcome::Malformed);
        (StatusCode::BAD_REQUEST, format!("{malformed}\n")).into_response()
    }

    fn failed(&self) -> Response {
        self.metrics.reviewed(NOT_SERVED, "OTHER", ReviewOutcome::Failed);
        (StatusCode::INTERNAL_SERVER_ERROR, "the review failed\n").into_response()
    }
}

/// Stops an evaluation once the request is answered without it.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Answered {
    fn new(asked: &Asked, (answer, reviewed): (Json, Reviewed)) -> Self {
        Self { body: answer.to_vec(), operation: asked.operation(), reviewed }
    }
}

/// The warning of references that nothing was found out about in time; none if there are no such references.
fn unchecked(references: usize) -> Option<String> {
    let these = if references == 1 { "reference" } else { "references" };
    (references > 0).then(|| {
        format!(
            "Etch did not check {references} {these}: the API server did not answer in time, or with an error"
        )
    })
}

async fn refused(error: BoxError, metrics: Arc<Metrics>) -> (StatusCode, &'static str) {
    let (outcome, code, line) = if error.is::<tower::timeout::error::Elapsed>() {
        (ReviewOutcome::TimedOut, StatusCode::GATEWAY_TIMEOUT, "the review took too long\n")
    } else {
        (ReviewOutcome::Overloaded, StatusCode::SERVICE_UNAVAILABLE, "too many reviews at once\n")
    };
    metrics.reviewed(NOT_SERVED, "OTHER", outcome);
    (code, line)
}

impl From<Reviewed> for ReviewOutcome {
    fn from(reviewed: Reviewed) -> Self {
        match reviewed {
            Reviewed::Allowed => Self::Allowed,
            Reviewed::Changed => Self::Changed,
            Reviewed::Warned => Self::Warned,
            Reviewed::Denied => Self::Denied,
        }
    }
}

#[cfg(test)]
mod tests;
