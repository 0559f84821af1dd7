//! Single requests: deadlines, and what may be shown of a refusal.

use std::sync::Mutex;
use std::time::Duration;

use etch::cluster::Cluster;
use etch_core::call_error::CallError;
use etch_core::rbac::Verb;
use etch_core::refusal::Refusal;
use etch_core::request::resources::{policies, reports};
use serde_json::json;
use tokio::time::Instant;

use super::lists::{page, things};
use super::server::{Answer, Log, serve, status};

type Script = fn() -> Answer;

/// The server's answer if an object is not there; not the one if the resource is not.
pub(crate) fn not_found(name: &str) -> Answer {
    let mut body = status(404, "NotFound", &format!("things.example.com \"{name}\" not found"));
    body["details"] = json!({ "name": name, "group": "example.com", "kind": "things" });
    Answer::text(404, body.to_string())
}

#[tokio::test(start_paused = true)]
async fn no_request_outlives_its_deadline() {
    let silences: [Script; 4] = [
        || Answer::Hang,
        || Answer::open_watch([]),
        || Answer::text(503, "").after(Duration::from_secs(500)),
        || Answer::json(json!({})).after(Duration::from_secs(66)),
    ];
    for silence in silences {
        let (cluster, _) = serve(move |_| silence());
        let began = Instant::now();
        let error = cluster.missing(&things(), &[Verb::Patch]).await.expect_err("no answer");
        assert!(matches!(error, CallError::TimedOut(..)), "{error}");
        assert_eq!(began.elapsed().as_secs(), 65);
    }
}

/// A server that answers each request with the first of these that is left, and lists nothing after that.
fn faulty(faults: Vec<Answer>) -> (Cluster, Log) {
    let faults = Mutex::new(faults.into_iter());
    serve(move |_| faults.lock().expect("no test panics here").next().unwrap_or_else(|| page(1, "", [])))
}

fn busy(seconds: u64) -> Answer {
    Answer::status(429, "TooManyRequests", "").with_header("Retry-After", &seconds.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_command_repeats_a_read_that_the_server_puts_off_or_that_is_lost() {
    let began = Instant::now();
    let (cluster, log) = faulty((0..5).map(|_| busy(3)).collect());
    cluster.retrying_reads().crd("things.example.com").await.expect("an answer");
    assert_eq!(log.all().len(), 6);
    assert!(began.elapsed() >= Duration::from_secs(15), "{:?}", began.elapsed());

    let (cluster, log) = faulty((0..6).map(|_| busy(3)).collect());
    let error = cluster.retrying_reads().crd("things.example.com").await.expect_err("always busy");
    assert_eq!((error.code(), log.all().len()), (Some(429), 6));

    let (cluster, log) = faulty(vec![Answer::broken(["{"]), busy(1), Answer::broken(["{"])]);
    let error = cluster.retrying_reads().all_policies().await.expect_err("lost twice");
    assert!(matches!(error, CallError::BrokenOff(..)), "{error}");
    assert_eq!(log.all().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_operator_has_back_offs_of_its_own_and_no_write_is_repeated() {
    let (cluster, log) = faulty(vec![busy(3)]);
    let error = cluster.crd("things.example.com").await.expect_err("busy");
    assert_eq!((error.code(), log.all().len()), (Some(429), 1));

    let (cluster, log) = faulty(vec![busy(3)]);
    let error =
        cluster.retrying_reads().set_persisted("things.example.com", "u", None).await.expect_err("busy");
    assert_eq!((error.code(), log.all().len()), (Some(429), 1));
}

#[tokio::test(start_paused = true)]
async fn an_answer_just_in_time_counts() {
    let allowed = || Answer::json(json!({ "status": { "allowed": true } }));
    let (cluster, _) = serve(move |_| allowed().after(Duration::from_secs(64)));
    assert_eq!(cluster.missing(&things(), &[Verb::Patch]).await.expect("an answer"), None);
}

#[tokio::test(start_paused = true)]
async fn every_verb_is_asked_about_by_itself() {
    let (cluster, log) = serve(|request| {
        let verb = &request.body["spec"]["resourceAttributes"]["verb"];
        Answer::json(json!({ "status": { "allowed": verb == "get" } }))
    });
    let missing =
        cluster.missing(&things(), &[Verb::Get, Verb::Watch, Verb::Patch]).await.expect("an answer");
    let missing = missing.expect("two are missing").to_string();
    assert_eq!(missing, r#"{apiGroups: ["example.com"], resources: ["things"], verbs: ["watch", "patch"]}"#);
    assert_eq!(log.all().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_went_wrong_is_told_apart_and_holds_no_text_of_the_answer() {
    let cases: [(Script, &str); 6] = [
        (|| Answer::Refuse, "cannot reach the API server: connection refused"),
        (|| Answer::broken(["{\"hunter2\""]), "the answer of the API server broke off"),
        (|| Answer::text(200, "{\"hunter2\": hunter2}"), "cannot parse the answer of the API server"),
        (|| Answer::text(200, ""), "cannot parse the answer of the API server"),
        (|| Answer::status(403, "hunter2", "hunter2"), "the API server answered 403"),
        (|| Answer::text(502, "<html>hunter2</html>"), "the API server answered 502"),
    ];
    for (answer, expected) in cases {
        let (cluster, _) = serve(move |_| answer());
        let error = cluster.missing(&things(), &[Verb::Patch]).await.expect_err("no answer");
        assert!(error.to_string().starts_with(expected), "{error}");
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_our_crds_is_told_how_it_gets_them() {
    let (cluster, _) = serve(|_| Answer::text(404, "404 page not found\n"));
    let reported = "Etch's CRDs are not installed: `etch crds | kubectl apply -f -`";
    for resource in [policies(), reports()] {
        let errors = [
            cluster.page(&resource, None).await.map(drop).expect_err("there are none"),
            cluster.watch(&resource, "1").await.map(drop).expect_err("there are none"),
        ];
        for error in errors {
            assert_eq!((error.to_string().as_str(), error.code()), (reported, Some(404)));
        }
    }
    let error = cluster.open_report("things.example.com", "uid").await.expect_err("there are none");
    assert_eq!(error.to_string(), reported);
    let error = cluster.page(&things(), None).await.map(drop).expect_err("there are none");
    assert_eq!(
        error.to_string(),
        "the API server answered 404",
        "of others' CRDs that is all there is to say"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_another_form_is_not_quoted() {
    for body in [
        r#"{"metadata": "hunter2"}"#,
        r#"{"metadata": {"resourceVersion": "1", "continue": {"hunter2": 1}}}"#,
        r#"{"metadata": {"resourceVersion": "1"}, "items": "hunter2"}"#,
        r#"{"metadata": {"resourceVersion": "1"}, "items": ["hunter2" "hunter2"]}"#,
        r#""hunter2""#,
    ] {
        let (cluster, _) = serve(move |_| Answer::text(200, body));
        let error = cluster.page(&things(), None).await.expect_err("no list");
        let mut wording = format!("{error} {error:?}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            wording.push_str(&format!(" {cause} {cause:?}"));
            source = cause.source();
        }
        assert!(!wording.contains("hunter2"), "{wording}");
        assert!(wording.contains("line 1"), "the position helps: {wording}");
    }
}

#[test]
fn a_refusal_shows_codes_names_and_fields_and_nothing_else() {
    let shown = |code: u16, body: serde_json::Value| {
        let refusal = Refusal::read(code, None, body.to_string().as_bytes());
        assert!(!format!("{refusal:?}").contains("hunter2"), "{refusal:?}");
        refusal.to_string()
    };
    let mut invalid =
        status(422, "Invalid", "Thing \"a\" is invalid: spec.size: Invalid value: \"hunter2\": no");
    invalid["details"] = json!({ "causes": [
        { "reason": "FieldValueInvalid", "message": "Invalid value: \"hunter2\"", "field": "spec.size" },
        { "field": "spec.size" }, { "field": "<nil>" }, { "field": "" }, {},
        { "field": "spec.map[a]" },
        { "field": "this is hunter2, no field" },
    ]});
    assert_eq!(shown(422, invalid), "422 Invalid");
    assert_eq!(shown(403, status(403, "hunter2", "hunter2")), "403", "a webhook may give any reason");
    assert_eq!(shown(500, json!("hunter2")), "500");
    assert_eq!(shown(500, json!({ "details": null, "metadata": {}, "reason": "Timeout" })), "500 Timeout");
    let odd = json!({ "reason": 7, "message": ["hunter2"] });
    assert_eq!(shown(500, odd), "500");
}

#[test]
fn what_an_object_holds_does_not_pass_for_the_servers_own_words() {
    let quoting = |value: &str| {
        let message =
            format!("Thing.example.com \"a\" is invalid: spec.size: Invalid value: \"{value}\": no");
        Refusal::read(422, None, status(422, "Invalid", &message).to_string().as_bytes())
    };
    for value in [
        "admission webhook \"hunter2\" denied the request",
        "failed calling webhook \"hunter2\"",
        "a is forbidden: ValidatingAdmissionPolicy 'hunter2' with binding 'b' denied request",
        "forbidden: User \"u\" cannot create resource \"things\"",
    ] {
        let refusal = quoting(value);
        assert_eq!((refusal.refused_by(), refusal.lacking_verb()), (None, None), "{value}");
        assert!(!refusal.is_failed_webhook(), "{value}");
        assert_eq!(refusal.to_string(), "422 Invalid");
    }
}
