//! What is reported of old versions in `status.storedVersions`, and what that costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::{Value, json};

use super::pass_status::set_policy;
use super::server::{Answer, Request};
use super::world::{
    CRD, CRDS, HOUR, MINUTE, THINGS, World, crd_named, is_about_objects, is_object_list, is_write,
};

fn is_object_write(request: &Request) -> bool {
    is_write(request) && is_about_objects(request)
}

/// A world whose CRD has changed, and has stored objects at `v1beta1`.
fn world(has_default: bool) -> World {
    let world = World::with(&["a", "b"]);
    let mut crd = crd_named(THINGS);
    crd["metadata"]["generation"] = json!(2);
    crd["status"] = json!({ "storedVersions": ["v1beta1", "v1"] });
    if !has_default {
        let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["spec"]["properties"]["size"] = json!({ "type": "integer" });
    }
    world.put(CRDS, crd);
    world
}

fn versions(world: &World) -> Value {
    world.report(CRD).map(|report| report["status"]["storedVersions"].clone()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn objects_without_defaults_are_counted_now_and_then_and_never_written() {
    let world = world(false);
    let log = world.operate(13 * HOUR).await;
    assert_eq!((log.count(is_object_list), log.count(is_write)), (3, 0));
    assert!(world.persisted().starts_with("True NoDefaults"), "{}", world.persisted());
    let found = versions(&world);
    assert_eq!(
        (&found["proved"], &found["unknown"], &found["verified"]),
        (&json!(0), &json!(2), &json!(false))
    );
    assert_eq!(found["removable"], json!([]));
    assert_eq!(found["kept"][0]["reasons"], json!(["2 objects are not proved to be stored at v1"]));
}

#[tokio::test(start_paused = true)]
async fn objects_that_may_not_be_listed_keep_old_versions_and_change_no_condition() {
    let world = world(false);
    world.fails(|request| is_object_list(request).then(|| Answer::status(403, "Forbidden", "no")));
    world.operate(MINUTE).await;
    assert!(world.persisted().starts_with("True NoDefaults"), "{}", world.persisted());
    let found = versions(&world);
    assert_eq!(found["removable"], json!([]));
    assert_eq!(found["kept"][0]["reasons"], json!(["Etch may not list the objects: see `etch rbac`"]));
}

#[tokio::test(start_paused = true)]
async fn objects_are_proved_once_each_was_asked_about_when_no_server_lags_behind() {
    let world = world(true);
    let (operator, log) = world.operates(2 * HOUR);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    let found = versions(&world);
    assert_eq!(
        (&found["proved"], &found["unknown"], &found["verified"]),
        (&json!(0), &json!(2), &json!(false))
    );
    let writes = log.count(is_write);
    tokio::time::sleep(20 * MINUTE).await;
    let found = versions(&world);
    assert_eq!(
        (&found["proved"], &found["unknown"], &found["verified"]),
        (&json!(2), &json!(0), &json!(true))
    );
    assert_eq!((&found["removable"], &found["kept"]), (&json!(["v1beta1"]), &json!([])));
    assert_eq!(log.count(is_write), writes + 2, "one question about each object");
    operator.await.expect("it ends by itself");
    assert_eq!(log.count(is_write), writes + 2);
    // Nor again after a restart.
    let log = world.operate(HOUR).await;
    assert_eq!((log.count(is_object_list), log.count(is_write)), (1, 0));
    assert_eq!(versions(&world), found);
}

/// The API server gives a CRD no new generation for that.
#[tokio::test(start_paused = true)]
async fn a_report_says_no_more_of_versions_that_somebody_else_takes_out() {
    for has_default in [false, true] {
        let world = world(has_default);
        let (operator, log) = world.operates(2 * HOUR);
        tokio::time::sleep(30 * MINUTE).await;
        assert!(!versions(&world).is_null());
        let writes = log.count(is_object_write);
        let mut crd = world.stored(CRDS, CRD).expect("the CRD");
        crd["status"]["storedVersions"] = json!(["v1"]);
        let edit = json!({ "manager": "kubectl-edit", "operation": "Update", "subresource": "status",
            "time": "2026-01-01T00:30:00Z", "fieldsV1": { "f:status": { "f:storedVersions": {} } } });
        let mut owners = crd["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        owners.push(edit);
        crd["metadata"]["managedFields"] = owners.into();
        world.put(CRDS, crd);
        tokio::time::sleep(MINUTE).await;
        assert_eq!(versions(&world), Value::Null);
        assert_eq!(log.count(is_object_write), writes);
        operator.abort();
    }
}

fn is_trim(request: &Request) -> bool {
    let versions = &request.body["status"]["storedVersions"];
    request.method == "PATCH" && request.path.contains(CRDS) && !versions.is_null()
}

/// Has the server report a migration of the objects with this condition, until it is over.
pub(super) fn migrate(world: &World, condition: &'static str, is_over: Arc<AtomicBool>) {
    world.fails(move |request: &Request| match &*request.path {
        "/apis/storagemigration.k8s.io" => {
            let version = json!({ "groupVersion": "storagemigration.k8s.io/v1beta1" });
            Some(Answer::json(json!({ "preferredVersion": version })))
        }
        "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations" => {
            let condition = if is_over.load(Relaxed) { "Succeeded" } else { condition };
            let migration = json!({
                "metadata": { "name": "things" },
                "spec": { "resource": { "group": "example.com", "resource": THINGS } },
                "status": { "conditions": [{ "type": condition, "status": "True" }] },
            });
            Some(Answer::json(json!({ "items": [migration] })))
        }
        _ => None,
    });
}

#[tokio::test(start_paused = true)]
async fn no_object_is_written_while_a_migration_writes_them() {
    let world = world(true);
    let is_over = Arc::new(AtomicBool::new(false));
    migrate(&world, "Running", is_over.clone());
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(10 * MINUTE).await;
    let waits =
        "False InProgress: the StorageVersionMigration things writes the objects; Etch waits for its end";
    assert_eq!((world.persisted(), log.count(is_object_write)), (waits.to_owned(), 0));
    is_over.store(true, Relaxed);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    operator.abort();
}

/// Not every cluster has the controller that does it.
#[tokio::test(start_paused = true)]
async fn a_migration_that_nobody_begins_keeps_old_versions_and_nothing_else() {
    let world = world(true);
    set_policy(&world, 2, json!({ "selector": {}, "storedVersions": "Trim" }));
    let is_over = Arc::new(AtomicBool::new(false));
    migrate(&world, "Pending", is_over.clone());
    let (operator, log) = world.operates(3 * HOUR);
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    let found = versions(&world);
    let why = "a StorageVersionMigration of these objects waits or runs; Etch tries again after it";
    assert_eq!((&found["removable"], &found["kept"][0]["reasons"]), (&json!([]), &json!([why])));
    assert_eq!(log.count(is_trim), 0);
    is_over.store(true, Relaxed);
    tokio::time::sleep(11 * MINUTE).await;
    assert!(log.count(is_trim) > 0);
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn old_versions_are_taken_out_once_all_objects_are_proved_and_no_sooner() {
    let world = world(true);
    set_policy(&world, 2, json!({ "selector": {}, "storedVersions": "Trim" }));
    let (operator, log) = world.operates(2 * HOUR);
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(log.count(is_trim), 0, "servers may lag behind");
    tokio::time::sleep(15 * MINUTE).await;
    assert!(log.count(is_trim) > 0, "all objects are proved");
    operator.abort();
}

/// Where a change of the CRD's status is refused, the report shows why the version is there still.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_change_is_reported() {
    let world = world(true);
    set_policy(&world, 2, json!({ "selector": {}, "storedVersions": "Trim" }));
    world.fails(|request| is_trim(request).then(|| Answer::status(403, "Forbidden", "not for Etch")));
    let log = world.operate(HOUR).await;
    assert!(log.count(is_trim) > 1);
    let found = versions(&world);
    assert_eq!((&found["removable"], &found["proved"]), (&json!([]), &json!(2)));
    let why = found["kept"][0]["reasons"][0].as_str().expect("a reason");
    assert!(why.starts_with("it could not be taken out: ") && why.contains("403 Forbidden"), "{why}");
    // A user who takes it out later leaves nothing else that shows it.
    assert_eq!(world.report(CRD).expect("a report")["status"]["allAtStorageVersion"], true);
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
}

/// Without defaults, objects are written only to be moved, and the condition shows all along that there are
/// none.
#[tokio::test(start_paused = true)]
async fn objects_without_defaults_are_moved_where_a_policy_asks_for_it() {
    let world = world(false);
    set_policy(&world, 2, json!({ "selector": {}, "storedVersions": "Trim" }));
    let (operator, log) = world.operates(2 * HOUR);
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(
        world.persisted(),
        "True NoDefaults: the storage version v1 has no defaults; objects are moved to it: 2 of 2 objects \
         are stored there"
    );
    let writes = log.count(is_object_write);
    assert_eq!((writes, log.count(is_trim)), (2, 0), "servers may lag behind");
    tokio::time::sleep(15 * MINUTE).await;
    assert_eq!(log.count(is_object_write), writes + 2, "one question about each object");
    assert!(log.count(is_trim) > 0, "all objects are proved");
    let of_ours = |request: &Request| {
        let conditions = request.body["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition["type"] == "DefaultsPersisted" && condition["status"] != "True")
    };
    assert_eq!(log.count(of_ours), 0, "it has no defaults, whatever is done about its objects");
    operator.abort();
}

/// An object that cannot be moved keeps the version; what was moved is not asked about again after a restart.
#[tokio::test(start_paused = true)]
async fn objects_that_were_moved_are_not_asked_about_again() {
    let world = world(false);
    set_policy(&world, 2, json!({ "selector": {}, "storedVersions": "Trim" }));
    let of_b = |request: &Request| is_object_write(request) && request.path.ends_with("/b");
    let denied = "admission webhook \"v.example.com\" denied the request: no";
    world.fails(move |request| of_b(request).then(|| Answer::status(403, "Forbidden", denied)));
    let log = world.operate(HOUR).await;
    assert!(log.count(is_object_write) > 0 && log.count(is_trim) == 0);
    let found = versions(&world);
    assert_eq!(found["kept"][0]["reasons"], json!(["1 object is rejected"]));
    assert!(world.persisted().starts_with("True NoDefaults"), "{}", world.persisted());
    let log = world.operate(HOUR).await;
    let of_a = |request: &Request| is_object_write(request) && request.path.ends_with("/a");
    assert_eq!((log.count(of_a), log.count(is_trim)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_ignore_old_versions() {
    for has_default in [false, true] {
        let world = world(has_default);
        set_policy(&world, 2, json!({ "selector": {}, "storedVersions": "Ignore" }));
        let log = world.operate(HOUR).await;
        assert_eq!(versions(&world), Value::Null);
        assert_eq!(log.count(is_write), if has_default { 2 } else { 0 });
        assert!(has_default || log.count(is_object_list) == 0);
    }
}

/// A world whose CRD has no defaults and one version, and an object with an owner at a version that is gone.
fn with_lost_version() -> World {
    let world = world(false);
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    crd["status"] = json!({ "storedVersions": ["v1"] });
    world.put(CRDS, crd);
    let mut object = world.stored(THINGS, "a").expect("an object");
    object["metadata"]["managedFields"] = json!([{ "manager": "user", "operation": "Apply",
        "fieldsType": "FieldsV1",
        "apiVersion": "example.com/v1alpha1", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": { "f:spec": {} } }]);
    world.put(THINGS, object);
    world
}

fn versions_of_owners(world: &World) -> Vec<Value> {
    let object = world.stored(THINGS, "a").expect("nobody deletes it");
    let owners = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    owners.into_iter().map(|owner| owner["apiVersion"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn owners_at_versions_that_are_gone_are_repaired_without_defaults_too() {
    let world = with_lost_version();
    let log = world.operate(HOUR).await;
    assert_eq!((log.count(is_object_list), log.count(is_object_write)), (0, 0), "no policy asks for it");
    set_policy(&world, 2, json!({ "selector": {}, "managedFields": "Repair" }));
    let log = world.operate(HOUR).await;
    assert_eq!(versions_of_owners(&world), [json!("example.com/v1")]);
    assert_eq!(
        world.persisted(),
        "True NoDefaults: the storage version v1 has no defaults; owners in managedFields are repaired: 2 of \
         2 objects name only served versions"
    );
    let is_about_a = |request: &Request| is_object_write(request) && !request.path.ends_with("/a");
    assert_eq!(log.count(is_about_a), 0, "the other object has no such owner");
    let log = world.operate(HOUR).await;
    assert_eq!(log.count(is_write), 0, "nothing is left to do after a restart");
}

#[tokio::test(start_paused = true)]
async fn a_paused_repair_begins_when_the_pause_ends() {
    let world = with_lost_version();
    let policy = |paused| json!({ "selector": {}, "managedFields": "Repair", "paused": paused });
    set_policy(&world, 2, policy(true));
    let (operator, log) = world.operates(3 * HOUR);
    tokio::time::sleep(HOUR).await;
    assert_eq!(log.count(is_object_write), 0);
    set_policy(&world, 3, policy(false));
    tokio::time::sleep(HOUR).await;
    assert_eq!(versions_of_owners(&world), [json!("example.com/v1")]);
    operator.abort();
}
