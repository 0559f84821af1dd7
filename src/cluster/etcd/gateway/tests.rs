use std::convert::Infallible;
use std::sync::Mutex;

use http::Response;
use k8s_openapi::ByteString;
use serde_json::Value;
use tokio::time::Instant;

use super::*;

/// What a member answers.
enum Answer {
    Values(Value),
    Refusal(u16, &'static str),
    Silence,
}

/// What was asked for: of which member, how many values, and at which revision.
type Log = Arc<Mutex<Vec<(usize, u32, Option<String>)>>>;

/// An etcd whose members answer by this script: by their number, and by the key and the limit of a request.
fn etcd(members: usize, script: fn(usize, &str, u32) -> Answer) -> (Etcd, Log) {
    let log = Log::default();
    let members = (0..members).map(|member| {
        let log = log.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let log = log.clone();
            async move {
                let body = request.into_body().collect().await.expect("a body").to_bytes();
                let body: Value = serde_json::from_slice(&body).expect("JSON");
                let limit = body["limit"].as_str().and_then(|limit| limit.parse().ok()).expect("a limit");
                let key: ByteString = serde_json::from_value(body["key"].clone()).expect("bytes");
                let revision = body["revision"].as_str().map(str::to_owned);
                log.lock().expect("no test panics here").push((member, limit, revision));
                let (code, body) = match script(member, &String::from_utf8_lossy(&key.0), limit) {
                    Answer::Values(values) => (200, values),
                    Answer::Refusal(code, message) => (code, json!({ "error": message, "message": message })),
                    Answer::Silence => std::future::pending().await,
                };
                let body = Body::from(serde_json::to_vec(&body).expect("JSON"));
                Ok::<_, Infallible>(Response::builder().status(code).body(body).expect("an answer"))
            }
        });
        (format!("http://{member}"), kube::Client::new(service, "default"))
    });
    (Etcd::of(members.collect()), log)
}

/// As many values of this size as are asked for, of those that a prefix has.
fn values(size: usize, has: u32, key: &str, limit: u32) -> Answer {
    let first =
        key.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().map_or(0, |last: u32| last + 1);
    let last = has.min(first + limit);
    let values = (first..last).map(|number| {
        let key = ByteString(format!("/registry/things/{number:06}").into_bytes());
        json!({ "key": key, "value": ByteString(vec![7; size]), "mod_revision": "5" })
    });
    let values: Vec<_> = values.collect();
    Answer::Values(json!({ "header": { "revision": "9" }, "kvs": values, "more": last < has }))
}

/// Reads all values; returns how many there are.
async fn read(etcd: &Etcd) -> Result<usize, EtcdError> {
    let (mut count, mut after) = (0, None);
    loop {
        let page = etcd.page("/registry/things/", after.as_ref()).await?;
        count += page.values.len();
        after = page.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}

fn limits(log: &Log) -> Vec<u32> {
    log.lock().expect("no test panics here").iter().map(|(_, limit, _)| *limit).collect()
}

fn members(log: &Log) -> Vec<usize> {
    log.lock().expect("no test panics here").iter().map(|(member, ..)| *member).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_of_small_values_grow_and_those_of_large_ones_do_not() {
    let (etcd, log) = etcd(1, |_, key, limit| values(100, 2_000, key, limit));
    assert_eq!(read(&etcd).await.expect("all values"), 2_000);
    assert_eq!(limits(&log), [25, 100, 400, 500, 500, 500]);
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_an_answer_that_is_too_large_is_not_read_and_fewer_values_are_asked_for() {
    let (etcd, log) = etcd(1, |_, key, limit| values(1_000_000, 12, key, limit));
    assert_eq!(read(&etcd).await.expect("all values"), 12);
    assert_eq!(limits(&log), [[25, 5].as_slice(), &[1; 12]].concat());
}

#[tokio::test(start_paused = true)]
async fn what_etcd_found_too_large_is_not_asked_for_again() {
    let (etcd, log) = etcd(1, |_, key, limit| match limit > 10 {
        true => Answer::Refusal(429, "grpc: received message larger than max"),
        false => values(200_000, 30, key, limit),
    });
    assert_eq!(read(&etcd).await.expect("all values"), 30);
    assert_eq!(limits(&log), [25, 5, 7, 7, 7, 7]);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_cannot_answer_is_passed_over_and_the_one_that_can_is_asked_first() {
    let scripts: [fn(usize, &str, u32) -> Answer; 2] = [
        |member, key, limit| match member {
            1 => values(100, 200, key, limit),
            _ => Answer::Refusal(503, "etcdserver: no leader"),
        },
        |member, key, limit| match member {
            1 => values(100, 200, key, limit),
            _ => Answer::Silence,
        },
    ];
    for script in scripts {
        let (etcd, log) = etcd(3, script);
        assert_eq!(read(&etcd).await.expect("all values"), 200);
        assert_eq!(members(&log), [0, 1, 1, 1]);
    }
}

#[tokio::test(start_paused = true)]
async fn all_members_are_asked_again_while_they_elect_a_leader() {
    let began = Instant::now();
    let (lost, log) = etcd(2, |_, _, _| Answer::Refusal(503, "etcdserver: leader changed"));
    let error = read(&lost).await.expect_err("no leader");
    assert!(matches!(error, EtcdError::Refused { code: 503, .. }), "{error}");
    assert_eq!(members(&log), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert!((2..6).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());

    static ELECTED: Mutex<u32> = Mutex::new(0);
    let (etcd, log) = etcd(1, |_, key, limit| {
        let mut asked = ELECTED.lock().expect("no test panics here");
        *asked += 1;
        match *asked {
            2 => Answer::Refusal(500, "etcdserver: request timed out"),
            _ => values(100, 100, key, limit),
        }
    });
    assert_eq!(read(&etcd).await.expect("all values"), 100);
    assert_eq!(limits(&log), [25, 100, 100]);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_outlives_a_compaction_goes_on_at_a_later_revision() {
    static COMPACTED: Mutex<u32> = Mutex::new(0);
    let (etcd, log) = etcd(1, |_, key, limit| {
        let mut asked = COMPACTED.lock().expect("no test panics here");
        *asked += 1;
        match *asked {
            3 => Answer::Refusal(400, "etcdserver: mvcc: required revision has been compacted"),
            _ => values(100, 600, key, limit),
        }
    });
    assert_eq!(read(&etcd).await.expect("all values"), 600);
    let log = log.lock().expect("no test panics here");
    let revisions: Vec<Option<&str>> = log.iter().map(|(.., revision)| revision.as_deref()).collect();
    assert_eq!(revisions, [None, Some("9"), Some("9"), None, Some("9")]);
}

#[tokio::test(start_paused = true)]
async fn what_no_other_member_answers_otherwise_ends_the_read_at_once() {
    let scripts: [fn(usize, &str, u32) -> Answer; 2] = [
        |_, _, _| Answer::Refusal(400, "etcdserver: mvcc: required revision has been compacted"),
        |_, _, _| Answer::Refusal(400, "etcdserver: user name is empty"),
    ];
    let expected = ["etcd was compacted during the read", "etcd at http://0 requires a user"];
    for (script, expected) in scripts.into_iter().zip(expected) {
        let (etcd, log) = etcd(2, script);
        let error = read(&etcd).await.expect_err("no answer").to_string();
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(members(&log), [0]);
    }
}
