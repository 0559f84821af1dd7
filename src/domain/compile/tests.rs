//! What compiling keeps, and what the walks over an object report.

use serde_json::{Value, json};

use super::Compiled;
use crate::domain::schema::Schema;

fn compile(schema: &Value) -> Compiled {
    Compiled::new(&Schema::parse(schema).expect("a schema"))
}

#[test]
fn walks_report_the_topmost_places() {
    let compiled = compile(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
            "a": {"type": "integer", "default": 1},
            "l": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
        }}}}),
    );
    let gaps = |object: &Value| {
        let mut found = Vec::new();
        compiled.gaps(object, &mut |at, default| found.push(format!("{} {default}", at.to_path())));
        found
    };
    assert_eq!(gaps(&json!({})), [".spec {}"]);
    assert_eq!(gaps(&json!({"spec": {"l": [{}, {"p": "UDP"}]}})), [".spec.a 1", ".spec.l[0].p \"TCP\""]);
    let filled = |object: &Value| {
        let mut found = Vec::new();
        compiled.filled(object, &mut |at, value| found.push(format!("{} {value}", at.to_path())));
        found
    };
    assert_eq!(filled(&json!({"spec": {"a": 1}})), [".spec {\"a\":1}"]);
    assert_eq!(
        filled(&json!({"spec": {"a": 1, "l": [{"p": "TCP"}]}})),
        [".spec.a 1", ".spec.l[0].p \"TCP\""]
    );
    let paths: Vec<_> =
        compiled.defaults().into_iter().map(|site| format!("{} {}", site.path, *site.value)).collect();
    assert_eq!(paths, [".spec {\"a\":1}", ".spec.a 1", ".spec.l[].p \"TCP\""]);
}
