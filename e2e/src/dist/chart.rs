//! The Helm chart: an archive for `helm install FILE`, and the same as an OCI artifact. `helm package` and
//! `helm push` would put the time of the build into them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::archive::{Entry, gzip, tar};
use super::layout::Layout;
use super::{Release, VERSION, replace_once};
use crate::install::root;

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const FOLDER: &str = "config/chart";

/// The name and the bytes of the chart's archive; by default it installs this release's image.
pub(super) fn package(release: &Release, digest: &str) -> Result<(String, Vec<u8>)> {
    let mut entries = Vec::new();
    collect(&root().join(FOLDER), "etch", &mut entries)?;
    for entry in entries.iter_mut().filter(|entry| entry.path == "etch/values.yaml") {
        let values = String::from_utf8(std::mem::take(&mut entry.bytes))?;
        let repository = format!("repository: {}/etch\n", release.registry);
        let values = replace_once(&values, "repository: etch\n", &repository)?;
        let values = replace_once(&values, "digest: \"\"\n", &format!("digest: {digest}\n"))?;
        let runbook = format!("runbook: {}/blob/v{VERSION}/docs/runbook.md\n", release.source);
        entry.bytes = replace_once(&values, "runbook: docs/runbook.md\n", &runbook)?.into_bytes();
    }
    Ok((format!("etch-{VERSION}.tgz"), gzip(&tar(entries, release.time)?)?))
}

/// Writes the layout of the artifact.
pub(super) fn write(release: &Release, package: &[u8], folder: &Path) -> Result<()> {
    let metadata: Value = serde_yaml_ng::from_slice(&super::file(&format!("{FOLDER}/Chart.yaml"))?)?;
    let layout = Layout::create(folder)?;
    let config = layout.add(CONFIG, metadata.to_string().as_bytes())?;
    let layer = layout.add(LAYER, package)?;
    let mut annotations = release.annotations();
    annotations["org.opencontainers.image.created"] = json!(release.time.to_string());
    annotations["org.opencontainers.image.description"] = metadata["description"].clone();
    let manifest = layout.add_manifest(&config, &layer, &annotations)?;
    layout.finish(manifest, &release.chart())
}

fn collect(folder: &Path, name: &str, entries: &mut Vec<Entry>) -> Result<()> {
    for found in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = found?.path();
        let name = format!("{name}/{}", path.file_name().and_then(|name| name.to_str()).context("a name")?);
        match path.is_dir() {
            true => collect(&path, &name, entries)?,
            false => entries.push(Entry::new(name, fs::read(&path)?)),
        }
    }
    Ok(())
}
