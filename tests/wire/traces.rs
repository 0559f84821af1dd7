//! What is traced, apart from where it goes: the spans of a pass and of its writes, and what they show.

use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use super::pages::in_two_pages;
use super::secrets::{Captured, heard_by};
use super::server::{Answer, Request};
use super::world::{MINUTE, THINGS, World, is_write};

/// A span that has ended: its fields, and the names of those that it was part of, outermost first.
struct Ended {
    fields: Value,
    within: Vec<String>,
}

/// Runs the operator for a minute; what was traced under a name by then.
async fn trace(world: &World, later: impl FnOnce()) -> impl Fn(&str) -> Vec<Ended> {
    let logs = Captured::default();
    let filter = format!("{}=debug", etch::operator::TRACED);
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(logs.clone())
        .with_env_filter(EnvFilter::new(filter))
        .finish();
    let _tracing = heard_by(subscriber);
    let (operator, _) = world.operates(MINUTE);
    tokio::time::sleep(MINUTE / 2).await;
    later();
    operator.await.expect("it ends by itself");
    let lines: Vec<Value> =
        logs.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    move |name| lines.iter().filter(|line| line["span"]["name"] == name).map(ended).collect()
}

fn ended(line: &Value) -> Ended {
    let spans = line["spans"].as_array().into_iter().flatten();
    let within = spans.filter_map(|span| span["name"].as_str()).map(str::to_owned).collect();
    Ended { fields: line["span"].clone(), within }
}

impl Ended {
    /// Some of the fields, as an object.
    fn only(&self, names: &[&str]) -> Value {
        names.iter().map(|name| ((*name).to_owned(), self.fields[*name].clone())).collect()
    }
}

/// A webhook that refuses `b`, and a client that is quicker than the first write to `c`.
fn faults() -> impl FnMut(&Request) -> Option<Answer> + Send + 'static {
    let mut is_first = true;
    move |request| match request.path.rsplit('/').next() {
        Some("b") if is_write(request) => {
            let denied = "admission webhook \"v.example.com\" denied the request: hunter2";
            Some(Answer::status(403, "Forbidden", denied))
        }
        Some("c") if is_write(request) && std::mem::take(&mut is_first) => {
            Some(Answer::status(409, "Conflict", "the object has been modified"))
        }
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_tells_of_its_sweeps_pages_and_writes() {
    let world = World::with(&["a", "b", "c"]);
    world.fails(faults());
    let traced = trace(&world, || ()).await;

    let passes = traced("pass");
    let wording = ["crd", "policy", "objects", "written", "rejected", "held", "outcome", "reason"];
    assert_eq!(
        passes.iter().map(|pass| pass.only(&wording)).collect::<Vec<_>>(),
        [json!({
            "crd": "things.example.com", "policy": "default", "objects": 3, "written": 2, "rejected": 1,
            "held": 0,
            "outcome": "Finished", "reason": "ObjectsRejected",
        })]
    );
    assert_eq!(passes[0].within, [""; 0]);
    assert_eq!(passes[0].fields["digest"].as_str().map(str::len), Some(64));

    let sweeps: Vec<Value> =
        traced("sweep").iter().map(|sweep| sweep.only(&["verifies", "objects", "written"])).collect();
    assert_eq!(
        sweeps,
        [
            json!({ "verifies": false, "objects": 3, "written": 2 }),
            json!({ "verifies": true, "objects": 3, "written": 0 }),
        ]
    );
    for page in traced("page") {
        assert_eq!(page.only(&["number", "objects"]), json!({ "number": 1, "objects": 3 }));
        assert_eq!(page.within, ["pass", "sweep"]);
    }

    let mut writes: Vec<(String, Value)> = traced("write")
        .iter()
        .filter(|write| write.within == ["pass", "sweep", "page"])
        .map(|write| {
            assert_eq!(
                write.only(&["crd", "decision"]),
                json!({ "crd": "things.example.com", "decision": "Apply" })
            );
            let object = write.fields["object"].as_str().unwrap_or_default().to_owned();
            (object, write.only(&["attempt", "outcome", "reason", "otel.status_code"]))
        })
        .collect();
    writes.sort_by_key(|(object, write)| (object.clone(), write["attempt"].as_u64()));
    let reported = |attempt: u32, outcome: &str, reason: Option<&str>| {
        let code = reason.map(|_| "ERROR");
        json!({ "attempt": attempt, "outcome": outcome, "reason": reason, "otel.status_code": code })
    };
    let expected = [
        ("ns/a", reported(1, "Written", None)),
        ("ns/b", reported(1, "Rejected", Some("webhook v.example.com refused it"))),
        ("ns/c", reported(1, "Conflict", None)),
        ("ns/c", reported(2, "Written", None)),
    ];
    assert_eq!(writes, expected.map(|(object, write)| (object.to_owned(), write)));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_comes_ahead_is_a_part_of_its_sweep() {
    let world = in_two_pages();
    let traced = trace(&world, || ()).await;
    let pages = traced("page");
    assert!(pages.iter().all(|page| page.within == ["pass", "sweep"]), "{}", pages.len());
    let numbers: Vec<_> = pages.iter().filter_map(|page| page.fields["number"].as_u64()).collect();
    assert_eq!(numbers, [1, 2, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_write_in_the_steady_state_stands_by_itself() {
    let world = World::with(&["a"]);
    let traced = trace(&world, || world.put_unfilled(THINGS, "late")).await;
    let writes = traced("write");
    let late: Vec<&Ended> = writes.iter().filter(|write| write.fields["object"] == "ns/late").collect();
    assert!(late.iter().any(|write| write.fields["outcome"] == "Written"), "{}", late.len());
    assert!(late.iter().all(|write| write.within.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_cannot_be_made_says_why() {
    let world = World::with(&["a"]);
    world.fails(|request| {
        let denied = json!({ "status": { "allowed": false } });
        request.path.starts_with("/apis/authorization.k8s.io/").then(|| Answer::json(denied))
    });
    let traced = trace(&world, || ()).await;
    let passes = traced("pass");
    assert!(!passes.is_empty());
    for pass in passes {
        assert_eq!(
            pass.only(&["outcome", "otel.status_code"]),
            json!({ "outcome": "Halted", "otel.status_code": "ERROR" })
        );
        let reason = pass.fields["reason"].as_str().unwrap_or_default();
        assert!(reason.starts_with("a permission is missing: {apiGroups:"), "{reason}");
    }
    assert_eq!(traced("sweep").len(), 0);
}
