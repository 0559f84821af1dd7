//! Lives of whole clusters in the simulator: none breaks a law, and each law that is broken on purpose is
//! found.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;
use simulator::laws::{self, Law};
use simulator::life::Life;
use simulator::sabotage::Sabotage;
use simulator::server::Content;
use simulator::worlds::{self, World};

/// The seeds of the usual run.
const USUAL: std::ops::Range<u64> = 100_000..104_000;
/// In so many lives each sabotage is found that the simulator knows.
const FOUND: u64 = 1200;
/// The same for [`FOUND_LATE`].
const FOUND_LATE_IN: u64 = 4000;

/// Sabotages that lives of all worlds find.
const FOUND_ANYWHERE: [Sabotage; 23] = [
    Sabotage::ForgetsFormerDefaults,
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
    Sabotage::TrimsAhead,
    Sabotage::TrustsTheWebhook,
    Sabotage::WritesWhatIsIgnored,
    Sabotage::GoesOnWithoutTheLease,
    Sabotage::TakesTheLeaseEarly,
];

/// Those that take what few lives of all worlds have, and the world whose lives find them.
const FOUND_IN: [(Sabotage, &str); 5] = [
    (Sabotage::TakesStatusForStored, "stated"),
    (Sabotage::ForgetsWhatWasServed, "serving"),
    (Sabotage::FollowsNothing, "following"),
    (Sabotage::FollowsWhatIsOwned, "following"),
    (Sabotage::EndsWithARewrite, "following to a version"),
];

/// Those that few lives find, of all worlds or of one: such as a field that goes at the very moment of a
/// write.
const FOUND_LATE: [(Sabotage, Option<&str>); 2] = [
    (Sabotage::DoubtsNothing, Some("changing beside another")),
    (Sabotage::NeverAsksForTheGeneration, Some("losing a field")),
];

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
    let missed: Vec<_> = FOUND_ANYWHERE
        .into_iter()
        .map(|sabotage| (sabotage, None, FOUND))
        .chain(FOUND_IN.into_iter().map(|(sabotage, world)| (sabotage, Some(world), FOUND)))
        .chain(FOUND_LATE.into_iter().map(|(sabotage, world)| (sabotage, world, FOUND_LATE_IN)))
        .filter(|(sabotage, world, lives)| !is_found(*sabotage, *world, *lives))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

fn is_found(sabotage: Sabotage, world: Option<&str>, lives: u64) -> bool {
    let mut worlds = worlds();
    worlds.retain(|known| world.is_none_or(|world| known.name == world));
    (0..lives).any(|seed| Life::of(seed, &worlds, Some(sabotage)).live().is_err())
}

/// An old default is stored through a server that lags behind: a limit where the dry run was refused that
/// asks whether etcd holds it, and a broken law otherwise.
#[test]
fn an_old_default_may_be_stored_only_where_the_question_about_it_was_refused() {
    let worlds = worlds();
    let world = worlds.iter().find(|world| world.name == "changing").expect("there is one");
    let (old, new) = (&world.releases[1], &world.releases[2]);
    let content =
        |spec| Content { version: "v1".to_owned(), value: json!({ "spec": spec }), owners: Vec::new() };
    let (before, after) = (content(json!({})), content(json!({ "size": 1 })));
    let [size, note] = [".spec.size", ".spec.note"].map(|path| vec![path.to_owned()]);
    for (server, doubtful, law) in [
        (Some(old), &size, None),
        (Some(old), &note, Some(Law::Values)),
        (Some(new), &size, Some(Law::Values)),
        (None, &size, Some(Law::Values)),
    ] {
        let releases = (new, server, Some(new), &[][..]);
        assert_eq!(laws::broken(world, releases, (&before, &after), false, doubtful), law, "{doubtful:?}");
    }
}
