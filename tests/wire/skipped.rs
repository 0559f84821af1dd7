//! Objects that ask to be left alone, or are being deleted: counted and named apart from the first list on,
//! while they are watched, and after a restart.

use std::time::Duration;

use serde_json::{Value, json};

use super::pass_status::{set_default, set_policy};
use super::world::{CRD, HOUR, THINGS, World, filled, is_write, operate, thing};

const SOON: Duration = Duration::from_secs(20);

/// An object of before the default that asks to be left alone.
fn ignored(name: &str) -> Value {
    let mut object = thing(name);
    object["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
    object
}

fn terminating(name: &str) -> Value {
    let mut object = thing(name);
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object
}

/// Objects, stored, ignored, terminating, and those that may lack a default by the metric.
fn numbers(world: &World, metrics: &str) -> Value {
    let counts = &world.status()["counts"];
    let number = |field: &str| counts[field].as_u64().unwrap_or_default();
    let phantoms = metrics.lines().find_map(|line| {
        line.strip_prefix(&format!("etch_phantom_objects{{crd=\"{CRD}\"}} "))?.parse::<u64>().ok()
    });
    let stored = number("written") + number("alreadyStored");
    json!([number("objects"), stored, number("ignored"), number("terminating"), phantoms])
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|object| object["name"].as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_skipped_is_counted_and_named_apart_and_stays_so_while_it_is_watched() {
    let world = World::with(&["a", "b"]);
    world.put(THINGS, ignored("i"));
    world.put(THINGS, terminating("t"));
    let (cluster, log) = world.serve();
    let metrics = cluster.clone();
    let reported = || metrics.metrics().text();
    let operator = tokio::spawn(operate(cluster, HOUR));
    tokio::time::sleep(SOON).await;
    assert_eq!(
        world.persisted(),
        "True AllPersisted: 2 of 4 objects are known to store their defaults; 1 ignored by annotation, etcd \
         may lack its defaults (ns/i); 1 being deleted, etcd may lack its defaults (ns/t)"
    );
    assert_eq!(numbers(&world, &reported()), json!([4, 2, 1, 1, 2]));
    let report = world.status();
    assert_eq!((names(&report["ignored"]), names(&report["terminating"])), (vec!["i"], vec!["t"]));
    assert_eq!(report["ignored"][0]["reason"], "Ignored");

    // Each step: what a user does, and the numbers after it. A user's write stores what the server shows.
    let mut asks = filled(&thing("a"));
    asks["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
    world.put(THINGS, asks);
    tokio::time::sleep(SOON).await;
    assert_eq!(numbers(&world, &reported()), json!([4, 1, 2, 1, 3]), "asks while it is watched");
    world.put(THINGS, ignored("new"));
    tokio::time::sleep(SOON).await;
    assert_eq!(numbers(&world, &reported()), json!([5, 1, 3, 1, 4]), "is created so");
    world.put(THINGS, filled(&thing("i")));
    tokio::time::sleep(SOON).await;
    assert_eq!(numbers(&world, &reported()), json!([5, 2, 2, 1, 3]), "asks no more");
    world.put(THINGS, terminating("i"));
    tokio::time::sleep(SOON).await;
    assert_eq!(numbers(&world, &reported()), json!([5, 1, 2, 2, 4]), "is being deleted");
    world.remove(THINGS, "i");
    world.remove(THINGS, "t");
    world.remove(THINGS, "b");
    tokio::time::sleep(SOON).await;
    assert_eq!(
        numbers(&world, &reported()),
        json!([2, 0, 2, 0, 2]),
        "is gone, and so is one that was stored"
    );
    world.put(THINGS, filled(&thing("c")));
    world.put(THINGS, ignored("late"));
    tokio::time::sleep(SOON).await;
    assert_eq!(numbers(&world, &reported()), json!([4, 1, 3, 0, 3]), "others were created");
    assert_eq!(names(&world.status()["ignored"]), ["a", "late", "new"]);
    assert_eq!(log.count(is_write), 2, "and nothing is written to any of them");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_restart_says_nothing_new_of_what_is_skipped_unless_it_changed() {
    let world = World::with(&["a"]);
    world.put(THINGS, ignored("i"));
    world.operate(SOON).await;
    let before = world.status();
    assert_eq!(before["counts"]["ignored"], 1);
    let log = world.operate(SOON).await;
    assert_eq!(log.count(|request| request.method == "PATCH"), 0, "nothing has changed");
    assert_eq!(world.status(), before);

    // One asks and another asks no more, while no operator runs: as many as before.
    world.put(THINGS, filled(&thing("i")));
    let mut asks = filled(&thing("a"));
    asks["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
    world.put(THINGS, asks);
    let log = world.operate(SOON).await;
    assert_eq!(log.count(is_write), 0);
    assert_eq!(names(&world.status()["ignored"]), ["a"]);
    assert!(world.persisted().contains("1 ignored by annotation, etcd may lack its defaults (ns/a)"));
    // What is not there any more is not counted any more, in either place.
    world.remove(THINGS, "a");
    world.operate(SOON).await;
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
    assert_eq!(world.status()["counts"]["objects"], 1);
}

#[tokio::test(start_paused = true)]
async fn who_asks_in_other_words_is_left_alone_and_named() {
    let world = World::with(&["a"]);
    for (name, value) in [("capital", "True"), ("yes", "yes"), ("empty", "")] {
        let mut object = ignored(name);
        object["metadata"]["annotations"]["etch-operator.io/ignore"] = json!(value);
        world.put(THINGS, object);
    }
    let mut not = thing("not");
    not["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "false" });
    world.put(THINGS, not);
    world.put(THINGS, ignored("plain"));
    let log = world.operate(SOON).await;
    let written =
        log.of(|request| is_write(request) && !["a", "not"].iter().any(|name| request.path.ends_with(name)));
    assert!(written.is_empty() && world.is_persisted("not"), "{written:?}");
    assert_eq!(
        world.persisted(),
        "True AllPersisted: 2 of 6 objects are known to store their defaults; 1 ignored by annotation, etcd \
         may lack its defaults (ns/plain); 3 ignored by annotation (whose value is neither \"true\" nor \
         \"false\"), etcd may lack their defaults (ns/capital, ns/empty, ns/yes)"
    );
    let report = world.status();
    assert_eq!(names(&report["ignored"]), ["capital", "empty", "yes", "plain"]);
    assert_eq!(report["counts"]["ignored"], 4);
    assert_eq!(report["ignored"][0]["reason"], "IgnoredUnclear");
    assert!(
        report["ignored"][0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("neither \"true\" nor \"false\""))
    );
    let reported: Vec<String> = world.events().into_iter().map(|(event, _)| event).collect();
    assert_eq!(
        reported.iter().filter(|event| event.starts_with("Warning IgnoredUnclear ")).count(),
        3,
        "{reported:?}"
    );
    let log = world.operate(SOON).await;
    let reported = log.of(|request| request.method == "PATCH" || request.path.ends_with("/events"));
    assert!(reported.is_empty(), "a restart says nothing new: {reported:?}");
}

#[tokio::test(start_paused = true)]
async fn the_metric_is_not_of_another_schema_or_policy() {
    let world = World::with(&["a"]);
    world.put(THINGS, ignored("i"));
    let (cluster, _) = world.serve();
    let metrics = cluster.clone();
    let reported = || {
        let text = metrics.metrics().text();
        text.lines().find(|line| line.starts_with("etch_phantom_objects{")).map(str::to_owned)
    };
    let operator = tokio::spawn(operate(cluster, HOUR));
    tokio::time::sleep(SOON).await;
    let one = Some(format!("etch_phantom_objects{{crd=\"{CRD}\"}} 1"));
    assert_eq!(reported(), one);
    set_policy(&world, 2, json!({ "mode": "Ignore" }));
    tokio::time::sleep(SOON).await;
    assert_eq!(reported(), None);
    set_policy(&world, 3, json!({ "settle": "10m" }));
    tokio::time::sleep(SOON).await;
    assert_eq!(reported(), one);
    world.serves(5, 5);
    set_default(&world, 2, Some(5));
    tokio::time::sleep(SOON).await;
    assert!(world.persisted().contains("Settling"), "{}", world.persisted());
    assert_eq!(reported(), None);
    tokio::time::sleep(20 * 60 * Duration::from_secs(1)).await;
    assert_eq!(reported(), one);
    operator.await.expect("it ends by itself");
}
