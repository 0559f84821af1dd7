//! How long an author of a CRD waits for `kubectl apply` of an upgrade, with the guard and without, where
//! there are many objects. Of what the guard finds it checks only that it is something.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::figures::{median, rounded};
use super::objects;
use crate::cluster::{Answer, CRDS, Cluster, GUARD, eventually};
use crate::scene::Scene;
use crate::serving::Serving;
use crate::usage::peak_memory;

/// Seconds that an upgrade may take with the guard.
pub const WANTED: f64 = 2.0;

/// What was measured. Times are seconds from the request to the answer.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// How many objects there are.
    pub objects: usize,
    /// Their size in bytes.
    pub bytes: usize,
    /// An upgrade without the guard, the median of the rounds.
    pub unguarded: f64,
    /// One that the guard warns of, the median of the rounds.
    pub guarded: f64,
    /// The longest of these.
    pub longest: f64,
    /// What the guard answered the last time.
    pub warnings: Vec<String>,
    /// The most memory that the operator ever had, in MiB.
    pub peak_mib: u64,
}

impl Measured {
    /// Whether it is as wanted.
    pub fn is_good(&self) -> bool {
        self.longest <= WANTED
    }
}

/// Measures on a control plane of its own; progress goes to `say`.
///
/// # Errors
/// The control plane or the operator does not start, or an upgrade is refused, or not warned of.
pub async fn measure(count: usize, bytes: usize, rounds: usize, say: &dyn Fn(&str)) -> Result<Measured> {
    ensure!(rounds > 0 && count > 0, "there is nothing to measure");
    let scene = Scene::start(&[objects::GROUP]).await?;
    let cluster = &scene.cluster;
    say(&format!("writing {count} objects of {bytes} bytes to etcd"));
    objects::write(cluster, count, bytes).await?;
    scene.policy("default", json!({ "mode": "Audit" })).await?;
    cluster.apply_crd(&objects::release(1)).await?;
    let (mut unguarded, mut guarded) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        unguarded.push(apply(cluster).await?.0);
    }
    let serving = Serving::prepare(&scene).await?;
    let [listen, url] = serving.flags();
    let operator = scene.measured(&[&listen, &url, &serving.mounted()])?;
    say("waiting until the operator has seen every object");
    cluster.persisted(objects::CRD, "AuditOnly", 30 * GUARD).await?;
    eventually(GUARD, "an upgrade is warned of", async || {
        Ok((!apply(cluster).await?.1.warnings.is_empty()).then_some(()))
    })
    .await?;
    let mut warnings = Vec::new();
    for round in 1..=rounds {
        let (seconds, answer) = apply(cluster).await?;
        ensure!(!answer.warnings.is_empty(), "round {round} was not warned of");
        say(&format!("round {round}: {seconds:.2} s"));
        guarded.push(seconds);
        warnings = answer.warnings;
    }
    let peak = peak_memory(operator.id()?)?;
    operator.stop().await?;
    Ok(Measured {
        objects: count,
        bytes,
        unguarded: rounded(median(&unguarded), 3),
        guarded: rounded(median(&guarded), 3),
        longest: rounded(guarded.iter().copied().fold(0.0, f64::max), 3),
        warnings,
        peak_mib: peak.div_ceil(1 << 20),
    })
}

/// Applies an upgrade by which every object shows another value, as a dry run; how long that took, and the
/// answer.
async fn apply(cluster: &Cluster) -> Result<(f64, Answer)> {
    let body = serde_json::to_vec(&upgrade()?)?;
    let path = format!("{CRDS}/{}?fieldManager=author&force=true&dryRun=All", objects::CRD);
    let begun = Instant::now();
    let answer = cluster.send("PATCH", &path, "application/apply-patch+yaml", body).await?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(answer.code == 200, "the upgrade is refused: {}", answer.body);
    Ok((seconds, answer))
}

/// The release that is served, with another default.
fn upgrade() -> Result<Value> {
    let mut crd = objects::release(1);
    let field = objects::newest(1);
    let default =
        format!("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/{field}/default");
    *crd.pointer_mut(&default).context("a default")? = json!(1_000);
    Ok(crd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upgrade_changes_one_default() {
        let upgrade = upgrade().expect("an upgrade");
        let text = |crd: &Value| crd.to_string();
        assert_ne!(upgrade, objects::release(1));
        assert_eq!(text(&upgrade).replace("1000", "0"), text(&objects::release(1)));
    }
}
