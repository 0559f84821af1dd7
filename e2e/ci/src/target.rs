//! Where cargo puts what it builds, and where the control plane and the oracle are kept beside it.
//! It creates nothing.

use std::env;
use std::path::{self, Path, PathBuf};

use anyhow::Context;

use crate::root;

/// Cargo's target folder: `CARGO_TARGET_DIR`, else the one that this program was built into. Always absolute.
pub fn target_folder() -> anyhow::Result<PathBuf> {
    if let Some(reported) = env::var_os("CARGO_TARGET_DIR").filter(|reported| !reported.is_empty()) {
        return path::absolute(&reported)
            .with_context(|| format!("CARGO_TARGET_DIR={}", reported.to_string_lossy()));
    }
    let program = env::current_exe().context("find this program")?;
    // Cargo marks the root of every target folder with this file.
    let built_into = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    Ok(built_into.map_or_else(|| root().join("target"), Path::to_owned))
}
