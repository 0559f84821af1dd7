//! The pages of a pass over the objects of a CRD: when each is asked for, what it is to hold, and what a
//! pause makes of one that is on its way.

use std::time::Duration;

use serde_json::{Value, json};

use super::lists::page;
use super::pass_status::set_policy;
use super::server::{Answer, Log, Request};
use super::world::{THINGS, World, filled, is_about_objects, is_write, thing};

const SECOND: Duration = Duration::from_secs(1);

/// A world that lists objects two to a page, and answers each write after five seconds.
pub(crate) fn in_two_pages() -> World {
    in_two_pages_with(|_, _| ())
}

/// The same, where something happens before a request is answered.
fn in_two_pages_with(mut happens: impl FnMut(&World, &Request) + Send + 'static) -> World {
    let world = World::with(&["a", "b", "c", "d"]);
    world.loses(move |world, request| {
        happens(world, request);
        let stored = |name: &str| world.stored(THINGS, name).map(|object| filled(&object));
        if is_list(request) {
            let (next, names) = match request.asked("continue") {
                "" => ("more", ["a", "b"]),
                _ => ("", ["c", "d"]),
            };
            let items = names.iter().filter_map(|name| stored(name));
            return Some(page(1, next, items.map(|object| shown(object, request))));
        }
        let written = request.path.rsplit('/').next().filter(|_| is_write(request))?;
        Some(Answer::json(stored(written)?).after(5 * SECOND))
    });
    world
}

/// An object in the form that is asked for.
fn shown(mut object: Value, request: &Request) -> Value {
    if request.is_for_metadata() {
        object["spec"].take();
    }
    object
}

fn is_list(request: &Request) -> bool {
    is_about_objects(request) && request.is_list()
}

/// How long after the first write of a page the second page was asked for.
fn waited(log: &Log) -> Duration {
    let written = log.of(is_write)[0].at;
    let more = log.of(|request| is_list(request) && request.asked("continue") == "more");
    more[0].at - written
}

#[tokio::test(start_paused = true)]
async fn the_next_page_comes_while_the_writes_of_one_are_under_way() {
    let world = in_two_pages();
    let log = world.operate(120 * SECOND).await;
    assert!(waited(&log) < 5 * SECOND, "{:?}", waited(&log));
    assert_eq!(world.persisted(), "True AllPersisted: all 4 objects store their defaults");
    assert_eq!(log.count(is_write), 4);
}

/// Which pages were asked for, and whether whole.
fn pages(log: &Log) -> Vec<&'static str> {
    let lists = log.of(is_list).into_iter();
    let page = |list: Request| match (list.asked("continue"), list.is_for_metadata()) {
        ("", false) => "first",
        ("", true) => "first, metadata",
        (_, false) => "second",
        (_, true) => "second, metadata",
    };
    lists.map(page).collect()
}

#[tokio::test(start_paused = true)]
async fn what_verifies_a_pass_asks_for_metadata_alone() {
    let world = in_two_pages();
    let log = world.operate(120 * SECOND).await;
    assert_eq!(pages(&log), ["first", "second", "first, metadata", "second, metadata"]);
    assert_eq!(world.persisted(), "True AllPersisted: all 4 objects store their defaults");
}

/// What was proved of it is not true of what another client has written since.
#[tokio::test(start_paused = true)]
async fn a_page_with_an_object_that_was_written_meanwhile_is_read_whole() {
    let mut is_written = false;
    let world = in_two_pages_with(move |world, request| {
        if is_list(request) && request.is_for_metadata() && !is_written {
            is_written = true;
            world.put(THINGS, thing("b"));
        }
    });
    let log = world.operate(120 * SECOND).await;
    let [first, second] = ["first, metadata", "second, metadata"];
    assert_eq!(pages(&log), ["first", "second", first, "first", second, first, second]);
    assert!(world.is_persisted("b"));
    assert_eq!(world.persisted(), "True AllPersisted: all 4 objects store their defaults");
    assert_eq!(log.count(is_write), 5);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_on_its_way_when_a_pause_begins_is_left() {
    let world = in_two_pages();
    let (operator, log) = world.operates(3600 * SECOND);
    while log.count(|request| request.asked("continue") == "more") == 0 {
        tokio::time::sleep(SECOND / 10).await;
    }
    set_policy(&world, 2, json!({ "paused": true }));
    tokio::time::sleep(120 * SECOND).await;
    assert!(!world.is_persisted("c") && !world.is_persisted("d"), "{}", world.persisted());
    set_policy(&world, 3, json!({}));
    tokio::time::sleep(120 * SECOND).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 4 objects store their defaults");
    assert_eq!(log.count(is_write), 4);
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn of_a_page_that_turns_out_large_the_rest_is_not_read() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let world = World::with(&names);
    world.loses(move |world, request| {
        if !is_list(request) {
            return None;
        }
        let first: usize = request.asked("continue").parse().unwrap_or_default();
        let end = names.len().min(first + request.asked("limit").parse::<usize>().ok()?);
        let next = if end < names.len() { end.to_string() } else { String::new() };
        let items = names[first..end].iter().filter_map(|name| {
            let mut object = filled(&world.stored(THINGS, name)?);
            object["metadata"]["annotations"] = json!({ "note": "x".repeat(1 << 20) });
            Some(shown(object, request))
        });
        Some(page(1, &next, items))
    });
    let log = world.operate(120 * SECOND).await;
    let asked = log.of(|request| is_list(request) && !request.is_for_metadata());
    let limits: Vec<_> = asked.iter().take(4).map(|request| request.asked("limit")).collect();
    assert_eq!(limits, ["25", "5", "1", "1"]);
    assert_eq!(world.persisted(), "True AllPersisted: all 6 objects store their defaults");
}
