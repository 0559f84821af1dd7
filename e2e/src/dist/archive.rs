//! Archives that depend on their entries and a time only, and the one that a user downloads.

use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;

use super::{Binary, VERSION, file};

/// A file in an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
}

impl Entry {
    pub(super) fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode: 0o644, bytes: bytes.into() }
    }
}

/// The name and the bytes of the archive with a binary, its documentation and all licenses.
pub(super) fn of(binary: &Binary, extras: &[Entry], time: Timestamp) -> Result<(String, Vec<u8>)> {
    let folder = format!("etch-{VERSION}-linux-{}", binary.architecture.name());
    let mut entries = vec![
        Entry { path: "etch".to_owned(), mode: 0o755, bytes: binary.bytes.clone() },
        Entry::new("README.md", file("README.md")?),
        Entry::new("LICENSE", file("LICENSE")?),
    ];
    entries.extend_from_slice(extras);
    for entry in &mut entries {
        entry.path = format!("{folder}/{}", entry.path);
    }
    Ok((format!("{folder}.tar.gz"), gzip(&tar(entries, time)?)?))
}

/// The entries in the order of their paths; they belong to root.
pub(super) fn tar(mut entries: Vec<Entry>, time: Timestamp) -> Result<Vec<u8>> {
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let mut tar = tar::Builder::new(Vec::new());
    for Entry { path, mode, bytes } in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        header.set_mtime(time.as_second().unsigned_abs());
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, path, bytes.as_slice())?;
    }
    Ok(tar.into_inner()?)
}

/// Compressed, without a name or a time.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::default());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}
