//! How long Etch takes to predict the API server's verdict on whole CRDs.
//! The differential campaigns check the verdicts.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use kube_crd_validation::crd::validate_create;
use kube_structural_schema::json::Json;
use serde::Serialize;
use serde_json::{Value, json};

use super::figures::rounded;
use crate::differential::crds;

/// How large the large CRD is at least, in bytes.
const LARGE: usize = 1_000_000;
/// How often each CRD is judged; the best time counts.
const ROUNDS: usize = 5;

/// What is wanted: the large CRD, and all of a folder.
pub const WANTED: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// What was measured. Times are of one core, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Verdicts {
    /// How many CRDs there are.
    pub crds: usize,
    /// Their size as JSON.
    pub bytes: usize,
    /// Judging all of them, decoding included.
    pub all_ms: f64,
    /// The one that takes longest.
    pub slowest: String,
    /// Its time.
    pub slowest_ms: f64,
    /// The size of a CRD that is made of versions of the largest one.
    pub large_bytes: usize,
    /// Judging it.
    pub large_ms: f64,
}

impl Verdicts {
    /// Whether nothing is slower than is wanted.
    pub fn is_good(&self) -> bool {
        let (large, all) = WANTED;
        self.large_ms <= 1e3 * large.as_secs_f64() && self.all_ms <= 1e3 * all.as_secs_f64()
    }
}

/// Judges the CRDs of the YAML files below a folder as if each were created on the newest release.
///
/// # Errors
/// A file cannot be read, or there is no CRD.
pub fn measure(folder: &Path) -> anyhow::Result<Verdicts> {
    let crds = crds(folder)?;
    ensure!(!crds.is_empty(), "{} holds no CRD", folder.display());
    let sizes: Vec<usize> = crds.iter().map(|crd| crd.to_vec().len()).collect();
    let times: Vec<f64> = crds.iter().map(judged).collect();
    let (slowest, slowest_ms) = times
        .iter()
        .enumerate()
        .fold((0, 0.0), |most, (index, time)| if *time > most.1 { (index, *time) } else { most });
    let largest = sizes.iter().enumerate().max_by_key(|(_, size)| **size).map_or(0, |(index, _)| index);
    let large = enlarged(&crds[largest]);
    Ok(Verdicts {
        crds: crds.len(),
        bytes: sizes.iter().sum(),
        all_ms: rounded(times.iter().sum(), 2),
        slowest: crds[slowest]["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        slowest_ms: rounded(slowest_ms, 2),
        large_bytes: large.to_vec().len(),
        large_ms: rounded(judged(&large), 2),
    })
}

/// The best time of one verdict, in milliseconds.
fn judged(crd: &Json) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        let _ = black_box(validate_create(black_box(crd)));
        start.elapsed().as_secs_f64() * 1e3
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// A CRD with as many versions as make it large, no two of which have the same schema.
fn enlarged(crd: &Json) -> Json {
    let mut large = crd.clone();
    let Some(first) = crd["spec"]["versions"].get(0).cloned() else { return large };
    while large.to_vec().len() < LARGE {
        let Some(versions) = large["spec"]["versions"].as_array_mut() else { break };
        let mut version = first.clone();
        version["name"] = format!("v{}alpha1", versions.len() + 1).into();
        version["storage"] = json!(false);
        version["schema"]["openAPIV3Schema"]["description"] = Value::from(versions.len().to_string());
        versions.push(version);
    }
    large
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_crd_is_as_sound_as_what_it_is_made_of() {
        let small = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "properties": {"spec": {"type": "string",
                        "description": "x".repeat(100_000)}}}}}]}});
        let large = enlarged(&small.into());
        assert!(large.to_vec().len() >= LARGE);
        assert_eq!(validate_create(&large).expect("decodes"), []);
    }
}
