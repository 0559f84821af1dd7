//! The steady state of the operator: it watches the objects, and does one job at a time beside that.

use std::time::{Duration, Instant};

use super::error::{CrdError, Sign};
use super::protocol::{Answer, Question};
use super::task::Task;
use crate::call_error::CallError;
use crate::engine::restore_check::RestoreCheck;
use crate::engine::status::Status;
use crate::engine::stop_reason::StopReason;
use crate::engine::sweep::SweepError;
use crate::engine::watching::Watching;
use crate::rbac::Allowed;
use crate::report::checkpoint::Checkpoint;
use crate::report::state::ReportState;
use crate::stored_versions::Trim;

/// How long to wait where versions could not be taken out of `status.storedVersions`.
const TRIM_AGAIN: Duration = Duration::from_secs(600);
/// How long to wait where the API server has not answered what Etch may do.
const PERMISSIONS_AGAIN: Duration = Duration::from_secs(30);
/// How long to wait where an object was being processed.
const TRIM_SOON: Duration = Duration::from_secs(2);

/// A CRD whose objects are watched.
#[derive(Clone, Debug)]
pub(super) struct Steady<H> {
    pub(super) watching: Watching<H>,
    /// The part of the report that does not depend on the objects.
    pub(super) state: ReportState,
    /// What was recorded before the pass.
    pub(super) before: Checkpoint,
    job: Option<Job>,
    wants_publish: bool,
    has_new_permissions: bool,
    /// When to ask again for permissions, if that was not answered.
    permissions_at: Option<Instant>,
    /// When to take old versions out of `status.storedVersions`, if all objects are proved by then.
    trim_at: Option<Instant>,
    /// Why they were not, when the operator tried last.
    hindrance: Option<String>,
    expired: Option<Expired>,
}

/// What is being done beside the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Publish,
    Recheck,
    CheckPermissions,
    /// Whether etcd was restored, by the report; or by a sign alone, if the report lacked something then.
    CheckReport {
        is_by_sign: bool,
    },
    Trim,
    Resume,
}

/// A watch that has expired.
#[derive(Clone, Debug)]
struct Expired {
    error: CallError,
    /// The resource version up to which everything was delivered.
    through: u64,
    /// How many objects there were.
    objects: u64,
}

/// The result of a job.
pub(super) enum Outcome {
    /// Conditions and report need an update.
    Publish,
    /// They are updated.
    Published,
    /// The machine has a question.
    Ask(Question),
    /// The watch resumes from this resource version.
    Resume(String),
}

impl<H> Steady<H> {
    pub(super) fn new(watching: Watching<H>, state: ReportState, before: Checkpoint) -> Self {
        Self {
            watching,
            state,
            before,
            job: None,
            wants_publish: false,
            has_new_permissions: false,
            permissions_at: None,
            trim_at: None,
            hindrance: None,
            expired: None,
        }
    }

    /// Whether the machine takes changes of objects.
    pub(super) fn wants_changes(&self) -> bool {
        self.expired.is_none() && self.watching.wants_changes()
    }

    /// Brings conditions and report up to date as soon as nothing else is being done.
    pub(super) fn want_publish(&mut self) {
        self.wants_publish = true;
    }

    /// Why old versions that could go were not taken out of `status.storedVersions`; `None` if this has not
    /// been tried.
    pub(super) fn hindrance(&self) -> Option<&str> {
        self.hindrance.as_deref()
    }

    /// Takes old versions out of `status.storedVersions` once no other job runs, if there are any that could
    /// go.
    pub(super) fn want_trim(&mut self, task: &Task, now: Instant) {
        let could_go = !task.versions_to_trim(self.watching.pass()).is_empty();
        self.trim_at = could_go.then(|| self.trim_at.unwrap_or(now));
    }

    /// The permissions of Etch have changed.
    pub(super) fn permissions_changed(&mut self) {
        self.has_new_permissions = true;
    }

    /// The watch has expired; it may resume if no object is being processed.
    pub(super) fn expired(&mut self, error: CallError, delivered: Option<u64>) -> Result<(), CrdError> {
        let (Some(through), Some(objects)) = (delivered, self.watching.objects_at_rest()) else {
            return Err(CrdError::watch(error));
        };
        self.expired = Some(Expired { error, through, objects });
        Ok(())
    }

    /// When to continue even if nothing happens.
    pub(super) fn timeout(&self, status: &Status, restore_check: &RestoreCheck) -> Option<Instant> {
        let is_free = self.is_free(status);
        let of_jobs = [status.recheck_due(), Some(restore_check.due()), self.trim_at, self.permissions_at];
        let of_jobs = of_jobs.into_iter().flatten();
        of_jobs.filter(|_| is_free).chain(self.watching.timeout()).min()
    }

    /// Whether another job may begin.
    fn is_free(&self, status: &Status) -> bool {
        self.job.is_none() && status.is_idle() && !self.watching.is_ending()
    }

    /// Ends a job that only writes, and begins the next one that is due.
    pub(super) fn go_on(
        &mut self,
        task: &Task,
        status: &mut Status,
        restore_check: &mut RestoreCheck,
        now: Instant,
    ) -> Option<Outcome> {
        match self.job {
            Some(Job::Publish) if status.is_idle() => {
                self.job = None;
                return Some(Outcome::Published);
            }
            Some(Job::Recheck) if status.is_idle() => {
                self.job = None;
                if status.take_overwritten() {
                    restore_check.check_now(now);
                }
            }
            _ => {}
        }
        if !self.is_free(status) {
            return None;
        }
        let (job, outcome) = if std::mem::take(&mut self.wants_publish) {
            (Job::Publish, Some(Outcome::Publish))
        } else if std::mem::take(&mut self.has_new_permissions)
            || self.permissions_at.is_some_and(|due| due <= now)
        {
            self.permissions_at = None;
            (
                Job::CheckPermissions,
                Some(Outcome::Ask(Question::Permissions(task.verbs(), task.namespaces()))),
            )
        } else if self.expired.is_some() {
            (Job::Resume, Some(Outcome::Ask(Question::Server)))
        } else if status.recheck_due().is_some_and(|due| due <= now) {
            status.recheck();
            (Job::Recheck, None)
        } else if self.trim_at.is_some_and(|due| due <= now) {
            let versions = task.versions_to_trim(self.watching.pass());
            let is_at_rest = self.watching.objects_at_rest().is_some();
            // What is recorded of an object that is being processed may be outdated.
            let again = if is_at_rest { TRIM_AGAIN } else { TRIM_SOON };
            self.trim_at = (!versions.is_empty()).then(|| now + again);
            if versions.is_empty() || !is_at_rest {
                return None;
            }
            (Job::Trim, Some(Outcome::Ask(Question::Trim(versions))))
        } else if restore_check.due() <= now {
            let is_by_sign = restore_check.is_suspect();
            restore_check.checked(now);
            (Job::CheckReport { is_by_sign }, Some(Outcome::Ask(Question::Report)))
        } else {
            return None;
        };
        self.job = Some(job);
        outcome
    }

    /// Handles the answer that a job waits for.
    pub(super) fn answered(
        &mut self,
        task: &Task,
        status: &Status,
        restore_check: &mut RestoreCheck,
        answer: Answer,
        now: Instant,
    ) -> Result<Option<Outcome>, CrdError> {
        let Some(job) = self.job.take() else { return Ok(None) };
        match (job, answer) {
            (Job::CheckPermissions, Answer::Permissions(Ok(Allowed::Missing(missing)))) => {
                Err(CrdError::Forbidden(missing))
            }
            (Job::CheckPermissions, Answer::Permissions(Ok(allowed))) => {
                match task.within == allowed.within() {
                    true => Ok(None),
                    false => Err(CrdError::PermissionsChanged),
                }
            }
            // A watch that is open shows more than a question without an answer.
            (Job::CheckPermissions, Answer::Permissions(Err(error))) => {
                let wait = error.retry_after().unwrap_or_default().max(PERMISSIONS_AGAIN);
                self.permissions_at = Some(now + wait);
                Ok(None)
            }
            (Job::Resume, Answer::Server(Err(error))) => Err(CrdError::call(error)),
            (Job::CheckReport { .. } | Job::Resume, Answer::Report(Ok(report)))
                if !status.is_ours(report.as_deref()) =>
            {
                Err(CrdError::Restored(Sign::Report))
            }
            (Job::CheckReport { is_by_sign: true }, Answer::Report(Ok(_))) => {
                Err(CrdError::Restored(Sign::Lease))
            }
            (Job::Trim, Answer::Trimmed(Ok(Trim::Done))) => Err(CrdError::Trimmed),
            (Job::Trim, Answer::Trimmed(Ok(Trim::Changed))) => {
                Err(SweepError::from(StopReason::CrdChanged).into())
            }
            (Job::Trim, Answer::Trimmed(Ok(Trim::Migrated))) => {
                let migration = "a StorageVersionMigration of these objects waits or runs";
                self.hindered(format!("{migration}; Etch tries again after it"));
                Ok(None)
            }
            (Job::Trim, Answer::Trimmed(Err(error))) => {
                self.hindered(format!("it could not be taken out: {error}; Etch tries again"));
                Ok(None)
            }
            (Job::Resume, Answer::Server(Ok(()))) => {
                self.job = Some(job);
                // A restore of etcd compacts as well, and may have set objects back.
                Ok(Some(Outcome::Ask(Question::Report)))
            }
            (Job::Resume, answer) => self.resume(answer),
            // A report that cannot be read shows nothing, and takes no sign away.
            (Job::CheckReport { is_by_sign }, Answer::Report(Err(_))) => {
                restore_check.failed(now, is_by_sign);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Records why old versions were not taken out, and has that reported.
    fn hindered(&mut self, why: String) {
        self.wants_publish |= self.hindrance.as_ref() != Some(&why);
        self.hindrance = Some(why);
    }

    fn resume(&mut self, answer: Answer) -> Result<Option<Outcome>, CrdError> {
        let Some(expired) = self.expired.take() else { return Ok(None) };
        match answer {
            Answer::Report(Ok(_)) => {
                let Expired { through, objects, .. } = expired;
                (self.job, self.expired) = (Some(Job::Resume), Some(expired));
                Ok(Some(Outcome::Ask(Question::ResumePoint { through, objects })))
            }
            Answer::ResumePoint(Ok(Some(from))) => {
                self.watching.watch_resumed();
                Ok(Some(Outcome::Resume(from)))
            }
            _ => Err(CrdError::watch(expired.error)),
        }
    }
}

/// Whether a watch that failed with this error will probably not open again soon.
pub(super) fn is_lasting(error: &CallError) -> bool {
    match error {
        CallError::Refused(refusal) => {
            matches!(refusal.code, 403 | 404)
                || refusal.is_failed_conversion()
                || refusal.is_of_lost_version()
                || refusal.is_of_undecodable_value()
        }
        CallError::ServedElsewhere(_) | CallError::MissingPermission(_) => true,
        _ => false,
    }
}
