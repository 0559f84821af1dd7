//! The bytes of a snapshot, wherever they are, and why they are none.

use std::io;

/// Bytes that can be read at any place.
pub trait ReadAt {
    /// Fills the buffer with what is there from a place on.
    ///
    /// # Errors
    /// They cannot be read, or there are not so many.
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let found = usize::try_from(at).ok().and_then(|at| self.get(at..)?.get(..buffer.len()));
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
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
    /// It was changed since it was saved.
    #[error("wrong hash: the file was changed after it was saved")]
    Changed,
    /// Its end is missing.
    #[error("cut: it has {length} of {written} bytes; copy or save it again")]
    Cut {
        /// How many bytes it has.
        length: u64,
        /// How many bytes its database has at least.
        written: u64,
    },
    /// Something in it contradicts itself.
    #[error("damaged: {0}")]
    Damaged(&'static str),
}
