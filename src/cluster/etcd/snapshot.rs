//! A snapshot of etcd in a file.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use etcd_snapshot::{ReadAt, SnapshotError as Reason};

use etch_core::etcd::RawValue;

/// An opened snapshot whose bytes are what was saved.
#[derive(Debug)]
pub struct Snapshot {
    path: PathBuf,
    saved: etcd_snapshot::Snapshot<SavedFile>,
}

/// Why a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct SnapshotError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub reason: Reason,
}

#[derive(Debug)]
struct SavedFile(File);

impl ReadAt for SavedFile {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, at)
    }
}

impl Snapshot {
    /// Opens a snapshot, or the database of a member that is not running.
    ///
    /// # Errors
    /// See [`Reason`]. The hash at the end is checked, which reads the whole file.
    pub fn open(path: &Path) -> Result<Self, SnapshotError> {
        let path = path.to_owned();
        match saved(&path) {
            Ok(saved) => Ok(Self { path, saved }),
            Err(reason) => Err(SnapshotError { path, reason }),
        }
    }

    /// Visits what is stored under each key that is wanted, the last written first, until the visitor breaks
    /// off. Keys that were deleted are not there.
    ///
    /// # Errors
    /// See [`Reason`].
    pub fn each(
        &self,
        wanted: &dyn Fn(&[u8]) -> bool,
        visit: &mut dyn FnMut(RawValue) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        let ended = self.saved.each(wanted, &mut |key, value| {
            let key = String::from_utf8_lossy(key).into_owned();
            visit(RawValue { key, bytes: value.to_vec(), revision: 0 })
        });
        ended.map_err(|reason| SnapshotError { path: self.path.clone(), reason })
    }

    /// Whether anything is stored under keys that begin like this.
    ///
    /// # Errors
    /// See [`Reason`].
    pub fn holds(&self, prefix: &str) -> Result<bool, SnapshotError> {
        let mut is_found = false;
        self.each(&|key| key.starts_with(prefix.as_bytes()), &mut |_| {
            is_found = true;
            ControlFlow::Break(())
        })?;
        Ok(is_found)
    }

    /// What is stored under a key; `None` if there is nothing.
    ///
    /// # Errors
    /// See [`Reason`].
    pub fn value(&self, key: &str) -> Result<Option<RawValue>, SnapshotError> {
        let mut found = None;
        self.each(&|other| other == key.as_bytes(), &mut |value| {
            found = Some(value);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

fn saved(path: &Path) -> Result<etcd_snapshot::Snapshot<SavedFile>, Reason> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Reason::Foreign("not a file"));
    }
    etcd_snapshot::Snapshot::open(SavedFile(file), metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_no_snapshot() {
        let error = Snapshot::open(Path::new("/")).expect_err("a folder");
        assert!(matches!(error.reason, Reason::Foreign(_) | Reason::Read(_)));
        assert!(error.to_string().starts_with("/: "), "{error}");
    }
}
