//! What a CRD's machine is given: the CRD as it was read, and what its policy asks for.

use std::sync::Arc;

use crate::api::{Mode, Pause, Settings, StoredVersions, StoredVersionsReport};
use crate::condition::{CrdStatus, Reason};
use crate::crd::Crd;
use crate::engine::canary::{CanaryHold, CanaryRun};
use crate::engine::pass_state::{PassState, has_nothing_left};
use crate::engine::status::Status;
use crate::findings::SchemaFindings;
use crate::message::{self, Aim};
use crate::namespaces::Namespaces;
use crate::object_machine::Rules;
use crate::plan::Shown;
use crate::rbac::Verb;
use crate::report::ledger::Ledger;
use crate::report::state::ReportState;
use crate::report::stored_versions::{self, proves_all};
use crate::report::tally::Tally;

/// One CRD under one policy.
#[derive(Clone, Debug)]
pub struct Task {
    /// The CRD.
    pub crd: Arc<Crd>,
    /// What its policy asks for, with the pause under which the present attempt has begun.
    pub settings: Settings,
    /// The pause that is in force now.
    pub pause: Option<Pause>,
    /// What is wrong with the CRD itself.
    pub findings: SchemaFindings,
    /// The resource version of the CRD as it was read.
    pub revision: String,
    /// What it shows of its objects by itself.
    pub shown_by_crd: Shown,
    /// How far its canary has come, and whether that keeps the present attempt from writing.
    pub canary: CanaryRun,
    /// The namespaces that the present attempt reads, if its permissions reach no further; `None` if it reads
    /// all objects.
    pub within: Option<Namespaces>,
}

impl Task {
    /// Whether objects may be written.
    pub fn writes(&self) -> bool {
        self.may_write() && self.canary.hold().is_none()
    }

    /// Whether they may be, apart from a canary.
    pub(super) fn may_write(&self) -> bool {
        self.settings.mode == Mode::Persist && self.settings.pause.is_none()
    }

    /// Whether a pause has begun, changed or ended, or a canary was resumed, since the present attempt began.
    pub(super) fn has_pause_changed(&self) -> bool {
        self.settings.pause != self.pause || self.canary.is_resumed()
    }

    /// The reason of `DefaultsPersisted` where it is for a pause or a canary that nothing is written.
    pub(super) fn hold_reason(&self) -> Option<Reason> {
        let is_paused = self.settings.mode == Mode::Persist && self.settings.pause.is_some();
        match is_paused {
            true => Some(Reason::Paused),
            false => self.canary.hold().map(CanaryHold::reason),
        }
    }

    /// What has to be permitted for this attempt.
    pub(super) fn verbs(&self) -> &'static [Verb] {
        match self.writes() {
            true => &[Verb::Get, Verb::List, Verb::Watch, Verb::Patch],
            // An object is read by itself only to be written again.
            false => &[Verb::List, Verb::Watch],
        }
    }

    /// The namespaces of all objects that the policy selects, if it names each of them: permissions for these
    /// are enough.
    pub(super) fn namespaces(&self) -> Option<Namespaces> {
        self.settings.terms.selection.namespaces().filter(|_| self.crd.is_namespaced())
    }

    /// What objects are processed by.
    pub(super) fn rules(&self, state: &ReportState) -> Rules {
        Rules {
            crd: self.crd.clone(),
            terms: self.settings.terms.clone(),
            mode: match self.settings.pause.is_some() || self.canary.hold().is_some() {
                true => Mode::Audit,
                false => self.settings.mode,
            },
            since: Arc::new(state.since()),
        }
    }

    /// Whether it is reported at which versions the objects are stored: `status.storedVersions` has an old
    /// one, and the policy does not ignore that.
    pub(super) fn reports_versions(&self) -> bool {
        self.settings.stored_versions != StoredVersions::Ignore
            && self.settings.mode != Mode::Ignore
            && self.crd.stored_elsewhere()
            && self.crd.storage().served
            && !self.crd.is_shadowed()
    }

    /// Whether the policy asks for owners to be repaired, though no version gives defaults.
    pub(super) fn repairs_owners(&self) -> bool {
        self.settings.terms.repairs
            && self.settings.mode == Mode::Persist
            && !self.crd.gives_defaults()
            && self.crd.storage().served
            && !self.crd.is_shadowed()
    }

    /// What objects are written for, where no version gives defaults.
    fn aim(&self) -> Option<Aim> {
        let moves = self.settings.terms.moves && self.reports_versions() && !self.crd.gives_defaults();
        match (moves, self.repairs_owners()) {
            _ if !self.may_write() => None,
            (true, _) => Some(Aim::Move),
            (false, true) => Some(Aim::Repair),
            (false, false) => None,
        }
    }

    /// Whether objects are written though no version gives defaults.
    pub(super) fn writes_without_defaults(&self) -> bool {
        self.aim().is_some()
    }

    /// Whether a pass shows at which versions objects are stored, and that is reported: it writes each object
    /// that may be stored at an old version.
    pub(super) fn proves_versions(&self) -> bool {
        let is_asked = self.crd.gives_defaults() || self.settings.terms.moves;
        self.writes() && is_asked && self.reports_versions()
    }

    /// Whether the policy asks for old versions to be taken out of `status.storedVersions`.
    pub(super) fn trims(&self) -> bool {
        self.settings.stored_versions == StoredVersions::Trim
    }

    /// The old versions to take out of `status.storedVersions`: none while anything is open about any object.
    pub(super) fn versions_to_trim(&self, pass: &PassState) -> Vec<String> {
        let trims = self.trims() && self.pause.is_none() && pass.watch_failure.is_none();
        let proved = self.proved_versions(pass).filter(|_| trims);
        proved.map(|versions| versions.removable).unwrap_or_default()
    }

    /// What a pass has shown of the versions that could go; `None` if passes do not show it.
    pub(super) fn proved_versions(&self, pass: &PassState) -> Option<StoredVersionsReport> {
        let report = || {
            let proved = stored_versions::of_counts(&self.crd, pass.tally.counts(), pass.times.verify_at);
            match &self.within {
                // Of the objects of other namespaces nothing is known.
                Some(read) => stored_versions::hindered(proved, &format!("Etch reads only {read}")),
                None => proved,
            }
        };
        self.proves_versions().then(report)
    }

    /// See [`has_nothing_left`].
    pub(super) fn has_nothing_left(&self, tally: &Tally) -> bool {
        !self.writes_without_defaults() && has_nothing_left(&self.crd, &self.settings, tally.counts())
    }

    /// What is reported about the objects: a CRD without defaults goes on having none, whatever keeps its
    /// objects from being moved.
    pub(super) fn shown(&self, crd_status: CrdStatus) -> CrdStatus {
        match self.only_aim() {
            Some(aim) => message::without_defaults(&self.crd, aim, crd_status),
            None => crd_status,
        }
    }

    /// What objects are written for, if nothing else may be the reason.
    fn only_aim(&self) -> Option<Aim> {
        self.aim().filter(|_| self.settings.follow.is_empty())
    }

    /// The status while a pass is under way, or has just been paused.
    pub(super) fn in_progress(&self, tally: &Tally, verified: Option<u64>) -> CrdStatus {
        let pause = self.pause.as_ref().filter(|_| self.settings.mode == Mode::Persist);
        let hold = self.canary.lasting_hold();
        self.shown(message::in_progress(&self.findings, pause, hold, tally, verified))
    }

    /// The status after a pass, with what happened to the values of changed defaults.
    pub(super) fn after_pass(&self, ledger: &Ledger, pass: &PassState, settings: &Settings) -> CrdStatus {
        let (hold, within) = (self.canary.lasting_hold(), self.within.as_ref());
        let mut crd_status = match self.only_aim() {
            Some(aim) => message::done_without_defaults(&self.findings, aim, hold, within, &pass.tally),
            None => message::held(&self.findings, settings, hold, within, &pass.tally),
        };
        let changes = ledger.changes.summary();
        if !changes.is_empty() {
            crd_status.append(&changes);
        }
        if let Some(lost) = ledger.dropped.lost() {
            crd_status.append(&lost);
        }
        self.shown(match &pass.watch_failure {
            Some(failure) => message::watch_failing(crd_status, failure),
            None => crd_status,
        })
    }

    /// Brings the report and, unless the CRD has nothing left, its conditions up to date. `hindrance` is why
    /// versions that could go were not taken out.
    pub(super) fn publish(
        &self,
        status: &mut Status,
        state: &ReportState,
        ledger: &Ledger,
        pass: &PassState,
        hindrance: Option<&str>,
    ) {
        let crd_status = self.after_pass(ledger, pass, &self.settings);
        // That a CRD has no defaults left is reported once this has ended.
        let nothing_left = self.has_nothing_left(&pass.tally);
        let reason = if nothing_left { Reason::NoDefaults } else { crd_status.reason };
        // The report comes first: a client that waits for the condition finds it there.
        let mut report = state.counted(ledger, reason, &pass.tally, pass.finished_through, pass.times);
        if let Some(proved) = self.proved_versions(pass) {
            // Once the versions are out, however late, nothing else shows it.
            report.all_at_storage_version |= proves_all(&proved);
            report.stored_versions = Some(match hindrance {
                Some(why) => stored_versions::hindered(proved, why),
                None => proved,
            });
        }
        status.set_report(report);
        if !nothing_left {
            status.set_conditions(crd_status);
        }
    }

    /// The status of a watched CRD when a pause begins or ends: what is proved stays so.
    pub(super) fn after_pause(&self, ledger: &Ledger, pass: &PassState) -> CrdStatus {
        let settings = Settings { pause: self.pause.clone(), ..self.settings.clone() };
        let known = self.after_pass(ledger, pass, &settings);
        let is_proved = known.reason == Reason::AllPersisted;
        if is_proved { known } else { self.in_progress(&pass.tally, None) }
    }
}
