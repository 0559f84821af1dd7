//! The keys that a request's path may begin with: what API servers are known by.
//! It holds only the digest of a key.

use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::PathKey;

/// How long a key is accepted that is not in the webhook configurations: they do not hold it any more, or not
/// yet.
const GRACE: Duration = Duration::from_secs(60);

type Hash = [u8; 32];

/// The keys that are accepted.
#[derive(Debug, Default)]
pub struct AcceptedKeys(Vec<Accepted>);

#[derive(Debug)]
struct Accepted {
    hash: Hash,
    /// `None` while the configurations hold it.
    until: Option<Instant>,
}

impl AcceptedKeys {
    /// Accepts what the webhook configurations hold now, and for some time what they held before.
    pub fn set(&mut self, keys: &[PathKey], now: Instant) {
        let hashes: Vec<Hash> = keys.iter().map(|key| hash(key.as_str())).collect();
        let accepted = &mut self.0;
        accepted.retain(|one| one.until.is_none_or(|until| now < until) && !hashes.contains(&one.hash));
        for former in accepted.iter_mut().filter(|one| one.until.is_none()) {
            former.until = Some(now + GRACE);
        }
        accepted.extend(hashes.into_iter().map(|hash| Accepted { hash, until: None }));
    }

    /// Accepts for some time what the configurations are about to hold.
    pub fn expect<'k>(&mut self, keys: impl IntoIterator<Item = &'k PathKey>, now: Instant) {
        let (accepted, until) = (&mut self.0, now + GRACE);
        for hash in keys.into_iter().map(|key| hash(key.as_str())) {
            match accepted.iter_mut().find(|one| one.hash == hash) {
                Some(known) => known.until = known.until.map(|_| until),
                None => accepted.push(Accepted { hash, until: Some(until) }),
            }
        }
    }

    /// Whether a path that begins so comes from an API server. Digests are compared, so how long that takes
    /// shows nothing of a key.
    pub fn accepts(&self, presented: &str, now: Instant) -> bool {
        if PathKey::read(presented).is_none() {
            return false;
        }
        let presented = hash(presented);
        self.0.iter().any(|one| one.hash == presented && one.until.is_none_or(|until| now < until))
    }
}

fn hash(key: &str) -> Hash {
    Sha256::digest(key).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "there is no other way to make one")]
    fn start() -> Instant {
        Instant::now()
    }

    fn key(number: u8) -> PathKey {
        PathKey::new([number; 32])
    }

    #[test]
    fn keys_are_accepted_while_they_are_held_and_a_little_longer() {
        let (mut keys, mut now) = (AcceptedKeys::default(), start());
        let accepts = |keys: &AcceptedKeys, now, number: u8| keys.accepts(key(number).as_str(), now);
        assert!(!accepts(&keys, now, 1) && !keys.accepts("", now) && !keys.accepts("validate", now));
        keys.expect([&key(1)], now);
        assert!(accepts(&keys, now, 1) && !accepts(&keys, now, 2));
        keys.set(&[key(1), key(2)], now);
        now += 2 * GRACE;
        assert!(accepts(&keys, now, 1) && accepts(&keys, now, 2));
        keys.set(&[key(2)], now);
        assert!(accepts(&keys, now, 1) && accepts(&keys, now, 2));
        now += GRACE;
        assert!(!accepts(&keys, now, 1) && accepts(&keys, now, 2));
        // One that is expected and never comes.
        keys.expect([&key(3), &key(2)], now);
        assert!(accepts(&keys, now, 3));
        now += GRACE;
        assert!(!accepts(&keys, now, 3) && accepts(&keys, now, 2));
        // One that comes back.
        keys.set(&[], now);
        keys.set(&[key(2)], now);
        now += GRACE;
        assert!(accepts(&keys, now, 2));
    }
}
