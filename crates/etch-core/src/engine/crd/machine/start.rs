//! How an attempt begins: from the report that was read to the pass.

use std::time::Duration;

use super::{Asked, CrdMachine, Phase, Then};
use crate::api::{DefaultsReport, Mode};
use crate::call_error::CallError;
use crate::condition::Reason;
use crate::engine::Now;
use crate::engine::canary::CanaryLimit;
use crate::engine::crd::error::{CrdError, Sign};
use crate::engine::crd::known::Verification;
use crate::engine::crd::opening::Opening;
use crate::engine::crd::passing::{Passing, Purpose};
use crate::engine::crd::protocol::{Command, Next, Note, Question};
use crate::engine::crd::versions::COUNT_AGAIN;
use crate::rbac::Allowed;
use crate::report::checkpoint::Checkpoint;
use crate::report::state::ReportState;
use crate::report::stored_versions;
use crate::stored_versions::VersionTally;

/// In the order in which they follow one another.
impl<H> CrdMachine<H> {
    /// Opens the report that was read, and finds out whether anything is to be done.
    pub(super) fn report_read(
        &mut self,
        opening: Box<Opening>,
        answer: Result<Option<Box<DefaultsReport>>, CallError>,
        now: Now,
    ) {
        let report = match answer {
            Ok(report) => report,
            Err(error) => return self.halt(CrdError::call(error), now),
        };
        let is_other = self.status.report().is_some() && !self.status.is_ours(report.as_deref());
        self.status.report_read(report);
        if is_other {
            let note = Note::RecordIgnored(CrdError::Restored(Sign::Report).to_string());
            self.commands.push_back(Command::Log(note));
            self.known.report_is_other();
            // The conditions may be those of that past, too, and the watch of CRDs need not show it: see
            // [`crate::engine::status::CrdRevision::entry`].
            self.status.recheck();
        }
        let report = self.status.report().cloned();
        let notes = self.known.open(&mut self.task, report.as_deref(), now);
        self.commands.extend(notes.into_iter().map(Command::Log));
        match self.version_count.is_due(&self.task, now.at) {
            true => self.ask(Question::StoredVersions, Asked::Versions(opening)),
            false => self.report_opened(opening, now),
        }
    }

    /// Records at which versions the objects are stored.
    pub(super) fn versions_counted(
        &mut self,
        opening: Box<Opening>,
        answer: Result<VersionTally, CallError>,
        now: Now,
    ) {
        self.version_count.counted(now.at);
        let crd = &self.task.crd;
        let counted = match answer {
            Ok(tally) => stored_versions::of_tally(crd, &tally),
            Err(error) => stored_versions::unread(crd, &error),
        };
        if let Some(open) = &mut self.known.report {
            open.state.set_stored_versions(Some(counted));
        }
        self.report_opened(opening, now);
    }

    /// Finds out whether anything is to be done, by the report that was opened.
    fn report_opened(&mut self, opening: Box<Opening>, now: Now) {
        let Some(open) = &self.known.report else { return };
        let report = self.status.report().cloned();
        if opening.is_idle(&self.task, open, report.as_deref()) {
            if let Some(report) = opening.report_at_rest(open, report.as_deref()) {
                self.status.set_report(report);
            }
            if let Some(no_defaults) = opening.no_defaults() {
                self.status.set_conditions(no_defaults.clone());
            }
            // A wait ends with a pause; nothing else would have the objects moved or repaired after it.
            let next = match self.task.reports_versions() || self.task.repairs_owners() {
                true => Next::Wait(COUNT_AGAIN),
                false => Next::Idle,
            };
            self.phase = Phase::Writes(Then::End(next));
            return;
        }
        // A restart must not cost the owners of one more object.
        let about_this = report.as_ref().filter(|report| open.state.is_about(report));
        if let Some(lost) = about_this.and_then(|report| report.owners_lost.clone()) {
            return self.respond(lost.into(), now);
        }
        self.known.recall(report.as_deref(), &self.task);
        // What writes proves everything again.
        if self.known.lacks_checkpoint() && !self.task.writes() && opening.has_defaults() {
            self.recall_from_crd(about_this.is_none(), now);
        }
        self.settle_or_pass(&opening, now);
    }

    /// Records what the CRD itself shows of an earlier pass. Where there is no report and the condition alone
    /// shows it, a report takes it over, marked as such, before another condition replaces that one.
    fn recall_from_crd(&mut self, lacks_report: bool, now: Now) {
        let shown = &self.task.shown_by_crd;
        self.known.recall_from_crd(shown);
        if let (true, Some(through), Some(open)) = (lacks_report, shown.through, &self.known.report) {
            self.status.set_report(open.state.taken_over(&open.ledger, through, now.date));
        }
    }

    /// Waits for as long as the schema must stand unchanged before objects are written, or makes a pass.
    fn settle_or_pass(&mut self, opening: &Opening, now: Now) {
        let Some(open) = &self.known.report else { return };
        // Where no default is left and none is followed, and no object is moved or repaired, nothing is
        // written: what is only counted need not settle. Neither need an audit.
        let may_write = self.task.settings.mode == Mode::Persist
            && (opening.has_defaults()
                || self.task.writes_without_defaults()
                || !self.task.settings.follow.is_empty());
        if self.known.checkpoint.is_none()
            && may_write
            && let Some(left) = self.settling.left(&self.task, open.state.first_seen(), now)
        {
            // What is missing is found out now, and not when it is too late to be granted in time.
            let (verbs, namespaces) = (self.task.verbs(), self.task.namespaces());
            return self.ask(Question::Permissions(verbs, namespaces), Asked::Settling(left));
        }
        // A wait would be no use: another writer of reports may come again before each attempt.
        if self.known.take_restored()
            && let Some(crd_status) = CrdError::Restored(Sign::Report).crd_status(&self.task.findings)
        {
            self.status.set_conditions(self.task.shown(crd_status));
        }
        let then = match may_write && self.task.writes() {
            true => {
                self.report_defaults();
                Then::CheckReport
            }
            false => Then::CheckPermissions,
        };
        self.phase = Phase::Writes(then);
    }

    /// Reports which defaults are to be stored, unless the report names them: once their fields have gone,
    /// nothing else shows that they had defaults. Nothing is written before the report names them.
    fn report_defaults(&mut self) {
        let Some(open) = &self.known.report else { return };
        if !self.is_report_of_these() {
            self.status.set_report(open.state.idle(Reason::InProgress.as_str(), &open.ledger.dropped));
        }
    }

    /// Whether the report is about the present defaults.
    pub(super) fn is_report_of_these(&self) -> bool {
        let report = self.status.report();
        self.known.report.as_ref().zip(report).is_some_and(|(open, report)| open.state.is_about(report))
    }

    /// Reports that the schema settles for `left`.
    pub(super) fn settle(&mut self, left: Duration, answer: Result<Allowed, CallError>, now: Now) {
        let Some(open) = &self.known.report else { return };
        self.settling.permissions_read(answer);
        let (crd_status, report) = self.settling.shown(&self.task, open);
        self.status.set_conditions(crd_status);
        self.status.set_report(report);
        self.phase = Phase::Writes(Then::End(self.settling.next(left, now.at)));
    }

    /// Continues with the objects that may be read, if Etch has the permissions for a pass.
    pub(super) fn permissions_read(&mut self, answer: Result<Allowed, CallError>, now: Now) {
        let within = match answer {
            Ok(Allowed::Missing(missing)) => return self.halt(CrdError::Forbidden(missing), now),
            Ok(allowed) => allowed.within(),
            Err(error) => return self.halt(CrdError::call(error), now),
        };
        if let Some(open) = &mut self.known.report {
            open.state.set_within(within.clone());
        }
        self.task.within = within;
        self.ask(Question::Server, Asked::Server);
    }

    /// Continues if requests reach the CRD's objects.
    pub(super) fn server_checked(&mut self, answer: Result<(), CallError>, now: Now) {
        match answer {
            Ok(()) if self.task.writes() => self.ask(Question::Migration, Asked::Migration),
            Ok(()) => self.begin_pass(now),
            Err(error) => self.halt(CrdError::call(error), now),
        }
    }

    /// Continues unless Kubernetes' own migrator writes the objects.
    pub(super) fn migration_read(&mut self, answer: Result<Option<String>, CallError>, now: Now) {
        match answer {
            Ok(Some(migration)) => self.halt(CrdError::Migrated(migration), now),
            // Two that write the same are slower, and harm nothing: it is no reason to stay idle.
            Ok(None) | Err(_) => self.begin_pass(now),
        }
    }

    fn begin_pass(&mut self, now: Now) {
        let Some(mut open) = self.known.report.take() else { return };
        let checkpoint = self.known.checkpoint.take();
        let checkpoint = checkpoint.unwrap_or_else(|| Checkpoint::empty(&self.task.crd));
        let canary = self.begin_canary(&checkpoint, &mut open.state);
        let purpose = match (canary, self.known.verification) {
            (Some(limit), _) => Purpose::Canary(limit),
            (None, Verification::At(_, at)) if at <= now.at => Purpose::Verify,
            (None, _) => Purpose::Store,
        };
        let rules = self.task.rules(&open.state);
        self.commands.push_back(Command::Begin(rules.clone()));
        let passing = Passing::begin(&self.task, rules, open, &mut self.status, purpose, checkpoint, now);
        if passing.verifies() {
            self.commands.push_back(Command::Log(Note::PassVerifies));
        }
        self.phase = Phase::Passes(Box::new(passing));
        if self.task.has_pause_changed() {
            self.pause(now.at);
        }
    }

    /// The canary that the pass begins with, if any is needed.
    fn begin_canary(&mut self, checkpoint: &Checkpoint, report: &mut ReportState) -> Option<CanaryLimit> {
        let Checkpoint { record, upto, .. } = checkpoint;
        let is_same_selection = record.selection == self.task.settings.terms.selection;
        let is_of_all = record.through.is_some() && record.exceptions.is_empty() && !record.doubts_writes();
        let is_on_record = is_of_all && upto.is_none() && !record.storage_changed && is_same_selection;
        let writes = self.task.writes();
        writes.then(|| self.task.canary.begin_pass(is_on_record, report)).flatten()
    }
}
