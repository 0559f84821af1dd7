//! Places for connections: a client that has not authenticated gets one of few places, and not for long.
//!
//! There is always a place for one more: if all are taken, the oldest stranger of the address with most of
//! them goes. So a flood from one address neither keeps others out nor takes more than its share.

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
    /// Connections of clients that are not known.
    pub(super) strangers: usize,
    /// How long such a one may last, from the moment it is accepted.
    pub(super) patience: Duration,
    /// Connections of clients that are known.
    pub(super) known: usize,
}

/// All places of a server; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Places {
    limits: Limits,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    /// In the order in which they came.
    strangers: Vec<Stranger>,
    known: HashSet<u64>,
    next: u64,
}

#[derive(Debug)]
struct Stranger {
    id: u64,
    address: IpAddr,
    leave: Arc<Notify>,
}

/// One connection's place, until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    id: u64,
    until: Instant,
    leave: Arc<Notify>,
}

impl Places {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, taken: Arc::default() }
    }

    /// A place for a connection that was just accepted.
    pub(super) fn enter(&self, address: IpAddr) -> Place {
        let mut taken = self.taken.lock();
        if taken.strangers.len() >= self.limits.strangers {
            taken.evict();
        }
        let (id, leave) = (taken.next, Arc::new(Notify::new()));
        taken.next += 1;
        taken.strangers.push(Stranger { id, address: address.to_canonical(), leave: leave.clone() });
        drop(taken);
        Place { places: self.clone(), id, until: Instant::now() + self.limits.patience, leave }
    }
}

impl Taken {
    fn evict(&mut self) {
        let mut counts = HashMap::<IpAddr, usize>::new();
        for stranger in &self.strangers {
            *counts.entry(stranger.address).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or_default();
        let oldest = self.strangers.iter().position(|stranger| counts[&stranger.address] == most);
        if let Some(oldest) = oldest {
            self.strangers.remove(oldest).leave.notify_one();
        }
    }

    fn remove(&mut self, id: u64) -> bool {
        let found = self.strangers.iter().position(|stranger| stranger.id == id);
        found.map(|index| self.strangers.remove(index)).is_some()
    }
}

impl Place {
    /// Marks the client as known; false if there are too many of those, or if the place is lost already.
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

    /// Completes when the connection has to end: its client did not become known in time, or others need the
    /// place.
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

impl Drop for Place {
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

    const LIMITS: Limits = Limits { strangers: 3, patience: Duration::from_secs(2), known: 1 };

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn is_lost(place: &Place) -> bool {
        place.lost().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_the_address_with_most_goes_first() {
        let places = Places::new(LIMITS);
        let one = places.enter(address(1));
        let flood: Vec<Place> = (0..2).map(|_| places.enter(address(9))).collect();
        let more = places.enter(address(9));
        assert_eq!([&one, &flood[0], &flood[1], &more].map(is_lost), [false, true, false, false]);
        let other = places.enter(address(2));
        assert_eq!([&one, &flood[1], &more, &other].map(is_lost), [false, true, false, false]);
        // A place that is given back evicts no connection.
        drop(more);
        let next = places.enter(address(2));
        assert_eq!([&one, &other, &next].map(is_lost), [false; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_known_stays_and_leaves_the_place_to_others() {
        let places = Places::new(LIMITS);
        let known = places.enter(address(1));
        assert!(known.admit() && known.admit());
        let flood: Vec<Place> = (0..9).map(|_| places.enter(address(1))).collect();
        assert_eq!(flood.iter().filter(|place| !is_lost(place)).count(), 3);
        assert!(!flood[0].admit(), "it is lost");
        assert!(!flood[8].admit(), "there is one already");
        assert!(!is_lost(&known));
        tokio::time::advance(LIMITS.patience).await;
        assert!(!is_lost(&known));
        assert!(flood.iter().all(is_lost), "their time is over");
        drop(known);
        let next = places.enter(address(1));
        assert!(next.admit());
    }

    #[test]
    fn requests_of_a_connection_that_come_at_the_same_time_are_all_admitted() {
        const CONNECTIONS: usize = 4_000;
        let places = Places::new(Limits { strangers: CONNECTIONS, known: CONNECTIONS, ..LIMITS });
        let connections: Vec<Place> = (0..CONNECTIONS).map(|_| places.enter(address(1))).collect();
        let request = || connections.iter().filter(|place| place.admit()).count();
        std::thread::scope(|scope| {
            let requests: Vec<_> = (0..4).map(|_| scope.spawn(request)).collect();
            for request in requests {
                assert_eq!(request.join().expect("a count"), CONNECTIONS);
            }
        });
    }
}
