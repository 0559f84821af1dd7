//! The questions and commands of a CRD's machine, and the answers.

use std::time::Duration;

use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

use crate::api::{Counts, DefaultsReport};
use crate::call_error::CallError;
use crate::condition::Reason;
use crate::engine::{pass, status, watching};
use crate::namespaces::Namespaces;
use crate::object::Identity;
use crate::object_machine::Rules;
use crate::rbac::{Allowed, MissingPermissions, Verb};
use crate::stored_versions::{Trim, VersionTally};

/// What is to be done next about a CRD whose attempt has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another attempt, when this has passed.
    Wait(Duration),
    /// Another attempt, when this has passed or permissions have changed.
    Settle(Duration),
    /// Another attempt, when this is permitted.
    Permission(MissingPermissions),
    /// Nothing, until the CRD or its policy changes.
    Idle,
    /// The CRD is another one than the one that was read: it is read again.
    Changed,
}

/// A question to the cluster. One question is open at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The CRD's report, read from etcd; answered by [`Answer::Report`].
    Report,
    /// The CRD; answered by [`Answer::Crd`].
    Crd,
    /// For which of the CRD's objects Etch may use these verbs, where those of the namespaces that the policy
    /// names are enough; answered by [`Answer::Permissions`].
    Permissions(&'static [Verb], Option<Namespaces>),
    /// Whether requests for the CRD's objects reach those, and not the objects of another API server;
    /// answered by [`Answer::Server`].
    Server,
    /// Which StorageVersionMigration runs that writes the CRD's objects; answered by [`Answer::Migration`].
    Migration,
    /// Whether the CRD still has the generation that was read; answered by [`Answer::Generation`].
    Generation,
    /// At which versions the objects are stored, by a list; answered by [`Answer::StoredVersions`].
    StoredVersions,
    /// To take these versions out of `status.storedVersions`, if the CRD has not changed since it was read;
    /// answered by [`Answer::Trimmed`].
    Trim(Vec<String>),
    /// The resource version from which a watch may resume, if there still are so many objects, and none of
    /// them was written since `through`; answered by [`Answer::ResumePoint`].
    ResumePoint {
        /// The resource version up to which everything was delivered.
        through: u64,
        /// How many objects there were.
        objects: u64,
    },
}

/// The answer to a [`Question`].
#[derive(Clone, Debug)]
pub enum Answer {
    /// `None` if there is no report on this CRD.
    Report(Result<Option<Box<DefaultsReport>>, CallError>),
    /// `None` if there is no CRD of this name.
    Crd(Result<Option<Json>, CallError>),
    /// For which objects.
    Permissions(Result<Allowed, CallError>),
    /// An error if they do not, or if this is unknown.
    Server(Result<(), CallError>),
    /// Its name; `None` if none runs.
    Migration(Result<Option<String>, CallError>),
    /// Whether it has that generation.
    Generation(Result<bool, CallError>),
    /// How many objects are proved to be stored at which version.
    StoredVersions(Result<VersionTally, CallError>),
    /// Whether they were taken out.
    Trimmed(Result<Trim, CallError>),
    /// `None` if something has happened since.
    ResumePoint(Result<Option<String>, CallError>),
}

/// What the driver of the machine performs.
#[derive(Clone, Debug)]
pub enum Command<H> {
    /// For conditions and report; the result goes to `CrdMachine::status`.
    Status(status::Command),
    /// Find the answer, and call `CrdMachine::answered`.
    Ask(Question),
    /// A pass begins, in which objects are processed by these rules until [`Command::Abandon`].
    Begin(Rules),
    /// Of the pass; the result goes to `CrdMachine::pass`.
    Pass(pass::Command<H>),
    /// Watch the objects from this resource version on; the result goes to `CrdMachine::object_changed`,
    /// `CrdMachine::watch_failed` and `CrdMachine::watch_expired`.
    Watch(String),
    /// Resume the watch from this resource version, after the watch has expired.
    Resume(String),
    /// Of the steady state; the result goes to `CrdMachine::watching`.
    Object(watching::Command<H>),
    /// Drop whatever is under way about objects, the watch, and the question that is open.
    Abandon,
    /// Log this.
    Log(Note),
    /// The attempt has ended.
    End(Next),
}

/// What is worth a line in the log.
#[derive(Clone, Debug)]
pub enum Note {
    /// A pass is about to begin, once permissions are checked.
    PassBegins,
    /// The pass verifies what was written since the schema changed.
    PassVerifies,
    /// How far a pass has come.
    PassUnderWay {
        /// The outcomes for the objects so far.
        counts: Counts,
        /// How many objects there are, as the server counts them.
        expected: Option<u64>,
        /// Whether it verifies what was written.
        verifies: bool,
    },
    /// A pass has ended.
    PassEnds {
        /// The outcomes for the objects.
        counts: Counts,
        /// How many of them do not hold their defaults in etcd, or probably not.
        phantoms: u64,
        /// How many needed a request.
        asked: u64,
        /// The reason of the CRD's condition.
        reason: Option<Reason>,
    },
    /// The counts of objects have changed in the steady state.
    ObjectsChanged {
        /// The new counts.
        counts: Counts,
        /// How many objects do not hold their defaults in etcd, or probably not.
        phantoms: u64,
    },
    /// A write dropped fields while the CRD changed.
    Dropped(Identity, Vec<Path>),
    /// The report is not the one that was written last.
    RecordIgnored(String),
    /// An attempt has ended for this reason.
    Halted(String, Next),
}
