//! The log in JSON: every line can be read strictly, whatever happens, and numbers are numbers.

use serde_json::{Value, json};
use tracing::dispatcher::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use super::pass_status::{set_default, set_policy};
use super::secrets::{Captured, heard_by, indiscreet};
use super::server::{Answer, Request};
use super::world::{MINUTE, POLICIES, THINGS, World, is_about_objects, is_write, thing};

/// Logs in JSON, as `--log-format json` does, and the spans as they end, as they are exported.
fn log_json(logs: &Captured) -> DefaultGuard {
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_writer(logs.clone())
        .with_span_events(FmtSpan::CLOSE)
        .with_env_filter(EnvFilter::new("trace,kube=off,kube_client=off"))
        .finish();
    heard_by(subscriber)
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
        "metadata": { "name": name, "uid": name, "generation": 1 }, "spec": spec,
    })
}

/// Several policies that disagree, or cannot be read, and lists and statuses that fail for a time.
async fn policies_in_disorder() {
    let world = World::with(&["a", "bad", "slow"]);
    world.put(POLICIES, policy("tied", &json!({})));
    world.put(POLICIES, policy("tied-too", &json!({ "mode": "Audit" })));
    world.put(POLICIES, policy("odd", &json!({ "mode": "Dream" })));
    world.put(
        POLICIES,
        policy(
            "typo",
            &json!({
                "selector": { "names": ["things.example.com"] }, "onChange": [{
                    "path": ".spec.sice", "action": "Follow",
                }],
            }),
        ),
    );
    let (mut failing, mut unsaid) = (6, 2);
    world.fails(move |request: &Request| {
        let own =
            request.path.contains("defaultspolicies") || request.path.contains("customresourcedefinitions");
        let refused =
            request.path.contains("events.k8s.io") || is_write(request) && request.path.ends_with("/bad");
        match () {
            () if refused => {
                Some(Answer::status(403, "Forbidden", "admission webhook \"w\" denied the request: no"))
            }
            () if is_write(request) && request.path.ends_with("/slow") => Some(Answer::unavailable()),
            () if unsaid > 0
                && request.path.ends_with("/status")
                && request.path.contains("/defaultspolicies/") =>
            {
                unsaid -= 1;
                Some(Answer::unavailable())
            }
            () if own && failing > 0 => {
                failing -= 1;
                Some(Answer::unavailable().with_header("retry-after", "1"))
            }
            () => None,
        }
    });
    world.operate(30 * MINUTE).await;
    world.remove(POLICIES, "typo");
    world.operate(5 * MINUTE).await;
}

/// Objects in every state, a pause in between, and a default that is followed.
async fn objects_in_every_state() {
    let world = World::with(&["a", "b"]);
    let mut ignored = thing("ignored");
    ignored["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
    world.put(THINGS, ignored);
    let mut hiding = thing("hiding");
    hiding["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:legacy"] = json!({});
    world.put(THINGS, hiding);
    world.operate(5 * MINUTE).await;
    set_policy(
        &world,
        2,
        json!({ "onChange": [{ "path": ".spec.size", "action": "Follow" }], "paused": true }),
    );
    set_default(&world, 2, Some(5));
    let (operator, _) = world.operates(30 * MINUTE);
    tokio::time::sleep(5 * MINUTE).await;
    set_policy(&world, 3, json!({ "onChange": [{ "path": ".spec.size", "action": "Follow" }] }));
    tokio::time::sleep(5 * MINUTE).await;
    world.fails(|request| {
        if request.is_watch() && is_about_objects(request) {
            return Some(Answer::status(403, "Forbidden", "no"));
        }
        let asks = request.path.ends_with("/selfsubjectaccessreviews");
        asks.then(|| Answer::json(json!({ "status": { "allowed": false } })))
    });
    world.end_watches();
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn every_line_is_read_strictly_and_numbers_are_numbers() {
    let logs = Captured::default();
    let logging = log_json(&logs);
    indiscreet().operate(120 * MINUTE).await;
    policies_in_disorder().await;
    objects_in_every_state().await;
    drop(logging);
    let lines = super::log_lines::parse(&logs.text()).expect("every line can be read");
    let messages = super::log_lines::messages(&lines);
    for message in [
        "pass started",
        "pass ended",
        "stored defaults",
        "followed changed defaults",
        "write rejected",
        "deciding again",
        "cannot read again",
        "postponed the object",
        "skipped",
        "held",
        "restarting the CRD task",
        "waiting for the permission",
        "the watch failed",
        "watch failed",
        "several equally specific policies select this CRD; the first by name governs it",
        "cannot read this policy; what it governs is not written",
        "cannot write the status of a policy",
        "cannot send events; conditions and reports show the same",
        "stopped reconciling",
        "close",
    ] {
        assert!(messages.contains_key(message), "nothing logged {message:?}: {messages:#?}");
    }
    let of = |message: &str| {
        let mut found = lines.iter().filter(|line| line["fields"]["message"] == message);
        found.next().expect("one of them").clone()
    };
    let end = of("pass ended");
    for count in ["objects", "written", "already_stored", "due", "held", "rejected", "unknown", "asked"] {
        assert!(end["fields"][count].is_u64(), "{count}: {end}");
    }
    assert_eq!(end["spans"][0], json!({ "name": "reconcile", "crd": "things.example.com" }));
    assert!(
        of("restarting the CRD task")["fields"]["retry_in_seconds"].is_f64(),
        "{}",
        of("restarting the CRD task")
    );
    let tie = of("several equally specific policies select this CRD; the first by name governs it");
    assert_eq!(tie["fields"]["ties"], "odd, tied, tied-too", "{tie}");
}

/// A log at level info, without the colours of a terminal.
async fn info_log(world: &World) -> String {
    let logs = Captured::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(logs.clone())
        .with_env_filter(EnvFilter::new("info,kube=off,kube_client=off"))
        .finish();
    let logging = heard_by(subscriber);
    world.operate(5 * MINUTE).await;
    drop(logging);
    logs.text()
}

#[tokio::test(start_paused = true)]
async fn a_pass_over_many_objects_is_a_few_lines_of_the_log() {
    let names: Vec<String> = (0..300).map(|index| format!("o{index:03}")).collect();
    let world = World::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    set_policy(&world, 2, json!({ "maxWritesPerSecond": 3 }));
    let log = info_log(&world).await;
    assert!(world.persisted().starts_with("True AllPersisted: all 300"), "{}", world.persisted());
    assert!(!log.contains("ns/o"), "{log}");
    let under_way = log.matches("pass under way").count();
    assert!((2..=5).contains(&under_way) && log.contains("pass ended"), "{log}");
    assert!(log.lines().count() <= 12, "{log}");
}

#[tokio::test(start_paused = true)]
async fn of_many_objects_that_are_refused_the_first_are_logged() {
    let names: Vec<String> = (0..100).map(|index| format!("o{index:03}")).collect();
    let world = World::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    world.fails(|request| is_write(request).then(|| Answer::invalid("no")));
    let log = info_log(&world).await;
    assert_eq!(log.matches("write rejected").count(), 10, "{log}");
    assert!(log.contains("more objects were refused"), "{log}");
    assert!(log.contains("rejected=100"), "{log}");
}
