//! From patterns of packages to folders, and from folders to import paths and back.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etch_lint::go_types::{holds_types, module};

/// The folder of a pattern, and whether all below it is meant.
pub(super) fn split(pattern: &Path) -> (PathBuf, bool) {
    match pattern.file_name() {
        Some(name) if name == "..." => {
            let folder = pattern.parent().unwrap_or(Path::new(""));
            (if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }, true)
        }
        _ => (pattern.to_owned(), false),
    }
}

/// The folders with Go files that may hold types, each with these files, in the order of their names.
pub(super) fn with_go(
    folder: &Path,
    is_tree: bool,
    found: &mut Vec<(PathBuf, Vec<PathBuf>)>,
) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Links to folders are not followed, so there are no circles.
        if entry.file_type()?.is_dir() {
            if !name.starts_with(['.', '_']) && !matches!(&*name, "testdata" | "vendor") {
                folders.push(entry.path());
            }
        } else if holds_types(&name) && fs::metadata(entry.path()).map_or(true, |metadata| metadata.is_file())
        {
            files.push(entry.path());
        }
    }
    if !files.is_empty() {
        found.push((folder.to_owned(), files));
    }
    if is_tree {
        for folder in folders {
            with_go(&folder, true, found)?;
        }
    }
    Ok(())
}

/// The modules that folders belong to.
#[derive(Default)]
pub(super) struct Modules {
    /// By the absolute folder of the `go.mod`.
    known: BTreeMap<PathBuf, String>,
}

impl Modules {
    /// The import path of a folder; the folder itself where it belongs to no module.
    pub(super) fn import_path(&mut self, folder: &Path) -> String {
        let plain = || folder.to_string_lossy().into_owned();
        let Ok(absolute) = fs::canonicalize(folder) else { return plain() };
        for root in absolute.ancestors() {
            let path = match self.known.get(root) {
                Some(path) => Some(path.clone()),
                None => fs::read_to_string(root.join("go.mod")).ok().and_then(|text| module(&text)),
            };
            if let Some(path) = path {
                self.known.insert(root.to_owned(), path.clone());
                let below = absolute.strip_prefix(root).unwrap_or(Path::new(""));
                return below.iter().fold(path, |path, step| format!("{path}/{}", step.to_string_lossy()));
            }
        }
        plain()
    }

    /// The folder of a package of a known module.
    pub(super) fn folder(&self, import: &str) -> Option<PathBuf> {
        let inside = self.known.iter().filter_map(|(root, module)| {
            let below = import.strip_prefix(module.as_str())?;
            let below = if below.is_empty() { "" } else { below.strip_prefix('/')? };
            // An import path has no such steps, and must not lead out of the module.
            let is_plain = below.split('/').all(|step| step != ".." && step != ".");
            is_plain.then(|| (module.len(), root.join(below)))
        });
        inside.max_by_key(|(length, _)| *length).map(|(_, folder)| folder)
    }
}
