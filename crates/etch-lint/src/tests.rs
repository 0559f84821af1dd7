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

/// Rules about fields with defaults, however they name them.
#[test]
fn rules_that_defaults_break_are_found_by_what_they_read() {
    let found = |rule: Value, fields: Value| {
        let mut schema = object(fields);
        schema["x-kubernetes-validations"] = json!([rule]);
        let found = found(object(json!({"o": schema, "other": {"type": "string"}})));
        let of_rules =
            found.into_iter().filter_map(|line| Some(line.strip_prefix("ETCH013 .spec.o ")?.to_owned()));
        of_rules.collect::<Vec<_>>()
    };
    let int = |default: i64| json!({"type": "integer", "default": default});
    let free = || json!({"type": "integer"});
    let limits = || json!({"min": int(10), "max": int(5)});
    let with = |mut fields: Value, name: &str| {
        fields[name] = free();
        fields
    };
    let dashed = || json!({"min-size": int(10), "max-size": int(5)});
    let reserved = || json!({"namespace": int(10), "in": int(5)});
    let broken = [
        ("self.min <= self.max", limits()),
        ("self.?min.orValue(0) <= self.?max.orValue(9)", limits()),
        ("!has(self.min) || !has(self.max) || self.min <= self.max", limits()),
        ("self.min <= self.max || 'self.z' == ''", with(limits(), "z")),
        ("[self].all(s, s.min <= s.max)", with(limits(), "z")),
        ("optional.of(self).optMap(s, s.min <= s.max).orValue(true)", with(limits(), "z")),
        ("{'o': self}['o'].min <= (true ? self : self).max", with(limits(), "z")),
        ("has(self.z) ? self.min <= self.max : self.min < self.max", with(limits(), "z")),
        ("self.?z.hasValue() ? self.min <= self.max : self.min < self.max", with(limits(), "z")),
        ("!has(self.min__dash__size) || self.min__dash__size <= self.max__dash__size", dashed()),
        ("self.?min__dash__size.orValue(0) <= self.max__dash__size", dashed()),
        ("self.__namespace__ <= self.__in__", reserved()),
        ("self.namespace <= self.?__in__.orValue(9)", reserved()),
    ];
    for (rule, fields) in broken {
        let expected = [format!("its defaults break a rule: failed rule: {rule}")];
        assert_eq!(found(json!({"rule": rule}), fields), expected, "{rule}");
    }
    let x = || json!({"x": int(1), "z": free(), "w": free()});
    let excluded = [
        ("!(has(self.x) && has(self.z))", "z"),
        ("!has(self.z) || !self.?x.hasValue()", "z"),
        ("[has(self.x), has(self.z), has(self.w)].exists_one(is, is)", "z, w"),
        ("(has(self.x) ? 1 : 0) + (has(self.z) ? 1 : 0) + (has(self.w) ? 1 : 0) <= 1", "z, w"),
        ("!(has(self.z) && has(self.w)) || !has(self.x)", ""),
    ];
    for (rule, names) in excluded {
        let lines: &[String] = &found(json!({"rule": rule}), x());
        match names {
            "" => assert_eq!(lines, [""; 0], "{rule}"),
            _ => assert_eq!(lines, [format!("its defaults exclude {names} by a rule: {rule}")]),
        }
    }
    let passing = [
        // A user may have to set another field, or can set it to something that passes.
        ("has(self.z)", with(limits(), "z")),
        ("self.min <= self.max || has(self.z)", with(limits(), "z")),
        ("self.min <= self.?z.orValue(5)", with(limits(), "z")),
        ("self.min <= self.max && self == self", with(limits(), "z")),
        ("[self].exists(s, s.min <= s.max || dyn(s).?z.hasValue())", with(limits(), "z")),
        ("[dyn(self)].all(s, s.min <= s.max)", with(limits(), "z")),
        // It is about values: another one of the field with the default passes.
        ("self.min != 10 || !has(self.z)", with(limits(), "z")),
        // The field can never be set, with the default or without it.
        ("has(self.min) && !has(self.z)", with(limits(), "z")),
        ("!has(self.z) || has(self.w)", x()),
        ("!has(self.z) || self.z > 0 || !has(self.x)", x()),
        ("self.min >= self.max", limits()),
    ];
    for (rule, fields) in passing {
        assert_eq!(found(json!({"rule": rule}), fields), [""; 0], "{rule}");
    }
    let message = json!({"rule": "self.min <= self.max", "message": " no ", "messageExpression": "string(self.min) + ' is more'"});
    assert_eq!(found(message, limits()), ["its defaults break a rule: 10 is more"]);
    let twice = json!({"rule": "self.min <= self.max", "reason": "FieldValueDuplicate"});
    assert_eq!(found(twice, limits()), ["its defaults break a rule: self.min <= self.max"]);
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
            object(
                json!({"a": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "default": {"x": 1}}}),
            ),
        ),
        (
            "ETCH004 .spec.m{}.a the default is invalid: should be greater than or equal to 1; the server accepts it, and refuses \
             the objects that get it",
            object(
                json!({"m": {"type": "object", "additionalProperties": object(json!({"a": {"type": "integer", "minimum": 1, "default": 0}}))}}),
            ),
            object(
                json!({"m": {"type": "object", "additionalProperties": object(json!({"a": {"type": "integer", "minimum": 1, "default": 1}}))}}),
            ),
        ),
        (
            "ETCH004 .spec.a the default is invalid at [1]: the item is in the list twice; the server accepts it, and refuses the \
             objects that get it",
            object(
                json!({"a": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "default": ["x", "x"]}}),
            ),
            object(
                json!({"a": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "default": ["x", "y"]}}),
            ),
        ),
        (
            "ETCH004 .spec.a the default is invalid: must be of type integer,string: \"number\"; the server accepts it, and refuses the \
             objects that get it",
            object(json!({"a": {"x-kubernetes-int-or-string": true, "default": 1.5}})),
            object(json!({"a": {"x-kubernetes-int-or-string": true, "default": 1.0}})),
        ),
        (
            "ETCH004 .spec.a the default, with the defaults below it, is invalid: must have at most 1 item; the server accepts it, and \
             refuses the objects that get it",
            object(json!({"a": {"type": "object", "maxProperties": 1, "default": {"c": 1},
                "properties": {"b": {"type": "integer", "default": 2}, "c": {"type": "integer"}}}})),
            object(json!({"a": {"type": "object", "maxProperties": 2, "default": {"c": 1},
                "properties": {"b": {"type": "integer", "default": 2}, "c": {"type": "integer"}}}})),
        ),
        (
            "ETCH005 .spec.a.b the default 1 applies only if .spec.a is present, which is optional and has no default",
            object(json!({"a": object(json!({"b": {"type": "integer", "default": 1}}))})),
            object(
                json!({"a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 1}}}}),
            ),
        ),
        (
            "ETCH006 .spec.a.b the default is 1, but 2 if .spec.a is absent",
            object(
                json!({"a": {"type": "object", "default": {"b": 2}, "properties": {"b": {"type": "integer", "default": 1}}}}),
            ),
            object(
                json!({"a": {"type": "object", "default": {"b": 1}, "properties": {"b": {"type": "integer", "default": 1}}}}),
            ),
        ),
        (
            "ETCH007 .spec.a the field is required, which its default makes meaningless",
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({"type": "object", "required": ["b"], "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "string"}}}),
        ),
        (
            "ETCH008 .spec.l[].k a key of the list's items has the default \"x\"",
            object(
                json!({"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": object(json!({"k": {"type": "string", "default": "x"}}))}}),
            ),
            object(
                json!({"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["protocol", "name"],
                "items": object(json!({"protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string", "default": ""},
                    "k": {"type": "string", "default": "x"}}))}}),
            ),
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
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.min <= self.max"}], "properties": {
                "min": {"type": "integer", "default": 10}, "max": {"type": "integer", "default": 5}}}),
            json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.min <= self.max"}, {"rule": "has(self.other)"}],
                "properties": {"min": {"type": "integer", "default": 1}, "max": {"type": "integer", "default": 5}, "other": {"type": "string"}}}),
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
            object(
                json!({"l": {"type": "array", "items": object(json!({"a": {"type": "string", "default": null}}))}}),
            ),
            object(
                json!({"l": {"type": "array", "items": object(json!({"a": {"type": "string", "default": ""}, "default": {"type": "string"}}))}}),
            ),
        ),
        (
            "ETCH017 .spec.l[].k the key of the list's items is neither required nor has a default",
            object(
                json!({"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": object(json!({"k": {"type": "string"}}))}}),
            ),
            object(
                json!({"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "protocol"],
                "items": {"type": "object", "required": ["k"],
                    "properties": {"k": {"type": "string"}, "protocol": {"type": "string", "default": "TCP"}}}}}),
            ),
        ),
        (
            "ETCH018 .spec.l[] the default \"apple\" applies only if an item of the list is null",
            object(json!({"l": {"type": "array", "items": {"type": "string", "default": "apple"}}})),
            object(
                json!({"l": {"type": "array", "default": ["apple"], "items": {"type": "string", "default": ""}}}),
            ),
        ),
        (
            "ETCH018 .spec.m{} the default \"banana\" applies only if a value of the map is null",
            object(
                json!({"m": {"type": "object", "additionalProperties": {"type": "string", "default": "banana"}}}),
            ),
            object(json!({"m": {"type": "object", "additionalProperties": {"type": "string"}}})),
        ),
        (
            "ETCH019 .spec.l[] the object may be null, which hides the defaults of its fields, such as b",
            object(json!({"l": {"type": "array", "items":
                {"type": "object", "nullable": true, "properties": {"b": {"type": "integer", "default": 1}}}}})),
            object(json!({"l": {"type": "array", "items":
                {"type": "object", "nullable": true, "properties": {"b": {"type": "integer", "default": 0}}}}})),
        ),
        (
            "ETCH020 .spec.a the object is required though its defaults make it complete; it has no default of its own",
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
        json!({"a": text(Some("y")), "b": text(None), "c": text(Some("z")), "same": text(Some("x")), "new": text(Some("x"))}),
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
    let told = object(
        json!({"list": {"type": "array", "items": object(json!({"a": {"type": "integer", "default": 1}}))}}),
    );
    assert_eq!(
        found_in(json!([version("v1", true, told.clone()), version("v2", false, open.clone())])),
        [""; 0]
    );
    assert_eq!(found_in(json!([version("v1", true, open), version("v2", false, told)])), [""; 0]);
}

#[test]
fn a_schema_that_cannot_be_read_is_a_finding() {
    let found = found(json!({"type": "object", "properties": {"a": {"type": 1}}}));
    assert_eq!(
        found,
        [
            "ETCH001 .spec.a the schema cannot be read: openAPIV3Schema.properties[spec].properties[a].type: must be a string"
        ]
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
        let properties = json!({"a": {"type": "integer", "default": 1}, "b": {"type": "integer"}, "c": {"type": "integer"},
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
            json!({"not": {"anyOf": [{"required": ["a", "b"]}, {"required": ["b", "c"]}, {"required": ["a", "c"]}]}}),
            "exclude a, c by not",
        ),
        (json!({"allOf": [{}, {"not": {"required": ["a", "b"]}}]}), "exclude a by allOf[1]"),
        (json!({"oneOf": [only("a", "b"), only("b", "a")]}), "exclude a by oneOf"),
        (json!({"anyOf": [only("a", "b"), only("b", "a")]}), "exclude a by anyOf"),
        (json!({"allOf": [{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}]}), "exclude a by allOf[0]"),
        (
            json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"], "properties": {"c": {"minimum": 1}}}]}),
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

#[test]
fn defaults_with_which_a_rule_cannot_be_evaluated_are_found() {
    let found = |rule: &str, fields: Value| {
        let mut schema = object(fields);
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let found = found(object(json!({"o": schema})));
        let start = "ETCH013 .spec.o its defaults make a rule fail: ";
        found
            .iter()
            .filter_map(|line| Some(line.strip_prefix(start)?.to_owned()))
            .collect::<Vec<_>>()
            .join("; ")
    };
    let text = |default: &str| json!({"s": {"type": "string", "default": default}, "z": {"type": "integer"}});
    let int = |default: i64| json!({"type": "integer", "default": default});
    let port = |default: Value| json!({"p": {"x-kubernetes-int-or-string": true, "default": default}});
    let list = |items: &str, default: Value| json!({"l": {"type": "array", "items": {"type": items}, "default": default}});
    let failing = [
        ("duration(self.s) > duration('1s')", text("1d"), "type conversion error"),
        ("quantity(self.s).isGreaterThan(quantity('1'))", text("1x"), ""),
        ("url(self.s).getHost() == 'a'", text("::"), ""),
        ("ip(self.s).family() == 4", text(""), ""),
        ("timestamp(self.s) > timestamp('2020-01-01T00:00:00Z')", text("ab"), ""),
        ("int(self.s) > 5", text("abc"), ""),
        ("has(self.z) || int(self.s) > 5", text("abc"), "never"),
        ("!has(self.z) && int(self.s) > 5", text("abc"), ""),
        ("int(self.p) > 5", port(json!("80%")), ""),
        ("self.p > 5", port(json!("80")), "'no such overload'"),
        (
            "self.a / self.b > 0",
            json!({"a": int(1), "b": int(0)}),
            "division by zero evaluating rule: self.a / self.b > 0",
        ),
        ("self.a % self.b > 0", json!({"a": int(1), "b": int(0)}), "modulus by zero"),
        ("self.a + 1 > self.a", json!({"a": int(i64::MAX)}), ""),
        ("self.l[0] == 'x'", list("string", json!([])), "index out of bounds: 0"),
        ("self.l.max() == 5", list("integer", json!([])), ""),
        ("self.s.substring(3) == ''", text("ab"), ""),
        ("self.s.charAt(3) == ''", text("ab"), ""),
        (
            "self.l.all(x, x.b == 2)",
            json!({"l": {"type": "array", "default": [{}], "items": {"type": "object", "properties": {"b": {"type": "integer"}}}}}),
            "no such key: b",
        ),
        // A user must or may set what is missing.
        ("self.a / self.z > 0", json!({"a": int(0), "z": {"type": "integer"}}), "never"),
        ("int(self.s) + self.z > 5", text("abc"), "never"),
        ("int('x') > 5", text("abc"), "never"),
        ("int(self.s) > 5", text("6"), "never"),
        ("self.a / self.b > 0 || self.a == 1", json!({"a": int(1), "b": int(0)}), "never"),
    ];
    for (rule, fields, start) in failing {
        let line = found(rule, fields);
        match start {
            "never" => assert_eq!(line, "", "{rule}"),
            start => assert!(!line.is_empty() && line.starts_with(start), "{rule}: {line}"),
        }
    }
    // The object that is required may have the key.
    let inner = json!({"type": "object", "properties": {"x": {"type": "integer"}, "y": int(0)}});
    let around = json!({"type": "object", "required": ["o"], "properties": {"o": inner},
        "x-kubernetes-validations": [{"rule": "self.o.x > 3"}, {"rule": "1 / self.o.y > 3"}]});
    let lines = super::tests::found(around);
    let of_rules: Vec<_> = lines.iter().filter(|line| line.starts_with("ETCH013")).collect();
    assert_eq!(
        of_rules,
        ["ETCH013 .spec its defaults make a rule fail: division by zero evaluating rule: 1 / self.o.y > 3"]
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
fn a_rule_may_ask_for_a_field_unless_the_object_comes_by_itself() {
    let with = |default: Option<Value>| {
        let mut a = json!({"type": "object",
            "x-kubernetes-validations": [{"rule": "self.mode != 'tls' || has(self.secret)", "message": "no secret"}],
            "properties": {"mode": {"type": "string", "default": "tls"}, "secret": {"type": "string"}}});
        if let Some(default) = default {
            a["default"] = default;
        }
        found(json!({"type": "object", "properties": {"a": a}}))
    };
    assert!(!with(None).iter().any(|text| text.starts_with("ETCH013")));
    assert!(
        with(Some(json!({}))).contains(&"ETCH013 .spec.a its defaults break a rule: no secret".to_owned())
    );
}

#[test]
fn a_rule_may_ask_for_the_name_of_a_reference() {
    let reference = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.name != ''"}],
        "properties": {"name": {"type": "string", "default": ""}}});
    assert_eq!(found(object(json!({"a": reference}))), [""; 0]);
    let other = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.zone != ''"}],
        "properties": {"zone": {"type": "string", "default": ""}}});
    assert_eq!(found(other), ["ETCH013 .spec its defaults break a rule: failed rule: self.zone != ''"]);
}

#[test]
fn schemas_beyond_measure_are_refused() {
    let nested =
        |levels: usize| (0..levels).fold(json!({"type": "string"}), |below, _| object(json!({"a": below})));
    let lint = |levels: usize| {
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": nested(levels)}});
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
