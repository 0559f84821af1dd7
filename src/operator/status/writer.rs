//! Writes a CRD's conditions and its report, and publishes events about them.
//! It must not write what stands there already.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::cluster::{Backoff, Cluster, Events};
use crate::operator::status::reapply_backoff::ReapplyBackoff;
use etch_core::api::DefaultsReportStatus;
use etch_core::call_error::CallError;
use etch_core::condition::{self, Condition, CrdStatus, Reason, same};
use etch_core::event::{self, ObjectKind, Regarding};
use etch_core::report::size;

/// How soon what could not be written is written again, at first and at last.
const WRITE_AGAIN: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(300)];

/// Which CRD, in which state, is written about.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    /// What its objects are called; none where it cannot be read.
    pub(crate) objects: Option<ObjectKind>,
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

/// Writes the conditions and the report of one CRD.
pub(crate) struct StatusWriter {
    cluster: Cluster,
    events: Events,
    subject: Subject,
    /// Our conditions as the CRD was last known to carry them.
    present: Arc<[Condition]>,
    /// Changes when somebody may have changed them.
    conditions_changed: watch::Receiver<()>,
    /// When to look whether everything stands there as it should.
    recheck: Option<Instant>,
    /// How long to wait after nothing could be written.
    write_backoff: Backoff,
    /// How long to wait after somebody else has changed our conditions.
    reapply_backoff: ReapplyBackoff,
    conditions: Desired,
    /// The conditions as they were last set; those from before are in the CRD.
    last: Option<Arc<[Condition]>>,
    /// Whether the report is known to be there, and about this CRD: one of that name may be left from an
    /// earlier CRD.
    opened: bool,
    /// The report as it was last read or written.
    report: Option<DefaultsReportStatus>,
    /// A report that could not be written.
    unwritten: Option<DefaultsReportStatus>,
}

/// The conditions that the CRD should carry.
#[derive(Clone)]
enum Desired {
    /// Not known yet: what stands there stays.
    Unknown,
    /// This.
    Status(CrdStatus),
    /// None.
    None,
}

impl StatusWriter {
    pub(crate) fn new(
        cluster: Cluster,
        events: Events,
        subject: Subject,
        present: Vec<Condition>,
        conditions_changed: watch::Receiver<()>,
    ) -> Self {
        let [first, last] = WRITE_AGAIN;
        let write_backoff = Backoff::new(first, last);
        Self {
            cluster,
            events,
            subject,
            present: present.into(),
            conditions_changed,
            recheck: None,
            write_backoff,
            reapply_backoff: ReapplyBackoff::default(),
            conditions: Desired::Unknown,
            last: None,
            opened: false,
            report: None,
            unwritten: None,
        }
    }

    /// Reads the report of an earlier run; none if there is none for this CRD.
    pub(crate) async fn read_report(&mut self) -> Result<Option<DefaultsReportStatus>, CallError> {
        let report = self.cluster.report(&self.subject.name, &self.subject.uid).await?;
        self.opened = report.is_some();
        self.report = report.and_then(|report| report.status);
        Ok(self.report.clone())
    }

    /// Whether the report is still the one that was written last, by a read that asks etcd.
    ///
    /// # Errors
    /// Where it cannot be read: then nothing is known.
    pub(crate) async fn is_report_ours(&self) -> Result<bool, CallError> {
        let report = self.cluster.report(&self.subject.name, &self.subject.uid).await?;
        let status = report.and_then(|report| report.status);
        Ok(self.is_ours(self.report.as_ref(), status.as_ref()))
    }

    /// Whether a report that was read is the one that was known before. A write whose answer was lost may
    /// have been carried out.
    pub(crate) fn is_ours(
        &self,
        known: Option<&DefaultsReportStatus>,
        read: Option<&DefaultsReportStatus>,
    ) -> bool {
        read == known || read.is_some() && read == self.unwritten.as_ref()
    }

    /// Gives the report another state, if there is one. With `forget`, it is no record any more. As long as
    /// it is one, it keeps the generation that it is about.
    pub(crate) async fn set_report_state(
        &mut self,
        state: &str,
        policy: &str,
        forget: bool,
    ) -> Result<(), CallError> {
        let Some(report) = self.read_report().await? else { return Ok(()) };
        let status = DefaultsReportStatus {
            state: state.to_owned(),
            policy: policy.to_owned(),
            generation: if forget { self.subject.generation } else { report.generation },
            settles_at: None,
            through: report.through.clone().filter(|_| !forget),
            ..report
        };
        self.write_report(status).await;
        Ok(())
    }

    /// Forgets the report: the next read finds what there is.
    pub(crate) fn forget_report(&mut self) {
        (self.report, self.unwritten, self.opened) = (None, None, false);
    }

    /// The report as it was last read or written.
    pub(crate) fn report(&self) -> Option<&DefaultsReportStatus> {
        self.report.as_ref()
    }

    /// Puts the conditions on the CRD, unless they stand there already.
    pub(crate) async fn set_conditions(&mut self, crd_status: CrdStatus) {
        match crd_status.reason {
            // There may be thousands of them, and nothing is to be seen in them.
            Reason::NoDefaults => self.cluster.metrics().forget(&self.subject.name),
            reason => self.cluster.metrics().state(&self.subject.name, reason.as_str()),
        }
        let present = self.present.clone();
        let conditions: Arc<[Condition]> =
            crd_status.conditions(self.subject.generation, &present, &now().to_string()).into();
        let before = self.last.replace(conditions.clone()).unwrap_or_else(|| present.clone());
        let news =
            event::about_crd(&self.subject.regarding(), &before, &conditions, crd_status.without_names());
        self.conditions = Desired::Status(crd_status);
        match same(&conditions, &present) {
            true => self.last = Some(present),
            false => self.put(conditions).await,
        }
        news.into_iter().for_each(|event| self.events.publish(event));
    }

    /// The last reason that was given.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match &self.conditions {
            Desired::Status(crd_status) => Some(crd_status.reason),
            Desired::Unknown | Desired::None => None,
        }
    }

    /// Whether the CRD carries this reason.
    pub(crate) fn has_reason(&self, reason: Reason) -> bool {
        self.present.iter().any(|condition| condition.reason == reason.as_str())
    }

    /// Whether the CRD's defaults are reported as stored.
    pub(crate) fn is_persisted(&self) -> bool {
        match self.reason() {
            Some(reason) => reason == Reason::AllPersisted,
            None => self.has_reason(Reason::AllPersisted),
        }
    }

    /// Takes our conditions off the CRD, if there are any.
    pub(crate) async fn remove_conditions(&mut self) {
        self.conditions = Desired::None;
        self.cluster.metrics().forget(&self.subject.name);
        self.last = None;
        if !self.present.is_empty() {
            self.put(Arc::default()).await;
        }
    }

    /// Waits until our conditions have to be checked: some time after somebody may have changed the CRD's
    /// conditions, for nobody is fought over them, or after they could not be written.
    ///
    /// This future may be dropped at any time: what is due stays due.
    pub(crate) async fn recheck_due(&mut self) {
        let due = match self.recheck {
            Some(due) => due,
            None if self.conditions_changed.changed().await.is_err() => return std::future::pending().await,
            None => *self.recheck.insert(Instant::now() + self.reapply_backoff.wait()),
        };
        tokio::time::sleep_until(due).await;
    }

    /// How long until our conditions have to be checked; none while nothing asks for it.
    pub(crate) fn recheck_in(&mut self) -> Option<Duration> {
        if self.recheck.is_none() && self.conditions_changed.has_changed().unwrap_or_default() {
            self.conditions_changed.mark_unchanged();
            self.recheck = Some(Instant::now() + self.reapply_backoff.wait());
        }
        self.recheck.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Reads the conditions and sets them again where they are missing; whether somebody else had changed
    /// them.
    pub(crate) async fn recheck(&mut self) -> bool {
        self.recheck = None;
        self.conditions_changed.mark_unchanged();
        let is_changed = match self.cluster.crd(&self.subject.name).await {
            Ok(Some(document)) if document["metadata"]["uid"] == self.subject.uid.as_str() => {
                let stood = std::mem::replace(&mut self.present, condition::present(&document).into());
                !same(&stood, &self.present)
            }
            Ok(_) => {
                debug!("the CRD is gone");
                return false;
            }
            Err(error) => {
                debug!(%error, "cannot read the conditions");
                self.recheck_later();
                return false;
            }
        };
        if is_changed {
            self.reapply_backoff.overwritten();
        }
        match self.conditions.clone() {
            Desired::Unknown => {}
            Desired::Status(crd_status) => self.set_conditions(crd_status).await,
            Desired::None => self.remove_conditions().await,
        }
        if let Some(status) = self.unwritten.take() {
            self.write_report(status).await;
        }
        is_changed
    }

    /// Replaces the report, unless it is the same already.
    ///
    /// What was found out while the CRD was changed is put on no record: servers may have served another
    /// schema by then, and by what they showed nothing is known of this one, which may come back unseen.
    pub(crate) async fn write_report(&mut self, mut status: DefaultsReportStatus) {
        self.unwritten = None;
        status.crd_uid.clone_from(&self.subject.uid);
        size::fit(&mut status);
        if self.report.as_ref() == Some(&status) {
            return;
        }
        let is_new = self.report.as_ref().is_none_or(|known| !is_same_record(known, &status));
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        for _ in 0..5 {
            let answer = match self.write(&mut status, is_new).await {
                Err(error) if error.code() == Some(404) => {
                    self.opened = false;
                    self.write(&mut status, is_new).await
                }
                answer => answer,
            };
            match answer {
                Ok(()) => {
                    self.emit_events(&status);
                    self.report = Some(status);
                    self.write_backoff.succeeded();
                    return;
                }
                Err(error) => {
                    warn!(%error, "cannot write the report");
                    tokio::time::sleep(backoff.failed(error.retry_after())).await;
                }
            }
        }
        self.unwritten = Some(status);
        self.recheck_later();
    }

    /// Publishes events about the objects that a new report names, and about what was dropped.
    fn emit_events(&self, status: &DefaultsReportStatus) {
        let dropped = event::about_drops(&self.subject.regarding(), self.report.as_ref(), status);
        dropped.into_iter().for_each(|event| self.events.publish(event));
        let Some(objects) = &self.subject.objects else { return };
        let news = event::about_objects(objects, self.report.as_ref(), status);
        news.into_iter().for_each(|event| self.events.publish(event));
    }

    /// Writes the report. One that is left from an earlier CRD of this name is made this one's first, and one
    /// that `is_new` on record is no record where the CRD has changed.
    async fn write(&mut self, status: &mut DefaultsReportStatus, is_new: bool) -> Result<(), CallError> {
        let Subject { name, uid, generation, .. } = &self.subject;
        if is_new && status.through.is_some() && !self.cluster.has_generation(name, uid, *generation).await? {
            debug!("the CRD has changed: the report is not a record of it");
            (status.through, status.upto) = (None, None);
        }
        if !self.opened {
            self.cluster.open_report(&self.subject.name, &self.subject.uid).await?;
            self.opened = true;
        }
        self.cluster.set_report(&self.subject.name, status).await
    }

    async fn put(&mut self, conditions: Arc<[Condition]>) {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        for _ in 0..5 {
            match self.cluster.set_conditions(&self.subject.name, &self.subject.uid, &conditions).await {
                Ok(()) => {
                    self.present = conditions;
                    self.write_backoff.succeeded();
                    return;
                }
                Err(error) if matches!(error.code(), Some(404 | 409)) && self.is_crd_gone().await => {
                    debug!("the CRD is gone");
                    return;
                }
                Err(error) => {
                    warn!(%error, "cannot write the conditions");
                    tokio::time::sleep(backoff.failed(error.retry_after())).await;
                }
            }
        }
        self.recheck_later();
    }

    /// Whether the CRD is gone, or another one has its name: a refusal alone does not show that.
    async fn is_crd_gone(&self) -> bool {
        match self.cluster.crd(&self.subject.name).await {
            Ok(Some(document)) => document["metadata"]["uid"] != self.subject.uid.as_str(),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    fn recheck_later(&mut self) {
        if self.recheck.is_none() {
            self.recheck = Some(Instant::now() + self.write_backoff.failed(None));
        }
    }
}

/// The time of day, to the second, as Kubernetes stores it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Whether two reports say the same of which objects are stored.
fn is_same_record(one: &DefaultsReportStatus, other: &DefaultsReportStatus) -> bool {
    let record = |status: &DefaultsReportStatus| {
        let DefaultsReportStatus { digest, storage_version, through, upto, exceptions, .. } = status.clone();
        (digest, storage_version, through, upto, exceptions)
    };
    record(one) == record(other)
}
