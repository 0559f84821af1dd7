//! What is traced: a pass over the objects of a CRD, each sweep and page of it, and each write, with how it
//! ended and why. It must not carry anything of an object but its name.
//!
//! All of these end soon, unlike the span of a CRD's task, so that each can be exported when it has ended.
//! They are of level debug: the log has them only at that level.

use std::fmt::Display;
use std::time::Duration;

use tracing::{Id, Span, debug_span, field::Empty};

use etch_core::api::Counts;
use etch_core::call_error::CallError;
use etch_core::condition::Reason;
use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::plan::counted::{WriteOutcome, explained};
use etch_core::plan::{Outcome, Write};

/// The target of all spans that are traced.
pub const TRACED: &str = module_path!();

/// A pass over a CRD's objects: from checking permissions until every object is processed.
pub(crate) fn pass(crd: &Crd, policy: &str) -> Span {
    debug_span!(
        "pass",
        crd = crd.name(),
        policy,
        digest = %crd.digest(),
        objects = Empty,
        written = Empty,
        held = Empty,
        rejected = Empty,
        outcome = Empty,
        reason = Empty,
        otel.status_code = Empty,
    )
}

/// Ends a pass in which every object was processed; `reason` is that of the CRD's condition.
pub(crate) fn finish(pass: &Span, counts: Counts, reason: Option<Reason>) {
    count(pass, counts);
    pass.record("held", counts.held);
    pass.record("rejected", counts.rejected);
    pass.record("outcome", "Finished");
    if let Some(reason) = reason {
        pass.record("reason", reason.as_str());
    }
}

/// Ends a pass that could not be finished.
pub(crate) fn fail_pass(pass: &Span, error: &dyn Display) {
    pass.record("outcome", "Halted");
    fail(pass, &error.to_string());
}

/// A time as it is logged: a number, to the tenth of a second.
pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

/// A sweep over all objects; the first one of a pass decides about them, and the others verify it.
pub(crate) fn sweep(crd: &Crd, verifies: bool) -> Span {
    debug_span!("sweep", crd = crd.name(), verifies, objects = Empty, written = Empty)
}

/// Records what was counted in a pass or a sweep.
pub(crate) fn count(span: &Span, counts: Counts) {
    span.record("objects", counts.objects);
    span.record("written", counts.written);
}

/// A page of a list, and processing its objects, as a part of a sweep; `number` begins with one.
pub(crate) fn page(crd: &Crd, sweep: Option<Id>, number: u64) -> Span {
    debug_span!(parent: sweep, "page", crd = crd.name(), number, objects = Empty)
}

/// A write to an object, without its wait for a place among the writes; `attempt` begins with one.
pub(crate) fn write(crd: &Crd, object: &Object, write: &Write, attempt: u32) -> Span {
    debug_span!(
        "write",
        crd = crd.name(),
        object = %object.identity(),
        decision = write.strategy.as_str(),
        attempt,
        outcome = Empty,
        reason = Empty,
        otel.status_code = Empty,
    )
}

/// Records the outcome of a write.
pub(crate) fn conclude(write: &Span, outcome: &Result<Outcome, CallError>, counted: WriteOutcome) {
    write.record("outcome", counted.as_str());
    match explained(outcome) {
        Some((reason, true)) => fail(write, &reason),
        Some((reason, false)) => drop(write.record("reason", reason)),
        None => {}
    }
}

/// Records why it went wrong, in the words of OpenTelemetry as well: its tools look for such spans.
fn fail(span: &Span, reason: &str) {
    span.record("reason", reason);
    span.record("otel.status_code", "ERROR");
}
