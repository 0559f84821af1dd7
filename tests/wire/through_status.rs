//! Objects whose own write admission refuses, and which a policy has written through their status.

use serde_json::json;

use super::pass_status::set_policy;
use super::server::{Answer, Request};
use super::world::{CRDS, MINUTE, World, is_write};

/// A world whose CRD has the status subresource, and where admission refuses writes of `a` itself.
fn refusing() -> World {
    let world = World::with(&["a", "b"]);
    let mut crd = world.stored(CRDS, "things.example.com").expect("the CRD");
    crd["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    world.put(CRDS, crd);
    world.fails(refuses);
    world
}

fn refuses(request: &Request) -> Option<Answer> {
    let message = "things.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding \
        'freeze' denied request: no";
    let is_of_it = is_write(request) && request.path.ends_with("/things/a");
    is_of_it.then(|| Answer::status(422, "Invalid", message))
}

fn is_to_status(request: &Request) -> bool {
    is_write(request) && request.path.ends_with("/status")
}

#[tokio::test(start_paused = true)]
async fn what_admission_refuses_is_applied_to_the_status_where_the_policy_asks_for_it() {
    let world = refusing();
    set_policy(&world, 2, json!({ "refusedObjects": "WriteStatus" }));
    let log = world.operate(5 * MINUTE).await;
    assert!(world.is_persisted("a") && world.is_persisted("b"));
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    let sent = log.of(is_to_status);
    let [write, repeat] = &sent[..] else { panic!("{sent:?}") };
    for request in [write, repeat] {
        assert_eq!(request.verb(), "PATCH apply");
        assert!(request.path.ends_with("/things/a/status"), "only what was refused: {}", request.path);
        let fields: Vec<&String> = request.body.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["apiVersion", "kind", "metadata"]);
        assert_eq!(request.body["metadata"]["uid"], "uid-a");
        assert_ne!(request.asked("force"), "true");
    }
    // After a restart nothing is asked again.
    let log = world.operate(5 * MINUTE).await;
    assert_eq!(log.count(is_write), 0);
}

#[tokio::test(start_paused = true)]
async fn without_the_policy_nothing_is_sent_to_a_status() {
    let world = refusing();
    let log = world.operate(5 * MINUTE).await;
    assert!(!world.is_persisted("a") && world.is_persisted("b"));
    assert!(world.persisted().starts_with("False ObjectsRejected"), "{}", world.persisted());
    assert_eq!(log.count(is_to_status), 0);
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_for_the_status_concerns_the_refused_objects_alone() {
    let world = refusing();
    set_policy(&world, 2, json!({ "refusedObjects": "WriteStatus" }));
    world.fails(|request| {
        let message = "things.example.com \"a\" is forbidden: User \
            \"system:serviceaccount:etch-system:etch\" cannot patch resource \"things/status\" in API group \
            \"example.com\" in the namespace \"ns\"";
        let forbidden = is_to_status(request).then(|| Answer::status(403, "Forbidden", message));
        forbidden.or_else(|| refuses(request))
    });
    world.operate(5 * MINUTE).await;
    assert!(!world.is_persisted("a") && world.is_persisted("b"));
    assert!(world.persisted().starts_with("False ObjectsRejected"), "{}", world.persisted());
    let report = world.report("things.example.com").expect("a report");
    let rejected = &report["status"]["rejected"][0];
    assert_eq!(
        rejected["message"],
        "ValidatingAdmissionPolicy freeze refused it; to write it through its status, Etch needs the \
         permission to patch things/status: etch rbac --policy NAME"
    );
}
