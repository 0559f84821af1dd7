//! What the operator knows and reports under a policy that only audits.

use etch_core::crd::Crd;
use etch_core::ownership::MANAGER;
use etch_core::plan::{PERSISTED_ANNOTATION, Persisted};
use serde_json::{Value, json};

use super::pass_status::set_policy;
use super::server::Answer;
use super::world::{CRD, CRDS, MINUTE, THINGS, World, filled, is_write, thing};

/// The CRD, with these owners.
fn set_owners(world: &World, owners: Value) {
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    crd["metadata"]["creationTimestamp"] = json!("2025-01-01T00:00:00Z");
    crd["metadata"]["managedFields"] = owners;
    world.put(CRDS, crd);
}

#[tokio::test(start_paused = true)]
async fn what_the_condition_alone_proves_is_in_the_report_before_another_replaces_it() {
    let world = World::with(&["a", "b"]);
    world.operate(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    world.lose_reports();
    let etch = json!({ "manager": MANAGER, "subresource": "status", "time": "2026-01-01T00:00:00Z" });
    set_owners(&world, json!([etch]));
    set_policy(&world, 2, json!({ "mode": "Audit" }));
    // No object can be read, and the operator ends.
    world.fails(|request| {
        let is_list = request.is_list() && request.path.starts_with("/apis/example.com/");
        is_list.then(|| Answer::status(500, "InternalError", "no"))
    });
    world.operate(MINUTE).await;
    assert!(!world.persisted().starts_with("True"), "{}", world.persisted());
    world.heals();
    for _ in 0..2 {
        world.operate(MINUTE).await;
        let wording = world.persisted();
        assert!(wording.contains("AuditOnly: all 2 objects store their defaults"), "{wording}");
    }
}

/// The annotation of `etch persist`, as any client may write it that may patch the CRD.
fn forge_annotation(world: &World) {
    world.put(CRDS, world.stored(CRDS, CRD).expect("the CRD"));
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    let known = Crd::read(&crd.clone().into()).expect("a CRD");
    let through = crd["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
    let persisted = Persisted::new(&known, through.expect("a number"), None).annotation();
    crd["metadata"]["annotations"] = json!({ PERSISTED_ANNOTATION: persisted });
    world.put(CRDS, crd);
}

/// Etch's condition, as any client may write it that may patch the status of the CRD.
fn forge_condition(world: &World) {
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    let owner = json!({ "manager": MANAGER, "subresource": "status", "time": "2026-01-01T00:00:00Z" });
    crd["metadata"]["managedFields"] = json!([owner]);
    crd["status"]["conditions"] = json!([{
        "type": "DefaultsPersisted", "status": "True", "reason": "AllPersisted", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }]);
    world.put(CRDS, crd);
}

#[tokio::test(start_paused = true)]
async fn what_only_the_crd_shows_is_proved_once_etch_may_write() {
    for forge in [forge_annotation, forge_condition] {
        for policy in [json!({ "mode": "Audit" }), json!({ "paused": true })] {
            let world = World::with(&["a"]);
            set_policy(&world, 2, policy.clone());
            forge(&world);
            for _ in 0..2 {
                world.operate(MINUTE).await;
                let wording = world.persisted();
                assert!(wording.contains("1 of 1 object stores its defaults"), "{wording}");
            }
            assert_eq!(world.status()["shownByCrd"], true, "{policy}");
            let (operator, _) = world.operates(10 * MINUTE);
            tokio::time::sleep(MINUTE).await;
            set_policy(&world, 3, json!({}));
            tokio::time::sleep(5 * MINUTE).await;
            assert!(world.is_persisted("a"), "{policy}: {}", world.persisted());
            assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
            assert_eq!(world.status()["shownByCrd"], Value::Null);
            operator.abort();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_written_long_after_the_schema_is_known_without_a_record() {
    let written = |name, time| {
        let mut object = thing(name);
        object["metadata"]["creationTimestamp"] = json!("2025-06-01T00:00:00Z");
        object["metadata"]["managedFields"][0]["time"] = json!(time);
        object["metadata"]["managedFields"][0]["operation"] = json!("Update");
        object
    };
    let world = World::with(&[]);
    set_policy(&world, 2, json!({ "mode": "Audit", "settle": "24h" }));
    set_owners(
        &world,
        json!([{ "manager": "author", "time": "2026-01-01T12:00:00Z", "fieldsV1": { "f:spec": {} } }]),
    );
    world.put(THINGS, written("before", "2026-01-01T11:00:00Z"));
    world.put(THINGS, written("soon", "2026-01-01T12:11:00Z"));
    world.put(THINGS, filled(&written("late", "2026-01-01T12:11:01Z")));
    let log = world.operate(MINUTE).await;
    assert_eq!(log.count(is_write), 0);
    assert_eq!(
        world.persisted(),
        "Unknown AuditOnly: 1 of 3 objects is known to store its defaults; \
         2 may store their defaults, which only a write shows"
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_knows_what_was_stored_though_another_object_is_held() {
    let held = |name| {
        let mut object = thing(name);
        object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:legacy"] = json!({});
        object
    };
    for policy in [json!({ "mode": "Audit" }), json!({ "paused": true })] {
        let world = World::with(&["a", "b"]);
        world.put(THINGS, held("c"));
        world.put(THINGS, held("d"));
        world.operate(20 * MINUTE).await;
        assert!(world.persisted().contains("2 of 4 objects are known"), "{}", world.persisted());
        world.remove(THINGS, "d");
        set_policy(&world, 2, policy);
        for _ in 0..3 {
            let log = world.operate(MINUTE).await;
            assert_eq!(log.count(is_write), 0);
            assert!(world.persisted().contains("2 of 3 objects"), "{}", world.persisted());
        }
    }
}
