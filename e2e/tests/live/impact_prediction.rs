//! `etch impact` before an upgrade, compared with what the upgrade does: object by object, by reads, by etcd
//! and by what is refused.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::paths::is_below;
use serde_json::{Value, json};

use crate::objects::{GROUP, Made, collection, objects, pair_schema, pairs, tab_schema, tabs};
use crate::stage::{Stage, at_once};

/// The storage versions of both types before the upgrade, and after it.
const TYPES: [(&str, &str, &str); 2] = [("tabs", "v1", "v1"), ("pairs", "v1", "v2")];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_predicted_of_an_upgrade_comes_true() -> Result<()> {
    let stage = Stage::start().await?;
    let upgrades = [tabs(&upgraded_tabs()), upgraded_pairs()];
    let file = stage.file(
        "new.json",
        &serde_json::to_vec(&json!({ "apiVersion": "v1", "kind": "List", "items": upgrades }))?,
    )?;
    let file = file.to_str().context("a path")?;
    let snapshot = stage.snapshot().await?;
    let snapshot = snapshot.to_str().context("a path")?;

    let exact = stage.etch(&["impact", "-f", file, "--live", "--etcd-endpoints", &stage.endpoint])?;
    let saved = stage.etch(&["impact", "-f", file, "--etcd-snapshot", snapshot])?;
    let presumed = stage.etch(&["impact", "-f", file, "--live"])?;
    ensure!([&exact, &saved, &presumed].iter().all(|printed| printed.code == Some(1)), "exit status");
    ensure!(exact.json == saved.json, "a snapshot tells another story:\n{:#}\n{:#}", exact.json, saved.json);

    let mut before = BTreeMap::new();
    for (plural, old, _) in TYPES {
        before.insert(plural, stage.read(old, plural).await?);
    }
    for upgrade in &upgrades {
        stage.cluster.apply_crd(upgrade).await?;
    }
    stage.shows(&format!("{}/phantom-0", collection("v1", "tabs")), "/spec/b").await?;
    stage.shows(&format!("{}/gap-0", collection("v2", "pairs")), "/spec/size").await?;
    for (plural, _, new) in TYPES {
        let (after, raw) = (stage.read(new, plural).await?, stage.raw(plural).await?);
        for made in objects().iter().filter(|made| made.plural() == plural) {
            let name = &made.name;
            let (before, after, raw) = (&before[plural][name], &after[name], &raw[name]);
            comes_true(reported(&exact.json, made), name, before, after, raw)?;
            if is_told_by_owners(made) {
                let reported = without_doubts(reported(&presumed.json, made));
                comes_true(&reported, name, before, after, raw).context("by owners")?;
            }
        }
        let objects: Vec<Made> = objects().into_iter().filter(|made| made.plural() == plural).collect();
        at_once(&objects, async |made| {
            let predicted = reported(&exact.json, made);
            refused_as_predicted(&stage, made, new, &after[&made.name], predicted).await?;
            Ok(Value::Null)
        })
        .await?;
        ensure!(stage.raw(plural).await? == raw, "a refused write has stored something");
    }
    Ok(())
}

/// Whether managedFields show what is stored: not of values that were stored without an owner, nor of those
/// inside atomic lists, nor of those that are gone while their owner stays.
fn is_told_by_owners(made: &Made) -> bool {
    !matches!(made.form.state, "stored" | "atomic" | "cleared" | "versions")
}

/// What is predicted by owners, without what happens where etcd holds an outer default and not the one in it:
/// nothing here is stored that way.
fn without_doubts(reported: &Value) -> Value {
    let mut reported = reported.clone();
    let disappears = reported["disappears"].as_array().cloned().unwrap_or_default();
    if let Some(changes) = reported["changes"].as_array_mut() {
        changes.retain(|path| {
            let is_inside = |place: &Value| {
                is_below(path.as_str().unwrap_or_default(), place.as_str().unwrap_or_default())
            };
            !disappears.iter().any(is_inside)
        });
    }
    reported
}

/// What is predicted to be invalid is refused when it is created again, and when it is changed there; nothing
/// else is.
async fn refused_as_predicted(
    stage: &Stage,
    made: &Made,
    version: &str,
    after: &Value,
    predicted: &Value,
) -> Result<()> {
    let problems: Vec<&str> =
        predicted["problems"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let copy = json!({
        "apiVersion": after["apiVersion"], "kind": after["kind"], "metadata": { "name": "copy" },
        "spec": after["spec"],
    });
    let dry_run = format!("{}?dryRun=All", collection(version, made.plural()));
    let answer = stage.cluster.send("POST", &dry_run, "application/json", serde_json::to_vec(&copy)?).await?;
    let refused = answer.code == 422;
    ensure!(refused || answer.code == 201, "{}", answer.body);
    ensure!(refused != problems.is_empty(), "created anew: {refused}, predicted: {problems:?}");

    // Where nothing is wrong with the spec as a whole, other fields of it can be written (fact C6).
    let refused_whole = problems.iter().any(|problem| problem.starts_with(".spec:"));
    let target = match refused_whole {
        true => made.path(version),
        false => format!("{}?dryRun=All", made.path(version)),
    };
    let change = serde_json::to_vec(&json!({ "spec": { "note": "changed" } }))?;
    let answer = stage.cluster.send("PATCH", &target, "application/merge-patch+json", change).await?;
    ensure!(
        answer.code == if refused_whole { 422 } else { 200 },
        "changed: {}, predicted: {problems:?}",
        answer.body
    );
    Ok(())
}

/// Defaults that come, change and go, a field that goes, and a rule that some objects break with their new
/// default.
fn upgraded_tabs() -> Value {
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

/// A new storage version, and other defaults in the versions in which the objects are stored.
fn upgraded_pairs() -> Value {
    let old = pair_schema(&[("b", json!(4)), ("size", json!(1))]);
    let stored = pair_schema(&[("b", json!(3)), ("color", json!("green")), ("size", json!(1))]);
    let more = [("color", json!("blue")), ("size", json!(9)), ("extra", json!("new"))];
    let mut new = pair_schema(&more);
    new["properties"]["spec"]["x-kubernetes-validations"] = json!([
        { "rule": "!has(self.color) || self.color != 'green' || self.a != 2" },
        // No reader sees the default of an object that is stored at an older version, and every write meets
        // it.
        { "rule": "!has(self.extra) || self.a != 3" },
    ]);
    pairs(&[("v1beta1", false, old), ("v1", false, stored), ("v2", true, new)])
}

fn comes_true(reported: &Value, name: &str, before: &Value, after: &Value, raw: &Value) -> Result<()> {
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
        let predicted: Vec<&str> =
            reported[what].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let agrees = seen.iter().all(|path| predicted.iter().any(|predicted| is_below(path, predicted)))
            && predicted.iter().all(|predicted| seen.iter().any(|path| is_below(path, predicted)));
        ensure!(agrees, "{name}: {what} {seen:?}, predicted {predicted:?}");
    }
    Ok(())
}

/// What is predicted of an object; null where nothing is.
fn reported<'a>(impact: &'a Value, made: &Made) -> &'a Value {
    let name = format!("{}.{GROUP}", made.plural());
    let crds = impact["crds"].as_array().into_iter().flatten();
    let details = crds.filter(|crd| crd["crd"] == name).filter_map(|crd| crd["details"].as_array());
    details.flatten().find(|detail| detail["name"] == made.name).unwrap_or(&Value::Null)
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
