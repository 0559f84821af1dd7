//! Objects that admission or the authorizer treats apart: they wait alone, by name, and cost next to nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::server::{Answer, Request};
use super::world::{
    CRD, CRDS, HOUR, MINUTE, THINGS, World, crd_named, filled, is_object_list, is_write, thing,
};

fn is_of(name: &'static str) -> impl Fn(&Request) -> bool {
    move |request| is_write(request) && request.path.ends_with(&format!("/things/{name}"))
}

/// A world whose CRD serves a second version that lacks the default: writes have to be proved.
pub(crate) fn of_two_versions(names: &[&str]) -> World {
    let world = World::with(names);
    let mut crd = crd_named(THINGS);
    let mut old = crd["spec"]["versions"][0].clone();
    (old["name"], old["storage"]) = (json!("v0"), json!(false));
    let size = &mut old["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"];
    size.as_object_mut().expect("an object").remove("default");
    crd["spec"]["versions"].as_array_mut().expect("a list").push(old);
    world.put(CRDS, crd);
    world
}

/// What the report names as rejected.
fn rejected(world: &World) -> Value {
    world.report(CRD).expect("a report")["status"]["rejected"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_object_that_admission_changes_on_each_write_is_left_alone_and_named() {
    let world = of_two_versions(&["a", "b"]);
    let mut stamp = 0;
    world.loses(move |world, request| {
        if !is_of("a")(request) {
            return None;
        }
        // A mutating webhook that notes when an object was written last.
        let mut object = world.stored(THINGS, "a")?;
        stamp += 1;
        object["metadata"]["annotations"] = json!({ "stamp": stamp.to_string() });
        world.put(THINGS, object);
        Some(Answer::json(filled(&world.stored(THINGS, "a")?)))
    });
    let (operator, log) = world.operates(2 * HOUR);
    tokio::time::sleep(9 * MINUTE).await;
    let writes = log.count(is_of("a"));
    assert!(writes <= 3, "{writes} writes in nine minutes");
    assert!(world.is_persisted("b"));
    let wording = world.persisted();
    assert!(
        wording
            .starts_with("False ObjectsRejected: 1 of 2 objects is known to store its defaults; 1 rejected"),
        "{wording}"
    );
    assert!(wording.contains("ns/a") && wording.contains("admission changes it on each write"), "{wording}");
    assert_eq!(rejected(&world)[0]["reason"], "Mutated", "{}", rejected(&world));
    operator.await.expect("it ends by itself");
    let writes = log.count(is_of("a"));
    assert!((4..=15).contains(&writes), "{writes} writes in two hours");
}

#[tokio::test(start_paused = true)]
async fn such_an_object_is_left_alone_as_soon_where_its_owners_have_to_be_rewritten_first() {
    let world = of_two_versions(&[]);
    let mut old = thing("a");
    old["metadata"]["managedFields"][0]["apiVersion"] = json!("example.com/v0");
    world.put(THINGS, old);
    let mut stamp = 0;
    world.loses(move |world, request| {
        let mut object = Some(request).filter(|it| is_of("a")(it)).and_then(|_| world.stored(THINGS, "a"))?;
        stamp += 1;
        object["metadata"]["annotations"] = json!({ "stamp": stamp.to_string() });
        // The server takes what admission does for the manager's who has sent the request.
        let owners = object["metadata"]["managedFields"].as_array_mut()?;
        owners.retain(|owner| owner["manager"] != "etch");
        owners.push(json!({ "manager": "etch", "operation": "Update", "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": { "f:metadata": { "f:annotations": { "f:stamp": {} } } } }));
        world.put(THINGS, object);
        Some(Answer::json(filled(&world.stored(THINGS, "a")?)))
    });
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(9 * MINUTE).await;
    let writes = log.count(is_of("a"));
    assert!((1..=3).contains(&writes), "{writes} writes in nine minutes");
    assert_eq!(rejected(&world)[0]["reason"], "Mutated", "{}", rejected(&world));
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_user_who_changes_such_an_object_again_and_again_does_not_multiply_its_writes() {
    let world = of_two_versions(&["a"]);
    let mut stamp = 0;
    world.loses(move |world, request| {
        let mut object = Some(request).filter(|it| is_of("a")(it)).and_then(|_| world.stored(THINGS, "a"))?;
        stamp += 1;
        object["metadata"]["annotations"] = json!({ "stamp": stamp.to_string() });
        world.put(THINGS, object);
        Some(Answer::json(filled(&world.stored(THINGS, "a")?)))
    });
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    for round in 0..60 {
        let mut object = world.stored(THINGS, "a").expect("it is there");
        object["spec"]["name"] = json!(round.to_string());
        world.put(THINGS, object);
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert!(log.count(is_of("a")) <= 3, "{} writes in six minutes", log.count(is_of("a")));
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_default_admission_takes_away_again_is_left_alone_and_named() {
    let world = World::with(&["a", "b"]);
    world.loses(move |world, request| {
        let mut object = Some(request).filter(|it| is_of("a")(it)).and_then(|_| world.stored(THINGS, "a"))?;
        object["spec"].as_object_mut()?.remove("size");
        world.put(THINGS, object);
        Some(Answer::json(world.stored(THINGS, "a")?))
    });
    let (operator, log) = world.operates(9 * MINUTE);
    operator.await.expect("it ends by itself");
    let writes = log.count(is_of("a"));
    assert!(writes <= 3, "{writes} writes in nine minutes");
    let wording = world.persisted();
    assert!(wording.starts_with("False ObjectsRejected") && wording.contains("ns/a"), "{wording}");
    assert_eq!(rejected(&world)[0]["reason"], "Mutated", "{}", rejected(&world));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_may_not_be_written_waits_alone() {
    let world = World::with(&["a", "b", "c"]);
    world.fails(|request| {
        let message =
            "things.example.com \"b\" is forbidden: User \"etch\" cannot patch resource \"things\" in API \
             group \"example.com\" in the namespace \"ns\"";
        is_of("b")(request).then(|| Answer::status(403, "Forbidden", message))
    });
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(5 * MINUTE).await;
    assert!(world.is_persisted("a") && world.is_persisted("c"));
    let wording = world.persisted();
    assert!(
        wording.starts_with(
            "False ObjectsRejected: 2 of 3 objects are known to store their defaults; 1 rejected"
        ),
        "{wording}"
    );
    assert!(wording.contains("ns/b") && !wording.contains("ns/a"), "{wording}");
    assert_eq!(rejected(&world)[0]["reason"], "Forbidden", "{}", rejected(&world));
    let lists = log.count(is_object_list);
    assert!(lists <= 2, "{lists} lists");
    world.heals();
    operator.await.expect("it ends by itself");
    assert_eq!(world.persisted(), "True AllPersisted: all 3 objects store their defaults");
}

/// Whether all objects are forbidden is unknown then, and no message reports that they are.
#[tokio::test(start_paused = true)]
async fn where_no_server_answers_whether_others_may_be_written_the_object_waits_alone() {
    let world = World::with(&["a", "b", "c"]);
    let is_refused = AtomicBool::new(false);
    let mut unanswered = 3;
    world.fails(move |request| {
        if is_of("b")(request) {
            is_refused.store(true, Ordering::Relaxed);
            let message =
                "things.example.com \"b\" is forbidden: User \"etch\" cannot patch resource \"things\" in \
                 API group \"example.com\" in the namespace \"ns\"";
            return Some(Answer::status(403, "Forbidden", message));
        }
        let asks = request.path.ends_with("/selfsubjectaccessreviews") && is_refused.load(Ordering::Relaxed);
        unanswered -= i32::from(asks);
        (asks && unanswered >= 0).then(Answer::unavailable)
    });
    let (operator, _) = world.operates(HOUR);
    tokio::time::sleep(5 * MINUTE).await;
    assert!(world.is_persisted("a") && world.is_persisted("c"));
    let events = world.events();
    assert!(!events.iter().any(|(event, _)| event.contains("Forbidden Custom")), "{events:?}");
    tokio::time::sleep(30 * MINUTE).await;
    assert_eq!(rejected(&world)[0]["reason"], "Forbidden", "{}", rejected(&world));
    world.heals();
    operator.await.expect("it ends by itself");
    assert_eq!(world.persisted(), "True AllPersisted: all 3 objects store their defaults");
}

#[tokio::test(start_paused = true)]
async fn a_role_that_is_taken_away_during_a_pass_is_named_with_all_its_verbs() {
    let world = World::with(&["a", "b", "c"]);
    let is_revoked = AtomicBool::new(false);
    world.fails(move |request| {
        if is_write(request) {
            is_revoked.store(true, Ordering::Relaxed);
            let message = "things.example.com is forbidden: User \"etch\" cannot patch resource \"things\"";
            return Some(Answer::status(403, "Forbidden", message));
        }
        let asks = request.path.ends_with("/selfsubjectaccessreviews");
        let is_denied = asks && is_revoked.load(Ordering::Relaxed);
        is_denied.then(|| Answer::json(json!({ "status": { "allowed": false } })))
    });
    world.operate(MINUTE).await;
    let rule =
        r#"{apiGroups: ["example.com"], resources: ["things"], verbs: ["get", "list", "watch", "patch"]}"#;
    let expected =
        format!("False Forbidden: a permission is missing; add this rule to Etch's ClusterRole: {rule}");
    assert_eq!(world.persisted(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_missing_altogether_is_asked_about_once_however_many_objects_there_are() {
    let names: Vec<String> = (0..100).map(|index| format!("o{index:03}")).collect();
    let world = World::with(&[]);
    for name in &names {
        world.put(THINGS, thing(name));
    }
    world.fails(|request| {
        let message =
            "forbidden: User \"etch\" cannot patch resource \"things\" in API group \"example.com\" in the \
             namespace \"ns\"";
        is_write(request).then(|| Answer::status(403, "Forbidden", message))
    });
    let log = world.operate(MINUTE).await;
    let asked = log.count(|request| request.path.contains("selfsubjectaccessreviews"));
    assert!(asked <= 12, "{asked} questions");
    let wording = world.persisted();
    assert!(
        wording.starts_with("False ObjectsRejected: 0 of 100 objects are known to store their defaults"),
        "{wording}"
    );
}
