use serde_json::json;

use super::*;
use kube_structural_schema::path::Trail;

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
        "Spec": {
            "type": "object", "properties": {"a": {"type": "integer", "default": 1}, "b": {"type": "string"}},
        },
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
        "open": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "a": {"default": 1},
            },
        },
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
        "Tree": {
            "type": "object", "properties": {
                "n": {"type": "integer", "default": 0}, "below": reference("Tree"),
            },
        },
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
    assert!(root_with(reference("None"), Value::Null).contains("does not resolve"));
    assert!(root_with(reference("More"), reference("More")).contains("is circular"));
    let endless = json!({"properties": {"b": {"allOf": [reference("More")], "default": {}}}});
    assert!(root_with(reference("More"), endless).contains("without end"));
    for (document, hint) in [
        (json!({"swagger": "2.0"}), "OpenAPI v2"),
        (json!({"paths": {"api/v1": {}}}), "lists other documents"),
        (json!({"kind": "Deployment"}), "not an OpenAPI v3"),
    ] {
        let error = Document::read(document.into()).expect_err("no document").to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn what_makes_up_a_schema_counts_from_near_to_far() {
    let schemas = json!({
        "Root": {"type": "object", "properties": {
            "siblings": {"$ref": "#/components/schemas/Port", "default": "http"},
            "typed": reference("Port"),
            "clauses": {
                "allOf": [reference("Part"), {"properties": {"c": {"type": "integer", "default": 3}}}],
                "default": {},
            },
        }},
        "Port": {"type": "string", "default": "tcp"},
        "Part": {"allOf": [reference("Base")], "properties": {"b": {"type": "integer", "default": 2}}},
        "Base": {
            "type": "object", "properties": {"a": {"type": "integer", "default": 1}, "b": {"default": 9}},
        },
    });
    let (object, _) = filled(schemas.clone(), json!({})).expect("a sound document");
    let expected = json!({"siblings": "http", "typed": "tcp", "clauses": {"a": 1, "b": 2, "c": 3}});
    assert_eq!(object, expected);
    let document = document(schemas);
    let schema = document.structural(&root()).expect("a sound document").expect("described");
    let mut structural = Json::from(json!({}));
    let schema = kube_structural_schema::schema::Schema::parse(&schema).expect("a schema");
    kube_structural_schema::compile::Compiled::new(&schema).fill(&mut structural);
    assert_eq!(*structural, expected);
}

#[test]
fn a_structural_schema_ends_where_a_type_contains_itself() {
    let schemas = json!({
        "Root": {"type": "object", "properties": {"tree": reference("Tree"), "raw": {"type": "object"}}},
        "Tree": {"type": "object", "description": "…", "properties": {
            "n": {"type": "integer", "default": 0, "not": reference("Tree")},
            "below": {"allOf": [reference("Tree")], "default": {}},
        }},
    });
    let schema = document(schemas).structural(&root()).expect("a sound document").expect("described");
    let end = json!({"type": "object", "default": {}, "x-kubernetes-preserve-unknown-fields": true});
    let tree =
        json!({"type": "object", "properties": {"n": {"type": "integer", "default": 0}, "below": end}});
    let raw = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(*schema, json!({"type": "object", "properties": {"tree": tree, "raw": raw}}));
}

#[test]
fn types_that_double_at_each_level_are_refused() {
    let mut schemas =
        json!({"Root": {"type": "object", "properties": {"a": reference("L0")}}, "L30": {"type": "string"}});
    for level in 0..30 {
        let next = reference(&format!("L{}", level + 1));
        schemas[format!("L{level}")] = json!({"type": "object", "properties": {"a": next, "b": next}});
    }
    let error = document(schemas).structural(&root()).expect_err("too large");
    assert_eq!(error, OpenApiError::TooLarge);
}

#[test]
fn each_default_says_when_it_applies() {
    let schemas = json!({
        "Root": {"type": "object", "required": ["spec"], "properties": {
            "spec": reference("Spec"),
            "status": {"allOf": [reference("Spec")], "default": {}},
        }},
        "Spec": {"type": "object", "properties": {
            "ports": {"type": "array", "items": {"allOf": [reference("Port")], "default": {}}},
            "nullable": {"type": "array", "items": {"type": "string", "nullable": true, "default": "a"}},
            "again": reference("Spec"),
        }},
        "Port": {"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}}},
    });
    let document = document(schemas);
    let lines = |place: &[&str]| -> Vec<String> {
        let place: Vec<String> = place.iter().map(ToString::to_string).collect();
        let published = document.published(&root(), &place).expect("a sound document");
        let line = |PublishedDefault { path, default, applies_when, definition }: PublishedDefault| {
            let applies_when = match applies_when {
                AppliesWhen::Always => "always".to_owned(),
                AppliesWhen::Given(path) => path.to_string(),
                AppliesWhen::Null => "null".to_owned(),
            };
            format!("{path} {} {applies_when} {definition}", *default)
        };
        published.into_iter().map(line).collect()
    };
    let spec = [".spec.ports[] {} null Spec", ".spec.ports[].protocol \"TCP\" .spec.ports Port"];
    assert_eq!(lines(&["spec"]), spec);
    assert_eq!(lines(&["spec", "ports", "protocol"]), spec[1..]);
    let status = [
        ".status {} always Root",
        ".status.ports[] {} null Spec",
        ".status.ports[].protocol \"TCP\" .status.ports Port",
    ];
    assert_eq!(lines(&["status"]), status);
    assert_eq!(lines(&[]), [&spec[..], &status[..]].concat());
}

#[test]
fn a_type_that_is_not_described_is_left_alone() {
    let mut object = json!({"x": null});
    let other = TypeName { api_version: "v1".to_owned(), kind: "Root".to_owned() };
    let known = document(json!({"Root": {}})).fill(&mut object, &other, &mut |_| {});
    assert_eq!((known, object), (Ok(false), json!({"x": null})));
}
