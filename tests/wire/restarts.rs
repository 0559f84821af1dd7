//! What a restart costs, and what of an earlier run is believed.

use std::time::Duration;

use serde_json::json;

use super::world::{CRDS, THINGS, World, crd_named, thing};

const MINUTE: Duration = Duration::from_secs(60);
const CRD: &str = "things.example.com";

#[tokio::test(start_paused = true)]
async fn a_record_of_an_earlier_crd_of_the_name_is_not_believed() {
    let world = World::with(&["a"]);
    world.operate(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"));
    // The CRD is created anew, and its objects with it, through a server that did not have the default yet.
    world.remove(THINGS, "a");
    world.remove(CRDS, CRD);
    let mut crd = crd_named(THINGS);
    crd["metadata"]["uid"] = json!("another");
    world.put(CRDS, crd);
    world.put(THINGS, thing("a"));
    // Etch made the report its own, and ended before it could replace the status.
    world.edit_report(CRD, |report| report["spec"]["crdUid"] = json!("another"));
    world.operate(MINUTE).await;
    assert!(world.is_persisted("a"), "{}", world.persisted());
    assert_eq!(world.report(CRD).expect("a report")["status"]["crdUid"], "another");
}

#[tokio::test(start_paused = true)]
async fn a_report_has_a_bounded_size_whatever_is_wrong_with_an_object() {
    let world = World::with(&["fine"]);
    let mut crd = crd_named(THINGS);
    let properties =
        &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    properties["items"] = json!({ "type": "array", "items": { "type": "string" } });
    world.put(CRDS, crd);
    let mut misfit = thing("misfit");
    misfit["spec"]["items"] = (0..60_000).collect();
    world.put(THINGS, misfit);
    let log = world.operate(MINUTE).await;
    assert!(world.persisted().starts_with("False Misfit: 1 of 2"), "{}", world.persisted());
    let report = world.report(CRD).expect("a report");
    let held = &report["status"]["held"][0];
    let paths = held["paths"].as_array().expect("a list").len();
    assert!(paths > 0, "{held}");
    assert_eq!(held["morePaths"], 60_000 - paths);
    let longest = log.of(|request| request.path.contains("defaultsreports"));
    let longest = longest.iter().map(|request| request.body.to_string().len()).max();
    assert!(longest <= Some(64 * 1024), "{longest:?} bytes");
}
