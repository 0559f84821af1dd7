//! What a restart costs where there are many objects, all of which store their defaults: how long until the
//! operator is ready, and until it has looked at each of them; and what it writes meanwhile. Nothing changes
//! between two runs of the operator.

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
const GUARD: Duration = Duration::from_secs(1_800);
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
    /// Until the pass over all objects has ended.
    pub passed: f64,
    /// Writes of objects, dry runs included.
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
    ensure!(rounds > 0 && count > 0, "there is nothing to measure");
    let scene = Scene::start(&[objects::GROUP]).await?;
    let cluster = &scene.cluster;
    say(&format!("writing {count} objects of {bytes} bytes to etcd"));
    objects::write(cluster, count, bytes).await?;
    cluster.apply_crd(&objects::release(1)).await?;
    say("having their default stored");
    let operator = scene.measured(&["--pace=fast"])?;
    cluster.persisted(objects::CRD, "AllPersisted", GUARD).await?;
    operator.stop().await?;
    let writes = || scene.requests_to(objects::GROUP, &["patch", "update"]);
    let before = writes()?;
    let (mut ready, mut passed, mut peak) = (0_f64, 0_f64, 0);
    for round in 1..=rounds {
        let port = free_port()?;
        let begun = Instant::now();
        let operator = scene.measured(&[&format!("--listen=127.0.0.1:{port}")])?;
        let is_ready = until(begun, async || probe::is_ok(port, "/readyz").await).await?;
        let has_passed = until(begun, async || {
            let metrics = probe::ask(port, "/metrics").await.unwrap_or_default();
            metrics.lines().any(|line| line == "etch_pass_duration_seconds_count 1")
        })
        .await?;
        say(&format!("round {round}: ready in {is_ready:.2} s, the pass has ended in {has_passed:.2} s"));
        (ready, passed) = (ready.max(is_ready), passed.max(has_passed));
        peak = peak.max(peak_memory(operator.id()?)?);
        operator.stop().await?;
    }
    Ok(Measured {
        objects: count,
        bytes,
        ready: rounded(ready, 2),
        passed: rounded(passed, 2),
        writes: writes()? - before,
        peak_mib: peak.div_ceil(1 << 20),
    })
}

/// Waits; how long that was, in seconds from `begun`.
async fn until(begun: Instant, is_so: impl AsyncFn() -> bool) -> Result<f64> {
    while !is_so().await {
        ensure!(begun.elapsed() < GUARD, "the operator does nothing");
        sleep(LOOK).await;
    }
    Ok(begun.elapsed().as_secs_f64())
}
