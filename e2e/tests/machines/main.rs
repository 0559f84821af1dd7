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
use simulator::bounds::{Bounds, bounds, chosen_worlds, number};
use simulator::sabotage::Sabotage;
use simulator::{laws, worlds};
use stateright::{Checker, HasDiscoveries, Model};

use crate::system::{Action, RESTS, State, System, TRUE};

/// What may happen in every world in the usual run. More takes minutes to hours.
const USUAL: [Bounds; 1] = [Bounds { users: 1, upgrades: 1, ..NOTHING }];
const NOTHING: Bounds = Bounds { users: 0, crashes: 0, faults: 0, upgrades: 0, behind: 0, restores: 0 };
const UPGRADE: Bounds = Bounds { upgrades: 1, ..NOTHING };
const USER: Bounds = Bounds { users: 1, ..NOTHING };

/// Part of a world, and what may happen there.
#[derive(Clone, Copy, Debug)]
struct Scene {
    world: &'static str,
    /// The state of the CRD in which it begins.
    from: usize,
    /// The numbers of the requests that users send.
    menu: &'static [usize],
    bounds: Bounds,
}

const fn scene(world: &'static str, from: usize, menu: &'static [usize], bounds: Bounds) -> Scene {
    Scene { world, from, menu, bounds }
}

/// Where more may happen in the usual run.
const WIDER: [Scene; 6] = [
    scene("changing", 0, &[0, 3], Bounds { users: 1, crashes: 1, ..UPGRADE }),
    scene("changing", 0, &[2], Bounds { faults: 1, ..UPGRADE }),
    scene("changing", 0, &[0], Bounds { upgrades: 2, behind: 2, ..NOTHING }),
    scene("following", 0, &[2], Bounds { upgrades: 3, ..NOTHING }),
    scene("introduced", 0, &[0], Bounds { upgrades: 3, ..NOTHING }),
    scene("changing", 0, &[2], Bounds { restores: 1, ..UPGRADE }),
];

/// Ways to break a law, with the law; `None` if only the end shows it. And where it is found.
const FOUND: [(Sabotage, Option<laws::Law>, Scene); 25] = {
    use laws::Law::{Creates, Follows, Hidden, Owners, Persisted, Race, Values};
    const CHANGES: Bounds = Bounds { users: 1, ..UPGRADE };
    const LAGS: Bounds = Bounds { upgrades: 2, behind: 1, ..NOTHING };
    [
        (Sabotage::NamesNoRevision, Some(Race), scene("introduced", 0, &[0, 3], CHANGES)),
        (Sabotage::NamesNobody, Some(Creates), scene("changing", 0, &[0, 6], CHANGES)),
        (Sabotage::CreatesWhatIsGone, Some(Creates), scene("changing", 0, &[0, 6], CHANGES)),
        (Sabotage::AppliesValues, Some(Owners), scene("changing", 0, &[0, 1, 2], CHANGES)),
        (Sabotage::ForcesValues, Some(Values), scene("changing", 0, &[0, 3], CHANGES)),
        (Sabotage::PutsBackWhatWasRead, Some(Values), scene("changing", 0, &[0, 3], CHANGES)),
        (Sabotage::FollowsNothing, Some(Follows), scene("following", 1, &[2], UPGRADE)),
        (Sabotage::FollowsWhatIsOwned, Some(Values), scene("following", 1, &[0], UPGRADE)),
        (Sabotage::LeavesOwnersBehind, Some(Owners), scene("introduced, up to 1.36", 0, &[0, 1, 3], CHANGES)),
        (Sabotage::EndsWithARewrite, Some(Follows), scene("following to a version", 1, &[2], UPGRADE)),
        (Sabotage::LeavesItsEntry, Some(Owners), scene("following", 1, &[2], UPGRADE)),
        (Sabotage::IgnoresHiddenFields, Some(Hidden), scene("hiding", 0, &[0, 1, 2], CHANGES)),
        (Sabotage::ProvesNothing, Some(Persisted), scene("converting", 0, &[0], UPGRADE)),
        (
            Sabotage::BelievesEveryAnswer,
            Some(Persisted),
            scene("changing", 0, &[0], Bounds { behind: 2, ..UPGRADE }),
        ),
        (Sabotage::RemembersTooMuch, Some(Persisted), scene("removed", 0, &[0, 1, 2], CHANGES)),
        (Sabotage::SendsNoChangedValues, Some(Values), scene("changing", 0, &[2], LAGS)),
        (Sabotage::VerifiesNothing, Some(Persisted), scene("changing", 0, &[2], LAGS)),
        (
            Sabotage::BelievesInSilence,
            Some(Persisted),
            scene("changing", 0, &[2], Bounds { faults: 1, ..UPGRADE }),
        ),
        (Sabotage::MarksWhatItWrites, Some(Values), scene("changing", 0, &[0, 5], CHANGES)),
        (Sabotage::HearsNothing, None, scene("introduced", 0, &[0, 3], CHANGES)),
        (Sabotage::TakesStatusForStored, Some(Persisted), scene("stated", 1, &[0], USER)),
        (Sabotage::TrimsAhead, Some(Persisted), scene("serving", 4, &[0], UPGRADE)),
        (Sabotage::TrustsTheWebhook, Some(Hidden), scene("converting", 0, &[1], UPGRADE)),
        (
            Sabotage::ForgetsFormerDefaults,
            Some(Hidden),
            scene("rolling back", 1, &[3], Bounds { users: 1, upgrades: 2, ..NOTHING }),
        ),
        (Sabotage::ForgetsWhatWasServed, Some(Persisted), scene("serving", 0, &[1, 4], CHANGES)),
    ]
};

/// What was found within no bounds tried so far: it takes two replicas, an annotation, or several things at
/// certain moments.
/// Random lives, as of `just simulate`, are the check for these.
const ONLY_SIMULATED: [Sabotage; 6] = [
    Sabotage::DoubtsNothing,
    Sabotage::RecordsAhead,
    Sabotage::NeverAsksForTheGeneration,
    Sabotage::WritesWhatIsIgnored,
    Sabotage::GoesOnWithoutTheLease,
    Sabotage::TakesTheLeaseEarly,
];

fn shared(worlds: Vec<worlds::World>) -> Vec<Arc<worlds::World>> {
    worlds.into_iter().map(Arc::new).collect()
}

impl Scene {
    fn worlds(&self) -> Vec<Arc<worlds::World>> {
        let mut all = worlds::all();
        all.retain(|world| world.name == self.world);
        shared(all.into_iter().map(|world| world.cut(self.from, self.menu)).collect())
    }
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
        state = system.after(&state, &action.again());
        let trace = Arc::make_mut(&mut state.cluster).trace.as_mut().map(std::mem::take);
        lines.extend(trace.into_iter().flatten().map(|line| format!("    {line}")));
    }
    let broken = state.broken.map(|broken| broken.what).unwrap_or_default();
    format!("in {}: {broken}\n{}", state.cluster.resources()[0].world.name, lines.join("\n"))
}

#[test]
fn no_law_is_broken() -> Result<()> {
    let all = shared(chosen_worlds("MACHINES"));
    for bounds in bounds("MACHINES", &USUAL)? {
        explore(&format!("{bounds:?}"), &System::new(all.clone(), bounds, None))?;
    }
    Ok(())
}

#[test]
fn no_law_is_broken_where_more_happens() -> Result<()> {
    WIDER.iter().try_for_each(|scene| {
        explore(&format!("{scene:?}"), &System::new(scene.worlds(), scene.bounds, None))
    })
}

fn explore(what: &str, system: &System) -> Result<()> {
    let begun = Instant::now();
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
        "{what}: {} states, {} of them different, depth {}, {:.0} s",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f64()
    )?;
    for (name, path) in checker.discoveries() {
        ensure!(name == RESTS, "{name}\n{}", story(system, path));
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
    let mut listed: Vec<Sabotage> = FOUND.iter().map(|(sabotage, ..)| *sabotage).collect();
    listed.extend(ONLY_SIMULATED);
    let unlisted: Vec<_> = Sabotage::ALL.iter().filter(|sabotage| !listed.contains(sabotage)).collect();
    ensure!(unlisted.is_empty(), "in neither list: {unlisted:?}");
    let mut missed = Vec::new();
    for (sabotage, law, scene) in FOUND {
        if only.is_some_and(|only| only != sabotage) {
            continue;
        }
        let begun = Instant::now();
        let system = System::new(scene.worlds(), scene.bounds, Some(sabotage));
        let wanted = law.map_or(TRUE, laws::Law::name);
        let is_found = HasDiscoveries::AnyOf([wanted].into());
        let checker = system.checker().threads(2).finish_when(is_found).spawn_bfs().join();
        let mut found: Vec<&str> = checker.discoveries().into_keys().collect();
        found.retain(|name| *name != RESTS);
        writeln!(
            std::io::stderr(),
            "{sabotage:?} in {}: {found:?}, {} states, {:.1} s",
            scene.world,
            checker.unique_state_count(),
            begun.elapsed().as_secs_f64()
        )?;
        if !found.contains(&wanted) {
            missed.push(format!("{sabotage:?} breaks {wanted}, and {found:?} was found"));
        }
    }
    ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}

/// What the laws leave out, since Etch does not promise it: a change that fixes it takes it from
/// [`laws::broken`], and from `docs/reliability.md`.
#[test]
fn the_limits_are_where_the_docs_name_them() -> Result<()> {
    let bounds = Bounds { users: 1, behind: 2, ..UPGRADE };
    let crashes = Bounds { crashes: 1, upgrades: 2, behind: 2, ..NOTHING };
    for scene in [scene("changing", 0, &[2], crashes), scene("hiding", 1, &[1, 3], bounds)] {
        let mut system = System::new(scene.worlds(), scene.bounds, None);
        system.is_strict = true;
        let wanted = laws::Law::Values.name();
        let is_found = HasDiscoveries::AnyOf([wanted].into());
        let checker = system.checker().threads(2).finish_when(is_found).spawn_bfs().join();
        ensure!(checker.discovery(wanted).is_some(), "{} breaks nothing any more", scene.world);
    }
    Ok(())
}
