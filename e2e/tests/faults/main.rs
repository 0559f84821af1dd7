//! Faults between the operator and a real API server, and what must hold whatever they are: see `invariants.rs`.
//!
//! Plans share a control plane and an operator, and each has a CRD to itself: a rule of a plan befalls requests for its CRD
//! alone, save that an operator which is killed is killed for all. `FAULTS_SEED` shifts which workload meets which fault.

mod invariants;
mod plan;
mod rig;
mod workload;

use anyhow::{Result, ensure};

use crate::plan::Plan;
use crate::rig::Rig;

/// How many plans share an operator.
const TOGETHER: usize = 24;

#[tokio::test(flavor = "multi_thread")]
async fn no_fault_breaks_a_law() -> Result<()> {
    run(&plan::share()).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "all plans take half an hour: `just faults`"]
async fn no_fault_at_any_request_breaks_a_law() -> Result<()> {
    run(&plan::all()).await
}

async fn run(plans: &[Plan]) -> Result<()> {
    let mut broken = Vec::new();
    for together in plans.chunks(TOGETHER) {
        let rig = Rig::start().await?;
        broken.extend(rig.play(together).await?);
    }
    ensure!(broken.is_empty(), "{} of {} plans:\n{}", broken.len(), plans.len(), broken.join("\n"));
    Ok(())
}
