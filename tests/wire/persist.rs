//! A pass by hand.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use etch::cluster::Pace;
use etch::operator::{self, Pass};
use etch_core::crd::Crd;
use etch_core::engine::by_hand::{Passed, Progress};
use etch_core::pace::limits::PaceMode;
use etch_core::plan::{Record, Terms};
use etch_core::prediction::changes_by_hand;
use etch_core::report::changed_defaults::ChangedDefaults;
use etch_core::scope::Scope;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::generation::{forget_name, slow, slow_and_unchecked};
use super::lagging::{changed, value_and_owners};
use super::server::Answer;
use super::stored_versions::migrate;
use super::world::{CRDS, THINGS, World, is_write};

/// A pass over all objects of a world's CRD as it is now.
fn pass(world: &World) -> Pass {
    let document = world.stored(CRDS, "things.example.com").expect("the CRD");
    let crd = Arc::new(Crd::read(&document.into()).expect("it can be read"));
    Pass {
        record: Record::empty(&crd),
        changes: ChangedDefaults::default(),
        crd,
        scope: Scope::All,
        terms: Terms::default(),
        proves_versions: false,
        after: None,
        pace: Arc::new(Pace::new(1, None, PaceMode::Gentle)),
        ended: CancellationToken::new(),
    }
}

/// What was lost, by place, and the sentence about it.
fn lost(passed: &Passed) -> (Vec<(&str, u64)>, &str) {
    let places = passed.dropped.iter().map(|field| (field.path.as_str(), field.objects));
    (places.collect(), passed.lost.as_deref().unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_record_from_before_a_restore_of_etcd_proves_nothing() {
    let world = World::with(&["a"]);
    let (cluster, _) = world.serve();
    let begun = pass(&world);
    let record = Record { through: Some(u64::MAX), ..begun.record };
    let pass = Pass { record, ..begun };
    let passed = operator::persist(&cluster, pass, &mut |_| ()).await.expect("it comes to its end");
    assert!(passed.verified && passed.proved.is_some());
    assert_eq!(passed.counts.written, 1);
    assert!(world.is_persisted("a"));
}

#[tokio::test(start_paused = true)]
async fn a_pass_begins_when_no_migration_writes_the_objects() {
    let world = World::with(&["a"]);
    let is_over = Arc::new(AtomicBool::new(false));
    migrate(&world, "Running", is_over.clone());
    let (cluster, log) = world.serve();
    let (mut asked, log_of_writes) = (0, log.clone());
    let mut progress = |progress: Progress| {
        if progress.migration.as_deref() == Some("things") {
            assert_eq!(log_of_writes.count(is_write), 0);
            asked += 1;
            is_over.store(asked == 3, Relaxed);
        }
    };
    let passed = operator::persist(&cluster, pass(&world), &mut progress).await.expect("it comes to its end");
    assert_eq!((asked, passed.counts.written), (3, 1));
    assert!(world.is_persisted("a"));
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_waits_for_a_migration_can_be_cancelled() {
    let world = World::with(&["a"]);
    migrate(&world, "Running", Arc::default());
    let (cluster, log) = world.serve();
    let begun = pass(&world);
    let ended = begun.ended.clone();
    let mut progress = |progress: Progress| {
        if progress.migration.is_some() {
            ended.cancel();
        }
    };
    let stopped = operator::persist(&cluster, begun, &mut progress).await.expect_err("it stops");
    assert!(stopped.is_ended());
    assert_eq!(log.count(is_write), 0);
}

#[tokio::test(start_paused = true)]
async fn what_the_first_write_of_all_drops_is_named() {
    let world = slow_and_unchecked(3, 10, json!({ "name": "n" }));
    world.loses(|world, request| {
        if !is_write(request) {
            return None;
        }
        let name = request.path.rsplit('/').next().expect("a name");
        let mut object = world.stored(THINGS, name).expect("it is there");
        object["spec"].as_object_mut().expect("fields").remove("name");
        Some(Answer::json(object))
    });
    let (cluster, log) = world.serve();
    let stopped = operator::persist(&cluster, pass(&world), &mut |_| ()).await.expect_err("it stops");
    assert_eq!(log.count(is_write), 1);
    assert_eq!(stopped.passed.counts.objects, 0);
    let sentence = "writes dropped fields, by a change of the CRD or by admission: .spec.name (1 object)";
    assert_eq!(lost(&stopped.passed), (vec![(".spec.name", 1)], sentence));
}

#[tokio::test(start_paused = true)]
async fn what_only_the_crd_read_again_shows_to_be_dropped_is_named() {
    // Its owner names the field, and no page shows it.
    let world = slow(3, 10, json!({}));
    let (cluster, _) = world.serve();
    let begun = pass(&world);
    let mut progress = |progress: Progress| {
        if progress.verifies {
            forget_name(&world);
        }
    };
    let passed = operator::persist(&cluster, begun, &mut progress).await.expect("it comes to its end");
    let sentence = "writes dropped fields, by a change of the CRD or by admission: .spec.name (3 objects)";
    assert_eq!(lost(&passed), (vec![(".spec.name", 3)], sentence));
}

/// A pass over the objects of a world in which a default has just changed.
fn pass_after_change(world: &World) -> Pass {
    let begun = pass(world);
    let report = world.report("things.example.com").expect("the operator has been here");
    let status = serde_json::from_value(report["status"].clone()).expect("a status");
    Pass { changes: changes_by_hand(&status, &begun.crd), ..begun }
}

#[tokio::test(start_paused = true)]
async fn a_write_by_hand_through_a_lagging_server_does_not_store_the_old_default() {
    let world = changed().await;
    // One server shows the new default; the write goes to the other one.
    world.serves(5, 1);
    let (cluster, _) = world.serve();
    let pass = pass_after_change(&world);
    let passed = operator::persist(&cluster, pass, &mut |_| ()).await.expect("it comes to its end");
    assert_eq!(value_and_owners(&world), (json!(5), vec![json!("user")]));
    assert!(passed.verified, "{passed:?}");
}
