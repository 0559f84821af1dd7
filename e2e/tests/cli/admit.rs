//! `etch admit` on objects that no EmbeddedSchema targets: that is a mistake in what was given, and no
//! answer.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::flags::is_one_line;
use crate::process::{etch, text};

/// A folder with a schema for `ox` of `stable.example.com/v1`, which is not the usual plural of a kind.
fn folder(kind: &Value) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let target = json!({
        "group": "stable.example.com", "version": "v1", "resource": "ox", "kind": kind, "path": ".spec.ext",
    });
    let schema = json!({ "type": "object", "properties": { "size": { "type": "integer", "default": 1 } } });
    let declared = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema", "metadata": { "name": "ox" },
        "spec": { "targets": [target], "schema": { "openAPIV3Schema": schema } },
    });
    fs::write(folder.path().join("schema.yaml"), declared.to_string())?;
    fs::write(folder.path().join("ox.yaml"), object("Ox").to_string())?;
    Ok(folder)
}

fn object(kind: &str) -> Value {
    json!({
        "apiVersion": "stable.example.com/v1", "kind": kind, "metadata": { "name": "a" },
        "spec": { "ext": { "name": "hidden-value" } },
    })
}

/// The type of the object, what is targeted, and what to change.
const SAYS: [&str; 3] = [
    "Ox of stable.example.com/v1 (usual plural oxes)",
    "ox of stable.example.com/v1;",
    "set kind in the target",
];

#[test]
fn an_object_that_no_schema_targets_is_named_with_the_targets() -> Result<()> {
    let folder = folder(&Value::Null)?;
    let (schema, object) = (folder.path().join("schema.yaml"), folder.path().join("ox.yaml"));
    let line = ["admit", "--schema", text(&schema), "-o", "json", text(&object)];
    let ended = etch(&line)?;
    is_one_line(&line.map(str::to_owned), &ended)?;
    ensure!(ended.err.contains(text(&object)) && ended.out.is_empty(), "{ended:?}");
    ensure!(SAYS.iter().all(|says| ended.err.contains(says)), "{ended:?}");
    ensure!(!ended.err.contains("hidden-value"), "{ended:?}");
    Ok(())
}

#[test]
fn a_kind_in_the_target_finds_the_object() -> Result<()> {
    let folder = folder(&json!("Ox"))?;
    let (schema, object) = (folder.path().join("schema.yaml"), folder.path().join("ox.yaml"));
    let ended = etch(&["admit", "--schema", text(&schema), "-o", "json", text(&object)])?;
    ensure!(ended.code == Some(0) && ended.err.is_empty(), "{ended:?}");
    ensure!(ended.json()?["object"]["spec"]["ext"]["size"] == 1, "{ended:?}");
    Ok(())
}

#[test]
fn requests_of_which_none_is_for_a_target_are_an_error() -> Result<()> {
    let folder = folder(&Value::Null)?;
    let (schema, requests) = (folder.path().join("schema.yaml"), folder.path().join("requests.jsonl"));
    let line = ["admit", "--schema", text(&schema), "--requests", text(&requests)];
    let ask = |kinds: &[&str]| {
        let lines: String =
            kinds.iter().map(|kind| format!("{}\n", json!({ "object": object(kind) }))).collect();
        fs::write(&requests, lines)?;
        etch(&line)
    };
    let none = ask(&["Ox", "Ox"])?;
    is_one_line(&line.map(str::to_owned), &none)?;
    ensure!(none.err.contains(text(&requests)) && none.out.lines().count() == 2, "{none:?}");
    ensure!(SAYS.iter().all(|says| none.err.contains(says)), "{none:?}");
    // Its schema needs no kind: the usual plural of `O` is `os`.
    let declared = fs::read_to_string(&schema)?.replace("\"resource\":\"ox\"", "\"resource\":\"os\"");
    fs::write(&schema, declared)?;
    let some = ask(&["Ox", "O"])?;
    ensure!(some.code == Some(0) && some.err.is_empty() && some.out.lines().count() == 2, "{some:?}");
    let empty = ask(&[])?;
    is_one_line(&line.map(str::to_owned), &empty)?;
    ensure!(empty.err.contains("requests.jsonl: contains no request"), "{empty:?}");
    Ok(())
}

#[test]
fn an_admission_review_names_its_resource() -> Result<()> {
    let folder = folder(&Value::Null)?;
    let (schema, requests) = (folder.path().join("schema.yaml"), folder.path().join("requests.jsonl"));
    let ask = |resource: Value| {
        let request = json!({ "uid": "u", "resource": resource, "object": object("Ox") });
        fs::write(&requests, json!({ "kind": "AdmissionReview", "request": request }).to_string())?;
        etch(&["admit", "--schema", text(&schema), "--requests", text(&requests)])
    };
    let named =
        |resource: &str| json!({ "group": "stable.example.com", "version": "v1", "resource": resource });
    let answered = ask(named("ox"))?;
    ensure!(answered.code == Some(0) && answered.err.is_empty(), "{answered:?}");
    let answer = answered.json()?;
    ensure!(answer["id"] == "u" && answer["object"]["spec"]["ext"]["size"] == 1, "{answered:?}");
    let other = ask(named("oxes"))?;
    ensure!(other.code == Some(2), "{other:?}");
    ensure!(other.err.contains("targets oxes of stable.example.com/v1;"), "{other:?}");
    let broken = ask(json!("ox"))?;
    ensure!(broken.code == Some(2), "{broken:?}");
    ensure!(broken.err.contains("request.resource is not a group, a version and a resource"), "{broken:?}");
    Ok(())
}

#[test]
fn json_is_answered_as_yaml_is() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let count = json!({ "type": "integer", "x-kubernetes-validations": [{ "rule": "self >= 0" }] });
    let properties = |default: &str| {
        let schema =
            json!({ "type": "object", "properties": { "count": count, "given": count } }).to_string();
        schema.replacen("\"integer\"", &format!("\"integer\",\"default\":{default}"), 1)
    };
    let ask = |file: &str, count: &str, default: &str| {
        let target = r#"{"group":"stable.example.com","version":"v1","resource":"os","path":".spec.ext"}"#;
        let schema = format!(
            r#"{{"apiVersion":"etch-operator.io/v1alpha1","kind":"EmbeddedSchema","metadata":{{"name":"o"}},"spec":{{"targets":[{target}],
            "schema":{{"openAPIV3Schema":{}}},"defaults":[{{"path":".given","value":"2.0"}}],"enforcement":"Deny"}}}}"#,
            properties(default)
        );
        fs::write(at("schema.json"), schema)?;
        let count = if count.is_empty() { String::new() } else { format!("\"count\": {count}") };
        let object = format!(
            r#"{{"apiVersion": "stable.example.com/v1", "kind": "O", "metadata": {{"name": "a"}}, "spec": {{"ext": {{{count}}}}}}}"#
        );
        let (object, flag) = match file {
            "requests.jsonl" => (format!("{{\"object\": {object}}}"), "--requests"),
            // In front of a brace, it is YAML.
            "object.yaml" => (format!("---\n{object}"), "--"),
            _ => (object, "--"),
        };
        fs::write(at(file), object)?;
        etch(&["admit", "--schema", text(&at("schema.json")), "-o", "json", flag, text(&at(file))])
    };
    for file in ["object.json", "object.yaml", "requests.jsonl"] {
        for (count, default, expected) in [
            ("1.0", "5", "1"),
            ("1e3", "5", "1000"),
            ("-0.0", "5", "0"),
            ("", "1.0", "1"),
            ("", "1e3", "1000"),
        ] {
            let ended = ask(file, count, default)?;
            ensure!(ended.code == Some(0), "{file} {count}: {ended:?}");
            let extension = ended.json()?["object"]["spec"]["ext"].to_string();
            let expected = format!(r#"{{"count":{expected},"given":2}}"#);
            ensure!(extension == expected, "{file} {count}: {ended:?}");
        }
        let ended = ask(file, "1.5", "5")?;
        ensure!(ended.code == Some(1), "{file}: {ended:?}");
    }
    Ok(())
}
