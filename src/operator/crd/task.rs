//! The task of one CRD at one generation under one policy: from its report to its watch.
//! It must not outlive the CRD's state that it was made for: the reconciliation ends it and starts another.
//!
//! This file holds what the steps share; `run` orders them, `pass` and `watch` are the steps.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::cluster::{Backoff, Cluster, Dropped, GenerationCheck, Pace, Permissions, Scope};
use crate::operator::error::TaskError;
use crate::operator::object::pause::PauseWatch;
use crate::operator::object::reconcile::ObjectReconciler;
use crate::operator::object::refusal_log::RefusalLog;
use crate::operator::options::Clock;
use crate::operator::status::writer::StatusWriter;
use etch_core::api::{Mode, Pause, Settings};
use etch_core::crd::Crd;
use etch_core::engine::pass_state::has_nothing_left;
use etch_core::engine::restore_check::RestoreCheck;
use etch_core::engine::retries::Retries;
use etch_core::findings::SchemaFindings;
use etch_core::object_machine::Rules;
use etch_core::rbac::{MissingPermissions, Verb};
use etch_core::report::checkpoint::Checkpoint;
use etch_core::report::open_report::OpenReport;
use etch_core::report::state::LAG;
use etch_core::report::tally::Tally;

/// How often a missing permission is asked for again, at first and at most, while objects are not to be
/// written yet.
const ASK_FIRST: Duration = Duration::from_secs(30);
const ASK_SELDOM: Duration = Duration::from_secs(600);

/// What a task is given.
pub(crate) struct CrdTask {
    pub(crate) cluster: Cluster,
    pub(crate) pace: Arc<Pace>,
    /// This CRD's own, beside the one that all share.
    pub(crate) own_pace: Arc<Pace>,
    pub(crate) crd: Arc<Crd>,
    pub(crate) settings: Settings,
    /// The pause that is in force now; that of `settings` is the one which was when this tenure began.
    pub(crate) pause: watch::Receiver<Option<Pause>>,
    /// Since when, and why, changes of CRDs or policies are not noticed; none where they are.
    pub(crate) watch_failure: watch::Receiver<Option<String>>,
    /// What is wrong with the CRD itself.
    pub(crate) findings: SchemaFindings,
    pub(crate) status_writer: StatusWriter,
    /// Its turn to be read, kept until its first conditions are written; none where it has some, or has
    /// defaults.
    pub(crate) turn: Option<OwnedSemaphorePermit>,
    /// The resource version of the CRD as it was read.
    pub(crate) revision: String,
    /// The report as it was last opened; none before it was read, and where what is counted is to be read
    /// again.
    pub(crate) open: Option<Arc<OpenReport>>,
    pub(crate) retries: Retries,
    pub(crate) permissions: Permissions,
    /// What is known of the objects, from before the last pass ended.
    pub(crate) checkpoint: Option<Checkpoint>,
    /// Whether the DefaultsReport is not the one that Etch wrote last: until a pass begins it is no source of
    /// a checkpoint.
    pub(crate) is_restored: bool,
    pub(crate) backoff: Backoff,
    /// When the schema will have stood long enough.
    pub(crate) settled_at: Option<Instant>,
    pub(crate) verification: Verification,
    /// When to read the report, while nothing happens.
    pub(crate) restore_check: RestoreCheck,
    /// Changes when something shows that etcd may have been restored; none where nothing does.
    pub(crate) restore_sign: Option<watch::Receiver<()>>,
    /// What was missing when it was last asked, while the schema settles.
    pub(crate) missing: Option<MissingPermissions>,
    /// How often to ask for it.
    pub(crate) permission_backoff: Backoff,
    pub(crate) clock: Clock,
    pub(crate) generation_check: Arc<GenerationCheck>,
    pub(crate) refusal_log: Arc<RefusalLog>,
    /// What writes have dropped that were planned for an earlier generation, until it is on record.
    pub(crate) dropped: Vec<Dropped>,
}

/// Whether what was written since the pass is to be verified once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verification {
    /// As the report says.
    #[default]
    Unknown,
    /// At this time, by both clocks.
    At(Timestamp, Instant),
    /// It was: a report that could not be written may still ask for it.
    Done,
}

/// How often to ask for a permission that is missing while the schema settles.
pub(crate) fn permission_backoff() -> Backoff {
    Backoff::new(ASK_FIRST, ASK_SELDOM)
}

/// What the reconciler of objects borrows, apart from the task: that writes the status meanwhile.
pub(crate) struct ReconcilerParts {
    cluster: Cluster,
    pace: Arc<Pace>,
    own_pace: Arc<Pace>,
    pub(crate) rules: Rules,
    generation_check: Arc<GenerationCheck>,
    refusal_log: Arc<RefusalLog>,
    pub(crate) pause_watch: PauseWatch,
}

impl ReconcilerParts {
    /// What reconciles objects of the CRD.
    pub(crate) fn reconciler(&self) -> ObjectReconciler<'_> {
        ObjectReconciler {
            cluster: &self.cluster,
            pace: &self.pace,
            own_pace: Some(&self.own_pace),
            pause_watch: Some(&self.pause_watch),
            cancelled: None,
            scope: &Scope::All,
            rules: &self.rules,
            generation_check: &self.generation_check,
            refusal_log: &self.refusal_log,
        }
    }
}

impl CrdTask {
    /// What the reconciler of this CRD's objects borrows.
    pub(crate) fn reconciler_parts(&self, open: &OpenReport) -> ReconcilerParts {
        ReconcilerParts {
            cluster: self.cluster.clone(),
            pace: self.pace.clone(),
            own_pace: self.own_pace.clone(),
            rules: Rules {
                crd: self.crd.clone(),
                terms: self.settings.terms,
                mode: if self.settings.pause.is_some() { Mode::Audit } else { self.settings.mode },
                since: Arc::new(open.state.since()),
                changes: open.changes.clone(),
                dropped: open.state.dropped(),
            },
            generation_check: self.generation_check.clone(),
            refusal_log: self.refusal_log.clone(),
            pause_watch: self.pause_watch(),
        }
    }

    /// Takes in when the report asks for a verification, unless that is known; returns when it is to be
    /// reported.
    ///
    /// The wall clock is asked once: it may be set, and other machines' clocks differ.
    pub(crate) fn schedule_verification(&mut self, asked: Option<Timestamp>) -> Option<Timestamp> {
        if let (Verification::Unknown, Some(asked)) = (self.verification, asked) {
            let left = Duration::try_from(asked.duration_since(self.clock.second())).unwrap_or_default();
            self.verification = Verification::At(asked, Instant::now() + left.min(LAG));
        }
        match self.verification {
            Verification::Unknown | Verification::Done => None,
            Verification::At(asked, _) => Some(asked),
        }
    }

    /// Whether it is time to verify what was written since the pass.
    pub(crate) fn is_verification_due(&self) -> bool {
        matches!(self.verification, Verification::At(_, at) if at <= Instant::now())
    }

    /// When to verify what was written since the pass; none where nothing is to be.
    pub(crate) fn verification_due(&self) -> Option<std::time::Instant> {
        match self.verification {
            Verification::At(_, at) if self.writes() => Some(at.into_std()),
            Verification::At(..) | Verification::Unknown | Verification::Done => None,
        }
    }

    /// Whether objects may be written.
    pub(crate) fn writes(&self) -> bool {
        self.settings.mode == Mode::Persist && self.settings.pause.is_none()
    }

    /// See [`has_nothing_left`].
    pub(crate) fn has_nothing_left(&self, tally: &Tally) -> bool {
        has_nothing_left(&self.crd, &self.settings, tally)
    }

    /// The pause under which this runs, and whether it changes.
    pub(crate) fn pause_watch(&self) -> PauseWatch {
        PauseWatch::new(self.pause.clone(), self.settings.pause.clone())
    }

    /// Asks whether Etch may do what it is about to do.
    pub(crate) async fn check_permissions(&self) -> Result<(), TaskError> {
        let verbs: &[Verb] = match self.settings.mode {
            Mode::Persist if self.settings.pause.is_none() => {
                &[Verb::Get, Verb::List, Verb::Watch, Verb::Patch]
            }
            // An object is read by itself only to be written again.
            _ => &[Verb::List, Verb::Watch],
        };
        match self.cluster.missing(&self.crd.resource(), verbs).await? {
            Some(missing) => Err(TaskError::Forbidden(missing)),
            None => Ok(()),
        }
    }

    /// Asks whether requests for the CRD's objects reach those, and not the objects of another API server.
    pub(crate) async fn check_server(&self) -> Result<(), TaskError> {
        self.cluster.check_server(&(&*self.crd).into()).await.map_err(TaskError::call)
    }
}
