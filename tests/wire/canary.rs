//! A canary: a few objects are written before all others, and the pass waits for a user to resume it. How it
//! meets real admission is for the end-to-end tests.

use etch_core::api::RESUME_ANNOTATION;
use serde_json::{Value, json};

use super::pass_status::{set_default, set_policy};
use super::server::{Answer, Request};
use super::world::{CRDS, HOUR, MINUTE, THINGS, World, is_write, operate, thing};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A world in which the default has come after five objects, under a policy with a canary.
fn world(canary: Value) -> World {
    let world = World::with(&NAMES);
    set_default(&world, 2, Some(1));
    set_policy(&world, 2, json!({ "canary": canary }));
    world
}

/// Resumes a generation of the CRD, as `etch resume` does.
fn resume(world: &World, generation: u64) {
    let mut crd = world.stored(CRDS, "things.example.com").expect("the CRD");
    crd["metadata"]["annotations"][RESUME_ANNOTATION] = json!(generation.to_string());
    world.put(CRDS, crd);
}

fn persisted(world: &World) -> Vec<&'static str> {
    NAMES.into_iter().filter(|name| world.is_persisted(name)).collect()
}

fn canary(world: &World) -> Value {
    world.report("things.example.com").expect("a report")["status"]["canary"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_canary_waits_through_a_restart_until_its_own_generation_is_resumed() {
    let world = world(json!({ "objects": 2 }));
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(operate(cluster, HOUR));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(persisted(&world), ["a", "b"]);
    assert_eq!(
        world.persisted(),
        "False CanaryWaiting: the canary wrote 2 objects; to write the others, run: etch resume \
         things.example.com; 2 of 5 objects are known to store their defaults; 3 would be written: ns/c, \
         ns/d, ns/e"
    );
    assert_eq!(canary(&world), json!({ "generation": 2, "state": "Waiting", "written": 2 }));
    let events = world.events();
    assert!(events.iter().any(|(event, _)| event.starts_with("Normal CanaryWaiting ")), "{events:?}");
    // No other object is written meanwhile.
    world.put_unfilled(THINGS, "late");
    resume(&world, 1);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(log.count(is_write), 2, "{:?}", log.of(is_write));
    assert!(world.persisted().contains("4 would be written: "), "{}", world.persisted());
    operator.abort();

    let log = world.operate(30 * MINUTE).await;
    assert_eq!(log.count(is_write), 0, "{:?}", log.of(is_write));
    assert!(
        world.persisted().starts_with("False CanaryWaiting: the canary wrote 2 objects; "),
        "{}",
        world.persisted()
    );
    assert_eq!(persisted(&world), ["a", "b"]);

    let (operator, _) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    resume(&world, 2);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(persisted(&world), NAMES);
    assert!(world.is_persisted("late"));
    assert!(world.persisted().starts_with("True AllPersisted: all 6"), "{}", world.persisted());
    assert_eq!(canary(&world)["state"], "Passed");
    operator.abort();
}

/// All objects are held for a field that the schema does not know, and then it does: nothing about its
/// defaults has changed.
#[tokio::test(start_paused = true)]
async fn objects_that_a_new_generation_lets_go_are_written_behind_a_canary() {
    let world = world(json!({ "objects": 2 }));
    for name in NAMES {
        let mut object = thing(name);
        object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:legacy"] = json!({});
        world.put(THINGS, object);
    }
    let log = world.operate(MINUTE).await;
    assert!(world.persisted().contains("5 held"), "{}", world.persisted());
    assert_eq!(log.count(is_write), 0);
    let mut crd = world.stored(CRDS, "things.example.com").expect("the CRD");
    crd["metadata"]["generation"] = json!(3);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["legacy"] =
        json!({ "type": "integer" });
    world.put(CRDS, crd);
    world.operate(MINUTE).await;
    assert_eq!(persisted(&world), ["a", "b"], "{}", world.persisted());
    assert!(world.persisted().contains(" CanaryWaiting: "), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn a_resumed_pass_writes_no_object_twice() {
    let world = world(json!({ "objects": 2, "then": "Wait" }));
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    resume(&world, 2);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: all 5"), "{}", world.persisted());
    assert_eq!(log.count(is_write), 5, "{:?}", log.of(is_write));
    assert_eq!(world.report("things.example.com").expect("a report")["status"]["counts"]["written"], 5);
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_is_stored_goes_on_by_itself_where_the_policy_says_so() {
    let world = world(json!({ "objects": "1%", "then": "Continue" }));
    let log = world.operate(2 * MINUTE).await;
    assert_eq!(persisted(&world), NAMES);
    assert_eq!(log.count(is_write), 5, "{:?}", log.of(is_write));
    assert_eq!(canary(&world), json!({ "generation": 2, "state": "Passed", "written": 1 }));
    assert!(world.persisted().starts_with("True AllPersisted: all 5"), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_is_refused_stops_the_pass_whatever_follows() {
    let world = world(json!({ "objects": 2, "then": "Continue" }));
    world.fails(|request: &Request| {
        let refused = is_write(request) && request.path.ends_with("/b");
        let denied = "admission webhook \"v.example.com\" denied the request: no";
        refused.then(|| Answer::status(403, "Forbidden", denied))
    });
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(30 * MINUTE).await;
    assert_eq!(persisted(&world), ["a"]);
    let wording = world.persisted();
    assert!(
        wording.starts_with(
            "False CanaryRejected: the canary wrote 1 object and stopped, because a write was rejected; to \
             write the others, run: etch resume things.example.com; 1 of 5 objects"
        ) && wording.contains("1 rejected: ns/b")
            && wording.contains("3 would be written: ns/c"),
        "{wording}"
    );
    let of_b = log.count(|request| is_write(request) && request.path.ends_with("/b"));
    assert_eq!((log.count(is_write), of_b), (2, 1), "{:?}", log.of(is_write));
    operator.abort();

    // A restart still names it, and does not try it again.
    let log = world.operate(30 * MINUTE).await;
    assert_eq!(log.count(is_write), 0, "{:?}", log.of(is_write));
    assert!(world.persisted().contains("1 rejected: ns/b"), "{}", world.persisted());

    world.heals();
    resume(&world, 2);
    world.operate(30 * MINUTE).await;
    assert_eq!(persisted(&world), NAMES);
    assert!(world.persisted().starts_with("True AllPersisted: all 5"), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_nobody_answers_about_is_tried_again() {
    let world = world(json!({ "objects": 2, "then": "Continue" }));
    let mut left = 3;
    world.fails(move |request: &Request| {
        let is_away = is_write(request) && left > 0;
        left -= i32::from(is_away);
        is_away.then(|| {
            Answer::status(
                500,
                "InternalError",
                "failed calling webhook \"x.example.com\": connection refused",
            )
        })
    });
    world.operate(30 * MINUTE).await;
    assert_eq!(persisted(&world), NAMES);
    assert!(world.persisted().starts_with("True AllPersisted: all 5"), "{}", world.persisted());
}
