use super::*;

fn served(facts: Value) -> Served {
    let declaration = json!({
        "targets": [
            { "group": "example.com", "version": "v1", "resource": "machines", "path": ".spec.value" },
        ],
        "facts": [{ "name": "id", "object": { "version": "v1", "resource": "things", "name": "it" },
                    "path": ".id" }],
        "when": "facts.id != 'other'",
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "size": { "type": "string", "default": "small", "maxLength": 5 },
            "count": { "type": "integer", "minimum": 1 },
            "net": { "type": "string" }, "secret": { "type": "string" },
        } } },
        "defaults": [{ "path": ".net", "value": "facts.id + '-net'" }],
        "rules": [{ "rule": "has(self.count)", "field": ".count", "type": "Required",
                    "message": "the count has to be set" }],
        "references": [{ "path": ".secret", "resource": "secrets", "message": "it is not there" }],
        "enforcement": "Deny",
    });
    let declaration = serde_json::from_value(declaration).expect("a declaration");
    let schema = Arc::new(Compiled::new(&declaration).expect("it compiles"));
    let Value::Object(known) = facts else { panic!("a map") };
    let (facts, missing) = schema.facts(&known);
    Served { schema, facts, missing }
}

fn asked(operation: &str, value: Value, old: Value) -> Asked {
    let object = |value: Value| match value {
        Value::Null => Value::Null,
        value => json!({ "apiVersion": "example.com/v1", "kind": "Machine",
                         "metadata": { "name": "m", "namespace": "ns" }, "spec": { "value": value } }),
    };
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "7", "operation": operation, "name": "m", "namespace": "ns",
            "kind": { "group": "example.com", "version": "v1", "kind": "Machine" },
            "resource": { "group": "example.com", "version": "v1", "resource": "machines" },
            "object": object(value), "oldObject": object(old),
        },
    });
    Asked::parse(review.to_string().as_bytes()).expect("a review")
}

fn response(phase: Phase, served: &Served, asked: &Asked) -> (Value, Reviewed) {
    let (mut answer, reviewed) = review(phase, &[("one", served)], asked, &|_| Some(false));
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    (answer["response"].take(), reviewed)
}

#[test]
fn what_is_missing_is_patched_in() {
    let schema = served(json!({ "id": "a" }));
    let (response, reviewed) =
        response(Phase::Mutate, &schema, &asked("CREATE", json!({ "count": 1 }), Value::Null));
    assert_eq!(reviewed, Reviewed::Changed);
    assert_eq!(
        (&response["uid"], &response["allowed"], &response["patchType"]),
        (&json!("7"), &json!(true), &json!("JSONPatch"))
    );
    let bytes: k8s_openapi::ByteString = serde_json::from_value(response["patch"].clone()).expect("base64");
    let mut patch: Vec<Value> = serde_json::from_slice(&bytes.0).expect("JSON");
    patch.sort_by_key(|operation| operation["path"].to_string());
    assert_eq!(
        patch,
        [
            json!({ "op": "add", "path": "/spec/value/net", "value": "a-net" }),
            json!({ "op": "add", "path": "/spec/value/size", "value": "small" }),
        ]
    );
}

#[test]
fn a_refusal_is_as_the_api_server_words_it_and_names_everything() {
    let schema = served(json!({ "id": "a" }));
    let bad = asked("CREATE", json!({ "size": "medium", "secret": "gone" }), Value::Null);
    let (answer, reviewed) = response(Phase::Validate, &schema, &bad);
    assert_eq!(reviewed, Reviewed::Denied);
    let status = &answer["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    let causes = status["details"]["causes"].as_array().expect("causes");
    let fields: Vec<&Value> = causes.iter().map(|cause| &cause["field"]).collect();
    assert!(fields.contains(&&json!("spec.value.size")) && fields.contains(&&json!("spec.value.count")));
    let message = status["message"].as_str().expect("a message");
    assert!(message.starts_with("Machine.example.com \"m\" is invalid: ["), "{message}");
    assert!(message.contains("spec.value.count: Required value: the count has to be set"), "{message}");
    assert!(message.contains("spec.value.size: Too long: may not be more than 5 bytes"), "{message}");
    assert_eq!(answer["warnings"], json!(["spec.value.secret: it is not there"]));
}

/// A review of an object with this many disks.
fn with_disks(count: usize, disk: Value) -> Asked {
    asked("CREATE", json!({ "disks": vec![disk; count] }), Value::Null)
}

fn served_disks(more: Value) -> Served {
    let target =
        json!({ "group": "example.com", "version": "v1", "resource": "machines", "path": ".spec.value" });
    let mut declaration = json!({
        "targets": [target],
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "disks": { "type": "array",
            "items": { "type": "object", "properties": {
                "name": { "type": "string" }, "gb": { "type": "integer", "default": 1 } } } } } } },
        "rules": [{ "rule": "has(item.name)", "forEach": ".disks[*]", "field": ".disks[*].name" }],
        "enforcement": "Deny",
    });
    declaration.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    let declaration = serde_json::from_value(declaration).expect("a declaration");
    let schema = Arc::new(Compiled::new(&declaration).expect("it compiles"));
    Served { schema, facts: json!({}), missing: Vec::new() }
}

#[test]
fn an_answer_is_small_however_much_is_wrong() {
    const LARGEST: usize = 64 << 10;
    let many = with_disks(50_000, json!({}));
    for (enforcement, expected) in [("Deny", Reviewed::Denied), ("Warn", Reviewed::Warned)] {
        let served = served_disks(json!({ "enforcement": enforcement }));
        let (answer, reviewed) = response(Phase::Validate, &served, &many);
        assert_eq!(reviewed, expected);
        assert!(answer.to_string().len() < LARGEST, "{} bytes", answer.to_string().len());
        assert!(answer.to_string().contains("there are more violations than Etch lists"));
    }
    // One that refuses nothing hides none that does.
    let rules = json!({ "rules": [
        { "rule": "false", "forEach": ".disks[*]", "severity": "Warn" },
        { "rule": "false", "message": "no" },
    ] });
    let (answer, reviewed) = response(Phase::Validate, &served_disks(rules), &many);
    assert_eq!(
        (reviewed, &answer["status"]["details"]["causes"][0]["message"]),
        (Reviewed::Denied, &json!("Invalid value: no"))
    );
    // What a rule costs too much for is one finding.
    let costly = "object.spec.value.disks.all(d, !has(d.x))";
    let costly = json!({ "rules": [{ "rule": costly, "forEach": ".disks[*]" }] });
    let (answer, _) = response(Phase::Validate, &served_disks(costly), &many);
    let causes = answer["status"]["details"]["causes"].as_array().map(Vec::len);
    assert_eq!(causes, Some(1), "{answer}");
}

#[test]
fn a_patch_is_small_however_much_is_set_and_sets_no_more_than_an_object_may_lack() {
    let served = served_disks(json!({}));
    let operations = |asked: &Asked| -> (Vec<Value>, Value) {
        let (mut answer, _) = response(Phase::Mutate, &served, asked);
        let patch: k8s_openapi::ByteString =
            serde_json::from_value(answer["patch"].take()).unwrap_or_default();
        (serde_json::from_slice(&patch.0).unwrap_or_default(), answer["warnings"].take())
    };
    let (few, warnings) = operations(&with_disks(1_000, json!({})));
    assert_eq!(
        (few.len(), &few[0]["path"], warnings),
        (1_000, &json!("/spec/value/disks/0/gb"), Value::Null)
    );
    let (one, _) = operations(&with_disks(1_001, json!({ "name": "a" })));
    assert_eq!(
        (one.len(), &one[0]["op"], &one[0]["path"]),
        (1, &json!("replace"), &json!("/spec/value/disks"))
    );
    assert_eq!(one[0]["value"][1_000], json!({ "name": "a", "gb": 1 }));
    let (none, warnings) = operations(&with_disks(10_001, json!({})));
    let expected = "defaults are set only in part: in an object at 10000 places at most";
    assert_eq!((none.len(), warnings), (0, json!([expected])));
}

#[test]
fn a_message_of_several_lines_reaches_its_author_as_a_warning() {
    let target =
        json!({ "group": "example.com", "version": "v1", "resource": "machines", "path": ".spec.value" });
    let declaration = json!({
        "targets": [target],
        "rules": [{ "rule": "false", "field": ".a", "message": "two\nlines\n" }],
        "defaults": [{ "path": ".tags[*].a", "value": "object.nothing" }],
    });
    let declaration = serde_json::from_value(declaration).expect("a declaration");
    let schema = Arc::new(Compiled::new(&declaration).expect("it compiles"));
    let schema = Served { schema, facts: json!({}), missing: Vec::new() };
    let asked = asked("CREATE", json!({ "tags": { "k\ney": {} } }), Value::Null);
    let (answer, _) = response(Phase::Validate, &schema, &asked);
    assert_eq!(answer["warnings"], json!(["spec.value.a: two lines"]));
    let (answer, _) = response(Phase::Mutate, &schema, &asked);
    let warning = answer["warnings"][0].as_str().expect("a warning");
    assert!(warning.starts_with("spec.value.tags[k ey].a: cannot compute its default"), "{warning}");
}

#[test]
fn numbers_are_those_that_the_api_server_stores() {
    let declaration = json!({
        "targets": [{
            "group": "example.com", "version": "v1", "resource": "machines", "path": ".spec.value",
        }],
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "count": {
            "type": "integer", "x-kubernetes-validations": [{ "rule": "self >= 0" }] } } } },
        "enforcement": "Deny",
    });
    let declaration = serde_json::from_value(declaration).expect("a declaration");
    let schema = Arc::new(Compiled::new(&declaration).expect("it compiles"));
    let schema = Served { schema, facts: json!({}), missing: Vec::new() };
    for (count, expected) in [
        ("1", Reviewed::Allowed),
        ("-0", Reviewed::Allowed),
        ("-0.0", Reviewed::Allowed),
        ("1e3", Reviewed::Allowed),
        ("-1", Reviewed::Denied),
        ("1.5", Reviewed::Denied),
    ] {
        let review = asked("CREATE", json!({ "count": 77 }), Value::Null).review.to_vec();
        let review = String::from_utf8(review).expect("JSON").replace("77", count);
        let asked = Asked::parse(review.as_bytes()).expect("a review");
        assert_eq!(response(Phase::Validate, &schema, &asked).1, expected, "{count}");
    }
}

#[test]
fn other_operations_resources_and_clusters_pass() {
    let schema = served(json!({ "id": "a" }));
    let pass = (json!({ "uid": "7", "allowed": true }), Reviewed::Allowed);
    let delete = asked("DELETE", Value::Null, json!({}));
    assert_eq!(response(Phase::Validate, &schema, &delete), pass);
    assert_eq!(response(Phase::Mutate, &schema, &delete), pass);
    let bad = asked("CREATE", json!({}), Value::Null);
    assert_eq!(response(Phase::Validate, &served(json!({ "id": "other" })), &bad), pass);
    let mut status = asked("UPDATE", json!({}), json!({ "count": 1 }));
    assert_eq!(response(Phase::Validate, &schema, &status).1, Reviewed::Denied);
    let mut inner = std::mem::take(&mut status.review).into_inner();
    inner["request"]["subResource"] = json!("status");
    let status = Asked::parse(inner.to_string().as_bytes()).expect("a review");
    assert_eq!(response(Phase::Validate, &schema, &status), pass);
    // What was wrong before is a warning.
    let touched = asked("UPDATE", json!({ "size": "l" }), json!({ "size": "m" }));
    assert_eq!(response(Phase::Validate, &schema, &touched).1, Reviewed::Warned);
}

#[test]
fn without_a_fact_a_schema_is_not_applied_and_that_is_said() {
    let schema = served(json!({}));
    let bad = asked("CREATE", json!({}), Value::Null);
    let (answer, reviewed) = response(Phase::Validate, &schema, &bad);
    assert_eq!(reviewed, Reviewed::Warned);
    assert_eq!(answer["warnings"], json!(["Etch does not apply EmbeddedSchema one: no value for id"]));
}

#[test]
fn what_is_no_review_is_refused_in_one_line() {
    let refused = |body: &str| Asked::parse(body.as_bytes()).expect_err("it is no review").to_string();
    assert_eq!(refused("{"), "the body is not JSON");
    assert_eq!(refused("[]"), "the body is not an AdmissionReview of admission.k8s.io/v1");
    let head = r#""apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview""#;
    assert_eq!(refused(&format!("{{{head}}}")), "request is missing or has another type");
    let request = r#"{"uid":"1","operation":"CREATE","resource":{"version":"v1","resource":"x"}}"#;
    assert_eq!(
        refused(&format!(r#"{{{head},"request":{request}}}"#)),
        "request.object is missing or has another type"
    );
    let too_deep = "is nested more than 1000 levels deep, and Etch does not review it; make it flatter";
    let deep = format!(r#"{{{head},"request":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(refused(&deep), format!("the object {too_deep}"));
    let about = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        let request = r#""uid":"1","operation":"CREATE","resource":{"version":"v1","resource":"x"}"#;
        let named = r#""kind":{"kind":"Thing"},"namespace":"ns","name":"n""#;
        format!(r#"{{{head},"request":{{{request},{named},"object":{{"a":{open}{close}}}}}}}"#)
    };
    assert!(Asked::parse(about(DEPTH).as_bytes()).is_ok());
    assert_eq!(refused(&about(DEPTH + 1)), format!("Thing ns/n {too_deep}"));
}
