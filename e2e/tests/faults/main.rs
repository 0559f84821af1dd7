//! Faults between the operator and a real API server, and what must hold whatever they are: see
//! `invariants.rs` and `laws.rs`.
//!
//! Each workload is played once without any fault, and the requests that it leads to are those that get
//! faults: see `learning.rs`. Plans share a control plane and an operator, and each has a CRD to itself: a
//! rule of a plan affects only requests for its CRD, except that an operator which is killed is killed for
//! all plans, and that all plans share the watch of CRDs. `FAULTS_SEED` decides which plans are played
//! together, and which of them CI plays. `FAULTS_ONLY='Follow.*Recreate'` plays only those of all plans whose
//! text has these parts in this order.

#![expect(clippy::print_stdout, reason = "how many plans there were of each kind is worth some lines")]

mod history;
mod invariants;
mod laws;
mod learning;
mod plan;
mod rig;
mod schema;
mod users;
mod workload;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use anyhow::{Result, ensure};
use e2e::environment::number;

use crate::learning::Learned;
use crate::plan::Plan;
use crate::rig::{Played, Rig};
use crate::workload::{WORKLOADS, Workload};

/// How many plans share an operator.
const TOGETHER: usize = 48;
/// How many times a plan is played again that found no request: whether there is one may depend on who comes
/// first.
const AGAIN: usize = 4;
/// How many times plans are played on one control plane.
const BATCHES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn no_fault_breaks_a_law() -> Result<()> {
    let mut rig = Rig::start().await?;
    let learned = learn(&mut rig).await?;
    let mut tally = Tally::default();
    play(Some(rig), learning::share(&learned, seed()?), &mut tally).await?;
    tally.conclude()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "all plans take twenty minutes: `just faults`"]
async fn no_fault_at_any_request_breaks_a_law() -> Result<()> {
    let mut rig = Rig::start().await?;
    let learned = learn(&mut rig).await?;
    drop(rig);
    let (mut plans, mut stalls) = learning::all(&learned, seed()?);
    if let Ok(only) = std::env::var("FAULTS_ONLY") {
        [&mut plans, &mut stalls].into_iter().for_each(|plans| plans.retain(|plan| has_parts(plan, &only)));
    }
    let mut tally = Tally::default();
    play(None, plans, &mut tally).await?;
    play(None, stalls, &mut tally).await?;
    tally.conclude()
}

fn seed() -> Result<u64> {
    Ok(number("FAULTS_SEED")?.unwrap_or_default())
}

fn has_parts(plan: &Plan, parts: &str) -> bool {
    let text = format!("{plan:?}");
    let mut rest = Some(&text[..]);
    for part in parts.split(".*") {
        rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
    }
    rest.is_some()
}

/// Plays every workload without a fault.
async fn learn(rig: &mut Rig) -> Result<Vec<Learned>> {
    let (all, seen) = rig.play(&learning::lessons()).await?;
    let broken: Vec<String> = all.iter().flat_map(Played::lines).collect();
    ensure!(broken.is_empty(), "without a fault:\n{}", broken.join("\n"));
    ensure!(all.iter().all(|played| played.has_struck), "a lesson's user had no occasion to act");
    let learned: Vec<Learned> =
        all.iter().map(|played| Learned::new(played.plan, &played.plural, &seen)).collect();
    let learned = learning::common(learned);
    learned.iter().for_each(|learned| println!("{}", learned.line()));
    for played in &all {
        println!("{:?}: {:?}", played.plan, played.writes);
    }
    Ok(learned)
}

/// Plays plans; those whose fault found no request, again in other company.
async fn play(mut rig: Option<Rig>, plans: Vec<Plan>, tally: &mut Tally) -> Result<()> {
    println!("{} plans", plans.len());
    let mut missed = Vec::new();
    for (index, together) in batches(plans, Plan::is_for_all).into_iter().enumerate() {
        if index % BATCHES == 0 && index > 0 {
            rig = None;
        }
        missed.extend(play_together(&mut rig, &together, tally).await?);
    }
    for _ in 0..AGAIN {
        // A kill changes what others ask for after it.
        for together in batches(std::mem::take(&mut missed), |plan| plan.is_for_all() || plan.kills()) {
            missed.extend(play_together(&mut rig, &together, tally).await?);
        }
    }
    tally.broken.extend(missed.iter().map(|plan| format!("{plan:?} found no request to befall")));
    Ok(())
}

/// The plans that found no request.
async fn play_together(rig: &mut Option<Rig>, plans: &[Plan], tally: &mut Tally) -> Result<Vec<Plan>> {
    let rig = match rig {
        Some(rig) => rig,
        None => rig.insert(Rig::start().await?),
    };
    let begun = Instant::now();
    let (all, _) = rig.play(plans).await?;
    let broken: Vec<String> = all.iter().flat_map(Played::lines).collect();
    if !broken.is_empty() {
        tally.broken.push(format!("the operator's log: {}", rig.keep_log()?.display()));
    }
    for line in &broken {
        println!("{line}");
    }
    tally.broken.extend(broken);
    for played in all.iter().filter(|played| played.refusal.is_some()) {
        println!("{:?}: its user had to try again: {:?}", played.plan, played.refusal);
    }
    let (struck, missed): (Vec<Played>, Vec<Played>) = all.into_iter().partition(|played| played.has_struck);
    struck.iter().for_each(|played| tally.count(&played.plan));
    println!("{} plans in {} s, {} found no request", plans.len(), begun.elapsed().as_secs(), missed.len());
    Ok(missed.into_iter().map(|played| played.plan).collect())
}

/// Plans that are played together, of those that get in each other's way one at most.
fn batches(plans: Vec<Plan>, is_in_the_way: impl Fn(&Plan) -> bool) -> Vec<Vec<Plan>> {
    let (mut alone, mut others): (VecDeque<Plan>, VecDeque<Plan>) =
        plans.into_iter().partition(is_in_the_way);
    let mut batches = Vec::new();
    while !alone.is_empty() || !others.is_empty() {
        let mut batch: Vec<Plan> = alone.pop_front().into_iter().collect();
        while batch.len() < TOGETHER
            && let Some(plan) = others.pop_front()
        {
            batch.push(plan);
        }
        batches.push(batch);
    }
    batches
}

impl Played {
    /// What is broken, with the plan.
    fn lines(&self) -> Vec<String> {
        self.broken.iter().map(|broken| format!("{} {:?}: {broken}", self.plural, self.plan)).collect()
    }
}

/// The results of all plans.
#[derive(Default)]
struct Tally {
    /// How many struck, by what befell them.
    counts: BTreeMap<String, BTreeMap<Workload, usize>>,
    broken: Vec<String>,
}

impl Tally {
    fn count(&mut self, plan: &Plan) {
        *self.counts.entry(plan.class()).or_default().entry(plan.workload).or_default() += 1;
    }

    fn conclude(self) -> Result<()> {
        let heads = WORKLOADS.map(|workload| format!("{:>11}", format!("{workload:?}"))).concat();
        println!("{:<24}{heads}", "");
        let mut all = 0;
        for (class, counts) in &self.counts {
            let of = |workload| counts.get(&workload).copied().unwrap_or_default();
            let row = WORKLOADS.map(|workload| format!("{:>11}", of(workload))).concat();
            println!("{class:<24}{row}");
            all += counts.values().sum::<usize>();
        }
        println!("{all} plans of {} classes; FAULTS_SEED={}", self.counts.len(), seed()?);
        ensure!(self.broken.is_empty(), "{} findings:\n{}", self.broken.len(), self.broken.join("\n"));
        Ok(())
    }
}
