//! Tests of updates of objects that have something wrong already: it switches nothing off.

use serde_json::{Value, json};

use super::tests::holder;
use super::*;

fn compile(more: Value) -> Compiled {
    let mut declared = json!({
        "targets": [{ "group": "example.com", "version": "v1", "resource": "holders", "path": ".spec.ext" }],
        "enforcement": "Deny",
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "size": { "type": "string", "default": "small" },
            "network": { "type": "string" },
            "count": { "type": "integer" },
            "disks": { "type": "array", "items": { "type": "object",
                "properties": { "name": { "type": "string" }, "gb": { "type": "integer" } },
                "x-kubernetes-validations": [
                    { "rule": "!has(self.gb) || self.gb > 0", "message": "gb must be positive" },
                    { "rule": "!has(self.name) || self.name != 'bad'", "message": "not bad" },
                ] } },
            "secret": { "type": "object", "properties": { "name": { "type": "string" } } },
        }, "x-kubernetes-validations": [
            { "rule": "!has(self.count) || self.count >= oldSelf.count", "message": "count must not decrease" },
        ] } },
    });
    for (name, value) in more.as_object().expect("an object") {
        declared[name] = value.clone();
    }
    let declared = serde_json::from_value(declared).expect("a declaration");
    Compiled::new(&declared).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn asked(schema: &Compiled, object: &Value, old: Option<&Value>) -> Review {
    super::tests::asked(schema, object, old, &json!({ "id": "demo" }))
}

/// What refuses an update, as `field: detail`, without the beginning that all fields share.
fn refused(schema: &Compiled, old: Value, new: Value) -> Vec<String> {
    let review = asked(schema, &holder(new), Some(&holder(old)));
    let errors = review.answer.errors.iter();
    errors.map(|error| format!("{}: {}", error.field.trim_start_matches("spec.ext"), error.detail)).collect()
}

fn network() -> Value {
    json!([
        { "rule": "self.?network.orValue('') == oldSelf.?network.orValue('')", "field": ".network",
          "message": "cannot change" },
        { "rule": "self.?secret.name.orValue('') != ''", "field": ".secret.name", "message": "must be set" },
        { "rule": "item.?gb.orValue(1) < \
            9", "forEach": ".disks[*]", "field": ".disks", "message": "too large" },
    ])
}

/// What may be wrong with an extension from before, in a place that no rule below is about.
fn wrong() -> [Value; 7] {
    [
        json!({}),
        json!({ "size": 5 }),
        json!({ "size": ["small"] }),
        json!({ "count": "many" }),
        json!({ "disks": [{ "name": { "a": 1 } }] }),
        json!({ "disks": ["none", { "gb": 1 }] }),
        json!({ "size": 5, "unknown": { "x": [1] } }),
    ]
}

fn with(base: &Value, more: Value) -> Value {
    let mut object = base.clone();
    object.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    object
}

#[test]
fn a_new_violation_is_refused_whatever_was_wrong_before() {
    let schema = compile(json!({ "rules": network() }));
    for wrong in wrong() {
        let good = with(&wrong, json!({ "network": "n1", "secret": { "name": "there" } }));
        let moved = with(&good, json!({ "network": "n2" }));
        assert_eq!(refused(&schema, good.clone(), moved), [".network: cannot change"], "{wrong}");
        let bare = with(&good, json!({ "secret": {} }));
        assert_eq!(refused(&schema, good.clone(), bare), [".secret.name: must be set"], "{wrong}");
        let same = with(&good, json!({ "unrelated": 1 }));
        assert_eq!(refused(&schema, good, same), Vec::<String>::new(), "{wrong}");
    }
}

#[test]
fn rules_of_the_schema_are_evaluated_wherever_types_fit() {
    let schema = compile(json!({}));
    let old =
        json!({ "size": 5, "count": 3, "disks": [{ "gb": "x", "name": "a" }, { "gb": 1, "name": "b" }] });
    let disks = |disks: Value| with(&old, json!({ "disks": disks }));
    let bad = disks(json!([{ "gb": "x", "name": "bad" }, { "gb": 0, "name": "b" }]));
    assert_eq!(refused(&schema, old.clone(), bad), [".disks[0]: not bad", ".disks[1]: gb must be positive"]);
    let fewer = with(&old, json!({ "count": 2 }));
    assert_eq!(refused(&schema, old.clone(), fewer), [": count must not decrease"]);
    // One rule that fails from before hides no other at the same place.
    let old = json!({ "disks": [{ "gb": 0, "name": "a" }] });
    let bad = json!({ "disks": [{ "gb": 0, "name": "bad" }] });
    assert_eq!(refused(&schema, old, bad), [".disks[0]: not bad"]);
}

#[test]
fn rules_that_cost_too_much_excuse_nothing() {
    let kept = json!({ "rule": "self.size == oldSelf.size", "field": ".size", "message": "cannot change" });
    let quadratic = "self.v.all(x, self.v.all(y, x <= y))";
    let for_each = json!({ "rule": quadratic.replace("self", "item"), "forEach": ".l[*]" });
    let alone = json!({ "rule": "self.l.all(a, self.l.all(b, a.v.all(x, b.v.all(y, x <= y))))" });
    let of_schema = |rules: Value| {
        let v = json!({ "type": "array", "items": { "type": "integer" } });
        let item = json!({ "type": "object", "properties": { "v": v }, "x-kubernetes-validations": rules });
        json!({ "openAPIV3Schema": { "type": "object", "properties": {
            "l": { "type": "array", "items": item }, "size": { "type": "string" },
        } } })
    };
    let of = |size: &str| json!({ "size": size, "l": vec![json!({ "v": vec![1; 250] }); 60] });
    for (declared, expected) in [
        (json!({ "schema": of_schema(json!([])), "rules": [for_each, kept] }), 1),
        (json!({ "schema": of_schema(json!([{ "rule": quadratic }])), "rules": [kept] }), 1),
        (json!({ "schema": of_schema(json!([])), "rules": [alone, kept] }), 2),
    ] {
        let schema = compile(declared);
        let found = refused(&schema, of("small"), of("large"));
        assert!(found.len() == expected && found[0].contains("cost"), "{found:?}");
        let (old, mut labelled) = (holder(of("small")), holder(of("small")));
        labelled["metadata"]["labels"] = json!({ "a": "b" });
        assert!(asked(&schema, &labelled, Some(&old)).answer.is_allowed());
    }
}

#[test]
fn a_wrong_type_counts_as_old_only_while_it_is_unchanged() {
    let schema = compile(json!({ "rules": network() }));
    let of = |size: Value| json!({ "size": size, "secret": { "name": "there" } });
    let fields = |old: Value, new: Value| -> Vec<String> {
        let all = refused(&schema, of(old), of(new)).into_iter();
        all.map(|error| error.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(fields(json!(5), json!(7)), [".size"]);
    assert_eq!(fields(json!("s"), json!(7)), [".size"]);
    assert_eq!(fields(json!([5]), json!({ "a": 1 })), [".size"]);
    assert_eq!(fields(json!(5), json!("small")), [""; 0]);
    assert_eq!(fields(json!(null), json!("small")), [""; 0]);
}

#[test]
fn a_rule_that_an_old_wrong_type_keeps_from_being_evaluated_refuses_nothing() {
    let schema = compile(json!({ "rules": network() }));
    let of = |network: Value| json!({ "network": network, "count": "many", "secret": { "name": "there" } });
    // It is corrected, or stays, or something else changes.
    assert_eq!(refused(&schema, of(json!(5)), of(json!("n1"))), [""; 0]);
    assert_eq!(refused(&schema, of(json!(5)), with(&of(json!(5)), json!({ "size": "l" }))), [""; 0]);
    assert_eq!(refused(&schema, of(json!("n1")), with(&of(json!("n1")), json!({ "count": 1 }))), [""; 0]);
    let (old, mut labelled) = (holder(of(json!(5))), holder(of(json!(5))));
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    assert!(asked(&schema, &labelled, Some(&old)).answer.is_allowed());
    // What is not an integer to a rule refuses, also beside an old wrong type.
    let schema = compile(json!({ "rules": [{ "rule": "self.count < 9", "field": ".count" }] }));
    let found = refused(&schema, json!({ "size": 5, "count": 1 }), json!({ "size": 5, "count": 2.0 }));
    assert!(found.iter().any(|error| error.starts_with(".count: cannot evaluate")), "{found:?}");
}

#[test]
fn an_old_violation_hides_no_other_of_its_group_nor_of_another_item() {
    let rule = |rule: &str, message: &str| {
        json!({
            "rule": rule, "field": ".size", "group": "g", "message": message,
        })
    };
    let schema = compile(json!({ "rules": [
        rule("self.?size.orValue('') != 'old'", "old"), rule("self.?network.orValue('') != 'bad'", "bad"),
    ] }));
    let (old, new) = (json!({ "size": "old" }), json!({ "size": "old", "network": "bad" }));
    assert_eq!(refused(&schema, old, new.clone()), [".size: bad"]);
    assert_eq!(refused(&schema, json!({ "size": "l" }), new), [".size: old"], "of two new ones the first");
    let schema = compile(json!({ "rules": network() }));
    let of = |disks: Value| json!({ "secret": { "name": "there" }, "disks": disks });
    let (old, new) = (of(json!([{ "gb": 9 }, { "gb": 1 }])), of(json!([{ "gb": 9 }, { "gb": 10 }])));
    assert_eq!(refused(&schema, old, new), [".disks: too large"]);
}

#[test]
fn defaults_facts_and_references_count_in_spite_of_a_wrong_type() {
    let schema = compile(json!({
        "facts": [{ "name": "id", "constant": "none" }],
        "defaultOn": ["CREATE", "UPDATE"],
        "defaults": [
            { "path": ".network", "value": "facts.id + '-net'" },
            { "path": ".secret.name", "when": "self.count > 3", "value": "'x'" },
        ],
        "references": [{
            "path": ".secret.name", "resource": "secrets", "severity": "Deny", "message": "is not there",
        }],
        "rules": [{ "rule": "self.?network.orValue('') == facts.id + '-net'", "field": ".network" }],
    }));
    let old = json!({ "count": "many", "secret": { "name": "there" } });
    let new = json!({ "count": "many", "secret": { "name": "gone" } });
    let review = asked(&schema, &holder(new), Some(&holder(old.clone())));
    let errors: Vec<_> = review.answer.errors.iter().map(|error| &*error.field).collect();
    assert_eq!(errors, ["spec.ext.secret.name"]);
    let object = review.object.expect("nothing of it is refused for its types");
    assert_eq!(object.pointer("/spec/ext/network"), Some(&json!("demo-net")));
    assert_eq!(object.pointer("/spec/ext/size"), Some(&json!("small")));
    // One dangling reference in place of another.
    let dangling = |name: &str| json!({ "count": "many", "network": "demo-net", "secret": { "name": name } });
    assert_eq!(refused(&schema, dangling("a"), dangling("b")), [".secret.name: is not there"]);
    assert_eq!(refused(&schema, dangling("a"), with(&dangling("a"), json!({ "size": "l" }))), [""; 0]);
}

#[test]
fn all_that_is_wrong_is_named_beside_a_wrong_type_and_there_is_no_object_then() {
    let schema = compile(json!({ "rules": network() }));
    let review = asked(&schema, &holder(json!({ "size": 5, "network": 5 })), None);
    let fields: Vec<_> = review.answer.errors.iter().map(|error| &*error.field).collect();
    assert_eq!(fields, ["spec.ext.network", "spec.ext.size", "spec.ext.secret.name"]);
    assert_eq!(review.object, None);
    let review = asked(&schema, &holder(json!({ "size": 5 })), Some(&holder(json!({ "size": 5 }))));
    assert!(review.answer.is_allowed() && review.object.is_some());
}

/// A schema whose extensions all have the same text as their place, and an object with these.
fn parts(more: Value) -> (Compiled, impl Fn(Value) -> Value) {
    let mut declared = json!({ "targets": [{
        "group": "example.com", "version": "v1", "resource": "boxes", "path": ".spec.parts[*].ext",
        "reportedAs": "providerSpec",
    }] });
    declared.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    let object = |parts: Value| {
        let parts: Vec<Value> =
            parts.as_array().expect("a list").iter().map(|ext| json!({ "ext": ext })).collect();
        json!({ "apiVersion": "example.com/v1", "kind": "Box", "metadata": {}, "spec": { "parts": parts } })
    };
    (compile(declared), object)
}

fn details(schema: &Compiled, object: &Value, old: Option<&Value>) -> Vec<String> {
    asked(schema, object, old).answer.errors.into_iter().map(|error| error.detail).collect()
}

#[test]
fn a_violation_in_one_extension_excuses_none_in_another() {
    let (schema, object) = parts(json!({ "rules": network() }));
    let of = |size: &str| json!({ "size": size, "disks": [{ "name": "bad" }] });
    let old = object(json!([of("a")]));
    let new = object(json!([of("a"), of("b")]));
    assert_eq!(details(&schema, &new, Some(&old)), ["not bad", "must be set"]);
    let (both, changed) = (object(json!([of("a"), of("b")])), object(json!([of("a"), of("c")])));
    assert_eq!(details(&schema, &changed, Some(&both)), [""; 0]);
}

#[test]
fn a_group_speaks_of_each_extension() {
    let (schema, object) = parts(json!({ "rules": [
        { "rule": "self.size != 'a'", "group": "g", "message": "not a" },
        { "rule": "self.size != 'b'", "group": "g", "message": "not b" },
    ] }));
    let new = object(json!([{ "size": "a" }, { "size": "b" }]));
    assert_eq!(details(&schema, &new, None), ["not a", "not b"]);
}

#[test]
fn a_new_violation_is_refused_beside_more_old_ones_than_are_listed() {
    let schema = compile(json!({ "rules": [
        { "rule": "item.gb < 9", "forEach": ".disks[*]", "field": ".disks[*]", "message": "too large" },
    ] }));
    let of = |last: u64| -> Value {
        let disks = (0..300).map(|index| json!({ "gb": if index == 299 { last } else { 9 } }));
        json!({ "disks": disks.collect::<Vec<_>>() })
    };
    assert_eq!(refused(&schema, of(1), of(9)), [".disks[299]: too large"]);
    assert_eq!(refused(&schema, of(1), of(2)), [""; 0]);
}
