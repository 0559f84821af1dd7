//! The keys that a request's path may begin with: what API servers are known by.
//! It holds only the digest of a key.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use etch_admission::PathKey;

/// How long a key is accepted that is not in the webhook configurations: they do not hold it any more, or not
/// yet.
const GRACE: Duration = Duration::from_secs(60);

type Hash = [u8; 32];

/// The keys that are accepted; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AcceptedKeys(Arc<Mutex<Vec<Accepted>>>);

#[derive(Debug)]
struct Accepted {
    hash: Hash,
    /// `None` while the configurations hold it.
    until: Option<Instant>,
}

impl AcceptedKeys {
    /// Accepts what the webhook configurations hold now, and for some time what they held before.
    pub fn set(&self, keys: &[PathKey]) {
        let hashes: Vec<Hash> = keys.iter().map(|key| hash(key.as_str())).collect();
        let (mut accepted, now) = (self.0.lock(), Instant::now());
        accepted.retain(|one| one.until.is_none_or(|until| now < until) && !hashes.contains(&one.hash));
        for former in accepted.iter_mut().filter(|one| one.until.is_none()) {
            former.until = Some(now + GRACE);
        }
        accepted.extend(hashes.into_iter().map(|hash| Accepted { hash, until: None }));
    }

    /// Accepts for some time what the configurations are about to hold.
    pub fn expect<'k>(&self, keys: impl IntoIterator<Item = &'k PathKey>) {
        let (mut accepted, until) = (self.0.lock(), Instant::now() + GRACE);
        for hash in keys.into_iter().map(|key| hash(key.as_str())) {
            match accepted.iter_mut().find(|one| one.hash == hash) {
                Some(known) => known.until = known.until.map(|_| until),
                None => accepted.push(Accepted { hash, until: Some(until) }),
            }
        }
    }

    /// Whether a path that begins so comes from an API server. Digests are compared, so how long that takes
    /// shows nothing of a key.
    pub fn accepts(&self, presented: &str) -> bool {
        if PathKey::read(presented).is_none() {
            return false;
        }
        let (presented, now) = (hash(presented), Instant::now());
        self.0.lock().iter().any(|one| one.hash == presented && one.until.is_none_or(|until| now < until))
    }
}

fn hash(key: &str) -> Hash {
    Sha256::digest(key).into()
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn key(number: u8) -> PathKey {
        PathKey::new([number; 32])
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_accepted_while_they_are_held_and_a_little_longer() {
        let keys = AcceptedKeys::default();
        let accepts = |number: u8| keys.accepts(key(number).as_str());
        assert!(!accepts(1) && !keys.accepts("") && !keys.accepts("validate"));
        keys.expect([&key(1)]);
        assert!(accepts(1) && !accepts(2));
        keys.set(&[key(1), key(2)]);
        advance(2 * GRACE).await;
        assert!(accepts(1) && accepts(2));
        keys.set(&[key(2)]);
        assert!(accepts(1) && accepts(2));
        advance(GRACE).await;
        assert!(!accepts(1) && accepts(2));
        // One that is expected and never comes.
        keys.expect([&key(3), &key(2)]);
        assert!(accepts(3));
        advance(GRACE).await;
        assert!(!accepts(3) && accepts(2));
        // One that comes back.
        keys.set(&[]);
        keys.set(&[key(2)]);
        advance(GRACE).await;
        assert!(accepts(2));
    }
}
