//! What an EmbeddedSchema means for objects that exist: the leader looks at them when something asks for it, and never else.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::server::{Answer, Request};
use super::webhooks::{MINUTE, Replica, fact, is_apply, signed, unguarded};
use super::world::{FACTS, SCHEMAS, THINGS, World, is_about_objects, thing};

const LOOK: Duration = Duration::from_secs(1);

/// A schema by which small things are denied, and all get a note.
fn schema(generation: u64, least: u64) -> Value {
    json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema",
        "metadata": { "name": "one", "uid": "one", "generation": generation },
        "spec": {
            "targets": [{ "group": "example.com", "version": "v1", "resource": "things", "path": ".spec" }],
            "facts": [{
                "name": "id", "path": ".id",
                "object": { "group": "config.example.com", "version": "v1", "resource": "configs", "name": "it" },
            }],
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "size": { "type": "integer" }, "note": { "type": "string", "default": "none" },
            } } },
            "rules": [{ "rule": format!("self.?size.orValue(0) >= {least} && facts.id != 'bad'") }],
        },
    })
}

/// Things of these sizes.
fn world(sizes: &[(&str, u64)]) -> World {
    let world = unguarded();
    for (name, size) in sizes {
        let mut thing = thing(name);
        thing["spec"]["size"] = json!(size);
        world.put(THINGS, thing);
    }
    world.put(FACTS, fact("a"));
    world.put(SCHEMAS, schema(1, 3));
    world
}

/// What the status says of existing objects, without its time.
fn existing(world: &World) -> Value {
    let mut schema = world.stored(SCHEMAS, "one").expect("a schema");
    let mut existing = schema["status"]["existing"].take();
    if let Some(fields) = existing.as_object_mut() {
        assert!(fields.remove("lastLooked").is_some_and(|time| time.is_string()));
    }
    existing
}

fn name(name: &str) -> Value {
    json!({ "resource": "things.example.com", "namespace": "ns", "name": name })
}

fn denied(world: &World) -> Value {
    existing(world)["denied"].take()
}

#[tokio::test(start_paused = true)]
async fn what_would_be_denied_and_defaulted_is_in_the_status_before_it_is_enforced() {
    let world = world(&[("large", 5), ("small", 1)]);
    let mut going = thing("going");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    world.put(THINGS, going);
    let replica = Replica::start(&world, signed());
    sleep(LOOK).await;
    let expected = json!({
        "observedGeneration": 1, "complete": true, "objects": 2,
        "denied": 1, "firstDenied": [name("small")],
        "defaulted": 2, "firstDefaulted": [name("large"), name("small")],
    });
    assert_eq!(existing(&world), expected);
    // Objects come and go: nobody looks again for that.
    world.put(THINGS, thing("later"));
    sleep(10 * MINUTE).await;
    assert_eq!(replica.log.count(is_about_objects), 1, "{:?}", replica.log.of(is_about_objects));
    assert_eq!(existing(&world), expected);
}

#[tokio::test(start_paused = true)]
async fn another_generation_another_fact_and_whoever_asks_have_them_looked_at_again() {
    let world = world(&[("large", 5), ("small", 1)]);
    let replica = Replica::start(&world, signed());
    sleep(LOOK).await;
    assert_eq!(denied(&world), 1);
    world.put(SCHEMAS, schema(2, 9));
    sleep(LOOK).await;
    assert_eq!((denied(&world), existing(&world)["observedGeneration"].take()), (json!(2), json!(2)));
    world.put(SCHEMAS, schema(3, 0));
    sleep(LOOK).await;
    assert_eq!(denied(&world), 0);
    // Facts may change all the time.
    world.put(FACTS, fact("bad"));
    sleep(LOOK).await;
    assert_eq!(denied(&world), 0);
    sleep(MINUTE).await;
    assert_eq!(denied(&world), 2);
    world.put(THINGS, thing("later"));
    let mut asking = world.stored(SCHEMAS, "one").expect("it is there");
    asking["metadata"]["annotations"] = json!({ "etch-operator.io/look-again": "now" });
    world.put(SCHEMAS, asking);
    sleep(LOOK).await;
    assert_eq!(denied(&world), 3);
    // What cannot be served, or has no facts, is not looked for.
    let before = replica.log.count(is_about_objects);
    let mut broken = schema(4, 0);
    broken["spec"]["when"] = json!("nothing(");
    world.put(SCHEMAS, broken);
    world.remove(FACTS, "it");
    sleep(MINUTE).await;
    assert_eq!(replica.log.count(is_about_objects), before);
    assert_eq!(existing(&world)["observedGeneration"], 3, "what was found stays, and tells by what");
}

#[tokio::test(start_paused = true)]
async fn who_leads_next_looks_once_and_writes_nothing_where_all_is_as_it_was() {
    let world = world(&[("small", 1)]);
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    drop(replica);
    let replica = Replica::start(&world, signed());
    sleep(10 * MINUTE).await;
    assert_eq!(replica.log.count(is_apply), 0, "{:?}", replica.log.of(is_apply));
    assert_eq!(replica.log.count(is_about_objects), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_forbidden_is_in_the_status_and_tried_again_ever_more_seldom() {
    let world = world(&[("small", 1)]);
    let forbidden =
        |request: &Request| is_about_objects(request).then(|| Answer::status(403, "Forbidden", "canary"));
    world.fails(forbidden);
    let replica = Replica::start(&world, signed());
    sleep(20 * MINUTE).await;
    let expected = json!({
        "observedGeneration": 1, "complete": false, "objects": 0, "denied": 0, "defaulted": 0,
        "message": "Etch may not list things.example.com/v1, see `etch rbac`",
    });
    assert_eq!(existing(&world), expected);
    let tries = replica.log.count(is_about_objects);
    assert!((5..=15).contains(&tries), "{tries} tries in twenty minutes");
    let applies = replica.log.count(is_apply);
    sleep(20 * MINUTE).await;
    assert_eq!(replica.log.count(is_apply), applies, "the same is not written again");
    world.heals();
    sleep(10 * MINUTE).await;
    assert_eq!((existing(&world)["complete"].take(), denied(&world)), (json!(true), json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_on_the_way_counts_as_far_as_it_came() {
    let world = world(&[]);
    world.fails(|request| {
        let page = || {
            let mut small = thing("small");
            small["spec"]["size"] = json!(1);
            Answer::json(json!({ "metadata": { "continue": "next" }, "items": [small] }))
        };
        is_about_objects(request).then(|| match request.asked("continue") {
            "" => page(),
            _ => Answer::status(500, "InternalError", "canary"),
        })
    });
    let _replica = Replica::start(&world, signed());
    sleep(LOOK).await;
    let found = existing(&world);
    assert_eq!((&found["complete"], &found["denied"]), (&json!(false), &json!(1)));
    assert_eq!(found["message"], "the API server answered 500 to the list");
}
