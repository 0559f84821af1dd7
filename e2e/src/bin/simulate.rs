//! Lives whole clusters on virtual time, each by a seed of its own, and ends with how many of them have
//! broken a law.

use std::io::Write as _;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use simulator::cluster::Violation;
use simulator::life::Life;
use simulator::sabotage::Sabotage;
use simulator::worlds;

/// How many violations are printed in full.
const PRINTED: u64 = 3;
/// How much of what Etch did last is printed, where one life is asked for.
const TRACED: usize = 60;

/// Lives whole clusters on virtual time.
#[derive(Parser)]
struct Simulate {
    /// How many lives.
    #[arg(long, default_value_t = 10_000)]
    lives: u64,
    /// The seed of the first one; each one after it has the next.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A law to be broken on purpose: lives end with the first violation.
    #[arg(long)]
    sabotage: Option<Sabotage>,
    /// The world of all CRDs; any of them, otherwise.
    #[arg(long)]
    world: Option<String>,
    /// Lives at once; as many as there are cores, otherwise.
    #[arg(long)]
    threads: Option<NonZero<usize>>,
}

fn main() -> Result<ExitCode> {
    let simulate = Simulate::parse();
    let mut worlds: Vec<_> = worlds::all().into_iter().map(Arc::new).collect();
    worlds.retain(|world| simulate.world.as_deref().is_none_or(|name| world.name == name));
    ensure!(!worlds.is_empty(), "--world: there is none of this name");
    let threads = simulate.threads.map_or_else(std::thread::available_parallelism, Ok)?.get() as u64;
    let (begun, is_over) = (Instant::now(), AtomicBool::new(false));
    let (lives, violations) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (simulate, worlds, is_over, lives, violations) =
                (&simulate, &worlds, &is_over, &lives, &violations);
            scope.spawn(move || {
                let mine = (0..simulate.lives).filter(|index| index % threads == thread);
                for seed in mine.map(|index| simulate.seed.wrapping_add(index)) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let life = Life::of(seed, worlds, simulate.sabotage);
                    let lived = life.live();
                    lives.fetch_add(1, Ordering::Relaxed);
                    if let Err(violation) = lived {
                        let is_printed = violations.fetch_add(1, Ordering::Relaxed) < PRINTED;
                        if is_printed {
                            print(simulate, life, &violation);
                        }
                        is_over.fetch_or(simulate.sabotage.is_some(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (lives, violations) = (lives.into_inner(), violations.into_inner());
    let mut out = std::io::stdout();
    writeln!(out, "{:.0} lives per second", lives as f64 / begun.elapsed().as_secs_f64())?;
    writeln!(out, "{lives} lives, {violations} violations")?;
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints what has gone wrong, with as few happenings as it takes, and how to see it again.
fn print(simulate: &Simulate, life: Life, violation: &Violation) {
    let (seed, sabotage) = (life.seed, simulate.sabotage);
    let shrunk = life.shrunk(violation);
    let (last, trace) = shrunk.traced();
    let last = last.err().unwrap_or_else(|| violation.clone());
    let trace = match simulate.lives {
        1 => trace[trace.len().saturating_sub(TRACED)..].iter().map(|line| format!("  {line}\n")).collect(),
        _ => String::new(),
    };
    let sabotage = sabotage.map(|sabotage| format!(" --sabotage {sabotage}")).unwrap_or_default();
    let world = simulate.world.as_ref().map(|world| format!(" --world {world:?}")).unwrap_or_default();
    let again =
        format!("cargo run --release -p e2e --bin simulate -- --lives 1 --seed {seed}{sabotage}{world}");
    let text = format!(
        "seed {seed}: {violation}\nwith fewer happenings: {last}\n{}\n{trace}  {again}\n",
        shrunk.story()
    );
    // If the reader is gone, nothing is to be done.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
