//! What one CRD, or one policy, may cost all the others.

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::pending;
use serde_json::json;
use tokio::sync::watch;

use super::lists::page;
use super::pass_status::{set_default, set_policy};
use super::refusals::of_two_versions;
use super::server::{Answer, Request, gaps};
use super::world::{
    CRD, CRDS, HOUR, MINUTE, OTHERS, POLICIES, THINGS, World, crd_named, is_of, is_write, thing,
};

#[tokio::test(start_paused = true)]
async fn writes_that_are_never_answered_make_room_for_the_others_of_their_crd() {
    // As many as a CRD may have under way at first.
    let (lost, others) = (["a0", "a1", "a2", "a3"], ["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"]);
    let world = World::with(&[&lost[..], &others[..]].concat());
    world.fails(move |request| {
        let is_lost = is_write(request) && lost.iter().any(|name| is_of(name)(request));
        is_lost.then_some(Answer::Hang)
    });
    let (operator, _) = world.operates(HOUR);
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(others.iter().all(|name| world.is_persisted(name)), "{}", world.persisted());
    world.heals();
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 12 objects store their defaults");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn changes_are_heard_of_while_writes_of_many_other_objects_are_never_answered() {
    let world = of_two_versions(&["a"]);
    let (operator, _) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    world.fails(|request| (is_write(request) && request.path.contains("/lost-")).then_some(Answer::Hang));
    // More than are reconciled at once.
    (0..20).for_each(|index| world.put(THINGS, thing(&format!("lost-{index}"))));
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.put(THINGS, thing("b"));
    // Four of them are written at a time, and give way after 12 seconds; the last four once others are given
    // up, after 65.
    tokio::time::sleep(3 * MINUTE).await;
    assert!(world.is_persisted("b"), "{}", world.persisted());
    world.heals();
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 22 objects store their defaults");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_is_back_costs_each_object_that_waited_for_it_one_read() {
    const OBJECTS: usize = 300;
    let names: Vec<String> = (0..OBJECTS).map(|index| format!("o{index:03}")).collect();
    let world = World::with(&[]);
    names.iter().for_each(|name| world.put(THINGS, thing(name)));
    world.fails(|request| {
        let text = "Internal error occurred: failed calling webhook \"w\": no endpoints available";
        is_write(request).then(|| Answer::status(500, "InternalError", text))
    });
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(10 * MINUTE).await;
    assert!(world.persisted().starts_with("False ObjectsRejected"), "{}", world.persisted());
    let is_read = |request: &Request| request.method == "GET" && request.path.contains("/things/o");
    let before = log.count(is_read);
    world.heals();
    tokio::time::sleep(10 * MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: all 300"), "{}", world.persisted());
    let reads = log.count(is_read) - before;
    assert!(reads <= OBJECTS + 20, "{reads} reads");
    operator.abort();
}

/// The CRD that a request reads, schema and all.
fn read_crd(request: &Request) -> Option<&str> {
    let name = request.path.strip_prefix("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/")?;
    (request.method == "GET").then_some(name)
}

#[tokio::test(start_paused = true)]
async fn of_hundreds_of_crds_one_is_read_at_a_time() {
    const EACH: Duration = Duration::from_millis(20);
    let world = World::with(&[]);
    for index in 0..300 {
        let mut crd = crd_named(&format!("kind{index}"));
        let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let size = &mut schema["properties"]["spec"]["properties"]["size"];
        *size = json!({ "type": "integer" });
        world.put(CRDS, crd);
    }
    world.loses(|world, request| {
        let crd = world.stored(CRDS, read_crd(request)?)?;
        Some(Answer::json(crd).after(EACH))
    });
    let log = world.operate(MINUTE).await;
    let reads = log.of(|request| read_crd(request).is_some_and(|name| name.starts_with("kind")));
    assert!(
        reads.len() <= 600,
        "each is read once, and looked at once more when its conditions were written"
    );
    let mut seen = HashSet::new();
    let reads: Vec<Request> = reads.into_iter().filter(|request| seen.insert(request.path.clone())).collect();
    assert_eq!(reads.len(), 300);
    assert!(gaps(&reads).iter().all(|gap| *gap >= EACH), "two are read at once");
}

#[tokio::test(start_paused = true)]
async fn a_crd_whose_read_is_never_answered_holds_up_no_other() {
    let lost = ["kind0.example.com", "kind1.example.com", "kind2.example.com"];
    let world = World::with(&[]);
    (0..lost.len()).for_each(|index| world.put(CRDS, crd_named(&format!("kind{index}"))));
    world.fails(move |request| read_crd(request).filter(|name| lost.contains(name)).map(|_| Answer::Hang));
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.put(CRDS, crd_named(OTHERS));
    tokio::time::sleep(Duration::from_secs(20)).await;
    // That of its metadata alone shows at the end of the pass that it is still the same.
    let is_whole = |request: &Request| request.accepts.is_empty();
    let reads = log.of(|request| read_crd(request) == Some("others.example.com") && is_whole(request));
    assert_eq!(reads.len(), 1);
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn pages_of_hundreds_of_crds_that_wait_for_their_writes_share_a_room() {
    const KINDS: usize = 200;
    const SIZE: usize = 100_000;
    let is_of_kind =
        |request: &Request| request.path.starts_with("/apis/example.com/") && request.path.contains("/kind");
    let world = World::with(&[]);
    for index in 0..KINDS {
        world.put(CRDS, crd_named(&format!("kind{index}")));
    }
    world.fails(move |request| {
        if !is_of_kind(request) || request.is_watch() {
            return None;
        }
        if !request.is_list() {
            return Some(Answer::Hang);
        }
        let limit: usize = request.asked("limit").parse().expect("a limit");
        let items = (0..limit).map(|number| {
            let mut object = thing(&format!("object-{number:03}"));
            object["metadata"]["resourceVersion"] = "7".into();
            object["spec"]["text"] = "x".repeat(SIZE).into();
            object
        });
        Some(page(40, "more", items))
    });
    world.loses(|world, request| {
        let crd = world.stored(CRDS, read_crd(request)?)?;
        Some(Answer::json(crd).after(Duration::from_millis(20)))
    });
    let log = world.operate(MINUTE).await;
    let lists = log.of(|request| is_of_kind(request) && request.is_list());
    let listed: HashSet<_> = lists.iter().map(|list| &list.path).collect();
    // Where there is room, the page after it is asked for ahead.
    let begun = lists.iter().filter(|list| list.asked("continue").is_empty()).count();
    assert_eq!((begun, listed.len()), (KINDS, KINDS), "no CRD waits for another");
    let objects: usize =
        lists.iter().map(|list| list.asked("limit").parse::<usize>().expect("a limit")).sum();
    // Each CRD has one object at least.
    let most = (16 << 20) / SIZE + KINDS;
    assert!(objects <= most, "{objects} objects are held");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_somebody_deletes_releases_its_crds_and_its_return_costs_no_write() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(15 * MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "{}", world.persisted());
    let writes = log.count(is_write);
    world.remove(POLICIES, "default");
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), "");
    assert_eq!(world.report(CRD).expect("a report")["status"]["state"], "NotSelected");
    set_policy(&world, 2, json!({}));
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "{}", world.persisted());
    assert_eq!(log.count(is_write), writes);
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_not_overrun_by_the_watches_of_hundreds_of_crds() {
    const KINDS: usize = 500;
    let is_of_kind = |request: &Request| request.path.starts_with("/apis/example.com/v1/kind");
    let world = World::with(&[]);
    for index in 0..KINDS {
        world.put(CRDS, crd_named(&format!("kind{index}")));
    }
    let down = watch::Sender::new(false);
    let mut is_down = down.subscribe();
    world.fails(move |request| {
        if *is_down.borrow_and_update() {
            return Some(Answer::Refuse);
        }
        let mut goes_down = is_down.clone();
        let list = || Answer::json(json!({ "metadata": { "resourceVersion": "1" }, "items": [] }));
        let until_it_is_down = || pending().take_until(async move { goes_down.changed().await }).boxed();
        match (is_of_kind(request), request.is_watch()) {
            (false, _) => None,
            (true, false) => Some(list()),
            (true, true) => Some(Answer::Stream(until_it_is_down())),
        }
    });
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(3 * MINUTE).await;
    let watches = || log.of(|request| is_of_kind(request) && request.is_watch());
    let watched: HashSet<_> = watches().into_iter().map(|request| request.path).collect();
    assert_eq!(watched.len(), KINDS);

    let before = log.all().len();
    down.send_replace(true);
    world.end_watches();
    tokio::time::sleep(5 * MINUTE).await;
    let asked = log.all().len() - before;
    assert!(asked <= 11 * 300, "{asked} requests in five minutes");

    // No client waits for long when it is back.
    let before = watches().len();
    down.send_replace(false);
    let opened = || -> HashSet<String> {
        watches().split_off(before).into_iter().map(|request| request.path).collect()
    };
    tokio::time::sleep(MINUTE).await;
    // A request that was under way when the server came back may have to be given up first.
    assert!(opened().len() >= KINDS - 10, "{}", opened().len());
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(opened().len(), KINDS, "after {} requests", log.all().len());
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn large_objects_that_change_at_once_share_a_room() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    let is_of_large = |request: &Request| is_write(request) && request.path.contains("/large-");
    world.fails(move |request| is_of_large(request).then(|| Answer::Hang));
    for index in 0..12 {
        let mut object = thing(&format!("large-{index:02}"));
        object["spec"]["name"] = json!("x".repeat(500 << 10));
        world.put_unfilled_object(THINGS, object);
    }
    world.put_unfilled(THINGS, "small");
    tokio::time::sleep(Duration::from_secs(10)).await;
    // Each of them takes 6 MiB, and a CRD has 14.
    assert_eq!(log.count(is_of_large), 2);
    world.heals();
    tokio::time::sleep(20 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 14 objects store their defaults");
    operator.abort();
}

/// What happens to the object meanwhile must not hold the room that the read waits for.
#[tokio::test(start_paused = true)]
async fn a_large_object_that_changes_while_it_is_read_again_stops_nothing() {
    let large = |name: &str, note: &str| {
        let mut object = thing(name);
        object["metadata"]["annotations"] = json!({ "note": note.repeat(20_000) });
        object
    };
    let world = World::with(&[]);
    world.put(THINGS, large("a", "x"));
    world.put(THINGS, large("b", "x"));
    world.fails(|request| (is_write(request) && is_of("a")(request)).then(|| Answer::status(503, "", "no")));
    let (operator, _) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert!(!world.is_persisted("a") && world.is_persisted("b"));
    world.heals();
    let mut is_changed = false;
    world.loses(move |world, request| {
        if request.method != "GET" || !is_of("a")(request) || std::mem::replace(&mut is_changed, true) {
            return None;
        }
        world.put(THINGS, large("a", "y"));
        Some(world.answer(request).after(Duration::from_secs(1)))
    });
    tokio::time::sleep(5 * MINUTE).await;
    world.put(THINGS, large("c", "x"));
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 3 objects store their defaults");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_goes_while_it_is_read_delays_no_other() {
    let world = World::with(&["a"]);
    world.put(CRDS, crd_named(OTHERS));
    world.fails(|request| {
        let is_read = request.method == "GET" && request.path.ends_with("/others.example.com");
        is_read.then_some(Answer::Hang)
    });
    let (operator, _) = world.operates(HOUR);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    world.remove(CRDS, "others.example.com");
    tokio::time::sleep(Duration::from_secs(1)).await;
    set_default(&world, 2, Some(7));
    // Before the read is given up.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(world.report(CRD).expect("a report")["status"]["generation"], 2);
    operator.abort();
}
