//! Defaults, by themselves and with those below them.

use super::*;

#[test]
fn defaults_below_additional_properties_are_told_apart() {
    let wrong = json!({"type": "integer", "default": "1"});
    let map = |values: &Value| json!({"type": "object", "additionalProperties": values});
    let list = json!({"type": "array", "items": {"type": "object", "properties": {"n": wrong}}});
    let DefaultFindings { by_server, beyond_server, either, sites, spoiled } = defaults(&schema(&json!({
        "type": "object",
        "properties": {"seen": wrong, "map": map(&wrong), "deep": map(&list), "fine": map(&json!({
            "type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer", "default": 2}},
        })), "unpruned": map(&json!({"type": "object", "default": {"b": 1}}))},
    })));
    assert_eq!(
        shown(&by_server),
        [
            "TypeInvalid openAPIV3Schema.properties[seen].default:  in body must be of type integer: \"string\""
        ]
    );
    assert_eq!(
        shown(&beyond_server),
        [
            "TypeInvalid openAPIV3Schema.properties[deep].additionalProperties.items.properties[n].default:  \
             in body must be of type integer: \"string\"",
            "TypeInvalid openAPIV3Schema.properties[map].additionalProperties.default:  in body must be of \
             type integer: \"string\"",
            "Invalid openAPIV3Schema.properties[unpruned].additionalProperties.default: must not have \
             unknown fields",
        ]
    );
    assert!(either.is_empty() && spoiled.is_empty());
    let sites: Vec<_> = sites.iter().map(ToString::to_string).collect();
    assert_eq!(sites, [".deep{}[].n", ".map{}", ".seen", ".unpruned{}"]);
}

/// What objects get is judged: the server accepts each of these.
#[test]
fn a_default_is_judged_with_the_defaults_below_it() {
    let integer = |default: i64| json!({"type": "integer", "default": default});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let with = |mut schema: Value, keywords: Value| {
        schema.as_object_mut().expect("a schema").extend(keywords.as_object().expect("keywords").clone());
        schema
    };
    let set = |items: Value, default: Value| {
        json!({
            "type": "array", "x-kubernetes-list-type": "set", "items": items, "default": default,
        })
    };
    let map = |keys: Value, item: Value, default: Value| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": item, "default": default})
    };
    let int_or_string = |default: Value| json!({"x-kubernetes-int-or-string": true, "default": default});
    let text = json!({"type": "string"});
    let inner = set(text.clone(), json!(["b", "b"]));
    let cases = [
        // Sets and list maps, wherever they stand.
        (set(text.clone(), json!(["a", "a"])), &["Duplicate default[1]"][..], &[".d"][..]),
        (set(text.clone(), json!(["a", "b"])), &[], &[]),
        (
            object(json!({"in": set(text.clone(), json!(["a", "a"])), "x": {"type": "integer"}})),
            &["Duplicate properties[in].default[1]"],
            &[".d.in"],
        ),
        (
            with(
                object(
                    json!({"in": json!({"type": "array", "x-kubernetes-list-type": "set", "items": text})}),
                ),
                json!({"default": {"in": ["a", "b", "a"]}}),
            ),
            &["Duplicate default.in[2]"],
            &[".d"],
        ),
        (
            json!({"type": "array", "items": inner.clone(), "default": [["a"], ["c", "c"]]}),
            &["Duplicate default[1][1]", "Duplicate items.default[1]"],
            &[".d", ".d[]"],
        ),
        (
            map(
                json!(["k"]),
                object(json!({"k": {"type": "string", "default": "x"}})),
                json!([{}, {"k": "x"}]),
            ),
            &["Duplicate default[1]"],
            &[".d"],
        ),
        (
            map(
                json!(["k", "p"]),
                object(json!({"k": text, "p": {"type": "string", "default": "T"}})),
                json!([{"k": "a"}, {"k": "a", "p": "U"}]),
            ),
            &[],
            &[],
        ),
        // A whole that breaks what each part keeps.
        (
            with(
                object(json!({"a": {"type": "integer"}, "b": integer(2)})),
                json!({"maxProperties": 1, "default": {"a": 1}}),
            ),
            &["TooMany default"],
            &[".d"],
        ),
        (
            with(
                object(json!({"a": {"type": "integer"}, "b": integer(2)})),
                json!({"not": {"required": ["a", "b"]}, "default": {"a": 1}}),
            ),
            &["Invalid default"],
            &[".d"],
        ),
        (
            with(
                object(json!({"a": {"type": "integer"}, "b": integer(2)})),
                json!({"x-kubernetes-validations": [{"rule": "!has(self.b) || \
                    !has(self.a)"}], "default": {"a": 1}}),
            ),
            &["Invalid default"],
            &[".d"],
        ),
        (
            json!({
                "type": "array", "uniqueItems": true, "default": [{}, {"b": 2}], "items": object(json!({
                    "b": integer(2),
                })),
            }),
            &["Invalid default"],
            &[".d"],
        ),
        (
            json!({"type": "object", "additionalProperties": object(json!({"p": {"type": "integer",
                "minimum": 1, "default": 0}})),
                "default": {"a": {}}}),
            &["Invalid additionalProperties.properties[p].default"],
            &[".d{}.p"],
        ),
        // A whole that keeps what its part breaks.
        (
            json!({"type": "object",
                "additionalProperties": with(object(json!({"w": with(object(json!({"n": integer(1)})),
                json!({"required": ["n"], "default": {}}))})), json!({}))}),
            &[],
            &[],
        ),
        // The type of an int-or-string, wherever it stands.
        (int_or_string(json!(1.5)), &["TypeInvalid default"], &[".d"]),
        (int_or_string(json!(true)), &["TypeInvalid default"], &[".d"]),
        (int_or_string(json!("80%")), &[], &[]),
        (int_or_string(json!(80)), &[], &[]),
        (
            json!({"type": "array", "items": {"x-kubernetes-int-or-string": true}, "default": [1, "x", 1.5]}),
            &["TypeInvalid default.[2]"],
            &[".d"],
        ),
        (
            with(
                object(json!({"p": {"x-kubernetes-int-or-string": true}})),
                json!({"default": {"p": false}}),
            ),
            &["TypeInvalid default.p"],
            &[".d"],
        ),
        // Formats that the server checks in defaults, and in no object.
        (json!({"type": "object", "format": "int16", "default": "x"}), &["TypeInvalid default"], &[".d"]),
        (
            json!({"type": "integer", "not": {"format": "uint64"}, "default": 3}),
            &["Invalid default"],
            &[".d"],
        ),
        (json!({"type": "integer", "format": "int64", "default": 3}), &[], &[]),
        // What is never filled in.
        (
            json!({
                "type": "object", "additionalProperties": {
                    "type": "integer", "nullable": true, "default": "1",
                },
            }),
            &[],
            &[],
        ),
    ];
    for (document, expected, places) in cases {
        let found = defaults(&schema(&object(json!({"d": document}))));
        assert!(found.by_server.is_empty(), "{document}: {:?}", found.by_server);
        let prefix = "openAPIV3Schema.properties[d].";
        let short = found.beyond_server.iter().map(|finding| {
            let field = finding.field.strip_prefix(prefix).unwrap_or(&finding.field);
            format!("{:?} {field}", finding.kind)
        });
        let mut short: Vec<String> = short.collect();
        short.sort();
        assert_eq!(short, expected, "{document}");
        let sites: Vec<_> = found.sites.iter().map(ToString::to_string).collect();
        assert_eq!(sites, places, "{document}");
    }
}

#[test]
fn a_default_that_gets_a_wrong_one_inside_is_told_apart() {
    let found = defaults(&schema(&json!({"type": "object", "properties": {
        "m": {"type": "object", "default": {"a": {}}, "additionalProperties": {
            "type": "object", "properties": {"p": {"type": "integer", "minimum": 1, "default": 0}}}},
        "n": {"type": "object", "default": {"a": {"p": 7}}, "additionalProperties": {
            "type": "object", "properties": {"p": {"type": "integer", "minimum": 1, "default": 0}}}},
    }})));
    let places = |paths: &[Path]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(places(&found.sites), [".m{}.p", ".n{}.p"]);
    assert_eq!(places(&found.spoiled), [".m"]);
}

#[test]
fn a_default_for_the_whole_object_that_is_none_is_wrong() {
    let found = defaults(&schema(&json!({"type": "object", "format": "byte", "default": [1]})));
    assert!(found.by_server.is_empty(), "{:?}", found.by_server);
    let sites: Vec<_> = found.sites.iter().map(ToString::to_string).collect();
    assert_eq!((found.beyond_server.len(), sites), (1, vec![".".to_owned()]));
}

#[test]
fn defaults_that_multiply_are_not_built() {
    let mut document = json!({"type": "object"});
    for _ in 0..64 {
        let map = json!({"type": "object", "default": {"a": {}, "b": {}}, "additionalProperties": document});
        document = json!({"type": "object", "properties": {"x": map}});
    }
    let found = defaults(&schema(&document));
    assert!(found.sites.is_empty(), "{found:?}");
}

#[test]
fn a_value_is_judged_as_a_default() {
    let document =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "default": 1}}});
    assert_eq!(shown(&default(&schema(&document), &json!({}))), ["Required <nil>.a: "]);
    assert_eq!(shown(&default(&schema(&document), &json!({"a": 2}))), [""; 0]);
}
