//! The key in the paths of the webhooks: replicas know a key before API servers ask by it, and as long as
//! they do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::webhooks::{Replica, fact, is_apply, schema, signed};
use super::world::{FACTS, MINUTE, SCHEMAS, WEBHOOKS, World};

const KEYS: &str = "etch-operator.io/admission-keys";

/// The keys in the paths of a configuration.
fn used(configuration: &Value) -> BTreeSet<String> {
    let webhooks = configuration["webhooks"].as_array().cloned().unwrap_or_default();
    let path =
        |webhook: &Value| webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default().to_owned();
    webhooks.iter().map(path).map(|path| path.split('/').nth(1).unwrap_or_default().to_owned()).collect()
}

fn all_used(world: &World) -> BTreeSet<String> {
    WEBHOOKS.iter().filter_map(|which| world.stored(which, "etch")).flat_map(|found| used(&found)).collect()
}

fn served() -> World {
    let world = World::with(&[]);
    world.put(SCHEMAS, schema("one", ".spec"));
    world.put(FACTS, fact("a"));
    world
}

#[tokio::test(start_paused = true)]
async fn both_configurations_hold_one_key_that_all_replicas_know_and_that_stays() {
    let world = served();
    let follower = Replica::start_as(&world, signed(), false);
    sleep(Duration::from_secs(1)).await;
    assert!(follower.is_ready(), "without any configuration");
    let leader = Replica::start(&world, signed());
    sleep(Duration::from_secs(1)).await;
    let key = all_used(&world);
    assert_eq!(key.len(), 1);
    let first = key.first().expect("a key");
    assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(leader.keys.accepts(first) && follower.keys.accepts(first));
    sleep(MINUTE).await;
    drop(leader);
    let next = Replica::start(&world, signed());
    sleep(10 * MINUTE).await;
    assert_eq!(all_used(&world), key);
    assert_eq!(next.log.count(is_apply), 0, "{:?}", next.log.of(is_apply));
    assert!(next.keys.accepts(first) && follower.keys.accepts(first));
    // One configuration that is gone comes back with the key of the other.
    world.remove(WEBHOOKS[1], "etch");
    sleep(2 * MINUTE).await;
    assert_eq!(all_used(&world), key);
    // Without any, no API server asks by it any more.
    WEBHOOKS.iter().for_each(|which| world.remove(which, "etch"));
    sleep(3 * MINUTE).await;
    let another = all_used(&world);
    assert!(another.len() == 1 && another != key);
    assert!(!follower.keys.accepts(first) && follower.keys.accepts(another.first().expect("a key")));
}

#[tokio::test(start_paused = true)]
async fn no_key_is_used_before_all_replicas_know_it_nor_forgotten_while_it_may_be() {
    let world = served();
    let leader = Replica::start(&world, signed());
    let follower = Replica::start_as(&world, signed(), false);
    sleep(MINUTE).await;
    let first = all_used(&world);
    let unknown = Arc::new(Mutex::new(Vec::new()));
    {
        let (unknown, keys) = (unknown.clone(), follower.keys.clone());
        world.loses(move |world, request| {
            let asked = all_used(world).into_iter().chain(used(&request.body));
            unknown.lock().expect("no panic").extend(asked.filter(|key| !keys.accepts(key)));
            None
        });
    }
    // Who asks for a new key takes the annotation away.
    for which in WEBHOOKS {
        let mut configuration = world.stored(which, "etch").expect("it is there");
        configuration["metadata"]["annotations"] = json!({});
        world.put(which, configuration);
    }
    let listed = || {
        let configuration = world.stored(WEBHOOKS[0], "etch").expect("it is there");
        configuration["metadata"]["annotations"][KEYS].as_str().map_or(0, |text| text.split(' ').count())
    };
    while listed() < 2 {
        sleep(Duration::from_secs(1)).await;
    }
    let made = Instant::now();
    while all_used(&world) == first {
        sleep(Duration::from_secs(1)).await;
    }
    assert!(made.elapsed() >= Duration::from_secs(55), "after {:?}", made.elapsed());
    let second = all_used(&world);
    assert_eq!(second.len(), 1);
    let first = first.first().expect("a key");
    assert!(follower.keys.accepts(first), "an API server may be behind");
    sleep(15 * MINUTE).await;
    assert_eq!(all_used(&world), second);
    assert!(!follower.keys.accepts(first) && !leader.keys.accepts(first));
    assert_eq!(*unknown.lock().expect("no panic"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_key_is_renewed_by_itself_after_a_month() {
    let world = served();
    let leader = Replica::start(&world, signed());
    sleep(MINUTE).await;
    let first = all_used(&world);
    // It was made a month ago.
    for which in WEBHOOKS {
        let mut configuration = world.stored(which, "etch").expect("it is there");
        let listed = configuration["metadata"]["annotations"][KEYS].as_str().expect("a text").to_owned();
        let (_, key) = listed.split_once('=').expect("a time");
        configuration["metadata"]["annotations"][KEYS] = json!(format!("2020-01-01T00:00:00Z={key}"));
        world.put(which, configuration);
    }
    sleep(5 * MINUTE).await;
    assert!(all_used(&world).is_disjoint(&first));
    drop(leader);
}
