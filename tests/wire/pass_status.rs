//! What Etch reports of a pass while it goes on, after it could not be ended, and under policies that forbid
//! or delay writing.

use std::time::Duration;

use serde_json::{Value, json};

use super::server::{Answer, Request};
use super::world::{
    CRD, CRDS, HOUR, MINUTE, POLICIES, THINGS, World, crd_named, filled, is_object_list, is_of, is_write,
    thing,
};

pub(crate) fn set_policy(world: &World, generation: u64, spec: Value) {
    let metadata = json!({ "name": "default", "uid": "p", "generation": generation });
    let policy = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy", "metadata": metadata,
        "spec": spec,
    });
    world.put(POLICIES, policy);
}

/// The CRD with another default for `size`, or with none.
pub(crate) fn set_default(world: &World, generation: u64, default: Option<u64>) {
    let mut crd = crd_named(THINGS);
    let conditions = world.stored(CRDS, CRD).expect("the CRD")["status"]["conditions"].clone();
    crd["metadata"]["generation"] = generation.into();
    crd["status"] = json!({ "conditions": conditions });
    let size = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        ["size"];
    match default {
        Some(default) => size["default"] = default.into(),
        None => drop(size.as_object_mut().expect("an object").remove("default")),
    }
    world.put(CRDS, crd);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_could_not_be_asked_about_is_not_taken_for_stored_and_the_others_are_not_asked_again()
{
    let names = ["a", "b", "bad", "c"];
    let world = World::with(&names);
    let (cluster, log) = world.serve();
    world.fails(|request| (is_write(request) && is_of("bad")(request)).then(Answer::unavailable));
    let operator = tokio::spawn(super::world::operate(cluster, 30 * MINUTE));
    tokio::time::sleep(10 * MINUTE).await;
    assert!(world.persisted().starts_with("False InProgress"), "{}", world.persisted());
    let counts = &world.status()["counts"];
    assert_eq!((&counts["written"], &counts["unknown"]), (&json!(3), &json!(1)), "{counts}");
    assert_eq!(counts["objects"], 4);
    world.heals();
    operator.await.expect("it ends by itself");
    for name in ["a", "b", "c"] {
        assert_eq!(log.count(|request| is_write(request) && is_of(name)(request)), 1, "{name}");
    }
    assert_eq!(world.persisted(), "True AllPersisted: all 4 objects store their defaults");
    let counts = &world.status()["counts"];
    assert_eq!((&counts["written"], &counts["unknown"]), (&json!(4), &json!(0)), "{counts}");
    assert_eq!(world.status()["defaults"][0]["objects"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_only_its_repeat_proves_is_counted_as_written() {
    let world = World::with(&["a", "b"]);
    let (cluster, _) = world.serve();
    let mut first = true;
    world.loses(move |world, request| {
        let is_first = is_write(request) && is_of("a")(request) && std::mem::take(&mut first);
        // As a server answers that lags behind: the object is written, and its default is not shown.
        let mut answer = is_first.then(|| world.stored(super::world::THINGS, "a")).flatten()?;
        answer["spec"].as_object_mut()?.remove("size");
        Some(Answer::json(answer))
    });
    super::world::operate(cluster, 10 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    let counts = &world.status()["counts"];
    assert_eq!((&counts["written"], &counts["alreadyStored"]), (&json!(2), &json!(0)), "{counts}");
}

#[tokio::test(start_paused = true)]
async fn a_long_pass_reports_every_ten_seconds_and_its_numbers_only_grow() {
    let names: Vec<String> = (0..200).map(|index| format!("o{index:03}")).collect();
    let world = World::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    set_policy(&world, 2, json!({ "maxWritesPerSecond": 2 }));
    let log = world.operate(3 * MINUTE).await;
    assert_eq!(world.status()["counts"]["written"], 200);
    let is_report = |request: &Request| {
        request.path.ends_with(&format!("{CRD}/status")) && request.path.contains("reports")
    };
    let reported = log.of(is_report);
    // 200 objects at 2 a second take 100 s; the first report comes soon, and the last at the end.
    assert!((11..=14).contains(&reported.len()), "{} times", reported.len());
    let gaps: Vec<_> = reported.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    let later = gaps.len() - 9..gaps.len() - 1;
    assert!(gaps[later].iter().all(|gap| *gap >= Duration::from_secs(10)), "{gaps:?}");
    let written: Vec<u64> = reported
        .iter()
        .map(|request| request.body["status"]["counts"]["written"].as_u64().unwrap_or_default())
        .collect();
    assert!(written.is_sorted() && written[2] > 0 && written[2] < 200, "{written:?}");
    let objects = |request: &Request| request.body["status"]["counts"]["objects"].as_u64();
    assert!(
        reported
            .iter()
            .all(|request| objects(request) >= request.body["status"]["counts"]["written"].as_u64())
    );
    let wording =
        log.count(|request| request.method == "PATCH" && request.path.contains("customresourcedefinitions"));
    assert!(wording <= 20, "{wording} times");
}

#[tokio::test(start_paused = true)]
async fn an_audit_writes_nothing_and_counts_what_persisting_then_writes() {
    let world = World::with(&["a", "b", "c"]);
    let mut stored = thing("stored");
    stored["spec"]["size"] = 1.into();
    stored["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:size"] = json!({});
    world.put(THINGS, stored);
    // The default comes after the objects.
    set_default(&world, 2, Some(1));
    set_policy(&world, 2, json!({ "mode": "Audit" }));
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, 2 * HOUR));
    tokio::time::sleep(HOUR).await;
    assert_eq!(log.count(is_write), 0);
    let wording = world.persisted();
    assert!(
        wording.starts_with(
            "False AuditOnly: 0 of 4 objects are known to store their defaults; 3 would be written"
        ),
        "{wording}"
    );
    assert!(wording.ends_with("1 may store its defaults, which only a write shows"), "{wording}");
    let audit = world.status();
    assert_eq!((&audit["counts"]["due"], &audit["counts"]["unproved"]), (&json!(3), &json!(1)), "{audit}");
    assert_eq!((&audit["state"], &audit["policy"]), (&json!("AuditOnly"), &json!("default")));
    let lists = log.count(is_object_list);
    assert_eq!(lists, 1, "an audit is no reason to list again and again");

    set_policy(&world, 3, json!({}));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 4 objects store their defaults");
    let counts = &world.status()["counts"];
    assert_eq!(
        (&counts["written"], &counts["alreadyStored"], &counts["due"]),
        (&json!(3), &json!(1), &json!(0))
    );
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_the_writing_and_its_end_resumes_it() {
    let world = World::with(&["a"]);
    set_default(&world, 2, Some(1));
    set_policy(&world, 2, json!({ "paused": true }));
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, HOUR));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(log.count(is_write), 0);
    assert!(
        world.persisted().contains("writes are paused by DefaultsPolicy default (paused)"),
        "{}",
        world.persisted()
    );
    set_policy(&world, 3, json!({}));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(world.is_persisted("a"));
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_default_that_is_taken_back_before_it_has_settled_leaves_nothing_behind() {
    let world = World::with(&["a", "b"]);
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, 40 * HOUR));
    // Until it is verified, a pass proves nothing once another schema has come.
    tokio::time::sleep(15 * MINUTE).await;
    let before = world.status();
    set_policy(&world, 2, json!({ "settle": "24h" }));
    tokio::time::sleep(MINUTE).await;
    assert!(
        world.persisted().starts_with("True AllPersisted"),
        "defaults that have stood need not settle again"
    );
    let written = log.count(is_write);

    set_default(&world, 2, Some(5));
    tokio::time::sleep(HOUR).await;
    let wording = world.persisted();
    assert!(wording.starts_with("False Settling: the schema changed; writing starts at 2"), "{wording}");
    let settling = world.status();
    assert!(settling["settlesAt"].is_string() && settling["firstSeen"].is_string(), "{settling}");
    assert_eq!(settling["previous"][0]["digest"], before["digest"]);
    assert_eq!(settling["previous"][0]["defaults"], json!([{ "path": ".spec.size", "value": "1" }]));

    set_default(&world, 3, Some(1));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(world.persisted().starts_with("True AllPersisted: all 2"), "{}", world.persisted());
    assert_eq!(log.count(is_write), written, "and nothing was written meanwhile");
    assert!(world.status()["settlesAt"].is_null());
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_schema_has_stood_is_not_lost_in_a_restart() {
    let world = World::with(&["a"]);
    set_policy(&world, 2, json!({ "settle": "24h" }));
    let log = world.operate(HOUR).await;
    assert_eq!(log.count(is_write), 0);
    let first_seen = world.status()["firstSeen"].clone();
    let log = world.operate(MINUTE).await;
    assert_eq!(world.status()["firstSeen"], first_seen);
    assert_eq!(log.count(|request| request.method == "PATCH"), 0, "and it says nothing new");
    // A day later.
    world.edit_report(CRD, |report| report["status"]["firstSeen"] = json!("2020-01-01T00:00:00Z"));
    world.operate(MINUTE).await;
    assert!(world.is_persisted("a"), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_loses_its_defaults_says_so_and_so_does_its_report() {
    let world = World::with(&["a"]);
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, HOUR));
    tokio::time::sleep(MINUTE).await;
    set_default(&world, 2, None);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.persisted(), "True NoDefaults: the storage version v1 has no defaults");
    let now = world.status();
    assert_eq!(
        (&now["state"], &now["defaults"], &now["generation"]),
        (&json!("NoDefaults"), &json!([]), &json!(2))
    );
    let asked = log.all().len();
    tokio::time::sleep(10 * MINUTE).await;
    assert!(log.all().len() - asked <= 9, "watches only");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_no_policy_selects_any_more_is_released_also_after_a_restart() {
    let world = World::with(&["a"]);
    world.operate(MINUTE).await;
    assert!(world.persisted().starts_with("True"));
    set_policy(&world, 2, json!({ "selector": { "groups": ["other.io"] } }));
    world.operate(MINUTE).await;
    assert_eq!(world.persisted(), "");
    assert_eq!(world.status()["state"], "NotSelected");
    let policy = world.stored(POLICIES, "default").expect("the policy");
    let mut conditions = policy["status"]["conditions"].as_array().expect("conditions").iter();
    let ready = conditions.find(|condition| condition["type"] == "Ready").expect("it is there");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("True"), &json!("NothingSelected")));
    let log = world.operate(MINUTE).await;
    assert_eq!(log.count(|request| request.method == "PATCH"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_held_object_that_is_deleted_while_the_pass_is_verified_is_not_counted_any_more() {
    let world = World::with(&["a"]);
    let mut hiding = thing("hiding");
    hiding["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:legacy"] = json!({});
    world.put(THINGS, hiding);
    // The pass waits for this write; the list that verifies it comes after the user has deleted the other
    // object.
    let mut slow = Some(Answer::unavailable().after(Duration::from_secs(5)));
    world.fails(move |request| if is_write(request) { slow.take() } else { None });
    let (cluster, _) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, MINUTE));
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.remove(THINGS, "hiding");
    operator.await.expect("it ends by itself");
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
    assert_eq!(world.status()["counts"]["held"], 0);
}

#[tokio::test(start_paused = true)]
async fn the_report_on_an_earlier_crd_of_the_name_becomes_the_new_ones() {
    let world = World::with(&["a"]);
    world.operate(MINUTE).await;
    world.edit_report(CRD, |report| report["spec"]["crdUid"] = json!("of-one-that-is-gone"));
    world.operate(MINUTE).await;
    let report = world.report(CRD).expect("a report");
    assert_eq!(report["spec"]["crdUid"], "crd-things");
    let log = world.operate(MINUTE).await;
    assert_eq!(log.count(|request| request.method == "PATCH"), 0, "and it is known after a restart");
}

#[tokio::test(start_paused = true)]
async fn totals_that_change_without_other_news_are_told_within_five_minutes_and_once() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(2 * HOUR);
    tokio::time::sleep(15 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
    let reported = |request: &Request| request.method == "PATCH" && !is_write(request);
    let before = log.count(reported);
    for name in ["b", "c", "d"] {
        world.put(THINGS, filled(&thing(name)));
    }
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 4 objects store their defaults");
    assert_eq!(world.status()["counts"]["objects"], 4);
    assert_eq!(log.count(reported) - before, 2, "one report and one condition");
    world.remove(THINGS, "c");
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 3 objects store their defaults");
    assert_eq!(world.status()["counts"]["objects"], 3);

    // What comes and goes in the meantime leaves the totals as they were.
    let before = log.count(reported);
    world.put(THINGS, filled(&thing("e")));
    tokio::time::sleep(MINUTE).await;
    world.remove(THINGS, "e");
    tokio::time::sleep(HOUR).await;
    assert_eq!(log.count(reported), before, "nothing has changed, and nothing is written");
    operator.abort();
}

/// A release that stands only while the objects are listed, and that Etch never sees.
#[tokio::test(start_paused = true)]
async fn what_another_schema_showed_in_the_middle_of_a_pass_is_not_taken_for_stored_when_the_first_is_back() {
    let world = World::with(&["a", "b"]);
    let mut stands = [false, false];
    world.loses(move |world, request| {
        if request.is_watch() && request.path.ends_with("/customresourcedefinitions") {
            return Some(Answer::Hang);
        }
        // The last question before the list.
        let asks = request.body["spec"]["resourceAttributes"]["verb"] == "patch";
        if asks && !std::mem::replace(&mut stands[0], true) {
            set_default(world, 2, Some(5));
            world.serves(5, 5);
        }
        let is_end = request.method == "PATCH" && !request.body["status"]["finished"].is_null();
        if is_end && !std::mem::replace(&mut stands[1], true) {
            set_default(world, 3, Some(1));
            world.serves(1, 1);
        }
        None
    });
    world.operate(MINUTE).await;
    assert!(!world.is_persisted("a"), "it seemed to be stored: no default gave 5 that was known");
    world.loses(|_, _| None);
    world.operate(MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    assert!(world.is_persisted("a") && world.is_persisted("b"));
}
