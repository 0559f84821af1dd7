//! The sweeps of a pass, of the operator and of `etch persist`: one that writes, and those that verify it.
//! It must not report anything itself: its [`Observer`] does.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::Instrument as _;

use crate::cluster::CallError;
use crate::operator::crd::sweep::{Sweep, SweepError, SweepInput, lock};
use crate::operator::object::reconcile::ObjectReconciler;
use crate::operator::spans;
use etch_core::api::Mode;
use etch_core::crd::Crd;
use etch_core::object_machine::Rules;
use etch_core::plan::Record;
use etch_core::report::checkpoint::Checkpoint;
use etch_core::report::tally::Tally;
use etch_core::report::versions::ListKey;

/// How often a sweep that wrote something is verified by another, at most.
const VERIFICATIONS: u32 = 3;

/// What all sweeps of a pass have in common.
#[derive(Clone, Copy)]
pub(crate) struct Sweeps<'a> {
    pub(crate) reconciler: ObjectReconciler<'a>,
    /// The object up to which all are left out; none if all are processed.
    pub(crate) after: Option<&'a ListKey>,
    /// Rejections after which a sweep stops.
    pub(crate) stop_after_rejected: Option<u32>,
    /// Whether a pass is verified only once every object was answered about. The operator retries those while
    /// it watches; a command has no later.
    pub(crate) needs_every_answer: bool,
    /// Whether each sweep moves the resource version up to which the record covers the objects. Where it does
    /// not, a write of somebody else's in the course of the pass is checked by every sweep that follows.
    pub(crate) moves_record: bool,
    /// Whether the CRD's own server is taken to serve its objects where nobody may read APIServices.
    pub(crate) trusts_server: bool,
}

/// Where a sweep has its place in a pass.
#[derive(Clone, Copy)]
pub(crate) struct Stage<'a> {
    /// What is known of the objects before it.
    pub(crate) checkpoint: &'a Checkpoint,
    /// The sweep that it verifies; none for the first one.
    pub(crate) earlier: Option<&'a Sweep>,
}

/// When progress is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// In the course of a sweep, at the observer's rate, and as soon as a pause begins or ends.
    UnderWay,
    /// After a sweep that was not completed.
    Interrupted,
    /// After a sweep to the end.
    Completed,
}

/// What reports how far the sweeps of a pass have come.
pub(crate) trait Observer: Send {
    /// How long a sweep runs before its first report.
    const FIRST: Duration;
    /// The least time from the end of a report to the next one.
    const EVERY: Duration;

    /// Reports how far a sweep has come. It goes on meanwhile, so `tally` must not stay locked.
    fn report(
        &mut self,
        stage: Stage<'_>,
        tally: &Mutex<Tally>,
        moment: Moment,
    ) -> impl Future<Output = ()> + Send;
}

/// What the sweeps of a pass came to.
pub(crate) struct Verified {
    /// The last sweep; its numbers are those of the whole pass.
    pub(crate) last: Sweep,
    /// What is known of the objects now.
    pub(crate) checkpoint: Checkpoint,
    /// The resource version up to which that is known.
    pub(crate) through: Option<u64>,
    /// How many objects needed a request, in all sweeps.
    pub(crate) requests: u64,
    /// Whether the last sweep wrote nothing.
    pub(crate) is_verified: bool,
}

/// A verification that was not completed.
pub(crate) struct Unverified {
    /// The sweep that was being verified.
    pub(crate) last: Sweep,
    /// What is known of the objects now.
    pub(crate) checkpoint: Checkpoint,
    /// Why it was not completed.
    pub(crate) reason: SweepError,
}

impl Sweeps<'_> {
    /// Verifies a sweep to the end that may write, by further ones for as long as they find something to
    /// write; `checkpoint` is what was known before it.
    ///
    /// # Errors
    /// See [`Unverified`]. What was done until then is done.
    pub(crate) async fn verify(
        self,
        first: Sweep,
        checkpoint: &mut Checkpoint,
        observer: &mut impl Observer,
    ) -> Result<Verified, Unverified> {
        let (crd, mut last) = (&self.reconciler.rules.crd, first);
        let (mut through, mut requests) = (last.through, last.requests);
        let mut is_verified = last.tally.counts().written == 0;
        let mut checkpoint = after_sweep(checkpoint, &mut last, through, crd);
        for _ in 0..VERIFICATIONS {
            if is_verified {
                break;
            }
            let stage = Stage { checkpoint: &checkpoint, earlier: Some(&last) };
            if let Err(reason) = self.check_server().await {
                return Err(Unverified { last, checkpoint, reason: reason.into() });
            }
            let (mut again, ended) = self.sweep(stage, observer).await;
            if let Err(reason) = ended {
                checkpoint.proved.extend(std::mem::take(&mut again.proved));
                return Err(Unverified { last, checkpoint, reason });
            }
            requests += again.requests;
            let unanswered = if self.needs_every_answer { 0 } else { again.tally.counts().unknown };
            is_verified = again.requests == unanswered;
            if self.moves_record {
                through = again.through;
            }
            checkpoint = after_sweep(&mut checkpoint, &mut again, through, crd);
            last = again;
        }
        Ok(Verified { last, checkpoint, through, requests, is_verified })
    }

    /// Asks whether the next list still reaches the CRD's own objects.
    async fn check_server(self) -> Result<(), CallError> {
        let ObjectReconciler { cluster, rules, .. } = self.reconciler;
        match cluster.check_server(&(&*rules.crd).into()).await {
            Err(CallError::MissingPermission(_)) if self.trusts_server => Ok(()),
            answer => answer,
        }
    }

    /// One sweep, as far as it came, and how it ended.
    pub(crate) async fn sweep<O: Observer>(
        self,
        stage: Stage<'_>,
        observer: &mut O,
    ) -> (Sweep, Result<(), SweepError>) {
        let Self { reconciler, after, stop_after_rejected, .. } = self;
        let Stage { checkpoint, earlier } = stage;
        let tally = Mutex::new(Tally::default());
        let Rules { crd, mode, .. } = reconciler.rules;
        let beyond = Record { cleared: checkpoint.record.cleared.clone(), ..Record::empty(crd) };
        let (record, beyond) = (Arc::new(checkpoint.record.clone()), Arc::new(beyond));
        let input = SweepInput {
            record: &record,
            upto: checkpoint.upto.as_ref(),
            beyond: &beyond,
            proved: &checkpoint.proved,
            earlier,
            rejected: (*mode == Mode::Persist).then_some(&checkpoint.rejected),
            after,
            tally: &tally,
            stop_after_rejected,
        };
        let mut sweep = Sweep::default();
        let span = spans::sweep(crd, earlier.is_some());
        let ended = {
            let mut work = pin!(sweep.run(reconciler, input).instrument(span.clone()));
            let mut next = Instant::now() + O::FIRST;
            let mut paused = false;
            loop {
                tokio::select! {
                    ended = &mut work => break ended,
                    () = sleep_until(next) => {}
                    // A pause is reported before the writes under way have ended.
                    () = reconciler.pause_changed(), if !paused => paused = true,
                }
                let mut reporting = pin!(observer.report(stage, &tally, Moment::UnderWay));
                let mut ended = None;
                loop {
                    tokio::select! {
                        () = &mut reporting => break,
                        // What is under way holds places that other CRDs wait for.
                        end = &mut work, if ended.is_none() => ended = Some(end),
                    }
                }
                if let Some(ended) = ended {
                    break ended;
                }
                next = Instant::now() + O::EVERY;
            }
        };
        spans::count(&span, lock(&tally).counts());
        let moment = if ended.is_ok() { Moment::Completed } else { Moment::Interrupted };
        observer.report(stage, &tally, moment).await;
        sweep.tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        (sweep, ended)
    }
}

/// What is known after a sweep to the end.
fn after_sweep(before: &mut Checkpoint, sweep: &mut Sweep, through: Option<u64>, crd: &Crd) -> Checkpoint {
    before.after_sweep(&mut sweep.tally, std::mem::take(&mut sweep.proved), through, crd)
}
