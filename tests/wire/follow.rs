//! A changed default that is followed, where the answer gets lost or another client writes between two
//! requests.

use std::time::Duration;

use serde_json::{Value, json};

use super::pass_status::{set_default, set_policy};
use super::server::{Answer, Log, Request};
use super::world::{MINUTE, THINGS, World, is_write};

/// A world in which Etch has stored 1, and the default has become 5 and is followed.
async fn changed() -> World {
    let world = World::with(&["a", "b"]);
    world.operate(MINUTE).await;
    assert!(world.is_persisted("a") && world.is_persisted("b"));
    set_policy(&world, 2, json!({ "onChange": [{ "path": ".spec.size", "action": "Follow" }] }));
    set_default(&world, 2, Some(5));
    world
}

/// Whether a request moves the value of an object.
fn is_move(name: &'static str) -> impl Fn(&Request) -> bool {
    move |request| {
        let mut operations = request.body.as_array().into_iter().flatten();
        let is_of_it = request.path.ends_with(&format!("/things/{name}"));
        is_of_it
            && request.asked("dryRun").is_empty()
            && !is_rewrite(request)
            && operations.any(|op| op["path"] == "/spec/size" && op["op"] != "move")
    }
}

/// Whether a request replaces the owners of an object.
fn is_rewrite(request: &Request) -> bool {
    let mut operations = request.body.as_array().into_iter().flatten();
    request.verb() == "PATCH merge" || operations.any(|op| op["path"] == "/metadata/managedFields")
}

/// Whether a request removes an entry of ours.
fn is_release(request: &Request) -> bool {
    let mut operations = request.body.as_array().into_iter().flatten();
    operations.any(|op| {
        op["op"] == "remove" && op["path"].as_str().is_some_and(|path| path.contains("managedFields"))
    })
}

/// The value of an object, and who owns something of it.
fn state(world: &World, name: &str) -> (Value, Vec<String>) {
    let object = world.stored(THINGS, name).expect("nobody deletes it");
    let owners = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let managers = owners.iter().map(|owner| owner["manager"].as_str().unwrap_or_default().to_owned());
    (object["spec"]["size"].clone(), managers.collect())
}

fn of_user(size: i64) -> (Value, Vec<String>) {
    (json!(size), vec!["user".to_owned()])
}

/// Nothing is left to do: what comes next writes to no object.
async fn is_over(world: &World) {
    let log: Log = world.operate(10 * MINUTE).await;
    assert_eq!(log.count(is_write), 0);
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn a_followed_value_whose_answer_is_lost_is_not_moved_again_and_is_left_to_nobody() {
    let world = changed().await;
    let mut losses = 1;
    world.loses(move |_, request| {
        let is_lost = losses > 0 && is_move("a")(request);
        losses -= i32::from(is_lost);
        is_lost.then(|| Answer::broken(["{\"metadata\": "]))
    });
    let log = world.operate(10 * MINUTE).await;
    assert_eq!((state(&world, "a"), state(&world, "b")), (of_user(5), of_user(5)));
    assert_eq!((log.count(is_move("a")), log.count(is_move("b"))), (1, 1));
    let rewrites = log.count(|request| is_rewrite(request) && request.path.ends_with("/things/a"));
    assert_eq!(rewrites, 1, "the entry that nobody has seen is found, and taken out");
    is_over(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_move_under_way_is_completed_where_the_policy_asks_for_no_writes_any_more() {
    for mode in ["Audit", "Ignore"] {
        let world = changed().await;
        let mut is_first = true;
        world.loses(move |world, request| {
            let is_late = is_move("a")(request) && std::mem::take(&mut is_first);
            let moved = is_late.then(|| world.stored(THINGS, "a").expect("it is there"));
            moved.map(|moved| Answer::json(moved).after(Duration::from_secs(5)))
        });
        let (operator, log) = world.operates(10 * MINUTE);
        while log.count(is_move("a")) == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        set_policy(&world, 3, json!({ "mode": mode }));
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(state(&world, "a").1, ["user", "etch"], "the answer is under way");
        tokio::time::sleep(MINUTE).await;
        assert_eq!(state(&world, "a"), of_user(5), "{mode}");
        let writes = log.count(is_write);
        operator.await.expect("it ends by itself");
        assert_eq!(log.count(is_write), writes, "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_its_user_takes_back_while_the_answer_is_lost_is_the_users() {
    let world = changed().await;
    let mut losses = 1;
    world.loses(move |world, request| {
        let is_lost = losses > 0 && is_move("a")(request);
        losses -= i32::from(is_lost);
        if is_lost {
            let mut object = world.stored(THINGS, "a").expect("it was just written");
            object["spec"]["size"] = 1.into();
            let owners = &mut object["metadata"]["managedFields"];
            owners[0]["fieldsV1"]["f:spec"]["f:size"] = json!({});
            owners.as_array_mut().expect("owners").truncate(1);
            world.put(THINGS, object);
        }
        is_lost.then_some(Answer::Hang)
    });
    let log = world.operate(10 * MINUTE).await;
    assert_eq!((state(&world, "a"), state(&world, "b")), (of_user(1), of_user(5)));
    assert_eq!(log.count(is_move("a")), 1, "what is owned is not moved");
    is_over(&world).await;
}

#[tokio::test(start_paused = true)]
async fn another_writer_between_moving_and_letting_go_loses_nothing() {
    let world = changed().await;
    let mut meanwhile = 1;
    // The user writes just after the value was moved, and before our entry is taken out.
    world.loses(move |world, request| {
        if meanwhile > 0 && is_move("a")(request) {
            meanwhile -= 1;
            let moved = world.stored(THINGS, "a").expect("it was just written");
            let mut edited = moved.clone();
            edited["spec"]["name"] = "other".into();
            world.put(THINGS, edited);
            return Some(Answer::json(moved));
        }
        None
    });
    let log = world.operate(10 * MINUTE).await;
    assert_eq!((state(&world, "a"), state(&world, "b")), (of_user(5), of_user(5)));
    assert_eq!(world.stored(THINGS, "a").expect("it")["spec"]["name"], "other");
    assert_eq!((log.count(is_move("a")), log.count(is_move("b"))), (1, 1));
    assert!(
        log.count(is_release) >= 2,
        "it was tried on the object as it was, and is done on the one that is"
    );
    is_over(&world).await;
}

/// Puts an entry of ours into an object, as a crash between storing and releasing leaves it.
fn leave_entry(world: &World, name: &str) {
    let mut object = world.stored(THINGS, name).expect("nobody deletes it");
    let entry = json!({
        "manager": "etch", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": { "f:size": {} } },
    });
    object["metadata"]["managedFields"].as_array_mut().expect("owners").push(entry);
    world.put(THINGS, object);
}

#[tokio::test(start_paused = true)]
async fn what_lay_under_an_entry_that_a_crash_has_left_follows_and_is_counted() {
    let world = changed().await;
    world.serves(5, 5);
    leave_entry(&world, "a");
    let log = world.operate(10 * MINUTE).await;
    assert_eq!((state(&world, "a"), state(&world, "b")), (of_user(5), of_user(5)));
    assert_eq!((log.count(is_move("a")), log.count(is_move("b"))), (1, 1));
    assert!(world.persisted().ends_with("; 2 followed a changed default"), "{}", world.persisted());
    is_over(&world).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_beside_an_entry_that_a_crash_has_left_is_counted() {
    let world = changed().await;
    let mut owned = world.stored(THINGS, "a").expect("nobody deletes it");
    owned["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:size"] = json!({});
    world.put(THINGS, owned);
    world.serves(5, 5);
    leave_entry(&world, "a");
    world.operate(10 * MINUTE).await;
    assert_eq!((state(&world, "a"), state(&world, "b")), (of_user(1), of_user(5)));
    let wording = world.persisted();
    assert!(wording.ends_with("; 1 followed a changed default; 1 keeps the previous default"), "{wording}");
    is_over(&world).await;
}

#[tokio::test(start_paused = true)]
async fn defaults_that_change_before_a_pass_do_not_push_out_the_one_that_objects_hold() {
    let world = World::with(&["a", "b"]);
    world.operate(MINUTE).await;
    set_policy(
        &world,
        2,
        json!({ "settle": "1h", "onChange": [{ "path": ".spec.size", "action": "Follow" }] }),
    );
    for generation in 2..7 {
        set_default(&world, generation, Some(10 + generation));
        world.operate(MINUTE).await;
        assert!(world.persisted().starts_with("False Settling"), "{}", world.persisted());
    }
    world.operate(120 * MINUTE).await;
    assert_eq!(state(&world, "a"), of_user(16));
    assert!(world.persisted().contains("2 followed"), "{}", world.persisted());
}
