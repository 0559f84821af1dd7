//! Every interleaving, within bounds, of what users, API servers and Etch do to an object, with the machines
//! of Etch themselves: each choice of the simulator is made in turn. No law is broken, and laws that are
//! broken on purpose are found.
//!
//! `MACHINES_DEPTH`, `MACHINES_STATES`, `MACHINES_BOUNDS` (users, crashes, faults, upgrades, requests to a
//! server that lags behind, restores) and `MACHINES_WORLD` choose what is explored.

mod system;

use std::env;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use e2e::simulator::bounds::{Bounds, bounds, chosen_worlds, number};
use e2e::simulator::sabotage::Sabotage;
use e2e::simulator::{laws, worlds};
use stateright::{Checker, HasDiscoveries, Model};

use crate::system::{Action, RESTS, State, System, TRUE};

/// What may happen in the usual run. Larger ones take minutes to hours.
const USUAL: [Bounds; 1] = [ONE_USER];
const ONE_USER: Bounds = Bounds { users: 1, crashes: 0, faults: 0, upgrades: 1, behind: 0, restores: 0 };

/// Ways to break a law, with the law; `None` if only the end shows it. And the world in which it is found.
const FOUND: [(Sabotage, Option<laws::Law>, &str); 11] = {
    use laws::Law::{Creates, Hidden, Owners, Persisted, Race, Values};
    [
        (Sabotage::NamesNoRevision, Some(Race), "introduced"),
        (Sabotage::NamesNobody, Some(Creates), "changing"),
        (Sabotage::CreatesWhatIsGone, Some(Creates), "changing"),
        (Sabotage::AppliesValues, Some(Owners), "changing"),
        (Sabotage::ForcesValues, Some(Values), "changing"),
        (Sabotage::PutsBackWhatWasRead, Some(Values), "changing"),
        (Sabotage::LeavesOwnersBehind, Some(Owners), "introduced, up to 1.36"),
        (Sabotage::IgnoresHiddenFields, Some(Hidden), "hiding"),
        (Sabotage::RemembersTooMuch, Some(Persisted), "removed"),
        (Sabotage::MarksWhatItWrites, Some(Values), "changing"),
        (Sabotage::HearsNothing, None, "introduced"),
    ]
};

fn shared(worlds: Vec<worlds::World>) -> Vec<Arc<worlds::World>> {
    worlds.into_iter().map(Arc::new).collect()
}

fn of(name: &str) -> Vec<Arc<worlds::World>> {
    let mut all = worlds::all();
    all.retain(|world| world.name == name);
    shared(all)
}

/// How a law came to be broken: all that happened, and what Etch did.
fn story(system: &System, path: stateright::Path<State, Action>) -> String {
    let mut steps = path.into_vec().into_iter();
    let Some((mut state, mut next)) = steps.next() else { return String::new() };
    Arc::make_mut(&mut state.cluster).trace = Some(Vec::new());
    let mut lines = Vec::new();
    for action in std::iter::from_fn(|| {
        let action = next.take();
        next = steps.next().and_then(|(_, action)| action);
        action
    }) {
        lines.push(format!("{action:?}"));
        state = system.after(&state, &action);
        let trace = Arc::make_mut(&mut state.cluster).trace.as_mut().map(std::mem::take);
        lines.extend(trace.into_iter().flatten().map(|line| format!("    {line}")));
    }
    let broken = state.broken.map(|broken| broken.what).unwrap_or_default();
    format!("in {}: {broken}\n{}", state.cluster.resources()[0].world.name, lines.join("\n"))
}

#[test]
fn no_law_is_broken() -> Result<()> {
    bounds("MACHINES", &USUAL)?.into_iter().try_for_each(explore)
}

fn explore(bounds: Bounds) -> Result<()> {
    let begun = Instant::now();
    let system = System::new(shared(chosen_worlds("MACHINES")), bounds, None);
    let mut checker = system
        .clone()
        .checker()
        .threads(number("MACHINES_THREADS")?.unwrap_or(2))
        .finish_when(HasDiscoveries::AnyFailures);
    if let Some(depth) = number("MACHINES_DEPTH")? {
        checker = checker.target_max_depth(depth);
    }
    if let Some(states) = number("MACHINES_STATES")? {
        checker = checker.target_state_count(states);
    }
    let checker = checker.spawn_bfs().join();
    writeln!(
        std::io::stderr(),
        "{bounds:?}: {} states, {} of them different, depth {}, {:.0} s",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f64()
    )?;
    for (name, path) in checker.discoveries() {
        ensure!(name == RESTS, "{name}\n{}", story(&system, path));
    }
    ensure!(checker.discovery(RESTS).is_some(), "Etch never rests");
    Ok(())
}

#[test]
fn laws_that_are_broken_are_found() -> Result<()> {
    let only: Option<Sabotage> = env::var("MACHINES_SABOTAGE")
        .ok()
        .map(|name| name.parse().map_err(anyhow::Error::msg))
        .transpose()?;
    let mut missed = Vec::new();
    for (sabotage, law, world) in FOUND {
        if only.is_some_and(|only| only != sabotage) {
            continue;
        }
        let begun = Instant::now();
        let system = System::new(of(world), ONE_USER, Some(sabotage));
        let checker = system.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let mut found: Vec<&str> = checker.discoveries().into_keys().collect();
        found.retain(|name| *name != RESTS);
        writeln!(
            std::io::stderr(),
            "{sabotage:?} in {world}: {found:?}, {} states, {:.0} s",
            checker.unique_state_count(),
            begun.elapsed().as_secs_f64()
        )?;
        let wanted = law.map_or(TRUE, laws::Law::name);
        if !found.contains(&wanted) {
            missed.push(format!("{sabotage:?} breaks {wanted}, and {found:?} was found"));
        }
    }
    ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}
