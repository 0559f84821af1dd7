//! Schemas in short, and where a default of theirs can break what stands around it.

use serde_json::{Value, json};

use super::BreakableScopes;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;

/// The places in a schema whose `spec` is this.
fn scopes(spec: &Value) -> Vec<String> {
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    let breakable = BreakableScopes::of(&Schema::parse(&schema).expect("an accepted schema"));
    breakable.scopes().iter().map(Path::to_string).collect()
}

/// A spec with a default at `d`, and more keywords.
fn with_default(more: &Value) -> Value {
    let mut spec =
        json!({ "type": "object", "properties": { "d": { "type": "integer", "default": 5 }, "e": {} } });
    for (name, value) in more.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    spec
}

#[test]
fn what_speaks_of_a_value_as_a_whole_can_be_broken_by_a_default_below() {
    for more in [
        json!({ "x-kubernetes-validations": [{ "rule": "self.d < 3" }] }),
        json!({ "maxProperties": 1 }),
        json!({ "enum": [{ "e": 1 }] }),
        json!({ "allOf": [{ "properties": { "d": { "maximum": 3 } } }] }),
        json!({ "anyOf": [{ "required": ["e"] }] }),
        json!({ "oneOf": [{ "required": ["d"] }, { "required": ["e"] }] }),
        json!({ "not": { "required": ["d"] } }),
    ] {
        assert_eq!(scopes(&with_default(&more)), [".spec"], "{more}");
    }
}

#[test]
fn what_a_field_that_appears_cannot_break_is_no_scope() {
    for more in
        [json!({}), json!({ "required": ["e"] }), json!({ "minProperties": 1 }), json!({ "nullable": true })]
    {
        assert_eq!(scopes(&with_default(&more)), [""; 0], "{more}");
    }
    let ranges = json!({ "type": "object", "properties": {
        "d": {
            "type": "integer", "default": 5, "maximum": 9, "x-kubernetes-validations": [{
                "rule": "self < 9",
            }],
        },
        "l": {
            "type": "array", "maxItems": 1, "items": {
                "type": "object", "properties": { "p": { "default": 1 } },
            },
        },
        "strict": { "type": "object", "maxProperties": 1, "properties": { "x": { "type": "integer" } },
            "x-kubernetes-validations": [{ "rule": "true" }] },
        "whole": {
            "type": "object", "default": {}, "maxProperties": 1, "properties": { "x": { "type": "integer" } },
        },
    } });
    assert_eq!(
        scopes(&ranges),
        [""; 0],
        "each default is judged with its own restrictions, and siblings see none"
    );
}

#[test]
fn only_the_topmost_places_count() {
    let rule = json!([{ "rule": "true" }]);
    let inner = with_default(&json!({ "x-kubernetes-validations": rule }));
    let both = json!({ "type": "object", "properties": {
        "a": { "type": "object", "x-kubernetes-validations": rule, "properties": { "b": inner } },
        "c": { "type": "array", "items": inner },
        "m": { "type": "object", "additionalProperties": inner },
        "none": { "type": "object", "x-kubernetes-validations": rule },
    } });
    assert_eq!(scopes(&both), [".spec.a", ".spec.c[]", ".spec.m{}"]);
}

#[test]
fn items_of_sets_and_maps_can_become_the_same() {
    let list = |list_type: &str, items: Value| {
        json!({ "type": "object", "properties": { "l": {
            "type": "array", "x-kubernetes-list-type": list_type, "x-kubernetes-list-map-keys": [
                "name", "port",
            ],
            "items": items,
        } } })
    };
    let item = |name: &str| {
        let mut item = json!({ "type": "object", "properties": {
            "name": { "type": "string" }, "port": { "type": "integer" }, "other": { "type": "string" } } });
        item["properties"][name]["default"] = json!("x");
        item
    };
    assert_eq!(scopes(&list("map", item("port"))), [".spec.l"], "a key by default");
    assert_eq!(scopes(&list("map", item("other"))), [""; 0], "no key");
    assert_eq!(scopes(&list("set", item("other"))), [".spec.l"], "the whole item is the key");
    assert_eq!(scopes(&list("atomic", item("port"))), [""; 0]);
    assert_eq!(scopes(&list("map", json!({ "type": "object", "default": { "name": "x" } }))), [".spec.l"]);
}

#[test]
fn an_object_inside_is_judged_with_the_metadata_that_it_gets() {
    let embedded = |place: &str| {
        let mut embedded = json!({ "type": "object", "x-kubernetes-embedded-resource": true, "properties": {
            "kind": { "type": "string" }, "spec": {
                "type": "object", "properties": { "x": { "type": "integer" } },
            },
            "metadata": { "type": "object", "properties": { "name": { "type": "string" } } },
        } });
        *embedded.pointer_mut(place).expect("a place") = json!({ "default": "x" });
        json!({ "type": "object", "properties": { "r": embedded } })
    };
    assert_eq!(scopes(&embedded("/properties/kind")), [".spec.r"]);
    assert_eq!(scopes(&embedded("/properties/metadata/properties/name")), [".spec.r"]);
    assert_eq!(scopes(&embedded("/properties/spec/properties/x")), [""; 0]);
}

#[test]
fn a_place_is_reached_from_above_and_from_below() {
    let nested =
        with_default(&json!({ "x-kubernetes-validations": [{ "rule": "self.d < 3" }], "default": {} }));
    let spec = json!({ "type": "object", "properties": {
        "l": { "type": "array", "items": nested }, "other": { "type": "string", "default": "x" } } });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    let breakable = BreakableScopes::of(&Schema::parse(&schema).expect("an accepted schema"));
    let spec = || Path::root().join(Step::Field("spec".to_owned()));
    let list = || spec().join(Step::Field("l".to_owned()));
    let item = || list().join(Step::Index(3));
    for (place, reached) in [
        (item().join(Step::Field("d".to_owned())), true),
        // It comes with the default below it.
        (item(), true),
        (list(), true),
        (spec().join(Step::Field("other".to_owned())), false),
    ] {
        assert_eq!(breakable.covers(&place), reached, "{place}");
    }
}
