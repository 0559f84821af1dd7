//! `etch persist` that is interrupted: its numbers are those of etcd, and the command that it prints goes on
//! as it was.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::eventually;
use e2e::process::{self, Ended};
use serde_json::Value;

use crate::hand::Hand;

/// More than a page.
const OBJECTS: usize = 520;

/// So slow that an interruption comes before the end, on any machine.
const SLOWLY: [&str; 7] =
    ["--max-writes-per-second", "20", "--max-in-flight", "4", "--ownership", "own", "--output=json"];

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_as_it_was_from_where_it_came_to() -> Result<()> {
    let hand = Hand::with(&[("web", OBJECTS), ("shop", 3)]).await?;
    let kubeconfig = hand.dir.path().join("some one's config");
    std::fs::copy(hand.kubeconfig(), &kubeconfig)?;
    let kubeconfig = kubeconfig.to_str().context("a path")?;
    let scope = ["--kubeconfig", kubeconfig, "-n", "web"];

    // Within the first page.
    let begun = [&["persist", "things"][..], &SLOWLY, &scope].concat();
    let first = interrupted(&hand, &begun, 6).await?;
    let resume = reported(&hand, &first).await?;
    ensure!(resume.contains("--after=web/t00"), "{resume}");
    let done = hand.raw().await?;

    // It goes on behind the first, and is interrupted again.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {resume}")]).env_remove("KUBECONFIG");
    let stored = hand.stored().await?.len();
    let second = interrupt(&hand, spawned(command)?, stored + 6).await?;
    let json: Value = second.json()?;
    let written = json["crds"][0]["written"].as_u64().context("a number")?;
    ensure!(hand.stored().await?.len() as u64 == stored as u64 + written, "{second:?}");
    ensure!(json["crds"][0]["notLookedAt"].as_u64() >= Some(stored as u64 - 4), "{second:?}");
    unchanged(&done, &hand.raw().await?)?;

    // Behind the first page.
    let behind = [&["persist", "things", "--after", "web/t0497"][..], &SLOWLY, &scope].concat();
    let stored = hand.stored().await?.len();
    let third = interrupted(&hand, &behind, stored + 6).await?;
    let resume = third.first()?["resume"].as_str().context("a command")?.to_owned();
    ensure!(resume.contains("--after=web/t05"), "{resume}");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {resume}")]).env_remove("KUBECONFIG");
    let last = process::ended(command)?;
    ensure!(last.code == Some(1), "some were left out: {last:?}");
    for index in 498..OBJECTS {
        let raw =
            hand.cluster.raw("hand.example.com", "things", Some("web"), &format!("t{index:04}")).await?;
        ensure!(raw["spec"]["size"] == 1, "{raw}");
        let managers = raw["metadata"]["managedFields"].as_array().context("owners")?;
        ensure!(managers.iter().any(|entry| entry["manager"] == "etch"), "--ownership was lost: {raw}");
    }
    let stored = hand.stored().await?;
    ensure!(stored.iter().all(|name| name.starts_with("web/")), "--namespace was lost: {stored:?}");
    Ok(())
}

/// Compares what is printed about an interruption within the first page with etcd; returns the command with
/// which to go on.
async fn reported(hand: &Hand, ended: &Ended) -> Result<String> {
    ensure!(ended.code == Some(2), "{ended:?}");
    let reported = ended.first()?;
    let written = reported["written"].as_u64().context("a number")?;
    let stored = hand.stored().await?;
    ensure!(written == stored.len() as u64, "{written} are told to be written, {} are stored", stored.len());
    ensure!(reported["objects"].as_u64() == Some(written) && reported["verified"] == false, "{reported:#}");
    let totals = &ended.json()?["totals"];
    ensure!(totals["crds"] == 1 && totals["crdsNotCompleted"] == 1, "{totals:#}");
    let resume = reported["resume"].as_str().context("a command")?;
    let wording = ended.err.lines().last().unwrap_or_default();
    ensure!(wording.contains("things.hand.example.com: interrupted; to resume: "), "{wording}");
    ensure!(wording.ends_with(resume), "{wording}, and {resume}");
    for option in ["--max-writes-per-second=20", "--max-in-flight=4", "--ownership=Own", "--namespace=web"] {
        ensure!(resume.contains(option), "{option} is lost: {resume}");
    }
    Ok(resume.to_owned())
}

fn unchanged(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    for (name, bytes) in before {
        let raw: Value = serde_json::from_slice(bytes)?;
        ensure!(raw["spec"]["size"].is_null() || after.get(name) == Some(bytes), "{name} was written again");
    }
    Ok(())
}

/// Runs a command, and interrupts it when etcd holds the default of so many objects.
async fn interrupted(hand: &Hand, arguments: &[&str], stored: usize) -> Result<Ended> {
    interrupt(hand, spawned(hand.command(arguments)?)?, stored).await
}

fn spawned(mut command: Command) -> Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("it cannot be started")
}

async fn interrupt(hand: &Hand, child: Child, stored: usize) -> Result<Ended> {
    eventually(Duration::from_secs(60), &format!("{stored} objects are stored"), async || {
        Ok((hand.stored().await?.len() >= stored).then_some(()))
    })
    .await?;
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status()?;
    ensure!(sent.success(), "it has ended already");
    Ok(child.wait_with_output()?.into())
}
