use serde_json::json;

use super::*;
use crate::domain::path::Trail;

fn document(schemas: Value) -> Document {
    let mut schemas = schemas;
    schemas["Root"]["x-kubernetes-group-version-kind"] =
        json!([{"group": "g", "version": "v1", "kind": "Root"}]);
    Document::read(json!({"openapi": "3.0.0", "components": {"schemas": schemas}}).into())
        .expect("a document")
}

fn root() -> TypeName {
    TypeName { api_version: "g/v1".to_owned(), kind: "Root".to_owned() }
}

fn filled(schemas: Value, mut object: Value) -> Result<(Value, Vec<String>), OpenApiError> {
    let mut dropped = Vec::new();
    let mut report = |at: &Trail<'_>| dropped.push(at.to_path().to_string());
    assert!(document(schemas).fill(&mut object, &root(), &mut report)?);
    Ok((object, dropped))
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

#[test]
fn references_are_followed_and_the_default_beside_them_counts() {
    let schemas = json!({
        "Root": {"type": "object", "properties": {
            "spec": {"allOf": [reference("Spec")], "default": {}, "description": "…"},
            "plain": reference("Spec"),
            "list": {"type": "array", "items": {"allOf": [reference("Spec")], "default": {}}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
        }},
        "Spec": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}, "b": {"type": "string"}}},
    });
    let object = json!({"list": [{}, null, {"a": null, "b": null}], "map": {"x": null, "y": "z"}});
    let (object, dropped) = filled(schemas, object).expect("a sound document");
    let expected = json!({
        "spec": {"a": 1}, "list": [{"a": 1}, {"a": 1}, {"a": 1}], "map": {"x": "", "y": "z"},
    });
    assert_eq!((object, dropped.len()), (expected, 0));
}

#[test]
fn unknown_fields_are_dropped_where_fields_are_known() {
    let schemas = json!({"Root": {"type": "object", "properties": {
        "raw": {"type": "object"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"default": 1}}},
        "known": {"type": "object", "nullable": true, "properties": {"a": {"type": "integer"}}},
    }}});
    let object =
        json!({"raw": {"x": {"y": null}}, "open": {"x": null}, "known": {"a": 1, "x": 2}, "other": 1});
    let (object, dropped) = filled(schemas.clone(), object).expect("a sound document");
    assert_eq!(object, json!({"raw": {"x": {"y": null}}, "open": {"x": null, "a": 1}, "known": {"a": 1}}));
    assert_eq!(dropped, [".other", ".known.x"]);
    assert_eq!(
        filled(schemas, json!({"known": null, "open": null})).expect("sound").0,
        json!({"known": null})
    );
}

#[test]
fn types_that_contain_themselves_are_read_as_far_as_the_object_goes() {
    let schemas = json!({
        "Root": {"type": "object", "properties": {"tree": reference("Tree")}},
        "Tree": {"type": "object", "properties": {"n": {"type": "integer", "default": 0}, "below": reference("Tree")}},
    });
    let (object, _) = filled(schemas, json!({"tree": {"below": {"below": {}}}})).expect("a sound document");
    assert_eq!(object, json!({"tree": {"n": 0, "below": {"n": 0, "below": {"n": 0}}}}));
}

#[test]
fn broken_documents_are_told() {
    let root_with = |property: Value, more: Value| {
        let mut schemas = json!({"Root": {"type": "object", "properties": {"a": property}}});
        schemas["More"] = more;
        filled(schemas, json!({"a": {}})).expect_err("broken").to_string()
    };
    assert!(root_with(reference("None"), Value::Null).contains("leads nowhere"));
    assert!(root_with(reference("More"), reference("More")).contains("leads back to itself"));
    let endless = json!({"properties": {"b": {"allOf": [reference("More")], "default": {}}}});
    assert!(root_with(reference("More"), endless).contains("without end"));
    for (document, hint) in [
        (json!({"swagger": "2.0"}), "OpenAPI v2"),
        (json!({"paths": {"api/v1": {}}}), "lists other documents"),
        (json!({"kind": "Deployment"}), "no OpenAPI v3"),
        (json!({"openapi": "3.0.0"}), "components.schemas"),
    ] {
        let error = Document::read(document.into()).expect_err("no document").to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn a_type_that_is_not_described_is_left_alone() {
    let mut object = json!({"x": null});
    let other = TypeName { api_version: "v1".to_owned(), kind: "Root".to_owned() };
    let known = document(json!({"Root": {}})).fill(&mut object, &other, &mut |_| {});
    assert_eq!((known, object), (Ok(false), json!({"x": null})));
}
