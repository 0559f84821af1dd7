//! What a restart costs where there are many objects, all of which store their defaults: how long until the operator is ready, and
//! until it stores what one more object lacks, which was changed meanwhile and is the last of the list.
//! It must not write to etcd while the operator runs.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::figures::rounded;
use super::objects;
use crate::ports::free_port;
use crate::probe;
use crate::scene::Scene;
use crate::usage::peak_memory;

/// Seconds until the operator is ready that are wanted.
pub const WANTED: f64 = 10.0;
/// How long a pass or a restart may take: a guard against hanging.
const LONG: Duration = Duration::from_secs(3_600);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// What was measured, in seconds from the start of the process: the longest of the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// How many objects there are.
    pub objects: usize,
    /// Their size in bytes.
    pub bytes: usize,
    /// Until `/readyz` answers 200.
    pub ready: f64,
    /// Until the object that was changed while no operator ran stores its default again.
    pub caught_up: f64,
    /// Writes of all other objects.
    pub writes: usize,
    /// The most memory that the operator ever had, in MiB.
    pub peak_mib: u64,
}

impl Measured {
    /// Whether it is as wanted.
    pub fn is_good(&self) -> bool {
        self.ready <= WANTED && self.writes == 0
    }
}

/// Measures on a control plane of its own; progress goes to `say`.
///
/// # Errors
/// The control plane or the operator does not start, or does not store what it should.
pub async fn measure(count: usize, bytes: usize, rounds: usize, say: &dyn Fn(&str)) -> Result<Measured> {
    ensure!(rounds > 0 && count > 1, "there is nothing to measure");
    let scene = Scene::start(&[objects::GROUP]).await?;
    let (cluster, last) = (&scene.cluster, count - 1);
    say(&format!("writing {count} objects of {bytes} bytes to etcd"));
    objects::write(cluster, 0..count, bytes).await?;
    cluster.apply_crd(&objects::release(1)).await?;
    say("having their default stored");
    let operator = scene.measured(&["--pace=fast"])?;
    cluster.persisted(objects::CRD, "AllPersisted", LONG).await?;
    operator.stop().await?;
    let of_others = |event: &serde_json::Value| {
        let object = &event["objectRef"];
        object["apiGroup"] == objects::GROUP
            && object["name"] != objects::name(last)
            && event["verb"].as_str().is_some_and(|verb| ["patch", "update"].contains(&verb))
    };
    let before = scene.requests(of_others)?.len();
    let (mut ready, mut caught_up, mut peak) = (0_f64, 0_f64, 0);
    for round in 1..=rounds {
        objects::write(cluster, last..count, bytes).await?;
        let port = free_port()?;
        let begun = Instant::now();
        let operator = scene.measured(&[&format!("--listen=127.0.0.1:{port}")])?;
        until(begun, async || Ok(probe::is_ok(port, "/readyz").await)).await?;
        let is_ready = begun.elapsed().as_secs_f64();
        until(begun, async || {
            let raw =
                cluster.raw(objects::GROUP, objects::PLURAL, Some("default"), &objects::name(last)).await?;
            Ok(raw["spec"][objects::newest(1)].is_number())
        })
        .await?;
        let is_stored = begun.elapsed().as_secs_f64();
        say(&format!("round {round}: ready in {is_ready:.2} s, caught up in {is_stored:.2} s"));
        (ready, caught_up) = (ready.max(is_ready), caught_up.max(is_stored));
        peak = peak.max(peak_memory(operator.id()?)?);
        operator.stop().await?;
    }
    let writes = scene.requests(of_others)?.len() - before;
    Ok(Measured {
        objects: count,
        bytes,
        ready: rounded(ready, 2),
        caught_up: rounded(caught_up, 2),
        writes,
        peak_mib: peak.div_ceil(1 << 20),
    })
}

async fn until(begun: Instant, mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    while !is_so().await? {
        ensure!(begun.elapsed() < LONG, "the operator has done nothing for an hour");
        sleep(LOOK).await;
    }
    Ok(())
}
