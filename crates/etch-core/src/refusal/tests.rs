use super::*;

fn refusal(code: u16, message: &str) -> Refusal {
    let body = serde_json::json!({ "kind": "Status", "reason": "Forbidden", "message": message });
    Refusal::read(code, None, body.to_string().as_bytes())
}

#[test]
fn names_who_refused_and_quotes_nothing_else() {
    let refused = refusal(
        422,
        "crontabs.stable.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding \
         'freeze' denied request: the value hunter2 is frozen",
    );
    assert_eq!(refused.to_string(), "422 Forbidden by ValidatingAdmissionPolicy freeze");
    for refused in [
        "policy 'sizes' with binding 'all' denied request: hunter2 cannot be set",
        "policy \"sizes\" denied request: failed to configure policy: hunter2",
    ] {
        let refused = refusal(403, refused).to_string();
        assert_eq!(refused, "403 Forbidden by MutatingAdmissionPolicy sizes");
    }
    let refused = refusal(400, "admission webhook \"v.example.com\" denied the request: hunter2");
    assert_eq!(refused.to_string(), "400 Forbidden by webhook v.example.com");
    let refused =
        Refusal::read(401, None, br#"{"kind":"Status","reason":"Unauthorized","message":"hunter2"}"#);
    assert_eq!(refused.to_string(), "401 Unauthorized (the credentials are wrong or have expired)");
}

#[test]
fn tells_a_missing_permission_from_a_refusing_webhook() {
    let message = "crontabs.stable.example.com \"a\" is forbidden: User \
        \"system:serviceaccount:etch-system:etch\" cannot create resource \"crontabs\" in API group \
        \"stable.example.com\" in the namespace \"x\"";
    assert_eq!(refusal(403, message).lacking_verb(), Some("create"));
    assert_eq!(
        refusal(403, message).to_string(),
        "403 Forbidden (no permission to create crontabs.stable.example.com)"
    );
    let message = "forbidden: User \"system:anonymous\" cannot get path \"/apis\"";
    assert_eq!(refusal(403, message).to_string(), "403 Forbidden (no permission to get /apis)");
    assert_eq!(
        refusal(403, "admission webhook \"w\" denied the request: you cannot pass").lacking_verb(),
        None
    );
}

#[test]
fn a_violation_is_no_failed_operation_of_a_patch_wherever_it_is() {
    let of = |details: serde_json::Value| {
        let body = serde_json::json!({ "kind": "Status", "details": details, "code": 422 });
        Refusal::read(422, None, body.to_string().as_bytes()).is_failed_operation()
    };
    for field in ["spec.size", "<nil>", "spec.hosts[a key with spaces]"] {
        let causes = [serde_json::json!({ "reason": "FieldValueInvalid", "message": "no", "field": field })];
        assert!(!of(serde_json::json!({ "causes": causes })), "{field}");
    }
    assert!(of(serde_json::json!({})) && of(serde_json::json!({ "causes": null })));
}

#[test]
fn shows_fields_once_the_schema_says_which_of_their_names_are_keys() {
    let body = serde_json::json!({ "reason": "Invalid", "details": { "causes": [
        { "field": "spec.hosts.secret" }, { "field": "spec.hosts.other" }, { "field": "spec.size" },
    ]}});
    let refused = Refusal::read(422, None, body.to_string().as_bytes());
    assert_eq!(refused.to_string(), "422 Invalid");
    let schema = serde_json::json!({ "type": "object",
        "properties": { "spec": { "type": "object", "properties": {
        "hosts": { "type": "object", "additionalProperties": { "type": "string" } }, "size": {
            "type": "integer",
        },
    }}}});
    let schema = Schema::parse(&schema).expect("a schema");
    assert_eq!(refused.without_keys(&schema).to_string(), r#"422 Invalid at .spec.hosts["*"], .spec.size"#);
}

#[test]
fn names_why_a_conversion_webhook_was_not_called_and_quotes_no_answer_of_it() {
    let of = |cause: &str| {
        let text =
            "storage is (re)initializing: conversion webhook for c.example.com/v1beta1, Kind=Conv failed: ";
        Refusal::read(429, None, format!("{text}{cause}").as_bytes()).to_string()
    };
    let post = r#"Post "https://hook.web.svc:443/convert?timeout=30s": "#;
    for (cause, expected) in [
        (format!("{post}dial tcp 127.0.0.1:1: connect: connection refused"), "failed: connection refused"),
        (format!("{post}context deadline exceeded"), "failed: no answer in time"),
        (format!("{post}service \"hook\" not found"), "failed: its Service does not exist"),
        (
            format!("{post}x509: certificate signed by unknown authority"),
            "failed: its certificate is not accepted",
        ),
        (format!("{post}hunter2"), "failed"),
        ("hunter2: connect: connection refused".to_owned(), "failed"),
    ] {
        assert_eq!(of(&cause), format!("429 (the conversion webhook {expected})"));
    }
}

#[test]
fn names_the_key_of_a_value_that_cannot_be_decoded_and_shows_it_to_no_log() {
    let key = "StorageError: corrupt object, Code: 7, Key: /registry/k.example.com/corrs/default/a, \
        ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=234: invalid character 'h', \
        hunter2";
    let of = |code: u16, message: &str, reason: &str| {
        let body = serde_json::json!({ "kind": "Status", "reason": reason, "message": message });
        Refusal::read(code, None, body.to_string().as_bytes())
    };
    let listed =
        of(500, &format!("failed to read one or more corrs from the storage: {key}"), "StorageReadError");
    assert_eq!(
        listed.to_string(),
        "500 StorageReadError (etcd holds a value that the API server cannot decode)"
    );
    assert_eq!(listed.undecodable_key(), Some("/registry/k.example.com/corrs/default/a"));
    let named = of(500, &format!("Internal error occurred: {key}"), "InternalError");
    assert!(named.is_of_undecodable_value() && named.undecodable_key().is_some());
    let quoted = of(500, &format!("admission webhook \"w\" denied the request: {key}"), "InternalError");
    assert!(!quoted.is_of_undecodable_value() && quoted.undecodable_key().is_none());
    let odd = of(500, &key.replace("/default/a", "/default/a hunter2"), "InternalError");
    assert!(odd.is_of_undecodable_value() && odd.undecodable_key().is_none());
    let lost = of(500, "request to convert CR from an invalid group/version: k.example.com/v0", "");
    assert_eq!(lost.to_string(), "500 (etcd holds objects at a version that the CRD no longer has)");
}

#[test]
fn a_request_without_tls_to_a_port_with_it_is_named() {
    let refused = Refusal::read(400, None, b"Client sent an HTTP request to an HTTPS server.\n");
    assert_eq!(
        refused.to_string(),
        "400 (the server expects TLS: in the kubeconfig, begin its URL with https://)"
    );
}

#[test]
fn reads_answers_that_are_no_status() {
    let refused =
        Refusal::read(429, Some(Duration::from_secs(1)), b"Too many requests, please try again later.\n");
    assert_eq!((refused.code, refused.reason.as_str()), (429, ""));
    assert_eq!(refused.to_string(), "429");
}

#[test]
fn a_server_names_the_oldest_resource_version_that_it_remembers() {
    assert_eq!(refusal(410, "too old resource version: 1 (361)").oldest_remembered(), Some(361));
    for other in
        ["The resourceVersion for the provided watch is too old.", "too old resource version: 1", "(7)"]
    {
        assert_eq!(refusal(410, other).oldest_remembered(), None, "{other}");
    }
}
