//! What `etch impact` predicts of an upgrade, compared with what the upgrade does to what readers see.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use e2e::paths::is_below;
use serde_json::{Value, json};

use crate::model::{self, Difference, holds, is_claimed};
use crate::notes::{Notes, of, texts};
use crate::schema::{Conversion, Crd};
use crate::stage::{Living, Snapshot, Stage};
use crate::story::Step;

/// Makes the upgrades with which the chapter of some lives begins, once it is foretold what they do.
pub(crate) async fn upgrade(stage: &Stage, all: &mut [Living], chapter: usize, notes: &Notes) -> Result<()> {
    let next: Vec<Value> =
        all.iter().filter_map(|living| Some(stage.changed(living, first(living, chapter)?).1)).collect();
    if next.is_empty() {
        return Ok(());
    }
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": next }).to_string();
    let file = stage.scene.file(&format!("next-{chapter}.json"), &list)?;
    let before = stage.snapshot(all).await?;
    let reported = [
        stage.etch(&["impact", "-f", &file, "--live"], false).await?,
        stage.etch(&["impact", "-f", &file, "--live"], true).await?,
    ];
    let crds: BTreeMap<String, Crd> =
        all.iter().map(|living| (living.life.plural.clone(), living.crd.clone())).collect();
    stage
        .each(all, async |living| match living.life.chapters.get(chapter).and_then(|steps| steps.first()) {
            Some(step @ Step::Crd(_)) => {
                let step = step.clone();
                living.done = 1;
                stage.step(living, &step).await
            }
            _ => Ok(()),
        })
        .await?;
    let after = stage.snapshot(all).await?;
    for living in all
        .iter()
        .filter(|living| living.done == 1 && living.log.last().is_some_and(|line| line.ends_with(": served")))
    {
        let plural = &living.life.plural;
        let old = crds.get(plural).context("its CRD before")?;
        for (printed, exact) in reported.iter().zip([false, true]) {
            let how = format!("by hand: impact{}", if exact { " with etcd" } else { "" });
            let note = |finding: String| notes.note(plural, format!("{how}: {finding}"));
            match of(&printed.json, &living.name()) {
                Some(reported) => came_true(living, old, reported, (&before, &after), exact, &note),
                None => note("nothing is told".to_owned()),
            }
        }
    }
    Ok(())
}

/// The changes with which the chapter begins.
fn first(living: &Living, chapter: usize) -> Option<&[crate::schema::Change]> {
    match living.life.chapters.get(chapter)?.first()? {
        Step::Crd(changes) => Some(changes),
        _ => None,
    }
}

fn came_true(
    living: &Living,
    old: &Crd,
    reported: &Value,
    (before, after): (&Snapshot, &Snapshot),
    exact: bool,
    note: &dyn Fn(String),
) {
    let plural = &living.life.plural;
    let schemas = (old.storage().schema(), living.crd.storage().schema());
    let details: BTreeMap<&str, &Value> = reported["details"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|detail| Some((detail["name"].as_str()?, detail)))
        .collect();
    for (name, was) in &before.views[plural] {
        let (Some(is), Some(raw)) = (after.views[plural].get(name), before.raw[plural].get(name)) else {
            continue;
        };
        let elsewhere = [old, &living.crd].iter().any(|crd| {
            crd.conversion != Conversion::None
                && !raw["apiVersion"]
                    .as_str()
                    .is_some_and(|text| text.ends_with(&format!("/{}", crd.storage().name)))
        });
        // What a webhook makes of the bytes only the server knows.
        if elsewhere {
            continue;
        }
        let came = Difference::between((&schemas.0, &model::parts(was)), (&schemas.1, &model::parts(is)));
        let detail = details.get(name.as_str()).copied().unwrap_or(&Value::Null);
        let reported =
            |keys: &[&str]| -> Vec<String> { keys.iter().flat_map(|key| texts(&detail[key])).collect() };
        let is_certain = exact || detail["exact"] == true;
        for (paths, keys, word) in [
            (&came.appears, &["appears", "changes", "disappears"][..], "appears"),
            (&came.changes, &["changes"], "changes"),
            (&came.goes, &["disappears", "hidden"], "goes"),
        ] {
            let reported = reported(keys);
            for path in paths {
                let is_reported =
                    reported.iter().any(|reported| is_below(path, reported) || is_below(reported, path));
                // Without access to etcd a claim may have outlived its field, and a hidden field may have no
                // owner.
                let is_unclear =
                    is_claimed(raw, path, |_, _| true) || (word == "appears" && holds(raw, path));
                if !is_reported && (is_certain || !is_unclear) {
                    note(format!(
                        "{name}: {path} {word}: {detail}, stored {} at {}",
                        model::parts(raw),
                        raw["apiVersion"]
                    ));
                }
            }
        }
        for path in reported(&["changes"]).iter().filter(|path| is_certain && !came.changes.contains(path)) {
            note(format!("{name}: {path} does not change: {detail}, stored {}", model::parts(raw)));
        }
    }
}
