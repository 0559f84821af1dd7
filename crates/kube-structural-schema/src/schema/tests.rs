//! What decoding a schema keeps, tolerates and refuses.

use serde_json::{Value, json};

use super::{Additional, ParseError, Rule, Schema, SchemaType};
use crate::json::{DEPTH, Json};
use crate::path::Step;
use crate::prune::keeps;

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
            "list": {
                "type": "array", "nullable": true, "default": [1], "items": {"type": "integer", "maximum": 3},
            },
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
fn every_keyword_has_its_field() {
    let schema = parse(&json!({
        "type": "array", "title": "t", "description": "d", "nullable": true, "default": 1,
        "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true,
        "x-kubernetes-int-or-string": true, "x-kubernetes-list-type": "map",
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-list-map-keys": ["a", null], "x-kubernetes-validations": [null, {
            "rule": "r", "message": "m", "messageExpression": "e", "reason": "FieldValueInvalid",
            "fieldPath": ".a",
            "optionalOldSelf": false, "unknown": 1,
        }],
        "format": "f", "pattern": "p", "maximum": 1, "exclusiveMaximum": true, "minimum": -2.5,
        "exclusiveMinimum": true,
        "multipleOf": 3, "maxLength": 4, "minLength": 5, "maxItems": 6, "minItems": 7, "uniqueItems": true,
        "maxProperties": 8, "minProperties": 9, "enum": [1, null], "required": ["a"],
        "allOf": [{"title": "all"}], "anyOf": [{}, {}], "oneOf": [{}, {}, {}], "not": {"nullable": true},
    }));
    assert!(schema.kind == SchemaType::Array && schema.titled && schema.described && schema.nullable);
    assert!(
        schema.preserve_unknown_fields && schema.embedded_resource && schema.int_or_string && schema.adorned
    );
    assert_eq!((schema.list_type.as_deref(), schema.map_type.as_deref()), (Some("map"), Some("atomic")));
    assert_eq!(*schema.list_map_keys, ["a", ""]);
    let rule = Rule {
        rule: "r".to_owned(),
        message: "m".to_owned(),
        message_expression: "e".to_owned(),
        reason: Some("FieldValueInvalid".to_owned()),
        field_path: ".a".to_owned(),
        optional_old_self: Some(false),
    };
    assert_eq!(*schema.rules, [Rule::default(), rule]);
    let constraints = schema.constraints.as_ref().expect("restricted");
    assert_eq!((&*constraints.format, &*constraints.pattern), ("f", "p"));
    assert_eq!(
        (constraints.maximum, constraints.minimum, constraints.multiple_of),
        (Some(1.0), Some(-2.5), Some(3.0))
    );
    assert!(constraints.exclusive_maximum && constraints.exclusive_minimum && constraints.unique_items);
    assert_eq!((constraints.max_length, constraints.min_length), (Some(4), Some(5)));
    assert_eq!((constraints.max_items, constraints.min_items), (Some(6), Some(7)));
    assert_eq!((constraints.max_properties, constraints.min_properties), (Some(8), Some(9)));
    assert_eq!((constraints.allowed.len(), &*constraints.required), (2, &["a".to_owned()][..]));
    assert_eq!((constraints.all_of.len(), constraints.any_of.len(), constraints.one_of.len()), (1, 2, 3));
    assert!(constraints.all_of[0].titled && constraints.not.as_ref().is_some_and(|not| not.nullable));
}

#[test]
fn a_type_is_kept_as_it_is_written() {
    for text in ["", "object", "array", "string", "integer", "number", "boolean", "null", "Object"] {
        assert_eq!(parse(&json!({"type": text})).kind.as_str(), text);
    }
    assert_eq!(parse(&json!({"type": "null"})).kind, SchemaType::Other("null".into()));
}

#[test]
fn a_keyword_of_the_wrong_type_is_refused() {
    for keyword in [
        "type",
        "title",
        "description",
        "format",
        "pattern",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "id",
    ] {
        assert!(Schema::parse(&json!({keyword: 1})).is_err(), "{keyword}");
    }
    for keyword in [
        "nullable",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "uniqueItems",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "maximum",
        "minimum",
        "multipleOf",
        "maxLength",
        "minLength",
        "maxItems",
        "minItems",
        "maxProperties",
        "minProperties",
        "enum",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "properties",
        "additionalProperties",
        "externalDocs",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
    ] {
        assert!(Schema::parse(&json!({keyword: "text"})).is_err(), "{keyword}");
    }
    for map in ["patternProperties", "dependencies", "definitions", "properties"] {
        for odd in [json!([]), json!(true)] {
            assert!(matches!(Schema::parse(&json!({map: odd})), Err(ParseError::Malformed { .. })), "{map}");
        }
    }
    for rule in [json!(1), json!({"rule": 1}), json!({"message": 1}), json!({"optionalOldSelf": "no"})] {
        assert!(Schema::parse(&json!({"x-kubernetes-validations": [rule]})).is_err(), "{rule}");
    }
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
        (json!({"items": {}}), true),
        (json!({"additionalProperties": {}}), true),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), true),
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
        (json!({"id": "x"}), "openAPIV3Schema.properties[a].items: OpenAPIV3Schema 'id' is not supported"),
        (
            json!({"definitions": {"a": {}}}),
            "openAPIV3Schema.properties[a].items: OpenAPIV3Schema 'definitions' is not supported",
        ),
        (
            json!({"additionalItems": {}}),
            "openAPIV3Schema.properties[a].items: OpenAPIV3Schema 'additionalItems' is not supported",
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
            "openAPIV3Schema.properties[a].items: internal error: 'x-kubernetes-preserve-unknown-fields' \
             must be true or undefined",
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
fn a_thousand_levels_are_read() {
    for (open, levels) in [
        (r#"{"properties":{"a":"#, 2),
        (r#"{"items":"#, 1),
        (r#"{"additionalProperties":"#, 1),
        (r#"{"not":"#, 1),
    ] {
        let times = (DEPTH - 1) / levels;
        let text = format!("{}{{}}{}", open.repeat(times), "}".repeat(levels * times));
        parse(&Json::parse(text.as_bytes()).expect("JSON"));
    }
}

#[test]
fn a_place_is_known_if_a_value_there_would_survive_pruning() {
    let schema = parse(&json!({"properties": {
        "named": {"properties": {"a": {}}},
        "map": {"additionalProperties": {"properties": {"a": {}}}, "properties": {"b": {}}},
        "any": {"additionalProperties": true},
        "list": {"items": {"properties": {"a": {}}}},
        "open": {"x-kubernetes-preserve-unknown-fields": true},
        "resource": {"x-kubernetes-embedded-resource": true},
    }}));
    let field = |name: &str| Step::Field(name.to_owned());
    let key = |name: &str| Step::Key(name.to_owned());
    for (path, known) in [
        (vec![], true),
        (vec![field("named"), field("a")], true),
        (vec![field("named"), field("b")], false),
        (vec![field("named"), field("a"), field("b")], false),
        (vec![field("named"), Step::Values], false),
        (vec![field("map"), key("x"), field("a")], true),
        (vec![field("map"), key("x"), field("b")], false),
        (vec![field("map"), field("b"), field("a")], false),
        (vec![field("map"), Step::Values, field("a")], true),
        (vec![field("map"), Step::Values, field("b")], false),
        (vec![field("any"), key("x")], true),
        (vec![field("any"), Step::Values], true),
        (vec![field("any"), key("x"), field("a")], false),
        (vec![field("resource"), field("metadata"), field("labels")], true),
        (vec![field("resource"), field("spec")], false),
        (vec![field("list"), Step::Items, field("a")], true),
        (vec![field("list"), Step::Index(3), field("b")], false),
        (vec![field("open"), field("x")], true),
        (vec![field("open"), Step::Values], true),
        (vec![field("open"), Step::Items], true),
    ] {
        assert_eq!(keeps(&schema, &path), known, "{path:?}");
        // What is kept without a word about it is known and not described.
        let is_kept = path.len() > 1 && [field("any"), field("open"), field("resource")].contains(&path[0]);
        assert_eq!(schema.describes(&path), known && !is_kept, "{path:?}");
    }
    assert_eq!(schema.depth(), 4);
}
