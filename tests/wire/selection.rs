//! A policy that selects objects by their labels: the others are neither written nor claimed to be stored,
//! and are processed as soon as they are selected.

use std::time::Duration;

use serde_json::{Value, json};

use super::pass_status::set_policy;
use super::server::Answer;
use super::world::{CRD, CRDS, MINUTE, THINGS, World, filled, is_write, thing};

const BOTH: &str = "True AllPersisted: all 2 objects store their defaults";

/// An object of before the default, with a label.
fn labelled(name: &str, tier: &str) -> Value {
    let mut object = thing(name);
    object["metadata"]["labels"] = json!({ "tier": tier });
    object
}

fn gold() -> Value {
    json!({ "objects": { "matchLabels": { "tier": "gold" } } })
}

/// A world with an object that is selected and one that is not.
fn world() -> World {
    let world = World::with(&[]);
    world.put(THINGS, labelled("a", "gold"));
    world.put(THINGS, labelled("b", "iron"));
    set_policy(&world, 2, gold());
    world
}

#[tokio::test(start_paused = true)]
async fn what_is_selected_later_is_stored_later_and_nothing_else_is_written_again() {
    let world = world();
    let log = world.operate(MINUTE).await;
    assert_eq!((world.is_persisted("a"), world.is_persisted("b")), (true, false));
    let one = "True AllPersisted: 1 of 1 selected object stores its defaults; 1 not selected by \
        DefaultsPolicy default";
    assert_eq!((world.persisted().as_str(), log.count(is_write)), (one, 1));
    let status = world.report(CRD).expect("a report")["status"].clone();
    assert_eq!((&status["counts"]["notSelected"], &status["counts"]["objects"]), (&json!(1), &json!(2)));
    assert_eq!(status["objects"], gold()["objects"]);
    // A restart finds it all on record.
    assert_eq!(world.operate(MINUTE).await.count(is_write), 0);
    assert_eq!(world.persisted(), one);
    // While no operator runs, the policy comes to select all objects.
    set_policy(&world, 3, json!({}));
    let log = world.operate(MINUTE).await;
    assert!(
        log.count(is_write) > 0
            && log.count(|request| is_write(request) && request.path.ends_with("/a")) == 0
    );
    assert!(world.is_persisted("b"));
    assert_eq!(world.persisted(), BOTH);
    assert_eq!(world.operate(MINUTE).await.count(is_write), 0);
    // What all objects were proved to store covers those that are selected after that.
    set_policy(&world, 4, gold());
    assert_eq!(world.operate(MINUTE).await.count(is_write), 0);
    assert_eq!(world.persisted(), one);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_while_objects_are_watched_is_followed_at_once() {
    let world = world();
    let (operator, log) = world.operates(30 * MINUTE);
    tokio::time::sleep(MINUTE).await;
    assert_eq!((world.is_persisted("a"), world.is_persisted("b")), (true, false));
    set_policy(
        &world,
        3,
        json!({ "objects": { "matchExpressions": [{ "key": "tier", "operator": "Exists" }] } }),
    );
    tokio::time::sleep(MINUTE).await;
    assert!(world.is_persisted("b"));
    assert_eq!((world.persisted().as_str(), log.count(is_write)), (BOTH, 2));
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_label_decides_as_soon_as_it_changes() {
    let world = world();
    let (operator, log) = world.operates(30 * MINUTE);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().contains("1 not selected by"), "{}", world.persisted());
    // The write of the label stores what it shows.
    world.put(THINGS, filled(&labelled("b", "gold")));
    tokio::time::sleep(MINUTE).await;
    assert_eq!((world.persisted().as_str(), log.count(is_write)), (BOTH, 1));
    // A server that lags behind does not store it.
    world.put_unfilled_object(THINGS, labelled("c", "gold"));
    tokio::time::sleep(MINUTE).await;
    assert!(world.is_persisted("c"));
    world.put(THINGS, filled(&labelled("a", "iron")));
    tokio::time::sleep(MINUTE).await;
    let others = "all 2 selected objects store their defaults; 1 not selected by DefaultsPolicy default";
    assert_eq!(world.persisted(), format!("True AllPersisted: {others}"));
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_pass_over_more_objects_forgets_none() {
    let world = World::with(&[]);
    for index in 0..60 {
        let tier = if index % 2 == 0 { "gold" } else { "iron" };
        world.put(THINGS, labelled(&format!("o{index:02}"), tier));
    }
    set_policy(&world, 2, gold());
    world.operate(MINUTE).await;
    let stored = || (0..60).filter(|index| world.is_persisted(&format!("o{index:02}"))).count();
    assert_eq!(stored(), 30);
    set_policy(&world, 3, json!({ "maxWritesPerSecond": 2 }));
    world.operate(Duration::from_secs(8)).await;
    assert!((31..60).contains(&stored()), "{}", stored());
    assert!(!world.persisted().contains("AllPersisted"), "{}", world.persisted());
    // It goes back and forth while no operator runs.
    set_policy(&world, 4, gold());
    world.operate(MINUTE).await;
    set_policy(&world, 5, json!({}));
    world.operate(MINUTE).await;
    assert_eq!(stored(), 60);
    assert_eq!(world.persisted(), "True AllPersisted: all 60 objects store their defaults");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_object_that_is_selected_no_more_is_no_problem_of_the_policy() {
    let world = world();
    set_policy(&world, 2, json!({}));
    world.fails(|request| {
        let denied = "admission webhook \"v.example.com\" denied the request: never";
        let is_refused = is_write(request) && request.path.ends_with("/b");
        is_refused.then(|| Answer::status(403, "Forbidden", denied))
    });
    world.operate(MINUTE).await;
    assert!(world.persisted().contains("1 rejected: ns/b"), "{}", world.persisted());
    set_policy(&world, 3, gold());
    assert_eq!(world.operate(MINUTE).await.count(is_write), 0);
    let one = "1 of 1 selected object stores its defaults; 1 not selected by DefaultsPolicy default";
    assert_eq!(world.persisted(), format!("True AllPersisted: {one}"));
}

/// Without a report, the condition may show what was proved; not what was not selected.
#[tokio::test(start_paused = true)]
async fn a_condition_proves_nothing_of_what_was_not_selected() {
    for (first, proved) in [(json!({}), 2), (gold(), 0)] {
        let world = world();
        set_policy(&world, 2, first);
        world.operate(30 * MINUTE).await;
        assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
        world.lose_reports();
        // The server dates what Etch has set; nothing has happened to the CRD since.
        let mut crd = world.stored(CRDS, CRD).expect("the CRD");
        crd["metadata"]["managedFields"] = json!([
            { "manager": "user", "time": "2026-01-01T00:00:00Z", "fieldsV1": { "f:spec": {} } },
            { "manager": "etch", "subresource": "status", "time": "2026-01-02T00:00:00Z", "fieldsV1": {} },
        ]);
        world.put(CRDS, crd);
        set_policy(&world, 3, json!({ "mode": "Audit" }));
        world.operate(MINUTE).await;
        let counts = world.report(CRD).expect("a report")["status"]["counts"].clone();
        assert_eq!(counts["alreadyStored"], proved, "{counts}: {}", world.persisted());
    }
}
