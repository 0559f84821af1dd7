//! What compiling keeps, what decides the digest, and what the walks over an object report.

use serde_json::{Value, json};

use super::Compiled;
use crate::json::{DEPTH, Json};
use crate::schema::Schema;

fn compile(schema: &Value) -> Compiled {
    Compiled::new(&Schema::parse(schema).expect("a schema"))
}

fn cron_tab() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "default": {}, "properties": {
            "replicas": {"type": "integer", "default": 1},
            "image": {"type": "string"},
            "ports": {"type": "array", "items": {"type": "object", "properties": {
                "protocol": {"type": "string", "default": "TCP"},
                "number": {"type": "integer", "nullable": true, "default": 80},
            }}},
            "limits": {"type": "object", "additionalProperties": {"type": "string", "default": "none"}},
        }},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    }})
}

#[test]
fn first_defaults_count_those_that_are_too_many_or_too_long() {
    let first = |schema: &Value, limit| {
        let compiled = compile(schema);
        let (sites, more) = compiled.first_defaults(limit);
        (sites.iter().map(|site| site.path.to_string()).collect::<Vec<_>>(), more)
    };
    let tab = cron_tab();
    let (all, more) = first(&tab, 5);
    assert_eq!(
        all,
        [".spec", ".spec.limits{}", ".spec.ports[].number", ".spec.ports[].protocol", ".spec.replicas"]
    );
    assert_eq!(more, 0);
    assert_eq!(first(&tab, 2), (all[..2].to_vec(), 3));
    assert_eq!(first(&tab, 0), (vec![], 5));
    // Two paths may have 64 steps together: what comes after that many counts as more.
    let deep = |steps| {
        let leaf = json!({"type": "string", "default": "x"});
        let chain =
            (1..steps).fold(leaf.clone(), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
        json!({"type": "object", "properties": {"a": chain, "b": leaf.clone(), "c": leaf}})
    };
    assert_eq!(first(&deep(63), 2).0.len(), 2);
    let (sites, more) = first(&deep(64), 2);
    assert_eq!((sites.len(), more), (1, 2));
}

#[test]
fn walks_report_the_topmost_places() {
    let compiled = compile(&cron_tab());
    let gaps = |object: &Value| {
        let mut found = Vec::new();
        compiled.gaps(object, &mut |at, default| found.push(format!("{} {default}", at.to_path())));
        found
    };
    assert_eq!(gaps(&json!({})), [".spec {}"]);
    assert_eq!(
        gaps(&json!({
            "spec": {"ports": [{"number": null}, {"protocol": "UDP"}], "limits": {"cpu": null, "x": "y"}},
        })),
        [
            r#".spec.limits["cpu"] "none""#,
            r#".spec.ports[0].protocol "TCP""#,
            ".spec.ports[1].number 80",
            ".spec.replicas 1",
        ]
    );
    let filled = |object: &Value| {
        let mut found = Vec::new();
        compiled.filled(object, &mut |at, value| found.push(format!("{} {value}", at.to_path())));
        found
    };
    assert_eq!(filled(&json!({"spec": {"replicas": 1}})), [r#".spec {"replicas":1}"#]);
    assert_eq!(
        filled(&json!({"spec": {"replicas": 1, "ports": [{"protocol": "TCP"}], "limits": {"cpu": "none"}}})),
        [r#".spec.limits["cpu"] "none""#, r#".spec.ports[0].protocol "TCP""#, ".spec.replicas 1"]
    );
    assert!(filled(&json!({"spec": {"replicas": 2, "image": "x"}, "status": {}})).is_empty());
}

#[test]
fn a_version_shows_of_another_ones_defaults_what_it_knows() {
    let parse = |schema: Value| Schema::parse(&schema).expect("a schema");
    let stored = parse(json!({ "properties": { "spec": { "properties": {
        "map": {
            "default": { "k": {}, "x": {} },
            "additionalProperties": { "properties": { "n": { "default": 1 }, "m": { "default": 2 } } },
        },
        "list": { "items": { "properties": { "a": { "default": 1 }, "b": { "default": 1 } } } },
        "gone": { "default": 1 },
        "open": { "properties": { "a": { "default": 1 } } },
    } } } }));
    let shown = |spec: Value, object: Value| {
        let other = parse(json!({ "properties": { "spec": { "properties": spec } } }));
        let mut found = Vec::new();
        Compiled::shown_by(&stored, &other).filled(&json!({ "spec": object }), &mut |at, value| {
            found.push(format!("{} {value}", at.to_path()))
        });
        found
    };
    let text = json!({ "map": { "type": "string" } });
    assert_eq!(shown(text, json!({ "map": {} })), [".spec.map {}"]);
    let declared = json!({ "map": { "properties": { "k": { "properties": { "n": {} } } } } });
    assert_eq!(
        shown(declared.clone(), json!({ "map": { "k": { "n": 1 } } })),
        [r#".spec.map {"k":{"n":1}}"#]
    );
    assert_eq!(shown(declared, json!({ "map": { "k": { "n": 1, "other": 1 } } })), [".spec.map.k.n 1"]);
    let same = json!({ "map": { "additionalProperties": { "properties": { "m": {} } } } });
    assert_eq!(shown(same, json!({ "map": { "y": { "m": 2 } } })), [r#".spec.map["y"].m 2"#]);
    let list = json!({ "list": { "items": { "properties": { "b": {} } } } });
    assert_eq!(shown(list, json!({ "list": [{ "a": 1, "b": 1 }], "gone": 1 })), [".spec.list[0].b 1"]);
    let open = json!({ "open": { "x-kubernetes-preserve-unknown-fields": true } });
    assert_eq!(shown(open, json!({ "open": { "a": 1 } })), [".spec.open.a 1"]);
}

#[test]
fn lists_what_can_be_filled_in() {
    let compiled = compile(&cron_tab());
    let sites: Vec<_> =
        compiled.defaults().iter().map(|site| format!("{} {}", site.path, *site.value())).collect();
    assert_eq!(
        sites,
        [
            r#".spec {"replicas":1}"#,
            r#".spec.limits{} "none""#,
            ".spec.ports[].number 80",
            r#".spec.ports[].protocol "TCP""#,
            ".spec.replicas 1",
        ]
    );
    let mut paths = Vec::new();
    compiled.each_default(&mut |at, default| {
        assert!(!default.is_null());
        paths.push(at.to_path());
    });
    assert!(paths.is_sorted());
    assert_eq!(paths, compiled.defaults().into_iter().map(|site| site.path).collect::<Vec<_>>());
}

#[test]
fn nothing_to_fill_is_nothing() {
    for schema in [
        json!({}),
        json!({"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer"}}}),
        json!({"items": {"properties": {"a": {"default": 1}}}}),
        json!({"properties": {"a": {"items": {"nullable": true, "default": 1}}}}),
        json!({"properties": {"a": {"additionalProperties": {"nullable": true, "default": 1}}}}),
        json!({"properties": {"a": {"not": {"properties": {"b": {"default": 1}}}}}}),
        json!({"properties": {"a": {"default": null}}}),
    ] {
        let compiled = compile(&schema);
        assert!(!compiled.has_defaults(), "{schema}");
        assert_eq!(compiled.digest(), compile(&json!({})).digest(), "{schema}");
        assert!(compiled.defaults().is_empty(), "{schema}");
    }
    assert!(compile(&cron_tab()).has_defaults());
}

/// Computed by other means from the canonical form, because clusters store the digest:
///
/// ```text
/// structural-defaults/1
/// {"p":{"spec":{"d":{},"p":{"limits":{"v":{"d":"none"}},"ports":{"i":{"p":{"number":{"d":80,"n":true},"protocol":{"d":"TCP"}}}},"replicas":{"d":1}}}}}
/// ```
#[test]
fn the_digest_is_the_same_everywhere() {
    assert_eq!(
        compile(&cron_tab()).digest().to_string(),
        "29bb51b08b05115b59a628e657cef76aece60ef1431a13de345dcca4ffa4e7dd"
    );
}

/// ```text
/// structural-defaults/1
/// {"p":{"a":{"d":[1,"2",[3,4]]}}}
/// ```
#[test]
fn lists_are_in_the_digest_item_by_item() {
    assert_eq!(
        compile(&json!({"properties": {"a": {"default": [1, "2", [3, 4]]}}})).digest().to_string(),
        "4eb95d21a79138d7c42a731ee30ec70565d5a4b4b4bdb4acaaf309f39e861fd4"
    );
}

/// Changes one value of the example and gives the digest.
fn digest_with(pointer: &str, value: Value) -> String {
    let mut schema = cron_tab();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    schema.pointer_mut(parent).expect("in the example")[key] = value;
    compile(&schema).digest().to_string()
}

#[test]
fn what_filling_does_decides_the_digest() {
    let digest = compile(&cron_tab()).digest().to_string();
    let spec = "/properties/spec/properties";
    for (pointer, value) in [
        (format!("{spec}/replicas/default"), json!(2)),
        (format!("{spec}/replicas/default"), json!("1")),
        (format!("{spec}/replicas/default"), json!(1.5)),
        (format!("{spec}/replicas/nullable"), json!(true)),
        (format!("{spec}/image/default"), json!("")),
        (format!("{spec}/ports/items/properties/number/nullable"), json!(false)),
        (format!("{spec}/ports/default"), json!([])),
        (format!("{spec}/limits/additionalProperties/nullable"), json!(true)),
        (format!("{spec}/limits/properties"), json!({"cpu": {"type": "string"}})),
        ("/properties/spec/default".to_owned(), json!({"replicas": 1})),
        ("/properties/spec/default".to_owned(), Value::Null),
        ("/properties/status/default".to_owned(), json!({})),
    ] {
        assert_ne!(digest_with(&pointer, value.clone()), digest, "{pointer} {value}");
    }
}

#[test]
fn what_filling_does_not_see_is_not_in_the_digest() {
    let digest = compile(&cron_tab()).digest().to_string();
    let spec = "/properties/spec/properties";
    for (pointer, value) in [
        (format!("{spec}/replicas/default"), json!(1.0)),
        (format!("{spec}/replicas/description"), json!("how many")),
        (format!("{spec}/replicas/maximum"), json!(5)),
        (format!("{spec}/replicas/type"), json!("number")),
        (format!("{spec}/image/nullable"), json!(true)),
        (format!("{spec}/more"), json!({"type": "object", "properties": {"a": {"type": "string"}}})),
        (format!("{spec}/limits/x-kubernetes-map-type"), json!("atomic")),
        ("/properties/spec/default".to_owned(), json!({"unknown": 1})),
        ("/properties/spec/required".to_owned(), json!(["image"])),
        ("/default".to_owned(), json!({"spec": {}})),
    ] {
        assert_eq!(digest_with(&pointer, value.clone()), digest, "{pointer} {value}");
    }
    let reordered = Json::parse(
        br#"{"properties":{"b":{"default":{"y":[1],"x":1e2}, "x-kubernetes-preserve-unknown-fields":true},"a":{"default":-0.0}}}"#,
    );
    let ordered = json!({"properties": {"a": {"default": 0}, "b": {
        "x-kubernetes-preserve-unknown-fields": true, "default": {"x": 100, "y": [1]}}}});
    assert_eq!(compile(&reordered.expect("well-formed")).digest(), compile(&ordered).digest());
}

#[test]
fn a_server_that_cannot_prune_defaults_does_not_serve() {
    for (schema, servable) in [
        (json!({"default": {}}), true),
        (json!({"default": []}), false),
        (json!({"items": {"type": "object"}}), true),
        (json!({"items": {"default": {}}}), false),
        (json!({"items": {"items": {"additionalProperties": {"properties": {"a": {"default": 1}}}}}}), false),
        (json!({"properties": {"a": {"items": {"default": 1}}}}), true),
    ] {
        assert_eq!(compile(&schema).is_servable(), servable, "{schema}");
    }
}

#[test]
fn a_thousand_levels_are_compiled() {
    for (open, levels) in
        [(r#"{"properties":{"a":"#, 2), (r#"{"items":"#, 1), (r#"{"additionalProperties":"#, 1)]
    {
        let times = (DEPTH - 3) / levels;
        let (open, close) = (open.repeat(times), "}".repeat(levels * times));
        let text = format!(r#"{{"properties":{{"a":{open}{{"default":1}}{close}}}}}"#);
        assert!(compile(&Json::parse(text.as_bytes()).expect("JSON")).has_defaults());
    }
}
