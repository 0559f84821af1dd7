//! Watches that end, in all the ways in which they can.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use etch::cluster::{Change, ResumingWatch, WatchUpdate};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::list_watch::{ListWatch, ListWatchEvent};
use super::lists::{deep, listen, page, thing, things};
use super::server::{Answer, Request, event, gaps, serve, status};
use super::world::HOUR;

/// A server with one object, whose watches are answered by `watch`: given how many there were before, and the
/// request.
fn watched(
    watch: impl Fn(u64, &Request) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Request) -> Answer + Send + Sync + 'static {
    let opened = AtomicU64::new(0);
    move |request| match request.is_watch() {
        true => watch(opened.fetch_add(1, Ordering::Relaxed), request),
        false => page(40, "", [thing("one", 1)]),
    }
}

fn bookmark(resource_version: u64) -> Value {
    event("BOOKMARK", json!({ "metadata": { "resourceVersion": resource_version.to_string() } }))
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_at_once_is_no_hot_loop() {
    for answer in [
        || Answer::events([]),
        || Answer::events([bookmark(41)]),
        || Answer::events([event("MODIFIED", thing("one", 41))]),
        || Answer::broken([]),
        || Answer::broken([r#"{"type":"MODIFIED","object":{"#]),
        || Answer::text(200, "no JSON\n"),
        || Answer::text(500, "no"),
        || Answer::Refuse,
    ] {
        let (_, log) = listen(watched(move |_, _| answer()), HOUR).await;
        let watches = log.of(Request::is_watch);
        assert!((90..=130).contains(&watches.len()), "{} watches in an hour", watches.len());
        assert_eq!(log.count(Request::is_list), 1, "no list is needed");
        assert!(gaps(&watches).iter().skip(8).all(|gap| gap.as_secs() >= 30));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_in_good_order_is_followed_by_another_from_where_it_was() {
    let script = watched(|opened, _| {
        let last = futures::stream::iter([Ok(Bytes::from(format!("{}\n", bookmark(50 + opened))))]);
        let until = tokio::time::Instant::now() + Duration::from_secs(290);
        let end = futures::stream::once(tokio::time::sleep_until(until)).filter_map(async |()| None);
        Answer::Stream(last.chain(end).boxed())
    });
    let (reported, log) = listen(script, HOUR).await;
    assert_eq!(reported, ["listing", "+one", "listed"], "nothing has failed");
    let watches = log.of(Request::is_watch);
    assert_eq!(watches.len(), 13, "one every 290 s");
    let from: Vec<_> =
        watches.iter().take(3).map(|watch| watch.asked("resourceVersion").to_owned()).collect();
    assert_eq!(from, ["40", "50", "51"]);
    assert!(watches.iter().all(|watch| watch.asked("allowWatchBookmarks") == "true"));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_is_listed_anew_whichever_way_the_server_says_it() {
    let expired = status(410, "Expired", "too old resource version: 40 (90)");
    let in_stream = event("ERROR", expired.clone());
    for answer in [Answer::text(410, expired.to_string()), Answer::events([in_stream])] {
        let first = std::sync::Mutex::new(Some(answer));
        let script = watched(move |_, _| {
            first.lock().expect("one thread").take().unwrap_or_else(|| Answer::open_watch([]))
        });
        let (reported, log) = listen(script, Duration::from_secs(100)).await;
        let failed = "failed: the API server answered 410 Expired";
        assert_eq!(reported, ["listing", "+one", "listed", failed, "listing", "+one", "listed"]);
        assert_eq!((log.count(Request::is_list), log.count(Request::is_watch)), (2, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_always_says_too_old_is_not_listed_in_a_loop() {
    let (_, log) = listen(watched(|_, _| Answer::status(410, "Expired", "too old")), HOUR).await;
    assert!((90..=130).contains(&log.count(Request::is_list)), "{} lists", log.count(Request::is_list));
}

#[tokio::test(start_paused = true)]
async fn any_other_error_event_is_followed_by_another_watch_from_where_it_was() {
    let script = watched(|opened, _| match opened {
        0 => Answer::events([
            event("ADDED", thing("two", 42)),
            event("ERROR", status(500, "InternalError", "etcd event received with PrevKv=nil")),
        ]),
        _ => Answer::open_watch([event("DELETED", thing("two", 43))]),
    });
    let (reported, log) = listen(script, Duration::from_secs(60)).await;
    let failed = "failed: the API server answered 500 InternalError";
    assert_eq!(reported, ["listing", "+one", "listed", "+two", failed, "-two"]);
    assert_eq!(log.of(Request::is_watch)[1].asked("resourceVersion"), "42");
}

#[tokio::test(start_paused = true)]
async fn silence_beyond_the_servers_own_limit_ends_a_watch() {
    let (reported, log) = listen(watched(|_, _| Answer::open_watch([bookmark(41)])), HOUR).await;
    let watches = log.of(Request::is_watch);
    assert!((11..=12).contains(&watches.len()), "{} watches", watches.len());
    assert!(gaps(&watches).iter().all(|gap| gap.as_secs() >= 305 && gap.as_secs() < 310));
    assert!(
        reported[3..].iter().all(|reported| reported == "failed: the API server did not answer within 305 s")
    );
    assert_eq!(watches[1].asked("resourceVersion"), "41");
    assert_eq!(log.count(Request::is_list), 1);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_watch_however_often_its_reader_turns_to_something_else() {
    let (cluster, log) = serve(watched(|_, _| Answer::open_watch([bookmark(41)])));
    let mut watch = ResumingWatch::new(cluster, things(), "40".to_owned());
    let mut failed = 0;
    let mut turns = tokio::time::interval(Duration::from_secs(120));
    let end = Instant::now() + HOUR;
    while Instant::now() < end {
        tokio::select! {
            update = watch.next() => failed += u32::from(matches!(update, Ok(WatchUpdate::Failed(..)))),
            _ = turns.tick() => {}
        }
    }
    assert!((10..=12).contains(&failed), "given up {failed} times");
    assert!(log.count(Request::is_watch) >= 11);
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_beginning_never_comes_is_given_up() {
    let (reported, log) = listen(watched(|_, _| Answer::Hang), Duration::from_secs(200)).await;
    assert_eq!(reported[3], "failed: the API server did not answer within 65 s");
    assert!(log.count(Request::is_watch) >= 2);
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_without_a_version_does_not_lose_the_place() {
    let script = watched(|opened, _| match opened {
        0 => Answer::events([event("BOOKMARK", json!({ "metadata": {} }))]),
        _ => Answer::open_watch([]),
    });
    let (_, log) = listen(script, Duration::from_secs(60)).await;
    assert_eq!(log.of(Request::is_watch)[1].asked("resourceVersion"), "40");
}

#[tokio::test(start_paused = true)]
async fn an_object_of_nine_thousand_levels_does_not_end_its_watch() {
    let script = watched(|_, _| {
        let deep = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", deep("deep", 9000));
        let flat = format!("{}\n", event("MODIFIED", thing("one", 41)));
        let lines = [deep, flat].map(|line| Ok(Bytes::from(line)));
        Answer::Stream(futures::stream::iter(lines).chain(futures::stream::pending()).boxed())
    });
    let (reported, log) = listen(script, Duration::from_secs(60)).await;
    assert_eq!(reported, ["listing", "+one", "listed", "+deep (too deep)", "+one"]);
    assert_eq!(log.count(Request::is_watch), 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_comes_in_pieces_is_whole_even_if_nobody_waited_for_all_of_it() {
    let text = format!("{}\n{}\n", event("MODIFIED", thing("ünë", 41)), bookmark(42));
    let pieces: Vec<Bytes> = text.as_bytes().chunks(7).map(Bytes::copy_from_slice).collect();
    let count = pieces.len();
    let (cluster, _) = serve(move |_| {
        // One piece a second, cutting characters and events anywhere.
        let pieces = futures::stream::iter(pieces.clone()).then(async |piece| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(piece)
        });
        Answer::Stream(pieces.boxed())
    });
    let mut watch = cluster.watch(&things(), "40").await.expect("a watch");
    let (mut dropped, mut changes) = (0, Vec::new());
    loop {
        tokio::select! {
            change = watch.next() => match change.expect("no piece is lost") {
                Some(Change::Created(object) | Change::Applied(object)) => changes.push(object.name().to_owned()),
                Some(Change::Bookmark(resource_version)) => changes.push(resource_version),
                Some(Change::Deleted(_)) => unreachable!("nothing was deleted"),
                None => break,
            },
            () = tokio::time::sleep(Duration::from_millis(700)) => dropped += 1,
        }
    }
    assert_eq!(changes, ["ünë", "42"]);
    assert!(dropped > count, "the future was dropped {dropped} times in the middle of {count} pieces");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_for_a_listener_that_is_gone() {
    for script in [
        |request: &Request| match request.is_watch() {
            true => Answer::open_watch([]),
            false => page(40, "", []),
        },
        |_: &Request| Answer::text(503, ""),
        |_: &Request| Answer::Hang,
    ] {
        let (cluster, log) = serve(script);
        let (sender, mut events) = mpsc::channel(8);
        let list_watch = tokio::spawn(ListWatch::new(cluster, things()).run(sender));
        let until = Instant::now() + Duration::from_secs(100);
        while let Ok(Some(_)) = tokio::time::timeout_at(until, events.recv()).await {}
        drop(events);
        let asked = log.all().len();
        let ended = tokio::time::timeout(Duration::from_secs(1), list_watch).await;
        ended.expect("it ends at once").expect("and in good order");
        assert_eq!(log.all().len(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_loses_nothing() {
    let (cluster, _) = serve(watched(|_, _| {
        Answer::open_watch((0..50).map(|index| event("MODIFIED", thing(&format!("o{index}"), 41 + index))))
    }));
    let (sender, mut events) = mpsc::channel(1);
    let list_watch = tokio::spawn(ListWatch::new(cluster, things()).run(sender));
    let mut names = Vec::new();
    while names.len() < 51 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        if let Some(ListWatchEvent::Applied(object)) = events.recv().await {
            names.push(object.name().to_owned());
        }
    }
    list_watch.abort();
    assert_eq!(names.last().map(String::as_str), Some("o49"));
}
