//! Watches that fail for long: what Etch reports of objects whose watch has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::pass_status::{set_default, set_policy};
use super::refusals::of_two_versions;
use super::server::{Answer, Request};
use super::world::{CRD, CRDS, HOUR, MINUTE, POLICIES, THINGS, World, is_about_objects, thing};

/// The ways in which a watch fails.
const ANSWERS: [fn() -> Answer; 6] = [
    Answer::unavailable,
    || Answer::status(429, "TooManyRequests", "no").with_header("retry-after", "5"),
    || Answer::events([]),
    || Answer::text(200, "no JSON\n"),
    || Answer::broken([]),
    || Answer::Refuse,
];

fn is_watch(request: &Request) -> bool {
    request.is_watch() && is_about_objects(request)
}

#[tokio::test(start_paused = true)]
async fn while_watches_fail_nothing_is_known_and_that_is_said() {
    for answer in ANSWERS {
        let world = World::with(&["a"]);
        let (operator, _) = world.operates(2 * HOUR);
        tokio::time::sleep(MINUTE).await;
        assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "{}", world.persisted());
        world.fails(move |request| is_watch(request).then(answer));
        world.end_watches();
        tokio::time::sleep(MINUTE / 2).await;
        assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "a short gap is none");
        tokio::time::sleep(MINUTE).await;
        let wording = world.persisted();
        assert!(wording.starts_with("Unknown WatchFailing: "), "{wording}");
        // A phantom that no watch reports.
        world.put(THINGS, thing("unheard"));
        tokio::time::sleep(HOUR).await;
        assert_eq!(world.persisted(), wording);
        world.heals();
        tokio::time::sleep(10 * MINUTE).await;
        assert!(world.persisted().starts_with("True AllPersisted: all 2"), "{}", world.persisted());
        operator.await.expect("it ends by itself");
    }
}

#[tokio::test(start_paused = true)]
async fn what_happened_while_watches_failed_is_stored_before_the_condition_is_true_again() {
    const UNHEARD: usize = 200;
    let world = of_two_versions(&["a"]);
    // Slower than conditions follow.
    set_policy(&world, 2, json!({ "maxWritesPerSecond": 5 }));
    let (operator, _) = world.operates(2 * HOUR);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "{}", world.persisted());
    world.fails(|request| is_watch(request).then(Answer::unavailable));
    world.end_watches();
    tokio::time::sleep(2 * MINUTE).await;
    assert!(world.persisted().starts_with("Unknown WatchFailing: "), "{}", world.persisted());
    let names: Vec<String> = (0..UNHEARD).map(|index| format!("unheard-{index:03}")).collect();
    names.iter().for_each(|name| world.put(THINGS, thing(name)));
    let early = Arc::new(AtomicUsize::new(0));
    let seen = early.clone();
    world.loses(move |world, request| {
        if request.method == "PATCH" && request.path.contains(CRDS) && world.persisted().starts_with("True") {
            let missing = names.iter().filter(|name| !world.is_persisted(name)).count();
            seen.fetch_max(missing, Ordering::Relaxed);
        }
        None
    });
    world.heals();
    tokio::time::sleep(10 * MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: all 201"), "{}", world.persisted());
    assert_eq!(early.load(Ordering::Relaxed), 0, "objects lack their default when the condition is true");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_in_good_order_every_few_seconds_is_no_failure() {
    let world = World::with(&["a"]);
    let (operator, _) = world.operates(HOUR);
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.end_watches();
    }
    assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn while_no_change_of_crds_or_policies_is_noticed_nothing_is_known_of_any_object() {
    for (kind, answer) in ANSWERS.into_iter().flat_map(|answer| [(CRDS, answer), (POLICIES, answer)]) {
        let world = World::with(&["a"]);
        let (operator, _) = world.operates(2 * HOUR);
        tokio::time::sleep(MINUTE).await;
        assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "{}", world.persisted());
        world.fails(move |request| (request.is_watch() && request.path.ends_with(kind)).then(answer));
        world.end_watches();
        tokio::time::sleep(MINUTE / 2).await;
        assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "a short gap is none");
        tokio::time::sleep(MINUTE).await;
        let wording = world.persisted();
        let kinds = if kind == CRDS { "CRDs" } else { "policies" };
        let expected = format!("Unknown WatchFailing: the watch of {kinds} has failed since ");
        assert!(wording.starts_with(&expected), "{kind}: {wording}");
        // Objects are watched all the same, and a verification changes nothing about it.
        world.put(THINGS, thing("new"));
        tokio::time::sleep(HOUR).await;
        let wording = world.persisted();
        assert!(wording.starts_with(&expected), "{wording}");
        world.heals();
        tokio::time::sleep(2 * MINUTE).await;
        assert!(world.persisted().starts_with("True AllPersisted: all 2"), "{}", world.persisted());
        operator.await.expect("it ends by itself");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_changes_while_nobody_hears_of_it_is_not_said_to_be_stored() {
    let world = World::with(&["a"]);
    let (operator, _) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    world.fails(|request| (request.is_watch() && request.path.ends_with(CRDS)).then(|| Answer::events([])));
    world.end_watches();
    tokio::time::sleep(MINUTE / 2).await;
    set_default(&world, 2, Some(5));
    tokio::time::sleep(2 * MINUTE).await;
    assert!(world.persisted().starts_with("Unknown WatchFailing"), "{}", world.persisted());
    world.heals();
    tokio::time::sleep(2 * MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    assert_eq!(world.report(CRD).expect("a report")["status"]["generation"], 2);
    operator.await.expect("it ends by itself");
}
