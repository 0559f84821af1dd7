//! What is printed and asked before all CRDs are processed, and how `--ownership Own` is undone.

use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use e2e::cluster::Patch;
use e2e::operator::binary;
use e2e::process::Ended;
use serde_json::{Value, json};

use crate::hand::{GROUP, Hand, collection, things};

const OBJECTS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_asked_and_ownership_is_undone() -> Result<()> {
    let hand = Hand::with(&[("default", OBJECTS)]).await?;
    asked(&hand).await?;
    undone(&hand).await
}

/// On a terminal, the user has to confirm before everything is written.
async fn asked(hand: &Hand) -> Result<()> {
    let before = hand.raw().await?;
    for answer in ["n", "", "no", "things"] {
        let refused = on_terminal(hand, &["persist"], answer)?;
        ensure!(
            refused.code == Some(2) && refused.out.contains("not confirmed; nothing was written"),
            "{refused:?}"
        );
        ensure!(
            refused.out.contains("Write to the objects of things.hand.example.com, in all namespaces? [y/N]"),
            "{refused:?}"
        );
        ensure!(hand.raw().await? == before, "something was written");
    }
    let agreed = on_terminal(hand, &["persist", "--ownership", "own"], "y")?;
    ensure!(agreed.code == Some(0), "{agreed:?}");
    ensure!(
        agreed.out.contains(&format!("of {OBJECTS} objects processed")),
        "progress under a page: {agreed:?}"
    );
    ensure!(agreed.out.contains(&format!("{OBJECTS} objects of 1 CRD: {OBJECTS} written.")), "{agreed:?}");
    ensure!(hand.stored().await?.len() == OBJECTS);
    // A user who names a CRD, sets --yes, only looks, or has no terminal is not asked.
    for arguments in
        [&["persist", "things", "--ownership", "own"][..], &["persist", "--yes", "--ownership", "own"]]
    {
        let ended = on_terminal(hand, arguments, "n")?;
        ensure!(ended.code == Some(0) && !ended.out.contains("[y/N]"), "{ended:?}");
        ensure!(
            ended.out.contains("Storing defaults of things.hand.example.com, in all namespaces."),
            "{ended:?}"
        );
    }
    // What the pass has stored is on record.
    let ended = on_terminal(hand, &["persist", "--dry-run", "--ownership", "own"], "n")?;
    ensure!(ended.code == Some(0) && !ended.out.contains("[y/N]"), "{ended:?}");
    let ended = hand.etch(&["persist", "--ownership", "own"])?;
    ensure!(ended.code == Some(0) && !ended.err.contains("[y/N]"), "{ended:?}");
    Ok(())
}

/// Without `--ownership Own`, what it made the manager's own is released, and the values stay.
async fn undone(hand: &Hand) -> Result<()> {
    let path = format!("{}/t0003", collection("default"));
    let mut wish = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Thing", "metadata": { "name": "t0003" }, "spec": {
            "size": 7,
        },
    });
    let conflict = hand.cluster.patch(&path, Patch::Apply, "user", &wish).await?;
    ensure!(conflict.code == 409, "it is ours: {conflict:?}");
    // Even if the default is another one by now.
    hand.cluster.apply_crd(&things(Some(5))).await?;
    let plan = hand.etch(&["persist", "things", "--dry-run", "-o", "json"])?;
    ensure!(plan.first()?["plans"][0]["action"] == "rewrite", "{plan:?}");
    let generations = raw(hand, |raw| raw["metadata"]["generation"].clone()).await?;
    let released = hand.etch(&["persist", "things", "-o", "json"])?;
    ensure!(released.code == Some(0) && released.first()?["written"] == OBJECTS, "{released:?}");
    ensure!(
        raw(hand, |raw| raw["metadata"]["generation"].clone()).await? == generations,
        "generations have moved"
    );
    for spec in raw(hand, |raw| raw["spec"].clone()).await? {
        ensure!(spec == json!({ "note": "n", "size": 1 }), "the values stay: {spec}");
    }
    for owners in raw(hand, |raw| raw["metadata"]["managedFields"].clone()).await? {
        let managers: Vec<&Value> =
            owners.as_array().context("owners")?.iter().map(|entry| &entry["manager"]).collect();
        ensure!(managers == ["creator"], "{managers:?}");
    }
    let applied = hand.cluster.patch(&path, Patch::Apply, "user", &wish).await?.ok()?;
    ensure!(applied["spec"]["size"] == 7, "{applied}");
    wish["spec"]["size"] = 8.into();
    hand.cluster.patch(&path, Patch::Apply, "user", &wish).await?.ok()?;
    let again = hand.etch(&["persist", "things", "-o", "json"])?;
    ensure!(again.code == Some(0) && again.first()?["written"] == 0, "nothing is left to release: {again:?}");
    Ok(())
}

async fn raw(hand: &Hand, of: impl Fn(&Value) -> Value) -> Result<Vec<Value>> {
    let all = hand.raw().await?;
    all.values().map(|bytes| Ok(of(&serde_json::from_slice(bytes)?))).collect()
}

/// Runs a command on a terminal, on which one line is typed; what it prints anywhere is its output.
fn on_terminal(hand: &Hand, arguments: &[&str], typed: &str) -> Result<Ended> {
    let words = [&[binary()?.to_str().context("a path")?], arguments].concat().join(" ");
    let mut command = std::process::Command::new("script");
    command.args(["--quiet", "--return", "--command", &words, "/dev/null"]);
    command.env("KUBECONFIG", hand.kubeconfig()).env("NO_COLOR", "1").env("SHELL", "/bin/sh");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("script of util-linux cannot be started")?;
    let mut stdin = child.stdin.take().context("its standard input")?;
    // A terminal keeps what is typed before the question.
    writeln!(stdin, "{typed}")?;
    let output = child.wait_with_output()?;
    drop(stdin);
    Ok(output.into())
}
