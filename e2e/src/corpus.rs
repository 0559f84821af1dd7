//! Real upgrades of well-known projects, and objects made up from their schemas.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Patch, documents};
use crate::generate;

/// How many objects are made of a CRD, at most.
pub const OBJECTS: usize = 10;

/// The folders of all upgrades, each with the CRD before and after it: `old.yaml` and `new.yaml`.
///
/// # Errors
/// They cannot be listed.
pub fn pairs() -> Result<Vec<PathBuf>> {
    let folders = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/pairs"))?;
    let mut pairs: Vec<PathBuf> = folders.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    pairs.sort();
    Ok(pairs)
}

/// An object that was made.
pub struct Made {
    /// Its name.
    pub name: String,
    /// Where it is, at the version that it was made at.
    pub path: String,
    /// That version.
    pub version: String,
}

/// Makes objects at the storage version, in two ways; those that the server refuses do not count.
///
/// # Errors
/// There is no answer, or the document is no CRD.
pub async fn make(cluster: &Cluster, crd: &Value, crd_name: &str) -> Result<Vec<Made>> {
    let version = storage_version(crd)?;
    let group = text(crd, &["spec", "group"])?;
    let plural = text(crd, &["spec", "names", "plural"])?;
    let versions = crd["spec"]["versions"].as_array().context("versions")?;
    let schema = &versions.iter().find(|other| other["name"] == version.as_str()).context("S")?["schema"]["openAPIV3Schema"];
    let collection = match crd["spec"]["scope"].as_str() {
        Some("Cluster") => format!("/apis/{group}/{version}/{plural}"),
        _ => format!("/apis/{group}/{version}/namespaces/default/{plural}"),
    };
    let mut rng = Rng::with_seed(crd_name.bytes().map(u64::from).sum());
    let mut made = Vec::new();
    for attempt in 0..OBJECTS * 20 {
        let plenty = [0, 10, 30, 60][attempt % 4];
        let mut object = generate::value(schema, &mut rng, plenty);
        let name =
            if group.contains("gatekeeper") { format!("made{attempt}") } else { format!("made-{attempt}") };
        object["apiVersion"] = json!(format!("{group}/{version}"));
        object["kind"] = crd["spec"]["names"]["kind"].clone();
        object["metadata"] = json!({ "name": name });
        let path = format!("{collection}/{name}");
        let answer = match attempt % 2 {
            0 => cluster.create(&collection, "creator", &object).await,
            _ => cluster.patch(&path, Patch::Apply, "owner", &object).await?.ok(),
        };
        if answer.is_ok() {
            made.push(Made { name, path, version: version.clone() });
        }
        if made.len() == OBJECTS {
            break;
        }
    }
    Ok(made)
}

/// The storage version of a CRD.
///
/// # Errors
/// There is none.
pub fn storage_version(crd: &Value) -> Result<String> {
    let versions = crd["spec"]["versions"].as_array().context("versions")?;
    let storage = versions.iter().find(|version| version["storage"] == true).context("a storage version")?;
    text(storage, &["name"])
}

/// A CRD of a pair, without the conversion webhook, which does not exist here.
///
/// # Errors
/// It cannot be read.
pub fn load(pair: &Path, file: &str) -> Result<Value> {
    load_file(&pair.join(file))
}

/// A CRD of a file, without the conversion webhook.
///
/// # Errors
/// It cannot be read.
pub fn load_file(file: &Path) -> Result<Value> {
    let crd = documents(file)?.into_iter().next().context("a document")?;
    without_webhook(crd)
}

/// A CRD of `corpus/story`, as it is applied.
///
/// # Errors
/// It cannot be read.
pub fn story(file: &str) -> Result<Value> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/story"));
    let mut crd = load(folder, file)?;
    // Labels and annotations are templates of a chart.
    let name = crd["metadata"]["name"].clone();
    crd["metadata"] = json!({ "name": name });
    Ok(crd)
}

/// A CRD as it is applied: without a status, and without the conversion webhook, which does not exist here.
///
/// # Errors
/// It is none.
pub fn without_webhook(mut crd: Value) -> Result<Value> {
    let fields = crd.as_object_mut().context("an object")?;
    fields.remove("status");
    if crd["spec"]["conversion"]["strategy"] == "Webhook" {
        crd["spec"].as_object_mut().context("a spec")?.remove("conversion");
    }
    Ok(crd)
}

/// The text at a place.
///
/// # Errors
/// There is none.
pub fn text(value: &Value, path: &[&str]) -> Result<String> {
    let found = path.iter().try_fold(value, |value, field| value.get(field)).and_then(Value::as_str);
    Ok(found.with_context(|| path.join("."))?.to_owned())
}
