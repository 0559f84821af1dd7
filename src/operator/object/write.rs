//! One write to an object: its wait for a place among the writes, its span, and the count of those under way.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;

use crate::cluster::Permit;
use crate::metrics::Metrics;
use crate::operator::object::reconcile::{Caller, DriveState, ObjectReconciler};
use crate::operator::spans;
use etch_core::call_error::CallError;
use etch_core::engine::stop_reason::StopReason;
use etch_core::object::Object;
use etch_core::object_machine::Rules;
use etch_core::pace::Pressure;
use etch_core::plan::counted::{counted, pressure};
use etch_core::plan::{Outcome, RejectionKind, Write};

/// How long a write may take before it makes room for others.
const SLOT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a write may take before it makes room for others of its own CRD. The CRD's webhook may be slow,
/// and times out after 10 seconds by default: a request without an answer by then has probably been lost.
const OWN_SLOT_TIMEOUT: Duration = Duration::from_secs(12);

impl ObjectReconciler {
    /// Writes, unless the caller stops it before there is a place for it. A write that has begun is finished.
    pub(super) async fn perform(
        &self,
        object: &Object,
        write: &Write,
        attempt: u32,
        state: &mut DriveState,
        caller: &impl Caller,
    ) -> Result<Result<Outcome, CallError>, StopReason> {
        let places = async {
            let own = match &self.own_pace {
                Some(pace) => Some(pace.admit().await),
                None => None,
            };
            let permit = self.pace.admit().await;
            // The token comes first: a tracker that is closed after this check waits for it.
            let token = self.writes.token();
            if self.writes.is_closed() {
                // This task is about to be ended, and others may need the place.
                drop((own, permit, token));
                return pending().await;
            }
            (own, permit, token)
        };
        let (mut own, mut permit, _token) = tokio::select! {
            biased;
            stop = caller.stopped() => return Err(stop),
            places = places => places,
        };
        state.turn = None;
        let Rules { crd, terms, .. } = &self.rules;
        own.as_mut().map(Permit::begin);
        let under_way = UnderWay::new(self.cluster.metrics());
        let span = spans::write(crd, object, write, attempt);
        let work = self.cluster.perform(crd, object, state.read, write, terms, &self.generation_check);
        let begun = Instant::now();
        let outcome = {
            let work = pin!(work.instrument(span.clone()));
            let making_room = async {
                tokio::time::sleep(SLOT_TIMEOUT).await;
                permit.release_slot();
                own.iter().for_each(Permit::takes_long);
                tokio::time::sleep(OWN_SLOT_TIMEOUT - SLOT_TIMEOUT).await;
                if let Some(own) = &mut own {
                    own.release_slot();
                }
                pending::<Infallible>().await
            };
            tokio::select! {
                outcome = work => outcome,
                never = making_room => match never {},
            }
        };
        drop(under_way);
        self.cluster.metrics().write(counted(&outcome));
        spans::conclude(&span, &outcome, counted(&outcome));
        caller.wrote(object, write, &outcome, begun.elapsed());
        let own_pressure = match &outcome {
            Ok(Outcome::Rejected(rejection)) if rejection.kind == RejectionKind::Unavailable => {
                Pressure::Overload(None)
            }
            outcome => pressure(outcome),
        };
        match own {
            Some(own) => permit.finish_both(pressure(&outcome), own, own_pressure),
            None => permit.finish(pressure(&outcome)),
        }
        Ok(outcome)
    }
}

/// A write in the count of those under way, until it is dropped: tasks may be ended at any time.
struct UnderWay<'a>(&'a Metrics);

impl<'a> UnderWay<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        metrics.in_flight.inc();
        Self(metrics)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}
