//! A snapshot of etcd, as `etcdctl snapshot save` writes it: what was stored under each key at its revision.
//! It must not hold more than a page and a mark for each key.

mod bolt;
mod record;

use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::RawValue;
use bolt::{Database, Element};
use record::Record;

/// The bucket that holds the keys of clients, by revision.
///
/// Source: etcd `server/storage/schema/bucket.go`.
const KEYS: &[u8] = b"key";
/// What `snapshot save` writes after the database: the SHA-256 of all before it. A database is made of whole
/// pages.
const TRAILER: u64 = 32;
const PAGE_UNIT: u64 = 512;

/// An opened snapshot whose bytes are what was saved.
#[derive(Debug)]
pub struct Snapshot {
    database: Database,
}

/// Why a file is not a snapshot that can be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is something else.
    #[error("not a snapshot of etcd: {0}")]
    Foreign(&'static str),
    /// It was changed or cut since it was saved.
    #[error("wrong hash: the file was changed or cut after it was saved")]
    Changed,
    /// Something in it contradicts itself.
    #[error("damaged: {0}")]
    Damaged(&'static str),
}

impl Snapshot {
    /// Opens a snapshot, or the database of a member that is not running.
    ///
    /// # Errors
    /// See [`SnapshotError`]. The hash at the end is checked, which reads the whole file.
    pub fn open(path: &Path) -> Result<Self, SnapshotError> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(SnapshotError::Foreign("not a file"));
        }
        let length = file.metadata()?.len();
        let database = match length % PAGE_UNIT {
            TRAILER => length - TRAILER,
            _ => length,
        };
        // What it is comes first: the hash of a large file that is something else takes time.
        let opened = Database::open(file.try_clone()?, database)?;
        if database < length {
            verify(file, database)?;
        }
        Ok(Self { database: opened })
    }

    /// Visits what is stored under each key that is wanted, the last written first, until the visitor breaks
    /// off. Keys that were deleted are not there.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn each(
        &self,
        wanted: &dyn Fn(&[u8]) -> bool,
        visit: &mut dyn FnMut(RawValue) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        let bucket = self.database.bucket(KEYS)?.ok_or(SnapshotError::Foreign("it has no keys"))?;
        let hasher = RandomState::new();
        // Two keys with one mark would hide one of them; with two hashes of 64 bits that does not happen.
        let mark = |key: &[u8]| (hasher.hash_one(key), hasher.hash_one((key, 1)));
        let mut seen = HashSet::new();
        self.database.each_reversed(&bucket, &mut |Element { key: revision, value, .. }| {
            let Some(record) = Record::read(value) else {
                return Err(SnapshotError::Damaged("a value without a key"));
            };
            if !wanted(record.key) || !seen.insert(mark(record.key)) || is_tombstone(revision) {
                return Ok(ControlFlow::Continue(()));
            }
            Ok(visit(RawValue {
                key: String::from_utf8_lossy(record.key).into_owned(),
                bytes: record.value.to_vec(),
                revision: 0,
            }))
        })
    }

    /// What is stored under a key; none if there is nothing.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn value(&self, key: &str) -> Result<Option<RawValue>, SnapshotError> {
        let mut found = None;
        self.each(&|other| other == key.as_bytes(), &mut |value| {
            found = Some(value);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

/// A revision is two numbers of 8 bytes with `_` between them, and a `t` behind them where the key was
/// deleted.
///
/// Source: etcd `server/storage/mvcc/revision.go`.
fn is_tombstone(revision: &[u8]) -> bool {
    revision.len() == 18 && revision.ends_with(b"t")
}

fn verify(file: File, length: u64) -> Result<(), SnapshotError> {
    use std::os::unix::fs::FileExt;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    while at < length {
        let part = usize::try_from(length - at).map_or(buffer.len(), |left| left.min(buffer.len()));
        file.read_exact_at(&mut buffer[..part], at)?;
        hash.update(&buffer[..part]);
        at += part as u64;
    }
    let mut expected = [0; TRAILER as usize];
    file.read_exact_at(&mut expected, length)?;
    match hash.finalize()[..] == expected {
        true => Ok(()),
        false => Err(SnapshotError::Changed),
    }
}

#[cfg(test)]
mod tests;
