//! The conditions of a CRD and its report: what they should be, and the requests that set them. What is there
//! already is not written.
//!
//! | file | what it decides |
//! |---|---|
//! | `command` | nothing: the requests, and which CRD they are about |
//! | `conditions` | whether conditions are written, and which events follow |
//! | `report` | which requests replace the report, and whether another one stands there |
//! | `recheck` | when conditions and report are checked again |
//!
//! [`Status`] has what is wanted and what is under way: one request at a time, each attempted a few times.

mod command;
mod conditions;
mod recheck;
mod report;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube_structural_schema::json::Json;

pub use self::command::{Command, Subject};
pub use self::conditions::CrdRevision;
use self::conditions::{Change, Conditions, Desired, claims_storage};
use self::recheck::Recheck;
use self::report::{Report, ReportWrite, Step};
use super::Now;
use super::backoff::Backoff;
use crate::api::{DefaultsReport, DefaultsReportStatus};
use crate::call_error::CallError;
use crate::condition::{Condition, CrdStatus, Reason};
use crate::event::Event;
use crate::report::size;

/// The waits between the attempts of one write.
const ATTEMPT_AGAIN: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// How often a write is attempted in a row.
const ATTEMPTS: u32 = 5;

/// The conditions and the report of one CRD.
#[derive(Clone, Debug)]
pub struct Status {
    subject: Subject,
    seed: u64,
    conditions: Conditions,
    report: Report,
    recheck: Recheck,
    /// The CRD as the watch of CRDs showed it last; `None` until it shows it.
    shown: Option<CrdRevision>,
    /// Whether the report was found to be another one than was known, and so was not replaced.
    is_other: bool,
    /// Whether the last recheck has found conditions that another client had changed.
    is_overwritten: bool,
    wanted: VecDeque<Wanted>,
    under_way: Option<UnderWay>,
    commands: VecDeque<Command>,
}

#[derive(Clone, Debug)]
enum Wanted {
    Conditions(Desired),
    Report(Arc<DefaultsReportStatus>),
    Recheck,
}

/// What is being written or read.
#[derive(Clone, Debug)]
struct UnderWay {
    what: What,
    attempts: u32,
    backoff: Backoff,
    /// When to attempt it again; none while a request is under way.
    again_at: Option<Instant>,
}

#[derive(Clone, Debug)]
enum What {
    Conditions { conditions: Arc<[Condition]>, news: Vec<Event> },
    Report(Box<ReportWrite>),
    Recheck,
}

impl Status {
    /// For a CRD that carries these conditions at this revision. `seed` spreads the waits of those who fail
    /// together.
    pub fn new(subject: Subject, present: Vec<Condition>, revision: CrdRevision, seed: u64) -> Self {
        Self {
            subject,
            seed,
            conditions: Conditions::new(present, revision),
            report: Report::default(),
            recheck: Recheck::new(seed),
            shown: None,
            is_other: false,
            is_overwritten: false,
            wanted: VecDeque::new(),
            under_way: None,
            commands: VecDeque::new(),
        }
    }

    /// Which CRD it is.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The report as it is wanted; where none is to be written, as it was last read or written.
    pub fn report(&self) -> Option<&Arc<DefaultsReportStatus>> {
        let wanted = self.wanted.iter().rev().find_map(|wanted| match wanted {
            Wanted::Report(status) => Some(status),
            Wanted::Conditions(_) | Wanted::Recheck => None,
        });
        let under_way = || match &self.under_way.as_ref()?.what {
            What::Report(write) => Some(&write.status),
            What::Conditions { .. } | What::Recheck => None,
        };
        wanted.or_else(under_way).or_else(|| self.report.known())
    }

    /// Handles the report as it was read; `None` if this CRD has none.
    pub fn report_read(&mut self, report: Option<Box<DefaultsReport>>) {
        self.report.read(report);
    }

    /// Forgets the report: the next read finds what there is.
    pub fn forget_report(&mut self) {
        self.report = Report::default();
    }

    /// Whether a report that was read is the one that was known before. A write whose answer was lost may
    /// have been carried out.
    pub fn is_ours(&self, read: Option<&DefaultsReport>) -> bool {
        let (known, read) = (self.report(), read.and_then(|report| report.status.as_ref()));
        read == known.map(|known| &**known) || self.report.is_unwritten(read)
    }

    /// The last reason that was given.
    pub fn reason(&self) -> Option<Reason> {
        self.conditions.reason()
    }

    /// Whether the CRD carries this reason.
    pub fn has_reason(&self, reason: Reason) -> bool {
        self.conditions.has_reason(reason)
    }

    /// The reason of the CRD's conditions, if it is a hold: a pause, or a canary.
    pub fn held_for(&self) -> Option<Reason> {
        Reason::ALL.iter().copied().find(|reason| reason.is_pause_or_canary() && self.has_reason(*reason))
    }

    /// Whether the CRD's defaults are reported as stored.
    pub fn is_persisted(&self) -> bool {
        match self.reason() {
            Some(reason) => reason == Reason::AllPersisted,
            None => self.has_reason(Reason::AllPersisted),
        }
    }

    /// Sets the conditions on the CRD, unless it has them already.
    pub fn set_conditions(&mut self, crd_status: CrdStatus) {
        self.want_conditions(Desired::Status(crd_status));
    }

    /// Takes our conditions off the CRD, if there are any.
    pub fn remove_conditions(&mut self) {
        self.want_conditions(Desired::None);
    }

    fn want_conditions(&mut self, conditions: Desired) {
        self.conditions.set_desired(conditions.clone());
        self.wanted.push_back(Wanted::Conditions(conditions));
    }

    /// Replaces the report, unless it is the same already.
    ///
    /// What was found out while the CRD was changed does not go on record: servers may have served another
    /// schema by then, and what they showed proves nothing about this one, which may come back unseen.
    pub fn set_report(&mut self, mut report: DefaultsReportStatus) {
        report.crd_uid.clone_from(&self.subject.uid);
        size::fit(&mut report);
        self.wanted.push_back(Wanted::Report(Arc::new(report)));
    }

    /// Gives the report another state, if there is one. With `forget`, it is no record any more. As long as
    /// it is one, it keeps the generation that it is about.
    pub fn set_report_state(&mut self, state: &str, policy: &str, forget: bool) {
        let Some(report) = self.report.known().map(|known| (**known).clone()) else { return };
        self.set_report(DefaultsReportStatus {
            state: state.to_owned(),
            policy: policy.to_owned(),
            generation: if forget { self.subject.generation } else { report.generation },
            settles_at: None,
            through: report.through.clone().filter(|_| !forget),
            ..report
        });
    }

    /// The watch of CRDs shows the CRD at this revision. If our conditions may not be those that are known
    /// there, another client has changed them, or etcd was restored, or the event of our own last write is
    /// yet to come: a recheck follows some time later, for Etch does not fight over them.
    pub fn crd_shown(&mut self, now: Instant, revision: CrdRevision) {
        self.shown = Some(revision);
        if !self.is_shown() {
            self.recheck.conditions_changed(now);
        }
    }

    /// Whether the watch of CRDs shows our conditions as they are known, as far as it has shown them; then
    /// nothing asks for a recheck.
    fn is_shown(&mut self) -> bool {
        let is_shown = self.shown.as_ref().is_none_or(|shown| !self.conditions.may_differ_at(shown));
        if is_shown {
            self.recheck.conditions_stand();
        }
        is_shown
    }

    /// When our conditions have to be checked; none while nothing asks for it.
    pub fn recheck_due(&self) -> Option<Instant> {
        self.recheck.due()
    }

    /// Reads the conditions, and sets them again where they are missing.
    pub fn recheck(&mut self) {
        self.recheck.begin();
        self.wanted.push_back(Wanted::Recheck);
    }

    /// Whether the report turned out to be another one than was known when it was to be replaced: another
    /// replica has written it, or etcd was restored. Nothing that was wanted then is written. Asked once.
    pub fn take_other(&mut self) -> bool {
        std::mem::take(&mut self.is_other)
    }

    /// That report, where there is one; asked once.
    pub fn take_other_report(&mut self) -> Option<DefaultsReportStatus> {
        self.report.take_other()
    }

    /// Whether the last recheck has found conditions that another client had changed; `true` once.
    pub fn take_overwritten(&mut self) -> bool {
        std::mem::take(&mut self.is_overwritten)
    }

    /// Whether nothing is under way, and nothing wanted.
    pub fn is_idle(&self) -> bool {
        self.commands.is_empty() && self.under_way.is_none() && self.wanted.is_empty()
    }

    /// When to come back though nothing has happened.
    pub fn timeout(&self) -> Option<Instant> {
        self.under_way.as_ref()?.again_at
    }

    /// What is to be done now; none until something is taken in, or the time has come.
    pub fn poll(&mut self, now: Now) -> Option<Command> {
        loop {
            if let Some(command) = self.commands.pop_front() {
                return Some(command);
            }
            match &mut self.under_way {
                Some(UnderWay { again_at, .. }) => {
                    again_at.take_if(|at| *at <= now.at)?;
                    self.attempt();
                }
                None => {
                    let wanted = self.wanted.pop_front()?;
                    self.begin(wanted, now);
                }
            }
        }
    }

    fn begin(&mut self, wanted: Wanted, now: Now) {
        let what = match wanted {
            Wanted::Conditions(desired) => self.begin_conditions(desired, now),
            Wanted::Report(status) => self.report.replaced_by(status).map(Box::new).map(What::Report),
            Wanted::Recheck => Some(What::Recheck),
        };
        if let Some(what) = what {
            let [first, last] = ATTEMPT_AGAIN;
            let backoff = Backoff::new(first, last, self.seed);
            self.under_way = Some(UnderWay { what, attempts: 0, backoff, again_at: None });
            self.attempt();
        }
    }

    fn begin_conditions(&mut self, desired: Desired, now: Now) -> Option<What> {
        let Change { counted, write, news } = self.conditions.change(desired, &self.subject, now)?;
        let lost = self.report().is_some_and(|report| report.owners_lost.is_some());
        let are_owners_lost = lost && counted == Some(Reason::ObjectsRejected);
        self.commands.push_back(Command::Count { reason: counted, are_owners_lost });
        match write {
            Some(conditions) => Some(What::Conditions { conditions, news }),
            None => {
                self.emit(news);
                None
            }
        }
    }

    fn emit(&mut self, news: Vec<Event>) {
        self.commands.extend(news.into_iter().map(Command::Emit));
    }

    /// Sends the first request of an attempt.
    fn attempt(&mut self) {
        let Some(UnderWay { what, attempts, .. }) = &mut self.under_way else { return };
        *attempts += 1;
        let command = match what {
            What::Conditions { conditions, .. } => {
                let version = self.conditions.revision().version.clone();
                Command::SetConditions(conditions.clone(), version)
            }
            What::Recheck => Command::ReadCrd,
            What::Report(write) => self.report.first_request(write),
        };
        self.commands.push_back(command);
    }

    /// Handles the answer to [`Command::SetConditions`].
    pub fn written(&mut self, now: Instant, answer: Result<CrdRevision, CallError>) {
        let Some(UnderWay { what, .. }) = &mut self.under_way else { return };
        match (what, answer) {
            (What::Conditions { conditions, .. }, Ok(revision)) => {
                self.conditions.written(conditions.clone(), revision);
                // Two changes may be seen as one, and the second may have taken ours back.
                if !self.is_shown() {
                    self.recheck.conditions_changed(now);
                }
                self.conditions_stand();
            }
            // The CRD has changed, or is gone: a refusal alone does not show which.
            (What::Conditions { .. }, Err(error)) if matches!(error.code(), Some(404 | 409)) => {
                self.commands.push_back(Command::ReadCrd);
            }
            (_, Err(error)) => self.attempt_failed(now, &error),
            (What::Report(_) | What::Recheck, Ok(_)) => {}
        }
    }

    fn conditions_stand(&mut self) {
        self.recheck.write_succeeded();
        self.end();
    }

    /// Records whether the CRD still has the generation of the subject.
    pub fn generation_read(&mut self, now: Instant, answer: Result<bool, CallError>) {
        let Some(UnderWay { what: What::Report(write), .. }) = &mut self.under_way else { return };
        let step = self.report.generation_read(write, answer);
        self.go_on_with_report(step, now);
    }

    /// Handles the answer to [`Command::OpenReport`] or [`Command::SetReport`]: the report's resource
    /// version.
    pub fn report_written(&mut self, now: Instant, answer: Result<String, CallError>) {
        let Some(UnderWay { what: What::Report(write), .. }) = &self.under_way else { return };
        let step = self.report.written(write, answer);
        if matches!(&step, Step::Failed(error) if error.is_of_undeclared_field()) {
            self.set_undeclared(true);
        }
        self.go_on_with_report(step, now);
    }

    /// Handles the report as it stands where another was expected; `None` if this CRD has none.
    pub fn report_read_again(
        &mut self,
        now: Instant,
        answer: Result<Option<Box<DefaultsReport>>, CallError>,
    ) {
        let Some(UnderWay { what: What::Report(write), .. }) = &self.under_way else { return };
        let step = self.report.read_again(write, answer);
        self.go_on_with_report(step, now);
    }

    fn go_on_with_report(&mut self, step: Step, now: Instant) {
        match step {
            Step::Stands => self.report_stands(),
            Step::Other => {
                self.is_other = true;
                self.wanted.clear();
                self.end();
            }
            Step::Send(command) => self.commands.push_back(command),
            Step::Again => self.rest(now, None),
            Step::Failed(error) => self.attempt_failed(now, &error),
        }
    }

    /// The report stands as it is wanted.
    fn report_stands(&mut self) {
        let Some(UnderWay { what: What::Report(write), .. }) = &self.under_way else { return };
        let news = self.report.stands(write.status.clone(), &self.subject);
        self.emit(news);
        self.recheck.write_succeeded();
        self.set_undeclared(false);
        self.end();
    }

    /// Has the conditions set again where they are to name another state of the CRD of reports.
    fn set_undeclared(&mut self, is_undeclared: bool) {
        if self.conditions.set_undeclared(is_undeclared) {
            self.wanted.push_front(Wanted::Conditions(self.conditions.desired()));
        }
    }

    /// Handles the CRD as it was read; `None` if it is gone.
    pub fn crd_read(&mut self, now: Instant, answer: Result<Option<Json>, CallError>) {
        let Some(UnderWay { what, .. }) = &self.under_way else { return };
        let is_this = |document: &Json| document["metadata"]["uid"] == self.subject.uid.as_str();
        let answer = answer.map(|document| document.filter(is_this));
        match (what, answer) {
            (What::Recheck, Err(_)) => self.give_up(now),
            (_, Ok(None)) => self.end(),
            (What::Recheck, Ok(Some(document))) => self.rechecked(now, &document),
            (What::Conditions { conditions, .. }, Ok(Some(document))) => {
                let conditions = conditions.clone();
                let is_overwritten = self.conditions.read(&document);
                self.is_shown();
                if self.conditions.stand(&conditions) {
                    // The answer to the write was lost.
                    self.conditions_stand();
                } else if claims_storage(&conditions) && !self.is_of_subject(&document) {
                    self.give_up(now);
                } else if is_overwritten {
                    // The client may be a replica that leads now.
                    self.end();
                    self.recheck.conditions_lost(now);
                } else {
                    self.send_again(now);
                }
            }
            (_, Ok(Some(_))) => self.rest(now, None),
            (_, Err(error)) => self.attempt_failed(now, &error),
        }
    }

    /// Whether the CRD is at the generation that everything wanted is about. The machine of another
    /// generation finds out what is stored then.
    fn is_of_subject(&self, document: &Json) -> bool {
        document["metadata"]["generation"].as_i64().unwrap_or_default() == self.subject.generation
    }

    fn rechecked(&mut self, now: Instant, document: &Json) {
        self.is_overwritten = self.conditions.read(document);
        self.is_shown();
        if self.is_overwritten {
            self.recheck.overwritten(now);
        }
        if let Some(unwritten) = self.report.take_unwritten() {
            self.wanted.push_front(Wanted::Report(unwritten));
        }
        if self.conditions.claim_storage() && !self.is_of_subject(document) {
            return self.give_up(now);
        }
        self.wanted.push_front(Wanted::Conditions(self.conditions.desired()));
        self.end();
    }

    /// Sends what has met a change of the CRD, at once: a CRD that changes all the time may have changed
    /// after any wait.
    fn send_again(&mut self, now: Instant) {
        match self.under_way.as_ref().is_some_and(|write| write.attempts < ATTEMPTS) {
            true => self.attempt(),
            false => self.give_up(now),
        }
    }

    fn attempt_failed(&mut self, now: Instant, error: &CallError) {
        self.rest(now, error.retry_after());
    }

    /// Waits for the next attempt, unless it was the last in this row.
    fn rest(&mut self, now: Instant, asked: Option<Duration>) {
        match &mut self.under_way {
            Some(write) if write.attempts < ATTEMPTS => {
                write.again_at = Some(now + write.backoff.failed(now, asked));
            }
            _ => self.give_up(now),
        }
    }

    /// Ends what is under way without its having been done: a recheck follows.
    fn give_up(&mut self, now: Instant) {
        if let Some(UnderWay { what: What::Report(report), .. }) = &self.under_way {
            self.report.set_unwritten(report.status.clone());
        }
        self.end();
        self.recheck.write_failed(now);
    }

    /// Ends what is under way; its events are published whether or not the CRD could be written.
    fn end(&mut self) {
        if let Some(UnderWay { what: What::Conditions { news, .. }, .. }) = self.under_way.take() {
            self.emit(news);
        }
    }
}
