//! A CRD that changes unnoticed while its objects are written: what is written by the old schema, and what
//! that drops.

use std::time::Duration;

use serde_json::{Value, json};

use super::pass_status::set_policy;
use super::server::{Answer, Request};
use super::world::{CRD, CRDS, HOUR, MINUTE, THINGS, World, is_about_objects, is_write, thing};

/// A world whose objects are written so many a second.
pub(crate) fn slow(objects: usize, writes_per_second: u32, spec: Value) -> World {
    let world = World::with(&[]);
    for index in 0..objects {
        let mut object = thing(&format!("o{index:03}"));
        object["spec"] = spec.clone();
        world.put(THINGS, object);
    }
    set_policy(&world, 2, json!({ "maxWritesPerSecond": writes_per_second }));
    world
}

/// The same world, whose objects have so many owners that a write of them is no patch that checks their
/// fields.
pub(crate) fn slow_and_unchecked(objects: usize, writes_per_second: u32, spec: Value) -> World {
    let world = slow(objects, writes_per_second, spec);
    for index in 0..objects {
        let mut object = world.stored(THINGS, &format!("o{index:03}")).expect("it is there");
        let owners = object["metadata"]["managedFields"].as_array_mut().expect("owners");
        owners.extend((0..11).map(|number| {
            json!({ "manager": format!("tool-{number}"), "operation": "Update",
                "apiVersion": "example.com/v1",
                "fieldsType": "FieldsV1", "fieldsV1": {} })
        }));
        world.put(THINGS, object);
    }
    world
}

/// Takes `spec.name` out of the schema, and no watch reports it.
pub(crate) fn forget_name(world: &World) {
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    crd["metadata"]["generation"] = json!(2);
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"].as_object_mut().expect("fields").remove("name");
    world.set_back(CRDS, crd);
}

/// Whether it asks for the generation of the CRD.
fn is_about_generation(request: &Request) -> bool {
    request.method == "GET" && request.path.ends_with(CRD) && request.is_for_metadata()
}

fn dropped(world: &World) -> Value {
    world.report(CRD).expect("a report")["status"]["dropped"].clone()
}

/// Fails if the condition does not name `spec.name` as what a write would destroy.
fn assert_name_is_held(world: &World) {
    let wording = world.persisted();
    assert!(
        wording.contains("held: a write would destroy fields") && wording.contains(".spec.name"),
        "{wording}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_crd_whose_change_nobody_hears_of_is_read_again_within_a_second() {
    let world = slow(100, 10, json!({ "name": "n" }));
    let (operator, log) = world.operates(10 * MINUTE);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let before = log.count(is_write);
    assert!((20..80).contains(&before), "{before} writes");
    forget_name(&world);
    tokio::time::sleep(5 * MINUTE).await;
    let more = log.count(is_write) - before;
    assert!(more <= 11, "{more} writes by a schema that is gone");
    assert_name_is_held(&world);
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn the_generation_is_asked_for_once_a_second_while_objects_are_written_and_never_else() {
    let world = slow(100, 10, json!({ "name": "n" }));
    let (operator, log) = world.operates(10 * MINUTE);
    tokio::time::sleep(9 * MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: all 100"), "{}", world.persisted());
    let writes = log.of(is_write);
    let writing = writes[writes.len() - 1].at - writes[0].at;
    let is_meanwhile = |asked: &Request| asked.at > writes[0].at && asked.at < writes[99].at;
    let asked = log.of(is_about_generation).iter().filter(|asked| is_meanwhile(asked)).count() as u64;
    // So does each report of a record, every three seconds.
    assert!((8..=writing.as_secs() * 4 / 3 + 2).contains(&asked), "{asked} in {writing:?}");
    let after =
        log.of(is_about_generation).into_iter().filter(|asked| asked.at > writes[99].at + MINUTE).count();
    assert_eq!(after, 0);
    operator.abort();
}

/// Has every server forget `spec.name` as soon as a list is answered, with or without it in the answer.
fn forgets_name_while_listing(world: &World, is_shown: bool) {
    let mut is_done = false;
    world.loses(move |world, request| {
        if !request.is_list() || !is_about_objects(request) || std::mem::replace(&mut is_done, true) {
            return None;
        }
        forget_name(world);
        for index in 0..50 {
            let mut object = world.stored(THINGS, &format!("o{index:03}")).expect("it is there");
            object["spec"].as_object_mut().expect("fields").remove("name");
            world.set_back(THINGS, object);
        }
        (!is_shown).then(|| world.answer(request).after(Duration::from_millis(10)))
    });
}

#[tokio::test(start_paused = true)]
async fn a_server_that_no_longer_has_a_field_refuses_the_write() {
    let world = slow(50, 10, json!({ "name": "n" }));
    forgets_name_while_listing(&world, true);
    let log = world.operate(5 * MINUTE).await;
    assert!((1..=16).contains(&log.count(is_write)), "{} writes", log.count(is_write));
    assert!((0..50).all(|index| !world.is_persisted(&format!("o{index:03}"))), "nothing was stored");
    assert_eq!(dropped(&world), json!([]));
    assert_name_is_held(&world);
}

#[tokio::test(start_paused = true)]
async fn what_was_read_since_the_crd_changed_is_not_written() {
    let world = slow(50, 10, json!({ "name": "n" }));
    forgets_name_while_listing(&world, false);
    let log = world.operate(5 * MINUTE).await;
    assert_eq!(log.count(is_write), 0);
    assert_name_is_held(&world);
}

#[tokio::test(start_paused = true)]
async fn what_a_write_drops_is_named_and_ends_the_writing() {
    let world = slow_and_unchecked(50, 10, json!({ "name": "n" }));
    let mut changed = false;
    world.loses(move |world, request| {
        if !is_write(request) {
            return None;
        }
        if !std::mem::replace(&mut changed, true) {
            forget_name(world);
        }
        let name = request.path.rsplit('/').next().expect("a name");
        let mut object = world.stored(THINGS, name).expect("it is there");
        object["spec"].as_object_mut().expect("fields").remove("name");
        Some(Answer::json(object))
    });
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(5 * MINUTE).await;
    let writes = log.count(is_write);
    assert!(writes <= 2, "{writes} writes");
    assert_eq!(dropped(&world), json!([{ "path": ".spec.name", "objects": writes }]));
    let wording = world.persisted();
    assert!(
        wording
            .contains("writes dropped fields, by a change of the CRD or by admission: .spec.name (1 object"),
        "{wording}"
    );
    let events = world.events();
    let is_reported =
        |(event, _): &(String, u64)| event.contains("HiddenFieldsDropped") && event.contains(".spec.name");
    assert!(events.iter().any(is_reported), "{events:?}");
    for (generation, paused) in [(3, true), (4, false)] {
        set_policy(&world, generation, json!({ "maxWritesPerSecond": 10, "paused": paused }));
        tokio::time::sleep(5 * MINUTE).await;
        let wording = world.persisted();
        assert!(
            wording.contains("writes dropped fields, by a change of the CRD or by admission"),
            "{wording}"
        );
    }
    operator.abort();
}

/// The server has found the field before admission took it away: no schema lacks it.
#[tokio::test(start_paused = true)]
async fn a_field_that_admission_moves_ends_nothing() {
    let world = slow(50, 50, json!({ "name": "n" }));
    world.loses(move |world, request| {
        if !is_write(request) || !is_about_objects(request) {
            return None;
        }
        let mut object = world.stored(THINGS, request.path.rsplit('/').next()?)?;
        object["spec"].as_object_mut().expect("fields").remove("name")?;
        object["metadata"]["labels"] = json!({ "moved": "n" });
        world.set_back(THINGS, object.clone());
        Some(Answer::json(object))
    });
    let log = world.operate(HOUR).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 50 objects store their defaults");
    assert_eq!(dropped(&world), json!([]));
    assert!(log.count(is_write) <= 150, "{} writes", log.count(is_write));
}

#[tokio::test(start_paused = true)]
async fn what_a_server_with_the_new_schema_showed_and_wrote_is_named_too() {
    // Its owner names the field, and no page shows it.
    let world = slow(100, 10, json!({}));
    let (operator, log) = world.operates(10 * MINUTE);
    tokio::time::sleep(Duration::from_millis(4500)).await;
    let before = log.count(is_write);
    forget_name(&world);
    tokio::time::sleep(5 * MINUTE).await;
    let named = dropped(&world)[0]["objects"].as_u64().expect("a number") as usize;
    let more = log.count(is_write) - before;
    assert!((more..more + 12).contains(&named), "{named} named, {more} written since the change");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_field_that_owners_name_and_nobody_has_is_not_said_to_be_dropped() {
    let world = slow(50, 10, json!({}));
    world.operate(5 * MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: all 50"), "{}", world.persisted());
    assert_eq!(dropped(&world), json!([]));
}
