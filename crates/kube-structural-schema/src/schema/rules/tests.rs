//! `cases.json`: schemas and the lines that apiextensions-apiserver v0.37.2 writes about them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::crd::{Verdict, judge};
use super::{structural_errors, violations};
use crate::json::{DEPTH, Json};
use crate::schema::Schema;

#[derive(Deserialize)]
struct Case {
    name: String,
    schema: Value,
    violations: Vec<String>,
}

#[test]
fn says_what_the_server_says() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("cases.json")).expect("well-formed cases");
    for Case { name, schema, violations: expected } in cases {
        let schema = Schema::parse(&schema).expect("a schema");
        let texts: Vec<_> =
            violations(&schema, "openAPIV3Schema").into_iter().map(|found| found.text).collect();
        assert_eq!(texts, expected, "{name}");
    }
}

fn crd(schemas: &[Value]) -> Value {
    let versions: Vec<_> = schemas
        .iter()
        .enumerate()
        .map(|(index, schema)| json!({"name": format!("v{index}"), "schema": {"openAPIV3Schema": schema}}))
        .collect();
    json!({"preserveUnknownFields": false, "versions": versions})
}

#[test]
fn judges_all_versions_of_a_crd() {
    let good = json!({"type": "object"});
    assert_eq!(judge(&crd(&[good.clone(), good.clone(), Value::Null])), Verdict::Structural);
    assert_eq!(judge(&json!({"versions": [{"name": "v1"}]})), Verdict::Structural);
    assert_eq!(judge(&json!({})).message(), None);

    let mut two = crd(&[good, json!({"type": "string"})]);
    assert_eq!(
        judge(&two).message().as_deref(),
        Some(
            "spec.versions[1].schema.openAPIV3Schema.type: Invalid value: \"string\": must be object at the \
             root"
        )
    );
    two["preserveUnknownFields"] = json!(true);
    assert_eq!(
        judge(&two).message().as_deref(),
        Some(
            "[spec.preserveUnknownFields: Invalid value: true: must be false, \
             spec.versions[1].schema.openAPIV3Schema.type: Invalid value: \"string\": must be object at the \
             root]"
        )
    );
}

#[test]
fn an_unreadable_version_hides_the_violations_of_the_others() {
    let unreadable = crd(&[json!({"type": "string"}), json!({"properties": {"a": {"$ref": "x"}}})]);
    let verdict = judge(&unreadable);
    assert_eq!(
        verdict.message().as_deref(),
        Some("failed to check validation schema for version v1: OpenAPIV3Schema '$ref' is not supported")
    );
    let Verdict::Unreadable { error, .. } = verdict else { panic!("unreadable") };
    assert_eq!(error.to_string(), "openAPIV3Schema.properties[a]: OpenAPIV3Schema '$ref' is not supported");
}

#[test]
fn a_thousand_levels_are_judged() {
    for (open, innermost) in [
        (r#"{"type":"object","properties":{"a":"#, r#"{"type":"array"}"#),
        (r#"{"not":{"properties":{"a":"#, r#"{"type":"array"}"#),
    ] {
        let levels = open.matches('{').count();
        let times = (DEPTH - 1) / levels;
        let text = format!("{}{innermost}{}", open.repeat(times), "}".repeat(levels * times));
        let schema = Schema::parse(&Json::parse(text.as_bytes()).expect("well-formed")).expect("a schema");
        assert!(!structural_errors(&schema).is_empty());
    }
}
