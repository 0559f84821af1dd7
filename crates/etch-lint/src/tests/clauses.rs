//! ETCH013: clauses and numbers of fields around fields with defaults.

use super::*;

#[test]
fn fields_alone_can_break_a_clause() {
    let free = || json!({"type": "string"});
    let both = json!({"a": {"type": "string", "default": "x"}, "b": {"type": "string", "default": "y"},
        "c": free(), "e": free()});
    let with = |keyword: &str, value: Value| {
        let mut spec = object(both.clone());
        spec[keyword] = value;
        found(spec)
    };
    let clauses = json!([{"required": ["a"]}, {"required": ["b"]}]);
    assert_eq!(with("oneOf", clauses), ["ETCH013 .spec its defaults break oneOf"]);
    assert_eq!(with("not", json!({"required": ["a", "b"]})), ["ETCH013 .spec its defaults break not"]);
    assert_eq!(with("maxProperties", json!(1)), ["ETCH013 .spec its defaults break maxProperties: 1"]);
    assert_eq!(with("not", json!({"required": ["a", "c"]})), ["ETCH013 .spec its defaults exclude c by not"]);
    assert_eq!(with("not", json!({"required": ["c", "e"]})), [""; 0]);
    assert_eq!(
        with("oneOf", json!([{"required": ["a"]}, {"required": ["c"]}])),
        ["ETCH013 .spec its defaults exclude c by oneOf"]
    );
    assert_eq!(with("oneOf", json!([{"required": ["c"]}, {"required": ["e"]}])), [""; 0]);
    assert_eq!(with("anyOf", json!([{"required": ["a"]}, {"required": ["c"]}])), [""; 0]);
    let limited = |default: Value| {
        let mut c = json!({"type": "object", "maxProperties": 1,
            "properties": {"a": {"type": "integer", "default": 1}, "b": {"type": "integer"}}});
        if !default.is_null() {
            c["default"] = default;
        }
        found(json!({"type": "object", "required": ["c"], "properties": {"c": c}}))
    };
    let room = "ETCH013 .spec.c its defaults exclude b by maxProperties: 1".to_owned();
    assert!(limited(Value::Null).contains(&room), "{:?}", limited(Value::Null));
    let two = |required: Value| {
        let properties = json!({"a": {"type": "integer", "default": 1}, "b": {"type": "integer"},
            "c": {"type": "integer"},
            "d": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}}});
        found(json!({"type": "object", "maxProperties": 2, "required": required, "properties": properties}))
    };
    let leaves = |found: Vec<String>| -> Vec<String> {
        let texts = found.iter().filter_map(|text| text.strip_prefix("ETCH013 .spec its defaults "));
        texts.map(str::to_owned).collect()
    };
    assert_eq!(leaves(two(json!(["c"]))), ["exclude b, d by maxProperties: 2"]);
    assert_eq!(leaves(two(json!(["b", "c"]))), ["break maxProperties: 2"]);
    assert_eq!(leaves(two(json!([]))), [""; 0]);
    assert_eq!(leaves(two(json!(["a", "d"]))), [""; 0], "it would be the same without the default");
}

#[test]
fn clauses_may_refuse_the_values_of_defaults() {
    let with = |clauses: Value| {
        let mut spec = object(json!({"a": {"type": "integer", "default": 5}, "b": {"type": "integer"}}));
        spec["allOf"] = clauses;
        found(spec)
    };
    assert_eq!(
        with(json!([{"properties": {"a": {"maximum": 3}}}])),
        ["ETCH013 .spec its defaults break allOf[0]"]
    );
    assert_eq!(with(json!([{"properties": {"a": {"maximum": 5}}}])), [""; 0]);
    // A user who sets b may satisfy it.
    assert_eq!(
        with(json!([{"anyOf": [{"properties": {"a": {"maximum": 3}}}, {"required": ["b"]}]}])),
        [""; 0]
    );
}

/// At `.spec.o` of these fields, by default `a` 2 and `b` 2; `c` and `d` have no default.
#[test]
fn clauses_are_judged_however_they_are_written() {
    let found = |mut schema: Value, by_default: &[&str]| {
        schema["type"] = json!("object");
        for name in ["a", "b", "c", "d"] {
            schema["properties"][name] = match by_default.contains(&name) {
                true => json!({"type": "integer", "default": 2}),
                false => json!({"type": "integer"}),
            };
        }
        let found = found(object(json!({"o": schema, "l": {"type": "array", "items": schema.clone()}})));
        let at = |place: &str| -> Vec<String> {
            let start = format!("ETCH013 {place} its defaults ");
            found.iter().filter_map(|line| Some(line.strip_prefix(&start)?.to_owned())).collect()
        };
        assert_eq!(at(".spec.o"), at(".spec.l[]"));
        at(".spec.o").join("; ")
    };
    let only = |name: &str, other: &str| json!({"required": [name], "not": {"required": [other]}});
    let cases = [
        (json!({"not": {"anyOf": [{"required": ["b"]}, {"required": ["c"]}]}}), "break not"),
        (json!({"allOf": [{"maxProperties": 0}]}), "break allOf[0]"),
        (json!({"not": {"minProperties": 1}}), "break not"),
        (json!({"not": {"minProperties": 2}}), "exclude a, c, d by not"),
        (json!({"anyOf": [{"maxProperties": 0}, {"minProperties": 5}]}), "break anyOf"),
        (json!({"anyOf": [{"maxProperties": 0}, {"minProperties": 4}]}), ""),
        (
            json!({
                "not": {
                    "anyOf": [{"required": ["a", "b"]}, {"required": ["b", "c"]}, {"required": ["a", "c"]}],
                },
            }),
            "exclude a, c by not",
        ),
        (json!({"allOf": [{}, {"not": {"required": ["a", "b"]}}]}), "exclude a by allOf[1]"),
        (json!({"oneOf": [only("a", "b"), only("b", "a")]}), "exclude a by oneOf"),
        (json!({"anyOf": [only("a", "b"), only("b", "a")]}), "exclude a by anyOf"),
        (json!({"allOf": [{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}]}), "exclude a by allOf[0]"),
        (
            json!({
                "oneOf": [
                    {"required": ["a"]}, {"required": ["b"]}, {"required": ["c"], "properties": {
                        "c": {"minimum": 1},
                    }},
                ],
            }),
            "exclude a by oneOf",
        ),
        (
            json!({"oneOf": [{"properties": {"b": {"enum": [1]}}, "not": {"required": ["c"]}},
                {"required": ["c"], "properties": {"b": {"enum": [3]}}}]}),
            "break oneOf",
        ),
        // Another value of the default lets users set c.
        (
            json!({"oneOf": [{"properties": {"b": {"enum": [2]}}, "not": {"required": ["c"]}},
                {"required": ["c"], "properties": {"b": {"enum": [3]}}}]}),
            "",
        ),
        (json!({"enum": [{"a": 1}, {"a": 1, "b": 3}, null]}), "break enum"),
        (json!({"enum": [{"a": 1}, {"a": 1, "b": 2.0}]}), ""),
        (json!({"allOf": [{"not": {"enum": [{"b": 2}]}}, {"enum": [{"a": 1}]}]}), "break allOf[1]"),
        (json!({"not": {"required": ["a", "c"]}}), ""),
        (json!({"required": ["b"], "not": {"required": ["a", "b"]}}), ""),
        (json!({"not": {"required": ["b"], "properties": {"b": {"enum": [3]}}}}), ""),
        (json!({"not": {"required": ["b", "x"]}}), ""),
        (
            json!({"not": {"required": ["b", "x"]}, "x-kubernetes-preserve-unknown-fields": true}),
            "exclude x by not",
        ),
        (
            json!({"maxProperties": 1, "x-kubernetes-preserve-unknown-fields": true}),
            "exclude a, c, d by maxProperties: 1",
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(found(schema.clone(), &["b"]), expected, "{schema}");
    }
    assert_eq!(
        found(json!({"anyOf": [{"maxProperties": 1}, {"minProperties": 5}]}), &["a", "b"]),
        "break anyOf"
    );
    assert_eq!(found(json!({"allOf": [{"maxProperties": 1}]}), &["a", "b"]), "break allOf[0]");
}
