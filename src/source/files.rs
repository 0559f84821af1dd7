//! From paths to files.
//! In folders it opens only regular files, and it follows no links to folders.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::{MAX_FILE_BYTES, Origin, Reason, SourceError};

const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// Visits the file, or the files in a folder and below.
pub(super) fn below(
    path: &Path,
    visit: &mut dyn FnMut(Result<&Path, SourceError>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if !path.is_dir() {
        return visit(Ok(path));
    }
    let mut found = false;
    folder(path, &mut |file| {
        found = true;
        visit(file)
    })?;
    if found { ControlFlow::Continue(()) } else { visit(Err(failed(path, Reason::Empty))) }
}

/// Links to folders are not followed, so there are no circles. A mounted ConfigMap shows its files as links,
/// and has its folders hidden. A pipe may have no end, so it is read only where it is named itself.
fn folder(
    path: &Path,
    visit: &mut dyn FnMut(Result<&Path, SourceError>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let entries = match entries(path) {
        Ok(entries) => entries,
        Err(error) => return visit(Err(failed(path, Reason::Read(error)))),
    };
    for (entry, is_folder) in entries {
        if is_folder {
            folder(&entry, visit)?;
        } else if is_manifest(&entry) && !entry.is_dir() {
            let is_other = fs::metadata(&entry).is_ok_and(|metadata| !metadata.is_file());
            visit(if is_other { Err(failed(&entry, Reason::NoFile)) } else { Ok(&entry) })?;
        }
    }
    ControlFlow::Continue(())
}

/// Whether a file is one of those that are read in a folder.
pub(super) fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

/// What is in a folder and not hidden, in the order of the names, and whether it is a folder itself.
fn entries(path: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut entries = fs::read_dir(path)?
        .filter(|entry| {
            !entry.as_ref().is_ok_and(|entry| entry.file_name().as_encoded_bytes().starts_with(b"."))
        })
        .map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir()))))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

/// Opens a file that is not known to be too long.
pub(super) fn open(path: &Path) -> Result<File, Reason> {
    let file = File::open(path).map_err(Reason::Read)?;
    let metadata = file.metadata().map_err(Reason::Read)?;
    if metadata.len() > MAX_FILE_BYTES { Err(Reason::TooLong) } else { Ok(file) }
}

pub(super) fn failed(path: &Path, reason: Reason) -> SourceError {
    let origin = Origin { file: path.to_string_lossy().into(), document: 1, item: None };
    SourceError { origin, reason }
}
