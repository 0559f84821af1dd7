//! Sends what a [`Status`] asks for: conditions, reports and events.

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep_until};
use tracing::{debug, warn};

use crate::cluster::{Cluster, Events};
use crate::operator::options::Clock;
use etch_core::api::DefaultsReport;
use etch_core::call_error::CallError;
use etch_core::engine::Now;
use etch_core::engine::status::{Command, CrdRevision, Status, Subject};
use kube_structural_schema::json::Json;

/// What sends it.
#[derive(Clone)]
pub(crate) struct StatusWriter {
    pub(crate) cluster: Cluster,
    pub(crate) events: Events,
    pub(crate) clock: Clock,
}

/// The answer to a request.
pub(crate) enum Answer {
    Written(Result<CrdRevision, CallError>),
    ReportWritten(Result<String, CallError>),
    Report(Result<Option<Box<DefaultsReport>>, CallError>),
    Crd(Result<Option<Json>, CallError>),
    Generation(Result<bool, CallError>),
}

impl Answer {
    /// Passes it to the status that has asked.
    pub(crate) fn give(self, status: &mut Status, now: Now) {
        match self {
            Self::Written(answer) => status.written(now.at, answer),
            Self::ReportWritten(answer) => status.report_written(now.at, answer),
            Self::Report(answer) => status.report_read_again(now.at, answer),
            Self::Crd(answer) => status.crd_read(now.at, answer),
            Self::Generation(answer) => status.generation_read(now.at, answer),
        }
    }
}

impl StatusWriter {
    /// What time it is, as machines take it.
    pub(crate) fn now(&self) -> Now {
        Now { at: Instant::now().into_std(), date: self.clock.second() }
    }

    /// Performs a command; `None` if it needs no answer.
    pub(crate) fn perform(&self, subject: &Subject, command: Command) -> Option<BoxFuture<'static, Answer>> {
        let (cluster, Subject { name, uid, generation, .. }) = (self.cluster.clone(), subject.clone());
        Some(match command {
            Command::SetConditions(conditions, version) => async move {
                let answer = cluster.set_conditions(&name, &uid, Some(&version), &conditions).await;
                Answer::Written(answer.inspect_err(|error| log_failure(error, "cannot write the conditions")))
            }
            .boxed(),
            Command::OpenReport => async move {
                let answer = cluster.open_report(&name, &uid).await;
                Answer::ReportWritten(
                    answer.inspect_err(|error| log_failure(error, "cannot write the report")),
                )
            }
            .boxed(),
            Command::SetReport(report, version) => async move {
                let answer = cluster.set_report(&name, &report, &version).await;
                Answer::ReportWritten(
                    answer.inspect_err(|error| log_failure(error, "cannot write the report")),
                )
            }
            .boxed(),
            Command::ReadReport => async move {
                let answer = cluster.report(&name, &uid).await;
                let answer = answer.inspect_err(|error| log_failure(error, "cannot read the report"));
                Answer::Report(answer.map(|report| report.map(Box::new)))
            }
            .boxed(),
            Command::ReadCrd => async move {
                let answer = cluster.crd(&name).await;
                Answer::Crd(answer.inspect_err(|error| debug!(%error, "cannot read the conditions")))
            }
            .boxed(),
            Command::ReadGeneration => async move {
                let answer = cluster.has_generation(&name, &uid, generation).await;
                Answer::Generation(answer.inspect_err(|error| log_failure(error, "cannot write the report")))
            }
            .boxed(),
            Command::Emit(event) => {
                self.events.publish(event);
                return None;
            }
            Command::Count { reason, are_owners_lost } => {
                let metrics = self.cluster.metrics();
                match reason {
                    Some(reason) => metrics.state(&name, reason.as_str()),
                    None => metrics.forget(&name),
                }
                metrics.owners_lost(&name, are_owners_lost);
                return None;
            }
        })
    }

    /// Reads the report of a CRD.
    pub(crate) async fn read_report(&self, status: &mut Status) -> Result<(), CallError> {
        let Subject { name, uid, .. } = status.subject();
        let report = self.cluster.report(name, uid).await?;
        status.report_read(report.map(Box::new));
        Ok(())
    }

    /// Writes all that is wanted of a status.
    pub(crate) async fn write(&self, status: &mut Status) {
        loop {
            while let Some(command) = status.poll(self.now()) {
                if let Some(request) = self.perform(status.subject(), command) {
                    request.await.give(status, self.now());
                }
            }
            match status.timeout() {
                Some(at) => sleep_until(Instant::from_std(at)).await,
                None => return,
            }
        }
    }
}

/// Repairs our conditions if another client may have changed them, while nothing else is under way; returns
/// how long until the next check.
pub(crate) async fn recheck_if_due(
    writer: &StatusWriter,
    status: &mut Status,
    shown: &mut watch::Receiver<CrdRevision>,
) -> Option<Duration> {
    if shown.has_changed().unwrap_or_default() {
        let revision = shown.borrow_and_update().clone();
        status.crd_shown(writer.now().at, revision);
    }
    if status.recheck_due()? <= writer.now().at {
        status.recheck();
        writer.write(status).await;
    }
    let due = status.recheck_due()?;
    Some(due.saturating_duration_since(writer.now().at))
}

/// That the CRD is gone, or another one has its name, is not worth a warning.
fn log_failure(error: &CallError, what: &str) {
    match error.code() {
        Some(404 | 409) if !matches!(error, CallError::NotInstalled) => debug!(%error, "{what}"),
        _ => warn!(%error, "{what}"),
    }
}
