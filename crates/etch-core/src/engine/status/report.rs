//! The report on a CRD: the last known one, and the requests that replace it if it is unchanged.

use std::sync::Arc;

use super::command::{Command, Subject};
use crate::api::{DefaultsReport, DefaultsReportStatus};
use crate::call_error::CallError;
use crate::event::{self, Event};

/// The report on one CRD.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    /// The resource version of the report, where it is known to be there and about this CRD: one of that name
    /// may be left from an earlier CRD.
    version: Option<String>,
    /// The report as it was last read or written.
    known: Option<Arc<DefaultsReportStatus>>,
    /// A report that could not be written.
    unwritten: Option<Arc<DefaultsReportStatus>>,
    /// The report that stood there where another one was expected.
    other: Option<DefaultsReportStatus>,
}

/// A report that is being written.
#[derive(Clone, Debug)]
pub(super) struct ReportWrite {
    pub(super) status: Arc<DefaultsReportStatus>,
    /// Whether it records other objects as stored than the one before.
    is_new: bool,
}

/// What follows an answer about the report that is being written.
pub(super) enum Step {
    /// The report is up to date.
    Stands,
    /// Another writer replaced the report.
    Other,
    /// Another request.
    Send(Command),
    /// Another attempt, for the report stands there as it was known.
    Again,
    /// Another attempt, after this error.
    Failed(CallError),
}

impl Report {
    /// As it was last read or written.
    pub(super) fn known(&self) -> Option<&Arc<DefaultsReportStatus>> {
        self.known.as_ref()
    }

    /// The report that stood there where another one was expected; asked once.
    pub(super) fn take_other(&mut self) -> Option<DefaultsReportStatus> {
        self.other.take()
    }

    /// Handles the report as it was read; `None` if this CRD has none.
    pub(super) fn read(&mut self, report: Option<Box<DefaultsReport>>) {
        self.version = report.as_ref().and_then(|report| report.metadata.resource_version.clone());
        self.known = report.and_then(|report| report.status).map(Arc::new);
    }

    /// Handles a report that could not be written.
    pub(super) fn set_unwritten(&mut self, status: Arc<DefaultsReportStatus>) {
        self.unwritten = Some(status);
    }

    /// A report that could not be written, to be written again.
    pub(super) fn take_unwritten(&mut self) -> Option<Arc<DefaultsReportStatus>> {
        self.unwritten.take()
    }

    /// Whether a report that was read could not be written, as it seemed.
    pub(super) fn is_unwritten(&self, read: Option<&DefaultsReportStatus>) -> bool {
        read.is_some() && read == self.unwritten.as_deref()
    }

    /// How to replace it by this one; `None` if that stands there already.
    pub(super) fn replaced_by(&mut self, status: Arc<DefaultsReportStatus>) -> Option<ReportWrite> {
        self.unwritten = None;
        (self.known.as_ref() != Some(&status)).then(|| {
            let is_new = self.known.as_ref().is_none_or(|known| !is_same_record(known, &status));
            ReportWrite { status, is_new }
        })
    }

    /// The first request of an attempt.
    pub(super) fn first_request(&self, write: &ReportWrite) -> Command {
        // What is new goes on record only if the CRD has not changed.
        match write.is_new && write.status.through.is_some() {
            true => Command::ReadGeneration,
            false => self.request(write),
        }
    }

    fn request(&self, write: &ReportWrite) -> Command {
        match &self.version {
            Some(version) => Command::SetReport(write.status.clone(), version.clone()),
            None => Command::OpenReport,
        }
    }

    /// Records whether the CRD still has the generation that the report is about.
    pub(super) fn generation_read(&self, write: &mut ReportWrite, answer: Result<bool, CallError>) -> Step {
        match answer {
            Ok(is_same) => {
                if !is_same {
                    let status = Arc::make_mut(&mut write.status);
                    (status.through, status.upto) = (None, None);
                }
                Step::Send(self.request(write))
            }
            Err(error) => Step::Failed(error),
        }
    }

    /// Handles the answer to a write: the report's resource version.
    pub(super) fn written(&mut self, write: &ReportWrite, answer: Result<String, CallError>) -> Step {
        match answer {
            Ok(version) => {
                let was_open = self.version.replace(version).is_some();
                if was_open { Step::Stands } else { Step::Send(self.request(write)) }
            }
            // A restore of etcd takes a report away, too, and one that has no status yet. An answer that
            // names no object is one of a server or a proxy that serves no reports.
            Err(CallError::Refused(refusal)) if refusal.is_missing_object() && self.version.is_some() => {
                Step::Other
            }
            Err(error) if error.code() == Some(409) => Step::Send(Command::ReadReport),
            Err(error) => Step::Failed(error),
        }
    }

    /// Handles the report as it stands where another was expected; `None` if this CRD has none.
    pub(super) fn read_again(
        &mut self,
        write: &ReportWrite,
        answer: Result<Option<Box<DefaultsReport>>, CallError>,
    ) -> Step {
        let report = match answer {
            Ok(report) => report,
            Err(error) => return Step::Failed(error),
        };
        let status = report.as_ref().and_then(|report| report.status.as_ref());
        // A restore of etcd may bring back an older one that reads the same.
        let is_older =
            revision(report.as_deref().and_then(|report| report.metadata.resource_version.as_ref()))
                < revision(self.version.as_ref());
        // A write whose answer was lost has been carried out.
        let is_written = status == Some(&*write.status) && !is_older;
        let is_known = report.is_some() && status == self.known.as_deref() && !is_older;
        if is_written || is_known {
            self.version = report.as_ref().and_then(|report| report.metadata.resource_version.clone());
        }
        match is_written {
            true => Step::Stands,
            false if is_known => Step::Again,
            false => {
                self.other = report.and_then(|report| report.status);
                Step::Other
            }
        }
    }

    /// Records that this one stands there; the events about the objects that it names, and about what was
    /// dropped.
    pub(super) fn stands(&mut self, status: Arc<DefaultsReportStatus>, subject: &Subject) -> Vec<Event> {
        let before = self.known.as_deref();
        let dropped = event::about_drops(&subject.regarding(), before, &status);
        let about = subject.objects.as_ref().map(|objects| event::about_objects(objects, before, &status));
        let news = dropped.into_iter().chain(about.into_iter().flatten()).collect();
        self.known = Some(status);
        news
    }
}

fn revision(version: Option<&String>) -> Option<u64> {
    version?.parse().ok()
}

/// Whether two reports record the same objects as stored.
fn is_same_record(one: &DefaultsReportStatus, other: &DefaultsReportStatus) -> bool {
    let record = |status: &DefaultsReportStatus| {
        let DefaultsReportStatus { digest, storage_version, through, upto, exceptions, .. } = status.clone();
        (digest, storage_version, through, upto, exceptions)
    };
    record(one) == record(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::DefaultsReportSpec;

    fn report(version: &str, state: &str) -> Option<Box<DefaultsReport>> {
        let mut report = DefaultsReport::new("things.example.com", DefaultsReportSpec::default());
        report.metadata.resource_version = Some(version.to_owned());
        report.status = Some(DefaultsReportStatus { state: state.to_owned(), ..Default::default() });
        Some(report.into())
    }

    /// The write of `AllPersisted` was answered with a conflict, and this is what stands there.
    fn after_a_conflict(version: &str, state: &str) -> Step {
        let mut known = Report::default();
        known.read(report("199", "InProgress"));
        let status = DefaultsReportStatus { state: "AllPersisted".to_owned(), ..Default::default() };
        let write = known.replaced_by(Arc::new(status)).expect("it is another one");
        known.read_again(&write, Ok(report(version, state)))
    }

    #[test]
    fn a_report_that_is_older_was_restored_whatever_it_reads() {
        assert!(matches!(after_a_conflict("201", "AllPersisted"), Step::Stands), "the answer was lost");
        assert!(matches!(after_a_conflict("187", "AllPersisted"), Step::Other));
        assert!(matches!(after_a_conflict("201", "InProgress"), Step::Again));
        assert!(matches!(after_a_conflict("187", "InProgress"), Step::Other));
        assert!(matches!(after_a_conflict("201", "Settling"), Step::Other));
    }
}
