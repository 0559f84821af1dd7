//! Real CRDs and their schemas, as a start for cases: out of the project's own vectors, or of files.
//! It fetches nothing, and does not fail where there are none.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, ensure};
use flate2::bufread::MultiGzDecoder;
use kube_structural_schema::json::Json;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::conformance::Vector;
use simulator::random::Random;

/// Bytes that a seed has at most, as a document: larger schemas are entered until a part is small enough.
const LARGEST: usize = 6_000;

/// Real CRDs and their schemas.
#[derive(Debug, Default)]
pub struct Seeds {
    schemas: Vec<Json>,
    /// The smaller ones first.
    crds: Vec<Json>,
    /// Whether every case is to have one of the schemas, whole.
    pub(super) whole: bool,
}

impl Seeds {
    /// The schemas of the vectors in `e2e/vectors`, for some of the cases and cut to a handy size.
    ///
    /// # Errors
    /// A vector file of the project is missing or damaged.
    pub fn load() -> anyhow::Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/real-crds-1.36.jsonl.gz");
        let file = File::open(&path).with_context(|| format!("open {}", path.display()))?;
        let lines = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
        let mut known = BTreeSet::new();
        let mut schemas = Vec::new();
        for line in lines.split(b'\n') {
            let vector = Vector::parse(&line.with_context(|| format!("read {}", path.display()))?)?;
            if known.insert(vector.case.schema.to_vec()) {
                schemas.push(vector.case.schema);
            }
        }
        let mut crds = Vec::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"), &mut crds)?;
        crds.sort_by_cached_key(|crd| size(crd));
        Ok(Self { schemas, crds, whole: false })
    }

    /// The schemas of all versions of the CRDs in the YAML files below a folder, for all cases and whole.
    ///
    /// # Errors
    /// A file cannot be read, or there is no schema.
    pub fn of_crds(folder: &Path) -> anyhow::Result<Self> {
        let mut crds = Vec::new();
        collect(folder, &mut crds)?;
        crds.sort_by_cached_key(|crd| size(crd));
        let versions = crds.iter().flat_map(|crd| crd["spec"]["versions"].as_array().into_iter().flatten());
        let found = versions.map(|version| &version["schema"]["openAPIV3Schema"]);
        let schemas: Vec<Json> =
            found.filter(|schema| schema.is_object()).map(|schema| Json::from(schema.clone())).collect();
        ensure!(!schemas.is_empty(), "{} holds no CRD with a schema", folder.display());
        Ok(Self { schemas, crds, whole: true })
    }

    /// A real CRD, more often a small one: most time would go into a few giants otherwise.
    pub(super) fn crd(&self, random: &mut Random) -> Option<Value> {
        if self.crds.is_empty() {
            return None;
        }
        let place = random.below(self.crds.len()).min(random.below(self.crds.len()));
        Some(Value::clone(&self.crds[place]))
    }

    /// A real CRD of the same name, from before or after.
    pub(super) fn sibling(&self, crd: &Value, random: &mut Random) -> Option<Value> {
        let name = &crd["metadata"]["name"];
        let siblings: Vec<&Json> =
            self.crds.iter().filter(|other| other["metadata"]["name"] == *name).collect();
        (!siblings.is_empty()).then(|| Value::clone(siblings[random.below(siblings.len())]))
    }

    /// A real schema, or an object with a part of one.
    pub(super) fn schema(&self, random: &mut Random) -> Option<Value> {
        if self.schemas.is_empty() {
            return None;
        }
        let mut part: &Value = &self.schemas[random.below(self.schemas.len())];
        if self.whole {
            return Some(part.clone());
        }
        let mut entered = false;
        while size(part) > LARGEST || (random.chance(40) && !below(part).is_empty()) {
            let parts = below(part);
            if parts.is_empty() {
                return None;
            }
            part = parts[random.below(parts.len())];
            entered = true;
        }
        let part = part.clone();
        if !entered {
            return Some(part);
        }
        let mut schema = json!({"type": "object", "properties": {"spec": null}});
        schema["properties"]["spec"] = part;
        Some(schema)
    }
}

/// The CRDs in the YAML files below a folder, in the order of the files' names.
///
/// # Errors
/// A file cannot be read.
pub fn crds(folder: &Path) -> anyhow::Result<Vec<Json>> {
    let mut crds = Vec::new();
    collect(folder, &mut crds)?;
    Ok(crds)
}

fn collect(folder: &Path, crds: &mut Vec<Json>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, crds)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            for document in serde_yaml_ng::Deserializer::from_str(&text) {
                let crd =
                    Value::deserialize(document).with_context(|| format!("parse {}", path.display()))?;
                if crd["spec"]["versions"].is_array() {
                    crds.push(crd.into());
                }
            }
        }
    }
    Ok(())
}

/// The schemas right below a schema.
fn below(schema: &Value) -> Vec<&Value> {
    let properties = schema["properties"].as_object().into_iter().flat_map(|properties| properties.values());
    let others = ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
    properties.chain(others.filter(|schema| schema.is_object())).collect()
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size(value) + 4).sum::<usize>() + 2
        }
        Value::String(text) => text.len() + 2,
        _ => 4,
    }
}
