//! How long `etch audit` takes over many objects, beside a bare loop that lists the same pages and parses
//! them. Of what is reported about the objects it checks only that none is left out.

mod bare;
mod objects;
mod process;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::Value;

use super::figures::median;
use crate::cluster::Cluster;
use crate::control_plane::{ControlPlane, Options};
use crate::operator;

/// What is wanted: at least this part of the bare loop's speed, and at most this much resident memory.
pub const WANTED: Wanted = Wanted { speed: 0.8, peak_rss: 64 << 20 };

/// Bounds of an [`AuditMeasurement`].
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The bare loop's time by the audit's.
    pub speed: f64,
    /// Bytes.
    pub peak_rss: u64,
}

/// What was measured. Times are seconds; each round runs the bare loop and then the audit, over the same
/// objects of the same API server.
///
/// - The bare loop is in this process: a new client, the made-up CRD's list in pages of the size that Etch
///   asks for, one after the other, and `serde_json::from_slice::<Value>` of each page. It does nothing with
///   what it has parsed.
/// - The audit is the `etch` program, from its start to its end, with all it does beside: reading the
///   kubeconfig, the CRD and the report on it, judging each object, and printing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuditMeasurement {
    /// Objects that each of them saw.
    pub objects: u64,
    /// Bytes of JSON that the bare loop parsed in a round.
    pub bytes: u64,
    /// The bare loop's times.
    pub bare: Vec<f64>,
    /// The audit's times.
    pub audit: Vec<f64>,
    /// The median of each.
    pub bare_median: f64,
    /// See `bare_median`.
    pub audit_median: f64,
    /// The bare loop's median by the audit's: 1 is as fast, and less is slower.
    pub speed: f64,
    /// The most resident memory that any of the audits had, in bytes: `VmHWM`.
    pub peak_rss: u64,
}

impl AuditMeasurement {
    /// Whether it is as fast and as small as is wanted.
    pub fn is_good(&self) -> bool {
        self.speed >= WANTED.speed && self.peak_rss <= WANTED.peak_rss
    }
}

/// Starts a control plane with `objects` objects, and measures `rounds` times; progress goes to `say`.
///
/// # Errors
/// The control plane does not start, or an object is not seen by one of the two.
pub async fn measure(objects: u64, rounds: usize, say: &dyn Fn(&str)) -> anyhow::Result<AuditMeasurement> {
    ensure!(rounds > 0 && objects > 0, "there is nothing to measure");
    let etch = operator::binary()?;
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
    let cluster = Cluster::of(&control_plane).await?;
    say(&format!("writing {objects} objects to etcd"));
    objects::write(&cluster, objects).await?;
    let mut measured = AuditMeasurement { objects, ..AuditMeasurement::default() };
    // The first round of each warms the server's cache.
    for round in 0..=rounds {
        let bare = bare::list(control_plane.config(0).await?).await?;
        ensure!(bare.objects == objects, "the bare loop saw {} objects", bare.objects);
        let audit = audit(etch, &control_plane.kubeconfig(0), objects).await?;
        say(&format!(
            "round {round} of {rounds}: bare {:.2} s, audit {:.2} s",
            bare.time.as_secs_f64(),
            audit.time.as_secs_f64()
        ));
        if round == 0 {
            continue;
        }
        measured.bytes = bare.bytes;
        measured.bare.push(bare.time.as_secs_f64());
        measured.audit.push(audit.time.as_secs_f64());
        measured.peak_rss = measured.peak_rss.max(audit.peak_rss);
    }
    measured.bare_median = median(&measured.bare);
    measured.audit_median = median(&measured.audit);
    measured.speed = measured.bare_median / measured.audit_median;
    Ok(measured)
}

struct Audit {
    time: Duration,
    peak_rss: u64,
}

async fn audit(etch: &Path, kubeconfig: &Path, objects: u64) -> anyhow::Result<Audit> {
    let arguments = ["audit", objects::CRD, "-o", "json"];
    let process::Ended { time, peak_rss, output, .. } = process::run(etch, &arguments, kubeconfig).await?;
    let reported: Value = serde_json::from_slice(&output).context("the audit printed no JSON")?;
    let crd = &reported["crds"][0];
    ensure!(crd["objects"] == objects && crd["unknown"] == objects, "the audit saw something else: {crd}");
    Ok(Audit { time, peak_rss })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_slow_or_large_is_not_good() {
        let measured = |speed, peak_rss| AuditMeasurement { speed, peak_rss, ..AuditMeasurement::default() };
        assert!(measured(0.8, 64 << 20).is_good());
        assert!(!measured(0.79, 1).is_good());
        assert!(!measured(2.0, (64 << 20) + 1).is_good());
    }
}
