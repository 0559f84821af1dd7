//! A schema that is given a day: what is missing is found out at its beginning, and an idle cluster is left
//! in peace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use etch::operator::Clock;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::time::Instant;

use super::pass_status::set_policy;
use super::server::{Answer, Request};
use super::world::{HOUR, MINUTE, POLICIES, World, is_about_objects, is_write, operate_by};

/// A world whose policy gives a changed schema a day.
fn patient(names: &[&str]) -> World {
    let world = World::with(names);
    let mut policy = world.stored(POLICIES, "default").expect("the policy");
    policy["spec"] = json!({ "settle": "24h" });
    policy["metadata"]["generation"] = json!(2);
    world.put(POLICIES, policy);
    world
}

fn asks_for_permission(request: &Request) -> bool {
    request.path.ends_with("/selfsubjectaccessreviews")
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_missing_is_told_at_the_start_and_forgotten_when_it_comes() {
    let world = patient(&["a"]);
    let granted = Arc::new(AtomicBool::new(false));
    world.fails({
        let granted = granted.clone();
        move |request| {
            let asked = &request.body["spec"]["resourceAttributes"]["verb"];
            let refused = !granted.load(Ordering::SeqCst) && (asked == "patch" || asked == "watch");
            refused.then(|| Answer::json(json!({ "status": { "allowed": false } })))
        }
    });
    let (operator, log) = world.operates(26 * HOUR);
    tokio::time::sleep(MINUTE).await;
    let wording = world.persisted();
    assert!(wording.starts_with("False Settling: the schema changed; writing starts at "), "{wording}");
    let rule = r#"a permission is missing; add this rule to Etch's ClusterRole: {apiGroups: ["example.com"], resources: ["things"], verbs: ["watch", "patch"]}"#;
    assert!(wording.contains(rule), "{wording}");
    let reported: Vec<_> =
        world.events().into_iter().filter(|(event, _)| event.contains("Forbidden")).collect();
    let [(event, 1)] = &reported[..] else { panic!("{reported:?}") };
    assert!(event.starts_with("Warning Forbidden CustomResourceDefinition/things.example.com: "), "{event}");
    assert!(event.contains(rule), "{event}");

    // It is not granted for hours, and Etch asks for it seldom.
    let asked = log.count(asks_for_permission);
    tokio::time::sleep(10 * HOUR).await;
    let again = log.count(asks_for_permission) - asked;
    assert!((40..=300).contains(&again), "{again} questions in ten hours");
    granted.store(true, Ordering::SeqCst);
    tokio::time::sleep(15 * MINUTE).await;
    let wording = world.persisted();
    assert!(wording.starts_with("False Settling") && !wording.contains("permission"), "{wording}");
    assert_eq!(log.count(is_about_objects), 0, "nothing is listed before its time");

    tokio::time::sleep(15 * HOUR).await;
    assert!(world.is_persisted("a"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn who_lacks_nothing_asks_once_and_says_that_it_settles() {
    let world = patient(&["a"]);
    let (operator, log) = world.operates(23 * HOUR);
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(log.count(asks_for_permission), 4, "one question for each verb");
    let reported = world.events();
    let [(event, 1)] = &reported[..] else { panic!("{reported:?}") };
    assert!(event.starts_with("Normal Settling CustomResourceDefinition/things.example.com: "), "{event}");
    let before = log.all().len();
    tokio::time::sleep(20 * HOUR).await;
    let others: Vec<_> =
        log.all().split_off(before).into_iter().filter(|request| !request.is_watch()).collect();
    // A handful of questions, and nothing else.
    assert!(others.len() <= 20, "{} requests in 20 idle hours: {others:?}", others.len());
    assert_eq!(log.count(is_write), 0);
    operator.await.expect("it ends by itself");
    // A restart reports nothing new.
    let log = world.operate(HOUR).await;
    let reported = log.count(|request| request.path.starts_with("/apis/events.k8s.io/"));
    assert_eq!(reported, 0);
}

#[tokio::test(start_paused = true)]
async fn a_time_that_ends_within_a_second_makes_nobody_doubt_the_report() {
    let world = World::with(&["a"]);
    set_policy(&world, 2, json!({ "settle": "1500ms" }));
    let log = world.operate(MINUTE).await;
    assert!(world.is_persisted("a"), "{}", world.persisted());
    let conditions =
        log.of(|request| request.method == "PATCH" && request.path.contains("/things.example.com/status"));
    let doubts = conditions.iter().filter(|request| request.body.to_string().contains("restore"));
    assert_eq!(doubts.count(), 0, "{conditions:?}");
}

/// How far a user has set a wall clock, which goes on as the clock of the test does, in hours.
fn wall_clock() -> (Clock, Arc<AtomicI64>) {
    let (begun, time, set) = (Instant::now(), Timestamp::now(), Arc::new(AtomicI64::new(0)));
    let hours = set.clone();
    let now = move || time + begun.elapsed() + SignedDuration::from_hours(hours.load(Ordering::SeqCst));
    (Clock::new(now), set)
}

const YEAR: i64 = 365 * 24;

async fn the_clock_is_set(hours: i64) {
    let world = patient(&["a"]);
    let (cluster, log) = world.serve();
    let (clock, set) = wall_clock();
    let operator = tokio::spawn(operate_by(clock, cluster, 26 * HOUR));
    tokio::time::sleep(6 * HOUR).await;
    set.store(hours, Ordering::SeqCst);
    // A pause is a reason to look again whether the time is over.
    set_policy(&world, 3, json!({ "settle": "24h", "paused": true }));
    tokio::time::sleep(HOUR).await;
    set_policy(&world, 4, json!({ "settle": "24h" }));
    tokio::time::sleep(16 * HOUR).await;
    assert!(world.persisted().starts_with("False Settling"), "after 23 hours: {}", world.persisted());
    assert_eq!(log.count(is_about_objects), 0, "nothing is listed before its time");
    tokio::time::sleep(2 * HOUR).await;
    assert!(world.is_persisted("a"), "after 25 hours: {}", world.persisted());
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_forward_does_not_cut_the_time_short() {
    the_clock_is_set(YEAR).await;
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_back_does_not_stretch_the_time() {
    the_clock_is_set(-YEAR).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_with_a_clock_that_was_set_back_the_time_is_at_most_the_whole_one() {
    let world = patient(&["a"]);
    let (clock, set) = wall_clock();
    let (cluster, _) = world.serve();
    operate_by(clock.clone(), cluster, HOUR).await;
    set.store(-YEAR, Ordering::SeqCst);
    let (cluster, _) = world.serve();
    let operator = tokio::spawn(operate_by(clock, cluster, 25 * HOUR));
    tokio::time::sleep(23 * HOUR).await;
    assert!(!world.is_persisted("a"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
    assert!(world.is_persisted("a"), "{}", world.persisted());
}
