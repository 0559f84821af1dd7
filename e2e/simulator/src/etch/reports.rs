//! What the machine's status asks for: conditions and report are written, and read again.

use etch_core::api::DefaultsReport;
use etch_core::call_error::CallError;
use etch_core::engine::status;
use kube_structural_schema::json::Json;

use super::{Driver, Stray, StrayWrite, Surroundings, call_refused, failed, lost, refused};
use crate::etcd::Resource;
use crate::sabotage::Sabotage;

impl Driver {
    pub(super) fn write_status(
        &mut self,
        command: status::Command,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) {
        let command = match (command, at.sabotage) {
            (status::Command::SetReport(report, version), Some(Sabotage::RecordsAhead)) => {
                let mut report = (*report).clone();
                report.through = report.through.map(|_| at.clock.revision.to_string());
                report.exceptions = Default::default();
                status::Command::SetReport(report.into(), version)
            }
            (command, _) => command,
        };
        let is_lost = Self::fails(at);
        let now = at.now.at;
        at.note(|| reported(&command, is_lost, resource));
        match command {
            status::Command::SetConditions(..) => {
                let answer = self.write_or_lose(command, is_lost, resource, at);
                self.machine.status().written(now, answer.map(|_| resource.crd_revision()));
            }
            status::Command::OpenReport | status::Command::SetReport(..) => {
                if let (status::Command::SetReport(report, _), true) = (&command, is_lost) {
                    self.sent_report = Some((**report).clone());
                }
                let answer = self.write_or_lose(command, is_lost, resource, at);
                if answer.is_ok() {
                    self.sent_report = None;
                    self.note_report(resource);
                }
                self.machine.status().report_written(now, answer);
            }
            status::Command::ReadReport => {
                if !is_lost {
                    self.note_report(resource);
                }
                let report = if is_lost { Err(failed(at)) } else { Ok(self.report(resource).map(Box::new)) };
                self.machine.status().report_read_again(now, report);
            }
            status::Command::ReadCrd => {
                let document =
                    if is_lost { Err(failed(at)) } else { Ok(Some(Json::from(resource.document()))) };
                self.machine.status().crd_read(now, document);
            }
            status::Command::ReadGeneration => {
                let is_same = resource.generation() == self.knows;
                let answer = if is_lost { Err(failed(at)) } else { Ok(is_same) };
                self.machine.status().generation_read(now, answer);
            }
            status::Command::Emit(_) | status::Command::Count { .. } => {}
        }
    }

    pub(super) fn note_report(&mut self, resource: &Resource) {
        self.known_report = resource.report.as_ref().and_then(|report| report.status.clone());
    }

    /// The report on the CRD that it knows.
    pub(super) fn report(&self, resource: &Resource) -> Option<DefaultsReport> {
        let uid = self.machine.task().crd.uid();
        resource.report.clone().filter(|report| report.spec.crd_uid == uid)
    }

    /// Carries out a write of conditions or report, unless it is lost: then it may have been carried out, or
    /// be carried out later.
    fn write_or_lose(
        &self,
        command: status::Command,
        is_lost: bool,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<String, CallError> {
        let is_about_another = self.machine.task().crd.uid() != resource.crd().uid();
        if is_about_another && !matches!(command, status::Command::SetConditions(..)) {
            // Its owner is gone, and so is the report.
            return Err(refused(404, "not found"));
        }
        if !is_lost {
            return resource.set_status(&command, at.clock).map_err(|refused| call_refused(&refused));
        }
        match at.dice.roll(3) {
            0 => drop(resource.set_status(&command, at.clock)),
            1 => at.strays.push(Stray { resource: self.resource, write: StrayWrite::Status(command) }),
            _ => return Err(failed(at)),
        }
        Err(lost())
    }
}

/// A command in a trace, with what it meets.
fn reported(command: &status::Command, is_lost: bool, resource: &Resource) -> String {
    let lost = if is_lost { ", which is lost" } else { "" };
    let stands = resource.report.as_ref();
    let version = stands.and_then(|report| report.metadata.resource_version.as_deref()).unwrap_or("none");
    match command {
        status::Command::SetReport(report, expected) => {
            let (state, through, upto) = (&report.state, &report.through, &report.upto);
            format!(
                "SetReport {state} through {through:?} upto {upto:?} at {expected}, it is {version}{lost}"
            )
        }
        status::Command::OpenReport | status::Command::ReadReport => {
            let state = stands.and_then(|report| report.status.as_ref()).map(|status| &status.state);
            format!("{command:?}: {state:?} at {version}{lost}")
        }
        command => format!("{command:?}{lost}"),
    }
}
