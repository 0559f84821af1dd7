//! API servers that lag behind a change of the schema: what is stored through them is found, once, and
//! repaired.

use std::time::Duration;

use serde_json::{Value, json};

use super::lists::page;
use super::pass_status::{set_default, set_policy};
use super::server::{Answer, Request};
use super::world::{CRD, HOUR, MINUTE, THINGS, World, filled, is_object_list, is_write, thing};

#[tokio::test(start_paused = true)]
async fn what_a_lagging_server_stores_after_the_pass_is_found_without_a_restart() {
    let world = World::with(&["a", "b"]);
    let (operator, log) = world.operates(2 * HOUR);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    // Both are read with the default, whatever etcd holds.
    world.put(THINGS, thing("created"));
    world.put(THINGS, thing("a"));
    // A user who writes through a server that is up to date stores the default.
    world.put(THINGS, filled(&thing("fine")));
    let before = log.count(is_write);
    tokio::time::sleep(20 * MINUTE).await;
    assert!(world.is_persisted("created") && world.is_persisted("a"), "{}", world.persisted());
    assert_eq!(world.persisted(), "True AllPersisted: all 4 objects store their defaults");
    let asked = log.count(is_write) - before;
    assert!(asked <= 5, "{asked} requests for two objects to be written, and one to be asked about");
    // Once.
    let (lists, writes) = (log.count(is_object_list), log.count(is_write));
    tokio::time::sleep(HOUR).await;
    assert_eq!((log.count(is_object_list), log.count(is_write)), (lists, writes));
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_cluster_is_listed_once_more_and_not_written() {
    let world = World::with(&["a", "b"]);
    let (operator, log) = world.operates(3 * HOUR);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.report(CRD).expect("a report")["status"]["verifyAt"].as_str().map(str::len), Some(20));
    let lists = log.count(is_object_list);
    let patches = log.count(|request| request.method == "PATCH");
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(log.count(is_object_list), lists + 1);
    // The report, which shows from now on that it was verified.
    assert_eq!(log.count(|request| request.method == "PATCH"), patches + 1);
    assert_eq!(world.report(CRD).expect("a report")["status"]["verifyAt"], json!(null));
    operator.abort();
    // And never again for these defaults.
    let log = world.operate(HOUR).await;
    assert_eq!(log.count(is_object_list), 1);
    assert_eq!(log.count(|request| request.method == "PATCH"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_forgets_neither_that_it_is_to_be_verified_nor_that_it_was() {
    let world = World::with(&["a"]);
    world.operate(MINUTE).await;
    world.put(THINGS, thing("late"));
    // It ends before the time, and so does the next one: neither asks twice.
    let log = world.operate(MINUTE).await;
    assert_eq!(log.count(is_write), 0);
    assert!(!world.is_persisted("late"));
    // Later.
    world.edit_report(CRD, |report| report["status"]["verifyAt"] = json!("2020-01-01T00:00:00Z"));
    world.operate(MINUTE).await;
    assert!(world.is_persisted("late"), "{}", world.persisted());
    let log = world.operate(HOUR).await;
    assert_eq!((log.count(is_object_list), log.count(is_write)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_during_the_pass_is_verified_by_its_end() {
    let names: Vec<String> = (0..40).map(|index| format!("o{index:02}")).collect();
    let world = World::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut done = false;
    // The list is over; a user writes through the server that lags behind before the sweep that verifies it.
    world.loses(move |world, request| {
        if is_write(request) && !std::mem::replace(&mut done, true) {
            world.put(THINGS, thing("meanwhile"));
        }
        None
    });
    let log = world.operate(MINUTE).await;
    assert!(world.is_persisted("meanwhile"), "{}", world.persisted());
    assert_eq!(log.count(is_write), 41, "one for each");
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_verification_does_not_lose_it() {
    let world = World::with(&["a"]);
    world.operate(MINUTE).await;
    world.put(THINGS, thing("late"));
    world.edit_report(CRD, |report| report["status"]["verifyAt"] = json!("2020-01-01T00:00:00Z"));
    world.fails(|request| is_object_list(request).then(|| Answer::status(500, "InternalError", "no")));
    world.operate(MINUTE).await;
    world.heals();
    world.operate(MINUTE).await;
    assert!(world.is_persisted("late"), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn a_default_that_changes_again_is_verified_again() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(3 * HOUR);
    tokio::time::sleep(HOUR).await;
    set_default(&world, 2, Some(5));
    world.serves(5, 5);
    tokio::time::sleep(MINUTE).await;
    let lists = log.count(is_object_list);
    world.put(THINGS, thing("late"));
    tokio::time::sleep(HOUR).await;
    assert_eq!(
        log.count(is_object_list),
        lists + 2,
        "one that finds it, and one that verifies what was written"
    );
    assert!(world.is_persisted("late"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn what_is_held_after_the_verification_is_not_taken_for_stored_after_a_restart() {
    let hidden = || {
        let mut object = thing("held");
        object["metadata"]["managedFields"][0]["fieldsV1"] = json!({ "f:spec": { "f:legacy": {} } });
        object
    };
    let world = World::with(&["a"]);
    world.put(THINGS, hidden());
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    let wording = world.persisted();
    assert!(wording.contains("1 held"), "{wording}");
    // A user writes it through a server that lags behind: the default is not stored, and the write is later
    // than the record.
    world.put(THINGS, hidden());
    tokio::time::sleep(30 * MINUTE).await;
    assert_eq!(world.persisted(), wording);
    operator.abort();
    let writes = log.count(is_write);
    let log = world.operate(MINUTE).await;
    assert!(!world.is_persisted("held"));
    assert_eq!(world.persisted(), wording, "it is held still");
    assert_eq!((writes, log.count(is_write)), (1, 0));
}

/// A world in which 1 was the default and 5 is, an object that has never stored either, and servers that all
/// lag behind.
pub(crate) async fn changed() -> World {
    let world = World::with(&[]);
    world.operate(MINUTE).await;
    world.put(THINGS, thing("a"));
    set_default(&world, 2, Some(5));
    world.serves(1, 1);
    world
}

pub(crate) fn value_and_owners(world: &World) -> (Value, Vec<Value>) {
    let object = world.stored(THINGS, "a").expect("nobody deletes it");
    let owners = object["metadata"]["managedFields"].as_array().expect("owners");
    (object["spec"]["size"].clone(), owners.iter().map(|owner| owner["manager"].clone()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_write_through_a_lagging_server_does_not_store_the_old_default() {
    let world = changed().await;
    // One server shows the new default; the write goes to the other one.
    world.serves(5, 1);
    let log = world.operate(MINUTE).await;
    assert_eq!(value_and_owners(&world), (json!(5), vec![json!("user")]));
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
    assert!(log.count(is_write) <= 3, "{} writes", log.count(is_write));
}

#[tokio::test(start_paused = true)]
async fn where_no_server_lags_a_changed_default_costs_one_write_and_no_owner() {
    let world = changed().await;
    world.serves(5, 5);
    let log = world.operate(MINUTE).await;
    assert_eq!(value_and_owners(&world), (json!(5), vec![json!("user")]));
    assert_eq!(log.count(is_write), 1);
}

/// A server that lags behind shows the old default of an object.
async fn showing_the_old_default() -> World {
    let world = changed().await;
    world.put(THINGS, {
        let mut old = thing("old");
        old["spec"]["size"] = 1.into();
        old
    });
    world
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_read_from_a_lagging_server_is_looked_at_again() {
    let world = showing_the_old_default().await;
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(log.count(is_write), 0, "it seems that a user has set 1");
    world.serves(5, 5);
    tokio::time::sleep(20 * MINUTE).await;
    assert_eq!(value_and_owners(&world), (json!(5), vec![json!("user")]));
    assert_eq!(log.count(is_write), 1, "what really holds the old value is not asked about");
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn the_same_is_found_where_etch_has_restarted_since() {
    let world = showing_the_old_default().await;
    world.operate(MINUTE).await;
    let log = world.operate(MINUTE).await;
    assert_eq!(log.count(is_write), 0, "it seems that a user has set 1");
    world.serves(5, 5);
    let log = world.operate(20 * MINUTE).await;
    assert_eq!(value_and_owners(&world), (json!(5), vec![json!("user")]));
    assert!(log.count(is_write) >= 1);
}

/// An object that is written for what Etch owns of it, whatever the default is.
fn owned(size: Option<u64>) -> Value {
    let mut object = thing("a");
    let owners = object["metadata"]["managedFields"].as_array_mut().expect("owners");
    let mut ours = owners[0].clone();
    ours["manager"] = "etch".into();
    owners.push(ours);
    if let Some(size) = size {
        object["spec"]["size"] = size.into();
    }
    object
}

fn is_dry_run(request: &Request) -> bool {
    is_write(request) && request.asked("dryRun") == "All"
}

#[tokio::test(start_paused = true)]
async fn what_a_lagging_server_shows_is_not_stored_by_a_write_for_another_reason() {
    let world = changed().await;
    world.put(THINGS, owned(None));
    let (operator, log) = world.operates(HOUR);
    // Reads and writes go to the server that lags behind.
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(value_and_owners(&world), (Value::Null, vec![json!("user"), json!("etch")]));
    assert_eq!(log.count(is_write), log.count(is_dry_run), "nothing is written");
    assert!(world.persisted().starts_with("False InProgress"), "{}", world.persisted());
    world.serves(5, 5);
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(value_and_owners(&world), (json!(5), vec![json!("user")]));
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn what_a_server_shows_that_fills_in_something_else_is_stored_and_is_kept() {
    let world = changed().await;
    world.put(THINGS, owned(Some(1)));
    world.serves(5, 5);
    let log = world.operate(MINUTE).await;
    assert_eq!(value_and_owners(&world), (json!(1), vec![json!("user")]));
    assert_eq!(log.count(is_dry_run), 1);
    // Long after the change, it is not in doubt.
    world.edit_report(CRD, |report| report["status"]["verifyAt"] = json!("2020-01-01T00:00:00Z"));
    world.put(THINGS, owned(Some(1)));
    let log = world.operate(MINUTE).await;
    assert_eq!(value_and_owners(&world), (json!(1), vec![json!("user")]));
    assert_eq!((log.count(is_dry_run), log.count(is_write) > 0), (0, true));
}

/// Lists these objects in two pages.
fn in_two_pages(world: &World, names: Vec<String>) {
    world.loses(move |world, request| {
        if !is_object_list(request) || request.is_for_metadata() {
            return None;
        }
        let objects = |names: &[String]| -> Vec<Value> {
            names.iter().filter_map(|name| Some(filled(&world.stored(THINGS, name)?))).collect()
        };
        let revision = |object: &Value| object["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
        let latest = objects(&names).iter().filter_map(revision).max()?;
        let (first, second) = names.split_at(names.len() / 2);
        Some(match request.asked("continue") {
            "" => page(latest, "more", objects(first)),
            _ => page(latest, "", objects(second)),
        })
    });
}

#[tokio::test(start_paused = true)]
async fn the_progress_of_an_interrupted_pass_is_no_proof_of_what_was_written_since_the_record() {
    let world = World::with(&[]);
    let names: Vec<String> = (0..200).map(|index| format!("o{index:05}")).collect();
    names.iter().for_each(|name| world.put(THINGS, thing(name)));
    in_two_pages(&world, names);
    set_policy(&world, 2, json!({ "maxWritesPerSecond": 10 }));
    world.operate(Duration::from_secs(14)).await;
    let status = || world.report(CRD).expect("a report")["status"].clone();
    assert_eq!(status()["upto"], "ns/o00099", "{}", world.persisted());
    let through = status()["through"].clone();
    // It is written through a server that lags behind, and a pass that goes on from the record reports how
    // far it has come.
    world.put(THINGS, thing("o00000"));
    world.operate(Duration::from_secs(5)).await;
    assert_eq!((&status()["upto"], &status()["through"]), (&json!("ns/o00099"), &through));
    world.operate(20 * MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: all 200"), "{}", world.persisted());
    assert!(world.is_persisted("o00000"));
}
