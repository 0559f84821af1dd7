//! etcd that is set back to an earlier state while the operator runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use etch::operator::Options;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::pass_status::{set_default, set_policy};
use super::refusals::of_two_versions;
use super::server::{Answer, Log, Request};
use super::world::{CRD, HOUR, MINUTE, Snapshot, THINGS, World, is_write, operate_with, options, thing};

const STORED: &str = "True AllPersisted: all 2 objects store their defaults";

/// Waits until both objects store their defaults; the condition is not `True` before.
async fn is_mended(world: &World, at_most: Duration) {
    let mut waited = Duration::ZERO;
    while !world.is_persisted("a") || !world.is_persisted("b") {
        assert!(!world.persisted().starts_with("True"), "{}", world.persisted());
        tokio::time::sleep(Duration::from_secs(1)).await;
        waited += Duration::from_secs(1);
        assert!(waited < at_most, "not found: {}", world.persisted());
    }
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), STORED);
}

/// Two objects, whose defaults are stored after five minutes.
fn settling() -> World {
    let world = World::with(&["a", "b"]);
    set_policy(&world, 2, json!({ "settle": "5m" }));
    world
}

/// An operator that runs for so long, with what tells it that a Lease was set back, and its requests.
fn with_sign(world: &World, time: Duration) -> (JoinHandle<()>, watch::Sender<()>, Log) {
    let (cluster, log) = world.serve();
    let sign = watch::Sender::new(());
    let options = Options { set_back: Some(sign.subscribe()), ..options() };
    (tokio::spawn(operate_with(options, cluster, time)), sign, log)
}

/// Takes a backup before an operator that has just begun stores the defaults, and waits until they are
/// stored.
async fn backed_up(world: &World) -> Snapshot {
    tokio::time::sleep(2 * MINUTE).await;
    let before = world.snapshot();
    assert!(!world.is_persisted("a"));
    tokio::time::sleep(20 * MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    before
}

#[tokio::test(start_paused = true)]
async fn a_restore_to_before_the_pass_is_found_and_mended_without_a_restart() {
    for bump in [true, false] {
        let world = settling();
        let (operator, _) = world.operates(2 * HOUR);
        let before = backed_up(&world).await;
        world.restore(&before, bump);
        assert!(!world.is_persisted("a") && !world.is_persisted("b"));
        is_mended(&world, 10 * MINUTE).await;
        operator.await.expect("it ends by itself");
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_lease_shows_a_restore_reports_are_read_seldom_and_soon_after_it() {
    for bump in [true, false] {
        let world = settling();
        let (operator, sign, log) = with_sign(&world, 2 * HOUR);
        let before = backed_up(&world).await;
        let is_read = |request: &Request| request.method == "GET" && request.path.contains("reports/");
        let read = log.count(is_read);
        tokio::time::sleep(30 * MINUTE).await;
        assert_eq!(log.count(is_read), read, "nothing has happened");
        world.restore(&before, bump);
        sign.send_replace(());
        is_mended(&world, 2 * MINUTE).await;
        world.lose_reports();
        tokio::time::sleep(HOUR).await;
        assert_eq!(world.report(CRD).expect("a report")["status"]["state"], "AllPersisted");
        operator.await.expect("it ends by itself");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restore_to_before_what_is_not_reported_yet_is_found_by_the_lease() {
    for wait in [Duration::ZERO, Duration::from_secs(5)] {
        let world = of_two_versions(&["a"]);
        let (operator, sign, _) = with_sign(&world, HOUR);
        tokio::time::sleep(20 * MINUTE).await;
        world.put(THINGS, thing("b"));
        let before = world.snapshot();
        while !world.is_persisted("b") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(wait).await;
        // The report is as it was when the backup was taken, or is written again after the restore.
        world.restore(&before, true);
        assert!(!world.is_persisted("b"));
        tokio::time::sleep(Duration::from_secs(2)).await;
        sign.send_replace(());
        tokio::time::sleep(2 * MINUTE).await;
        assert!(world.is_persisted("b"), "{}", world.persisted());
        assert_eq!(world.persisted(), STORED);
        operator.await.expect("it ends by itself");
    }
}

/// Objects hold the default of before, and the pass that moved them is undone.
#[tokio::test(start_paused = true)]
async fn a_changed_default_is_followed_once_more_after_a_restore_to_before_the_pass() {
    let world = World::with(&["a", "b"]);
    world.operate(MINUTE).await;
    set_policy(
        &world,
        2,
        json!({ "settle": "5m", "onChange": [{ "path": ".spec.size", "action": "Follow" }] }),
    );
    set_default(&world, 2, Some(5));
    world.serves(5, 5);
    let holds = |size: u64| {
        ["a", "b"].iter().all(|name| world.stored(THINGS, name).expect("an object")["spec"]["size"] == size)
    };
    let (operator, _) = world.operates(2 * HOUR);
    tokio::time::sleep(2 * MINUTE).await;
    let before = world.snapshot();
    assert!(holds(1));
    tokio::time::sleep(20 * MINUTE).await;
    assert!(holds(5), "{}", world.persisted());
    world.restore(&before, true);
    assert!(holds(1));
    tokio::time::sleep(HOUR).await;
    assert!(holds(5), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}

/// The CRD goes back, too: to a schema with a default that the one after it has not.
#[tokio::test(start_paused = true)]
async fn a_restore_to_before_an_upgrade_brings_back_what_was_to_be_done_then() {
    for bump in [true, false] {
        let world = settling();
        let (operator, _) = world.operates(2 * HOUR);
        let before = backed_up(&world).await;
        set_default(&world, 2, None);
        tokio::time::sleep(20 * MINUTE).await;
        assert!(world.persisted().starts_with("True NoDefaults"), "{}", world.persisted());
        world.restore(&before, bump);
        // The API server has begun anew, and knows nothing of what was before.
        let mut expired = BTreeSet::new();
        world.fails(move |request| {
            let is_old = request.is_watch() && expired.insert(request.path.clone());
            is_old.then(|| Answer::status(410, "Expired", "too old resource version"))
        });
        world.end_watches();
        tokio::time::sleep(30 * MINUTE).await;
        assert!(world.is_persisted("a") && world.is_persisted("b"), "{}", world.persisted());
        assert_eq!(world.persisted(), STORED);
        operator.await.expect("it ends by itself");
    }
}

/// No sign shows the restore but the CRD itself, when it is read again.
#[tokio::test(start_paused = true)]
async fn a_crd_that_is_older_than_the_watch_of_crds_knows_is_not_read_again_and_again() {
    let world = settling();
    let (operator, log) = world.operates(2 * HOUR);
    let before = backed_up(&world).await;
    set_default(&world, 2, Some(1));
    tokio::time::sleep(20 * MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    world.restore(&before, false);
    world.end_watches();
    let is_read = |request: &Request| {
        request.method == "GET" && request.path.ends_with("customresourcedefinitions/things.example.com")
    };
    let read = log.count(is_read);
    tokio::time::sleep(30 * MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    let read = log.count(is_read) - read;
    assert!(read <= 12, "{read} reads of the CRD");
    // The next generation has the number of one that was known before.
    set_default(&world, 2, None);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True NoDefaults"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}

/// Nothing is watched, and the watches of CRDs and policies are silent: they began at a revision that is to
/// come.
#[tokio::test(start_paused = true)]
async fn a_crd_at_rest_goes_back_to_what_the_lease_shows_was_restored() {
    for bump in [true, false] {
        let world = settling();
        let (operator, sign, _) = with_sign(&world, 2 * HOUR);
        let before = backed_up(&world).await;
        set_default(&world, 2, None);
        tokio::time::sleep(20 * MINUTE).await;
        assert!(world.persisted().starts_with("True NoDefaults"), "{}", world.persisted());
        world.restore(&before, bump);
        world.end_watches();
        sign.send_replace(());
        tokio::time::sleep(30 * MINUTE).await;
        assert!(world.is_persisted("a") && world.is_persisted("b"), "{}", world.persisted());
        assert_eq!(world.persisted(), STORED);
        operator.await.expect("it ends by itself");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_a_restore_has_brought_back_is_obeyed() {
    let world = World::with(&["a", "b"]);
    let (operator, sign, log) = with_sign(&world, HOUR);
    tokio::time::sleep(20 * MINUTE).await;
    set_policy(&world, 2, json!({ "paused": true }));
    tokio::time::sleep(MINUTE).await;
    let before = world.snapshot();
    set_policy(&world, 3, json!({}));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    world.restore(&before, false);
    world.end_watches();
    sign.send_replace(());
    tokio::time::sleep(2 * MINUTE).await;
    assert!(world.persisted().contains("writes are paused"), "{}", world.persisted());
    let written = log.count(is_write);
    // Until a revision that the watch of the objects has not seen.
    for _ in 0..100 {
        world.put_unfilled(THINGS, "c");
    }
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(log.count(is_write), written, "{}", world.persisted());
    assert!(world.persisted().contains("writes are paused"), "{}", world.persisted());
    assert_eq!(world.report(CRD).expect("a report")["status"]["counts"]["objects"], 3, "it is counted");
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_a_restore_outlives_a_report_that_cannot_be_read() {
    let world = of_two_versions(&["a"]);
    let (operator, sign, _) = with_sign(&world, HOUR);
    tokio::time::sleep(20 * MINUTE).await;
    world.put(THINGS, thing("b"));
    let before = world.snapshot();
    while !world.is_persisted("b") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The report is the one that Etch knows, and only the sign shows the restore.
    world.restore(&before, true);
    let mut is_first = true;
    world.fails(move |request| {
        let is_read = request.method == "GET" && request.path.contains("reports/");
        let fails = is_read && std::mem::take(&mut is_first);
        fails.then(Answer::unavailable)
    });
    sign.send_replace(());
    tokio::time::sleep(5 * MINUTE).await;
    assert!(world.is_persisted("b"), "{}", world.persisted());
    assert_eq!(world.persisted(), STORED);
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn true_is_not_said_again_before_every_object_was_verified() {
    let world = World::with(&["a", "b"]);
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    // The condition still shows that; the object has gone back.
    let mut object = world.stored(THINGS, "a").expect("it is there");
    object["spec"].as_object_mut().expect("an object").remove("size");
    world.set_back(THINGS, object);
    world.edit_report(CRD, |report| report["status"] = json!({ "state": "Settling" }));
    let before = log.count(is_write);
    tokio::time::sleep(10 * MINUTE).await;
    assert!(world.is_persisted("a"));
    assert!(log.count(is_write) > before);
    assert_eq!(world.persisted(), STORED);
    assert_eq!(world.report(CRD).expect("a report")["status"]["state"], "AllPersisted");
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_report_that_somebody_deletes_is_there_again() {
    let world = World::with(&["a", "b"]);
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    world.lose_reports();
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(world.report(CRD).expect("a report")["status"]["state"], "AllPersisted");
    assert_eq!(world.persisted(), STORED);
    // What is stored is not changed by being verified; and it is verified once.
    assert!(log.count(is_write) <= 4, "{} writes", log.count(is_write));
    let reads = log.count(|request: &Request| request.method == "GET" && request.path.contains("reports"));
    operator.await.expect("it ends by itself");
    assert!(reads <= 8, "{reads} reads of the report in eleven minutes");
}

/// Has the report changed once, right before Etch replaces it, as soon as that is wanted.
fn changes_report(world: &World, edit: fn(&mut Value)) -> Arc<AtomicBool> {
    let is_wanted = Arc::new(AtomicBool::new(false));
    let wanted = is_wanted.clone();
    world.loses(move |world, request| {
        let is_write = request.method == "PATCH" && request.path.contains("reports");
        if is_write && wanted.swap(false, Ordering::Relaxed) {
            world.edit_report(CRD, edit);
        }
        None
    });
    is_wanted
}

#[tokio::test(start_paused = true)]
async fn a_report_that_another_replica_wrote_late_is_not_replaced_unread() {
    let world = World::with(&["a", "b"]);
    let is_wanted =
        changes_report(&world, |report| report["status"]["settlesAt"] = json!("2026-01-01T00:00:00Z"));
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(20 * MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    let lists = log.count(Request::is_list);
    is_wanted.store(true, Ordering::Relaxed);
    world.put(THINGS, thing("c"));
    tokio::time::sleep(10 * MINUTE).await;
    assert!(!is_wanted.load(Ordering::Relaxed), "the report is not written");
    // What was known before the report changed is known no more: all objects are looked at again.
    assert!(log.count(Request::is_list) > lists);
    assert_eq!(world.persisted(), "True AllPersisted: all 3 objects store their defaults");
    let status = &world.report(CRD).expect("a report")["status"];
    assert_eq!((&status["settlesAt"], &status["counts"]["objects"]), (&json!(null), &json!(3)));
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_report_whose_labels_change_is_replaced_all_the_same() {
    let world = World::with(&["a", "b"]);
    let is_wanted = changes_report(&world, |report| report["metadata"]["labels"] = json!({ "team": "a" }));
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(20 * MINUTE).await;
    let lists = log.count(Request::is_list);
    is_wanted.store(true, Ordering::Relaxed);
    world.put(THINGS, thing("c"));
    tokio::time::sleep(10 * MINUTE).await;
    assert!(!is_wanted.load(Ordering::Relaxed), "the report is not written");
    assert_eq!(world.report(CRD).expect("a report")["status"]["counts"]["objects"], 3);
    assert_eq!(log.count(Request::is_list), lists);
    operator.await.expect("it ends by itself");
}

/// Without a lease to agree on, the other replica replaces each report that this one writes.
#[tokio::test(start_paused = true)]
async fn another_writer_of_reports_keeps_nobody_from_writing_objects() {
    let world = World::with(&["a", "b"]);
    set_policy(&world, 2, json!({ "settle": "1m" }));
    let mut writes = 0;
    world.loses(move |world, request| {
        if request.method == "PATCH" && request.path.contains("reports") {
            writes += 1;
            world.edit_report(CRD, |report| {
                if report["status"].is_object() {
                    report["status"]["settlesAt"] = json!(format!("2026-01-01T00:00:{writes:02}Z"));
                }
            });
        }
        None
    });
    let (operator, _) = world.operates(10 * MINUTE);
    tokio::time::sleep(30 * Duration::from_secs(1)).await;
    assert!(!world.is_persisted("a"), "the schema has not settled");
    tokio::time::sleep(2 * MINUTE).await;
    assert!(world.is_persisted("a") && world.is_persisted("b"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}
