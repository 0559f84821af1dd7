//! The Lease and health on a runtime of their own, so that no other work delays them.

use std::sync::Arc;

use etch::cluster::{Cluster, Lease, Target};
use etch::metrics::Metrics;
use etch::server::{self, Readiness};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::commands::STACK;

/// A thread for the Lease and for health, which answers in time however large an object is.
pub(super) struct DedicatedRuntime(Option<Runtime>);

impl DedicatedRuntime {
    pub(super) fn new() -> std::io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .thread_name("etch-lease")
            .thread_stack_size(STACK)
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
        let listener = {
            let _entered = self.0.as_ref().map(Runtime::enter);
            TcpListener::from_std(listener)?
        };
        self.spawn(server::serve(listener, metrics, ready));
        Ok(())
    }

    /// A connection whose requests are sent and answered on this thread.
    pub(super) async fn connect(&self, target: &Target, metrics: Arc<Metrics>) -> anyhow::Result<Cluster> {
        let target = target.clone();
        let cluster = self.spawn(async move { Cluster::connect(&target).await }).await??;
        Ok(cluster.without_retries().counted_in(metrics))
    }
}

impl Drop for DedicatedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Holds the Lease, again and again, until the process is to end; `leads` is set while it is held. It is
/// released, or tried for again, when the leader's work has stopped (`working` is false).
pub(super) async fn hold(
    mut lease: Lease,
    ready: Arc<Readiness>,
    leads: watch::Sender<bool>,
    mut working: watch::Receiver<bool>,
    ended: CancellationToken,
) {
    loop {
        tokio::select! {
            // The Lease may have been acquired just now.
            () = ended.cancelled() => return lease.release().await,
            () = lease.acquire(|| ready.knows_the_leader()) => {},
        }
        leads.send_replace(true);
        tokio::select! {
            () = ended.cancelled() => {},
            () = lease.hold() => {},
        }
        leads.send_replace(false);
        // If the sender is gone, no work is under way.
        let _ = working.wait_for(|working| !working).await;
        if ended.is_cancelled() {
            return lease.release().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    const GUARD: Duration = Duration::from_secs(60);

    // In each of these the only thread of the test's own runtime is busy from when something is asked until
    // it is answered, as with an object that takes long.

    #[tokio::test]
    async fn health_is_answered_while_the_operator_is_busy() {
        let dedicated = DedicatedRuntime::new().expect("a thread");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        listener.set_nonblocking(true).expect("a socket");
        let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
        dedicated.serve(listener, Arc::default(), Arc::default()).expect("a server");
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(GUARD)).expect("a socket");
        stream
            .write_all(b"GET /livez HTTP/1.1\r\nhost: etch\r\nconnection: close\r\n\r\n")
            .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[tokio::test]
    async fn the_server_is_asked_for_the_lease_while_the_operator_is_busy() {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", server.local_addr().expect("its address"));
        thread::spawn(move || {
            let (mut stream, _) = server.accept().expect("a connection");
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a request");
                request.extend(byte);
            }
            stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").expect("a reader");
            thread::park();
        });
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        let document = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it", "users": [],
            "clusters": [{ "name": "it", "cluster": { "server": url } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "" } }],
        });
        std::fs::write(&kubeconfig, document.to_string()).expect("a file");
        let target = Target { context: None, kubeconfig: Some(kubeconfig) };
        let dedicated = DedicatedRuntime::new().expect("a thread");
        let cluster = dedicated.connect(&target, Arc::default()).await.expect("a client");
        let (sender, answered) = channel();
        dedicated.spawn(async move { sender.send(cluster.crd("any").await) });
        let answer = answered.recv_timeout(GUARD).expect("an answer");
        assert!(matches!(&answer, Err(error) if error.code() == Some(404)), "{answer:?}");
    }
}
