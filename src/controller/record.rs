//! Saying on the CRD and in its report what was found and done.
//! It must not say anything twice: what stands there already is not written again.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::tally::Tally;
use crate::api::{DefaultPath, DefaultsReportStatus};
use crate::cluster::{Backoff, CallError, Cluster};
use crate::domain::condition::{Condition, Reason, Verdict, same};
use crate::domain::crd::Crd;
use crate::domain::plan::Record;

/// How many objects in trouble the report names.
const LISTED: usize = 50;
/// How long after a change of our conditions they are looked at.
const RECHECK: Duration = Duration::from_secs(10);

/// Which CRD, in which state, is written about.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) generation: i64,
}

/// The pen of one CRD's task.
pub(super) struct Recorder {
    cluster: Cluster,
    subject: Subject,
    /// Our conditions as the CRD carries them.
    seen: watch::Receiver<Vec<Condition>>,
    /// When to look whether everything stands there as it should.
    recheck: Option<Instant>,
    /// How long to wait after nothing could be written.
    patience: Backoff,
    said: Said,
    /// The report as it was last read or written.
    noted: Option<DefaultsReportStatus>,
    /// A report that could not be written.
    unwritten: Option<DefaultsReportStatus>,
}

/// What was last said in conditions.
#[derive(Clone)]
enum Said {
    /// Not a word: what stands there is not ours to judge yet.
    Nothing,
    /// This.
    Verdict(Verdict),
    /// That there is nothing to say.
    Silence,
}

impl Recorder {
    pub(super) fn new(cluster: Cluster, subject: Subject, seen: watch::Receiver<Vec<Condition>>) -> Self {
        let patience = Backoff::new(RECHECK, Duration::from_secs(300));
        Self {
            cluster,
            subject,
            seen,
            recheck: None,
            patience,
            said: Said::Nothing,
            noted: None,
            unwritten: None,
        }
    }

    /// Reads the report of an earlier run; none if there is none for this CRD.
    pub(super) async fn recall(&mut self) -> Result<Option<DefaultsReportStatus>, CallError> {
        let report = self.cluster.report(&self.subject.name, &self.subject.uid).await?;
        self.noted = report.and_then(|report| report.status);
        Ok(self.noted.clone())
    }

    /// Puts the conditions on the CRD, unless they stand there already.
    pub(super) async fn say(&mut self, verdict: Verdict) {
        self.cluster.metrics().state(&self.subject.name, verdict.reason.as_str());
        let present = self.seen.borrow_and_update().clone();
        let conditions = verdict.conditions(self.subject.generation, &present, &now().to_string());
        self.said = Said::Verdict(verdict);
        if !same(&conditions, &present) {
            self.put(&conditions).await;
        }
    }

    /// Whether this reason is the last that was given.
    pub(super) fn says(&self, reason: Reason) -> bool {
        matches!(&self.said, Said::Verdict(verdict) if verdict.reason == reason)
    }

    /// Takes our conditions off the CRD, if there are any.
    pub(super) async fn unsay(&mut self) {
        self.said = Said::Silence;
        self.cluster.metrics().forget(&self.subject.name);
        if !self.seen.borrow_and_update().is_empty() {
            self.put(&[]).await;
        }
    }

    /// Waits until what was said has to be said again: some time after the CRD's conditions have changed, for nobody is
    /// fought over them, or after they could not be written.
    ///
    /// This future may be dropped at any time: what is due stays due.
    pub(super) async fn due(&mut self) {
        let due = match self.recheck {
            Some(due) => due,
            None if self.seen.changed().await.is_err() => return std::future::pending().await,
            None => *self.recheck.insert(Instant::now() + RECHECK),
        };
        tokio::time::sleep_until(due).await;
    }

    /// Says again what was said, where it does not stand there.
    pub(super) async fn repeat(&mut self) {
        self.recheck = None;
        match self.said.clone() {
            Said::Nothing => drop(self.seen.borrow_and_update()),
            Said::Verdict(verdict) => self.say(verdict).await,
            Said::Silence => self.unsay().await,
        }
        if let Some(status) = self.unwritten.take() {
            self.note(status).await;
        }
    }

    /// Says again what was said, for ever.
    pub(super) async fn insist(&mut self) {
        loop {
            self.due().await;
            self.repeat().await;
        }
    }

    /// Replaces the report, unless it says the same already.
    pub(super) async fn note(&mut self, status: DefaultsReportStatus) {
        self.unwritten = None;
        if self.noted.as_ref() == Some(&status) {
            return;
        }
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        for _ in 0..5 {
            let answer = match self.cluster.set_report(&self.subject.name, &status).await {
                Err(error) if error.code() == Some(404) => {
                    match self.cluster.open_report(&self.subject.name, &self.subject.uid).await {
                        Ok(()) => self.cluster.set_report(&self.subject.name, &status).await,
                        Err(error) => Err(error),
                    }
                }
                answer => answer,
            };
            match answer {
                Ok(()) => {
                    self.noted = Some(status);
                    self.patience.succeeded();
                    return;
                }
                Err(error) => {
                    warn!(%error, "the report cannot be written");
                    tokio::time::sleep(backoff.failed(error.retry_after())).await;
                }
            }
        }
        self.unwritten = Some(status);
        self.recheck_later();
    }

    async fn put(&mut self, conditions: &[Condition]) {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        for _ in 0..5 {
            match self.cluster.set_conditions(&self.subject.name, &self.subject.uid, conditions).await {
                Ok(()) => {
                    self.patience.succeeded();
                    return;
                }
                Err(error) if matches!(error.code(), Some(404 | 409)) => {
                    debug!("the CRD is gone");
                    return;
                }
                Err(error) => {
                    warn!(%error, "the conditions cannot be written");
                    tokio::time::sleep(backoff.failed(error.retry_after())).await;
                }
            }
        }
        self.recheck_later();
    }

    fn recheck_later(&mut self) {
        if self.recheck.is_none() {
            self.recheck = Some(Instant::now() + self.patience.failed(None));
        }
    }
}

/// What a report keeps for the next run, if it is about these very defaults and complete.
pub(super) fn record(status: &DefaultsReportStatus, crd: &Crd) -> Option<Record> {
    let about_this =
        status.digest == crd.compiled().digest().to_string() && status.storage_version == crd.storage().name;
    let troubles = status.held.len() + status.rejected.len();
    let complete = status.finished.is_some()
        && status.counts.unknown == 0
        && status.counts.held + status.counts.rejected == troubles as u64;
    let through = status.through.as_deref()?.parse().ok()?;
    (about_this && complete).then(|| Record {
        through: Some(through),
        exceptions: status.held.iter().chain(&status.rejected).map(|problem| problem.uid.clone()).collect(),
        versions_disagree: crd.versions_disagree(),
        trust_claims: false,
    })
}

/// The record after a sweep that saw to every object.
pub(super) fn record_of(tally: &Tally, through: Option<u64>, crd: &Crd) -> Record {
    let exceptions: HashSet<String> = tally.troubles().map(|(identity, _)| identity.uid.clone()).collect();
    let through = through.filter(|_| !tally.overflows());
    Record { through, exceptions, versions_disagree: crd.versions_disagree(), trust_claims: false }
}

/// The report that says so.
pub(super) fn report(
    crd: &Crd,
    tally: &Tally,
    reason: Reason,
    through: Option<u64>,
    times: Times,
) -> DefaultsReportStatus {
    let problems = |reasons: &[&str]| {
        let all = tally.troubles().map(|(identity, trouble)| trouble.describe(identity));
        all.filter(|problem| reasons.contains(&problem.reason.as_str())).take(LISTED).collect()
    };
    DefaultsReportStatus {
        state: reason.as_str().to_owned(),
        generation: crd.generation(),
        storage_version: crd.storage().name.clone(),
        digest: crd.compiled().digest().to_string(),
        first_seen: times.first_seen.map(Time),
        started: times.started.map(Time),
        finished: times.finished.map(Time),
        through: through.map(|through| through.to_string()),
        counts: tally.counts(),
        defaults: crd
            .compiled()
            .defaults()
            .into_iter()
            .map(|default| {
                let path = default.path.to_string();
                DefaultPath { objects: tally.missing(&path), path }
            })
            .collect(),
        held: problems(&["HiddenFields", "Misfit", "InvalidDefault"]),
        rejected: problems(&["Invalid", "Admission", "TooLarge", "Refused"]),
    }
}

/// The times of a report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) first_seen: Option<Timestamp>,
    pub(super) started: Option<Timestamp>,
    pub(super) finished: Option<Timestamp>,
}

/// The time of day, to the second, as Kubernetes keeps it.
pub(super) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
