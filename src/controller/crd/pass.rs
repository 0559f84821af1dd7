//! A CRD's pass: a sweep over all its objects, verified by further sweeps, and what is told about it.
//! It must not say that a pass has ended before every object was seen to.

use std::pin::pin;
use std::sync::Mutex;

use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, info};

use crate::api::{Counts, DefaultsReportStatus, Mode};
use crate::controller::crd::sweep::{Interruption, Orders, Proved, Sweep, look_at};
use crate::controller::crd::task::{CrdTask, UPDATES, tender};
use crate::controller::error::Halt;
use crate::controller::object::reconcile::Tender;
use crate::controller::spans;
use crate::controller::state::checkpoint::Memory;
use crate::controller::state::report::{Times, is_finished};
use crate::controller::state::tally::Tally;
use crate::controller::status::message;
use crate::controller::status::writer::now;
use crate::domain::condition::{Reason, Verdict};
use crate::domain::plan::Record;

/// How often a sweep that wrote something is verified by another, at most.
const VERIFICATIONS: u32 = 3;

/// Whether two reports say the same of which objects there are, and of which are not stored.
fn tells_the_same(one: &DefaultsReportStatus, other: &DefaultsReportStatus) -> bool {
    let numbers = |counts: Counts| {
        let Counts { objects, due, held, rejected, ignored, terminating, unknown, .. } = counts;
        [objects, due, held, rejected, ignored, terminating, unknown]
    };
    let named = |status: &DefaultsReportStatus| {
        let DefaultsReportStatus { held, rejected, ignored, terminating, .. } = status.clone();
        [held, rejected, ignored, terminating]
    };
    numbers(one.counts) == numbers(other.counts) && named(one) == named(other)
}

/// What is known after a pass.
pub(in crate::controller) struct Standing {
    pub(in crate::controller) tally: Tally,
    pub(in crate::controller) record: Record,
    pub(in crate::controller) proved: Proved,
    pub(in crate::controller) watch_from: String,
    pub(in crate::controller) times: Times,
    pub(in crate::controller) finished_through: Option<u64>,
}

/// Where a sweep has its place in a pass.
#[derive(Clone, Copy)]
struct Stage<'a> {
    memory: &'a Memory,
    /// The sweep that is verified.
    earlier: Option<&'a Sweep>,
    /// Whether the work was found done before: then nothing is told until something is written.
    quiet: bool,
    times: Times,
}

impl CrdTask {
    /// Whether objects may be written.
    pub(in crate::controller) fn writes(&self) -> bool {
        self.settings.mode == Mode::Persist && self.settings.pause.is_none()
    }

    /// Whether it is for a pause that nothing is written.
    fn is_paused(&self) -> bool {
        self.settings.mode == Mode::Persist && self.settings.pause.is_some()
    }

    /// A pass over all objects, of which those that `memory` covers need no request. What is known when it cannot be ended
    /// is left in `memory`.
    pub(in crate::controller) async fn pass(
        &mut self,
        memory: &mut Memory,
        noted: Option<&DefaultsReportStatus>,
    ) -> Result<Standing, Halt> {
        info!(digest = %self.crd.compiled().digest(), "pass begins");
        let began = Instant::now();
        let noted = noted.filter(|noted| is_finished(noted, &self.crd));
        let times = Times { started: Some(now()), finished: None };
        let quiet = noted.is_some();
        // It may say already what an earlier attempt has met, and that holds until there is something better.
        let begins = match self.recorder.reason() {
            None => !quiet || self.is_paused() && !self.recorder.stands(Reason::Paused),
            Some(Reason::Settling) => !quiet,
            Some(reason) => (reason == Reason::Paused) != self.is_paused(),
        };
        if begins {
            self.recorder.say(self.in_progress(&Tally::default(), None)).await;
        }
        let (mut last, ended) = self.sweep(Stage { memory, earlier: None, quiet, times }).await;
        if let Err(interruption) = ended {
            memory.interrupted(last, &self.crd, self.writes());
            return Err(interruption.into());
        }
        let covered = memory.record.through;
        let (mut asked, written) = (last.asked, last.tally.counts().written);
        let mut through = last.through.filter(|_| self.writes());
        let mut verified = Memory::default();
        if self.writes() {
            verified = memory.after(&mut last, through, &self.crd);
            let mut left = if written > 0 { VERIFICATIONS } else { 0 };
            while left > 0 {
                left -= 1;
                let stage = Stage { memory: &verified, earlier: Some(&last), quiet: false, times };
                let (mut again, ended) = self.sweep(stage).await;
                if let Err(interruption) = ended {
                    verified.proved.extend(std::mem::take(&mut again.proved));
                    *memory = verified;
                    return Err(interruption.into());
                }
                asked += again.asked;
                if again.asked == again.tally.counts().unknown {
                    left = 0;
                }
                through = again.through;
                verified = verified.after(&mut again, through, &self.crd);
                last = again;
            }
        } else {
            last.tally.credit(&memory.done);
            // What is known of a part of the objects says nothing of those that change now.
            verified.record = match memory.upto {
                None => memory.record.clone(),
                Some(_) => Record { through: None, ..memory.record.clone() },
            };
        }
        let counts = last.tally.counts();
        if last.tally.overflows() && counts.unknown > 0 {
            self.recorder.note(self.status(Reason::InProgress, &last.tally, None, times)).await;
            *memory = verified;
            return Err(Halt::Incomplete);
        }
        let told = self.ledger.status("", &last.tally, None, times);
        let unchanged = noted.filter(|noted| asked == 0 && tells_the_same(&told, noted));
        let finished_through = if unchanged.is_some() { covered } else { through };
        if let Some(through) = finished_through {
            verified.record.through = verified.record.through.map(|_| through);
        }
        let standing = Standing {
            record: verified.record,
            proved: verified.proved,
            tally: last.tally,
            watch_from: last.watch_from,
            times: Times { finished: Some(now()), ..times },
            finished_through,
        };
        match unchanged {
            Some(noted) => self.confirm(&standing, noted).await,
            None => self.publish(&standing).await,
        }
        self.cluster.metrics().pass_duration.observe(began.elapsed().as_secs_f64());
        log_end(counts, asked);
        Ok(standing)
    }

    /// One sweep, and how it ended; conditions and report follow it at a bounded rate.
    async fn sweep(&mut self, stage: Stage<'_>) -> (Sweep, Result<(), Interruption>) {
        let Stage { memory, earlier, .. } = stage;
        let (cluster, pace, crd) = (self.cluster.clone(), self.pace.clone(), self.crd.clone());
        let own_pace = self.own_pace.clone();
        let since = self.ledger.since();
        let changes = self.changes.clone().unwrap_or_default();
        let (brake, drops) = (self.brake(), self.ledger.drops());
        let tender = Tender {
            brake: Some(&brake),
            ..tender(&cluster, &pace, &own_pace, &crd, &self.settings, &since, &changes, &drops)
        };
        let tally = Mutex::new(Tally::default());
        let cleared = memory.record.cleared.clone();
        let beyond = Record { versions_disagree: crd.versions_disagree(), cleared, ..Record::default() };
        let orders = Orders {
            record: &memory.record,
            upto: memory.upto.as_ref(),
            beyond: &beyond,
            proved: &memory.proved,
            earlier,
            after: None,
            tally: &tally,
            stop_after_rejected: self.settings.stop_after_rejected,
        };
        let mut sweep = Sweep::default();
        let span = spans::sweep(&crd, earlier.is_some());
        let ended = {
            let mut work = pin!(sweep.all(tender, orders).instrument(span.clone()));
            let mut next = Instant::now() + UPDATES;
            let mut braked = false;
            loop {
                tokio::select! {
                    ended = &mut work => break ended,
                    () = sleep_until(next) => {}
                    // Whoever has paused it need not wait for the writes that are under way.
                    () = brake.changed(), if !braked => braked = true,
                }
                let so_far = look_at(&tally).clone();
                let mut telling = pin!(self.tell(&so_far, stage));
                let mut ended = None;
                loop {
                    tokio::select! {
                        () = &mut telling => break,
                        // What is under way holds places that other CRDs wait for.
                        end = &mut work, if ended.is_none() => ended = Some(end),
                    }
                }
                if let Some(ended) = ended {
                    break ended;
                }
                next = Instant::now() + UPDATES;
            }
        };
        sweep.tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        spans::count(&span, sweep.tally.counts());
        if ended.is_err() {
            self.tell(&sweep.tally, stage).await;
        }
        (sweep, ended)
    }

    /// Tells how far a sweep has come.
    async fn tell(&mut self, so_far: &Tally, Stage { memory, earlier, quiet, times }: Stage<'_>) {
        let counts = so_far.counts();
        let is_braked = self.settings.pause != *self.pause.borrow();
        let told_before = quiet && counts.written + counts.rejected + counts.unknown == 0;
        if !is_braked && (counts.objects == 0 || told_before) {
            return;
        }
        let shown = match earlier {
            Some(earlier) => earlier.tally.clone(),
            None => {
                let mut shown = so_far.clone();
                shown.credit(&memory.done);
                shown
            }
        };
        let verified = earlier.map(|_| counts.objects);
        let verdict = self.in_progress(&shown, verified);
        let reason = verdict.reason;
        self.recorder.say(verdict).await;
        let status = self.status(reason, &shown, None, times);
        self.recorder.note(status).await;
    }

    /// What there is to say while a pass is under way, or has just been paused.
    pub(in crate::controller) fn in_progress(&self, tally: &Tally, verified: Option<u64>) -> Verdict {
        let pause = self.pause.borrow().clone().filter(|_| self.settings.mode == Mode::Persist);
        message::in_progress(&self.judged, pause.as_ref(), tally, verified)
    }

    /// Says again what a finished report says: it stays as it is, save for what it is about.
    async fn confirm(&mut self, standing: &Standing, noted: &DefaultsReportStatus) {
        self.count_phantoms(standing);
        let verdict = self.verdict(standing);
        let state = verdict.reason.as_str();
        let mut status = self.ledger.renewed(noted, state);
        if let Some(changes) = &self.changes {
            changes.enter(&mut status);
        }
        self.recorder.note(status).await;
        self.recorder.say(verdict).await;
    }

    /// Says what is known now.
    pub(in crate::controller) async fn publish(&mut self, standing: &Standing) {
        self.count_phantoms(standing);
        let verdict = self.verdict(standing);
        // Conditions of a CRD without defaults are about to go.
        let is_left = self.is_left(standing);
        let reason = if is_left { Reason::NoDefaults } else { verdict.reason };
        let (through, times) = (standing.finished_through, standing.times);
        let status = self.status(reason, &standing.tally, through, times);
        // The report comes first: whoever waits for the condition finds it there.
        self.recorder.note(status).await;
        if !is_left {
            self.recorder.say(verdict).await;
        }
    }

    /// The verdict on the CRD, with what became of the values of changed defaults.
    fn verdict(&self, standing: &Standing) -> Verdict {
        let mut verdict = message::of(&self.judged, &self.settings, &standing.tally);
        let changes = self.changes.as_ref().map(|changes| changes.sentence()).unwrap_or_default();
        if !changes.is_empty() {
            verdict.message = format!("{}; {changes}", verdict.message);
        }
        verdict
    }

    fn status(
        &self,
        reason: Reason,
        tally: &Tally,
        through: Option<u64>,
        times: Times,
    ) -> DefaultsReportStatus {
        let mut status = self.ledger.status(reason.as_str(), tally, through, times);
        if let Some(changes) = &self.changes {
            changes.enter(&mut status);
        }
        status
    }

    fn count_phantoms(&self, standing: &Standing) {
        self.cluster.metrics().phantom_objects(self.crd.name(), standing.tally.phantoms());
    }
}

/// Logs the end of a pass; `asked` is the number of objects that needed a request.
fn log_end(counts: Counts, asked: u64) {
    info!(
        objects = counts.objects,
        written = counts.written,
        already_stored = counts.already_stored,
        followed = counts.followed,
        kept = counts.kept,
        due = counts.due,
        held = counts.held,
        rejected = counts.rejected,
        unknown = counts.unknown,
        ignored = counts.ignored,
        terminating = counts.terminating,
        asked,
        "pass ends"
    );
}
