//! Publishes the image and the chart of a release.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::layout::REFERENCE;
use crate::install::crane;

/// Pushes the layouts of a release to the references that they name, and returns these by digest, the image
/// first.
///
/// # Errors
/// The folder contains no release, or the registry refuses something.
pub fn push(folder: &Path) -> Result<Vec<String>> {
    let mut pushed = Vec::new();
    for name in ["image", "chart"] {
        let layout = folder.join(name).canonicalize();
        let layout = layout.with_context(|| format!("{} contains no release", folder.display()))?;
        let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
        let reference = index["manifests"][0]["annotations"][REFERENCE].as_str().context("no reference")?;
        let layout = layout.to_str().context("a path in UTF-8")?;
        pushed.push(crane(&["push", layout, reference])?.trim().to_owned());
    }
    Ok(pushed)
}
