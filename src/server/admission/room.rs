//! Room for the bodies of requests: taken as their bytes arrive, and given back when they are answered.
//!
//! Bodies share most of the room. If none of that is left, the rest is for one body at a time, as large as it
//! may be: so bodies that are half read never wait for each other forever.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest body: an object and its predecessor, each as large as etcd takes it (1.5 MiB), and what is
/// around them.
pub(super) const LARGEST: usize = 4 << 20;
/// How much all bodies may take that are read and answered at once. What is parsed takes a multiple of it.
pub(super) const LARGEST_SUM: usize = 16 << 20;

/// The room of a server; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// What bodies share, in KiB.
    shared: Arc<Semaphore>,
    /// Reserved for the one body that found no shared room left.
    last: Arc<Semaphore>,
}

/// A body, and the room that it takes until this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) body: Vec<u8>,
    pub(super) room: Held,
}

/// Room that is taken.
#[derive(Debug, Default)]
pub(super) struct Held {
    shared: Option<OwnedSemaphorePermit>,
    last: Option<OwnedSemaphorePermit>,
    kib: usize,
}

impl Room {
    pub(super) fn new() -> Self {
        let shared = Arc::new(Semaphore::new((LARGEST_SUM - LARGEST) / 1024));
        Self { shared, last: Arc::new(Semaphore::new(1)) }
    }

    /// Reads a body as far as there is room for it; `None` if it is too large or breaks off. What a client
    /// announces takes no room.
    pub(super) async fn take(&self, mut body: Body) -> Option<Taken> {
        let mut taken = Taken { body: Vec::new(), room: Held::default() };
        while let Some(frame) = body.frame().await {
            let Ok(bytes) = frame.ok()?.into_data() else { continue };
            let length = taken.body.len() + bytes.len();
            if length > LARGEST {
                return None;
            }
            self.grow(&mut taken.room, length).await?;
            append(&mut taken.body, &bytes);
        }
        Some(taken)
    }

    async fn grow(&self, held: &mut Held, length: usize) -> Option<()> {
        let wanted = length.div_ceil(1024);
        if held.last.is_some() || wanted <= held.kib {
            return Some(());
        }
        let more = u32::try_from(wanted - held.kib).ok()?;
        tokio::select! {
            biased;
            shared = self.shared.clone().acquire_many_owned(more) => {
                let shared = shared.ok()?;
                match &mut held.shared {
                    Some(held) => held.merge(shared),
                    none => *none = Some(shared),
                }
                held.kib = wanted;
            }
            last = self.last.clone().acquire_owned() => held.last = Some(last.ok()?),
        }
        Some(())
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.shared.available_permits() * 1024 == LARGEST_SUM - LARGEST && self.last.available_permits() == 1
    }
}

/// Appends without the capacity that a growing vector keeps for more: it may be as much as its content.
fn append(body: &mut Vec<u8>, bytes: &Bytes) {
    if body.capacity() - body.len() < bytes.len() {
        body.reserve_exact(bytes.len().max(body.len() / 4));
    }
    body.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::channel::mpsc::{UnboundedSender, unbounded};
    use futures::{FutureExt, StreamExt};

    use super::*;

    /// A body that comes as it is sent.
    fn body() -> (UnboundedSender<Bytes>, Body) {
        let (send, parts) = unbounded::<Bytes>();
        (send, Body::from_stream(parts.map(Ok::<_, Infallible>)))
    }

    #[tokio::test]
    async fn what_is_announced_takes_no_room_and_what_has_come_does() {
        let room = Room::new();
        let (silent, never) = body();
        let mut waiting = Box::pin(room.take(never));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(room.is_empty());
        silent.unbounded_send(Bytes::from_static(b"{")).expect("a reader");
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(!room.is_empty());
        drop(silent);
        let taken = waiting.await.expect("a body");
        assert_eq!(taken.body, b"{");
        drop(taken);
        assert!(room.is_empty());
        assert!(room.take(Body::from(vec![b' '; LARGEST + 1])).await.is_none());
        assert!(room.is_empty());
    }

    #[tokio::test]
    async fn bodies_that_are_half_read_do_not_wait_for_each_other_for_ever() {
        let room = Room::new();
        let mut clients: Vec<_> =
            (0..8).map(|_| body()).map(|(send, body)| (send, Box::pin(room.take(body)))).collect();
        let half = Bytes::from(vec![b' '; LARGEST / 2]);
        for (send, take) in &mut clients {
            send.unbounded_send(half.clone()).expect("a reader");
            assert!(take.as_mut().now_or_never().is_none());
        }
        for (send, _) in &clients {
            send.unbounded_send(half.clone()).expect("a reader");
            send.close_channel();
        }
        let mut done = 0;
        while !clients.is_empty() {
            // A task that polls without end gets nothing from the runtime's semaphores.
            tokio::task::yield_now().await;
            let before = clients.len();
            clients.retain_mut(|(_, take)| match take.as_mut().now_or_never() {
                Some(taken) => {
                    assert_eq!(taken.expect("a body").body.len(), LARGEST);
                    done += 1;
                    false
                }
                None => true,
            });
            assert!(clients.len() < before, "{done} of 8 bodies were read");
        }
        assert!(room.is_empty());
    }
}
