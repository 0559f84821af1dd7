//! The files with which `kubectl apply` applies what was planned, and nothing else.
//! It must not change how Etch itself reads files: see [`etch::source`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use etch::source::Origin;
use etch_core::shell::quoted;

/// The options for the files that CRDs are from, where `paths` were typed; `None` where CRDs were piped in.
///
/// kubectl reads no folder below the one that is named, and takes what is for kustomize only for manifests.
/// So a folder is named only if each manifest directly in it has a CRD, and else each file.
pub(super) fn files<'a>(paths: &[PathBuf], origins: impl Iterator<Item = &'a Origin>) -> Option<String> {
    if paths.iter().any(|path| path == Path::new("-")) {
        return None;
    }
    let found: BTreeSet<&Path> = origins.map(|origin| Path::new(&*origin.file)).collect();
    let mut named: Vec<&Path> = Vec::new();
    for path in paths {
        if !path.is_dir() {
            named.push(path);
            continue;
        }
        let mut folders: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
        for file in found.iter().filter(|file| file.starts_with(path)) {
            folders.entry(file.parent().unwrap_or(path)).or_default().push(file);
        }
        for (folder, files) in folders {
            if has_no_other(folder, &files) {
                // As it was typed, if it is the one that was.
                named.push(if folder == path.as_path() { path } else { folder });
            } else {
                named.extend(files);
            }
        }
    }
    let mut seen = BTreeSet::new();
    let words = named.into_iter().filter(|path| seen.insert(*path));
    let words: Vec<String> =
        words.map(|path| format!("-f {}", quoted(&path.display().to_string()))).collect();
    Some(words.join(" "))
}

/// Whether kubectl reads only these files in a folder.
fn has_no_other(folder: &Path, files: &[&Path]) -> bool {
    let is_manifest = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ["json", "yaml", "yml"].iter().any(|known| ending == *known))
    };
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths.all(|path| path.is_ok_and(|path| !is_manifest(&path) || files.contains(&path.as_path())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_where_kubectl_reads_the_same_in_it() {
        let all = tempfile::tempdir().expect("a folder");
        for name in
            ["flat/a.yaml", "flat/b.json", "flat/notes.md", "mixed/a.yaml", "mixed/kustomization.yaml"]
        {
            write(all.path(), name);
        }
        for name in ["crd/kustomization.yaml", "crd/bases/a.yaml", "top/a.yaml", "top/below/b.yaml"] {
            write(all.path(), name);
        }
        let words = |typed: &[&str], crds: &[&str]| {
            let path = |name: &str| all.path().join(name);
            let origins: Vec<Origin> = crds
                .iter()
                .map(|name| Origin { file: path(name).to_string_lossy().into(), document: 1, item: None })
                .collect();
            let typed: Vec<PathBuf> = typed.iter().map(|name| path(name)).collect();
            let words = files(&typed, origins.iter()).expect("files");
            words.replace(&format!("{}/", all.path().display()), "")
        };
        assert_eq!(words(&["flat/a.yaml"], &["flat/a.yaml"]), "-f flat/a.yaml");
        assert_eq!(words(&["flat"], &["flat/a.yaml", "flat/b.json"]), "-f flat");
        assert_eq!(words(&["flat"], &["flat/a.yaml"]), "-f flat/a.yaml", "the other one has no CRD");
        assert_eq!(words(&["mixed"], &["mixed/a.yaml"]), "-f mixed/a.yaml");
        assert_eq!(words(&["crd"], &["crd/bases/a.yaml"]), "-f crd/bases");
        assert_eq!(words(&["top"], &["top/a.yaml", "top/below/b.yaml"]), "-f top -f top/below");
        assert_eq!(files(&["-".into()], std::iter::empty()), None);
    }

    fn write(folder: &Path, name: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "").expect("a file");
    }
}
