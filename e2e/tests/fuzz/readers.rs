//! Each reader, asked as the product asks it, and the law that it must not break.
//! `true` is for an input that was taken.

use std::collections::HashSet;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use etch::cluster::Change;
use etch::cluster::etcd::Snapshot;
use etch::source;
use etch_core::object::Object;
use etch_core::ownership::{self, Owner};
use etch_core::stored::decode;
use kube_crd_validation::crd::{validate_create, validate_update};
use kube_crd_validation::{self, Validator};
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::schema::Schema;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// A CRD is created, and replaces itself: what it was refused for then may stay.
pub(super) fn crd(bytes: &[u8]) -> Result<bool> {
    let Ok(crd) = Json::parse(bytes) else { return Ok(false) };
    let Ok(created) = validate_create(&crd) else { return Ok(false) };
    ensure!(validate_update(&crd, &crd).is_ok(), "what decodes once decodes twice");
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        let Ok(schema) = Schema::parse(&version["schema"]["openAPIV3Schema"]) else { continue };
        let _ = kube_crd_validation::defaults(&schema);
        let compiled = Compiled::new(&schema);
        ensure!(compiled.digest() == Compiled::new(&schema).digest(), "a digest depends on its schema alone");
    }
    Ok(created.is_empty())
}

/// Filling twice is filling once, and judging changes nothing.
pub(super) fn fill(bytes: &[u8]) -> Result<bool> {
    let Ok(pair) = Json::parse(bytes) else { return Ok(false) };
    let Ok(schema) = Schema::parse(&pair["schema"]) else { return Ok(false) };
    let compiled = Compiled::new(&schema);
    let mut read = Json::from(pair["object"].clone());
    let is_read = defaults::read(&mut read, &schema, &compiled, &mut |_| {}).is_ok();
    let mut once = Json::from(pair["object"].clone());
    compiled.fill(&mut once);
    let mut twice = once.clone();
    compiled.fill(&mut twice);
    ensure!(same(&once, &twice), "filling twice is not filling once");
    let _ = Validator::new(&schema).object(&read);
    Ok(is_read)
}

/// A set covers itself, and sets are united without losing a path.
pub(super) fn owners(bytes: &[u8]) -> Result<bool> {
    let Ok(pair) = Json::parse(bytes) else { return Ok(false) };
    let Ok(schema) = Schema::parse(&pair["schema"]) else { return Ok(false) };
    let object = &pair["object"];
    let given = Object::from(Json::from(object.clone()));
    let owners: Vec<_> = ownership::owners(&given).collect();
    for owner in &owners {
        ensure!(ownership::contains(owner.fields, owner.fields, &schema), "a set contains itself");
        for other in &owners {
            let mut united = owner.fields.clone();
            ownership::unite(&mut united, other.fields);
            // A set that names nothing means the object itself, and is not united.
            let names_some =
                |owner: &Owner<'_>| owner.fields.as_object().is_some_and(|fields| !fields.is_empty());
            if names_some(owner) && names_some(other) {
                ensure!(
                    ownership::contains(&united, owner.fields, &schema),
                    "a united set contains its first"
                );
                ensure!(
                    ownership::contains(&united, other.fields, &schema),
                    "a united set contains its second"
                );
            }
        }
    }
    let compiled = Compiled::new(&schema);
    compiled.places(object, &mut |place| {
        let path = place.to_path();
        let _ = ownership::is_covered(owners.iter().copied(), object, &schema, path.steps());
        let _ = ownership::is_named(owners.iter().copied(), object, &schema, path.steps());
        let _ = ownership::is_claimed(owners.iter().copied(), object, &schema, path.steps());
    });
    Ok(!owners.is_empty())
}

/// A rule is judged with its CRD, and run where it compiles.
pub(super) fn rule(bytes: &[u8]) -> Result<bool> {
    let rule = String::from_utf8_lossy(bytes);
    let schema = json!({"type": "object", "properties": {
        "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
        "l": {"type": "array", "items": {"type": "string"}}, "li": {
            "type": "array", "items": {"type": "integer"},
        },
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "o": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "integer"}}},
        "d": {"x-kubernetes-int-or-string": true}, "t": {"type": "string", "format": "date-time"}},
        "x-kubernetes-validations": [{"rule": rule, "messageExpression": rule}]});
    let crd = json!({"metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}}]}});
    let compiles = validate_create(&crd)
        .is_ok_and(|found| !found.iter().any(|finding| finding.detail.contains("compilation failed")));
    let object = json!({"s": "abc", "i": 7, "n": 1.5, "b": true, "l": ["a", "b"], "li": [1, 2],
        "m": {"k": "v"},
        "o": {"x": "a"}, "d": "text", "t": "2024-01-01T00:00:00Z"});
    let schema = Schema::parse(&schema)?;
    let first = Validator::new(&schema).object(&object);
    ensure!(first == Validator::new(&schema).object(&object), "the same question has two answers");
    Ok(compiles)
}

/// Documents are read one by one; what is no document is an error.
pub(super) fn documents(bytes: &[u8]) -> Result<bool> {
    let mut input = bytes;
    Ok(source::documents(&[PathBuf::from("-")], &mut input).is_ok_and(|documents| !documents.is_empty()))
}

/// A watch can go on after every line that is read, and the same line is read in the same way again.
pub(super) fn watch_line(bytes: &[u8]) -> Result<bool> {
    let Ok(change) = Change::parse(bytes) else { return Ok(false) };
    ensure!(!change.resource_version().is_empty(), "the watch could not go on from here");
    let again = Change::parse(bytes).map(|change| change.resource_version().to_owned());
    ensure!(again.is_ok_and(|again| again == change.resource_version()), "the same line is read in two ways");
    Ok(true)
}

/// No key of a snapshot is visited twice.
pub(super) fn snapshot(bytes: &[u8]) -> Result<bool> {
    let mut file = NamedTempFile::new()?;
    file.write_all(bytes)?;
    let Ok(snapshot) = Snapshot::open(file.path()) else { return Ok(false) };
    let mut keys = HashSet::new();
    let mut is_twice = false;
    let visited = snapshot.each(&|key| key.starts_with(b"/registry/"), &mut |value| {
        // A name that is no text is shown as one, and two of those may look the same.
        is_twice |= !value.key.contains(char::REPLACEMENT_CHARACTER) && !keys.insert(value.key);
        ControlFlow::Continue(())
    });
    ensure!(!is_twice, "a key is visited twice");
    Ok(visited.is_ok())
}

/// What is stored is decoded, or reported as opaque.
pub(super) fn stored(bytes: &[u8]) -> Result<bool> {
    let decoded = decode(bytes);
    if let Ok(value) = &decoded {
        ensure!(Json::parse(&value.to_vec()).is_ok(), "what was decoded is no JSON");
        let _: &Value = value;
    }
    Ok(decoded.is_ok())
}
