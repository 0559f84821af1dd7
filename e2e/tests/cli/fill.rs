//! `etch fill`, beside what a real API server answered for the same objects.

use std::fs;

use anyhow::{Context, Result, ensure};
use kube_structural_schema::json::same;
use serde_json::{Value, json};

use crate::process::{Ended, etch_with, file, text};

/// The objects as they were sent, and as the server showed them.
fn pairs() -> Result<Vec<(Value, Value)>> {
    let pairs: Value = serde_json::from_str(&fs::read_to_string(file("openapi/objects.json"))?)?;
    let pairs = pairs.as_array().context("pairs")?;
    Ok(pairs.iter().map(|pair| (pair["object"].clone(), pair["server"].clone())).collect())
}

fn of_kind(kind: &str) -> Result<(Value, Value)> {
    pairs()?.into_iter().find(|(object, _)| object["kind"] == kind).context("the kind")
}

fn fill(arguments: &[&str], object: &Value) -> Result<Ended> {
    let arguments: Vec<&str> = ["fill", "-"].iter().chain(arguments).copied().collect();
    etch_with(&arguments, object.to_string().as_bytes())
}

/// Where a value is not part of another: fields that are missing there, and values that differ.
fn beyond(part: &Value, whole: &Value, at: &str, found: &mut Vec<String>) {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            for (name, part) in part {
                match whole.get(name) {
                    Some(whole) => beyond(part, whole, &format!("{at}.{name}"), found),
                    None => found.push(format!("{at}.{name}")),
                }
            }
        }
        (Value::Array(part), Value::Array(whole)) if part.len() == whole.len() => {
            for (index, (part, whole)) in part.iter().zip(whole).enumerate() {
                beyond(part, whole, &format!("{at}[{index}]"), found);
            }
        }
        _ if same(part, whole) => {}
        _ => found.push(at.to_owned()),
    }
}

#[test]
fn built_in_types_get_no_default_that_the_server_does_not_give() -> Result<()> {
    let documents = [
        ("openapi/apps-v1.json", &["Deployment", "StatefulSet"][..]),
        ("openapi/core-v1.json", &["Service", "ConfigMap"]),
        ("openapi/apiextensions-v1.json", &["CustomResourceDefinition"]),
        ("openapi/stable.example.com-v1.json", &["CronTab"]),
    ];
    let mut defaults = 0;
    for (document, kinds) in documents {
        for kind in kinds {
            let (object, mut server) = of_kind(kind)?;
            let filled =
                fill(&["--openapi", text(&file(document)), "-o", "json", "--show-defaults"], &object)?;
            ensure!(filled.code == Some(0), "{filled:?}");
            let filled = filled.json()?;
            let mut found = Vec::new();
            // A controller has written the status since.
            server["status"] = filled["object"]["status"].clone();
            beyond(&filled["object"], &server, "", &mut found);
            ensure!(found.is_empty(), "{kind}: {found:?}");
            defaults += filled["defaults"].as_array().map_or(0, Vec::len);
        }
    }
    ensure!(defaults >= 15, "{defaults} defaults only");
    Ok(())
}

#[test]
fn a_custom_resource_is_what_the_server_shows() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let crd = folder.path().join("crd.json");
    fs::write(&crd, of_kind("CustomResourceDefinition")?.0.to_string())?;
    let (object, mut server) = of_kind("CronTab")?;
    server["metadata"] = object["metadata"].clone();
    let document = file("openapi/stable.example.com-v1.json");
    for schema in [["--crd", text(&crd)], ["--openapi", text(&document)]] {
        let filled = fill(&[schema[0], schema[1], "-o", "json"], &object)?;
        ensure!(same(&filled.json()?, &server), "{schema:?}: {}\n{server}", filled.out);
    }
    let shown = fill(&["--crd", text(&crd), "-o", "json", "--show-defaults"], &object)?.json()?;
    let expected = json!([
        ".spec.labels.x.weight",
        ".spec.port",
        ".spec.ports[0].protocol",
        ".spec.raw.known",
        ".spec.replicas",
        ".spec.template.spec",
        ".spec.when",
    ]);
    let mut defaults = shown["defaults"].as_array().cloned().unwrap_or_default();
    defaults.sort_by_key(ToString::to_string);
    ensure!(json!(defaults) == expected, "{defaults:?}");
    let dropped = shown["dropped"].as_array().cloned().unwrap_or_default();
    ensure!(
        dropped.contains(&json!(".spec.unknown")) && dropped.contains(&json!(".spec.template.x")),
        "{dropped:?}"
    );
    Ok(())
}

#[test]
fn people_see_what_came_from_the_schema() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let crd = folder.path().join("crd.json");
    fs::write(&crd, of_kind("CustomResourceDefinition")?.0.to_string())?;
    let object = json!({"apiVersion": "stable.example.com/v1", "kind": "CronTab", 
        "metadata": {"name": "a", "creationTimestamp": null, "bogus": 1, "labels": {"a": "b", "port": 8080}},
        "spec": {"schedule": "yes", "extra": 1, "port": "http"}});
    let listed = fill(&["--crd", text(&crd), "-o", "json", "--show-defaults"], &object)?.json()?;
    ensure!(listed["dropped"] == json!([".spec.extra", ".metadata.bogus", ".metadata.labels"]), "{listed}");
    let shown = fill(&["--crd", text(&crd), "--show-defaults"], &object)?;
    let expected = "\
---
# dropped, because the schema does not have it: .spec.extra
# dropped, because metadata cannot have it: .metadata.bogus
# dropped, because metadata cannot have it: .metadata.labels
apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: a
spec:
  nothing: x  # default
  port: http
  replicas: 1  # default
  schedule: \"yes\"
  when: now  # default
";
    ensure!(shown.out == expected && shown.code == Some(0), "{shown:?}");
    Ok(())
}

#[test]
fn what_has_no_schema_is_told_and_the_rest_is_filled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let crd = folder.path().join("crd.json");
    fs::write(&crd, of_kind("CustomResourceDefinition")?.0.to_string())?;
    let objects = "\
kind: CronTab\napiVersion: stable.example.com/v2\nmetadata: {name: a}\n---
kind: Secret\napiVersion: v1\nmetadata: {name: b}\n---
kind: CronTab\napiVersion: stable.example.com/v1\nmetadata: {name: c}\n---
kind: CronTab\nmetadata: {name: d}\n";
    let ended = etch_with(&["fill", "--crd", text(&crd), "-"], objects.as_bytes())?;
    let expected = "\
error: stdin: crontabs.stable.example.com has no version v2; it has v1
error: stdin, document 2: no schema for Secret of v1; there are schemas for CronTab of stable.example.com
error: stdin, document 4: is not a Kubernetes object: apiVersion is missing
";
    ensure!(ended.code == Some(2) && ended.err == expected, "{ended:?}");
    ensure!(ended.out.contains("name: c\n") && ended.out.contains("replicas: 1\n"), "{ended:?}");
    Ok(())
}

#[test]
fn numbers_are_those_that_the_server_shows() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let number = |default: &str| format!(r#"{{"type":"number","default":{default}}}"#);
    let any = r#"{"x-kubernetes-preserve-unknown-fields":true}"#;
    let crd = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"as.b.c"}},
        "spec":{{"group":"b.c","names":{{"kind":"A","plural":"as"}},"scope":"Cluster","versions":[{{"name":"v1","served":true,"storage":true,
        "schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"any":{any},"i":{{"type":"integer"}},"one":{},"half":{}}}}}}}}}]}}}}"#,
        number("1.0"),
        number("0.5"),
    );
    let file = folder.path().join("crd.json");
    fs::write(&file, crd)?;
    let object =
        r#"{"apiVersion":"b.c/v1","kind":"A","metadata":{"name":"a"},"i":1e3,"any":[1.0,-0.0,1.5,{"x":-0}]}"#;
    let ended = etch_with(&["fill", "--crd", text(&file), "-o", "json", "-"], object.as_bytes())?;
    let filled = ended.json()?;
    let shown = ["i", "any", "one", "half"].map(|field| filled[field].to_string());
    ensure!(shown == ["1000", r#"[1,0,1.5,{"x":0}]"#, "1", "0.5"], "{ended:?}");
    Ok(())
}
