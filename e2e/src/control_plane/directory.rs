//! The directory of a control plane: ours alone, and never one that holds something else.
//!
//! It does not look into the data it guards.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::Kubernetes;

/// Marks the directory and names the release that wrote last.
const RELEASE: &str = "kubernetes-release";

/// A directory that no other control plane can use while this lives.
#[derive(Debug)]
pub(super) struct Directory {
    /// Absolute.
    pub(super) path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Takes an empty or missing directory, or the one of an earlier run.
    pub(super) fn claim(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("create {}", path.display()))?;
        let path = path.canonicalize().with_context(|| format!("find {}", path.display()))?;
        let shown = path.display();
        let lock = path.join("lock");
        let empty = fs::read_dir(&path).with_context(|| format!("read {shown}"))?.next().is_none();
        ensure!(
            empty || (lock.is_file() && path.join(RELEASE).is_file()),
            "{shown} is not empty and not the directory of a control plane; choose another"
        );
        let lock = File::create(lock).with_context(|| format!("lock {shown}"))?;
        lock.try_lock().with_context(|| format!("{shown} is in use by another control plane"))?;
        // From here on an interrupted start leaves a directory that can be used again.
        let release = File::options().create(true).append(true).open(path.join(RELEASE));
        release.with_context(|| format!("mark {shown}"))?;
        Ok(Self { path, _lock: lock })
    }

    /// Records the release that is about to run on the data; an older one than before is refused, since it
    /// may not understand what the newer one wrote.
    pub(super) fn record(&self, release: &Kubernetes) -> Result<()> {
        let file = self.path.join(RELEASE);
        let last = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        if let Some(last) = Kubernetes::parse(last.trim()) {
            ensure!(
                *release >= last,
                "{} holds the data of Kubernetes {last}, which {release} may not understand; choose another \
                 directory",
                self.path.display()
            );
        }
        fs::write(&file, format!("{release}\n")).with_context(|| format!("write {}", file.display()))
    }
}
