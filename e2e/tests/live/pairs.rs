//! `etch impact` over real upgrades: its results about their schemas are what was published about them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::operator;
use kube_structural_schema::json::same;
use serde_json::Value;

#[test]
fn real_upgrades_are_told_as_they_were_published() -> Result<()> {
    let mut pairs: Vec<PathBuf> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/pairs"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    pairs.sort();
    ensure!(pairs.len() > 30, "the corpus has {} pairs", pairs.len());
    for pair in &pairs {
        agrees(pair).with_context(|| pair.display().to_string())?;
    }
    Ok(())
}

/// Compares the results for a pair with its `meta.json`.
fn agrees(pair: &Path) -> Result<()> {
    let meta: Value = serde_json::from_slice(&std::fs::read(pair.join("meta.json"))?)?;
    let output = Command::new(operator::binary()?)
        .args(["impact", "-o", "json", "-f"])
        .arg(pair.join("new.yaml"))
        .arg("--old")
        .arg(pair.join("old.yaml"))
        .output()?;
    let lists = ["defaultsAdded", "defaultsChanged", "defaultsRemoved", "fieldsRemoved"];
    let is_listed = lists.iter().any(|list| meta[list].as_array().is_some_and(|list| !list.is_empty()));
    // What is not listed there may be reported as well.
    let is_reported = output.status.code() == Some(1) || !is_listed && output.status.code() == Some(0);
    ensure!(is_reported, "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    let reported: Value = serde_json::from_slice(&output.stdout)?;
    let reported = &reported["crds"][0];
    ensure!(reported["crd"] == meta["crd"], "{}", reported["crd"]);
    ensure!(reported["storageVersion"]["old"] == meta["storageVersionOld"], "{}", reported["storageVersion"]);
    ensure!(reported["storageVersion"]["new"] == meta["storageVersionNew"], "{}", reported["storageVersion"]);
    for (list, told_fields, meta_fields) in [
        ("defaultsAdded", &["path", "value"][..], &["path", "value"][..]),
        ("defaultsChanged", &["path", "old", "new"], &["path", "old", "new"]),
        ("defaultsRemoved", &["path", "old"], &["path", "value"]),
    ] {
        let (reported, meta) = (rows(&reported[list], told_fields)?, rows(&meta[list], meta_fields)?);
        ensure!(reported.len() == meta.len(), "{list}: {} told, {} published", reported.len(), meta.len());
        for (reported, meta) in reported.iter().zip(&meta) {
            ensure!(
                reported.iter().zip(meta).all(|(a, b)| same(a, b)),
                "{list}: {reported:?} is published as {meta:?}"
            );
        }
    }
    let sorted = |list: &Value| -> Result<Vec<Value>> {
        let mut list = list.as_array().context("a list")?.clone();
        list.sort_by_key(Value::to_string);
        Ok(list)
    };
    ensure!(
        sorted(&reported["fieldsRemoved"])? == sorted(&meta["fieldsRemoved"])?,
        "{}",
        reported["fieldsRemoved"]
    );
    Ok(())
}

/// Some fields of each item of a list, in the order of the first of them.
fn rows<'a>(list: &'a Value, fields: &[&str]) -> Result<Vec<Vec<&'a Value>>> {
    let items = list.as_array().context("a list")?;
    let mut rows: Vec<Vec<&Value>> =
        items.iter().map(|item| fields.iter().map(|field| &item[*field]).collect()).collect();
    rows.sort_by_key(|row| row[0].to_string());
    Ok(rows)
}
