#![doc = include_str!("../README.md")]

mod bolt;
mod record;
mod source;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;

use sha2::{Digest, Sha256};

use bolt::{Database, Element};
use record::Record;
pub use source::{ReadAt, SnapshotError};

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
pub struct Snapshot<R> {
    database: Database<R>,
}

/// Takes a key and what is stored under it.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

impl<R: ReadAt> Snapshot<R> {
    /// Opens a snapshot, or the database of a member that is not running, of so many bytes.
    ///
    /// # Errors
    /// See [`SnapshotError`]. The hash at the end is checked, which reads all of it.
    pub fn open(source: R, length: u64) -> Result<Self, SnapshotError> {
        let end = match length % PAGE_UNIT {
            TRAILER => length - TRAILER,
            _ => length,
        };
        // What it is comes first: the hash of a large file that is something else takes time.
        let database = Database::open(source, end)?;
        if end < length {
            verify(&database.source, end)?;
        }
        Ok(Self { database })
    }

    /// Visits each key that is wanted with what is stored under it, the last written first, until the visitor
    /// breaks off. Keys that were deleted are not there.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn each(&self, wanted: &dyn Fn(&[u8]) -> bool, visit: &mut Visit<'_>) -> Result<(), SnapshotError> {
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
            Ok(visit(record.key, record.value))
        })
    }
}

/// A revision is two numbers of 8 bytes with `_` between them, and a `t` behind them where the key was
/// deleted.
///
/// Source: etcd `server/storage/mvcc/revision.go`.
fn is_tombstone(revision: &[u8]) -> bool {
    revision.len() == 18 && revision.ends_with(b"t")
}

fn verify(source: &impl ReadAt, length: u64) -> Result<(), SnapshotError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    while at < length {
        let part = usize::try_from(length - at).map_or(buffer.len(), |left| left.min(buffer.len()));
        source.read_exact_at(&mut buffer[..part], at)?;
        hash.update(&buffer[..part]);
        at += part as u64;
    }
    let mut expected = [0; TRAILER as usize];
    source.read_exact_at(&mut expected, length)?;
    match hash.finalize()[..] == expected {
        true => Ok(()),
        false => Err(SnapshotError::Changed),
    }
}

#[cfg(test)]
mod tests;
