//! Law 9: whatever an object holds and however a server quotes it, it is in no log, condition, report or
//! metric.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use serde_json::json;
use tracing::Dispatch;
use tracing::dispatcher::DefaultGuard;
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

use super::server::{Answer, Request, event, status};
use super::world::{CRDS, THINGS, World, is_about_objects, is_write, operate, thing};

const CANARY: &str = "hunter2";

/// Everything that was logged.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics here").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Captured {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no test panics here").clone()).expect("text")
    }
}

/// Has a subscriber receive everything that this thread logs and traces, until the guard is dropped.
pub(crate) fn heard_by(subscriber: impl Into<Dispatch>) -> DefaultGuard {
    // Where there is one subscriber alone, the thread that comes to a callsite first decides whether it is
    // enabled, and that may be another test's.
    static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));
    LazyLock::force(&ANOTHER);
    tracing::dispatcher::set_default(&subscriber.into())
}

/// The answers of a server, webhooks and policies that quote what they were sent, each in its own way.
fn indiscretions() -> Vec<Answer> {
    let mut invalid =
        status(422, "Invalid", "Thing \"a\" is invalid: spec.size: Invalid value: \"hunter2\": not hunter2");
    invalid["details"] = json!({ "causes": [
        { "reason": "FieldValueInvalid", "message": "Invalid value: \"hunter2\"", "field": "spec.size" },
        { "message": "hunter2", "field": "the value hunter2" },
        { "field": "spec.numbers.hunter2" },
        { "field": "spec.numbers[hunter2]" },
        { "field": "metadata.labels[hunter2]" },
    ]});
    let quoting_a_webhook =
        "Thing \"a\" is invalid: spec.name: Invalid value: \"admission webhook \\\"hunter2\\\"\"";
    vec![
        Answer::text(422, invalid.to_string()),
        Answer::status(422, "Invalid", quoting_a_webhook),
        Answer::status(403, "hunter2", "admission webhook \"w.example.com\" denied the request: hunter2"),
        Answer::status(
            422,
            "Invalid",
            "things \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: \
             hunter2",
        ),
        Answer::status(500, "InternalError", "failed to create typed live object: .spec.name: hunter2"),
        Answer::status(
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook \"w\": hunter2",
        ),
        Answer::status(500, "hunter2", "conversion webhook for example.com/v1 failed: hunter2"),
        Answer::status(409, "Conflict", "conflict with \"hunter2\""),
        Answer::status(400, "hunter2", "hunter2"),
        Answer::status(503, "hunter2", "hunter2"),
        Answer::text(502, "<html>hunter2</html>"),
        Answer::text(200, "{\"metadata\": \"hunter2\"}"),
        Answer::text(200, "{\"hunter2\": hunter2"),
        Answer::broken(["{\"hunter2\": "]),
        Answer::Refuse,
    ]
}

/// Every event in which a watch may quote.
fn indiscreet_watches() -> Vec<Answer> {
    vec![
        Answer::events([event("ERROR", status(500, "hunter2", "hunter2"))]),
        Answer::events([event("ERROR", json!("hunter2"))]),
        Answer::events([json!({ "type": 7, "object": "hunter2" })]),
        Answer::events([json!("hunter2")]),
        Answer::text(200, "hunter2\n"),
        Answer::broken(["{\"type\":\"ADDED\",\"object\":{\"hunter2\":"]),
        Answer::events([event("ERROR", status(410, "hunter2", "hunter2"))]),
    ]
}

/// A world whose objects hold the canary, and whose server quotes them wherever it can, for a time.
pub(crate) fn indiscreet() -> World {
    let world = World::with(&[]);
    let mut crd = world.stored(CRDS, "things.example.com").expect("the CRD");
    let spec =
        &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec["numbers"] = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    world.put(CRDS, crd);
    for name in ["a", "b", "c", "hidden", "misfit", "key", "ignored"] {
        world.put(THINGS, secretive(name));
    }
    let (mut lists, mut others, mut watches) = (indiscretions(), Vec::new(), indiscreet_watches());
    let mut reads = 0;
    let mut readable = move || {
        reads += 1;
        reads % 3 > 0
    };
    world.fails(move |request: &Request| match () {
        () if !is_about_objects(request) => None,
        () if request.is_watch() => watches.pop(),
        () if request.is_list() => lists.pop(),
        // An object that can be read now and then is written to now and then.
        () if request.method == "GET" && readable() => None,
        () => {
            if others.is_empty() {
                others = indiscretions();
            }
            others.pop()
        }
    });
    world
}

#[tokio::test(start_paused = true)]
async fn what_objects_hold_is_told_to_nobody() {
    let logs = Captured::default();
    let _logging = heard_by(
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(logs.clone())
            // What is traced is exported when it ends.
            .with_span_events(FmtSpan::CLOSE)
            // As the command sets it up: kube's own events may quote, so there are none.
            .with_env_filter(EnvFilter::new("trace,kube=off,kube_client=off"))
            .finish(),
    );
    let world = indiscreet();
    let (cluster, log) = world.serve();
    let metrics = cluster.metrics().clone();
    let operator = tokio::spawn(operate(cluster, Duration::from_secs(6 * 3600)));
    let mut reported = String::new();
    for _ in 0..360 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        reported.push_str(&world.stored(CRDS, "things.example.com").expect("the CRD")["status"].to_string());
        reported.push_str(&world.report("things.example.com").unwrap_or_default().to_string());
        reported.push_str(&metrics.text());
    }
    world.heals();
    operator.await.expect("no answer is too odd");
    reported.push_str(&logs.text());
    let writes = log.count(is_write);
    assert!(writes >= 2 * indiscretions().len(), "{writes} writes");
    for seen in [
        ".spec.numbers[\\\"*\\\"]",
        "ns/a",
        "deciding again",
        "ObjectsRejected",
        "etch_requests",
        "write{crd=",
    ] {
        assert!(reported.contains(seen), "{seen} is not told at all: is anything captured?");
    }
    let leak = reported.lines().find(|line| line.contains(CANARY));
    assert_eq!(leak, None);
}

/// An object that holds the canary wherever an object can hold something.
fn secretive(name: &str) -> serde_json::Value {
    let mut object = thing(name);
    object["spec"]["name"] = json!(CANARY);
    object["metadata"]["labels"] = json!({ "label": CANARY });
    let applied = json!({ "spec": { "name": CANARY } }).to_string();
    object["metadata"]["annotations"] = json!({
        "note": CANARY, "kubectl.kubernetes.io/last-applied-configuration": applied,
    });
    match name {
        "hidden" => {
            let fields = json!({ "f:spec": { "f:name": {}, "f:gone": { "v:\"x\"": {} } } });
            object["metadata"]["managedFields"][0]["fieldsV1"] = fields;
        }
        "misfit" => object["spec"]["name"] = json!({ CANARY: CANARY }),
        "key" => object["spec"]["numbers"] = json!({ CANARY: CANARY }),
        "ignored" => object["metadata"]["annotations"]["etch-operator.io/ignore"] = json!("true"),
        _ => {}
    }
    object
}
