//! What decoding a schema keeps, tolerates and refuses.

use serde_json::{Value, json};

use super::{Additional, ParseError, Schema, SchemaType};
use crate::domain::json::Json;

fn parse(document: &Value) -> Schema {
    Schema::parse(document).expect("a schema")
}

#[test]
fn keeps_structure_and_restrictions_at_every_place() {
    let schema = parse(&json!({
        "type": "object",
        "description": "",
        "x-unknown": 1,
        "properties": {
            "list": {"type": "array", "nullable": true, "default": [1], "items": {"type": "integer", "maximum": 3}},
            "map": {"additionalProperties": {"x-kubernetes-int-or-string": true}},
            "free": {"additionalProperties": false, "anyOf": [{"properties": {"a": {"minLength": 2}}}]},
        },
    }));
    assert_eq!(schema.kind, SchemaType::Object);
    assert!(!schema.described && !schema.adorned);
    let list = schema.child("list").expect("declared");
    assert!(list.nullable && list.adorned);
    assert_eq!(list.default.as_deref(), Some(&json!([1])));
    let item = list.items.as_ref().expect("items");
    assert_eq!(item.constraints.as_ref().and_then(|constraints| constraints.maximum), Some(3.0));
    let map = schema.child("map").expect("declared");
    assert!(map.child("any").is_some_and(|value| value.int_or_string));
    let free = schema.child("free").expect("declared");
    assert!(matches!(free.additional, Some(Additional::Bool(false))));
    let clause = &free.constraints.as_ref().expect("restricted").any_of[0];
    let inner = clause.child("a").expect("declared in the clause");
    assert_eq!(inner.constraints.as_ref().and_then(|constraints| constraints.min_length), Some(2));
}

#[test]
fn null_means_unset() {
    let schema = parse(&json!({
        "type": null, "default": null, "items": null, "properties": {"a": null}, "additionalProperties": null,
        "enum": null, "$ref": null, "additionalItems": null, "x-kubernetes-preserve-unknown-fields": null,
    }));
    assert!(schema.default.is_none() && schema.additional.is_none() && schema.constraints.is_none());
    assert!(schema.child("a").is_some_and(|a| !a.adorned));
    let schema = parse(&json!({"enum": [null], "required": [null], "allOf": [null]}));
    let constraints = schema.constraints.as_ref().expect("restricted");
    assert_eq!(*constraints.allowed[0], Value::Null);
    assert_eq!(constraints.required[0], "");
    assert_eq!(constraints.all_of.len(), 1);
}

#[test]
fn odd_items_are_none() {
    for odd in [json!(true), json!("x"), json!(3), json!([])] {
        assert!(parse(&json!({"items": odd})).items.is_none());
    }
}

#[test]
fn an_empty_list_adorns_and_an_empty_value_does_not() {
    for (document, adorned) in [
        (json!({"required": []}), true),
        (json!({"x-kubernetes-validations": []}), true),
        (json!({"x-kubernetes-list-type": ""}), true),
        (json!({"externalDocs": {}}), true),
        (json!({"additionalProperties": false}), true),
        (json!({"minimum": 0}), true),
        (json!({"enum": [], "allOf": [], "title": "", "nullable": false, "properties": {}}), false),
        (json!({"type": "object", "default": {}, "properties": {"a": {}}, "id": ""}), false),
    ] {
        assert_eq!(parse(&document).adorned, adorned, "{document}");
    }
    let nested = parse(&json!({"not": {"properties": {}}, "allOf": [{"additionalProperties": false}]}));
    let constraints = nested.constraints.as_ref().expect("restricted");
    assert!(constraints.not.as_ref().is_some_and(|not| not.adorned));
    assert!(!constraints.all_of[0].adorned);
}

#[test]
fn refuses_what_the_server_refuses_and_says_where() {
    let at_item = |keyword: Value| json!({"properties": {"a": {"items": keyword}}});
    for (keyword, error) in [
        (json!({"type": ["string"]}), "openAPIV3Schema.properties[a].items.type: must be a string"),
        (
            json!({"maxLength": 1.5}),
            "openAPIV3Schema.properties[a].items.maxLength: must be a 64-bit integer",
        ),
        (json!({"enum": 1}), "openAPIV3Schema.properties[a].items.enum: must be a list"),
        (json!({"allOf": [1]}), "openAPIV3Schema.properties[a].items.allOf[0]: must be a schema"),
        (
            json!({"additionalProperties": "yes"}),
            "openAPIV3Schema.properties[a].items.additionalProperties: must be a boolean or a schema",
        ),
        (
            json!({"$ref": "#/x"}),
            "openAPIV3Schema.properties[a].items: OpenAPIV3Schema '$ref' is not supported",
        ),
        (
            json!({"$schema": "x"}),
            "openAPIV3Schema.properties[a].items: OpenAPIV3Schema 'schema' is not supported",
        ),
        (
            json!({"additionalItems": false}),
            "openAPIV3Schema.properties[a].items: OpenAPIV3Schema 'additionalItems' is not supported",
        ),
        (
            json!({"items": [{}]}),
            "openAPIV3Schema.properties[a].items: OpenAPIV3Schema 'items' must be a schema, but is an array",
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": false}),
            "openAPIV3Schema.properties[a].items: internal error: 'x-kubernetes-preserve-unknown-fields' must be true \
             or undefined",
        ),
    ] {
        let refused = Schema::parse(&at_item(keyword.clone())).expect_err("refused");
        assert_eq!(refused.to_string(), error, "{keyword}");
    }
    for empty in [
        json!({"id": "", "definitions": {}, "patternProperties": {}, "dependencies": {}}),
        json!({"$ref": ""}),
    ] {
        assert!(Schema::parse(&at_item(empty)).is_ok());
    }
    assert!(matches!(
        Schema::parse(&json!({"externalDocs": {"url": 1}})),
        Err(ParseError::Malformed { place, .. }) if place == "openAPIV3Schema.externalDocs.url"
    ));
}

#[test]
fn integers_beyond_int64_become_floats() {
    let schema = parse(&json!({"default": {"a": [u64::MAX, i64::MAX]}}));
    assert_eq!(schema.default.as_deref(), Some(&json!({"a": [u64::MAX as f64, i64::MAX]})));
}

#[test]
fn nine_thousand_levels_are_read_and_dropped() {
    let levels = 9_000;
    let text =
        format!("{}{}", r#"{"properties":{"a":{"items":"#.repeat(levels / 2), "}}}".repeat(levels / 2))
            .replacen(r#""items":}"#, r#""items":null}"#, 1);
    let clauses = format!("{}{}{}", r#"{"not":"#.repeat(levels), "{}", "}".repeat(levels));
    for text in [text, clauses] {
        let document = Json::parse(text.as_bytes()).expect("well-formed");
        drop(parse(&document));
    }
}
