//! Schemas of real CRDs, out of the project's own vectors, as a start for cases.
//! It must not fetch anything, nor fail where there are none.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use etch::domain::json::{Json, level};
use flate2::bufread::MultiGzDecoder;
use serde_json::{Value, json};

use super::super::random::Random;
use crate::conformance::Vector;

/// Bytes that a seed has at most, as a document: larger schemas are entered until a part is small enough.
const LARGEST: usize = 6_000;

/// Schemas of real CRDs.
#[derive(Debug, Default)]
pub struct Seeds(Vec<Json>);

impl Seeds {
    /// The schemas of the vectors in `e2e/vectors`.
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
        Ok(Self(schemas))
    }

    /// A real schema, or an object with a part of one.
    pub(super) fn schema(&self, random: &mut Random) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let mut part: &Value = &self.0[random.below(self.0.len())];
        let mut entered = false;
        while size(part) > LARGEST || (random.chance(40) && !below(part).is_empty()) {
            let parts = below(part);
            if parts.is_empty() {
                return None;
            }
            part = parts[random.below(parts.len())];
            entered = true;
        }
        let part = etch::domain::json::copy(part);
        if !entered {
            return Some(part);
        }
        let mut schema = json!({"type": "object", "properties": {"spec": null}});
        schema["properties"]["spec"] = part;
        Some(schema)
    }
}

/// The schemas right below a schema.
fn below(schema: &Value) -> Vec<&Value> {
    let properties = schema["properties"].as_object().into_iter().flat_map(|properties| properties.values());
    let others = ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
    properties.chain(others.filter(|schema| schema.is_object())).collect()
}

fn size(value: &Value) -> usize {
    level(|| match value {
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size(value) + 4).sum::<usize>() + 2
        }
        Value::String(text) => text.len() + 2,
        _ => 4,
    })
}
