//! `etch run`: the operator.

mod admission;
mod dedicated_runtime;
mod heap;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ArgAction, Args};
use etch::cluster::{Cluster, Lease, MAX_IN_FLIGHT, Target};
use etch::operator::{Clock, Operator, Options};
use etch::server::Readiness;
use etch::tasks::Tasks;
use etch_core::engine::lease;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::commands::outcome::Outcome;
use crate::commands::values::{PaceArg, duration, in_flight, namespace};
use admission::{AdmissionFlags, Running};
use dedicated_runtime::{DedicatedRuntime, hold};
pub(crate) use heap::share as share_heap;

/// Run the operator: watch CRDs, and store their defaults
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// How long to wait after a schema change before writing objects
    #[arg(long, env = "ETCH_SETTLE", value_name = "TIME", default_value = "10s", value_parser = duration)]
    settle: Duration,
    /// The maximum number of writes in flight
    #[arg(long, env = "ETCH_MAX_IN_FLIGHT", value_name = "NUMBER", default_value_t = MAX_IN_FLIGHT)]
    #[arg(value_parser = in_flight)]
    max_in_flight: usize,
    /// The maximum number of writes per second [default: no limit]
    #[arg(long, env = "ETCH_MAX_WRITES_PER_SECOND", value_name = "NUMBER")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    max_writes_per_second: Option<u32>,
    /// How to share the API server with other clients
    #[arg(long, env = "ETCH_PACE", value_enum, default_value_t)]
    pace: PaceArg,
    /// Elect a leader, so that only one replica writes
    #[arg(long, env = "ETCH_LEADER_ELECT", default_value_t = true, action = ArgAction::Set)]
    leader_elect: bool,
    /// The namespace of the Lease for leader election
    #[arg(long, env = "ETCH_LEASE_NAMESPACE", default_value = "etch-system", value_parser = namespace)]
    lease_namespace: String,
    /// The address to serve health and metrics on
    #[arg(long, env = "ETCH_LISTEN", default_value = "[::]:8080")]
    listen: SocketAddr,
    #[command(flatten)]
    admission: AdmissionFlags,
}

/// Listens at an address. `[::]` stands for all addresses, IPv4 included, also where the kernel has no IPv6.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error)
            if address.ip() == Ipv6Addr::UNSPECIFIED
                && !matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) =>
        {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
}

impl Run {
    pub(crate) async fn run(self, target: &Target) -> anyhow::Result<Outcome> {
        // Install signal handlers first, so that no signal interrupts the start.
        let ended = CancellationToken::new();
        let signals = tokio::spawn(ended_by_signal(ended.clone())?);
        let cluster = Cluster::connect(target).await?.without_retries();
        let dedicated = DedicatedRuntime::new()?;
        let lease = match self.leader_elect {
            true => {
                let lease = dedicated.connect(target, cluster.metrics().clone()).await?;
                Some(Lease::new(lease, &self.lease_namespace, lease::NAME, &identity()))
            }
            false => None,
        };
        let options = Options {
            settle: self.settle,
            max_in_flight: self.max_in_flight,
            max_writes_per_second: self.max_writes_per_second,
            pace: self.pace.into(),
            instance: host(),
            clock: Clock::default(),
            set_back: lease.as_ref().map(Lease::set_back),
        };
        let listener = bind(self.listen).await.with_context(|| format!("--listen {}", self.listen))?;
        let listening = listener.local_addr()?;
        let ready = Arc::new(Readiness::default());
        dedicated.serve(listener, cluster.metrics().clone(), ready.clone())?;
        info!(version = env!("CARGO_PKG_VERSION"), %listening, "etch started");
        let gone = tokio::spawn(first_gone(ready.tasks().clone(), ended.clone()));
        let operator = Operator::start(cluster.clone(), options, ready.clone());
        let policies = operator.policy_lookup();
        let rate = self.max_writes_per_second;
        let admission =
            self.admission.start(&cluster, &self.lease_namespace, &ready, &ended, policies, rate).await?;
        let work = Work { operator, admission };
        if let Some(lease) = lease {
            let (leads, working) = (watch::Sender::new(false), watch::Sender::new(false));
            let led = leads.subscribe();
            let held = dedicated.spawn(hold(lease, ready, leads, working.subscribe(), ended.clone()));
            lead(&cluster, &work, led, &working).await;
            held.await?;
        } else {
            ready.knows_the_leader();
            cluster.metrics().leader.set(1);
            work.lead(ended.clone().cancelled_owned()).await;
        }
        ended.cancel();
        if let Some(admission) = work.admission {
            admission.end().await;
        }
        signals.abort();
        if let Some(task) = gone.await? {
            bail!(
                "the task that {task} has ended, so Etch would not notice changes; a panic is reported above"
            );
        }
        Ok(Outcome::Clean)
    }
}

/// What a replica does.
struct Work {
    operator: Operator,
    admission: Option<Running>,
}

impl Work {
    /// The leader's work, until `over` is ready.
    async fn lead(&self, over: impl Future<Output = ()>) {
        let admission = async {
            match &self.admission {
                Some(admission) => admission.lead().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.operator.lead(over) => {}
            never = admission => match never {},
        }
    }
}

/// Works for as long as the Lease is held, again and again, until [`hold`] has ended.
async fn lead(
    cluster: &Cluster,
    work: &Work,
    mut leads: watch::Receiver<bool>,
    working: &watch::Sender<bool>,
) {
    // Where `hold` has panicked, the last value is still there.
    while leads.wait_for(|leads| *leads).await.is_ok() && leads.has_changed().is_ok() {
        // This order matters: the Lease cannot be released between the two lines.
        working.send_replace(true);
        if *leads.borrow() {
            cluster.metrics().leader.set(1);
            let mut over = leads.clone();
            work.lead(async move { drop(over.wait_for(|leads| !leads).await) }).await;
            cluster.metrics().leader.set(0);
            cluster.metrics().forget_all();
        }
        working.send_replace(false);
    }
}

/// The first of the tasks that has ended before the process is to end; then that is to end, too.
async fn first_gone(tasks: Tasks, ended: CancellationToken) -> Option<&'static str> {
    tokio::select! {
        task = tasks.ended() => {
            ended.cancel();
            Some(task)
        }
        () = ended.cancelled() => None,
    }
}

/// A name that no other process has: the pod's, and a part that changes with every start.
fn identity() -> String {
    format!("{}_{}-{}", host(), std::process::id(), jiff::Timestamp::now().as_nanosecond())
}

/// The pod's name.
fn host() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_| "etch".to_owned())
}

fn ended_by_signal(ended: CancellationToken) -> std::io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {},
            _ = interrupt.recv() => {},
        }
        ended.cancel();
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_task_ends_the_process() {
        let (tasks, ended) = (Tasks::default(), CancellationToken::new());
        let gone = tokio::spawn(first_gone(tasks.clone(), ended.clone()));
        tasks.spawn("counts", async {});
        assert_eq!(gone.await.expect("no panic"), Some("counts"));
        assert!(ended.is_cancelled());
        let ended = CancellationToken::new();
        ended.cancel();
        assert_eq!(first_gone(Tasks::default(), ended).await, None);
    }
}
