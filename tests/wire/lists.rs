//! Lists that fail, in all the ways in which they can.

use std::sync::Mutex;
use std::time::Duration;

use etch_core::call_error::CallError;

use super::list_watch::{ListWatch, ListWatchEvent};
use etch_core::crd::Resource;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::server::{Answer, Log, Request, event, gaps, serve};
use super::world::{CRDS, HOUR, MINUTE, OTHERS, POLICIES, World, crd_named};

pub(crate) fn things() -> Resource {
    Resource { group: "example.com".to_owned(), version: "v1".to_owned(), plural: "things".to_owned() }
}

pub(crate) fn thing(name: &str, resource_version: u64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "resourceVersion": resource_version.to_string(),
        },
        "spec": {},
    })
}

pub(crate) fn page(resource_version: u64, next: &str, items: impl IntoIterator<Item = Value>) -> Answer {
    let items: Vec<Value> = items.into_iter().collect();
    Answer::json(json!({
        "kind": "ThingList", "apiVersion": "example.com/v1",
        "metadata": { "resourceVersion": resource_version.to_string(), "continue": next },
        "items": items,
    }))
}

/// An object nested this many levels deep (C7).
pub(crate) fn deep(name: &str, levels: usize) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","uid":"uid-{name}","resourceVersion":"7"}},"spec":{}1{}}}"#,
        "[".repeat(levels - 1),
        "]".repeat(levels - 1),
    )
}

/// What a list and its watches sent in a time, in short.
pub(crate) async fn listen(
    script: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    time: Duration,
) -> (Vec<String>, Log) {
    let (cluster, log) = serve(script);
    let (sender, mut events) = mpsc::channel(8);
    let list_watch = tokio::spawn(ListWatch::new(cluster, things()).run(sender));
    let mut reported = Vec::new();
    let until = Instant::now() + time;
    while let Ok(Some(event)) = tokio::time::timeout_at(until, events.recv()).await {
        reported.push(match event {
            ListWatchEvent::Listing => "listing".to_owned(),
            ListWatchEvent::Listed => "listed".to_owned(),
            ListWatchEvent::Applied(object) if object.is_too_deep() => {
                format!("+{} (too deep)", object.name())
            }
            ListWatchEvent::Applied(object) => format!("+{}", object.name()),
            ListWatchEvent::Deleted(object) => format!("-{}", object.name()),
            ListWatchEvent::Failed(error) => format!("failed: {error}"),
        });
    }
    list_watch.abort();
    (reported, log)
}

/// 30 s is the longest wait, and a quarter may be added to it.
const PATIENT: std::ops::RangeInclusive<usize> = 90..=130;

#[tokio::test(start_paused = true)]
async fn a_list_that_keeps_failing_is_asked_for_at_the_rate_of_the_backoff() {
    for answer in [
        || Answer::status(500, "InternalError", "no"),
        || Answer::text(503, "unavailable"),
        || Answer::text(403, "{}"),
        || Answer::text(404, "404 page not found\n"),
        || Answer::status(410, "Expired", "too old"),
        || Answer::Refuse,
        || Answer::text(200, r#"{"metadata": "#),
        || Answer::text(200, "[]"),
        || Answer::broken([r#"{"metadata": {"#]),
    ] {
        let (reported, log) = listen(move |_| answer(), HOUR).await;
        let lists = log.all();
        assert!(PATIENT.contains(&lists.len()), "{} lists in an hour, after {}", lists.len(), reported[1]);
        assert!(lists.iter().all(Request::is_list));
        let gaps = gaps(&lists);
        assert!(gaps[0] >= Duration::from_millis(500));
        assert!(gaps.iter().skip(8).all(|gap| gap.as_secs() >= 30 && gap.as_secs() < 38), "{gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_slowly_is_no_healthier() {
    let slow = || Answer::status(504, "Timeout", "no").after(Duration::from_secs(60));
    let (_, log) = listen(move |_| slow(), HOUR).await;
    assert!(log.all().len() <= 45, "{} lists of 60 s each in an hour", log.all().len());
    let (reported, log) = listen(|_| Answer::Hang, HOUR).await;
    assert!(log.all().len() <= 42, "{} lists of 65 s each in an hour", log.all().len());
    assert_eq!(reported[1], "failed: the API server did not answer within 65 s");
}

#[tokio::test(start_paused = true)]
async fn the_servers_wish_for_a_pause_is_granted_within_reason() {
    let asks = |seconds: &'static str| {
        move |_: &Request| {
            Answer::text(429, "storage is (re)initializing").with_header("retry-after", seconds)
        }
    };
    let (_, log) = listen(asks("45"), HOUR).await;
    assert!(gaps(&log.all()).iter().all(|gap| gap.as_secs() >= 45));
    let in_the_body = |_: &Request| {
        let details = json!({ "details": { "retryAfterSeconds": 50 }, "code": 429 });
        Answer::text(429, details.to_string())
    };
    let (_, log) = listen(in_the_body, HOUR).await;
    assert!(gaps(&log.all()).iter().all(|gap| gap.as_secs() >= 50));
    // One absurd answer does not stop requests forever.
    for absurd in ["86400", "18446744073709551615", "-1", "Wed, 21 Oct 2026 07:28:00 GMT"] {
        let (_, log) = listen(asks(absurd), HOUR).await;
        assert!(log.all().len() >= 12, "{absurd}: {} lists in an hour", log.all().len());
    }
}

#[tokio::test(start_paused = true)]
async fn pages_follow_each_other_by_their_tokens() {
    let script = |request: &Request| match (request.is_watch(), request.asked("continue")) {
        (true, _) => Answer::open_watch([]),
        (_, "") => page(40, "a/b=&c", [thing("one", 1), thing("two", 2)]),
        (_, "a%2Fb%3D%26c") => page(40, "last", []),
        (_, "last") => page(40, "", [thing("three", 3)]),
        (_, other) => panic!("an unknown token: {other}"),
    };
    let (reported, log) = listen(script, Duration::from_secs(10)).await;
    assert_eq!(reported, ["listing", "+one", "+two", "+three", "listed"]);
    assert_eq!(log.count(Request::is_list), 3);
    assert_eq!(log.of(Request::is_watch)[0].asked("resourceVersion"), "40");
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_snapshot_is_gone_goes_on_and_the_watch_misses_nothing() {
    let script = |request: &Request| match (request.is_watch(), request.asked("continue")) {
        (true, _) => Answer::open_watch([event("MODIFIED", thing("one", 45))]),
        (_, "") => page(40, "old", [thing("one", 1)]),
        (_, "old") => {
            let mut body =
                super::server::status(410, "Expired", "the provided continue parameter is too old");
            body["metadata"]["continue"] = json!("anew");
            Answer::text(410, body.to_string())
        }
        (_, "anew") => page(50, "", [thing("two", 48)]),
        (_, other) => panic!("an unknown token: {other}"),
    };
    let (reported, log) = listen(script, Duration::from_secs(10)).await;
    assert_eq!(reported, ["listing", "+one", "+two", "listed", "+one"]);
    // What changed on the first page between 40 and 50 reaches only a watch from 40 on.
    assert_eq!(log.of(Request::is_watch)[0].asked("resourceVersion"), "40");
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_snapshot_is_gone_for_good_begins_again() {
    let tries = Mutex::new(0);
    let script = move |request: &Request| match (request.is_watch(), request.asked("continue")) {
        (true, _) => Answer::open_watch([]),
        (_, "") => {
            *tries.lock().expect("one thread") += 1;
            let next = if *tries.lock().expect("one thread") < 3 { "old" } else { "" };
            page(40, next, [thing("one", 1)])
        }
        _ => Answer::status(410, "Expired", "too old"),
    };
    let (reported, _) = listen(script, Duration::from_secs(60)).await;
    let failed = "failed: the API server answered 410 Expired";
    assert_eq!(reported, ["listing", "+one", failed, "listing", "+one", failed, "listing", "+one", "listed"]);
}

#[tokio::test(start_paused = true)]
async fn objects_of_any_depth_do_not_fail_their_page() {
    let script = |request: &Request| {
        if request.is_watch() {
            return Answer::open_watch([]);
        }
        let items =
            [deep("deep", 1000), thing("flat", 8).to_string(), deep("deeper", 1001), deep("deepest", 20_000)];
        Answer::text(
            200,
            format!(r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{}]}}"#, items.join(",")),
        )
    };
    let (reported, _) = listen(script, Duration::from_secs(10)).await;
    assert_eq!(
        reported,
        ["listing", "+deep", "+flat", "+deeper (too deep)", "+deepest (too deep)", "listed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_coming_is_given_up() {
    let (cluster, _) = serve(|_| Answer::open_watch([json!({})]));
    let began = Instant::now();
    let error = cluster.page(&things(), None).await.expect_err("it never ends");
    assert!(matches!(error, CallError::TimedOut(..)), "{error}");
    assert!(began.elapsed() <= Duration::from_secs(66), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_may_have_no_items_at_all() {
    for items in ["", r#","items":null"#, r#","items":[]"#] {
        let body = format!(r#"{{"metadata":{{"resourceVersion":"9"}}{items}}}"#);
        let (cluster, _) = serve(move |_| Answer::text(200, body.clone()));
        let page = cluster.page(&things(), None).await.expect("a page");
        assert_eq!((page.objects.len(), page.resource_version.as_str(), page.next), (0, "9", None));
    }
}

#[tokio::test(start_paused = true)]
async fn one_object_is_told_from_another_of_its_name() {
    let identity = etch_core::object::Object::from(thing("a", 1)).identity();
    let (cluster, log) = serve(|_| Answer::json(thing("a", 9)));
    assert!(cluster.object(&things(), &identity).await.expect("an answer").is_some());
    assert_eq!(log.all()[0].path, "/apis/example.com/v1/namespaces/ns/things/a");
    let (cluster, _) = serve(|_| {
        let mut other = thing("a", 9);
        other["metadata"]["uid"] = json!("another");
        Answer::json(other)
    });
    assert!(cluster.object(&things(), &identity).await.expect("an answer").is_none());
    let (cluster, _) = serve(|_| super::requests::not_found("a"));
    assert!(cluster.object(&things(), &identity).await.expect("an answer").is_none());
    // A server that does not serve the resource, or not yet, proves nothing about the object.
    let (cluster, _) = serve(|_| Answer::text(404, "404 page not found\n"));
    assert_eq!(cluster.object(&things(), &identity).await.expect_err("no answer").code(), Some(404));
}

#[tokio::test(start_paused = true)]
async fn pages_are_bounded_in_bytes_and_grow_where_objects_are_small() {
    const OBJECTS: usize = 1_500;
    for (size, last) in [(100_000, 20), (100, 500)] {
        let script = move |request: &Request| {
            let first: usize = request.asked("continue").parse().unwrap_or_default();
            let limit: usize = request.asked("limit").parse().expect("a limit");
            let end = OBJECTS.min(first + limit);
            let text = "x".repeat(size);
            let items = (first..end).map(|number| {
                let mut thing = thing(&format!("thing-{number}"), 7);
                thing["spec"]["text"] = text.as_str().into();
                thing
            });
            page(40, &if end < OBJECTS { end.to_string() } else { String::new() }, items)
        };
        let (cluster, log) = serve(script);
        let (mut seen, mut next) = (0, None);
        loop {
            let page = cluster.page(&things(), next.as_deref()).await.expect("a page");
            seen += page.objects.len();
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(seen, OBJECTS);
        let lists = log.of(Request::is_list);
        let limits: Vec<usize> =
            lists.iter().map(|list| list.asked("limit").parse().expect("a limit")).collect();
        assert!(limits.iter().all(|limit| limit * size <= 3 << 20), "{limits:?} objects of {size} bytes");
        assert_eq!(limits.last(), Some(&last), "{limits:?}");
        assert!(lists.len() <= OBJECTS / last + 4, "{limits:?}");
    }
}

/// Who may change one CRD may give its owners fields at any depth.
#[tokio::test(start_paused = true)]
async fn owners_of_any_depth_hide_no_other_crd_and_no_other_policy() {
    let world = World::with(&["a"]);
    let deep = (0..300).fold(json!({}), |inner, _| json!({ "f:a": inner }));
    let owner = json!({ "manager": "m", "operation": "Update", "apiVersion": "example.com/v1",
                        "fieldsType": "FieldsV1", "fieldsV1": { "f:metadata": deep } });
    let mut crd = crd_named(OTHERS);
    crd["metadata"]["managedFields"] = json!([owner]);
    world.put(CRDS, crd);
    let metadata = json!({ "name": "another", "uid": "q", "generation": 1, "managedFields": [owner] });
    let spec = json!({ "selector": { "names": ["nothing.example.com"] } });
    world.put(POLICIES, json!({ "kind": "DefaultsPolicy", "metadata": metadata, "spec": spec }));
    world.operate(MINUTE).await;
    assert!(world.is_persisted("a"));
}
