//! `etch impact` before an upgrade, held against what the upgrade does: object by object, by reads and by etcd.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::stage::{Stage, TABS, tab, tab_schema, tabs};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_foretold_of_an_upgrade_comes_true() -> Result<()> {
    let stage = Stage::start().await?;
    let upgrade = tabs(&upgraded());
    let file = stage.file("new.json", &serde_json::to_vec(&upgrade)?)?;
    let file = file.to_str().context("a path")?;
    let snapshot = stage.snapshot().await?;
    let snapshot = snapshot.to_str().context("a path")?;

    let before = stage.read("tabs").await?;
    let exact = stage.etch(&["impact", "-f", file, "--live", "--etcd-endpoints", &stage.endpoint])?;
    let saved = stage.etch(&["impact", "-f", file, "--etcd-snapshot", snapshot])?;
    let presumed = stage.etch(&["impact", "-f", file, "--live"])?;
    ensure!([&exact, &saved, &presumed].iter().all(|printed| printed.code == Some(1)), "exit status");
    ensure!(exact.json == saved.json, "a snapshot tells another story:\n{:#}\n{:#}", exact.json, saved.json);
    stage.cluster.apply_crd(&upgrade).await?;
    stage.shows(&format!("{TABS}/phantom-0"), "/spec/b").await?;

    let (after, raw) = (stage.read("tabs").await?, stage.raw("tabs").await?);
    for (name, before) in &before {
        let (after, raw) = (&after[name], &raw[name]);
        comes_true(&exact.json, name, before, after, raw)?;
        // Without access to etcd, what is stored without an owner and what is inside atomic lists is not known.
        if !["stored", "atomic"].iter().any(|state| name.starts_with(state)) {
            comes_true(&presumed.json, name, before, after, raw).context("by owners")?;
        }
        let copy = tab("copy", after["spec"].clone());
        let dry_run = format!("{TABS}?dryRun=All");
        let answer =
            stage.cluster.send("POST", &dry_run, "application/json", serde_json::to_vec(&copy)?).await?;
        let refused = answer.code == 422;
        let foretold = !told(&exact.json, name)["problems"].as_array().is_none_or(Vec::is_empty);
        ensure!(refused == foretold, "{name}: created anew it is refused: {refused}, foretold: {foretold}");
    }
    Ok(())
}

/// Defaults that come, change and go, a field that goes, and a rule that some objects break with their new default.
fn upgraded() -> Value {
    let mut schema = tab_schema(true);
    let spec = &mut schema["properties"]["spec"];
    spec["x-kubernetes-validations"] = json!([{ "rule": "!has(self.a) || self.a != 6 || !has(self.rules)" }]);
    let fields = &mut spec["properties"];
    fields["a"]["default"] = json!(6);
    fields["o"]["properties"]["x"]["default"] = json!(7);
    fields["b"] = json!({ "type": "integer", "default": 2 });
    for (place, key) in [("/o", "default"), ("/ports/items/properties/protocol", "default"), ("", "schedule")]
    {
        if let Some(fields) = fields.pointer_mut(place).and_then(Value::as_object_mut) {
            fields.remove(key);
        }
    }
    schema
}

fn comes_true(impact: &Value, name: &str, before: &Value, after: &Value, raw: &Value) -> Result<()> {
    let told = told(impact, name);
    let (before, after, raw) = (leaves(&before["spec"]), leaves(&after["spec"]), leaves(&raw["spec"]));
    let appears: BTreeSet<&String> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    let changes =
        after.keys().filter(|path| before.get(*path).is_some_and(|value| *value != after[*path])).collect();
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let (hidden, disappears): (BTreeSet<&String>, BTreeSet<&String>) =
        gone.partition(|path| raw.contains_key(*path));
    for (what, seen) in
        [("appears", appears), ("changes", changes), ("disappears", disappears), ("hidden", hidden)]
    {
        let foretold: Vec<&str> =
            told[what].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let agrees = seen.iter().all(|path| foretold.iter().any(|foretold| is_below(path, foretold)))
            && foretold.iter().all(|foretold| seen.iter().any(|path| is_below(path, foretold)));
        ensure!(agrees, "{name}: {what} {seen:?}, foretold {foretold:?}");
    }
    Ok(())
}

/// What is foretold of an object; null where nothing is.
fn told<'a>(impact: &'a Value, name: &str) -> &'a Value {
    let details = impact["crds"][0]["details"].as_array();
    details.into_iter().flatten().find(|detail| detail["name"] == name).unwrap_or(&Value::Null)
}

fn is_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The values that hold no others, by their places.
fn leaves(spec: &Value) -> BTreeMap<String, Value> {
    fn walk(value: &Value, at: String, leaves: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let is_map = at == ".spec.odd";
                for (name, value) in fields {
                    let at = if is_map { format!("{at}[{name:?}]") } else { format!("{at}.{name}") };
                    walk(value, at, leaves);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    walk(item, format!("{at}[{index}]"), leaves);
                }
            }
            value => drop(leaves.insert(at, value.clone())),
        }
    }
    let mut found = BTreeMap::new();
    if !spec.is_null() {
        walk(spec, ".spec".to_owned(), &mut found);
    }
    found
}
