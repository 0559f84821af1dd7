//! How an attempt ends: what is known of the objects then, what is reported, and what follows.

use std::time::Instant;

use super::{Asked, CrdMachine, Phase, Then};
use crate::api::{DefaultsReport, DefaultsReportStatus};
use crate::call_error::CallError;
use crate::crd::Unserved;
use crate::engine::Now;
use crate::engine::crd::error::{CrdError, Sign};
use crate::engine::crd::protocol::{Command, Next, Note, Question};
use crate::engine::stop_reason::StopReason;
use crate::engine::sweep::SweepError;
use crate::report::former_defaults::of_report;
use kube_structural_schema::json::Json;

/// In the order in which they follow one another.
impl<H> CrdMachine<H> {
    /// Begins nothing more of a pass, for another policy is in force.
    pub fn end_pass(&mut self, now: Instant) {
        if let Phase::Passes(passing) = &mut self.phase {
            passing.pause(now);
        }
    }

    /// Continues with what is known of the objects after a pass that another policy has ended: one that
    /// changes all the time would otherwise have each pass ask again about those before.
    pub fn continue_after(&mut self, other: Self) {
        let (this, before) = (&self.task.crd, &other.task.crd);
        if (this.uid(), this.generation(), this.digest())
            == (before.uid(), before.generation(), before.digest())
        {
            self.known.continue_after(other.known);
        }
    }

    /// Ends what is under way about objects, keeps what is known of them, and finds out what follows.
    pub(super) fn halt(&mut self, error: CrdError, now: Now) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Watches(steady) => {
                self.commands.push_back(Command::Abandon);
                self.has_watched = true;
                self.known.take_back(*steady, self.task.writes(), &error);
            }
            Phase::Passes(passing) => {
                self.commands.push_back(Command::Abandon);
                self.known.report = Some(passing.into_open_report());
            }
            Phase::Writes(_) | Phase::Asks(_) | Phase::Over => {}
        }
        if error.is_not_served() {
            return self.ask(Question::Crd, Asked::WhyNotServed(error));
        }
        self.respond(error, now);
    }

    /// Handles the CRD, which may show why its objects are not served.
    pub(super) fn unserved_crd_read(
        &mut self,
        error: CrdError,
        document: Result<Option<Json>, CallError>,
        now: Now,
    ) {
        let unserved = document.ok().flatten().as_ref().and_then(Unserved::of);
        self.respond(unserved.map_or(error, CrdError::NotServed), now);
    }

    /// Decides what follows an error.
    pub(super) fn respond(&mut self, error: CrdError, now: Now) {
        match &error {
            CrdError::Interrupted(SweepError::Stop(StopReason::FieldsDropped { .. })) => {
                return self.ask(Question::Generation, Asked::Generation(error));
            }
            CrdError::Interrupted(SweepError::Stop(StopReason::Pause)) => self.known.count_changes_again(),
            CrdError::Restored(_) => {
                self.keep_former_defaults();
                self.forget_record();
            }
            _ => {}
        }
        let next = error.next(&mut self.backoff, now.at);
        self.end(error, next);
    }

    /// Takes over which fields had a default from the report that is to be replaced: whichever past it is
    /// about, etcd may hold them.
    fn keep_former_defaults(&mut self) {
        if let (Some(other), Some(open)) = (self.status.take_other_report(), &mut self.known.report) {
            open.state.add_former(&of_report(&other, &self.task.crd));
        }
    }

    /// Forgets what is on record, which is about another past.
    pub(super) fn forget_record(&mut self) {
        self.known.forget_record(&self.task.crd);
        self.status.forget_report();
    }

    /// Decides what follows a write that has dropped fields.
    pub(super) fn generation_read(&mut self, error: CrdError, answer: Result<bool, CallError>, now: Now) {
        let next = match answer {
            Ok(false) => Next::Changed,
            // The server that answered lags behind, or admission removes fields.
            Ok(true) => Next::Wait(self.backoff.failed(now.at, None)),
            Err(failed) => Next::Wait(self.backoff.failed(now.at, failed.retry_after())),
        };
        self.end(error, next);
    }

    /// Reports why it does not continue, and ends. What ends the steady state may be a restore of etcd, and
    /// only the report shows that: it is read before it is replaced.
    fn end(&mut self, error: CrdError, next: Next) {
        self.commands.push_back(Command::Log(Note::Halted(error.to_string(), next.clone())));
        let is_known = matches!(error, CrdError::Restored(_));
        let is_reported = error.crd_status(&self.task.findings).is_some();
        if std::mem::take(&mut self.has_watched) && is_reported && !is_known {
            self.phase = Phase::Writes(Then::ReportEnd(error, next));
            return;
        }
        self.set_conditions_of(&error);
        self.set_report_of(&error);
        self.phase = Phase::Writes(Then::End(next));
    }

    /// Reports why the steady state has ended, unless etcd was restored.
    pub(super) fn report_end(
        &mut self,
        error: &CrdError,
        next: Next,
        answer: Result<Option<Box<DefaultsReport>>, CallError>,
        now: Now,
    ) {
        match answer {
            Ok(report) if !self.status.is_ours(report.as_deref()) => {
                return self.respond(CrdError::Restored(Sign::Report), now);
            }
            Ok(_) => self.set_report_of(error),
            // Where the report is another one, the write is refused. Without it, a restart costs the next
            // object its owners.
            Err(_) if error.owners_lost().is_some() => self.set_report_of(error),
            // A report that cannot be read is not replaced.
            Err(_) => {}
        }
        self.set_conditions_of(error);
        self.phase = Phase::Writes(Then::End(next));
    }

    fn set_conditions_of(&mut self, error: &CrdError) {
        if let Some(crd_status) = error.crd_status(&self.task.findings) {
            self.status.set_conditions(self.task.shown(crd_status));
        }
    }

    fn set_report_of(&mut self, error: &CrdError) {
        let (Some(crd_status), Some(open)) = (error.crd_status(&self.task.findings), &self.known.report)
        else {
            return;
        };
        let state = crd_status.reason.as_str();
        let about_this = self.status.report().filter(|report| open.state.is_about(report));
        let report = match about_this {
            Some(report) => open.state.with_state(report, state, &open.ledger.dropped),
            None => open.state.idle(state, &open.ledger.dropped),
        };
        self.status.set_report(DefaultsReportStatus { owners_lost: error.owners_lost(), ..report });
    }
}
