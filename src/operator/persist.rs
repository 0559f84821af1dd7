//! One pass over the objects of a CRD by hand, by the same laws as the operator's.
//! It writes no condition, report or event: the caller prints the result.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::cluster::{Cluster, Dropped, GenerationCheck, Pace};
use crate::operator::object::driver::{Admission, ObjectDriver};
use crate::operator::object::reconcile::ObjectReconciler;
use etch_core::api::{Counts, DefaultsReportStatus, DroppedField, Mode, ObjectProblem};
use etch_core::crd::Crd;
use etch_core::engine;
use etch_core::engine::pass::{Command, Interrupted, Limits, PassError, Verified};
use etch_core::engine::stop_reason::StopReason;
use etch_core::engine::sweep::{Sweep, SweepError};
use etch_core::object_machine::Rules;
use etch_core::plan::{Persisted, Record, Skip, Terms};
use etch_core::report::changed_defaults::ChangedDefaults;
use etch_core::report::checkpoint::Checkpoint;
use etch_core::report::former_defaults::places_of;
use etch_core::report::ledger::Ledger;
use etch_core::report::state::object_problem;
use etch_core::scope::Scope;

/// How often progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(100);
/// How often Etch asks whether a StorageVersionMigration has ended.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The CRD.
    pub crd: Arc<Crd>,
    /// Which of its objects; no other one is read or written.
    pub scope: Scope,
    /// What writes may do.
    pub terms: Terms,
    /// What is on record: objects that it covers need no request.
    pub record: Record,
    /// The defaults that have changed since the operator's last pass. Their values are sent with each write.
    pub changes: ChangedDefaults,
    /// Whether every API server serves the CRD, so that a pass without exceptions proves the version at which
    /// objects are stored.
    pub proves_versions: bool,
    /// The last object, as `namespace/name`, that an interrupted pass has processed; all up to it are left
    /// out.
    pub after: Option<String>,
    /// The limits of writing.
    pub pace: Arc<Pace>,
    /// Cancelled when nothing more is to be begun. What is under way is brought to its end.
    pub ended: CancellationToken,
}

/// The result of a pass.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// The states of the objects that were processed.
    pub counts: Counts,
    /// How many objects were left out, as [`Pass::after`] asks: nothing is known about them.
    pub left_out: u64,
    /// Whether nothing was left out, and a last sweep over what was written had nothing to do.
    pub verified: bool,
    /// What is proved of all objects of the CRD, for later readers; `None` if some were left out or not
    /// answered about.
    pub proved: Option<Persisted>,
    /// Objects that were held or rejected, were not answered about, or are ignored or being deleted; not more
    /// than are remembered.
    pub problems: Vec<ObjectProblem>,
    /// The fields that the schema no longer knows and that were dropped, as far as they are named.
    pub dropped: Vec<DroppedField>,
    /// Which of them were dropped although `hiddenFields` is `Hold`, as a sentence; `None` if none was.
    pub lost: Option<String>,
}

/// How far a pass has come.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The states of the objects so far.
    pub counts: Counts,
    /// How many objects were left out so far.
    pub left_out: u64,
    /// How many objects the list has, as the server counts them, those included that are left out.
    pub expected: Option<u64>,
    /// Whether what was written is being verified.
    pub verifies: bool,
    /// The StorageVersionMigration whose end the pass waits for before it begins.
    pub migration: Option<String>,
}

/// A pass that was not completed. What was done until then is done.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Stopped {
    /// What was done.
    pub passed: Passed,
    /// The object, as `namespace/name`, up to which every one was processed; none if not even the first one
    /// was, or if only the verification is missing.
    pub upto: Option<String>,
    /// Why it was stopped.
    #[source]
    pub reason: PassError,
}

impl Stopped {
    /// Whether it was cancelled.
    pub fn is_ended(&self) -> bool {
        matches!(self.reason, PassError::Sweep(SweepError::Stop(StopReason::Ended)))
    }
}

/// Stores the defaults of all objects of a CRD, and verifies it. `progress` is called several times a second.
/// While a StorageVersionMigration writes the objects, the pass waits.
///
/// # Errors
/// See [`Stopped`]. Objects that are refused or held stop nothing.
pub async fn persist(
    cluster: &Cluster,
    pass: Pass,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Passed, Box<Stopped>> {
    let rules = Rules {
        crd: pass.crd.clone(),
        terms: pass.terms.clone(),
        mode: Mode::Persist,
        since: Arc::default(),
    };
    let begin = |record| {
        let limits = Limits {
            after: pass.after.clone(),
            verifies: true,
            needs_every_answer: true,
            ..Limits::default()
        };
        let checkpoint = Checkpoint { record, ..Checkpoint::default() };
        let ledger = Ledger { changes: pass.changes.clone(), ..Ledger::default() };
        engine::pass::Pass::begin(rules.clone(), limits, checkpoint, ledger)
    };
    await_migration(cluster, &pass, progress).await;
    let check = Arc::new(GenerationCheck::new(&pass.crd, None));
    let (mut ended, mut ledger) =
        drive(cluster, &pass, begin(pass.record.clone()), &rules, &check, progress).await;
    if let Err(interrupted) = &ended
        && matches!(interrupted.reason, PassError::Restored)
    {
        // What is on record is about another past.
        let unknown = Record { hidden: pass.record.hidden.clone(), ..Record::empty(&pass.crd) };
        (ended, ledger) = drive(cluster, &pass, begin(unknown), &rules, &check, progress).await;
    }
    for (identity, paths) in lost(cluster, &pass.crd, &check).await {
        ledger.dropped.lose(&identity, &paths);
    }
    match ended {
        Ok(verified) => {
            let passed = passed(&verified.last, &ledger, verified.is_verified);
            let is_whole = pass.scope == Scope::All && passed.verified && passed.counts.unknown == 0;
            let exceptions = || verified.last.tally.reported_exceptions().map(|exceptions| exceptions.uids);
            let places = || places_of(&pass.crd, &pass.record.hidden.former);
            let counts = passed.counts;
            let is_of_all = counts.written + counts.already_stored == counts.objects;
            let persisted = |through| {
                let proved = Persisted::new(&pass.crd, through, exceptions()).with_places(places());
                if pass.proves_versions { proved.with_each_asked(is_of_all) } else { proved }
            };
            let proved = verified.last.through.filter(|_| is_whole).map(persisted);
            Ok(Passed { proved, ..passed })
        }
        Err(interrupted) => {
            let Interrupted { mut last, in_first, reason, .. } = *interrupted;
            let passed = passed(&last, &ledger, false);
            let upto = if in_first { last.reached.take().max(pass.after) } else { pass.after };
            Err(Box::new(Stopped { passed, upto, reason }))
        }
    }
}

/// Waits until no StorageVersionMigration writes the objects. Where these cannot be listed, it does not wait:
/// two that write the same are slower, and harm nothing.
async fn await_migration(cluster: &Cluster, pass: &Pass, progress: &mut (dyn FnMut(Progress) + Send)) {
    while let Ok(Some(migration)) = cluster.running_migration(&pass.crd).await {
        progress(Progress { migration: Some(migration), ..Progress::default() });
        tokio::select! {
            () = tokio::time::sleep(ASK_AGAIN) => {}
            () = pass.ended.cancelled() => return,
        }
    }
}

/// What writes have dropped against the terms. Where a write may have, the CRD is read again to know.
async fn lost(cluster: &Cluster, crd: &Crd, check: &GenerationCheck) -> Vec<Dropped> {
    if !check.is_in_doubt() {
        return check.take_dropped(crd);
    }
    let document = cluster.crd(crd.name()).await.ok().flatten();
    let now = document.and_then(|document| Crd::read(&document).ok());
    check.take_dropped(now.as_ref().unwrap_or(crd))
}

/// What a sweep came to.
fn passed(sweep: &Sweep, ledger: &Ledger, verified: bool) -> Passed {
    let tally = &sweep.tally;
    let problems = tally.problems().filter_map(|(identity, state)| Some((identity, state.problem()?)));
    let skipped = Skip::ALL.iter().flat_map(|why| tally.skipped().named(*why));
    let skipped = skipped.map(|(identity, skipped)| (identity, skipped.problem()));
    let problems =
        problems.chain(skipped).map(|(identity, problem)| object_problem(identity, problem)).collect();
    let mut status = DefaultsReportStatus { counts: tally.counts(), ..DefaultsReportStatus::default() };
    ledger.dropped.add_to_report(&mut status);
    let left_out = tally.left_out();
    Passed {
        counts: status.counts,
        left_out,
        verified: verified && left_out == 0,
        problems,
        dropped: status.dropped,
        lost: ledger.dropped.lost(),
        proved: None,
    }
}

/// Drives a pass to its end.
async fn drive(
    cluster: &Cluster,
    pass: &Pass,
    mut machine: engine::pass::Pass<Admission>,
    rules: &Rules,
    check: &Arc<GenerationCheck>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> (Result<Box<Verified>, Box<Interrupted>>, Ledger) {
    let reconciler = ObjectReconciler {
        cancelled: Some(pass.ended.clone()),
        generation_check: check.clone(),
        ..ObjectReconciler::of_command(cluster, rules.clone(), &pass.scope, &pass.pace)
    };
    let mut objects = ObjectDriver::new(reconciler, true);
    let mut shown = tokio::time::interval(SHOWN_EVERY);
    let mut is_ended = false;
    loop {
        while let Some(command) = machine.poll() {
            match command {
                Command::End(ended) => return (ended, machine.take_ledger()),
                Command::SweepEnds { .. } => {
                    objects.end_sweep(machine.tally().counts());
                    progress(so_far(&machine));
                }
                command => objects.perform(command, &Span::none()),
            }
        }
        objects.read_ahead();
        tokio::select! {
            event = objects.next() => objects.take_in(event, &mut machine),
            _ = shown.tick() => progress(so_far(&machine)),
            () = pass.ended.cancelled(), if !is_ended => {
                is_ended = true;
                machine.stop(StopReason::Ended);
            }
        }
    }
}

fn so_far(pass: &engine::pass::Pass<Admission>) -> Progress {
    let tally = pass.tally();
    Progress {
        counts: tally.counts(),
        left_out: tally.left_out(),
        expected: tally.expected(),
        verifies: pass.earlier().is_some(),
        migration: None,
    }
}
