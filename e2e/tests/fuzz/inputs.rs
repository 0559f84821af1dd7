//! What readers are given at first: the project's own CRDs, vectors and rules.
//! Nothing is made up.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use e2e::differential::crds as crds_below;
use flate2::bufread::MultiGzDecoder;
use serde_json::{Value, json};

/// Bytes of an input at most: the rest of the time goes into more of them.
const LARGEST: usize = 20_000;
/// Inputs at most.
const MOST: usize = 400;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn vectors(name: &str) -> Result<Vec<Value>> {
    let path = folder("vectors").join(name);
    let file = BufReader::new(File::open(&path).with_context(|| format!("open {}", path.display()))?);
    let mut vectors = Vec::new();
    for line in BufReader::new(MultiGzDecoder::new(file)).lines() {
        let line = line?;
        if line.len() <= LARGEST && vectors.len() < MOST {
            vectors.extend(serde_json::from_str::<Value>(&line).ok());
        }
    }
    Ok(vectors)
}

/// CRDs as JSON.
pub(super) fn crds() -> Result<Vec<Vec<u8>>> {
    let mut crds: Vec<Vec<u8>> =
        vectors("crds-1.37.jsonl.gz")?.iter().map(|vector| vector["crd"].to_string().into_bytes()).collect();
    let real = crds_below(&folder("corpus"))?;
    crds.extend(real.iter().map(|crd| crd.to_vec()).filter(|crd| crd.len() <= LARGEST));
    Ok(crds)
}

/// Schemas with objects.
pub(super) fn filled() -> Result<Vec<Vec<u8>>> {
    let vectors = vectors("apiserver-1.36.jsonl.gz")?;
    let with_objects = vectors.iter().filter(|vector| vector["object"].is_object());
    let pairs = with_objects.map(|vector| json!({"schema": vector["schema"], "object": vector["object"]}));
    Ok(pairs.map(|pair| pair.to_string().into_bytes()).collect())
}

/// Objects with owners, and their schema.
pub(super) fn owned() -> Result<Vec<Vec<u8>>> {
    let field_sets = [
        json!({
            "f:spec": {
                ".": {}, "f:a": {}, "f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:port": {}}},
            },
        }),
        json!({"f:spec": {"f:set": {"v:\"a\"": {}, "v:1": {}}, "f:items": {"i:0": {}}}}),
        json!({"f:metadata": {"f:labels": {"f:a.b/c": {}}}, "f:status": {}}),
        json!({}),
        Value::Null,
    ];
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"},
                "port": {"type": "integer", "default": 1}}}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "items": {"type": "array", "items": {"type": "integer"}}}}}});
    let mut owned = Vec::new();
    for one in &field_sets {
        for other in &field_sets {
            let entry = |manager: &str, fields: &Value| {
                json!({
                    "manager": manager, "operation": "Apply", "apiVersion": "a/v1", "fieldsType": "FieldsV1",
                    "fieldsV1": fields,
                })
            };
            let object = json!({"metadata": {"managedFields": [entry("a", one), entry("b", other)]},
                "spec": {"a": "x", "list": [{"name": "x", "port": 1}], "set": ["a"], "items": [1]}});
            owned.push(json!({"schema": schema, "object": object}).to_string().into_bytes());
        }
    }
    Ok(owned)
}

/// Rules, one to an input.
pub(super) fn rules() -> Result<Vec<Vec<u8>>> {
    let mut rules = Vec::new();
    let cases = folder("../crates/kube-validation-rules/src/cases");
    for name in ["failures.jsonl", "expressions.jsonl"] {
        for line in fs::read_to_string(cases.join(name))?.lines() {
            let case: Value = serde_json::from_str(line)?;
            let text = case["rule"].as_str().or(case["expr"].as_str());
            rules.extend(text.map(|text| text.as_bytes().to_vec()));
        }
    }
    Ok(rules)
}

/// YAML files.
pub(super) fn documents() -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut folders = vec![folder("corpus"), folder("../config"), folder("../yaml")];
    while let Some(folder) = folders.pop() {
        let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "yaml")
                && path.metadata()?.len() <= LARGEST as u64
            {
                found.push(fs::read(path)?);
            }
        }
    }
    Ok(found)
}

/// Lines of a watch.
pub(super) fn watched() -> Result<Vec<Vec<u8>>> {
    let mut lines = vec![
        json!({"type": "BOOKMARK", "object": {"kind": "Thing", "metadata": {"resourceVersion": "7"}}}),
        json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure",
            "message": "too old resource version: 1 (7)", "reason": "Expired", "code": 410}}),
    ];
    for (index, vector) in vectors("apiserver-1.36.jsonl.gz")?.iter_mut().enumerate() {
        let mut object = vector["object"].take();
        if let Some(fields) = object.as_object_mut() {
            let metadata =
                json!({"name": "a", "namespace": "b", "uid": "c", "resourceVersion": index.to_string()});
            fields.insert("metadata".to_owned(), metadata);
            let kind = ["ADDED", "MODIFIED", "DELETED"][index % 3];
            lines.push(json!({"type": kind, "object": object}));
        }
    }
    Ok(lines.iter().map(|line| format!("{line}\n").into_bytes()).collect())
}

/// A snapshot of etcd with objects that were created, changed and deleted: as it was saved, and without the
/// hash at its end, which no change would get past.
pub(super) fn snapshots() -> Result<Vec<Vec<u8>>> {
    let path = folder("tests/fuzz/corpus/snapshot.db.gz");
    let file = BufReader::new(File::open(&path).with_context(|| path.display().to_string())?);
    let mut saved = Vec::new();
    MultiGzDecoder::new(file).read_to_end(&mut saved)?;
    let database = saved[..saved.len() / 512 * 512].to_vec();
    Ok(vec![saved, database.clone(), database.clone(), database])
}

/// Values as API servers store them: JSON, and CBOR with its mark.
pub(super) fn stored() -> Result<Vec<Vec<u8>>> {
    let mut stored = filled()?;
    stored.truncate(60);
    let cbor: [&[u8]; 5] = [
        b"\xd9\xd9\xf7\xa2Dkind\x45Thing\x4aapiVersion\x42v1",
        b"\xd9\xd9\xf7\xa1Aa\x9f\x01\x02\xff",
        b"\xd9\xd9\xf7\xa1Aa\xfb\x3f\xf8\x00\x00\x00\x00\x00\x00",
        b"\xd9\xd9\xf7\xa1Aa\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xd9\xd9\xf7\xbfAa\x5fAbAc\xff\xff",
    ];
    stored.extend(cbor.map(<[u8]>::to_vec));
    Ok(stored)
}
