//! Removes, for `etch revert`, what passes have stored, after a CRD was rolled back.
//! [`Unstorable`] decides what goes, about each object as it is read.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Backoff, Cluster, GenerationCheck, ObjectSource, Pace, ReadError, Scope};
use crate::operator::object::outcome::pressure;
use crate::operator::spans::in_words;
use etch_core::call_error::CallError;
use etch_core::crd::Crd;
use etch_core::object::{Identity, Object};
use etch_core::object_machine::ATTEMPTS;
use etch_core::plan::{Outcome, Plan, Rejection, Terms, Unstorable, Unstoring};
use etch_core::rbac::{MissingPermissions, Verb};
use kube_structural_schema::path::Path;

/// How many objects are processed at once.
const AT_ONCE: usize = 8;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Reversion {
    /// The CRD, as the cluster has it.
    pub crd: Arc<Crd>,
    /// Which of its objects; no other one is read or written.
    pub scope: Scope,
    /// What can be removed.
    pub unstorable: Arc<Unstorable>,
    /// Whether it is removed; otherwise it is only shown.
    pub removes: bool,
    /// The limits of writing.
    pub pace: Arc<Pace>,
    /// Cancelled when nothing more is to be begun. What is under way is brought to its end.
    pub ended: CancellationToken,
}

/// The outcome for one object.
#[derive(Clone, Debug, Default)]
pub struct Reverted {
    /// The places that went, in the object's own terms.
    pub removed: Vec<Path>,
    /// What is left: what would be removed and what stays, as it was decided last.
    pub left: Unstoring,
    /// Why what would be removed was not.
    pub failure: Option<Failure>,
    /// Whether the object is gone.
    pub is_gone: bool,
}

/// Why a write did not remove what it should.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The server or admission refused it.
    Rejected(Rejection),
    /// Others wrote each time, the server filled the value in again, or it did not answer: nothing is known.
    Unknown(String),
}

/// Why a reversion was not completed. What was removed until then is removed.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// The objects cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// We may not write them.
    #[error("a permission is missing: {0}")]
    Forbidden(MissingPermissions),
    /// A write made the API server drop field owners.
    #[error("{object}: the API server dropped the field owners {managers}; nothing more is written")]
    OwnersLost {
        /// The object.
        object: Identity,
        /// Their names.
        managers: String,
    },
    /// A write has dropped fields.
    #[error(
        "{object}: a write dropped fields that the API server no longer knows ({paths}); nothing more is written"
    )]
    FieldsDropped {
        /// The object.
        object: Identity,
        /// The fields.
        paths: String,
    },
    /// The CRD is another one by now.
    #[error("the CRD has changed meanwhile: nothing more is written; run the command again")]
    CrdChanged,
    /// It was cancelled.
    #[error("interrupted; run the command again to remove the rest")]
    Ended,
}

/// Decides about each object of a CRD and, where that is asked for, removes what goes; `each` takes the
/// outcome for each.
///
/// # Errors
/// See [`RevertError`]. Objects that are refused or held stop nothing.
pub async fn revert(
    cluster: &Cluster,
    reversion: &Reversion,
    each: &mut (dyn FnMut(Identity, Reverted) + Send),
) -> Result<(), RevertError> {
    let source = ObjectSource::from(cluster.clone());
    let check = GenerationCheck::new(&reversion.crd, None);
    let mut pages = source.pages(vec![reversion.crd.resource()], &reversion.scope);
    loop {
        let read = Instant::now();
        let Some(page) = pages.try_next().await? else { return Ok(()) };
        let objects = page.views().map(|object| one(cluster, reversion, &check, object, read));
        let mut objects = stream::iter(objects).buffer_unordered(AT_ONCE);
        let mut stopped = None;
        while let Some((identity, reverted, ended)) = objects.next().await {
            each(identity, reverted);
            // What is under way is brought to its end.
            if let Err(error) = ended {
                reversion.ended.cancel();
                stopped = stopped.or(Some(error));
            }
        }
        if let Some(error) = stopped {
            return Err(error);
        }
    }
}

/// Drives one object until it is done.
async fn one(
    cluster: &Cluster,
    reversion: &Reversion,
    check: &GenerationCheck,
    object: Object,
    read: Instant,
) -> (Identity, Reverted, Result<(), RevertError>) {
    let identity = object.identity();
    let mut reverted = Reverted::default();
    let ended = drive(cluster, reversion, check, object, read, &mut reverted).await;
    (identity, reverted, ended)
}

async fn drive(
    cluster: &Cluster,
    reversion: &Reversion,
    check: &GenerationCheck,
    mut object: Object,
    mut read: Instant,
    reverted: &mut Reverted,
) -> Result<(), RevertError> {
    let Reversion { crd, unstorable, removes, pace, ended, .. } = reversion;
    let terms = Terms::default();
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
    let mut failures = 0;
    loop {
        reverted.left = unstorable.decide(&object, crd, &terms);
        let Some(Plan::Write(write)) = &reverted.left.plan else { return Ok(()) };
        if !removes {
            return Ok(());
        }
        if ended.is_cancelled() {
            return Err(RevertError::Ended);
        }
        let permit = pace.admit().await;
        let outcome = cluster.perform(crd, &object, read, write, &terms, check).await;
        permit.finish(pressure(&outcome));
        let identity = || object.identity();
        let asked = outcome.as_ref().err().and_then(CallError::retry_after);
        let why = match outcome {
            Ok(Outcome::Followed(after)) => {
                reverted.removed.extend(write.missing.iter().cloned());
                (object, read) = (*after, Instant::now());
                continue;
            }
            Ok(Outcome::Gone) => {
                reverted.is_gone = true;
                return Ok(());
            }
            Ok(Outcome::Rejected(rejection)) => {
                reverted.failure = Some(Failure::Rejected(rejection));
                return Ok(());
            }
            Ok(Outcome::Mutated { .. }) => {
                reverted.failure = Some(Failure::Rejected(Rejection::mutated()));
                return Ok(());
            }
            Ok(Outcome::Forbidden { verb }) => {
                let others = cluster.is_permitted(&crd.resource(), &reversion.scope, verb).await;
                if others.unwrap_or_default() {
                    reverted.failure = Some(Failure::Rejected(Rejection::forbidden(verb)));
                    return Ok(());
                }
                return Err(forbidden(crd, verb));
            }
            Ok(Outcome::OwnersLost { managers }) => {
                return Err(RevertError::OwnersLost { object: identity(), managers: managers.join(", ") });
            }
            Ok(Outcome::FieldsDropped { paths }) => {
                return Err(RevertError::FieldsDropped { object: identity(), paths: in_words(&paths) });
            }
            Ok(Outcome::CrdChanged) => return Err(RevertError::CrdChanged),
            Ok(Outcome::Unproved) => {
                "the API server, or admission, fills the value in again; an API server may lag behind the CRD"
                    .to_owned()
            }
            Ok(_) => "others write the object at the same time".to_owned(),
            Err(error) => error.to_string(),
        };
        failures += 1;
        if failures == ATTEMPTS {
            reverted.failure = Some(Failure::Unknown(why));
            return Ok(());
        }
        tokio::select! {
            () = ended.cancelled() => return Err(RevertError::Ended),
            () = tokio::time::sleep(backoff.failed(asked)) => {}
        }
        match cluster.object(&crd.resource(), &object.identity()).await {
            Ok(Some(fresh)) => (object, read) = (fresh, Instant::now()),
            Ok(None) => {
                reverted.is_gone = true;
                return Ok(());
            }
            // It is decided about as it was read before: a resource version that is no longer current
            // conflicts.
            Err(_) => {}
        }
    }
}

fn forbidden(crd: &Crd, verb: Verb) -> RevertError {
    RevertError::Forbidden(MissingPermissions::of(&crd.resource(), vec![verb]))
}
