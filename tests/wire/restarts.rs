//! What a restart costs, and what of an earlier run is believed.

use std::time::Duration;

use serde_json::json;

use super::pass_status::{set_default, set_policy};
use super::server::{Answer, Request};
use super::world::{CRD, CRDS, HOUR, MINUTE, THINGS, World, crd_named, filled, is_write, thing};

/// The fields of a report as a release before this one wrote it: it listed the objects that its record does
/// not cover, and no more.
const EARLIER: [&str; 22] = [
    "state",
    "policy",
    "crdUid",
    "generation",
    "storageVersion",
    "digest",
    "firstSeen",
    "settlesAt",
    "started",
    "finished",
    "through",
    "counts",
    "defaults",
    "moreDefaults",
    "held",
    "rejected",
    "ignored",
    "terminating",
    "dropped",
    "cleared",
    "changed",
    "previous",
];

/// A world of this many objects, of which the first `held` have fields that the schema does not know.
fn world(all: usize, held: usize) -> World {
    let world = World::with(&[]);
    for index in 0..all {
        let mut object = thing(&format!("o{index:05}"));
        if index < held {
            object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:legacy"] = json!({});
        }
        world.put(THINGS, object);
    }
    world
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing_however_many_objects_are_held() {
    for (all, held) in [(300, 60), (1300, 1200)] {
        let world = world(all, held);
        let log = world.operate(5 * MINUTE).await;
        assert_eq!(log.count(is_write), all - held);
        let wording = world.persisted();
        assert!(wording.contains(&format!("{held} held")), "{wording}");
        for _ in 0..2 {
            let log = world.operate(5 * MINUTE).await;
            assert_eq!(log.count(is_write), 0, "{held} of {all} held");
            assert_eq!(world.persisted(), wording);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_of_an_earlier_release_is_believed_where_it_lists_all_that_it_does_not_cover() {
    // It lists 50 at most: where more are held, nothing is on record of any object.
    for (all, held, asked) in [(60, 10, 0), (120, 60, 60)] {
        let world = world(all, held);
        world.operate(15 * MINUTE).await;
        let wording = world.persisted();
        assert!(wording.contains(&format!("{held} held")), "{wording}");
        world.edit_report(CRD, |report| {
            let status = report["status"].as_object_mut().expect("a status");
            status.retain(|field, _| EARLIER.contains(&field.as_str()));
        });
        let log = world.operate(5 * MINUTE).await;
        assert_eq!(log.count(is_write), asked, "{held} of {all} held");
        assert_eq!(world.persisted(), wording);
        assert_eq!(world.operate(5 * MINUTE).await.count(is_write), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing_however_many_objects_were_rejected() {
    for (all, bad) in [(100, 3), (300, 60), (1300, 1200)] {
        let world = world(all, 0);
        world.fails(move |request| {
            let number = request.path.rsplit('o').next().and_then(|number| number.parse::<usize>().ok());
            let denied = "admission webhook \"v.example.com\" denied the request: never";
            let refused = is_write(request) && number.is_some_and(|number| number < bad);
            refused.then(|| Answer::status(403, "Forbidden", denied))
        });
        world.operate(15 * Duration::from_secs(1)).await;
        let wording = world.persisted();
        assert!(wording.contains(&format!("{bad} rejected")), "{wording}");
        for _ in 0..2 {
            let log = world.operate(5 * MINUTE).await;
            assert_eq!(log.count(is_write), 0, "{bad} of {all} rejected");
            assert_eq!(world.persisted(), wording);
        }
        // They are not given up.
        world.heals();
        world.operate(60 * MINUTE).await;
        let wording = world.persisted();
        assert!(wording.starts_with("True AllPersisted"), "{wording}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_stored_objects_a_restart_asks_about_the_unanswered_one_only() {
    let world = world(300, 0);
    let is_first = |request: &Request| is_write(request) && request.path.ends_with("/o00000");
    world.fails(move |request| is_first(request).then(Answer::unavailable));
    world.operate(10 * MINUTE).await;
    world.heals();
    let log = world.operate(MINUTE).await;
    assert_eq!(log.count(is_write), log.count(is_first));
    assert!(world.persisted().starts_with("True AllPersisted: all 300"), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_pass_repeats_only_what_was_in_flight() {
    let world = world(300, 0);
    set_policy(&world, 2, json!({ "maxWritesPerSecond": 20 }));
    world.operate(Duration::from_secs(8)).await;
    let names: Vec<String> = (0..300).map(|index| format!("o{index:05}")).collect();
    let stored: Vec<&String> = names.iter().filter(|name| world.is_persisted(name)).collect();
    assert!((50..250).contains(&stored.len()), "{} stored", stored.len());
    let log = world.operate(MINUTE).await;
    let name = |request: &Request| request.path.rsplit('/').next().unwrap_or_default().to_owned();
    let repeated = log.count(|request| is_write(request) && stored.contains(&&name(request)));
    assert!(repeated <= 64, "{repeated} writes were repeated");
    assert_eq!(world.persisted(), "True AllPersisted: all 300 objects store their defaults");
}

#[tokio::test(start_paused = true)]
async fn a_default_that_went_and_came_back_while_etch_was_down_is_not_taken_for_one_that_stayed() {
    let world = World::with(&["a"]);
    world.operate(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"));
    set_default(&world, 2, Some(5));
    // Stored while there was no such default; read with the one that there is now.
    world.put(THINGS, thing("b"));
    set_default(&world, 3, Some(1));
    world.fails(|request| {
        let is_list = request.is_list() && request.path.starts_with("/apis/example.com/");
        is_list.then(|| Answer::status(500, "InternalError", "no"))
    });
    world.operate(MINUTE).await;
    assert!(!world.persisted().starts_with("True"), "{}", world.persisted());
    world.heals();
    world.operate(MINUTE).await;
    assert!(world.is_persisted("b"), "{}", world.persisted());
    assert!(world.persisted().starts_with("True AllPersisted: all 2"), "{}", world.persisted());
}

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

#[tokio::test(start_paused = true)]
async fn after_a_write_that_lost_owners_a_restart_costs_no_owners_of_another_object() {
    let world = world(5, 0);
    world.loses(|world, request| {
        let name = request.path.rsplit('/').next().filter(|_| is_write(request))?;
        let mut wiped = filled(&world.stored(THINGS, name)?);
        wiped["metadata"]["resourceVersion"] = json!("1000");
        wiped["metadata"]["managedFields"] = json!([]);
        Some(Answer::json(wiped))
    });
    let log = world.operate(5 * MINUTE).await;
    let wording = world.persisted();
    let expected =
        "False ObjectsRejected: a write to ns/o00000 made the API server drop the field owners [\"user\"]";
    assert!(wording.starts_with(expected), "{wording}");
    assert_eq!(log.count(is_write), 1);
    let lost = json!({ "object": "ns/o00000", "managers": ["user"] });
    assert_eq!(world.report(CRD).expect("a report")["status"]["ownersLost"], lost);
    let operate = async || {
        let (cluster, log) = world.serve();
        let metrics = cluster.metrics().clone();
        super::world::operate(cluster, 5 * MINUTE).await;
        let shown =
            metrics.text().lines().find(|line| line.starts_with("etch_owners_lost")).map(str::to_owned);
        (log.count(is_write), shown.expect("the gauge"))
    };
    for _ in 0..2 {
        assert_eq!(operate().await, (0, "etch_owners_lost 1".to_owned()));
        assert_eq!(world.persisted(), wording);
    }

    // Other defaults are another matter.
    world.loses(|_, _| None);
    set_default(&world, 2, Some(2));
    assert_eq!(operate().await.1, "etch_owners_lost 0");
    assert!(world.persisted().starts_with("True AllPersisted: all 5"), "{}", world.persisted());
    assert!(world.report(CRD).expect("a report")["status"]["ownersLost"].is_null());
}

/// Another version of Etch may have written it, or a user.
#[tokio::test(start_paused = true)]
async fn a_report_that_cannot_be_read_is_replaced_and_what_it_says_of_hidden_fields_is_not_lost() {
    let world = world(3, 0);
    world.operate(5 * MINUTE).await;
    world.edit_report(CRD, |report| {
        report["status"]["canary"] = json!({ "state": "Unheard" });
        report["status"]["formerDefaults"] = json!([{ "path": ".spec.legacy" }]);
    });
    let mut object = thing("late");
    object["metadata"]["managedFields"] = json!([]);
    world.put(THINGS, object);
    world.operate(HOUR).await;
    let wording = world.persisted();
    assert!(wording.contains("4 held") && wording.contains(".spec.legacy"), "{wording}");
    let report = world.report(CRD).expect("a report");
    assert_eq!(report["status"]["canary"], json!(null));
    assert_eq!(report["status"]["formerDefaults"][0]["path"], ".spec.legacy");
    world.edit_report(CRD, |report| {
        report["status"]["canary"] = json!({ "state": "Unheard" });
        report["status"]["formerDefaults"] = json!([]);
    });
    world.operate(HOUR).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 4 objects store their defaults");
}
