//! Observes the write matrix of a release and writes it to `e2e/matrix/RELEASE`.
//!
//! Everything but the command line is in `e2e::matrix`.

#![expect(clippy::print_stderr, reason = "a command line program talks to its user")]

use std::fs;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use e2e::control_plane::Kubernetes;
use e2e::matrix::{Data, Observer, World};
use futures::stream::{self, StreamExt};

/// Observes on a real API server what each kind of request leaves in etcd.
#[derive(Parser)]
struct Arguments {
    /// The Kubernetes release [default: `E2E_KUBERNETES`, else the newest supported one].
    #[arg(long, value_name = "X.Y", value_parser = Kubernetes::supported_release)]
    kubernetes: Option<Kubernetes>,
    /// How many worlds are observed at once.
    #[arg(long, default_value_t = 3)]
    together: usize,
    /// Observe these worlds, and keep what is known of the others [default: all].
    worlds: Vec<World>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("matrix: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(Arguments { kubernetes, together, worlds }: Arguments) -> Result<()> {
    let start = Instant::now();
    let observer = Observer::start(kubernetes).await?;
    let release = observer.kubernetes().to_string();
    let mut data = if worlds.is_empty() { Data::default() } else { Data::read(&release).unwrap_or_default() };
    let worlds = if worlds.is_empty() { World::all() } else { worlds };
    let of = &observer;
    let mut observed = stream::iter(worlds)
        .map(|world| async move { (world, of.observe(world).await) })
        .buffer_unordered(together);
    while let Some((world, result)) = observed.next().await {
        let (outcomes, parts) = result?;
        eprintln!("matrix: {world}: {} cells, {} s", outcomes.len(), start.elapsed().as_secs());
        data.add(world, outcomes, parts)?;
    }
    drop(observed);
    fs::create_dir_all(Data::folder(&release))?;
    for file in data.files(&release)? {
        eprintln!("matrix: {} {} bytes", file.name, file.text.len());
        fs::write(&file.path, file.text).with_context(|| format!("write {}", file.name))?;
    }
    Ok(())
}
