//! A CRD whose objects another API server serves, from the beginning or from some time on.

use super::server::{Answer, Request};
use super::world::{HOUR, MINUTE, World, is_about_objects, is_object_list, is_write};

/// Whether it asks who serves a CRD's group and version.
pub(crate) fn is_about_server(request: &Request) -> bool {
    request.path.contains("/apiservices/v1.example.com")
}

/// Fails if the condition does not name the server that has the objects.
fn assert_served_elsewhere(world: &World) {
    let wording = world.persisted();
    let expected = "False NotServed: an aggregated API server (Service system/things)";
    assert!(wording.starts_with(expected), "{wording}");
}

#[tokio::test(start_paused = true)]
async fn a_crd_whose_objects_another_server_serves_is_left_alone_until_they_are_its_own() {
    let world = World::with(&["a"]);
    world.fails(|request| is_about_server(request).then(taken_over));
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(30 * MINUTE).await;
    assert_served_elsewhere(&world);
    assert_eq!(log.count(is_about_objects), 0, "{:?}", log.of(is_about_objects));
    let asked = log.count(is_about_server);
    assert!((3..=5).contains(&asked), "asked {asked} times in half an hour");
    world.heals();
    tokio::time::sleep(11 * MINUTE).await;
    assert!(world.is_persisted("a"));
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
    operator.await.expect("it ends by itself");
}

/// The answer of an aggregated server that has taken over.
fn taken_over() -> Answer {
    let service = serde_json::json!({ "namespace": "system", "name": "things" });
    Answer::json(serde_json::json!({ "spec": { "service": service } }))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_over_while_a_watch_is_open_is_found_before_the_next_watch() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    assert_eq!(
        log.count(is_about_server),
        log.count(|request| is_about_objects(request) && request.method == "GET")
    );
    world.fails(|request| is_about_server(request).then(taken_over));
    let before = log.count(is_about_objects);
    tokio::time::sleep(20 * MINUTE).await;
    assert_served_elsewhere(&world);
    assert_eq!(log.count(is_about_objects), before, "{:?}", log.of(is_about_objects));
    assert!(world.events().iter().all(|(event, _)| !event.contains("system/things")), "{:?}", world.events());
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_over_in_the_middle_of_a_pass_is_found_before_the_next_list() {
    let world = World::with(&["a"]);
    let mut written = false;
    world.fails(move |request| {
        written |= is_write(request);
        (written && is_about_server(request)).then(taken_over)
    });
    let log = world.operate(MINUTE).await;
    let lists = log.count(is_object_list);
    assert_eq!((lists, log.count(is_write)), (1, 1));
    assert!(world.persisted().starts_with("False NotServed"), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn whose_objects_are_served_has_to_be_known() {
    let world = World::with(&["a"]);
    world.fails(|request| is_about_server(request).then(|| Answer::status(403, "Forbidden", "no")));
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    let wording = world.persisted();
    let rule = r#"{apiGroups: ["apiregistration.k8s.io"], resources: ["apiservices"], verbs: ["get"]}"#;
    assert!(wording.starts_with("False Forbidden") && wording.ends_with(rule), "{wording}");
    assert_eq!(log.count(is_about_objects), 0, "{:?}", log.of(is_about_objects));
    world.fails(|request| is_about_server(request).then(Answer::unavailable));
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(log.count(is_about_objects), 0, "{:?}", log.of(is_about_objects));
    world.heals();
    tokio::time::sleep(3 * MINUTE).await;
    assert!(world.is_persisted("a"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}
