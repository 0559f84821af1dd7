//! Runs a control plane until a signal stops it.
//!
//! Everything but the command line and the signals is in `e2e::control_plane`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program talks to its user")]

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use clap::Parser;
use e2e::control_plane::{Binaries, ControlPlane, Kubernetes, Options};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Starts etcd, kube-apiserver and the controllers that are asked for on loopback, prints `ready`, and serves
/// until SIGINT or SIGTERM.
///
/// What is missing is built with go, once. `KUBEBUILDER_ASSETS` may name a folder with `etcd` and
/// `kube-apiserver`, which are then used as they are.
#[derive(Parser)]
struct Arguments {
    /// Holds the data, logs and kubeconfigs: kubeconfig (kubeconfig-1, … for further servers),
    /// endpoints.json, audit.log (audit-1.log, …), kube-apiserver.log, etcd.log. Made if missing; the data
    /// of an earlier run are used again.
    #[arg(long, required_unless_present = "build_only")]
    dir: Option<PathBuf>,
    /// The number of API servers on the one etcd.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    apiservers: u8,
    /// The Kubernetes release [default: `E2E_KUBERNETES`, else the newest supported one].
    #[arg(long, value_name = "X.Y", value_parser = Kubernetes::supported_release)]
    kubernetes: Option<Kubernetes>,
    /// Controllers of kube-controller-manager that run, such as `clusterrole-aggregation-controller`, with
    /// commas between them [default: none].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    controllers: Vec<String>,
    /// Have etcd speak TLS, and answer only to `DIR/pki/etcd-client.crt`; its certificate authority is
    /// `DIR/pki/etcd-ca.crt`.
    #[arg(long)]
    etcd_tls: bool,
    /// Build what is missing, and start nothing.
    #[arg(long)]
    build_only: bool,
    /// Further flags for every API server.
    #[arg(last = true)]
    apiserver_flags: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("control-plane: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<()> {
    let Arguments { dir, apiservers, kubernetes, controllers, etcd_tls, build_only, apiserver_flags } =
        arguments;
    let mut stop = Stop::new()?;
    if build_only {
        let kubernetes = kubernetes.map_or_else(Kubernetes::meant, Ok)?;
        return stop.or(build(&kubernetes, !controllers.is_empty())).await.unwrap_or(Ok(()));
    }
    let dir = dir.context("--dir is missing")?;
    let options =
        Options { dir, apiservers: apiservers.into(), kubernetes, apiserver_flags, controllers, etcd_tls };
    let Some(started) = stop.or(ControlPlane::start(options)).await else { return Ok(()) };
    let mut control_plane = started?;
    println!("ready");
    while stop.or(tokio::time::sleep(Duration::from_millis(500))).await.is_some() {
        control_plane.check()?;
    }
    Ok(())
}

/// Builds what is missing of a release.
async fn build(kubernetes: &Kubernetes, with_controllers: bool) -> Result<()> {
    let binaries = Binaries::ensure(kubernetes).await?;
    if with_controllers {
        binaries.kube_controller_manager().await?;
    }
    Ok(())
}

/// The two signals that end this program, in the regular way.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn new() -> Result<Self> {
        let on = |kind| signal(kind).context("listen for signals");
        Ok(Self { interrupt: on(SignalKind::interrupt())?, terminate: on(SignalKind::terminate())? })
    }

    /// The result of `work`, or `None` if a signal comes first; `work` is dropped then.
    async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            _ = self.interrupt.recv() => None,
            _ = self.terminate.recv() => None,
            result = work => Some(result),
        }
    }
}
