//! Every interleaving, within bounds, of what users, API servers and Etch do to an object: no law is broken.
//! Each law that is broken on purpose is found.
//!
//! `MODEL_DEPTH`, `MODEL_STATES`, `MODEL_BOUNDS` (users, crashes, faults, upgrades, requests to a server that
//! lags behind, restores) and `MODEL_WORLD` choose what is explored.

mod object;
mod operator;
mod parts;
mod rest;
mod sabotage;
mod state;
mod system;
mod tables;
mod task;

use std::io::Write as _;
use std::time::Instant;

use anyhow::{Result, ensure};
use e2e::simulator::bounds::{Bounds, bounds, chosen_worlds, number};
use e2e::simulator::{fields, laws, server, worlds};
use stateright::{Checker, HasDiscoveries, Model};

use crate::parts::Parts;
use crate::state::{Action, State};
use crate::system::System;

/// What may happen in the usual run: once with everything that fails, once with two changes of the schema,
/// once with three, so that a schema may come back, and once with restores.
const USUAL: [Bounds; 4] = [
    Bounds { users: 1, crashes: 1, faults: 1, upgrades: 1, behind: 1, restores: 0 },
    Bounds { users: 1, crashes: 0, faults: 0, upgrades: 2, behind: 1, restores: 0 },
    Bounds { users: 1, crashes: 0, faults: 0, upgrades: 3, behind: 0, restores: 0 },
    Bounds { users: 1, crashes: 0, faults: 0, upgrades: 1, behind: 0, restores: 1 },
];

fn explored() -> Vec<worlds::World> {
    chosen_worlds("MODEL").into_iter().filter(|world| !worlds::SIMULATED.contains(&world.name)).collect()
}

/// How a law came to be broken: each step, and the object after it.
fn told(system: &System, path: stateright::Path<State, Action>) -> String {
    let mut world = "";
    let steps = path.into_vec().into_iter().map(|(state, action)| {
        world = system.parts.worlds[state.world as usize].name;
        let live = state.live.map_or_else(String::new, |live| {
            let content = system.parts.contents.get(live.content);
            let owners = content.owners.iter().map(|owner| {
                format!(
                    " {}{}@{} {:?}",
                    owner.manager,
                    if owner.is_update { "" } else { "*" },
                    owner.version,
                    owner.fields
                )
            });
            format!("{:?} {} {}{}", live.tag, content.version, content.value, owners.collect::<String>())
        });
        let phase = state.task.map(|task| match task.phase {
            task::Phase::Work(task::Work { step: task::WorkStep::Sent(machine), .. }) => {
                format!("sent {:?}", system.parts.requests.get(system.parts.pending(machine).request))
            }
            phase => format!("{phase:?}"),
        });
        format!(
            "    release {} and {}: {live}\n    {}\n{action:?}",
            state.crd,
            state.behind,
            phase.unwrap_or_default()
        )
    });
    let steps = steps.collect::<Vec<_>>().join("\n");
    format!("in {world}:\n{steps}")
}

#[test]
fn no_law_is_broken() -> Result<()> {
    bounds("MODEL", &USUAL)?.into_iter().try_for_each(explore)
}

fn explore(bounds: Bounds) -> Result<()> {
    let begun = Instant::now();
    let system = System::new(Parts::new(explored(), None), bounds);
    let mut checker = system
        .clone()
        .checker()
        .threads(number("MODEL_THREADS")?.unwrap_or(2))
        .finish_when(HasDiscoveries::AnyFailures);
    if let Some(depth) = number("MODEL_DEPTH")? {
        checker = checker.target_max_depth(depth);
    }
    if let Some(states) = number("MODEL_STATES")? {
        checker = checker.target_state_count(states);
    }
    let checker = checker.spawn_bfs().join();
    writeln!(
        std::io::stderr(),
        "{bounds:?}: {} states, {} of them different, depth {}, {} contents, {:.0} s",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        system.parts.contents.len(),
        begun.elapsed().as_secs_f64()
    )?;
    for (name, path) in checker.discoveries() {
        ensure!(name == "Etch rests", "{name}\n{}", told(&system, path));
    }
    ensure!(checker.discovery("Etch rests").is_some(), "Etch never rests");
    Ok(())
}

#[test]
fn each_law_that_is_broken_is_found() -> Result<()> {
    // It has one replica.
    for (law, name) in laws::Law::ALL.into_iter().filter(|(law, _)| *law != laws::Law::Leads) {
        ensure!(sabotage::ALL.iter().any(|(_, broken, ..)| *broken == law), "nothing breaks {name}");
    }
    let mut missed = Vec::new();
    for (sabotage, law, world, bounds) in sabotage::ALL {
        let mut worlds = worlds::all();
        worlds.retain(|known| known.name == world);
        let system = System::new(Parts::new(worlds, Some(sabotage)), bounds);
        let wanted = law.name();
        let checker =
            system.checker().threads(2).finish_when(HasDiscoveries::AnyOf([wanted].into())).spawn_bfs();
        let checker = checker.join();
        let found = checker.discovery(wanted).map(|path| path.into_vec().len());
        writeln!(
            std::io::stderr(),
            "{sabotage:?} in {world}: {wanted}: {found:?} states on the way, {} in all",
            checker.unique_state_count()
        )?;
        if found.is_none() {
            missed.push(format!("{sabotage:?} breaks {wanted}, and nothing was found"));
        }
    }
    ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}

/// What [`System`] leaves out, since Etch does not promise it: whoever mends one of these takes it from
/// there, and from `docs/reliability.md`.
#[test]
fn the_limits_are_where_they_are_said_to_be() -> Result<()> {
    let bounds = Bounds { users: 1, crashes: 1, faults: 0, upgrades: 2, behind: 2, restores: 0 };
    for (world, law) in [("changing", laws::Law::Undone), ("hiding", laws::Law::Values)] {
        let mut worlds = worlds::all();
        worlds.retain(|known| known.name == world);
        let system = System { is_strict: true, ..System::new(Parts::new(worlds, None), bounds) };
        let wanted = HasDiscoveries::AnyOf([law.name()].into());
        let checker = system.checker().threads(2).finish_when(wanted).spawn_bfs().join();
        ensure!(checker.discovery(law.name()).is_some(), "{world} breaks nothing any more");
    }
    Ok(())
}
