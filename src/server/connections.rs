//! Accepts connections: each one gets a slot, and ends when it loses the slot.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::connection_slots::{ConnectionSlot, ConnectionSlots, Limits};

/// The wait after a connection could not be accepted, usually because the process has no file descriptor
/// left.
const AFTER_FAILURE: Duration = Duration::from_millis(200);
/// How much of a head is read, and of a body at once.
pub(super) const BUFFER: usize = 16 << 10;
/// How many headers a request has.
pub(super) const HEADERS: usize = 64;

/// Accepts connections until `over` is ready, and serves each one while it has a slot.
/// Those that are under way then are returned; they end with what is returned.
pub(super) async fn accept<C>(
    listener: TcpListener,
    limits: Limits,
    over: impl Future<Output = ()>,
    serve_connection: impl Fn(TcpStream, Arc<ConnectionSlot>) -> C,
) -> JoinSet<()>
where
    C: Future<Output = ()> + Send + 'static,
{
    let places = ConnectionSlots::new(limits);
    let mut connections = JoinSet::new();
    let mut over = pin!(over);
    loop {
        let accepted = tokio::select! {
            () = &mut over => return connections,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                // So that no answer waits for the client's acknowledgement of the one before.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "cannot set TCP_NODELAY on a connection");
                }
                let place = Arc::new(places.enter(peer.ip()));
                let conversation = serve_connection(stream, place.clone());
                connections.spawn(async move {
                    tokio::select! {
                        () = conversation => {}
                        () = place.lost() => {}
                    }
                });
            }
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                sleep(AFTER_FAILURE).await;
            }
        }
    }
}
