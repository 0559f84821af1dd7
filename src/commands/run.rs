//! `etch run`: the operator.

use std::time::Duration;

use clap::Args;
use etch::cluster::{Cluster, Target};
use etch::controller::{self, Options};
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

/// Runs the operator: watches CRDs and has their defaults stored
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// How long a changed schema must stand before objects are written
    #[arg(long, env = "ETCH_SETTLE", default_value = "10s", value_parser = humantime::parse_duration)]
    settle: Duration,
    /// How many writes may be under way at once
    #[arg(long, env = "ETCH_MAX_IN_FLIGHT", default_value_t = 16)]
    max_in_flight: usize,
    /// How many writes may begin per second [default: no limit]
    #[arg(long, env = "ETCH_MAX_WRITES_PER_SECOND", value_parser = clap::value_parser!(u32).range(1..))]
    max_writes_per_second: Option<u32>,
}

impl Run {
    pub(crate) async fn run(self, target: &Target) -> anyhow::Result<()> {
        let cluster = Cluster::connect(target).await?;
        let options = Options {
            settle: self.settle,
            max_in_flight: self.max_in_flight,
            max_writes_per_second: self.max_writes_per_second,
        };
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let shutdown = async move {
            tokio::select! {
                _ = terminate.recv() => {},
                _ = interrupt.recv() => {},
            }
        };
        info!(version = env!("CARGO_PKG_VERSION"), "etch begins");
        controller::run(cluster, options, shutdown).await;
        Ok(())
    }
}
