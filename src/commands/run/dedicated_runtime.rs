//! The Lease and health, which nothing else in the process may hold up.
//! It must not do what holding the Lease is for.

use std::sync::Arc;

use etch::cluster::{Cluster, Lease, Target};
use etch::metrics::Metrics;
use etch::server::{self, Readiness};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A thread for the Lease and for health, which answers in time however large an object is.
pub(super) struct DedicatedRuntime(Option<Runtime>);

impl DedicatedRuntime {
    pub(super) fn new() -> std::io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .thread_name("etch-lease")
            .enable_all()
            .build()
            .map(|runtime| Self(Some(runtime)))
    }

    pub(super) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let runtime = self.0.as_ref().expect("it is there until this is dropped");
        runtime.spawn(future)
    }

    /// Serves health and metrics for as long as this lives.
    pub(super) fn serve(
        &self,
        listener: TcpListener,
        metrics: Arc<Metrics>,
        ready: Arc<Readiness>,
    ) -> std::io::Result<()> {
        let listener = listener.into_std()?;
        self.spawn(async move { server::serve(TcpListener::from_std(listener)?, metrics, ready).await });
        Ok(())
    }

    /// A connection whose requests are sent and answered on this thread.
    pub(super) async fn connect(&self, target: &Target, metrics: Arc<Metrics>) -> anyhow::Result<Cluster> {
        let target = target.clone();
        let cluster = self.spawn(async move { Cluster::connect(&target).await }).await??;
        Ok(cluster.counted_in(metrics))
    }
}

impl Drop for DedicatedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Holds the Lease, again and again, until the process is to end; `leads` is set while it is held. It is given up, or tried for
/// anew, when nobody is `working` any more.
pub(super) async fn hold(
    mut lease: Lease,
    ready: Arc<Readiness>,
    leads: watch::Sender<bool>,
    mut working: watch::Receiver<bool>,
    ended: CancellationToken,
) {
    loop {
        tokio::select! {
            // It may have become ours in this very moment.
            () = ended.cancelled() => return lease.release().await,
            () = lease.acquire(|| ready.knows_the_leader()) => {},
        }
        leads.send_replace(true);
        tokio::select! {
            () = ended.cancelled() => {},
            () = lease.hold() => {},
        }
        leads.send_replace(false);
        // Where the other side is gone, nobody works.
        let _ = working.wait_for(|working| !working).await;
        if ended.is_cancelled() {
            return lease.release().await;
        }
    }
}
