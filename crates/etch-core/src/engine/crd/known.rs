//! What is known of a CRD and its objects between its passes, from one attempt to the next.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube_structural_schema::path::Path;

use super::error::CrdError;
use super::protocol::Note;
use super::steady::Steady;
use super::task::Task;
use crate::api::DefaultsReportStatus;
use crate::crd::Crd;
use crate::engine::Now;
use crate::engine::retries::Retries;
use crate::object::Identity;
use crate::plan::Shown;
use crate::report::checkpoint::Checkpoint;
use crate::report::dropped_fields::DroppedFields;
use crate::report::open_report::OpenReport;
use crate::report::rejected::Rejected;
use crate::report::state::LAG;

/// What the machine knows while no pass and no steady state has it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The report as it was last opened; none before it was read, where what is counted is to be read again,
    /// and while a pass or the steady state has it.
    pub(super) report: Option<OpenReport>,
    /// What is known of the objects, from before the last pass ended.
    pub(super) checkpoint: Option<Checkpoint>,
    /// Whether that is only what the CRD itself shows, which many may write.
    is_shown_by_crd: bool,
    /// Whether the report is not the one that Etch wrote last: until a pass begins it is no source of a
    /// checkpoint.
    is_restored: bool,
    /// What writes have dropped that were planned for an earlier generation, until it is on record.
    dropped: Vec<(Identity, Vec<Path>)>,
    /// What writes have dropped by the report before, where the rest of it is to be read again.
    dropped_before: Option<DroppedFields>,
    pub(super) verification: Verification,
    pub(super) retries: Retries,
}

/// Whether what was written since the pass is to be verified once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Verification {
    /// As the report has it.
    #[default]
    Unknown,
    /// At this time, by both clocks.
    At(Timestamp, Instant),
    /// It was: a report that could not be written may still ask for it.
    Done,
}

impl Verification {
    /// Records when the report asks for it, unless that is known; returns when it is to be reported.
    ///
    /// The wall clock is asked once: it may be set, and other machines' clocks differ.
    fn schedule(&mut self, asked: Option<Timestamp>, now: Now) -> Option<Timestamp> {
        if let (Self::Unknown, Some(asked)) = (*self, asked) {
            let left = Duration::try_from(asked.duration_since(now.date)).unwrap_or_default();
            *self = Self::At(asked, now.at + left.min(LAG));
        }
        match *self {
            Self::Unknown | Self::Done => None,
            Self::At(asked, _) => Some(asked),
        }
    }

    /// When to verify, if that is known and was not done.
    pub(super) fn due(self) -> Option<Instant> {
        match self {
            Self::At(_, at) => Some(at),
            Self::Unknown | Self::Done => None,
        }
    }
}

impl Known {
    /// Nothing. `seed` spreads the waits of those who fail together.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            report: None,
            checkpoint: None,
            is_shown_by_crd: false,
            is_restored: false,
            dropped: Vec::new(),
            dropped_before: None,
            verification: Verification::Unknown,
            retries: Retries::new(seed),
        }
    }

    /// Records what writes have dropped while the CRD changed.
    pub(super) fn add_dropped(&mut self, dropped: Vec<(Identity, Vec<Path>)>) {
        self.dropped.extend(dropped);
    }

    /// Records that the report is not the one that Etch wrote last.
    pub(super) fn report_is_other(&mut self) {
        (self.checkpoint, self.is_restored) = (None, true);
        self.verification = Verification::Unknown;
    }

    /// Opens the report as it was read, with what continues it; what is to be logged.
    pub(super) fn open(
        &mut self,
        task: &mut Task,
        report: Option<&DefaultsReportStatus>,
        now: Now,
    ) -> Vec<Note> {
        let Task { crd, settings, revision, .. } = &*task;
        let mut before = self.report.take().map(|open| open.ledger);
        if let (true, Some(before)) = (self.is_restored, &mut before) {
            before.dropped.forget_cleared();
        }
        let mut open = OpenReport::new(report, crd, settings, revision, now.date, before);
        if let Some(dropped) = self.dropped_before.take() {
            open.ledger.dropped = dropped;
        }
        open.state.add_former(&task.shown_by_crd.former);
        let verify_at = self.verification.schedule(open.state.verify_at(), now);
        open.state.set_verify_at(verify_at);
        if verify_at.is_some() {
            open.ledger.changes.watch_suspects();
        }
        let mut notes = Vec::new();
        for (identity, paths) in std::mem::take(&mut self.dropped) {
            open.ledger.dropped.lose(&identity, &paths);
            notes.push(Note::Dropped(identity, paths));
        }
        task.canary.open(task.may_write(), &mut open.state);
        self.report = Some(open);
        notes
    }

    /// Has what follows a changed default counted again from the report. What writes have dropped against the
    /// policy is in no report, and stays known.
    pub(super) fn count_changes_again(&mut self) {
        self.dropped_before = self.report.take().map(|open| open.ledger.dropped);
    }

    /// Takes from the report what it has on record, unless something newer is known. What only the CRD itself
    /// shows is nothing to those who write.
    pub(super) fn recall(&mut self, report: Option<&DefaultsReportStatus>, task: &Task) {
        if task.writes() && self.is_shown_by_crd {
            self.checkpoint = None;
        }
        let counts = |report: &&DefaultsReportStatus| !task.writes() || !report.shown_by_crd;
        let recorded = report.filter(|_| !self.is_restored).filter(counts);
        if self.checkpoint.is_none() {
            self.checkpoint = recorded.and_then(|report| Checkpoint::from_report(report, &task.crd));
            self.is_shown_by_crd = recorded.is_some_and(|report| report.shown_by_crd);
        }
        if let Some(open) = &mut self.report {
            open.state.set_shown_by_crd(self.is_shown_by_crd);
        }
        if let (None, Some(_), Some(report)) = (&self.checkpoint, task.canary.hold(), recorded) {
            let rejected = Rejected::from_report(report);
            self.checkpoint = Some(Checkpoint { rejected, ..Checkpoint::empty(&task.crd) });
        }
    }

    /// Takes over what is known of the objects.
    pub(super) fn continue_after(&mut self, other: Self) {
        self.checkpoint = other.checkpoint.filter(|_| !other.is_restored);
        self.is_shown_by_crd = other.is_shown_by_crd;
    }

    /// Takes from the CRD what it shows itself of an earlier pass.
    pub(super) fn recall_from_crd(&mut self, shown: &Shown) {
        let record = shown.record.clone();
        self.checkpoint = record.map(|record| Checkpoint { record, ..Checkpoint::default() });
        self.is_shown_by_crd = true;
        if let Some(open) = &mut self.report {
            open.state.set_shown_by_crd(true);
        }
    }

    /// Whether nothing is known of the objects, though etcd may not have been restored.
    pub(super) fn lacks_checkpoint(&self) -> bool {
        self.checkpoint.is_none() && !self.is_restored
    }

    /// Whether the report was not the one that Etch wrote last; asked once.
    pub(super) fn take_restored(&mut self) -> bool {
        std::mem::take(&mut self.is_restored)
    }

    /// Forgets what is on record, which is about another past.
    pub(super) fn forget_record(&mut self, crd: &Crd) {
        self.checkpoint = Some(Checkpoint::empty(crd));
        if let Some(open) = &mut self.report {
            open.forget_record();
        }
    }

    /// Takes back what the steady state has, which has ended because of this.
    pub(super) fn take_back<H>(&mut self, steady: Steady<H>, writes: bool, error: &CrdError) {
        let Steady { watching, state: report, before, .. } = steady;
        let (state, retries, ledger) = watching.into_parts();
        self.retries = retries;
        let rejected = match error {
            // What was rejected and has not changed would be again.
            CrdError::Verify => Rejected::of_tally(&state.tally),
            _ => Rejected::default(),
        };
        self.report = Some(OpenReport { state: report, ledger });
        // Who does not write learns nothing about what is stored, and keeps what was known before.
        self.checkpoint = match writes {
            true => state.into_checkpoint().map(|checkpoint| Checkpoint { rejected, ..checkpoint }),
            false => Some(before),
        };
    }
}
