//! The conditions of a CRD and its report: what should stand there, and the requests that bring it there. What
//! stands there already is not written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube_structural_schema::json::Json;

use super::Now;
use super::backoff::Backoff;
use super::reapply_backoff::ReapplyBackoff;
use crate::api::{DefaultsReport, DefaultsReportStatus};
use crate::call_error::CallError;
use crate::condition::{self, Condition, CrdStatus, Reason, same};
use crate::event::{self, Event, ObjectKind, Regarding};
use crate::message::OLD_CRDS;
use crate::report::size;

/// How soon what could not be written is written again, at first and at last.
const WRITE_AGAIN: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(300)];
/// The waits between the attempts of one write.
const ATTEMPT_AGAIN: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// How often a write is attempted in a row.
const ATTEMPTS: u32 = 5;

/// Which CRD, in which state, is written about.
#[derive(Clone, Debug)]
pub struct Subject {
    /// `crontabs.stable.example.com`
    pub name: String,
    /// The CRD's uid.
    pub uid: String,
    /// The generation that was judged.
    pub generation: i64,
    /// What its objects are called; none where it cannot be read.
    pub objects: Option<ObjectKind>,
}

impl Subject {
    fn regarding(&self) -> Regarding {
        Regarding {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

/// What is to be done. One request is under way at a time.
#[derive(Clone, Debug)]
pub enum Command {
    /// Apply our conditions to the CRD, and call [`Status::written`].
    SetConditions(Arc<[Condition]>),
    /// Read the CRD, and call [`Status::crd_read`].
    ReadCrd,
    /// Ask whether the CRD still has the generation of the subject, and call [`Status::generation_read`].
    ReadGeneration,
    /// Create the report, or make one that is left from an earlier CRD this one's, and call
    /// [`Status::report_written`].
    OpenReport,
    /// Replace the report where it still has this resource version, and call [`Status::report_written`].
    SetReport(Arc<DefaultsReportStatus>, String),
    /// Read the report, and call [`Status::report_read_again`].
    ReadReport,
    /// Publish an event.
    Emit(Event),
    /// Count the CRD under this reason; under none where there is nothing to see.
    Count(Option<Reason>),
}

/// The conditions and the report of one CRD.
#[derive(Clone, Debug)]
pub struct Status {
    subject: Subject,
    seed: u64,
    /// Our conditions as the CRD was last known to carry them.
    present: Arc<[Condition]>,
    /// When to look whether everything stands there as it should.
    recheck: Option<Instant>,
    /// How long to wait after nothing could be written.
    write_backoff: Backoff,
    /// How long to wait after somebody else has changed our conditions.
    reapply_backoff: ReapplyBackoff,
    conditions: Desired,
    /// The conditions as they were last set; those from before are in the CRD.
    last: Option<Arc<[Condition]>>,
    /// The resource version of the report, where it is known to be there and about this CRD: one of that name
    /// may be left from an earlier CRD.
    version: Option<String>,
    /// The report as it was last read or written.
    report: Option<Arc<DefaultsReportStatus>>,
    /// A report that could not be written.
    unwritten: Option<Arc<DefaultsReportStatus>>,
    /// Whether the CRD of reports is of an older Etch, and lacks a field of the report: the conditions name it.
    is_undeclared: bool,
    /// Whether the report was found to be another one than was known, and so was not replaced.
    is_other: bool,
    /// Whether the last recheck has found conditions that somebody else had changed.
    is_overwritten: bool,
    wanted: VecDeque<Wanted>,
    under_way: Option<UnderWay>,
    commands: VecDeque<Command>,
}

/// The conditions that the CRD should carry.
#[derive(Clone, Debug)]
enum Desired {
    /// Not known yet: what stands there stays.
    Unknown,
    /// This.
    Status(CrdStatus),
    /// None.
    None,
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

#[derive(Clone, Debug)]
struct ReportWrite {
    status: Arc<DefaultsReportStatus>,
    /// Whether it says something else of which objects are stored than the one before.
    is_new: bool,
}

impl Status {
    /// For a CRD that carries these conditions. `seed` spreads the waits of those who fail together.
    pub fn new(subject: Subject, present: Vec<Condition>, seed: u64) -> Self {
        let [first, last] = WRITE_AGAIN;
        Self {
            subject,
            seed,
            present: present.into(),
            recheck: None,
            write_backoff: Backoff::new(first, last, seed),
            reapply_backoff: ReapplyBackoff::default(),
            conditions: Desired::Unknown,
            last: None,
            version: None,
            report: None,
            unwritten: None,
            is_undeclared: false,
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
        wanted.or_else(under_way).or(self.report.as_ref())
    }

    /// Takes in the report as it was read: none where there is none for this CRD.
    pub fn report_read(&mut self, report: Option<Box<DefaultsReport>>) {
        self.version = report.as_ref().and_then(|report| report.metadata.resource_version.clone());
        self.report = report.and_then(|report| report.status).map(Arc::new);
    }

    /// Forgets the report: the next read finds what there is.
    pub fn forget_report(&mut self) {
        (self.report, self.unwritten, self.version) = (None, None, None);
    }

    /// Whether a report that was read is the one that was known before. A write whose answer was lost may
    /// have been carried out.
    pub fn is_ours(&self, read: Option<&DefaultsReport>) -> bool {
        let (known, read) = (self.report(), read.and_then(|report| report.status.as_ref()));
        read == known.map(|known| &**known) || read.is_some() && read == self.unwritten.as_deref()
    }

    /// The last reason that was given.
    pub fn reason(&self) -> Option<Reason> {
        match &self.conditions {
            Desired::Status(crd_status) => Some(crd_status.reason),
            Desired::Unknown | Desired::None => None,
        }
    }

    /// Whether the CRD carries this reason.
    pub fn has_reason(&self, reason: Reason) -> bool {
        self.present.iter().any(|condition| condition.reason == reason.as_str())
    }

    /// Whether the CRD's defaults are reported as stored.
    pub fn is_persisted(&self) -> bool {
        match self.reason() {
            Some(reason) => reason == Reason::AllPersisted,
            None => self.has_reason(Reason::AllPersisted),
        }
    }

    /// Puts the conditions on the CRD, unless they stand there already.
    pub fn set_conditions(&mut self, crd_status: CrdStatus) {
        self.want_conditions(Desired::Status(crd_status));
    }

    /// Takes our conditions off the CRD, if there are any.
    pub fn remove_conditions(&mut self) {
        self.want_conditions(Desired::None);
    }

    fn want_conditions(&mut self, conditions: Desired) {
        self.conditions = conditions.clone();
        self.wanted.push_back(Wanted::Conditions(conditions));
    }

    /// Replaces the report, unless it is the same already.
    ///
    /// What was found out while the CRD was changed is put on no record: servers may have served another
    /// schema by then, and by what they showed nothing is known of this one, which may come back unseen.
    pub fn set_report(&mut self, mut report: DefaultsReportStatus) {
        report.crd_uid.clone_from(&self.subject.uid);
        size::fit(&mut report);
        self.wanted.push_back(Wanted::Report(Arc::new(report)));
    }

    /// Gives the report another state, if there is one. With `forget`, it is no record any more. As long as
    /// it is one, it keeps the generation that it is about.
    pub fn set_report_state(&mut self, state: &str, policy: &str, forget: bool) {
        let Some(report) = self.report.as_deref().cloned() else { return };
        self.set_report(DefaultsReportStatus {
            state: state.to_owned(),
            policy: policy.to_owned(),
            generation: if forget { self.subject.generation } else { report.generation },
            settles_at: None,
            through: report.through.clone().filter(|_| !forget),
            ..report
        });
    }

    /// Somebody may have changed our conditions: they are looked at some time later, for nobody is fought
    /// over them.
    pub fn conditions_changed(&mut self, now: Instant) {
        self.recheck.get_or_insert(now + self.reapply_backoff.wait(now));
    }

    /// When our conditions have to be checked; none while nothing asks for it.
    pub fn recheck_due(&self) -> Option<Instant> {
        self.recheck
    }

    /// Reads the conditions, and sets them again where they are missing.
    pub fn recheck(&mut self) {
        self.recheck = None;
        self.wanted.push_back(Wanted::Recheck);
    }

    /// Whether the report turned out to be another one than was known when it was to be replaced: another
    /// replica has written it, or etcd was restored. Nothing that was wanted then is written. Asked once.
    pub fn take_other(&mut self) -> bool {
        std::mem::take(&mut self.is_other)
    }

    /// Whether the last recheck has found conditions that somebody else had changed; asked once.
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
            Wanted::Conditions(Desired::Unknown) => None,
            Wanted::Conditions(Desired::Status(crd_status)) => self.conditions_to_set(&crd_status, now),
            Wanted::Conditions(Desired::None) => self.conditions_to_remove(),
            Wanted::Report(status) => {
                self.unwritten = None;
                (self.report.as_ref() != Some(&status)).then(|| {
                    let is_new = self.report.as_ref().is_none_or(|known| !is_same_record(known, &status));
                    What::Report(Box::new(ReportWrite { status, is_new }))
                })
            }
            Wanted::Recheck => Some(What::Recheck),
        };
        if let Some(what) = what {
            let [first, last] = ATTEMPT_AGAIN;
            let backoff = Backoff::new(first, last, self.seed);
            self.under_way = Some(UnderWay { what, attempts: 0, backoff, again_at: None });
            self.attempt();
        }
    }

    fn conditions_to_set(&mut self, crd_status: &CrdStatus, now: Now) -> Option<What> {
        let mut crd_status = crd_status.clone();
        if self.is_undeclared {
            crd_status.append(OLD_CRDS);
        }
        let counted = Some(crd_status.reason).filter(|reason| *reason != Reason::NoDefaults);
        self.commands.push_back(Command::Count(counted));
        let (Subject { generation, .. }, present) = (&self.subject, self.present.clone());
        let conditions: Arc<[Condition]> =
            crd_status.conditions(*generation, &present, &now.date.to_string()).into();
        let before = self.last.replace(conditions.clone()).unwrap_or_else(|| present.clone());
        let news =
            event::about_crd(&self.subject.regarding(), &before, &conditions, crd_status.without_names());
        if same(&conditions, &present) {
            self.last = Some(present);
            self.commands.extend(news.into_iter().map(Command::Emit));
            return None;
        }
        Some(What::Conditions { conditions, news })
    }

    fn conditions_to_remove(&mut self) -> Option<What> {
        self.commands.push_back(Command::Count(None));
        self.last = None;
        let (conditions, news) = (Arc::default(), Vec::new());
        (!self.present.is_empty()).then_some(What::Conditions { conditions, news })
    }

    /// Sends the first request of an attempt.
    fn attempt(&mut self) {
        let Some(UnderWay { what, attempts, .. }) = &mut self.under_way else { return };
        *attempts += 1;
        let command = match what {
            What::Conditions { conditions, .. } => Command::SetConditions(conditions.clone()),
            What::Recheck => Command::ReadCrd,
            // What is new on record is on none where the CRD has changed.
            What::Report(write) if write.is_new && write.status.through.is_some() => Command::ReadGeneration,
            What::Report(write) => report_command(&write.status, self.version.as_ref()),
        };
        self.commands.push_back(command);
    }

    /// Takes in the answer to [`Command::SetConditions`].
    pub fn written(&mut self, now: Instant, answer: Result<(), CallError>) {
        let Some(UnderWay { what, .. }) = &mut self.under_way else { return };
        match (what, answer) {
            (What::Conditions { conditions, .. }, Ok(())) => {
                self.present = conditions.clone();
                self.write_backoff.succeeded();
                self.end();
            }
            // A refusal alone does not show that the CRD is gone.
            (What::Conditions { .. }, Err(error)) if matches!(error.code(), Some(404 | 409)) => {
                self.commands.push_back(Command::ReadCrd);
            }
            (_, Err(error)) => self.attempt_failed(now, &error),
            (What::Report(_) | What::Recheck, Ok(())) => {}
        }
    }

    /// Takes in the answer to [`Command::OpenReport`] or [`Command::SetReport`]: the report's resource version.
    pub fn report_written(&mut self, now: Instant, answer: Result<String, CallError>) {
        let Some(UnderWay { what: What::Report(write), .. }) = &mut self.under_way else { return };
        match answer {
            Ok(version) => {
                let was_open = self.version.replace(version.clone()).is_some();
                match was_open {
                    true => self.report_stands(),
                    false => self.commands.push_back(Command::SetReport(write.status.clone(), version)),
                }
            }
            // A restore of etcd takes a report away, too, and one that has no status yet.
            Err(error) if error.code() == Some(404) && self.version.is_some() => self.report_is_other(),
            Err(error) if error.code() == Some(409) => self.commands.push_back(Command::ReadReport),
            Err(error) => {
                if error.is_of_undeclared_field() {
                    self.set_undeclared(true);
                }
                self.attempt_failed(now, &error);
            }
        }
    }

    /// Takes in the report as it stands where another was expected; none where there is none for this CRD.
    pub fn report_read_again(
        &mut self,
        now: Instant,
        answer: Result<Option<Box<DefaultsReport>>, CallError>,
    ) {
        let Some(UnderWay { what: What::Report(write), .. }) = &mut self.under_way else { return };
        let report = match answer {
            Ok(report) => report,
            Err(error) => return self.attempt_failed(now, &error),
        };
        let status = report.as_ref().and_then(|report| report.status.as_ref());
        // A write whose answer was lost has been carried out.
        let is_written = status == Some(&*write.status);
        let is_known = report.is_some() && status == self.report.as_deref();
        if is_written || is_known {
            self.version = report.and_then(|report| report.metadata.resource_version);
        }
        if is_written {
            self.report_stands();
        } else if is_known {
            self.rest(now, None);
        } else {
            self.report_is_other();
        }
    }

    fn report_is_other(&mut self) {
        self.is_other = true;
        self.wanted.clear();
        self.end();
    }

    /// The report stands as it is wanted.
    fn report_stands(&mut self) {
        let Some(UnderWay { what: What::Report(write), .. }) = &self.under_way else { return };
        let status = write.status.clone();
        self.commands.extend(self.news(&status).into_iter().map(Command::Emit));
        self.report = Some(status);
        self.write_backoff.succeeded();
        self.set_undeclared(false);
        self.end();
    }

    /// Has the conditions set again where they are to name another state of the CRD of reports.
    fn set_undeclared(&mut self, is_undeclared: bool) {
        if std::mem::replace(&mut self.is_undeclared, is_undeclared) != is_undeclared {
            self.wanted.push_front(Wanted::Conditions(self.conditions.clone()));
        }
    }

    /// Takes in the CRD as it was read; none where it is gone.
    pub fn crd_read(&mut self, now: Instant, answer: Result<Option<Json>, CallError>) {
        let Some(UnderWay { what, .. }) = &self.under_way else { return };
        let is_this = |document: &Json| document["metadata"]["uid"] == self.subject.uid.as_str();
        let answer = answer.map(|document| document.filter(is_this));
        match (what, answer) {
            (What::Recheck, Ok(Some(document))) => self.rechecked(now, &document),
            (What::Recheck, Err(_)) => {
                self.end();
                self.recheck_later(now);
            }
            (_, Ok(None)) => self.end(),
            (_, Ok(Some(_))) => self.rest(now, None),
            (_, Err(error)) => self.attempt_failed(now, &error),
        }
    }

    /// Takes in whether the CRD still has the generation of the subject.
    pub fn generation_read(&mut self, now: Instant, answer: Result<bool, CallError>) {
        let Some(UnderWay { what: What::Report(write), .. }) = &mut self.under_way else { return };
        match answer {
            Ok(is_same) => {
                if !is_same {
                    let status = Arc::make_mut(&mut write.status);
                    (status.through, status.upto) = (None, None);
                }
                self.commands.push_back(report_command(&write.status, self.version.as_ref()));
            }
            Err(error) => self.attempt_failed(now, &error),
        }
    }

    fn rechecked(&mut self, now: Instant, document: &Json) {
        let stood = std::mem::replace(&mut self.present, condition::present(document).into());
        self.is_overwritten = !same(&stood, &self.present);
        if self.is_overwritten {
            self.reapply_backoff.overwritten(now);
        }
        if let Some(unwritten) = self.unwritten.take() {
            self.wanted.push_front(Wanted::Report(unwritten));
        }
        self.wanted.push_front(Wanted::Conditions(self.conditions.clone()));
        self.end();
    }

    fn attempt_failed(&mut self, now: Instant, error: &CallError) {
        self.rest(now, error.retry_after());
    }

    /// Waits for the next attempt, unless it was the last in this row.
    fn rest(&mut self, now: Instant, asked: Option<Duration>) {
        let Some(write) = &mut self.under_way else { return };
        if write.attempts < ATTEMPTS {
            write.again_at = Some(now + write.backoff.failed(now, asked));
            return;
        }
        if let What::Report(report) = &write.what {
            self.unwritten = Some(report.status.clone());
        }
        self.end();
        self.recheck_later(now);
    }

    /// Ends what is under way; its events are published whether or not the CRD could be written.
    fn end(&mut self) {
        if let Some(UnderWay { what: What::Conditions { news, .. }, .. }) = self.under_way.take() {
            self.commands.extend(news.into_iter().map(Command::Emit));
        }
    }

    /// The events about the objects that a new report names, and about what was dropped.
    fn news(&self, status: &DefaultsReportStatus) -> Vec<Event> {
        let before = self.report.as_deref();
        let dropped = event::about_drops(&self.subject.regarding(), before, status);
        let objects = self.subject.objects.as_ref();
        let about = objects.map(|objects| event::about_objects(objects, before, status));
        dropped.into_iter().chain(about.into_iter().flatten()).collect()
    }

    fn recheck_later(&mut self, now: Instant) {
        if self.recheck.is_none() {
            self.recheck = Some(now + self.write_backoff.failed(now, None));
        }
    }
}

/// What brings a report there.
fn report_command(status: &Arc<DefaultsReportStatus>, version: Option<&String>) -> Command {
    match version {
        Some(version) => Command::SetReport(status.clone(), version.clone()),
        None => Command::OpenReport,
    }
}

/// Whether two reports say the same of which objects are stored.
fn is_same_record(one: &DefaultsReportStatus, other: &DefaultsReportStatus) -> bool {
    let record = |status: &DefaultsReportStatus| {
        let DefaultsReportStatus { digest, storage_version, through, upto, exceptions, .. } = status.clone();
        (digest, storage_version, through, upto, exceptions)
    };
    record(one) == record(other)
}
