//! The manifest with which krew installs `kubectl etch`.

use anyhow::Result;
use serde_json::{Value, json};

use super::binary::Architecture;
use super::{Release, VERSION};

/// The manifest for archives: for which architecture each is, its name, its SHA-256.
pub(super) fn manifest(release: &Release, archives: &[(Architecture, String, String)]) -> Result<String> {
    let platforms: Vec<Value> = archives
        .iter()
        .map(|(architecture, name, sum)| {
            let folder = name.trim_end_matches(".tar.gz");
            json!({
                "selector": { "matchLabels": { "os": "linux", "arch": architecture.name() } },
                "uri": format!("{}/releases/download/v{VERSION}/{name}", release.source),
                "sha256": sum,
                "files": [
                    { "from": format!("{folder}/etch"), "to": "." },
                    { "from": format!("{folder}/*LICENSE*"), "to": "." },
                ],
                "bin": "etch",
            })
        })
        .collect();
    Ok(serde_yaml_ng::to_string(&json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": { "name": "etch" },
        "spec": {
            "version": format!("v{VERSION}"),
            "homepage": release.source,
            "shortDescription": "Store the defaults of CRDs in etcd",
            "description": "Shows which defaults of a CRD etcd stores and which it lacks, and what an \
                upgrade of the CRD\n\
                changes in each object, and stores what is missing.\nThe commands need no operator in the \
                cluster.\n",
            "platforms": platforms,
        },
    }))?)
}
