use axum::body::{Body, Bytes};
use axum::http::Request;
use futures::FutureExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use etch_admission::Compiled;

fn handler() -> AdmissionHandler {
    let declaration = json!({
        "targets": [{ "version": "v1", "resource": "things", "path": ".spec" }],
        "references": [
            { "path": ".secret", "resource": "secrets", "message": "it is not there" },
            { "path": ".secrets[*]", "resource": "secrets", "message": "it is not there" },
        ],
    });
    let schema = Compiled::new(&serde_json::from_value(declaration).expect("a declaration"));
    let served =
        Served { schema: Arc::new(schema.expect("it compiles")), facts: json!({}), missing: Vec::new() };
    let serving = ServedSchemas::default();
    serving.set([("one".to_owned(), served)].into());
    let references =
        References::new(|reference| async move { Some(Some(reference.name == "there")) }.boxed());
    AdmissionHandler::new(serving, references, Arc::default())
}

async fn post(handler: &AdmissionHandler, path: &str, body: String) -> (StatusCode, String) {
    let request = Request::post(path).body(Body::from(body)).expect("a request");
    let response = handler.clone().router().oneshot(request).await.expect("an answer");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

fn body(secret: &str) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "kind": { "version": "v1", "kind": "Thing" },
            "resource": { "version": "v1", "resource": "things" },
            "object": { "metadata": { "name": "x" }, "spec": { "secret": secret } },
        },
    })
    .to_string()
}

#[tokio::test]
async fn references_are_looked_up_by_validation() {
    let handler = handler();
    for (path, secret, expected) in [
        ("/validate/one", "gone", json!(["spec.secret: it is not there"])),
        ("/validate", "gone", json!(["spec.secret: it is not there"])),
        ("/validate/one", "there", Value::Null),
        ("/mutate/one", "gone", Value::Null),
        ("/validate/other", "gone", Value::Null),
    ] {
        let (status, answer) = post(&handler, path, body(secret)).await;
        assert_eq!(status, StatusCode::OK);
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["response"]["warnings"], expected, "{path} {secret}");
    }
    let shown = handler.metrics.text();
    assert!(
        shown.contains(r#"etch_admission_reviews_total{schema="one",operation="CREATE",outcome="Warned"} 1"#),
        "{shown}"
    );
}

/// A request that names these Secrets.
fn naming(secrets: &[String]) -> String {
    let mut review: Value = serde_json::from_str(&body("")).expect("JSON");
    review["request"]["object"]["spec"] = json!({ "secrets": secrets });
    review.to_string()
}

/// The warnings about a request that names these Secrets.
async fn warnings(handler: &AdmissionHandler, secrets: &[String]) -> Vec<String> {
    let (status, answer) = post(handler, "/validate/one", naming(secrets)).await;
    assert_eq!(status, StatusCode::OK);
    let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
    serde_json::from_value(answer["response"]["warnings"].take()).unwrap_or_default()
}

#[tokio::test]
async fn all_references_are_looked_up_and_what_is_missing_each_time() {
    let is_there = Arc::new(AtomicBool::default());
    let found = is_there.clone();
    let handler = AdmissionHandler {
        references: References::new(move |_| {
            let found = found.load(Ordering::SeqCst);
            async move { Some(Some(found)) }.boxed()
        }),
        ..handler()
    };
    let secrets: Vec<String> = (0..45).map(|number| format!("s{number}")).collect();
    let warned = warnings(&handler, &secrets).await;
    assert_eq!(warned.len(), 45);
    assert_eq!(warned[44], "spec.secrets[44]: it is not there");
    is_there.store(true, Ordering::SeqCst);
    assert_eq!(warnings(&handler, &secrets).await, Vec::<String>::new(), "they were created meanwhile");
}

#[tokio::test(start_paused = true)]
async fn references_that_were_not_checked_in_time_are_counted() {
    let handler = AdmissionHandler {
        references: References::new(|reference| match &*reference.name {
            "there" => async { Some(Some(true)) }.boxed(),
            _ => futures::future::pending().boxed(),
        }),
        ..handler()
    };
    let secrets = ["there", "late", "later"].map(str::to_owned);
    let expected =
        ["Etch did not check 2 references: the API server did not answer in time, or with an error"];
    assert_eq!(warnings(&handler, &secrets).await, expected);
    let shown = handler.metrics.text();
    assert!(shown.contains(r#"outcome="Warned"} 1"#), "{shown}");
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_in_a_line() {
    let handler = handler();
    let (status, line) = post(&handler, "/validate/one", "{}".to_owned()).await;
    assert_eq!(
        (status, &*line),
        (StatusCode::BAD_REQUEST, "the body is not an AdmissionReview of admission.k8s.io/v1\n")
    );
    let (status, _) = post(&handler, "/mutate", " ".repeat(LARGEST + 1)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let declared = Request::post("/mutate").header("content-length", LARGEST + 1);
    let response = handler.clone().router().oneshot(declared.body(Body::empty()).expect("a request")).await;
    assert_eq!(response.expect("an answer").status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(post(&handler, "/nothing", String::new()).await.0, StatusCode::NOT_FOUND);
}

/// A request whose body never comes.
fn endless() -> Request<Body> {
    let body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    Request::post("/validate/one").body(body).expect("a request")
}

#[tokio::test(start_paused = true)]
async fn requests_are_bounded_in_time_and_number() {
    let handler = handler();
    let router = handler.clone().router();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..MOST {
        waiting.spawn(router.clone().oneshot(endless()));
    }
    // Each of them gets a turn.
    for _ in 0..MOST {
        tokio::task::yield_now().await;
    }
    let more = router.clone().oneshot(endless()).await.expect("an answer");
    assert_eq!(more.status(), StatusCode::SERVICE_UNAVAILABLE);
    let begun = Instant::now();
    while let Some(late) = waiting.join_next().await {
        let late = late.expect("no panic").expect("an answer");
        assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
    }
    assert_eq!(begun.elapsed().as_secs(), REQUEST_TIMEOUT.as_secs(), "on a clock that stands still");
    assert!(handler.room.is_empty(), "nothing is left behind");
    let (status, _) = post(&handler, "/validate/one", body("there")).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn an_evaluation_that_is_not_waited_for_gives_back_its_place() {
    let handler = handler();
    let endless = || {
        let steps = std::iter::repeat_with(|| std::thread::sleep(Duration::from_millis(1)));
        steps.take(60_000).take_while(|()| !kube_validation_rules::is_stopped()).count()
    };
    let waited = tokio::time::timeout(Duration::from_millis(20), handler.evaluated(endless)).await;
    assert!(waited.is_err(), "the request is over");
    let all = available_parallelism().map_or(1, NonZero::get) * EVALUATED_PER_PROCESSOR;
    let places = handler.evaluations.acquire_many(u32::try_from(all).expect("a small number"));
    let places = tokio::time::timeout(Duration::from_secs(30), places).await;
    assert!(places.is_ok_and(|places| places.is_ok()), "all places are free again");
}

#[tokio::test]
async fn an_answer_does_not_depend_on_the_dry_run() {
    let handler = handler();
    let asked = body("gone");
    let mut dry: Value = serde_json::from_str(&asked).expect("JSON");
    dry["request"]["dryRun"] = json!(true);
    for path in ["/mutate/one", "/validate/one"] {
        assert_eq!(post(&handler, path, asked.clone()).await, post(&handler, path, dry.to_string()).await);
    }
}
