//! The server's own answers, and findings that only this crate has.

mod judged_defaults;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{DefaultFindings, ObjectFindings, Validator, default, defaults};
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults::read;
use kube_structural_schema::finding::{Finding, Kind, Refused};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;
use kube_structural_schema::schema::Schema;

/// Random schemas and objects with the answers of apiextensions-apiserver v0.37.2: `defaults` is its
/// `ValidateDefaults`, `validate` the answer of its custom resource strategy to the object as it is read,
/// rules only if all else is valid. No two of them are there for the same reason.
const SERVER: &str = include_str!("vectors.jsonl");

fn schema(document: &Value) -> Schema {
    Schema::parse(document).expect("an accepted schema")
}

fn check(document: &Value, object: &Value) -> ObjectFindings {
    Validator::new(&schema(document)).object(object)
}

/// Findings as `Kind field: detail`.
fn shown<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Vec<String> {
    findings
        .into_iter()
        .map(|Finding { kind, field, detail, .. }| format!("{kind:?} {field}: {detail}"))
        .collect()
}

fn kind(name: &str) -> Kind {
    use Kind::*;
    let all =
        [Required, Duplicate, Invalid, NotSupported, Forbidden, TooLong, TooMany, TypeInvalid, Internal];
    all.into_iter().find(|kind| kind.as_str() == name).expect("a kind of the server's")
}

#[test]
fn agrees_with_the_server() {
    let mut wrong = String::new();
    for line in SERVER.lines() {
        let vector = Json::parse(line.as_bytes()).expect("a vector is JSON");
        let schema = schema(&vector["schema"]);
        let errors = vector["expect"]["errors"].as_array().expect("a list");
        let expected: BTreeSet<(Kind, &str)> = errors
            .iter()
            .map(|error| {
                (kind(error["type"].as_str().expect("a type")), error["field"].as_str().expect("a field"))
            })
            .collect();
        let agrees = if vector["op"] == "defaults" {
            defaults(&schema).may_be(&expected)
        } else {
            let mut object = Json::from(vector["object"].clone());
            read(&mut object, &schema, &Compiled::new(&schema), &mut |_| {}).expect("readable");
            let ObjectFindings { values, rules, .. } = Validator::new(&schema).object(&object);
            let found = if values.is_empty() { rules } else { values };
            found.iter().map(|finding| (finding.kind, &*finding.field)).collect::<BTreeSet<_>>() == expected
        };
        if !agrees {
            let _ = write!(wrong, "\n{}", vector["id"]);
        }
    }
    assert_eq!(wrong, "");
}

#[test]
fn details_are_the_servers() {
    let document = json!({"type": "object", "properties": {
        "count": {"type": "integer", "minimum": 1, "multipleOf": 2},
        "name": {"type": "string", "pattern": "^a+$", "maxLength": 3},
        "mode": {"type": "string", "enum": ["A", "b c"]},
        "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "when": {"type": "string", "format": "date-time"},
        "tags": {
            "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "maxItems": 1,
        },
    }, "required": ["gone"]});
    let object =
        json!({"count": -1, "name": "b", "mode": "x", "port": {}, "when": "noon", "tags": ["t", "t"]});
    let found = check(&document, &object);
    let mut found = shown(found.iter());
    found.sort();
    assert_eq!(
        found,
        [
            "Duplicate tags[1]: ",
            "Invalid <nil>: \"port\" must validate at least one schema (anyOf)",
            "Invalid count: count in body should be a multiple of 2",
            "Invalid count: count in body should be greater than or equal to 1",
            "Invalid name: name in body should match '^a+$'",
            "NotSupported mode: supported values: \"A\", \"b c\"",
            "Required gone: ",
            "TooMany tags: must have at most 1 item",
            "TypeInvalid port: port in body must be of type integer,string: \"object\"",
            "TypeInvalid port: port in body must be of type integer: \"object\"",
            "TypeInvalid when: when in body must be of type date-time: \"noon\"",
        ]
    );
}

#[test]
fn a_pattern_that_go_refuses_fails_every_text() {
    let document = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "["}}});
    assert_eq!(
        shown(check(&document, &json!({"a": ""})).iter()),
        ["Invalid a: a in body should match '[, but pattern is invalid: error parsing regexp: missing \
             closing ]: `[`'"]
    );
}

#[test]
fn a_pattern_that_is_too_large_is_not_passed_over() {
    let pattern = r"\pL{1000}".repeat(3);
    let document = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
    let found = check(&document, &json!({"a": ""}));
    assert!(matches!(found.values.as_slice(), [Finding { kind: Kind::Internal, .. }]), "{found:?}");
}

#[test]
fn rules_are_skipped_where_the_server_skips_them() {
    let document = json!({
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 5}, "b": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "has(self.b)", "message": "b is needed"}],
    });
    let out_of_range = check(&document, &json!({"a": 1}));
    assert!(!out_of_range.rules_skipped);
    assert_eq!(shown(&out_of_range.rules), ["Invalid <nil>: b is needed"]);
    let wrong_type = check(&document, &json!({"a": "1"}));
    assert!(wrong_type.rules_skipped);
    assert_eq!(shown(&wrong_type.rules), [""; 0]);
    assert!(check(&document, &json!({"a": 5, "b": ""})).is_empty());
}

#[test]
fn one_of_several_misfits_is_reported_and_all_are_named() {
    let found = defaults(&schema(&json!({"type": "object", "properties": {"a": {
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
        "default": {"apiVersion": 1, "kind": "Kind", "metadata": {"labels": {"a": 1}}},
    }}})));
    let place = "openAPIV3Schema.properties[a].default";
    let fields =
        |findings: &[Finding]| findings.iter().map(|finding| finding.field.clone()).collect::<Vec<_>>();
    assert_eq!(fields(&found.by_server), [format!("{place}.apiVersion")]);
    assert_eq!(fields(&found.either[0]), [format!("{place}.apiVersion"), format!("{place}.metadata")]);
    let answer = |field: &str| found.may_be(&BTreeSet::from([(Kind::Invalid, field)]));
    assert!(answer(&format!("{place}.apiVersion")));
    assert!(answer(&format!("{place}.metadata")));
    assert!(!answer(&format!("{place}.kind")));
    assert!(!found.may_be(&BTreeSet::new()));
}

/// `json!` copies what it is given, level by level.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect())
}

#[test]
fn nine_hundred_levels_are_checked() {
    let mut document = json!({"type": "integer", "maximum": 1, "default": 2});
    let mut instance = json!([2, 2]);
    document =
        object([("type", "array".into()), ("x-kubernetes-list-type", "set".into()), ("items", document)]);
    for _ in 0..900 {
        document = object([
            ("type", "object".into()),
            ("additionalProperties", document),
            ("anyOf", json!([{"minProperties": 1}])),
        ]);
        instance = object([("a", instance)]);
    }
    let (document, instance) = (Json::from(document), Json::from(instance));
    let schema = schema(&document);
    let found = Validator::new(&schema).object(&instance);
    let kinds: Vec<Kind> = found.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [Kind::Invalid, Kind::Invalid, Kind::Duplicate]);
    assert_eq!(defaults(&schema).beyond_server.len(), 1);
}

#[test]
fn what_the_schema_asks_for_is_told_without_values() {
    const CANARY: &str = "canary";
    let document = json!({ "type": "object", "properties": {
        "format": { "type": "string", "format": "date" },
        "pattern": { "type": "string", "pattern": "^x$" },
        "long": { "type": "string", "maxLength": 3 },
        "enum": { "type": "string", "enum": ["x"] },
        "type": { "type": "integer" },
        "map": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
        "not": {
            "type": "object", "not": { "required": ["a"] }, "properties": { "a": { "type": "string" } },
        },
    } });
    let whole = json!({ "type": "object", "properties": { "spec": document } });
    let spec = json!({
        "format": CANARY, "pattern": CANARY, "long": CANARY, "enum": CANARY, "type": CANARY,
        "map": [CANARY, CANARY], "not": { "a": CANARY },
    });
    let found = check(&whole, &json!({ "spec": spec }));
    assert_eq!(found.values.len(), 7, "{found:?}");
    let ruled = json!({ "type": "object", "properties": { "text": { "type": "string" } },
        "x-kubernetes-validations": [
        { "rule": "self.text == ''", "messageExpression": "self.text" },
        { "rule": "int(self.text) > 0", "message": "text is a number" },
        { "rule": "self.text.size() < 3", "message": "text is short" },
    ] });
    let ruled = check(&ruled, &json!({ "text": CANARY }));
    assert!(
        found.iter().chain(ruled.iter()).any(|finding| finding.detail.contains(CANARY)),
        "the server's words may"
    );
    for finding in found.iter().chain(ruled.iter()) {
        assert!(!finding.requirement().contains(CANARY) && !finding.requirement().is_empty(), "{finding:?}");
    }
    let rules: Vec<_> = ruled.rules.iter().map(Finding::requirement).collect();
    assert_eq!(rules, ["self.text == ''", "a rule cannot be evaluated: text is a number", "text is short"]);
}

#[test]
fn a_number_out_of_range_is_asked_for_by_its_format() {
    let integer =
        |format: &str| json!({"type": "object", "properties": {"a": {"type": "integer", "format": format}}});
    let asked = |format: &str, value: Value| -> Vec<String> {
        let found = check(&integer(format), &json!({"a": value}));
        found.values.iter().map(|finding| finding.requirement().to_owned()).collect()
    };
    assert_eq!(asked("int32", json!(3_000_000_000_i64)), ["it must be in the range of the format int32"]);
    assert_eq!(asked("", json!(1.5)), ["it must be of type integer"; 2]);
}

#[test]
fn updates_are_refused_by_the_value_whose_schema_is_violated() {
    let document = json!({ "type": "object", "required": ["gone", "a.b"], "minProperties": 9,
        "properties": {
            "o": {
                "type": "object", "required": ["x.y"], "properties": {
                    "n": { "type": "integer", "maximum": 1 },
                },
            },
            "l": { "type": "array", "items": { "type": "object", "required": ["x"] } },
        } });
    let found = check(&document, &json!({ "o": { "n": 2 }, "l": [{}] }));
    let mut found: Vec<_> =
        found.iter().map(|finding| (finding.place(), finding.refused, finding.judged.as_deref())).collect();
    found.sort();
    assert_eq!(
        found,
        [
            ("<nil>", Refused::Always, None),
            ("a.b", Refused::Always, None),
            ("gone", Refused::Always, None),
            ("l[0].x", Refused::Changes, Some("l[0]")),
            ("o.n", Refused::Changes, None),
            ("o.x.y", Refused::Changes, Some("o")),
        ]
    );
}

/// As a server of 1.37 answered: it lets a label be set where the values alone are wrong.
#[test]
fn rules_are_run_over_an_object_that_exists_whatever_its_values_are() {
    let refused = |spec: Value, more: &Value| {
        let mut document = json!({ "type": "object", "properties": {
            "a": { "type": "string" }, "m": { "type": "string", "enum": ["1"] },
            "n": { "type": "integer" } } });
        document.as_object_mut().expect("a schema").extend(more.as_object().expect("keywords").clone());
        let document = json!({ "type": "object", "properties": { "spec": document } });
        let schema = schema(&document);
        let found = Validator::new(&schema).existing(&json!({ "spec": spec }));
        assert!(found.rules_skipped);
        found.rules.iter().map(|finding| (finding.field.clone(), finding.refused)).collect::<Vec<_>>()
    };
    let with = |rule: &str| json!({ "required": ["r"], "x-kubernetes-validations": [{ "rule": rule }] });
    let spec = |refused: Refused| vec![("spec".to_owned(), refused)];
    assert_eq!(refused(json!({ "n": 1 }), &with("self.n > 5")), spec(Refused::Changes));
    assert_eq!(refused(json!({ "n": 1 }), &with("self.n > oldSelf.n")), spec(Refused::EveryUpdate));
    assert_eq!(refused(json!({ "a": 1 }), &with("self.a.size() < 5")), spec(Refused::Always));
    assert_eq!(refused(json!({ "m": "z" }), &with("int(self.m) > 5")), spec(Refused::Always));
    assert_eq!(refused(json!({ "n": 9 }), &with("self.n > 5")), []);
}

#[test]
fn an_object_that_exists_may_be_one_that_no_update_leaves_alone() {
    let rules = json!([
        { "rule": "self.a > oldSelf.a" },
        { "rule": "self.a == oldSelf.a" },
        { "rule": "oldSelf.hasValue() ? self.a > oldSelf.value().a : self.a > 7", "optionalOldSelf": true },
        { "rule": "oldSelf.hasValue() ? true : self.a > 7", "optionalOldSelf": true },
        { "rule": "self.a > 7" },
    ]);
    let document = json!({ "type": "object", "properties": { "spec": { "type": "object",
        "properties": { "a": { "type": "integer" } }, "x-kubernetes-validations": rules } } });
    let schema = schema(&document);
    let validator = Validator::new(&schema);
    let object = json!({ "spec": { "a": 5 } });
    let refused = |found: &ObjectFindings| {
        let found = found.iter().map(|finding| (finding.requirement().to_owned(), finding.refused));
        found.collect::<Vec<_>>()
    };
    let expected =
        |index: usize, refused: Refused| (rules[index]["rule"].as_str().expect("a rule").to_owned(), refused);
    assert_eq!(
        refused(&validator.object(&object)),
        [expected(2, Refused::Changes), expected(3, Refused::Changes), expected(4, Refused::Changes)]
    );
    assert_eq!(
        refused(&validator.existing(&object)),
        [
            expected(2, Refused::Always),
            expected(3, Refused::Changes),
            expected(4, Refused::Changes),
            expected(0, Refused::EveryUpdate),
        ]
    );
}
