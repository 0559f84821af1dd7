//! The image: from scratch, with the binary and nothing else, for each architecture; as `Dockerfile` makes
//! it.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::archive::{Entry, gzip, tar};
use super::layout::{INDEX, Layout};
use super::{Binary, Release, sha256};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The user `nonroot` of distroless images: nothing is written.
const USER: &str = "65532:65532";
const ENTRYPOINT: &str = "/etch";

/// Writes the layout of the image, and returns the digest to pull it by.
pub(super) fn write(release: &Release, binaries: &[Binary], folder: &Path) -> Result<String> {
    let layout = Layout::create(folder)?;
    let annotations = release.annotations();
    let mut manifests = Vec::new();
    for binary in binaries {
        let entry = Entry { path: "etch".to_owned(), mode: 0o555, bytes: binary.bytes.clone() };
        let files = tar(vec![entry], release.time)?;
        let config = config(release, binary.architecture.name(), &sha256(&files), &annotations);
        let config = layout.add(CONFIG, config.to_string().as_bytes())?;
        let layer = layout.add(LAYER, &gzip(&files)?)?;
        let mut manifest = layout.add_manifest(&config, &layer, &annotations)?;
        manifest["platform"] = json!({ "os": "linux", "architecture": binary.architecture.name() });
        manifests.push(manifest);
    }
    let index = json!({
        "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": annotations,
    });
    let index = layout.add(INDEX, index.to_string().as_bytes())?;
    let digest = index["digest"].as_str().context("a digest")?.to_owned();
    layout.finish(index, &release.image())?;
    Ok(digest)
}

fn config(release: &Release, architecture: &str, files: &str, labels: &Value) -> Value {
    let created = release.time.to_string();
    json!({
        "created": created, "os": "linux", "architecture": architecture,
        "config": { "User": USER, "Entrypoint": [ENTRYPOINT], "Labels": labels },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{files}")] },
        "history": [{ "created": created, "created_by": "just release" }],
    })
}

#[cfg(test)]
mod tests {
    use super::{ENTRYPOINT, USER};

    #[test]
    fn the_dockerfile_makes_the_same_image() {
        let dockerfile = include_str!("../../../Dockerfile");
        let stage = dockerfile.split_once("FROM scratch\n").expect("a stage from scratch").1;
        for line in [&format!("USER {USER}"), &format!("ENTRYPOINT [\"{ENTRYPOINT}\"]")] {
            assert!(stage.lines().any(|found| found == line), "{line}");
        }
        let label = "org.opencontainers.image.description=\"Makes Kubernetes CRD defaults stored facts\"";
        assert!(stage.contains(label) && stage.contains("org.opencontainers.image.licenses=\"Apache-2.0\""));
    }
}
