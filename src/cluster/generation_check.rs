//! Checks, while objects are written, whether the CRD is still the one for which the writes were planned. It
//! asks only while something is written.
//!
//! The watch of CRDs may hang, or come from an API server that lags behind. The read goes where the writes
//! go, and asks etcd.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{CallError, Cluster};
use etch_core::crd::Crd;
use etch_core::object::Identity;
use kube_structural_schema::path::Path;
use kube_structural_schema::prune::keeps;

/// How long an answer counts, from when it was asked for.
const COUNTS: Duration = Duration::from_secs(1);
/// How many writes are remembered of which it is not known whether they dropped a field.
const IN_DOUBT: usize = 1000;

/// Fields of an object that a write has dropped, as far as they are known.
pub type Dropped = (Identity, Vec<Path>);

/// Whether one CRD is still at the generation at which it was read, and what its writes have dropped.
#[derive(Debug)]
pub struct GenerationCheck {
    name: String,
    uid: String,
    generation: i64,
    /// When the last read that showed this generation was sent. The task that asks holds the lock: the others
    /// wait for its answer.
    asked: tokio::sync::Mutex<Option<Instant>>,
    writes: Mutex<Writes>,
}

#[derive(Debug, Default)]
struct Writes {
    /// Whether the CRD has changed, or has to be read again for what a write dropped.
    is_over: bool,
    dropped: Vec<Dropped>,
    /// Fields that a write may have dropped, and when its answer came.
    in_doubt: Vec<(Instant, Dropped)>,
}

impl GenerationCheck {
    /// For a CRD that was read by a request sent at `asked`; with `None`, the check asks again before the
    /// first write.
    pub fn new(crd: &Crd, asked: Option<Instant>) -> Self {
        Self {
            name: crd.name().to_owned(),
            uid: crd.uid().to_owned(),
            generation: crd.generation(),
            asked: tokio::sync::Mutex::new(asked),
            writes: Mutex::default(),
        }
    }

    /// The uid of the CRD.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Whether nothing more may be written.
    pub fn is_over(&self) -> bool {
        self.writes.lock().is_over
    }

    /// Notes that a write has dropped fields of an object. Nothing more may be written then.
    pub(super) fn note_dropped(&self, identity: Identity, paths: Vec<Path>) {
        let mut writes = self.writes.lock();
        writes.is_over = true;
        writes.dropped.push((identity, paths));
    }

    /// Notes the fields of an object that a write may have dropped.
    pub(super) fn note_unseen(&self, identity: Identity, paths: &[Path]) {
        let mut writes = self.writes.lock();
        if !paths.is_empty() && writes.in_doubt.len() < IN_DOUBT {
            writes.in_doubt.push((Instant::now(), (identity, paths.to_vec())));
        }
    }

    /// Whether a write may have dropped something, which only the CRD, read again, shows.
    pub fn is_in_doubt(&self) -> bool {
        !self.writes.lock().in_doubt.is_empty()
    }

    /// Takes out what writes have dropped, now that the CRD was read again.
    pub fn take_dropped(&self, now: &Crd) -> Vec<Dropped> {
        let mut writes = self.writes.lock();
        let mut dropped = std::mem::take(&mut writes.dropped);
        if now.uid() == self.uid && now.generation() != self.generation {
            let schema = &now.storage().schema;
            let gone = writes.in_doubt.drain(..).filter_map(|(_, (identity, mut paths))| {
                paths.retain(|path| !keeps(schema, path.steps()));
                (!paths.is_empty()).then_some((identity, paths))
            });
            dropped.extend(gone);
        }
        dropped
    }

    fn confirm(&self, asked: Instant) {
        self.writes.lock().in_doubt.retain(|(answered, _)| *answered >= asked);
    }
}

impl Cluster {
    /// Whether a write may begin: the CRD was at its generation within the last second and since `read`, or
    /// is so now.
    ///
    /// An object that was read after the CRD changed may lack fields that its schema no longer has, and a
    /// write cannot see that from the object.
    ///
    /// # Errors
    /// See [`CallError`]; then nothing may be written.
    pub(super) async fn is_confirmed(
        &self,
        check: &GenerationCheck,
        read: Instant,
    ) -> Result<bool, CallError> {
        let mut asked = check.asked.lock().await;
        if check.is_over() {
            return Ok(false);
        }
        if asked.is_some_and(|asked| asked >= read && asked.elapsed() < COUNTS) {
            return Ok(true);
        }
        let now = Instant::now();
        if self.has_generation(&check.name, &check.uid, check.generation).await? {
            *asked = Some(now);
            check.confirm(now);
            return Ok(true);
        }
        check.writes.lock().is_over = true;
        Ok(false)
    }

    /// Asks whether the CRD is still at its generation, after a write has dropped fields: then writes may go
    /// on.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn confirm_again(&self, check: &GenerationCheck) -> Result<bool, CallError> {
        let mut asked = check.asked.lock().await;
        let now = Instant::now();
        let is_same = self.has_generation(&check.name, &check.uid, check.generation).await?;
        *asked = is_same.then_some(now);
        check.writes.lock().is_over = !is_same;
        Ok(is_same)
    }
}
