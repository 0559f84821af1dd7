//! `cases.json`: schemas, stored objects, and what apiextensions-apiserver v0.37.2 makes of them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{hand_over, laws, read};
use crate::compile::Compiled;
use crate::json::{DEPTH, Json};
use crate::path::{Path, Step};
use crate::schema::Schema;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    schema: Value,
    stored: Value,
    read: Option<Json>,
    /// The topmost fields that pruning hides, as the server names them in warnings.
    #[serde(default)]
    hidden: Vec<String>,
    error: Option<String>,
}

#[test]
fn reads_what_the_server_reads() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("cases.json")).expect("well-formed cases");
    for case in cases {
        let schema = Schema::parse(&case.schema).expect("a schema");
        let compiled = Compiled::new(&schema);
        let mut object = Json::from(case.stored.clone());
        let mut hidden = Vec::new();
        let outcome = read(&mut object, &schema, &compiled, &mut |at| hidden.push(warned(&at.to_path())));
        assert_eq!(outcome.is_err(), case.error.is_some(), "{}", case.name);
        if let Some(read) = case.read {
            assert_eq!(object, read, "{}", case.name);
            hidden.sort();
            assert_eq!(hidden, case.hidden, "{}", case.name);
        }
        laws::hold(&compiled, &case.stored, &case.name);
        laws::hold(&compiled, &object, &case.name);
    }
}

/// As a server answers where `spec.preserveUnknownFields` is true (`e2e/tests/facts/legacy.rs::d12`).
#[test]
fn what_a_schema_does_not_know_can_be_kept() {
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "n": {"type": "integer"}, "d": {"type": "integer", "default": 1}, "untyped": {"default": {"a": 1}},
        "m": {"type": "object", "properties": {"d": {"type": "integer", "default": 2}}},
    }}))
    .expect("a schema");
    let stored = json!({"n": null, "d": null, "x": {"y": null}, "m": {"z": 1}});
    let mut object = Json::from(stored.clone());
    super::read_preserving(&mut object, &schema, &Compiled::new(&schema)).expect("readable");
    let kept = json!({"n": null, "d": 1, "untyped": {}, "x": {"y": null}, "m": {"d": 2, "z": 1}});
    assert_eq!(*object, kept);
    let mut pruned = Json::from(stored.clone());
    read(&mut pruned, &schema, &Compiled::new(&schema), &mut |_| {}).expect("readable");
    assert_eq!(*pruned, json!({"d": 1, "untyped": {}, "m": {"d": 2}}));
}

fn warned(path: &Path) -> String {
    path.steps().iter().fold(String::new(), |text, step| match step {
        Step::Field(name) | Step::Key(name) if text.is_empty() => name.clone(),
        Step::Field(name) | Step::Key(name) => format!("{text}.{name}"),
        Step::Index(index) => format!("{text}[{index}]"),
        Step::Items | Step::Values => unreachable!("an object has no such steps"),
    })
}

#[test]
fn a_walk_through_a_thousand_levels_needs_no_more_than_half_of_the_stack() {
    let levels = DEPTH / 2 - 2;
    let schema = format!(
        r#"{{"properties":{{"open":{{"x-kubernetes-preserve-unknown-fields":true}},"a":{}{{"type":"string"}}{}}}}}"#,
        r#"{"type":"object","default":{},"properties":{"a":"#.repeat(levels),
        "}}".repeat(levels),
    );
    let unknown = format!("{}1{}", r#"{"l":["#.repeat(levels), "]}".repeat(levels));
    let stored = format!(
        r#"{{"open":{unknown},"gone":{unknown},"metadata":{{"gone":{unknown},
            "managedFields":[{{"fieldsV1":1}},{{"fieldsV1":{{"l":1}},"time":"malformed"}}]}}}}"#
    );
    let walk = move || {
        let document = Json::parse(schema.as_bytes()).expect("JSON");
        let schema = Schema::parse(&document).expect("a schema");
        let compiled = Compiled::new(&schema);
        let mut object = Json::parse(stored.as_bytes()).expect("JSON");
        let mut hidden = 0;
        read(&mut object, &schema, &compiled, &mut |_| hidden += 1).expect("readable");
        assert_eq!(hidden, 1);
        let (mut gaps, mut filled) = (Vec::new(), Vec::new());
        compiled.gaps(&object, &mut |at, _| gaps.push(at.to_path()));
        compiled.filled(&object, &mut |at, _| filled.push(at.to_path().to_string()));
        assert!(gaps.is_empty());
        assert_eq!(filled, [".a"]);
        let mut depth = 0;
        let mut at = &object["a"];
        while let Some(below) = at.get("a") {
            at = below;
            depth += 1;
        }
        assert_eq!(depth, levels - 1);
    };
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(walk).expect("a thread");
    thread.join().expect("no overflow");
}

#[test]
fn a_default_differs_from_a_present_value_as_soon_as_one_part_does() {
    let schema = json!({"properties": {"a": {"default": {"x": 1, "l": [null, {}]}, "properties": {
        "b": {"default": 2}, "x": {}, "n": {"default": 3, "nullable": true},
        "l": {"items": {"default": {}, "properties": {"c": {"default": 4}}}},
    }}}});
    let compiled = Compiled::new(&Schema::parse(&schema).expect("a schema"));
    let found = |a: Value| {
        let mut found = Vec::new();
        compiled.filled(&json!({ "a": a }), &mut |at, _| found.push(at.to_path().to_string()));
        found
    };
    assert_eq!(found(json!({"x": 1.0, "b": 2, "n": 3, "l": [{"c": 4}, {"c": 4}]})), [".a"]);
    let parts = [".a.b", ".a.l[0]", ".a.l[1]", ".a.n"];
    for differs in [
        json!({"x": 2, "b": 2, "n": 3, "l": [{"c": 4}, {"c": 4}]}),
        json!({"b": 2, "n": 3, "l": [{"c": 4}, {"c": 4}]}),
        json!({"x": 1, "y": 1, "b": 2, "n": 3, "l": [{"c": 4}, {"c": 4}]}),
    ] {
        assert_eq!(found(differs), parts);
    }
    assert_eq!(found(json!({"x": 1, "b": 3, "n": null, "l": [{"c": 4}]})), [".a.l[0]"]);
    assert_eq!(found(json!({"x": 1, "n": 3, "l": [null, {"c": 5}]})), [".a.n"]);
    assert_eq!(
        found(json!({"x": 1, "b": 2, "n": 3, "l": [{"c": 4}, {"c": 4, "d": 1}]})),
        [".a.b", ".a.l[0]", ".a.l[1].c", ".a.n"]
    );
    assert!(found(json!(null)).is_empty() && found(json!(5)).is_empty());
}

#[test]
fn embedded_resources_must_be_readable_where_an_object_is_handed_over() {
    let embedded =
        json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"properties": {
        "t": embedded, "l": {"items": embedded}, "n": {"nullable": false}, "d": {"default": 1},
    }});
    let schema = Schema::parse(&schema).expect("a schema");
    let compiled = Compiled::new(&schema);
    let handed_over = |object: Value| {
        let mut object = Json::from(object);
        let outcome = hand_over(&mut object, &schema, &compiled, &mut |_| {});
        outcome.map(|()| object.into_inner()).map_err(|error| error.to_string())
    };
    for (object, outcome) in [
        (
            json!({"t": {"metadata": null}, "n": null, "d": null}),
            Ok(json!({"t": {"metadata": {}}, "d": null})),
        ),
        (json!({"t": {"metadata": {"x": 1}}, "x": 1}), Ok(json!({"t": {"metadata": {}}}))),
        (json!({"t": {"metadata": []}}), Err("t.metadata of an embedded resource cannot be read")),
        (json!({"t": {"kind": 5}}), Err("t.kind of an embedded resource cannot be read")),
        (
            json!({"l": [{"metadata": {"name": 5}}]}),
            Err("l[0].metadata of an embedded resource cannot be read"),
        ),
    ] {
        assert_eq!(handed_over(object), outcome.map_err(str::to_owned));
    }
}
