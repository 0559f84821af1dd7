//! Connection slots: an unauthenticated client gets one of a few slots, for a short time.
//!
//! A new connection always gets a slot: if all are taken, the oldest unauthenticated connection of the
//! address with the most of them is closed. So a flood from one address does not lock out others.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many connections there may be, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Unauthenticated connections.
    pub(super) unauthenticated: usize,
    /// How long an unauthenticated connection may last after it is accepted.
    pub(super) timeout: Duration,
    /// Authenticated connections.
    pub(super) known: usize,
}

/// All slots of a server; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlots {
    limits: Limits,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    /// In the order in which they came.
    unauthenticated: Vec<Unauthenticated>,
    known: HashSet<u64>,
    next: u64,
}

#[derive(Debug)]
struct Unauthenticated {
    id: u64,
    address: IpAddr,
    leave: Arc<Notify>,
}

/// One connection's slot; freed on drop.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    places: ConnectionSlots,
    id: u64,
    until: Instant,
    leave: Arc<Notify>,
}

impl ConnectionSlots {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, taken: Arc::default() }
    }

    /// A place for a connection that was just accepted.
    pub(super) fn enter(&self, address: IpAddr) -> ConnectionSlot {
        let mut taken = self.taken.lock();
        if taken.unauthenticated.len() >= self.limits.unauthenticated {
            taken.evict();
        }
        let (id, leave) = (taken.next, Arc::new(Notify::new()));
        taken.next += 1;
        taken.unauthenticated.push(Unauthenticated {
            id,
            address: address.to_canonical(),
            leave: leave.clone(),
        });
        drop(taken);
        ConnectionSlot { places: self.clone(), id, until: Instant::now() + self.limits.timeout, leave }
    }
}

impl Taken {
    fn evict(&mut self) {
        let mut counts = HashMap::<IpAddr, usize>::new();
        for connection in &self.unauthenticated {
            *counts.entry(connection.address).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or_default();
        let oldest = self.unauthenticated.iter().position(|connection| counts[&connection.address] == most);
        if let Some(oldest) = oldest {
            self.unauthenticated.remove(oldest).leave.notify_one();
        }
    }

    fn remove(&mut self, id: u64) -> bool {
        let found = self.unauthenticated.iter().position(|connection| connection.id == id);
        found.map(|index| self.unauthenticated.remove(index)).is_some()
    }
}

impl ConnectionSlot {
    /// Marks the client as authenticated; false if there are too many of those, or the slot is already lost.
    ///
    /// Requests of one HTTP/2 connection come here at the same time.
    pub(super) fn admit(&self) -> bool {
        let mut taken = self.places.taken.lock();
        if taken.known.contains(&self.id) {
            return true;
        }
        let has_room = taken.known.len() < self.places.limits.known;
        has_room && taken.remove(self.id) && taken.known.insert(self.id)
    }

    /// Completes when the connection must end: its client did not authenticate in time, or the slot is
    /// needed.
    pub(super) async fn lost(&self) {
        tokio::select! {
            () = self.leave.notified() => return,
            () = sleep_until(self.until) => {}
        }
        let is_known = self.places.taken.lock().known.contains(&self.id);
        if is_known {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        if !taken.known.remove(&self.id) {
            taken.remove(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const LIMITS: Limits = Limits { unauthenticated: 3, timeout: Duration::from_secs(2), known: 1 };

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn is_lost(place: &ConnectionSlot) -> bool {
        place.lost().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_the_address_with_most_goes_first() {
        let places = ConnectionSlots::new(LIMITS);
        let one = places.enter(address(1));
        let flood: Vec<ConnectionSlot> = (0..2).map(|_| places.enter(address(9))).collect();
        let more = places.enter(address(9));
        assert_eq!([&one, &flood[0], &flood[1], &more].map(is_lost), [false, true, false, false]);
        let other = places.enter(address(2));
        assert_eq!([&one, &flood[1], &more, &other].map(is_lost), [false, true, false, false]);
        // Freeing a slot evicts no connection.
        drop(more);
        let next = places.enter(address(2));
        assert_eq!([&one, &other, &next].map(is_lost), [false; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_known_stays_and_leaves_the_place_to_others() {
        let places = ConnectionSlots::new(LIMITS);
        let known = places.enter(address(1));
        assert!(known.admit() && known.admit());
        let flood: Vec<ConnectionSlot> = (0..9).map(|_| places.enter(address(1))).collect();
        assert_eq!(flood.iter().filter(|place| !is_lost(place)).count(), 3);
        assert!(!flood[0].admit(), "it is lost");
        assert!(!flood[8].admit(), "there is one already");
        assert!(!is_lost(&known));
        tokio::time::advance(LIMITS.timeout).await;
        assert!(!is_lost(&known));
        assert!(flood.iter().all(is_lost), "their time is over");
        drop(known);
        let next = places.enter(address(1));
        assert!(next.admit());
    }

    #[test]
    fn requests_of_a_connection_that_come_at_the_same_time_are_all_admitted() {
        const CONNECTIONS: usize = 4_000;
        let places =
            ConnectionSlots::new(Limits { unauthenticated: CONNECTIONS, known: CONNECTIONS, ..LIMITS });
        let connections: Vec<ConnectionSlot> = (0..CONNECTIONS).map(|_| places.enter(address(1))).collect();
        let request = || connections.iter().filter(|place| place.admit()).count();
        std::thread::scope(|scope| {
            let requests: Vec<_> = (0..4).map(|_| scope.spawn(request)).collect();
            for request in requests {
                assert_eq!(request.join().expect("a count"), CONNECTIONS);
            }
        });
    }
}
