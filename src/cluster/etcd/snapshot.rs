//! A snapshot of etcd in a file.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

use etcd_snapshot::ReadAt;
pub use etcd_snapshot::SnapshotError;

use super::RawValue;

/// An opened snapshot whose bytes are what was saved.
#[derive(Debug)]
pub struct Snapshot(etcd_snapshot::Snapshot<SavedFile>);

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
    /// See [`SnapshotError`]. The hash at the end is checked, which reads the whole file.
    pub fn open(path: &Path) -> Result<Self, SnapshotError> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(SnapshotError::Foreign("not a file"));
        }
        etcd_snapshot::Snapshot::open(SavedFile(file), metadata.len()).map(Self)
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
        self.0.each(wanted, &mut |key, value| {
            let key = String::from_utf8_lossy(key).into_owned();
            visit(RawValue { key, bytes: value.to_vec(), revision: 0 })
        })
    }

    /// Whether anything is stored under keys that begin like this.
    ///
    /// # Errors
    /// See [`SnapshotError`].
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_no_snapshot() {
        let opened = Snapshot::open(Path::new("/"));
        assert!(matches!(opened, Err(SnapshotError::Foreign(_) | SnapshotError::Read(_))));
    }
}
