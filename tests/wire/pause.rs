//! A pause while things go wrong, or while changed defaults are followed. How it stops real writes is for the
//! end-to-end tests.

use std::time::Duration;

use serde_json::{Value, json};

use super::operator::is_of_report;
use super::pass_status::{set_default, set_policy};
use super::served_elsewhere::is_about_server;
use super::server::{Answer, Request};
use super::world::{CRDS, HOUR, MINUTE, OTHERS, POLICIES, THINGS, World, crd_named, is_write, operate};

fn counts(world: &World) -> Value {
    world.report("things.example.com").expect("a report")["status"]["counts"].clone()
}

/// A world in which the default has come after the objects.
fn due(names: &[&str]) -> World {
    let world = World::with(names);
    set_default(&world, 2, Some(1));
    world
}

/// A policy that selects nothing.
fn switch(pause_all: bool, generation: u64) -> Value {
    json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
        "metadata": { "name": "switch", "uid": "s", "generation": generation },
        "spec": { "selector": { "groups": ["nobody.io"] }, "pauseAll": pause_all },
    })
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_told_and_costs_an_idle_cluster_nothing() {
    let world = due(&["a", "b"]);
    let mut crd = crd_named(OTHERS);
    crd["metadata"]["name"] = json!("others.example.com");
    world.put(CRDS, crd);
    world.put(POLICIES, switch(true, 1));
    let (cluster, log) = world.serve();
    let metrics = cluster.metrics().clone();
    let operator = tokio::spawn(operate(cluster, HOUR));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(
        world.persisted(),
        "False Paused: 0 of 2 objects are known to store their defaults; \
         2 would be written, but writes are paused by DefaultsPolicy switch (pauseAll): ns/a, ns/b"
    );
    // The CRDs with a policy in mode Persist; Etch's own are not in this world.
    assert!(metrics.text().contains("\netch_paused 2\n"), "{}", metrics.text());
    let reported: Vec<_> =
        world.events().into_iter().filter(|(event, _)| event.contains("things.example.com")).collect();
    assert!(reported.iter().all(|(event, _)| event.starts_with("Normal Paused ")), "{reported:?}");
    let before = log.all().len();
    tokio::time::sleep(30 * MINUTE).await;
    let mut asked = log.all().split_off(before);
    asked.retain(|request| !request.is_watch() && !is_of_report(request) && !is_about_server(request));
    assert!(asked.is_empty(), "{asked:?}");
    operator.abort();
    // Nor does a restart.
    let log = world.operate(10 * MINUTE).await;
    assert_eq!(
        log.count(|request| request.method == "PATCH"),
        0,
        "{:?}",
        log.of(|request| request.method == "PATCH")
    );

    let (cluster, log) = world.serve();
    let metrics = cluster.metrics().clone();
    let operator = tokio::spawn(operate(cluster, HOUR));
    tokio::time::sleep(MINUTE).await;
    world.put(POLICIES, switch(false, 2));
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: all 2"), "{}", world.persisted());
    assert_eq!(log.count(is_write), 2);
    assert!(metrics.text().contains("\netch_paused 0\n"), "{}", metrics.text());
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn objects_that_change_while_writes_are_paused_wait_for_its_end() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    world.put(POLICIES, switch(true, 1));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(
        world.persisted(),
        "True AllPersisted: 1 of 1 object stores its defaults; writes are paused by DefaultsPolicy switch \
         (pauseAll)",
        "a pause takes back nothing that is proved"
    );
    let before = log.count(is_write);
    world.put_unfilled(THINGS, "late");
    tokio::time::sleep(MINUTE).await;
    let wording = world.persisted();
    assert!(
        wording.starts_with("False Paused: ")
            && wording.contains("1 would be written, but writes are paused"),
        "{wording}"
    );
    assert_eq!(log.count(is_write), before);
    world.remove(POLICIES, "switch");
    tokio::time::sleep(MINUTE).await;
    assert!(world.is_persisted("late"));
    let late = log.count(|request| is_write(request) && request.path.ends_with("/late"));
    assert_eq!(log.count(is_write), before + late, "what was stored is not asked about again");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_the_condition_notices_no_pause_where_all_is_stored() {
    let world = World::with(&["a", "b"]);
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    let before = log.all().len();
    world.put(POLICIES, switch(true, 1));
    tokio::time::sleep(MINUTE).await;
    world.put(POLICIES, switch(false, 2));
    tokio::time::sleep(MINUTE).await;
    world.put(POLICIES, switch(true, 3));
    tokio::time::sleep(MINUTE).await;
    operator.abort();
    let wording = |request: &Request| {
        let all = request.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|condition| condition["type"] == "DefaultsPersisted")
    };
    let reported: Vec<Value> = log.all().split_off(before).iter().filter_map(wording).collect();
    assert!(
        !reported.is_empty() && reported.iter().all(|condition| condition["status"] == "True"),
        "{reported:?}"
    );
    // A restart during the pause changes nothing.
    let log = world.operate(MINUTE).await;
    assert_eq!(log.count(|request| request.method == "PATCH"), 0);
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn changed_defaults_are_followed_when_the_pause_ends_and_counted_once() {
    let world = World::with(&["a", "b"]);
    world.operate(MINUTE).await;
    let on_change = json!([{ "path": ".spec.size", "action": "Follow" }]);
    set_policy(&world, 2, json!({ "onChange": on_change, "paused": true }));
    set_default(&world, 2, Some(5));
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("False Paused"), "{}", world.persisted());
    assert_eq!(log.count(is_write), 0);
    set_policy(&world, 3, json!({ "onChange": on_change }));
    tokio::time::sleep(MINUTE).await;
    for name in ["a", "b"] {
        assert_eq!(world.stored(THINGS, name).expect("it is there")["spec"]["size"], 5, "{name}");
    }
    assert_eq!(counts(&world)["followed"], 2, "{}", counts(&world));
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_pause_asks_for_no_permission_to_write_and_its_end_does() {
    let world = due(&["a"]);
    world.fails(|request: &Request| {
        let asked = &request.body["spec"]["resourceAttributes"]["verb"];
        (asked == "patch").then(|| Answer::json(json!({ "status": { "allowed": false } })))
    });
    let (operator, _) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("False Forbidden"), "{}", world.persisted());
    world.put(POLICIES, switch(true, 1));
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("False Paused"), "{}", world.persisted());
    world.put(POLICIES, switch(false, 2));
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("False Forbidden"), "{}", world.persisted());
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_to_be_tried_again_is_not_tried_during_a_pause() {
    let world = due(&["a", "slow"]);
    // It is away, and asks for patience.
    world.fails(|request: &Request| {
        let slow = is_write(request) && request.path.ends_with("/slow");
        slow.then(|| Answer::unavailable().with_header("retry-after", "5"))
    });
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let tried = log.count(|request| is_write(request) && request.path.ends_with("/slow"));
    assert!(tried > 0, "nothing has begun");
    world.put(POLICIES, switch(true, 1));
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(log.count(|request| is_write(request) && request.path.ends_with("/slow")), tried);
    assert!(world.persisted().starts_with("False Paused"), "{}", world.persisted());
    assert!(world.is_persisted("a") && !world.is_persisted("slow"));
    world.heals();
    world.put(POLICIES, switch(false, 2));
    tokio::time::sleep(MINUTE).await;
    assert!(world.is_persisted("slow"), "{}", world.persisted());
    operator.abort();
}
