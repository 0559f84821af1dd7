//! The simulator's API server answers random requests as a real one does.
//!
//! `CONFORM_SEQUENCES` is how many sequences of requests are sent, `CONFORM_SEED` the seed of the first one,
//! and `CONFORM_WORLD` the world of all of them.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::Result;
use e2e::cluster::Cluster;
use e2e::control_plane::{ControlPlane, Kubernetes, Options};
use futures::stream::{self, StreamExt, TryStreamExt};
use simulator::bounds::{chosen_worlds, number};
use simulator::server::Untypable;
use simulator::worlds::World;

use crate::twins;

/// How many sequences the usual run sends, how many steps each of them has, and how many go on at once.
const USUAL: usize = 12;
const STEPS: usize = 24;
const AT_ONCE: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn the_simulators_server_answers_as_a_real_one() -> Result<()> {
    let sequences = number("CONFORM_SEQUENCES")?;
    let seed =
        number("CONFORM_SEED")?.unwrap_or(if sequences.is_some() { fastrand::usize(..1 << 32) } else { 1 });
    let sequences = sequences.unwrap_or(USUAL);
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
    let cluster = Cluster::of(&control_plane).await?;
    let worlds = worlds(*control_plane.kubernetes() >= Kubernetes::supported_release("1.37")?);
    let seeds = (0..sequences).map(|index| seed.wrapping_add(index) as u64);
    let requests: usize = stream::iter(seeds)
        .map(|seed| twins::compare(&cluster, &worlds, seed, STEPS))
        .buffer_unordered(AT_ONCE)
        .try_fold(0, async |sum, requests| Ok(sum + requests))
        .await?;
    writeln!(std::io::stderr(), "{sequences} sequences, {requests} requests; CONFORM_SEED={seed}")?;
    Ok(())
}

/// The worlds that a real server can be in: no webhook runs there, and the write matrix shows what one does.
fn worlds(keeps_owners: bool) -> Vec<Arc<World>> {
    let mut worlds = chosen_worlds("CONFORM");
    worlds.retain(|world| world.webhook_knows.is_none() && world.unserved.is_empty());
    let untypable = if keeps_owners { Untypable::Keeps } else { Untypable::Wipes };
    worlds.into_iter().map(|world| Arc::new(World { untypable, ..world })).collect()
}
