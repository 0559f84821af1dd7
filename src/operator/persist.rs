//! One pass over the objects of a CRD by hand, by the same laws as the operator's.
//! It writes no condition, report or event: the caller prints the result.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::cluster::{Cluster, Dropped, GenerationCheck, Pace};
use crate::operator::object::driver::{Admission, ObjectDriver};
use crate::operator::object::reconcile::ObjectReconciler;
use etch_core::api::Mode;
use etch_core::crd::Crd;
use etch_core::engine;
use etch_core::engine::by_hand::{Passed, Progress, Stopped};
use etch_core::engine::pass::{Command, Interrupted, Limits, PassError, Verified};
use etch_core::engine::stop_reason::StopReason;
use etch_core::object_machine::Rules;
use etch_core::plan::{Persisted, Record, Terms};
use etch_core::report::changed_defaults::ChangedDefaults;
use etch_core::report::checkpoint::Checkpoint;
use etch_core::report::former_defaults::places_of;
use etch_core::report::ledger::Ledger;
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
            let passed = Passed::of(&verified.last, &ledger, verified.is_verified);
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
            let passed = Passed::of(&last, &ledger, false);
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
                    progress(Progress::of(&machine));
                }
                command => objects.perform(command, &Span::none()),
            }
        }
        objects.read_ahead();
        tokio::select! {
            event = objects.next() => objects.take_in(event, &mut machine),
            _ = shown.tick() => progress(Progress::of(&machine)),
            () = pass.ended.cancelled(), if !is_ended => {
                is_ended = true;
                machine.stop(StopReason::Ended);
            }
        }
    }
}
