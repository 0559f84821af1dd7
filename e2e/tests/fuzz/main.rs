//! Random bytes, for each reader of what others write: none may make it panic, or break its law.
//!
//! Inputs are the project's own files, and those in `corpus`, mangled. `FUZZ_SECONDS` sets how long each
//! reader is tried, `FUZZ_SEED` repeats a run.

#![expect(clippy::print_stdout, reason = "how many inputs there were is worth a line")]

mod inputs;
mod mangle;
mod readers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use e2e::environment::number;
use fastrand::Rng;

/// Inputs of each reader, unless `FUZZ_SECONDS` sets how long to go on.
const INPUTS: u64 = 3_000;

/// A reader, what it is given at first, and whether it goes on after an input.
struct Reader {
    corpus: fn() -> Result<Vec<Vec<u8>>>,
    read: fn(&[u8]) -> Result<bool>,
}

fn fuzz(name: &str, reader: &Reader) -> Result<()> {
    let until = number("FUZZ_SECONDS")?.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seed = number("FUZZ_SEED")?.unwrap_or_else(|| fastrand::u64(..));
    let corpus = (reader.corpus)()?;
    anyhow::ensure!(!corpus.is_empty(), "{name} has nothing to begin with");
    let (mut tried, mut taken) = (0_u64, 0_u64);
    while until.map_or(tried < INPUTS, |until| Instant::now() < until) {
        // Each input has a seed of its own, so that one can be repeated alone.
        let mut rng = Rng::with_seed(seed.wrapping_add(tried));
        let input = mangle::mangled(&corpus, &mut rng);
        tried += 1;
        let place = || {
            format!(
                "{name}: FUZZ_SEED={} repeats it: {}",
                seed.wrapping_add(tried - 1),
                String::from_utf8_lossy(&input)
            )
        };
        match catch_unwind(AssertUnwindSafe(|| (reader.read)(&input))) {
            Ok(result) => taken += u64::from(result.with_context(place)?),
            Err(_) => bail!("a panic at {}", place()),
        }
    }
    println!("{name}: {tried} inputs, {taken} taken; FUZZ_SEED={seed}");
    anyhow::ensure!(tried < 1_000 || taken > 0, "{name} takes nothing: FUZZ_SEED={seed} shows too little");
    Ok(())
}

#[test]
fn schemas() -> Result<()> {
    fuzz("schemas", &Reader { corpus: inputs::crds, read: readers::crd })
}

#[test]
fn filling() -> Result<()> {
    fuzz("filling", &Reader { corpus: inputs::filled, read: readers::fill })
}

#[test]
fn owners() -> Result<()> {
    fuzz("owners", &Reader { corpus: inputs::owned, read: readers::owners })
}

#[test]
fn rules() -> Result<()> {
    fuzz("rules", &Reader { corpus: inputs::rules, read: readers::rule })
}

#[test]
fn documents() -> Result<()> {
    fuzz("documents", &Reader { corpus: inputs::documents, read: readers::documents })
}

#[test]
fn stored() -> Result<()> {
    fuzz("stored", &Reader { corpus: inputs::stored, read: readers::stored })
}

#[test]
fn watches() -> Result<()> {
    fuzz("watches", &Reader { corpus: inputs::watched, read: readers::watch_line })
}

#[test]
fn snapshots() -> Result<()> {
    fuzz("snapshots", &Reader { corpus: inputs::snapshots, read: readers::snapshot })
}
