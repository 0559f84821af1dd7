//! OCI image layouts: folders whose files are named by their digests, so that no daemon is needed to make an
//! image.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::sha256;

pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Under which annotation a layout has the reference to publish it as.
pub(super) const REFERENCE: &str = "org.opencontainers.image.ref.name";

/// A folder that becomes a layout.
pub(super) struct Layout<'a> {
    folder: &'a Path,
}

impl<'a> Layout<'a> {
    pub(super) fn create(folder: &'a Path) -> Result<Self> {
        let layout = Self { folder };
        fs::create_dir_all(folder.join("blobs/sha256")).with_context(|| folder.display().to_string())?;
        layout.write("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        Ok(layout)
    }

    /// Adds content, and returns its descriptor.
    pub(super) fn add(&self, media_type: &str, bytes: &[u8]) -> Result<Value> {
        let digest = sha256(bytes);
        self.write(&format!("blobs/sha256/{digest}"), bytes)?;
        Ok(json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len() }))
    }

    /// Adds a manifest with one layer.
    pub(super) fn add_manifest(&self, config: &Value, layer: &Value, annotations: &Value) -> Result<Value> {
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": config, "layers": [layer], "annotations": annotations,
        });
        self.add(MANIFEST, manifest.to_string().as_bytes())
    }

    /// Completes the layout with what it is there for.
    pub(super) fn finish(&self, mut root: Value, reference: &str) -> Result<()> {
        root["annotations"] = json!({ REFERENCE: reference });
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [root] });
        self.write("index.json", index.to_string().as_bytes())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        fs::write(self.folder.join(name), bytes).with_context(|| format!("write {name}"))
    }
}
