mod broken_rule;
mod clauses;

use serde_json::{Value, json};

use super::*;

/// The findings on one version with this `spec` schema, in short: code, place, message.
fn found(spec: Value) -> Vec<String> {
    found_in(json!([{
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }]))
}

fn found_in(versions: Value) -> Vec<String> {
    let findings = lint(&Json::from(json!({"spec": {"versions": versions}}))).expect("a CRD");
    // What OpenAPI v2 lacks has tests of its own: most of these schemas lose something.
    let others = findings.iter().filter(|finding| finding.rule.code != "ETCH022");
    others.map(|Finding { rule, path, message, .. }| format!("{} {path} {message}", rule.code)).collect()
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// A case for each rule, and the most similar schema that the rule does not report.
#[test]
fn every_rule_finds_what_is_planted_and_nothing_else() {
    let cases = [
        (
            "ETCH001 .spec.a type: must not be empty for specified object fields",
            object(json!({"a": {"nullable": true}})),
            object(json!({"a": {"type": "string", "nullable": true}})),
        ),
        (
            "ETCH002 .spec.a the default is invalid: must be of type integer: \"string\"",
            object(json!({"a": {"type": "integer", "default": "1"}})),
            object(json!({"a": {"type": "integer", "default": 1}})),
        ),
        (
            "ETCH003 .spec.a the default has fields that the schema does not have",
            object(json!({"a": {"type": "object", "default": {"x": 1}}})),
            object(json!({
                "a": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true, "default": {"x": 1},
                },
            })),
        ),
        (
            "ETCH004 .spec.m{}.a the default is invalid: should be greater than or equal to 1; the server \
             accepts it, and refuses the objects that get it",
            object(json!({
                "m": {
                    "type": "object", "additionalProperties": object(json!({
                        "a": {"type": "integer", "minimum": 1, "default": 0},
                    })),
                },
            })),
            object(json!({
                "m": {
                    "type": "object", "additionalProperties": object(json!({
                        "a": {"type": "integer", "minimum": 1, "default": 1},
                    })),
                },
            })),
        ),
        (
            "ETCH004 .spec.a the default is invalid at [1]: the item is in the list twice; the server \
             accepts it, and refuses the objects that get it",
            object(json!({
                "a": {
                    "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
                    "default": [
                        "x", "x",
                    ],
                },
            })),
            object(json!({
                "a": {
                    "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
                    "default": [
                        "x", "y",
                    ],
                },
            })),
        ),
        (
            "ETCH004 .spec.a the default is invalid: must be of type integer,string: \"number\"; the server \
             accepts it, and refuses the objects that get it",
            object(json!({"a": {"x-kubernetes-int-or-string": true, "default": 1.5}})),
            object(json!({"a": {"x-kubernetes-int-or-string": true, "default": 1.0}})),
        ),
        (
            "ETCH004 .spec.a the default, with the defaults below it, is invalid: must have at most 1 item; \
             the server accepts it, and refuses the objects that get it",
            object(json!({"a": {"type": "object", "maxProperties": 1, "default": {"c": 1},
                "properties": {"b": {"type": "integer", "default": 2}, "c": {"type": "integer"}}}})),
            object(json!({"a": {"type": "object", "maxProperties": 2, "default": {"c": 1},
                "properties": {"b": {"type": "integer", "default": 2}, "c": {"type": "integer"}}}})),
        ),
        (
            "ETCH005 .spec.a.b the default 1 applies only if .spec.a is present, which is optional and has \
             no default",
            object(json!({"a": object(json!({"b": {"type": "integer", "default": 1}}))})),
            object(json!({
                "a": {
                    "type": "object", "default": {}, "properties": {
                        "b": {"type": "integer", "default": 1},
                    },
                },
            })),
        ),
        (
            "ETCH006 .spec.a.b the default is 1, but 2 if .spec.a is absent",
            object(json!({
                "a": {
                    "type": "object", "default": {"b": 2}, "properties": {
                        "b": {"type": "integer", "default": 1},
                    },
                },
            })),
            object(json!({
                "a": {
                    "type": "object", "default": {"b": 1}, "properties": {
                        "b": {"type": "integer", "default": 1},
                    },
                },
            })),
        ),
        (
            "ETCH007 .spec.a the field is required, which its default makes meaningless",
            json!({
                "type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}},
            }),
            json!({
                "type": "object", "required": ["b"], "properties": {
                    "a": {"type": "string", "default": "x"}, "b": {"type": "string"},
                },
            }),
        ),
        (
            "ETCH008 .spec.l[].k a key of the list's items has the default \"x\"",
            object(json!({"l": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                "items": object(json!({"k": {"type": "string", "default": "x"}}))}})),
            object(json!({"l": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["protocol", "name"],
                "items": object(json!({"protocol": {"type": "string", "default": "TCP"},
                    "name": {"type": "string", "default": ""},
                    "k": {"type": "string", "default": "x"}}))}})),
        ),
        (
            "ETCH010 .spec.a the field is nullable, and the default does not replace a null",
            object(json!({"a": {"type": "string", "nullable": true, "default": "x"}})),
            object(
                json!({"a": {"type": "string", "nullable": true}, "b": {"type": "string", "default": "x"}}),
            ),
        ),
        (
            "ETCH011 .spec.a anyOf[0].default has no effect, and the server refuses it",
            object(json!({"a": {"type": "integer", "anyOf": [{"default": 1}]}})),
            object(json!({"a": {"type": "integer", "default": 1, "anyOf": [{"minimum": 1}]}})),
        ),
        (
            "ETCH012 .spec.image the default is an image with a tag",
            object(json!({"image": {"type": "string", "default": "rabbitmq:4.1.3-management"}})),
            object(json!({"image": {"type": "string", "default": "rabbitmq"}})),
        ),
        (
            "ETCH013 .spec its defaults break a rule: failed rule: self.min <= self.max",
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.min <= self.max"}],
                "properties": {
                "min": {"type": "integer", "default": 10}, "max": {"type": "integer", "default": 5}}}),
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.min <= self.max"},
                {"rule": "has(self.other)"}],
                "properties": {"min": {"type": "integer", "default": 1},
                    "max": {"type": "integer", "default": 5}, "other": {"type": "string"}}}),
        ),
        (
            "ETCH014 .spec.a a rule of .spec compares the field with its old value",
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a == oldSelf.a"}],
                "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.b == oldSelf.b"}],
                "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "string"}}}),
        ),
        (
            "ETCH016 .spec.l[].a the default is null; the server ignores it",
            object(json!({
                "l": {
                    "type": "array", "items": object(json!({"a": {"type": "string", "default": null}})),
                },
            })),
            object(json!({
                "l": {
                    "type": "array", "items": object(json!({
                        "a": {"type": "string", "default": ""}, "default": {"type": "string"},
                    })),
                },
            })),
        ),
        (
            "ETCH017 .spec.l[].k the key of the list's items is neither required nor has a default",
            object(json!({"l": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                "items": object(json!({"k": {"type": "string"}}))}})),
            object(json!({"l": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k", "protocol"],
                "items": {"type": "object", "required": ["k"],
                    "properties": {"k": {"type": "string"},
                        "protocol": {"type": "string", "default": "TCP"}}}}})),
        ),
        (
            "ETCH018 .spec.l[] the default \"apple\" applies only if an item of the list is null",
            object(json!({"l": {"type": "array", "items": {"type": "string", "default": "apple"}}})),
            object(json!({
                "l": {"type": "array", "default": ["apple"], "items": {"type": "string", "default": ""}},
            })),
        ),
        (
            "ETCH018 .spec.m{} the default \"banana\" applies only if a value of the map is null",
            object(json!({
                "m": {"type": "object", "additionalProperties": {"type": "string", "default": "banana"}},
            })),
            object(json!({"m": {"type": "object", "additionalProperties": {"type": "string"}}})),
        ),
        (
            "ETCH019 .spec.l[] the object may be null, which hides the defaults of its fields, such as b",
            object(json!({"l": {"type": "array", "items":
                {"type": "object", "nullable": true,
                    "properties": {"b": {"type": "integer", "default": 1}}}}})),
            object(json!({"l": {"type": "array", "items":
                {"type": "object", "nullable": true,
                    "properties": {"b": {"type": "integer", "default": 0}}}}})),
        ),
        (
            "ETCH020 .spec.a the object is required though its defaults make it complete; it has no default \
             of its own",
            json!({"type": "object", "required": ["a"],
                "properties": {"a": object(json!({"b": {"type": "integer", "default": 1}}))}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "object",
                "x-kubernetes-validations": [{"rule": "has(self.c)"}],
                "properties": {"b": {"type": "integer", "default": 1}, "c": {"type": "string"}}}}}),
        ),
    ];
    for (expected, broken, clean) in cases {
        assert_eq!(found(broken), [expected]);
        assert_eq!(found(clean), [""; 0], "beside {expected}");
    }
}

#[test]
fn versions_are_compared_with_the_storage_version() {
    let version = |name: &str, storage: bool, spec: Value| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": object(json!({"spec": object(spec)}))}})
    };
    let text = |default: Option<&str>| match default {
        Some(default) => json!({"type": "string", "default": default}),
        None => json!({"type": "string"}),
    };
    let storage = version(
        "v1",
        true,
        json!({"a": text(Some("x")), "b": text(Some("x")), "c": text(None), "same": text(Some("x"))}),
    );
    let other = version(
        "v2",
        false,
        json!({
            "a": text(Some("y")), "b": text(None), "c": text(Some("z")), "same": text(Some("x")),
            "new": text(Some("x")),
        }),
    );
    assert_eq!(
        found_in(json!([storage, other])),
        [
            "ETCH009 .spec.a the default is \"y\", but \"x\" at the storage version v1",
            "ETCH009 .spec.b there is no default; at the storage version v1 it is \"x\"",
            "ETCH009 .spec.c the default is \"z\"; the storage version v1 has none",
        ]
    );
}

#[test]
fn a_version_that_keeps_what_it_does_not_know_has_no_place_for_a_default() {
    let version = |name: &str, storage: bool, spec: Value| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": object(json!({"spec": spec}))}})
    };
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let reported = object(
        json!({"list": {"type": "array", "items": object(json!({"a": {"type": "integer", "default": 1}}))}}),
    );
    assert_eq!(
        found_in(json!([version("v1", true, reported.clone()), version("v2", false, open.clone())])),
        [""; 0]
    );
    assert_eq!(found_in(json!([version("v1", true, open), version("v2", false, reported)])), [""; 0]);
}

#[test]
fn a_schema_that_cannot_be_read_is_a_finding() {
    let found = found(json!({"type": "object", "properties": {"a": {"type": 1}}}));
    assert_eq!(
        found,
        ["ETCH001 .spec.a the schema cannot be read: openAPIV3Schema.properties[spec].properties[a].type: \
             must be a string"]
    );
}

#[test]
fn an_object_lacks_a_required_field_even_where_that_has_a_default() {
    let found = found(object(json!({"a": {"type": "object", "default": {}, "required": ["b"],
        "properties": {"b": {"type": "integer", "default": 1}}}})));
    assert!(
        found.iter().any(|text| text
            == "ETCH006 .spec.a the default lacks b, which is required; its own default is not counted"),
        "{found:?}"
    );
    assert!(
        found.iter().any(|text| text.starts_with("ETCH002 .spec.a the default is invalid at b: ")),
        "{found:?}"
    );
}

#[test]
fn no_default_is_advised_that_the_server_refuses() {
    let with = |inner: Value| found(json!({"type": "object", "required": ["a"], "properties": {"a": inner}}));
    let refused =
        json!({"type": "object", "required": ["b"], "properties": {"b": {"type": "integer", "default": 1}}});
    assert!(!with(refused).iter().any(|text| text.starts_with("ETCH020")));
    let rule = json!({"type": "object", "x-kubernetes-validations": [{"rule": "has(self.b)"}],
        "properties": {"b": {"type": "integer", "default": 1}}});
    assert!(!with(rule).iter().any(|text| text.starts_with("ETCH020")));
}

#[test]
fn schemas_beyond_measure_are_refused() {
    let nested =
        |levels: usize| (0..levels).fold(json!({"type": "string"}), |below, _| object(json!({"a": below})));
    let lint = |levels: usize| {
        let version = json!({
            "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": nested(levels)},
        });
        lint(&Json::from(json!({"spec": {"versions": [version]}})))
    };
    assert!(lint(299).is_ok_and(|findings| findings.is_empty()));
    let error = lint(300).expect_err("too deep").to_string();
    assert_eq!(error, "the schema of version v1 is nested more than 300 levels deep");
}

#[test]
fn codes_are_in_order_and_every_rule_has_help() {
    let codes = (1..=RULES.len()).chain(101..=100 + GO_RULES.len());
    for (code, rule) in codes.zip(rules()) {
        assert_eq!(rule.code, format!("ETCH{code:03}"));
        assert!(
            !rule.help.is_empty() && rule.help.lines().all(|line| line.chars().count() <= 125),
            "{}",
            rule.code
        );
        let found = [rule.code.to_lowercase(), rule.name.to_owned()]
            .map(|name| super::rule(&name).expect("known").code);
        assert_eq!(found, [rule.code; 2]);
    }
}
