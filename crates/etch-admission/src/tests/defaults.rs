//! What defaults fill, on a create and on an update.

use super::*;

#[test]
fn defaults_fill_what_is_missing_and_nothing_else() {
    let schema = compile(json!({
        "facts": [{ "name": "id", "constant": "none" }],
        "defaults": [
            { "path": ".name", "where": "Empty", "value": "facts.id + '-x'" },
            { "path": ".secret", "value": "{'name': 'given'}" },
            {
                "path": ".disks[*].gb", "where": "Empty", "when": "index == 0",
                "value": "item.?name.orValue('') == 'big' ? 9 : 1",
            },
            { "path": ".", "where": "Merge", "when": "self.?size.orValue(0) == \
                0", "value": "{'size': 3, 'mode': 'slow'}" },
            { "path": ".metadata.labels.\"a.b/c\"", "scope": "Object", "value": "facts.id" },
        ],
    }));
    let review =
        created(&schema, json!({ "name": "", "unknown": 0, "disks": [{ "name": "big" }, {}], "size": 0 }));
    assert_eq!(
        extension(&review),
        json!({
            "name": "demo-x", "unknown": 0, "mode": "fast", "size": 3, "secret": { "name": "given" },
            "disks": [{ "name": "big", "gb": 9 }, {}],
        })
    );
    let object = review.object.expect("an object");
    assert_eq!(object.pointer("/metadata/labels"), Some(&json!({ "a.b/c": "demo" })));
    let present = json!({ "name": "n", "mode": "", "size": 7, "secret": {}, "disks": [] });
    assert_eq!(extension(&created(&schema, present.clone())), present);
}

#[test]
fn defaults_are_set_until_nothing_is_missing() {
    let schema = compile(json!({ "defaults": [
        { "path": ".size", "when": "self.?name.orValue('') == 'n'", "value": "1" },
        { "path": ".name", "value": "'n'" },
    ] }));
    assert_eq!(extension(&created(&schema, json!({}))), json!({ "mode": "fast", "name": "n", "size": 1 }));
}

#[test]
fn a_default_goes_on_from_what_it_has_set_until_it_sets_nothing() {
    let untyped = |default: Value| compile(json!({ "schema": null, "defaults": [default] }));
    let steps = "has(self.b) ? {'c': 3} : has(self.a) ? {'b': 2} : {'a': 1}";
    let merges = untyped(json!({ "path": ".", "where": "Merge", "value": steps }));
    let last = "index + 1 == size(self.disks) || has(self.disks[index + 1].boot)";
    let items = untyped(json!({ "path": ".disks[*].boot", "when": last, "value": "index" }));
    for (schema, given, expected) in [
        (merges, json!({}), json!({ "a": 1, "b": 2, "c": 3 })),
        (
            items,
            json!({ "disks": [{}, {}, {}, {}] }),
            json!({ "disks": [{ "boot": 0 }, { "boot": 1 }, { "boot": 2 }, { "boot": 3 }] }),
        ),
    ] {
        let review = created(&schema, given);
        assert_eq!((extension(&review), &review.answer.warnings[..]), (expected.clone(), &[][..]));
        assert_eq!(extension(&created(&schema, expected.clone())), expected);
    }
    let endless = untyped(json!({ "path": ".", "where": "Merge", "value": "{'k' + string(size(self)): 1}" }));
    let review = created(&endless, json!({}));
    assert_eq!(extension(&review).as_object().map(serde_json::Map::len), Some(1_000));
    let expected = "defaults are set only in part: after 1000 rounds there are more";
    assert_eq!(review.answer.warnings, [expected]);
}

#[test]
fn an_update_is_defaulted_where_that_is_asked_for() {
    let defaults = json!([{ "path": ".size", "value": "1" }]);
    let schema = compile(json!({ "defaults": defaults }));
    assert_eq!(extension(&updated(&schema, json!({}), json!({ "name": "n" }))), json!({ "name": "n" }));
    let schema = compile(json!({ "defaults": defaults, "defaultOn": ["CREATE", "UPDATE"] }));
    let set = json!({ "name": "n", "mode": "fast", "size": 1 });
    assert_eq!(extension(&updated(&schema, json!({}), json!({ "name": "n" }))), set);
}

#[test]
fn what_an_update_leaves_as_it_was_gets_no_default() {
    let declared = json!({
        "defaultOn": ["CREATE", "UPDATE"],
        "defaults": [{ "path": ".name", "value": "'n'" },
                     { "path": ".metadata.labels.set", "scope": "Object", "value": "'yes'" }],
        "rules": [{ "rule": "self.?name.orValue('') == oldSelf.?name.orValue('')", "field": ".name" }],
        "unknownFields": "Prune",
    });
    let schema = compile(declared.clone());
    let old = |extension: Value| {
        let mut object = holder(extension);
        object["metadata"]["finalizers"] = json!(["a", "b"]);
        object
    };
    let passes = |schema: &Compiled, new: &Value, old: &Value| {
        let review = asked(schema, new, Some(old), &json!({}));
        assert_eq!((errors(&review), review.object.as_deref()), (Vec::new(), Some(new)), "{new}");
    };
    let lacking = old(json!({ "unknown": 1 }));
    for deleted in [Value::Null, json!("2026-01-01T00:00:00Z")] {
        let mut before = lacking.clone();
        before["metadata"]["deletionTimestamp"] = deleted;
        let mut released = before.clone();
        released["metadata"]["finalizers"] = json!(["b"]);
        passes(&schema, &released, &before);
    }
    let mut labelled = lacking.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    passes(&schema, &labelled, &lacking);
    let mut leaving = lacking.clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut changed = leaving.clone();
    changed["spec"]["ext"]["size"] = json!(1);
    passes(&schema, &changed, &leaving);

    let mut bare = lacking.clone();
    bare["spec"] = json!({});
    let mut labelled_bare = bare.clone();
    labelled_bare["metadata"]["labels"] = json!({ "a": "b" });
    passes(&schema, &labelled_bare, &bare);

    // What is changed gets its defaults, and of several extensions no other one.
    let free = with_rules(&declared, json!([]));
    let mut changed = lacking.clone();
    changed["spec"]["ext"]["size"] = json!(1);
    let set = json!({ "size": 1, "mode": "fast", "name": "n" });
    assert_eq!(extension(&asked(&free, &changed, Some(&lacking), &json!({}))), set);
    let object = |parts: Value| {
        let spec = json!({ "parts": parts });
        json!({ "apiVersion": "example.com/v1", "kind": "Box", "metadata": {}, "spec": spec })
    };
    let (before, after) =
        (object(json!([{ "ext": {} }])), object(json!([{ "ext": { "size": 1 } }, { "ext": {} }])));
    let review = asked(&free, &after, Some(&before), &json!({}));
    let parts = review.object.as_ref().and_then(|object| object.pointer("/spec/parts"));
    assert_eq!(parts, Some(&json!([{ "ext": set }, { "ext": {} }])));

    // By the request as it came: whatever another schema sets.
    let other = with_rules(&json!({ "ratcheting": "Disabled", "defaultOn": ["UPDATE"] }), json!([]));
    let facts = json!({});
    let request = Request {
        named: Named::Kind,
        operation: Operation::Update,
        object: &labelled,
        old_object: Some(&lacking),
        facts: &facts,
        exists: &|_| None,
    };
    let review = super::review::review(&[(&other, &facts), (&schema, &facts)], &request);
    assert_eq!(extension(&review), json!({ "unknown": 1, "mode": "fast" }));
    assert!(review.answer.is_allowed());
}
