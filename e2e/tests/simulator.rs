//! Lives of whole clusters in the simulator: none breaks a law, and each law that is broken on purpose is
//! found.

use std::sync::Arc;

use anyhow::{Result, ensure};
use e2e::simulator::life::Life;
use e2e::simulator::sabotage::Sabotage;
use e2e::simulator::worlds::{self, World};

/// The seeds of the usual run.
const USUAL: std::ops::Range<u64> = 100_000..104_000;
/// In so many lives each sabotage is found that the simulator knows.
const FOUND: u64 = 1200;

fn worlds() -> Vec<Arc<World>> {
    worlds::all().into_iter().map(Arc::new).collect()
}

#[test]
fn no_life_breaks_a_law() -> Result<()> {
    let worlds = worlds();
    for seed in USUAL {
        let lived = Life::of(seed, &worlds, None).live();
        ensure!(
            lived.is_ok(),
            "`just simulate 1 {seed}`: {}",
            lived.err().map(|violation| violation.to_string()).unwrap_or_default()
        );
    }
    Ok(())
}

#[test]
fn each_sabotage_is_found() {
    let worlds = worlds();
    let losing: Vec<_> = worlds.iter().filter(|world| world.name == "losing a field").cloned().collect();
    let found = |sabotage| {
        // It takes a field that goes at the very moment of a write, which few lives of all worlds have.
        let worlds = if sabotage == Sabotage::NeverAsksForTheGeneration { &losing } else { &worlds };
        (0..FOUND).any(|seed| Life::of(seed, worlds, Some(sabotage)).live().is_err())
    };
    let missed: Vec<_> = [
        Sabotage::NamesNoRevision,
        Sabotage::NamesNobody,
        Sabotage::CreatesWhatIsGone,
        Sabotage::AppliesValues,
        Sabotage::ForcesValues,
        Sabotage::PutsBackWhatWasRead,
        Sabotage::LeavesOwnersBehind,
        Sabotage::LeavesItsEntry,
        Sabotage::IgnoresHiddenFields,
        Sabotage::ProvesNothing,
        Sabotage::BelievesEveryAnswer,
        Sabotage::SendsNoChangedValues,
        Sabotage::RemembersTooMuch,
        Sabotage::RecordsAhead,
        Sabotage::BelievesInSilence,
        Sabotage::MarksWhatItWrites,
        Sabotage::HearsNothing,
        Sabotage::NeverAsksForTheGeneration,
        Sabotage::TakesStatusForStored,
        Sabotage::TrimsAhead,
        Sabotage::TrustsTheWebhook,
        Sabotage::ForgetsWhatWasServed,
        Sabotage::GoesOnWithoutTheLease,
        Sabotage::TakesTheLeaseEarly,
    ]
    .into_iter()
    .filter(|sabotage| !found(*sabotage))
    .collect();
    assert!(missed.is_empty(), "{missed:?}");
}
