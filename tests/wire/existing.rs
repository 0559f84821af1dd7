//! What an EmbeddedSchema means for objects that exist: the leader looks at them when something asks for it,
//! and never else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::server::{Answer, Request};
use super::webhooks::{Replica, fact, is_apply, signed, unguarded};
use super::world::{FACTS, MINUTE, POLICIES, SCHEMAS, THINGS, World, is_about_objects, thing};

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
                "object": {
                    "group": "config.example.com", "version": "v1", "resource": "configs", "name": "it",
                },
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

/// What the status shows of existing objects, without its time.
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
    // Objects come and go: no check is repeated for that.
    world.put(THINGS, thing("later"));
    sleep(10 * MINUTE).await;
    assert_eq!(replica.log.count(is_about_objects), 1, "{:?}", replica.log.of(is_about_objects));
    assert_eq!(existing(&world), expected);
}

#[tokio::test(start_paused = true)]
async fn an_object_counts_once_whatever_versions_the_targets_name() {
    let world = world(&[("large", 5), ("small", 1)]);
    let mut both = schema(2, 3);
    let mut older = both["spec"]["targets"][0].clone();
    older["version"] = json!("v0");
    both["spec"]["targets"].as_array_mut().expect("targets").push(older);
    world.put(SCHEMAS, both);
    let replica = Replica::start(&world, signed());
    sleep(LOOK).await;
    let found = existing(&world);
    assert_eq!((&found["objects"], &found["denied"]), (&json!(2), &json!(1)), "{found:#}");
    let lists = replica.log.of(is_about_objects);
    assert!(lists.len() == 1 && lists[0].path.contains("/v1/"), "at the storage version: {lists:?}");
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
    asking["metadata"]["annotations"] = json!({ "etch-operator.io/recheck": "now" });
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

/// A schema that has its default stored.
fn persisting(generation: u64) -> Value {
    let mut schema = schema(generation, 0);
    schema["spec"]["existing"] = json!("Persist");
    schema
}

/// The reason of the condition.
fn persisted(world: &World) -> String {
    persisted_by(world, "one")
}

fn persisted_by(world: &World, schema: &str) -> String {
    let schema = world.stored(SCHEMAS, schema).expect("a schema");
    let conditions = schema["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == "DefaultsPersisted");
    found.map_or(String::new(), |mut found| found["reason"].take().as_str().unwrap_or_default().to_owned())
}

fn note(world: &World, name: &str) -> Value {
    world.stored(THINGS, name).expect("it is there")["spec"]["note"].take()
}

fn is_write(request: &Request) -> bool {
    is_about_objects(request) && is_apply(request)
}

/// A policy for the things.
fn govern(world: &World, generation: u64, mut spec: Value) {
    spec["guard"] = json!("Off");
    let policy = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
        "metadata": { "name": "default", "uid": "p", "generation": generation }, "spec": spec,
    });
    world.put(POLICIES, policy);
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_is_to_leave_objects_alone_ends_the_writes_under_way() {
    let names: Vec<String> = (0..30).map(|number| format!("a{number}")).collect();
    let objects: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 5)).collect();
    let world = world(&objects);
    govern(&world, 1, json!({ "selector": {}, "maxWritesPerSecond": 1 }));
    let _replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    world.put(SCHEMAS, persisting(2));
    let stored = || names.iter().filter(|name| note(&world, name) == json!("none")).count();
    while stored() == 0 {
        sleep(Duration::from_secs(1)).await;
    }
    world.put(SCHEMAS, schema(3, 0));
    sleep(Duration::from_secs(3)).await;
    let before = stored();
    sleep(10 * MINUTE).await;
    assert_eq!(stored(), before);
    assert!(before < names.len(), "all were stored before it changed");
}

#[tokio::test(start_paused = true)]
async fn defaults_are_stored_where_the_schema_asks_for_it_and_never_twice() {
    let world = world(&[("a", 5), ("b", 1)]);
    let mut going = thing("going");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    world.put(THINGS, going);
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!((persisted(&world), replica.log.count(is_write)), (String::new(), 0));
    world.put(SCHEMAS, persisting(2));
    sleep(LOOK).await;
    assert_eq!((persisted(&world).as_str(), note(&world, "a")), ("Settling", json!(null)));
    sleep(MINUTE).await;
    assert_eq!((note(&world, "a"), note(&world, "b")), (json!("none"), json!("none")));
    assert_eq!(note(&world, "going"), json!(null));
    for name in ["a", "b"] {
        let owners = world.stored(THINGS, name).expect("it is there")["metadata"]["managedFields"].take();
        let managers: Vec<_> =
            owners.as_array().into_iter().flatten().map(|owner| &owner["manager"]).collect();
        assert_eq!(managers, ["user"]);
    }
    assert_eq!(persisted(&world), "AllPersisted");
    let found = existing(&world);
    assert_eq!((&found["persisted"]["stored"], &found["defaulted"]), (&json!(2), &json!(0)));
    // A dry run, the write, and the removal of our own entry.
    assert_eq!(replica.log.count(is_write), 6, "{:?}", replica.log.of(is_write));
    drop(replica);
    let replica = Replica::start(&world, signed());
    sleep(10 * MINUTE).await;
    assert_eq!(replica.log.count(is_apply), 0, "{:?}", replica.log.of(is_apply));
    // No replica answered when this one was created.
    world.put(THINGS, thing("later"));
    sleep(60 * MINUTE).await;
    assert_eq!(note(&world, "later"), json!("none"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stored_while_a_policy_says_so() {
    for (spec, reason) in [
        (json!({ "paused": true }), "Paused"),
        (json!({ "pauseAll": true, "selector": { "groups": ["other.io"] } }), "Paused"),
        (json!({ "mode": "Audit" }), "AuditOnly"),
        (json!({ "mode": "Ignore" }), "Ignored"),
    ] {
        let world = world(&[("a", 5)]);
        govern(&world, 1, spec);
        world.put(SCHEMAS, persisting(1));
        let replica = Replica::start(&world, signed());
        sleep(2 * MINUTE).await;
        assert_eq!((persisted(&world).as_str(), replica.log.count(is_write)), (reason, 0));
        govern(&world, 2, json!({}));
        sleep(MINUTE).await;
        assert_eq!((persisted(&world).as_str(), note(&world, "a")), ("AllPersisted", json!("none")));
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_bounds_the_writes() {
    let names: Vec<String> = (0..10).map(|n| format!("t{n}")).collect();
    let world = world(&names.iter().map(|name| (name.as_str(), 5)).collect::<Vec<_>>());
    govern(&world, 1, json!({ "maxWritesPerSecond": 1 }));
    world.put(SCHEMAS, persisting(1));
    let replica = Replica::start(&world, signed());
    sleep(2 * MINUTE).await;
    assert_eq!(persisted(&world), "AllPersisted");
    let begun = replica.log.of(|request| is_write(request) && request.asked("dryRun") == "All");
    let begun: Vec<_> = begun.iter().map(|request| request.at).collect();
    assert_eq!(begun.len(), 10);
    assert!(begun[9] - begun[0] >= Duration::from_secs(9), "{:?}", begun[9] - begun[0]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_would_lose_a_field_has_the_object_held() {
    let world = world(&[("a", 5)]);
    world.put(SCHEMAS, persisting(1));
    // What a server answers whose dry run takes a field from its owner.
    let harmed = {
        let mut object = world.stored(THINGS, "a").expect("it is there");
        object["metadata"]["managedFields"][0]["fieldsV1"] = json!({});
        object
    };
    world.fails(move |request| (request.asked("dryRun") == "All").then(|| Answer::json(harmed.clone())));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(persisted(&world), "ObjectsHeld");
    let mut first = existing(&world)["persisted"]["firstHeld"][0].take();
    assert_eq!((first["name"].take(), first["reason"].take()), (json!("a"), json!("Owned")));
    assert_eq!(replica.log.count(is_write), 1, "the dry run");
    assert_eq!(note(&world, "a"), json!(null));
}

#[tokio::test(start_paused = true)]
async fn who_is_faster_keeps_what_he_wrote() {
    let world = world(&[("a", 5)]);
    world.put(SCHEMAS, persisting(1));
    let mut is_first = true;
    world.loses(move |world, request| {
        if request.asked("dryRun") == "All" && std::mem::take(&mut is_first) {
            let mut object = world.stored(THINGS, "a").expect("it is there");
            object["spec"]["note"] = json!("mine");
            world.put(THINGS, object);
        }
        None
    });
    let _replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!((persisted(&world).as_str(), note(&world, "a")), ("AllPersisted", json!("mine")));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_forbidden_or_rejected_is_in_the_status() {
    let world = world(&[("a", 5)]);
    world.put(SCHEMAS, persisting(1));
    let may_write_others = Arc::new(AtomicBool::new(false));
    let allowed = may_write_others.clone();
    world.fails(move |request| {
        if request.path.ends_with("/selfsubjectaccessreviews") {
            return Some(Answer::json(json!({ "status": { "allowed": allowed.load(Ordering::Relaxed) } })));
        }
        let text = "things.example.com \"a\" is forbidden: User \"etch\" cannot patch resource \"things\" in \
            API group \"example.com\" in the namespace \"ns\"";
        is_write(request).then(|| Answer::status(403, "Forbidden", text))
    });
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(persisted(&world), "Forbidden");
    assert!(message(&world).contains("a permission is missing: {apiGroups:"), "{}", message(&world));
    may_write_others.store(true, Ordering::Relaxed);
    sleep(10 * MINUTE).await;
    assert_eq!(persisted(&world), "ObjectsRejected");
    assert!(message(&world).contains("does not let Etch patch this object"), "{}", message(&world));
    world.fails(|request| is_write(request).then(|| Answer::invalid("canary")));
    sleep(70 * MINUTE).await;
    assert_eq!(persisted(&world), "ObjectsRejected");
    assert!(message(&world).contains("the object is invalid"), "{}", message(&world));
    let status = world.stored(SCHEMAS, "one").expect("it is there").to_string();
    assert!(!status.contains("canary"), "{status}");
    drop(replica);
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_does_not_answer_about_is_written_soon_after_it_is_back() {
    let world = world(&[("a", 5), ("b", 5)]);
    world.put(SCHEMAS, persisting(1));
    world.fails(|request| {
        let text = "Internal error occurred: failed calling webhook \"w\": no endpoints available";
        is_write(request).then(|| Answer::status(500, "InternalError", text))
    });
    let _replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(persisted(&world), "Incomplete");
    assert!(
        message(&world).contains("2 not written for want of an answer (ns/a, ns/b)"),
        "{}",
        message(&world)
    );
    world.heals();
    sleep(6 * MINUTE).await;
    assert_eq!(persisted(&world), "AllPersisted");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_answers_late_does_not_hold_up_the_check() {
    let names: Vec<String> = (0..300).map(|number| format!("a{number:03}")).collect();
    let objects: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 5)).collect();
    let world = world(&objects);
    world.put(SCHEMAS, persisting(1));
    world.fails(|request| {
        let text = "Internal error occurred: failed calling webhook \"w\": context deadline exceeded";
        let answer = Answer::status(500, "InternalError", text);
        is_write(request).then(|| Answer::After(Duration::from_secs(10), Box::new(answer)))
    });
    let replica = Replica::start(&world, signed());
    sleep(2 * MINUTE).await;
    assert_eq!(persisted(&world), "Incomplete");
    assert!(message(&world).contains("until the next check"), "{}", message(&world));
    let writes = replica.log.count(is_write);
    assert!((3..20).contains(&writes), "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn defaults_that_the_server_does_not_keep_are_not_written_again_and_again() {
    let world = world(&[("a", 5)]);
    world.put(SCHEMAS, persisting(1));
    let pruned = world.stored(THINGS, "a").expect("it is there");
    world.fails(move |request| is_write(request).then(|| Answer::json(pruned.clone())));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(persisted(&world), "ObjectsRejected");
    assert!(message(&world).contains("does not keep the defaults"), "{}", message(&world));
    assert_eq!(replica.log.count(is_write), 2, "the dry run and the write");
}

/// The message of the condition.
fn message(world: &World) -> String {
    existing(world)["persisted"]["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_target_that_cannot_be_written_or_is_not_served_stops_no_other() {
    let world = world(&[("a", 5), ("b", 5)]);
    let mut schema = persisting(1);
    let target = |version: &str, resource: &str| {
        json!({
            "group": "example.com", "version": version, "resource": resource, "path": ".spec",
        })
    };
    // In the order in which they are checked: one that is not served, one that is, and one of another version
    // than is stored.
    schema["spec"]["targets"] =
        json!([target("v1", "absent"), target("v1", THINGS), target("v0", "somethings")]);
    world.put(SCHEMAS, schema);
    world.fails(|request| match request.path.as_str() {
        "/apis/example.com/v1/absent" => Some(Answer::status(404, "NotFound", "canary")),
        "/apis/example.com/v0/somethings" => {
            Some(Answer::json(json!({ "metadata": {}, "items": [thing("s")] })))
        }
        _ => None,
    });
    let _replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!((note(&world, "a"), note(&world, "b")), (json!("none"), json!("none")));
    assert_eq!(persisted(&world), "NotSupported");
    assert_eq!(
        message(&world),
        "2 of 3 objects hold their defaults; somethings.example.com is not a custom resource, so Etch stores \
         nothing in its objects; not checked: absent.example.com/v1 is not served"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_held_names_the_rule_also_where_a_target_is_not_served() {
    let world = world(&[("a", 5), ("b", 5)]);
    let mut schema = persisting(1);
    let mut absent = schema["spec"]["targets"][0].clone();
    absent["resource"] = json!("absent");
    schema["spec"]["targets"].as_array_mut().expect("a list").push(absent);
    schema["spec"]["rules"] = json!([
        { "rule": "true" }, { "rule": "self.?note.orValue('') == \
            oldSelf.?note.orValue('')", "field": ".note" },
    ]);
    world.put(SCHEMAS, schema);
    let missing = |request: &Request| request.path == "/apis/example.com/v1/absent";
    world.fails(move |request| missing(request).then(|| Answer::status(404, "NotFound", "canary")));
    let _replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    let rule = "with its defaults the object would break a rule that it does not break without them: \
        spec.rules[1] at .spec.note";
    assert_eq!(
        (persisted(&world).as_str(), message(&world)),
        (
            "ObjectsHeld",
            format!(
                "0 of 2 objects hold their defaults; 2 held (ns/a, ns/b), the first because: {rule}; not \
                 checked: absent.example.com/v1 is not served"
            )
        )
    );
    assert_eq!(existing(&world)["persisted"]["firstHeld"][1]["message"], rule);
    assert_eq!(note(&world, "a"), json!(null));
}

/// Everything that the status shows of stored defaults, by one word and a sentence.
fn wording(world: &World) -> (String, String) {
    (persisted(world), message(world))
}

#[tokio::test(start_paused = true)]
async fn objects_that_the_policy_does_not_select_are_not_written() {
    let world = world(&[("a", 5), ("b", 5)]);
    let mut elsewhere = thing("c");
    elsewhere["metadata"]["namespace"] = json!("team");
    elsewhere["spec"]["size"] = json!(5);
    world.put(THINGS, elsewhere);
    govern(&world, 1, json!({ "objects": { "namespaces": ["team"] } }));
    world.put(SCHEMAS, persisting(1));
    let replica = Replica::start(&world, signed());
    sleep(2 * MINUTE).await;
    assert_eq!((note(&world, "a"), note(&world, "c")), (json!(null), json!("none")));
    let expected = "1 of 3 objects hold their defaults; 2 not selected by the DefaultsPolicy";
    assert_eq!(wording(&world), ("AllPersisted".to_owned(), expected.to_owned()));
    assert_eq!(replica.log.count(is_write), 3, "{:?}", replica.log.of(is_write));
    // As soon as it selects them, they are written.
    govern(&world, 2, json!({}));
    sleep(MINUTE).await;
    assert_eq!((note(&world, "a"), note(&world, "b")), (json!("none"), json!("none")));
    let expected = "3 of 3 objects hold their defaults";
    assert_eq!(wording(&world), ("AllPersisted".to_owned(), expected.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_is_ignored_is_counted_apart_and_what_is_gone_does_not_count() {
    let world = world(&[("a", 5), ("gone", 5)]);
    let mut ignored = thing("ignored");
    ignored["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
    world.put(THINGS, ignored);
    world.put(SCHEMAS, persisting(1));
    world.loses(|world, request| {
        if request.asked("dryRun") == "All" && request.path.ends_with("/gone") {
            world.remove(THINGS, "gone");
            return Some(super::requests::not_found("gone"));
        }
        None
    });
    let _replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    let expected = "1 of 2 objects hold their defaults; 1 ignored by annotation: ns/ignored";
    assert_eq!(wording(&world), ("AllPersisted".to_owned(), expected.to_owned()));
    assert_eq!(existing(&world)["objects"], 2);
}

/// A schema that gives things with a note a mark.
fn marking() -> Value {
    let mut schema = persisting(1);
    schema["metadata"]["name"] = json!("two");
    schema["metadata"]["uid"] = json!("two");
    schema["spec"]["schema"] = json!({ "openAPIV3Schema": { "type": "object", "properties": {
        "note": { "type": "string" }, "mark": { "type": "string" },
    } } });
    schema["spec"]["rules"] = json!([]);
    schema["spec"]["defaults"] = json!([{ "path": ".mark", "when": "has(self.note)", "value": "'x'" }]);
    schema
}

#[tokio::test(start_paused = true)]
async fn a_default_that_depends_on_another_schema_is_stored_after_its_default() {
    let world = world(&[("a", 5)]);
    world.put(SCHEMAS, persisting(1));
    world.put(SCHEMAS, marking());
    let _replica = Replica::start(&world, signed());
    sleep(2 * MINUTE).await;
    let spec = world.stored(THINGS, "a").expect("it is there")["spec"].take();
    assert_eq!((&spec["note"], &spec["mark"]), (&json!("none"), &json!("x")));
    assert_eq!([persisted(&world), persisted_by(&world, "two")], ["AllPersisted"; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_default_that_depends_on_one_that_is_not_stored_is_not_called_stored() {
    let world = world(&[("a", 5)]);
    world.put(SCHEMAS, marking());
    let _replica = Replica::start(&world, signed());
    sleep(2 * MINUTE).await;
    assert_eq!(persisted_by(&world, "two"), "ObjectsHeld");
    let mut two = world.stored(SCHEMAS, "two").expect("it is there");
    let found = two["status"]["existing"].take();
    assert_eq!(found["defaulted"], 1);
    assert_eq!(found["persisted"]["firstHeld"][0]["reason"], "Dependent");
    assert_eq!(world.stored(THINGS, "a").expect("it is there")["spec"]["mark"], json!(null));
}

#[tokio::test(start_paused = true)]
async fn after_owners_were_lost_nothing_is_written_until_the_schema_changes() {
    let world = world(&[("a", 5), ("b", 5)]);
    world.put(SCHEMAS, persisting(1));
    // A server whose write forgets an owner, and whose dry run does not.
    world.loses(|world, request| {
        let is_real = request.verb() == "PATCH json" && request.asked("dryRun").is_empty();
        (is_write(request) && is_real).then(|| {
            let name = request.path.rsplit('/').next().expect("a name");
            let mut object = world.stored(THINGS, name).expect("it is there");
            object["metadata"]["managedFields"].as_array_mut().expect("owners").remove(0);
            world.put(THINGS, object.clone());
            Answer::json(object)
        })
    });
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    let lost = wording(&world);
    assert_eq!(lost.0, "OwnersLost");
    let writes = replica.log.count(is_write);
    assert!(writes > 0);
    for (what, change) in [("recheck", json!("now")), ("more", json!(null)), ("fact", json!(null))] {
        match what {
            "recheck" => {
                let mut asking = world.stored(SCHEMAS, "one").expect("it is there");
                asking["metadata"]["annotations"] = json!({ "etch-operator.io/recheck": change });
                world.put(SCHEMAS, asking);
            }
            "more" => world.put(THINGS, thing("c")),
            _ => world.put(FACTS, fact("b")),
        }
        sleep(2 * MINUTE).await;
        assert_eq!(replica.log.count(is_write), writes, "{what}: {:?}", replica.log.of(is_write));
        assert_eq!(wording(&world), lost, "{what}");
    }
    drop(replica);
    let replica = Replica::start(&world, signed());
    sleep(70 * MINUTE).await;
    assert_eq!((replica.log.count(is_write), wording(&world)), (0, lost));
    world.loses(|_, _| None);
    let mut changed = persisting(2);
    changed["spec"]["rules"] = json!([]);
    world.put(SCHEMAS, changed);
    sleep(MINUTE).await;
    assert_eq!((persisted(&world).as_str(), note(&world, "c")), ("AllPersisted", json!("none")));
}
