//! What is reported of old versions in `status.storedVersions`, and what that costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde_json::{Value, json};

use super::pass_status::set_policy;
use super::server::{Answer, Request};
use super::world::{CRDS, THINGS, World, crd_named, is_about_objects, is_write, operate};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const CRD: &str = "things.example.com";

fn is_list(request: &Request) -> bool {
    request.is_list() && is_about_objects(request)
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
    assert_eq!((log.count(is_list), log.count(is_write)), (3, 0));
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
    world.fails(|request| is_list(request).then(|| Answer::status(403, "Forbidden", "no")));
    world.operate(MINUTE).await;
    assert!(world.persisted().starts_with("True NoDefaults"), "{}", world.persisted());
    let found = versions(&world);
    assert_eq!(found["removable"], json!([]));
    assert_eq!(found["kept"][0]["reasons"], json!(["Etch may not list the objects: see `etch rbac`"]));
}

#[tokio::test(start_paused = true)]
async fn objects_are_proved_once_each_was_asked_about_when_no_server_lags_behind() {
    let world = world(true);
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(operate(cluster, 2 * HOUR));
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
    assert_eq!((log.count(is_list), log.count(is_write)), (1, 0));
    assert_eq!(versions(&world), found);
}

fn is_trim(request: &Request) -> bool {
    let versions = &request.body["status"]["storedVersions"];
    request.method == "PATCH" && request.path.contains(CRDS) && !versions.is_null()
}

#[tokio::test(start_paused = true)]
async fn a_migration_of_the_objects_is_waited_for() {
    let world = world(true);
    set_policy(&world, 2, json!({ "selector": {}, "storedVersions": "Trim" }));
    let is_over = Arc::new(AtomicBool::new(false));
    let migrations = {
        let is_over = is_over.clone();
        move |request: &Request| match &*request.path {
            "/apis/storagemigration.k8s.io" => {
                let version = json!({ "groupVersion": "storagemigration.k8s.io/v1beta1" });
                Some(Answer::json(json!({ "preferredVersion": version })))
            }
            "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations" => {
                let resource = json!({ "group": "example.com", "resource": THINGS });
                let status = if is_over.load(Relaxed) { "True" } else { "False" };
                let conditions = json!([{ "type": "Succeeded", "status": status }]);
                let spec = json!({ "resource": resource });
                Some(Answer::json(
                    json!({ "items": [{ "spec": spec, "status": { "conditions": conditions } }] }),
                ))
            }
            _ => None,
        }
    };
    world.fails(migrations);
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(operate(cluster, 3 * HOUR));
    tokio::time::sleep(HOUR).await;
    assert_eq!(versions(&world)["removable"], json!(["v1beta1"]));
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
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(operate(cluster, 2 * HOUR));
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(log.count(is_trim), 0, "servers may lag behind");
    tokio::time::sleep(15 * MINUTE).await;
    assert!(log.count(is_trim) > 0, "all objects are proved");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_ignore_old_versions() {
    for has_default in [false, true] {
        let world = world(has_default);
        set_policy(&world, 2, json!({ "selector": {}, "storedVersions": "Ignore" }));
        let log = world.operate(HOUR).await;
        assert_eq!(versions(&world), Value::Null);
        assert_eq!(log.count(is_write), if has_default { 2 } else { 0 });
        assert!(has_default || log.count(is_list) == 0);
    }
}
