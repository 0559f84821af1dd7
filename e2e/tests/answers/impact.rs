//! `etch impact`, compared with what the upgrade does to what readers see.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use e2e::paths::is_below;
use e2e::process::Printed;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use crate::model::{Difference, Truth, holds, is_claimed, parts};
use crate::notes::{Notes, number, of, texts};
use crate::random::{GROUP, NEXT, NOW, Plan};
use crate::stage::{Raw, Stage, id};

/// What was predicted, and what readers saw and etcd held before.
pub(crate) struct Prediction {
    exact: Printed,
    presumed: Printed,
    views: BTreeMap<String, BTreeMap<String, Value>>,
    raw: Raw,
}

/// Asks what the next state of all CRDs will do, with access to etcd and without.
pub(crate) async fn predict(stage: &Stage) -> Result<Prediction> {
    let next: Vec<Value> = stage.plans.iter().map(|plan| plan.document(NEXT)).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": next }).to_string();
    let file = stage.scene.file("next.json", &list)?;
    let arguments = ["impact", "-f", &file, "--live"];
    let mut views = BTreeMap::new();
    for plan in &stage.plans {
        views.insert(plan.plural.clone(), stage.read(plan, plan.phases[NOW].storage()).await?);
    }
    Ok(Prediction {
        exact: stage.etch_exact(&arguments).await?,
        presumed: stage.etch(&arguments).await?,
        views,
        raw: stage.raw().await?,
    })
}

impl Prediction {
    /// Holds what was predicted against what readers see now.
    pub(crate) async fn check(&self, stage: &Stage, notes: &Notes) -> Result<()> {
        for plan in &stage.plans {
            let after = stage.read(plan, plan.phases[NEXT].storage()).await?;
            let refused = refused(stage, plan, &after).await?;
            let truths = plan.truths(NOW, &self.raw);
            for (printed, is_exact) in [(&self.exact, true), (&self.presumed, false)] {
                let how = format!("impact {}", if is_exact { "with etcd" } else { "without etcd" });
                let note = |finding: String| notes.note(&plan.plural, format!("{how}: {finding}"));
                let Some(reported) = of(&printed.json, &plan.crd()) else {
                    note("nothing is told".to_owned());
                    continue;
                };
                counted(reported, truths.len(), &note);
                let details = reported["details"].as_array().into_iter().flatten();
                let details: BTreeMap<String, &Value> = details.map(|detail| (id(detail), detail)).collect();
                for (id, truth) in &truths {
                    let detail = details.get(id).copied().unwrap_or(&Value::Null);
                    let came = difference(plan, &self.views[&plan.plural][id], &after[id]);
                    let raw = &self.raw[&plan.plural][id];
                    let alone = if truth.is_left_alone() { " (ignored or terminating)" } else { "" };
                    let context = format!("{id}{alone}: {detail}");
                    if is_exact || detail["exact"] == true {
                        came_true(detail, &came, raw, &|finding| note(format!("{context}: {finding}")));
                        if texts(&detail["problems"]).is_empty() == refused.contains_key(id) {
                            note(format!("{context}: made anew it is refused: {:?}", refused.get(id)));
                        }
                    } else {
                        missed(detail, &came, raw, truth, &|finding| note(format!("{context}: {finding}")));
                    }
                }
            }
        }
        Ok(())
    }
}

fn difference(plan: &Plan, before: &Value, after: &Value) -> Difference {
    let schema = |phase: usize| {
        let phase = &plan.phases[phase];
        phase.schema(phase.storage()).unwrap_or(&Value::Null)
    };
    Difference::between((schema(NOW), &parts(before)), (schema(NEXT), &parts(after)))
}

fn counted(reported: &Value, objects: usize, note: &dyn Fn(String)) {
    let counts = &reported["objects"];
    let having = |key: &str| {
        let details = reported["details"].as_array().into_iter().flatten();
        i64::try_from(details.filter(|detail| !texts(&detail[key]).is_empty()).count()).unwrap_or(-1)
    };
    for (count, key) in [
        ("gaining", "appears"),
        ("changing", "changes"),
        ("losing", "disappears"),
        ("hidden", "hidden"),
        ("invalid", "problems"),
        ("protectedByPersist", "protectedByPersist"),
    ] {
        if number(counts, count) != having(key) {
            note(format!("{count} is {}, and {} objects have {key}", counts[count], having(key)));
        }
    }
    if number(counts, "total") != i64::try_from(objects).unwrap_or(-1) {
        note(format!("total is {}, and there are {objects} objects", counts["total"]));
    }
}

/// What was predicted for certain is what happened, and nothing else.
fn came_true(detail: &Value, came: &Difference, raw: &Value, note: &dyn Fn(String)) {
    let reported = |key: &str| texts(&detail[key]);
    if reported("appears") != came.appears {
        note(format!("{:?} appear", came.appears));
    }
    if reported("changes") != came.changes {
        note(format!("{:?} change", came.changes));
    }
    let (disappears, hidden) = (reported("disappears"), reported("hidden"));
    for gone in &came.goes {
        let is_held = holds(raw, gone);
        let list = if is_held { &hidden } else { &disappears };
        if !list.contains(gone) {
            note(format!("{gone} goes, and etcd {} it", if is_held { "holds" } else { "never held" }));
        }
    }
    for path in disappears.iter().chain(&hidden) {
        if !came.goes.iter().any(|gone| is_below(path, gone)) {
            note(format!("{path} does not go"));
        }
    }
    let protected = reported("protectedByPersist");
    if let Some(path) =
        protected.iter().find(|path| !reported("changes").contains(path) && !disappears.contains(path))
    {
        note(format!("{path} is protected from nothing"));
    }
}

/// Without access to etcd a claim may have outlived its field; whatever else comes is predicted.
fn missed(detail: &Value, came: &Difference, raw: &Value, truth: &Truth, note: &dyn Fn(String)) {
    let reported =
        |keys: &[&str]| -> Vec<String> { keys.iter().flat_map(|key| texts(&detail[key])).collect() };
    for (paths, keys, word) in [
        (&came.appears, &["appears"][..], "appears"),
        (&came.changes, &["changes"], "changes"),
        (&came.goes, &["disappears", "hidden"], "goes"),
    ] {
        // If impact predicts that a value goes, and it stays, it does not predict what appears inside of it.
        let taken_to_go = if keys == ["appears"] { reported(&["changes", "disappears"]) } else { Vec::new() };
        let reported = [reported(keys), taken_to_go].concat();
        for path in paths {
            if !reported.iter().any(|reported| is_below(path, reported) || is_below(reported, path))
                && !is_claimed(raw, path, |_, _| true)
            {
                note(format!("{path} {word}, which nobody owns: {truth:?}"));
            }
        }
    }
}

/// The objects that the server would refuse to create as they are read now, and its errors.
async fn refused(
    stage: &Stage,
    plan: &Plan,
    views: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, String>> {
    let version = plan.phases[NEXT].storage();
    let asked = stream::iter(views).map(async |(id, view)| {
        let namespace = plan.namespaced.then_some("default");
        let path = format!("{}?dryRun=All", plan.collection(version, namespace));
        let copy = json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": plan.kind, "metadata": { "name": "copy" },
            "spec": view["spec"],
        });
        let body = serde_json::to_vec(&copy)?;
        let answer = stage.scene.cluster.send("POST", &path, "application/json", body).await?;
        anyhow::ensure!(matches!(answer.code, 201 | 422), "{}", answer.body);
        let message = answer.body["message"].as_str().map(str::to_owned);
        Ok((answer.code == 422).then(|| (id.clone(), message.unwrap_or_default())))
    });
    let all: Vec<_> = asked.buffer_unordered(8).try_collect().await.context("made anew")?;
    Ok(all.into_iter().flatten().collect())
}
