//! Random lives on a real control plane: users, upgrades, webhooks and policies come and go, Etch runs and is
//! stopped, and everything that it claims once it rests is compared with raw etcd.
//!
//! `LIVES` sets how many lives (the usual run has 30), and `LIVES_SEED` which comes first. A life that fails
//! is printed with the seed with which it can be run alone: then it is printed with as few of its steps as it
//! takes.

mod claims;
mod impact;
#[expect(dead_code, reason = "the answers use more of it")]
#[path = "../answers/model.rs"]
mod model;
#[path = "../answers/notes.rs"]
mod notes;
mod schema;
mod stage;
mod story;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use anyhow::{Context, Result, bail};
use claims::truths;
use e2e::environment::number;
use notes::{Notes, of};
use stage::{Living, Said, Stage};
use story::{Life, is_down};

/// How many lives share a control plane.
const TOGETHER: usize = 50;
/// How many lives the usual run has, and the first of them.
const USUAL: (usize, u64) = (30, 100);
/// How often a life that failed is tried with fewer steps.
const TRIES: usize = 12;
/// The chapter in which some CRDs are persisted by hand, and which those are.
const BY_HAND: (usize, u64) = (5, 4);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; `just lives` runs it"]
async fn no_claim_is_false_in_any_life() -> Result<()> {
    let (lives, seed) = (number("LIVES")?, number("LIVES_SEED")?);
    let chosen = if lives.is_some() { fastrand::u64(..1 << 32) } else { USUAL.1 };
    let (lives, seed): (usize, u64) = (lives.unwrap_or(USUAL.0), seed.unwrap_or(chosen));
    writeln!(std::io::stderr(), "LIVES_SEED={seed} LIVES={lives}")?;
    let seeds: Vec<u64> = (0..lives).map(|index| seed.wrapping_add(index as u64)).collect();
    let mut failed: Vec<Failure> = Vec::new();
    for (round, seeds) in seeds.chunks(TOGETHER).enumerate() {
        let lives = seeds.iter().enumerate().map(|(index, seed)| Life::random(*seed, index));
        let failures = lived(lives.collect()).await?;
        writeln!(std::io::stderr(), "{} lives, {} of them failed", round * TOGETHER + seeds.len(), {
            failures.iter().for_each(|failure| drop(writeln!(std::io::stderr(), "{failure}")));
            failed.extend(failures);
            failed.len()
        })?;
    }
    let Some(first) = failed.first() else { return Ok(()) };
    if lives > 1 {
        let all: Vec<String> = failed.iter().map(Failure::to_string).collect();
        bail!("{} of {lives} lives failed\n\n{}", failed.len(), all.join("\n\n"));
    }
    let smallest = smaller(first.clone()).await?;
    bail!("the life failed\n\n{first}\n\nThe same with fewer steps:\n{smallest}")
}

/// A life in which Etch claimed something untrue.
#[derive(Clone, Debug)]
struct Failure {
    life: Life,
    findings: Vec<String>,
    log: Vec<String>,
    /// The last chapter of the story.
    chapter: usize,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { life, findings, log, .. } = self;
        writeln!(f, "LIVES_SEED={} LIVES=1 ({}), or `just lives 1 {}`:", life.seed, life.plural, life.seed)?;
        findings.iter().try_for_each(|finding| writeln!(f, "  {finding}"))?;
        write!(f, "{life}{}", log.join("\n"))
    }
}

/// Those of some lives that fail; they share a control plane.
async fn lived(lives: Vec<Life>) -> Result<Vec<Failure>> {
    let chapters = lives.iter().map(|life| life.chapters.len()).max().unwrap_or_default();
    let mut all: Vec<Living> = lives.into_iter().map(Living::new).collect();
    let stage = Stage::start(&mut all).await?;
    let mut failures = Vec::new();
    let mut operator = None;
    for chapter in 0..chapters {
        if is_down(chapter) {
            stop(operator.take(), chapter).await?;
        }
        let findings = reported(&stage, &mut all, chapter, &mut operator).await?;
        for (plural, findings) in findings {
            let index = all.iter().position(|living| living.life.plural == plural);
            // One falsehood leads to others: a life ends with its first.
            let living = all.swap_remove(index.with_context(|| format!("{plural}: {findings:#?}"))?);
            failures.push(Failure { life: living.life, findings, log: living.log, chapter });
        }
        if all.is_empty() {
            break;
        }
    }
    stop(operator, 0).await?;
    Ok(failures)
}

async fn stop(operator: Option<e2e::operator::Operator>, chapter: usize) -> Result<()> {
    match operator {
        Some(operator) if chapter % 4 == 3 => operator.kill().await,
        Some(operator) => operator.stop().await,
        None => Ok(()),
    }
}

/// Plays a chapter of all lives, and holds what is claimed at its end against the bytes.
async fn reported(
    stage: &Stage,
    all: &mut [Living],
    chapter: usize,
    operator: &mut Option<e2e::operator::Operator>,
) -> Result<BTreeMap<String, Vec<String>>> {
    let notes = Notes::default();
    for living in all.iter_mut() {
        living.done = 0;
        living
            .log
            .push(format!("  chapter {chapter}{}", if is_down(chapter) { ", Etch is down" } else { "" }));
    }
    if is_down(chapter) {
        impact::upgrade(stage, all, chapter, &notes).await?;
    }
    stage
        .each(all, async |living| {
            let steps = living.life.chapters.get(chapter).cloned().unwrap_or_default();
            for step in steps.iter().skip(living.done) {
                stage.step(living, step).await?;
            }
            Ok(())
        })
        .await?;
    if chapter == BY_HAND.0 {
        by_hand(stage, all, &notes).await?;
    }
    let before = stage.snapshot(all).await?;
    if operator.is_none() {
        *operator = Some(stage.operator()?);
    }
    judge(stage, all, &before, chapter, &notes).await?;
    let mut doubted = notes.all();
    if doubted.is_empty() {
        return Ok(doubted);
    }
    // What Etch had not reached yet is no claim: it is asked once more, after it must have.
    let again = Notes::default();
    judge(stage, all, &before, chapter, &again).await?;
    let again = again.all();
    doubted.retain(|plural, findings| {
        findings.retain(|finding| finding.starts_with("by hand") || again.contains_key(plural));
        if let Some(again) = again.get(plural) {
            findings.retain(|finding| finding.starts_with("by hand"));
            findings.extend(again.iter().cloned());
        }
        !findings.is_empty()
    });
    Ok(doubted)
}

async fn judge(
    stage: &Stage,
    all: &mut [Living],
    before: &stage::Snapshot,
    chapter: usize,
    notes: &Notes,
) -> Result<()> {
    let mut restless = BTreeSet::new();
    let mut claims: BTreeMap<String, Said> = BTreeMap::new();
    let found = parking_lot::Mutex::new((&mut claims, &mut restless));
    stage
        .each(all, async |living| {
            let rested = stage.rest(living).await;
            let mut found = found.lock();
            match rested {
                Ok(Some(wording)) => drop(found.0.insert(living.life.plural.clone(), wording)),
                Ok(None) => {}
                Err(error) => {
                    notes.note(&living.life.plural, format!("{error:#}"));
                    found.1.insert(living.life.plural.clone());
                }
            }
            Ok(())
        })
        .await?;
    let after = stage.snapshot(all).await?;
    for living in all.iter_mut() {
        if let Some(wording) = claims.get(&living.life.plural) {
            living.log.push(format!("    {wording:?}"));
        }
        for (name, raw) in &after.raw[&living.life.plural] {
            let (parts, version, owners) =
                (model::parts(raw), &raw["apiVersion"], &raw["metadata"]["managedFields"]);
            living.log.push(format!("    etcd holds {name}: {parts} at {version}; {owners}"));
        }
    }
    let audits =
        [stage.etch(&["audit", "--objects"], false).await?, stage.etch(&["audit", "--objects"], true).await?];
    for living in all.iter() {
        let plural = &living.life.plural;
        let note = |finding: String| notes.note(plural, finding);
        claims::kept(living, before, &after, &note);
        let truths = truths(living, &after);
        if let Some(wording) = claims.get(plural) {
            claims::wording(living, wording, &truths, &note);
        }
        if !living.crd.storage().has_defaults() {
            continue;
        }
        for (printed, is_exact) in audits.iter().zip([false, true]) {
            let how = if is_exact { "audit with etcd" } else { "audit" };
            let note = |finding: String| notes.note(plural, format!("{how}: {finding}"));
            match of(&printed.json, &living.name()) {
                Some(reported) => claims::audited(living, reported, &truths, is_exact, &note),
                None => note("nothing is told".to_owned()),
            }
        }
        if (living.life.seed + chapter as u64).is_multiple_of(8)
            && let Some((name, truth)) = truths.iter().next()
        {
            let printed = stage.etch(&["explain", &living.name(), name, "-n", "default"], false).await?;
            claims::explained(truth, &printed, &|finding| note(format!("explain {name}: {finding}")));
        }
    }
    Ok(())
}

/// Runs `etch persist` over some of the CRDs, while Etch is down.
async fn by_hand(stage: &Stage, all: &[Living], notes: &Notes) -> Result<()> {
    let before = stage.snapshot(all).await?;
    let chosen = all.iter().filter(|living| living.life.seed.is_multiple_of(BY_HAND.1));
    let mut reported = Vec::new();
    for living in chosen.filter(|living| living.crd.storage().has_defaults()) {
        reported.push((living, stage.etch(&["persist", &living.name()], false).await?));
    }
    let after = stage.snapshot(all).await?;
    for (living, printed) in &reported {
        let note = |finding: String| notes.note(&living.life.plural, format!("by hand: {finding}"));
        // Where admission takes away what the object had, the pass stops.
        if !matches!(printed.code, Some(0 | 1)) && !living.strips {
            note(format!("exit status {:?}: {}", printed.code, printed.json));
        }
        match of(&printed.json, &living.name()) {
            // A pass that stopped claims nothing about what it has not reached.
            Some(reported) if reported["error"].is_string() => {}
            Some(reported) => claims::persisted(reported, &truths(living, &after), &note),
            None => note("nothing is told".to_owned()),
        }
        let mut by_hand = Living::new(living.life.clone());
        by_hand.crd.clone_from(&living.crd);
        by_hand.strips = living.strips;
        by_hand.policy = serde_json::json!({ "mode": "Persist" });
        claims::kept(&by_hand, &before, &after, &note);
    }
    Ok(())
}

/// The same failure with fewer steps.
async fn smaller(mut failure: Failure) -> Result<Failure> {
    failure.life.chapters.truncate(failure.chapter + 1);
    let mut tries = 0;
    let mut place = (failure.life.chapters.len(), 0);
    while tries < TRIES {
        // From the last step to the first: what comes late depends on what comes early.
        let (chapter, step) = match place {
            (0, 0) => break,
            (chapter, 0) => {
                place = (chapter - 1, failure.life.chapters[chapter - 1].len());
                continue;
            }
            (chapter, step) => (chapter, step - 1),
        };
        place = (chapter, step);
        let mut life = failure.life.clone();
        life.chapters[chapter].remove(step);
        tries += 1;
        if let Some(found) = lived(vec![life]).await?.pop() {
            failure = found;
        }
    }
    Ok(failure)
}
