//! The content of the report on a CRD, with what it keeps for the next run.
//! The status writer writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{
    CanaryProgress, CanaryState, DefaultPath, DefaultsReportStatus, ObjectProblem, PreviousDefaults,
    ServedVersion, Settings, StoredVersions, StoredVersionsReport,
};
use crate::condition::Reason;
use crate::crd::Crd;
use crate::namespaces::Namespaces;
use crate::object::Identity;
use crate::object_state::{Problem, StateKind};
use crate::plan::{FormerDefault, Since, Skip};
use crate::report::carried::{carried, is_lag_harmless};
use crate::report::dropped_fields::DroppedFields;
use crate::report::former_defaults::{self, listed, remembered};
use crate::report::schema::{is_about, list, past};
use crate::report::served::{has_unknown, may_drop_defaults, misses_generations, served, served_since};
use crate::report::size;
use crate::report::stored_versions::proves_all;
use crate::report::tally::Tally;
use crate::selection::{ObjectSelector, Selection};
use kube_structural_schema::json::Json;
use kube_structural_schema::prune::keeps;

/// How many objects the report names of those that are held, rejected, ignored or being deleted.
const LISTED: usize = 50;
/// The longest selector of objects that it keeps, in bytes of JSON: nothing is on record under a longer one.
const SELECTOR: usize = 16 * 1024;
/// How many earlier schemas it remembers of those for which a pass has ended, and of others: schemas that
/// change faster than a pass is made must not push out the one whose defaults the objects hold.
const PREVIOUS: usize = 3;
const UNFINISHED: usize = 5;
/// How long after a change of the schema an API server may store objects by the old one: what was written
/// until then is verified once more.
///
/// A server whose watch of CRDs hangs lags behind until it opens another one. It does so after 10 minutes at
/// the latest, for no watch of client-go's reflector lasts longer (`minWatchTimeout` is 5 minutes, and up to
/// as much again by chance); one more for the list after it, and for clocks that differ.
pub const LAG: Duration = Duration::from_secs(11 * 60);

/// The part of a report that does not depend on the objects.
#[derive(Clone, Debug, Default)]
pub struct ReportState {
    policy: String,
    generation: i64,
    /// What is served now, and what was since the resource version of the last record.
    served: Vec<ServedVersion>,
    recorded: Option<(String, Vec<ServedVersion>)>,
    /// Whether the record is only what the CRD itself shows.
    is_shown_by_crd: bool,
    storage_version: String,
    digest: String,
    first_seen: Timestamp,
    verify_at: Option<Timestamp>,
    canary: Option<CanaryProgress>,
    defaults: Vec<DefaultPath>,
    more_defaults: u64,
    previous: Vec<PreviousDefaults>,
    former: Vec<FormerDefault>,
    /// Whether a server that still serves the schema before stores these defaults as well.
    is_lag_harmless: bool,
    /// What is known of the versions that could go out of `status.storedVersions`.
    stored_versions: Option<StoredVersionsReport>,
    /// Whether every object is known to be stored at the storage version.
    all_at_storage_version: bool,
    /// Which objects are processed.
    selection: Selection,
    /// The namespaces that are read; `None` if all are.
    within: Option<Namespaces>,
}

/// The times of a pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// When the pass began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// When it is to be verified once more; none once that is done.
    pub verify_at: Option<Timestamp>,
}

impl ReportState {
    /// Continues the last report, if there is one. `revision` is the resource version of the CRD as it was
    /// read.
    pub fn open(
        report: Option<&DefaultsReportStatus>,
        crd: &Crd,
        settings: &Settings,
        revision: &str,
        now: Timestamp,
    ) -> Self {
        let digest = crd.digest();
        let storage_version = crd.storage().name.clone();
        let is_this = |other: &str, version: &str| (other, version) == (&digest, &storage_version);
        let still = report.filter(|report| is_this(&report.digest, &report.storage_version));
        let mut previous = report.map(|report| report.previous.clone()).unwrap_or_default();
        let again = previous.iter().find(|past| is_this(&past.digest, &past.storage_version)).cloned();
        if let Some(report) = report.filter(|report| still.is_none() && !report.digest.is_empty()) {
            previous.insert(0, PreviousDefaults { served: served_since(report, crd), ..past(report) });
            remember(&mut previous);
        }
        if report.is_some_and(|report| !report.digest.is_empty() && misses_generations(report, crd)) {
            previous.insert(0, unseen(now));
            remember(&mut previous);
        }
        let first_seen = match (still, &again) {
            (Some(report), _) => report.first_seen.as_ref(),
            // What has stood its time before need not do so again; what has not, starts afresh.
            (None, Some(past)) => past.first_seen.as_ref().filter(|_| past.finished.is_some()),
            (None, None) => None,
        };
        // A server that lags behind may still serve what the last generation served.
        let may_drop_by_lag = |report: &DefaultsReportStatus| {
            !crd.versions_disagree() && may_drop_defaults(&served_since(report, crd))
        };
        let reports_versions = settings.stored_versions != StoredVersions::Ignore && crd.stored_elsewhere();
        let may_write = crd.gives_defaults() || settings.terms.moves && reports_versions;
        // No verification has asked about every object since the storage version may have changed.
        let is_unasked = |report: &DefaultsReportStatus| {
            let is_verified = report.stored_versions.as_ref().is_some_and(|versions| versions.verified);
            let is_new = !is_verified && report.verify_at.is_none();
            reports_versions && (is_new || has_unknown(&served_since(report, crd)))
        };
        let verify_at = match still {
            Some(report) if !may_drop_by_lag(report) && !is_unasked(report) => {
                report.verify_at.as_ref().map(|time| time.0)
            }
            Some(_) | None => now.checked_add(LAG).ok().filter(|_| may_write),
        };
        let (mut defaults, more_defaults) = list(crd);
        date(&mut defaults, report, revision);
        let former = report.map(|report| remembered(report, crd, &defaults, still.is_some()));
        Self {
            policy: settings.policy.clone(),
            generation: crd.generation(),
            served: served(crd),
            recorded: match still.and_then(|report| report.through.clone()) {
                Some(through) => still.map(|report| (through, served_since(report, crd))),
                None => report
                    .and_then(|report| carried(report, crd))
                    .and_then(|(before, served)| Some((before.through?, served))),
            },
            is_shown_by_crd: still.is_some_and(|report| report.shown_by_crd),
            first_seen: first_seen.map_or(now, |time| time.0),
            verify_at,
            canary: still.and_then(|report| report.canary.clone()),
            digest,
            storage_version,
            defaults,
            more_defaults,
            is_lag_harmless: is_lag_harmless(&previous, crd),
            previous,
            former: former.unwrap_or_default(),
            stored_versions: still
                .filter(|_| reports_versions)
                .and_then(|report| report.stored_versions.clone()),
            all_at_storage_version: report.is_some_and(|report| all_at_storage_version(report, crd)),
            selection: settings.terms.selection.clone(),
            within: None,
        }
    }

    /// Which objects are processed.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Sets which namespaces are read; `None` if all are.
    pub fn set_within(&mut self, within: Option<Namespaces>) {
        self.within = within;
    }

    /// The namespaces that are read, as a report has them.
    pub(super) fn read_namespaces(&self) -> Vec<String> {
        self.within.as_ref().map(|within| within.names().to_vec()).unwrap_or_default()
    }

    /// Sets whether the record is only what the CRD itself shows.
    pub fn set_shown_by_crd(&mut self, is_shown_by_crd: bool) {
        self.is_shown_by_crd = is_shown_by_crd;
    }

    /// When these defaults were first seen.
    pub fn first_seen(&self) -> Timestamp {
        self.first_seen
    }

    /// When what was written since the pass is verified once more; none once that is done.
    pub fn verify_at(&self) -> Option<Timestamp> {
        self.verify_at
    }

    /// Sets when it is verified: the task may know better than the report.
    pub fn set_verify_at(&mut self, verify_at: Option<Timestamp>) {
        self.verify_at = verify_at;
    }

    /// How far the canary of this generation has come; `None` before it begins.
    pub fn canary(&self) -> Option<&CanaryProgress> {
        self.canary.as_ref()
    }

    /// Sets how far the canary has come.
    pub fn set_canary(&mut self, canary: Option<CanaryProgress>) {
        self.canary = canary;
    }

    /// Sets what is known of the versions that could go out of `status.storedVersions`.
    pub fn set_stored_versions(&mut self, stored_versions: Option<StoredVersionsReport>) {
        self.stored_versions = stored_versions;
    }

    /// What is known of the versions that could go out of `status.storedVersions`.
    pub fn stored_versions(&self) -> Option<&StoredVersionsReport> {
        self.stored_versions.as_ref()
    }

    /// What earlier schemas gave, newest first.
    pub fn previous(&self) -> &[PreviousDefaults] {
        &self.previous
    }

    /// The fields that had a default once and have none now.
    pub fn former_defaults(&self) -> &[FormerDefault] {
        &self.former
    }

    /// Records what the CRD itself shows of former defaults.
    pub fn add_former(&mut self, shown: &[FormerDefault]) {
        let present: BTreeSet<&str> = self.defaults.iter().map(|default| default.path.as_str()).collect();
        let gone = shown.iter().filter(|former| !present.contains(former.path.to_string().as_str()));
        former_defaults::add(&mut self.former, gone.cloned().collect());
    }

    /// Forgets what is on record, which is about another past. That a field had a default stays known: etcd
    /// may hold it, whenever an object was written.
    pub fn forget_record(&mut self) {
        for past in &mut self.previous {
            (past.through, past.open) = (None, None);
            past.exceptions.clear();
        }
        for former in &mut self.former {
            former.until = None;
        }
        (self.recorded, self.stored_versions, self.all_at_storage_version) = (None, None, false);
    }

    /// Records that each write after this resource version was made where the present schema was served.
    pub fn served_everywhere_since(&mut self, revision: u64, crd: &Crd) {
        let schema = &crd.storage().schema;
        for former in self.former.iter_mut().filter(|former| !keeps(schema, former.path.steps())) {
            former.until.get_or_insert(revision);
        }
    }

    /// Whether nothing that a server stores which lags behind lacks a default: it serves the schema before,
    /// which has them all.
    pub fn is_lag_harmless(&self) -> bool {
        self.is_lag_harmless
    }

    /// The CRD's resource version at which each default was first seen, by its place in the schema.
    pub fn since(&self) -> Since {
        let dated = self.defaults.iter();
        dated.filter_map(|known| Some((known.path.clone(), known.since.as_ref()?.parse().ok()?))).collect()
    }

    /// Has a report whose record stays name the current generation, and what was served since the record.
    pub fn add_generation(&self, status: &mut DefaultsReportStatus) {
        let through = status.through.as_ref().and_then(|through| through.parse().ok());
        status.generation = self.generation;
        status.served = self.served_since(through).to_vec();
    }

    /// What was served since a record that goes up to this resource version.
    fn served_since(&self, through: Option<u64>) -> &[ServedVersion] {
        match &self.recorded {
            Some((recorded, served)) if through.is_some_and(|through| *recorded == through.to_string()) => {
                served
            }
            Some(_) | None => &self.served,
        }
    }

    /// The report while these defaults are given time.
    pub fn settling(&self, until: Timestamp, dropped: &DroppedFields) -> DefaultsReportStatus {
        let settles_at = Some(Time(until));
        DefaultsReportStatus {
            settles_at,
            ..self.status(Reason::Settling.as_str(), None, None, self.times(), dropped)
        }
    }

    /// The report where no object is read, whatever the state is.
    pub fn idle(&self, state: &str, dropped: &DroppedFields) -> DefaultsReportStatus {
        self.status(state, None, None, self.times(), dropped)
    }

    /// The times while there is no pass.
    fn times(&self) -> Times {
        Times { verify_at: self.verify_at, ..Times::default() }
    }

    /// Whether a report is about these very defaults.
    pub fn is_about(&self, report: &DefaultsReportStatus) -> bool {
        (&report.digest, &report.storage_version) == (&self.digest, &self.storage_version)
    }

    /// A report on these very defaults with another state: the part about the objects stays, with the
    /// generation that it is about. Whether those in between had these defaults is unknown.
    pub fn with_state(
        &self,
        report: &DefaultsReportStatus,
        state: &str,
        dropped: &DroppedFields,
    ) -> DefaultsReportStatus {
        let mut status = DefaultsReportStatus {
            state: state.to_owned(),
            policy: self.policy.clone(),
            settles_at: None,
            canary: self.canary.clone(),
            stored_versions: self.stored_versions.clone(),
            all_at_storage_version: self.all_at_storage_version,
            former_defaults: listed(&self.former),
            ..report.clone()
        };
        dropped.add_to_report(&mut status);
        status
    }

    /// The report about objects that were processed up to a resource version.
    pub fn status<'a>(
        &self,
        state: &str,
        tally: impl Into<Option<&'a Tally>>,
        through: Option<u64>,
        times: Times,
        dropped: &DroppedFields,
    ) -> DefaultsReportStatus {
        let tally = tally.into();
        let objects = self.selection.selector().filter(|selector| fits(selector)).cloned();
        let through = through.filter(|_| objects.as_ref() == self.selection.selector());
        let problems = |kind| {
            let all = tally.into_iter().flat_map(Tally::problems).filter(|(_, state)| state.kind() == kind);
            all.filter_map(|(identity, state)| Some(object_problem(identity, state.problem()?)))
                .take(LISTED)
                .collect()
        };
        let skipped = |reasons: &[Skip]| {
            let all = reasons
                .iter()
                .flat_map(|why| tally.into_iter().flat_map(|tally| tally.skipped().named(*why)));
            all.map(|(identity, skipped)| object_problem(identity, skipped.problem())).take(LISTED).collect()
        };
        // What a canary was refused is not tried again before it is over.
        let is_refused = self.canary.as_ref().is_some_and(|canary| canary.state == CanaryState::Rejected);
        let tally_on_record = tally.filter(|_| through.is_some() || is_refused);
        let mut status = DefaultsReportStatus {
            state: state.to_owned(),
            policy: self.policy.clone(),
            // The status writer sets it.
            crd_uid: String::new(),
            generation: self.generation,
            served: self.served_since(through).to_vec(),
            storage_version: self.storage_version.clone(),
            digest: self.digest.clone(),
            first_seen: Some(Time(self.first_seen)),
            settles_at: None,
            verify_at: times.verify_at.map(Time),
            started: times.started.map(Time),
            finished: times.finished.map(Time),
            through: through.map(|through| through.to_string()),
            shown_by_crd: self.is_shown_by_crd && through.is_some(),
            upto: None,
            owners_lost: None,
            objects,
            read_namespaces: self.read_namespaces(),
            exceptions: tally_on_record.and_then(Tally::reported_exceptions),
            canary: self.canary.clone(),
            stored_versions: self.stored_versions.clone(),
            all_at_storage_version: self.all_at_storage_version,
            counts: tally.map(Tally::counts).unwrap_or_default(),
            defaults: self
                .defaults
                .iter()
                .map(|default| {
                    let objects = tally.map_or(0, |tally| tally.missing(&default.path));
                    DefaultPath { objects, ..default.clone() }
                })
                .collect(),
            more_defaults: self.more_defaults,
            held: problems(StateKind::Held),
            rejected: problems(StateKind::Rejected),
            ignored: skipped(&[Skip::IgnoredUnclear, Skip::Ignored]),
            terminating: skipped(&[Skip::Terminating]),
            too_deep: skipped(&[Skip::TooDeep]),
            dropped: Vec::new(),
            cleared: Vec::new(),
            changed: Vec::new(),
            previous: self.previous().to_vec(),
            former_defaults: listed(&self.former),
        };
        dropped.add_to_report(&mut status);
        size::fit(&mut status);
        status
    }
}

/// One object and what prevents its defaults from being stored, as the report has it.
pub fn object_problem(identity: &Identity, problem: Problem) -> ObjectProblem {
    let Problem { reason, message, paths } = problem;
    ObjectProblem {
        namespace: identity.namespace.clone(),
        name: identity.name.clone(),
        uid: identity.uid.clone(),
        reason: reason.to_owned(),
        message,
        paths,
        more_paths: 0,
    }
}

/// Sets since when each default has been in the schema: as long as the last report lists it with this value,
/// else since now.
fn date(defaults: &mut [DefaultPath], report: Option<&DefaultsReportStatus>, revision: &str) {
    let listed = report.map(|report| &report.defaults[..]).unwrap_or_default();
    let known: BTreeMap<&str, &DefaultPath> =
        listed.iter().map(|known| (known.path.as_str(), known)).collect();
    for default in defaults {
        let known = known.get(default.path.as_str()).filter(|known| is_same(known, default));
        default.since = match known {
            Some(known) => known.since.clone(),
            None => Some(revision.to_owned()).filter(|revision| !revision.is_empty()),
        };
    }
}

fn is_same(one: &DefaultPath, other: &DefaultPath) -> bool {
    let parsed = |default: &DefaultPath| Json::parse(default.value.as_ref()?.as_bytes()).ok();
    matches!((parsed(one), parsed(other)), (Some(one), Some(other)) if one == other)
}

/// Stands for the schemas of generations that Etch did not see: a server may still serve one, and it may have
/// none of the defaults.
fn unseen(now: Timestamp) -> PreviousDefaults {
    PreviousDefaults {
        first_seen: Some(Time(now)),
        verify_at: now.checked_add(LAG).ok().map(Time),
        ..PreviousDefaults::default()
    }
}

/// Drops the oldest of the earlier schemas, of either kind.
fn remember(previous: &mut Vec<PreviousDefaults>) {
    let [mut finished, mut others] = [0, 0];
    previous.retain(|past| {
        let (count, most) = match past.finished {
            Some(_) => (&mut finished, PREVIOUS),
            None => (&mut others, UNFINISHED),
        };
        *count += 1;
        *count <= most
    });
}

/// Whether a report has room for a selector.
fn fits(selector: &ObjectSelector) -> bool {
    serde_json::to_vec(selector).is_ok_and(|json| json.len() <= SELECTOR)
}

/// Whether a report proves that every object is stored at the present storage version: a pass has asked about
/// each one when no API server lagged behind, and every write since then has stored it there.
pub fn all_at_storage_version(report: &DefaultsReportStatus, crd: &Crd) -> bool {
    let is_proved = report.all_at_storage_version || report.stored_versions.as_ref().is_some_and(proves_all);
    is_proved && report.storage_version == crd.storage().name && !has_unknown(&served_since(report, crd))
}

/// Whether a report is about a finished pass for these very defaults.
pub fn is_finished(report: &DefaultsReportStatus, crd: &Crd) -> bool {
    report.finished.is_some() && is_about(report, crd)
}
