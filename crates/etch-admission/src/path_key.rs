//! The key in the path of Etch's webhooks: a client that sends a request without it is not an API server.
//! Only the webhook configurations hold the key: it must not be logged or shown.
//!
//! The webhook configurations are the only store. API servers read the key there anyway, so a copy in a
//! Secret would hide nothing, and every replica may watch them. So that no request fails while the key is
//! renewed:
//!
//! 1. A new key is named in an annotation first, and accepted by all replicas, before it is in a path.
//! 2. A former key is accepted for some time after the new one is in the paths.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

/// The annotation with the keys that count, newest first: `TIME=KEY TIME=KEY`.
pub(super) const KEYS: &str = "etch-operator.io/admission-keys";
/// How many random bytes are in a key.
pub const KEY_BYTES: usize = 32;

/// When a key is replaced.
const RENEWAL: Duration = Duration::from_secs(30 * 86_400);
/// How long a new key is accepted before API servers use it.
const SETTLED: Duration = Duration::from_secs(60);
/// How long a former key is accepted after a new one was made; it has not been used for most of that time.
const RETIRED: Duration = Duration::from_secs(600);
/// How far the clock of a former leader may have been ahead.
const SKEW: Duration = Duration::from_secs(3_600);
/// How many keys are accepted at once. There are more than two only if a user requests new ones again and
/// again.
const MOST: usize = 4;

/// A key, in hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathKey(String);

/// A key, and when it was made; that is not known where only a path names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dated {
    key: PathKey,
    since: Option<Timestamp>,
}

/// The keys that are accepted, newest first, and which of them is in the paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRing {
    keys: Vec<Dated>,
    used: usize,
}

impl PathKey {
    /// The key of these random bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Reads a key; `None` if this cannot be one.
    pub fn read(text: &str) -> Option<Self> {
        let is_key = text.len() == 2 * KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_key.then(|| Self(text.to_owned()))
    }

    /// As it stands in a path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathKey")
    }
}

impl KeyRing {
    /// What the configurations are to hold, by what they hold now. `make` gives a new key.
    pub fn next(configurations: [Option<&Value>; 2], now: Timestamp, make: impl FnOnce() -> PathKey) -> Self {
        let mut keys = dated(configurations);
        let age = |dated: &Dated| match dated.since {
            Some(since) => Duration::try_from(now.duration_since(since)).unwrap_or_default(),
            None => Duration::MAX,
        };
        let is_ahead = |dated: &Dated| {
            let ahead = dated.since.map(|since| Duration::try_from(since.duration_since(now)));
            ahead.is_some_and(|ahead| ahead.is_ok_and(|ahead| ahead > SKEW))
        };
        if keys.first().is_none_or(|newest| age(newest) >= RENEWAL || is_ahead(newest)) {
            let since = Timestamp::from_second(now.as_second()).unwrap_or(now);
            keys.insert(0, Dated { key: make(), since: Some(since) });
        }
        let used = keys.iter().position(|dated| age(dated) >= SETTLED).unwrap_or(keys.len() - 1);
        let former = if age(&keys[used]) >= RETIRED { used + 1 } else { MOST.max(used + 1) };
        keys.truncate(former);
        Self { keys, used }
    }

    /// The key that is in the paths.
    pub fn used(&self) -> &PathKey {
        &self.keys[self.used].key
    }

    /// All that are accepted.
    pub fn accepted(&self) -> impl Iterator<Item = &PathKey> {
        self.keys.iter().map(|dated| &dated.key)
    }

    /// The value of the annotation [`KEYS`].
    pub(super) fn annotation(&self) -> String {
        let dated = self.keys.iter().map(|Dated { key, since }| match since {
            Some(since) => format!("{since}={}", key.0),
            None => key.0.clone(),
        });
        dated.collect::<Vec<_>>().join(" ")
    }
}

/// The keys that a configuration holds, in its annotation and in its paths.
pub fn keys_in(configuration: &Value) -> Vec<PathKey> {
    dated([Some(configuration), None]).into_iter().map(|dated| dated.key).collect()
}

/// The keys of configurations, newest first: as the annotations have them, and then those that only a path
/// names.
fn dated(configurations: [Option<&Value>; 2]) -> Vec<Dated> {
    let mut keys: Vec<Dated> = Vec::new();
    let found = configurations.into_iter().flatten();
    for one in found.clone().flat_map(annotated).chain(found.flat_map(in_paths)) {
        match keys.iter_mut().find(|known| known.key == one.key) {
            Some(known) => known.since = known.since.into_iter().chain(one.since).min(),
            None => keys.push(one),
        }
    }
    keys
}

fn annotated(configuration: &Value) -> Vec<Dated> {
    let text = configuration["metadata"]["annotations"][KEYS].as_str().unwrap_or_default();
    let read = |word: &str| {
        let (since, key) =
            word.split_once('=').map_or((None, word), |(since, key)| (since.parse().ok(), key));
        Some(Dated { key: PathKey::read(key)?, since })
    };
    text.split(' ').filter_map(read).collect()
}

fn in_paths(configuration: &Value) -> Vec<Dated> {
    let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    let key = |webhook: &Value| {
        let config = &webhook["clientConfig"];
        let path = config["service"]["path"].as_str().or(config["url"].as_str())?;
        path.split('/').find_map(PathKey::read)
    };
    webhooks.filter_map(key).map(|key| Dated { key, since: None }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(number: u8) -> PathKey {
        PathKey::new([number; KEY_BYTES])
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    /// A configuration that holds a ring.
    fn configuration(ring: &KeyRing) -> Value {
        json!({
            "metadata": { "annotations": { KEYS: ring.annotation() } },
            "webhooks": [
                { "clientConfig": { "service": { "path": format!("/{}/guard", ring.used().as_str()) } } },
                { "clientConfig": { "url": format!("https://x:1/{}/mutate/one", ring.used().as_str()) } },
            ],
        })
    }

    fn next(before: &KeyRing, second: i64, new: u8) -> KeyRing {
        let configuration = configuration(before);
        KeyRing::next([Some(&configuration), None], at(second), || key(new))
    }

    fn shown(ring: &KeyRing) -> (Vec<PathKey>, PathKey) {
        (ring.accepted().cloned().collect(), ring.used().clone())
    }

    #[test]
    fn the_first_key_is_used_at_once_and_stays() {
        let first = KeyRing::next([None, None], at(0), || key(1));
        assert_eq!(shown(&first), (vec![key(1)], key(1)));
        assert_eq!(key(1).as_str().len(), 64);
        for second in [0, 59, 60, 86_400, 29 * 86_400] {
            assert_eq!(next(&first, second, 2), first, "{second}");
        }
    }

    #[test]
    fn a_new_key_is_accepted_before_it_is_used_and_a_former_one_after() {
        const DUE: i64 = 30 * 86_400;
        let first = KeyRing::next([None, None], at(0), || key(1));
        let both = next(&first, DUE, 2);
        assert_eq!(shown(&both), (vec![key(2), key(1)], key(1)));
        assert_eq!(next(&both, DUE + 59, 3), both);
        let used = next(&both, DUE + 60, 3);
        assert_eq!(shown(&used), (vec![key(2), key(1)], key(2)));
        assert_eq!(shown(&next(&used, DUE + 599, 3)), (vec![key(2), key(1)], key(2)));
        assert_eq!(shown(&next(&used, DUE + 600, 3)), (vec![key(2)], key(2)));
    }

    #[test]
    fn who_takes_the_annotation_away_gets_a_new_key_without_a_gap() {
        let first = KeyRing::next([None, None], at(0), || key(1));
        let mut bare = configuration(&first);
        bare["metadata"] = json!({});
        let ring = KeyRing::next([None, Some(&bare)], at(100), || key(2));
        assert_eq!(shown(&ring), (vec![key(2), key(1)], key(1)));
        // The other configuration still has it.
        let whole = configuration(&first);
        assert_eq!(KeyRing::next([Some(&whole), Some(&bare)], at(100), || key(2)), first);
        // Again and again: never more than a few.
        let mut ring = first;
        for number in 2..20 {
            let mut bare = configuration(&ring);
            let text = bare["metadata"]["annotations"][KEYS].as_str().expect("a text").to_owned();
            bare["metadata"]["annotations"][KEYS] =
                json!(text.split(' ').map(|word| &word[21..]).collect::<Vec<_>>().join(" "));
            ring = KeyRing::next([Some(&bare), None], at(200 + i64::from(number)), || key(number));
            assert!(ring.accepted().count() <= MOST);
        }
    }

    #[test]
    fn a_key_of_a_clock_that_was_ahead_is_replaced() {
        let ahead = KeyRing::next([None, None], at(7_200), || key(1));
        assert_eq!(shown(&next(&ahead, 0, 2)).1, key(1));
        let replaced = next(&ahead, 0, 2);
        assert_eq!(shown(&replaced).0, [key(2), key(1)]);
        assert_eq!(next(&replaced, 59, 3), replaced, "only once");
        assert_eq!(shown(&next(&replaced, 60, 3)).1, key(2));
        let behind = KeyRing::next([None, None], at(1_800), || key(1));
        assert_eq!(next(&behind, 0, 2), behind, "less than an hour");
    }

    #[test]
    fn keys_are_found_wherever_they_stand_and_shown_nowhere() {
        let ring = KeyRing::next([None, None], at(0), || key(1));
        assert_eq!(keys_in(&configuration(&ring)), [key(1)]);
        let old = json!({ "webhooks": [{ "clientConfig": { "service": { "path": "/guard" } } }] });
        assert_eq!(keys_in(&old), []);
        assert_eq!(keys_in(&json!({})), []);
        assert!(!format!("{ring:?}").contains(key(1).as_str()));
    }
}
