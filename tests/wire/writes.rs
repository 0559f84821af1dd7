//! The outcome of a write, for every way in which a server may answer it.

use std::sync::Mutex;

use etch::cluster::{Cluster, GenerationCheck};
use etch_core::call_error::CallError;
use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::plan::{Outcome, Plan, Record, RejectionKind, Terms, decide};
use kube_structural_schema::json::Json;
use serde_json::{Value, json};

use super::lists::thing;
use super::requests::not_found;
use super::server::{Answer, Log, serve, status};

/// A CRD whose only default is known to v1 and not to v1beta1, which is served as well.
pub(crate) fn crd() -> Crd {
    let version = |name: &str, storage: bool, spec: Value| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": spec },
            }}},
        })
    };
    let text = json!({ "type": "string" });
    Crd::read(&Json::from(json!({
        "metadata": { "name": "things.example.com", "uid": "crd", "generation": 1 },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Thing", "plural": "things" },
            "versions": [
                version("v1", true, json!({ "name": text, "color": { "type": "string", "default": "red" } })),
                version("v1beta1", false, json!({ "name": text })),
            ],
        },
    })))
    .expect("a CRD")
}

fn owner(manager: &str, operation: &str, version: &str, field: &str) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": format!("example.com/{version}"),
        "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { field: {} } },
    })
}

/// The object `a` at a resource version, with these fields and owners.
fn object(resource_version: u64, spec: Value, owners: &[Value]) -> Value {
    let mut object = thing("a", resource_version);
    object["spec"] = spec;
    object["metadata"]["managedFields"] = owners.to_vec().into();
    object
}

/// Performs what is decided about an object, on a server that gives these answers in turn; the outcome in
/// short.
async fn perform(object: Value, record: Record, answers: impl IntoIterator<Item = Answer>) -> (String, Log) {
    let answers = Mutex::new(answers.into_iter().collect::<Vec<_>>().into_iter());
    let script = move |_: &_| answers.lock().expect("one thread").next().expect("no request too many");
    let (cluster, log) = serve(script);
    let outcome = perform_on(&cluster, object, record).await;
    let short = match outcome {
        Ok(Outcome::Rejected(rejection)) => format!("{:?}: {}", rejection.kind, rejection.message),
        Err(error) => format!("failed: {error}"),
        Ok(other) => format!("{other:?}"),
    };
    (short, log)
}

async fn perform_on(cluster: &Cluster, object: Value, record: Record) -> Result<Outcome, CallError> {
    let (crd, object, terms) = (crd(), Object::from(object), Terms::default());
    let Plan::Write(write) = decide(&object, &crd, &terms, &record) else { panic!("a write is due") };
    let read = tokio::time::Instant::now();
    let check = GenerationCheck::new(&crd, Some(read));
    cluster.perform(&crd, &object, read, &write, &terms, &check).await
}

fn verbs(log: &Log) -> Vec<String> {
    log.all().iter().map(|request| request.verb()).collect()
}

/// An object whose default is shown, and whose owner can express it.
fn shown() -> Value {
    object(10, json!({ "color": "red" }), &[owner("user", "Apply", "v1", "f:name")])
}

fn answer(resource_version: u64) -> Answer {
    Answer::json(object(
        resource_version,
        json!({ "color": "red" }),
        &[owner("user", "Apply", "v1", "f:name")],
    ))
}

fn disagreeing() -> Record {
    Record { versions_disagree: true, ..Record::default() }
}

#[tokio::test(start_paused = true)]
async fn the_same_resource_version_means_that_nothing_was_missing() {
    for record in [Record::default(), disagreeing()] {
        let (outcome, log) = perform(shown(), record, [answer(10)]).await;
        assert_eq!((outcome.as_str(), log.all().len()), ("AlreadyStored(WriteChangedNothing)", 1));
    }
    let (_, log) = perform(shown(), Record::default(), [answer(10)]).await;
    let request = &log.all()[0];
    assert_eq!((request.verb().as_str(), request.put("/metadata/uid")), ("PATCH json", json!("uid-a")));
    assert_eq!(request.path, "/apis/example.com/v1/namespaces/ns/things/a");
    assert_eq!((request.asked("fieldManager"), request.asked("force")), ("etch", ""));
}

#[tokio::test(start_paused = true)]
async fn another_resource_version_proves_it_only_where_versions_agree() {
    let (outcome, log) = perform(shown(), Record::default(), [answer(11)]).await;
    assert_eq!(outcome, r#"Written { resource_version: "11", proof: WriteAnswered }"#);
    assert_eq!(log.all().len(), 1);
    let (outcome, log) = perform(shown(), disagreeing(), [answer(11), answer(11)]).await;
    assert_eq!(outcome, r#"Written { resource_version: "11", proof: RepeatChangedNothing }"#);
    assert_eq!(log.all()[1].put("/metadata/resourceVersion"), "11", "the proof wins no race either");
    let (outcome, _) = perform(shown(), disagreeing(), [answer(11), answer(12)]).await;
    assert_eq!(outcome, "Altered", "the repeat has stored something");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_lacks_the_default_proves_nothing() {
    let lacking = object(11, json!({}), &[owner("user", "Apply", "v1", "f:name")]);
    let (outcome, log) = perform(shown(), Record::default(), [Answer::json(lacking)]).await;
    assert_eq!((outcome.as_str(), log.all().len()), ("Unproved", 1));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_shows_what_was_not_stored_is_found_out() {
    // W6: the apply shows the default and stores the object without it; every further apply fails.
    let refused =
        status(500, "InternalError", "failed to convert: .spec.color: field not declared in schema");
    let answers = [answer(11), Answer::text(500, refused.to_string())];
    let (outcome, log) = perform(shown(), disagreeing(), answers).await;
    assert_eq!((outcome.as_str(), log.all().len()), ("NeedsRewrite", 2));
}

/// Owners at v1beta1 and a default that only v1 knows.
fn foreign(spec: Value) -> Value {
    object(10, spec, &[owner("user", "Apply", "v1beta1", "f:name")])
}

fn ours(resource_version: u64) -> Answer {
    let owners = [owner("user", "Apply", "v1", "f:name"), owner("etch", "Update", "v1", "f:color")];
    Answer::json(object(resource_version, json!({ "color": "red" }), &owners))
}

#[tokio::test(start_paused = true)]
async fn a_rewrite_names_the_owners_anew_and_takes_our_own_name_out() {
    let (outcome, log) =
        perform(foreign(json!({ "color": "red" })), disagreeing(), [ours(11), answer(12), answer(12)]).await;
    assert_eq!(outcome, r#"Written { resource_version: "12", proof: RepeatChangedNothing }"#);
    assert_eq!(verbs(&log), ["PATCH json", "PATCH json", "PATCH json"]);
    let requests = log.all();
    let owners = json!([owner("user", "Apply", "v1", "f:name")]);
    for (place, value) in
        [("uid", json!("uid-a")), ("resourceVersion", json!("10")), ("managedFields", owners)]
    {
        assert_eq!(requests[0].put(&format!("/metadata/{place}")), value);
    }
    let operations = requests[1].body.as_array().expect("operations");
    let paths: Vec<_> = operations.iter().map(|operation| &operation["path"]).collect();
    assert_eq!(
        paths,
        [
            "/spec/color",
            "/metadata/uid",
            "/metadata/resourceVersion",
            "/metadata/managedFields/1/manager",
            "/metadata/managedFields/1/operation",
            "/metadata/managedFields/1",
        ]
    );
    assert_eq!((&operations[1]["value"], &operations[2]["value"]), (&json!("uid-a"), &json!("11")));
    assert_eq!(requests[2].put("/metadata/uid"), "uid-a");
}

#[tokio::test(start_paused = true)]
async fn a_rewrite_that_leaves_no_entry_of_ours_needs_no_release() {
    let (outcome, log) =
        perform(foreign(json!({ "color": "red" })), disagreeing(), [answer(11), answer(11)]).await;
    assert_eq!(outcome, r#"Written { resource_version: "11", proof: RepeatChangedNothing }"#);
    assert_eq!(verbs(&log), ["PATCH json", "PATCH json"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_stored_at_another_version_is_stored_at_s_first() {
    let answers = [Answer::json(foreign(json!({ "color": "red" }))), ours(12), answer(13), answer(13)];
    let (outcome, log) = perform(foreign(json!({})), disagreeing(), answers).await;
    assert_eq!(outcome, r#"Written { resource_version: "13", proof: RepeatChangedNothing }"#);
    assert_eq!(verbs(&log), ["PATCH apply", "PATCH json", "PATCH json", "PATCH json"]);
    assert!(log.all()[0].body.get("spec").is_none(), "the identity alone");
}

#[tokio::test(start_paused = true)]
async fn where_it_cannot_be_stored_first_the_rewrite_alone_does_it() {
    for code in [422, 500] {
        let answers = [Answer::status(code, "Invalid", "no"), ours(12), answer(13), answer(13)];
        let (outcome, log) = perform(foreign(json!({})), disagreeing(), answers).await;
        assert_eq!(
            outcome, r#"Written { resource_version: "13", proof: RepeatChangedNothing }"#,
            "after {code}"
        );
        assert_eq!(log.all()[1].put("/metadata/resourceVersion"), "10");
    }
    for (code, expected) in [(409, "Conflict"), (503, "failed: the API server answered 503")] {
        let (outcome, log) =
            perform(foreign(json!({})), disagreeing(), [Answer::status(code, "", "no")]).await;
        assert_eq!((outcome.as_str(), log.all().len()), (expected, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn another_writer_between_the_steps_of_a_rewrite_wins() {
    // A test of the JSON patch fails: another client has written since.
    let answers = [ours(11), Answer::status(422, "Invalid", "the server rejected our request")];
    let (outcome, log) = perform(foreign(json!({ "color": "red" })), disagreeing(), answers).await;
    assert_eq!((outcome.as_str(), log.all().len()), ("Conflict", 2));
    let conflict = [Answer::status(409, "Conflict", "the object has been modified")];
    let (outcome, _) = perform(foreign(json!({ "color": "red" })), disagreeing(), conflict).await;
    assert_eq!(outcome, "Conflict");
}

#[tokio::test(start_paused = true)]
async fn owners_that_are_gone_from_the_answer_are_reported() {
    let wiped = Answer::json(object(11, json!({ "color": "red" }), &[]));
    let (outcome, log) = perform(shown(), disagreeing(), [wiped]).await;
    assert_eq!(outcome, r#"OwnersLost { managers: ["user"] }"#);
    assert_eq!(log.all().len(), 1, "nothing more is written to it");
}

#[tokio::test(start_paused = true)]
async fn every_refusal_has_its_outcome() {
    let mut another_uid = status(422, "Invalid", "metadata.uid: Invalid value: \"u\": field is immutable");
    another_uid["details"] = json!({ "causes": [{ "field": "metadata.uid" }] });
    let forbidden = |verb: &str| {
        let message = format!(
            "things.example.com \"a\" is forbidden: User \"u\" cannot {verb} resource \"things\" in API \
             group \"example.com\""
        );
        Answer::status(403, "Forbidden", &message)
    };
    let quoting = "Thing \"a\" is invalid: spec.x: Invalid value: \"failed calling webhook \\\"x\\\"\"";
    let cases = [
        (not_found("a"), "Gone"),
        (Answer::text(404, "404 page not found\n"), "failed: the API server answered 404"),
        (
            Answer::status(404, "NotFound", "the server could not find it"),
            "failed: the API server answered 404 NotFound",
        ),
        (
            Answer::status(
                409,
                "Conflict",
                "Precondition failed: UID in precondition: a, UID in object meta: b",
            ),
            "Conflict",
        ),
        (Answer::text(422, another_uid.to_string()), "Conflict"),
        (forbidden("create"), "Gone"),
        (forbidden("patch"), "Forbidden { verb: Patch }"),
        (
            Answer::invalid(quoting),
            "Invalid: the object is invalid with its defaults, or with what admission changes in it",
        ),
        (Answer::status(500, "InternalError", quoting), "failed: the API server answered 500 InternalError"),
        (
            Answer::status(
                500,
                "InternalError",
                "Internal error occurred: failed calling webhook \"w\": no route",
            ),
            "Unavailable: the API server could not call webhook w",
        ),
        (
            Answer::status(429, "TooManyRequests", "later"),
            "failed: the API server answered 429 TooManyRequests",
        ),
        (Answer::status(401, "Unauthorized", "who"), "failed: the API server answered 401 Unauthorized"),
        (Answer::text(413, "too large"), "TooLarge: the object exceeds the size limit with its defaults"),
        (
            Answer::status(415, "UnsupportedMediaType", "no"),
            "Refused: the API server answered 415 UnsupportedMediaType",
        ),
        (Answer::status(504, "Timeout", "no"), "failed: the API server answered 504 Timeout"),
        (Answer::broken(["{\"metadata\": "]), "failed: the answer of the API server broke off"),
        (Answer::text(200, "{\"metadata\": "), "failed: cannot parse the answer of the API server"),
        (Answer::text(200, "{}"), "failed: cannot parse the answer of the API server"),
        (Answer::json(thing("another", 11)), "failed: cannot parse the answer of the API server"),
    ];
    for (answer, expected) in cases {
        let (outcome, _) = perform(shown(), Record::default(), [answer]).await;
        assert!(outcome.starts_with(expected), "{outcome}, not {expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_black_holed_write_is_given_up() {
    let (cluster, log) = serve(|_| Answer::Hang);
    let outcome = perform_on(&cluster, shown(), Record::default()).await;
    assert!(matches!(outcome, Err(CallError::TimedOut(..))), "{outcome:?}");
    assert_eq!(log.all().len(), 1, "and not repeated: it may have been carried out");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_keeps_who_refused_and_where() {
    let denied = "admission webhook \"v.example.com\" denied the request: the value hunter2 is not allowed";
    let mut refused = status(403, "hunter2", denied);
    refused["details"] = json!({ "causes": [{ "field": "spec.color", "message": "hunter2" }] });
    let (cluster, _) = serve(move |_| Answer::text(403, refused.to_string()));
    let Ok(Outcome::Rejected(rejection)) = perform_on(&cluster, shown(), Record::default()).await else {
        panic!("it was refused")
    };
    assert_eq!(rejection.kind, RejectionKind::Admission);
    assert_eq!(rejection.message, "webhook v.example.com refused it");
    assert_eq!(rejection.fields, [".spec.color"]);
    assert!(!format!("{rejection:?}").contains("hunter2"));
}
