//! `etch run`: the operator.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{ArgAction, Args};
use etch::cluster::{Cluster, Lease, Target};
use etch::controller::{Operator, Options};
use etch::server::{self, Readiness};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::commands::outcome::Outcome;
use crate::commands::values::{duration, in_flight};

/// Run the operator: watch CRDs, and store their defaults
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// How long to wait after a schema changed before objects are written
    #[arg(long, env = "ETCH_SETTLE", value_name = "TIME", default_value = "10s", value_parser = duration)]
    settle: Duration,
    /// How many writes may be in flight at once
    #[arg(long, env = "ETCH_MAX_IN_FLIGHT", value_name = "NUMBER", default_value_t = 16, value_parser = in_flight)]
    max_in_flight: usize,
    /// How many writes may start per second [default: no limit]
    #[arg(long, env = "ETCH_MAX_WRITES_PER_SECOND", value_parser = clap::value_parser!(u32).range(1..))]
    max_writes_per_second: Option<u32>,
    /// Elect a leader, so that only one replica writes
    #[arg(long, env = "ETCH_LEADER_ELECT", default_value_t = true, action = ArgAction::Set)]
    leader_elect: bool,
    /// The namespace of the Lease for leader election
    #[arg(long, env = "ETCH_LEASE_NAMESPACE", default_value = "etch-system")]
    lease_namespace: String,
    /// The address to serve health and metrics on
    #[arg(long, env = "ETCH_LISTEN", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
}

impl Run {
    pub(crate) async fn run(self, target: &Target) -> anyhow::Result<Outcome> {
        // First, so that no signal ends the process in the middle.
        let ended = CancellationToken::new();
        let signals = tokio::spawn(ended_by_signal(ended.clone())?);
        let cluster = Cluster::connect(target).await?;
        let options = Options {
            settle: self.settle,
            max_in_flight: self.max_in_flight,
            max_writes_per_second: self.max_writes_per_second,
            instance: host(),
        };
        let listener =
            TcpListener::bind(self.listen).await.with_context(|| format!("--listen {}", self.listen))?;
        let listening = listener.local_addr()?;
        let ready = Arc::new(Readiness::default());
        let server = tokio::spawn(server::serve(listener, cluster.metrics().clone(), ready.clone()));
        info!(version = env!("CARGO_PKG_VERSION"), %listening, "etch starts");
        let operator = Operator::start(cluster.clone(), options, ready.clone());
        if self.leader_elect {
            self.lead(&cluster, &operator, &ready, &ended).await;
        } else {
            ready.knows_the_leader();
            cluster.metrics().leader.set(1);
            operator.lead(ended.cancelled_owned()).await;
        }
        signals.abort();
        server.abort();
        Ok(Outcome::Clean)
    }

    /// Works for as long as the lease is held, again and again, until the process is to end.
    async fn lead(
        &self,
        cluster: &Cluster,
        operator: &Operator,
        ready: &Readiness,
        ended: &CancellationToken,
    ) {
        let mut lease = Lease::new(cluster.clone(), &self.lease_namespace, "etch", &identity());
        loop {
            tokio::select! {
                // It may have become ours in this very moment.
                () = ended.cancelled() => return lease.release().await,
                () = lease.acquire(|| ready.knows_the_leader()) => {},
            }
            cluster.metrics().leader.set(1);
            let over = async {
                tokio::select! {
                    () = ended.cancelled() => {},
                    () = lease.hold() => {},
                }
            };
            operator.lead(over).await;
            cluster.metrics().leader.set(0);
            cluster.metrics().forget_all();
            if ended.is_cancelled() {
                return lease.release().await;
            }
        }
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
