//! What the language of embedded schemas means, one law or clause at a time.

use serde_json::{Value, json};

use super::*;

/// A schema for the extension of Holders at `.spec.ext`, with more of the declaration.
fn compile(more: Value) -> Compiled {
    Compiled::new(&declaration(more)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn declaration(more: Value) -> Declaration {
    let mut declared = json!({
        "targets": [
            { "group": "example.com", "version": "v1", "resource": "holders", "path": ".spec.ext" },
            { "group": "example.com", "version": "v1", "resource": "boxes", "path": ".spec.parts[*].ext" },
        ],
        "enforcement": "Deny",
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "size": { "type": "integer" },
            "name": { "type": "string" },
            "mode": { "type": "string", "default": "fast" },
            "disks": { "type": "array", "items": { "type": "object", "properties": {
                "name": { "type": "string" }, "gb": { "type": "integer" } } } },
            "secret": { "type": "object", "properties": { "name": { "type": "string" } } },
        } } },
    });
    for (name, value) in more.as_object().expect("an object") {
        declared[name] = value.clone();
    }
    serde_json::from_value(declared).expect("a declaration")
}

pub(super) fn holder(extension: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Holder", "metadata": { "name": "h", "namespace": "ns" },
        "spec": { "ext": extension },
    })
}

pub(super) fn asked(schema: &Compiled, object: &Value, old: Option<&Value>, facts: &Value) -> Review {
    let exists = |lookup: &Lookup<'_>| Some(lookup.name == "there" && lookup.namespace == "ns");
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let request = Request {
        named: Named::Kind,
        operation,
        object,
        old_object: old,
        facts: &Value::Null,
        exists: &exists,
    };
    review(&[(schema, facts)], &request)
}

fn created(schema: &Compiled, extension: Value) -> Review {
    asked(schema, &holder(extension), None, &json!({ "id": "demo" }))
}

fn updated(schema: &Compiled, old: Value, new: Value) -> Review {
    asked(schema, &holder(new), Some(&holder(old)), &json!({ "id": "demo" }))
}

/// The errors as `field Type`.
fn errors(review: &Review) -> Vec<String> {
    let kinds = review.answer.errors.iter();
    kinds
        .map(|error| format!("{} {}", error.field, error.kind.as_str().trim_start_matches("FieldValue")))
        .collect()
}

fn extension(review: &Review) -> Value {
    review.object.as_ref().and_then(|object| object.pointer("/spec/ext")).cloned().unwrap_or_default()
}

#[test]
fn defaults_fill_what_is_missing_and_nothing_else() {
    let schema = compile(json!({
        "facts": [{ "name": "id", "constant": "none" }],
        "defaults": [
            { "path": ".name", "where": "Empty", "value": "facts.id + '-x'" },
            { "path": ".secret", "value": "{'name': 'given'}" },
            { "path": ".disks[*].gb", "where": "Empty", "when": "index == 0", "value": "item.?name.orValue('') == 'big' ? 9 : 1" },
            { "path": ".", "where": "Merge", "when": "self.?size.orValue(0) == 0", "value": "{'size': 3, 'mode': 'slow'}" },
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
fn targets_are_found_by_their_kind_and_named_by_their_resource() {
    let target = |kind: Value| json!({ "group": "g.io", "version": "v1", "resource": "ox", "kind": kind, "path": ".a" });
    let plain = compile(json!({ "targets": [target(Value::Null)], "when": "false" }));
    let named = compile(json!({ "targets": [target(json!("Ox"))], "when": "false" }));
    let ox = json!({ "apiVersion": "g.io/v1", "kind": "Ox" });
    let request = Request {
        named: Named::Kind,
        operation: Operation::Create,
        object: &ox,
        old_object: None,
        facts: &Value::Null,
        exists: &|_| None,
    };
    assert!(named.targets(&request) && !named.is_for(&request));
    assert!(!plain.targets(&request), "the usual plural is {}", plural("Ox"));
    assert!(plain.targets_in_words().eq(["ox of g.io/v1"]));
    assert!(named.targets_in_words().eq(["ox of g.io/v1 (kind Ox)"]));
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

#[test]
fn an_old_violation_of_an_item_of_a_map_list_moves_with_the_item() {
    let declared = |list: &str| {
        let item = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" }, "gb": { "type": "integer", "maximum": 9 } } });
        let disks = json!({ "type": "array", "x-kubernetes-list-type": list, "x-kubernetes-list-map-keys": ["name"],
            "items": item });
        let schema = json!({ "type": "object", "properties": { "disks": disks } });
        let rule = json!({ "rule": "item.gb != 10", "forEach": ".disks[*]" });
        compile(json!({ "schema": { "openAPIV3Schema": schema }, "rules": [rule] }))
    };
    let disk = |name: &str, gb: i64| json!({ "name": name, "gb": gb });
    let old = json!({ "disks": [disk("a", 10)] });
    let moved = json!({ "disks": [disk("b", 1), disk("a", 10)] });
    let another = json!({ "disks": [disk("b", 10), disk("a", 10)] });
    let map = declared("map");
    let review = updated(&map, old.clone(), moved.clone());
    assert_eq!((errors(&review), review.answer.warnings.len()), (vec![], 2));
    assert_eq!(
        errors(&updated(&map, old.clone(), another)),
        ["spec.ext.disks[0].gb Invalid", "spec.ext.disks[0] Invalid"]
    );
    assert_eq!(errors(&updated(&declared("atomic"), old, moved)).len(), 2, "which item it was is not known");
}

fn with_rules(declared: &Value, rules: Value) -> Compiled {
    let mut declared = declared.clone();
    declared["rules"] = rules;
    compile(declared)
}

#[test]
fn all_faults_are_named_with_their_fields() {
    let schema = compile(json!({ "rules": [
        { "rule": "self.?size.orValue(0) > 0", "field": ".size", "type": "Required", "message": "has to be set" },
        { "rule": "self.?size.orValue(0) < 9", "field": "spec.Size" },
        { "rule": "item.?gb.orValue(0) > 0", "forEach": ".disks[*]", "field": ".Disks[*].GB", "messageExpression": "'disk ' + string(index)" },
        { "rule": "item.?gb.orValue(0) < 5", "forEach": ".disks[*]", "type": "TooMany" },
        { "rule": "has(self.name)", "severity": "Warn", "field": ".name", "message": "is better set" },
    ] }));
    let review = created(&schema, json!({ "size": 0, "disks": [{ "gb": 1 }, {}, { "gb": 7 }] }));
    assert_eq!(
        errors(&review),
        ["spec.ext.size Required", "spec.ext.Disks[1].GB Invalid", "spec.ext.disks[2] TooMany"]
    );
    assert_eq!(review.answer.errors[1].detail, "disk 1");
    assert_eq!(review.answer.warnings, ["spec.ext.name: is better set"]);
    assert_eq!(errors(&created(&schema, json!({ "size": 9 }))), ["spec.Size Invalid"]);
}

#[test]
fn of_a_group_the_first_speaks() {
    let rule = |rule: &str, field: &str| json!({ "rule": rule, "field": field, "group": "g" });
    let schema = compile(json!({ "rules": [
        rule("self.?size.orValue(0) != 1", ".a"), rule("self.?size.orValue(0) < 1", ".b"), rule("self.?size.orValue(0) < 5", ".c"),
    ] }));
    assert_eq!(errors(&created(&schema, json!({ "size": 1 }))), ["spec.ext.a Invalid"]);
    assert_eq!(errors(&created(&schema, json!({ "size": 7 }))), ["spec.ext.b Invalid"]);
}

#[test]
fn a_rule_that_fails_is_an_error_with_its_reason() {
    let schema = compile(json!({ "rules": [{ "rule": "object.spec.nothing == 1" }] }));
    let review = created(&schema, json!({ "name": "hunter2" }));
    assert_eq!(errors(&review), ["spec.ext Invalid"]);
    assert!(review.answer.errors[0].detail.contains("no such key"), "{:?}", review.answer.errors);
}

#[test]
fn types_are_asked_first_and_an_object_without_an_extension_may_be_refused() {
    let schema = compile(json!({
        "required": { "field": "ext", "message": "has to be there" },
        "rules": [{ "rule": "self.size > 3" }],
    }));
    let review = created(&schema, json!({ "size": "x" }));
    assert_eq!((errors(&review), &review.object), (vec!["spec.ext.size TypeInvalid".to_owned()], &None));
    let review = created(&schema, Value::Null);
    assert_eq!((errors(&review), &review.object), (vec!["ext Required".to_owned()], &None));
    assert!(created(&compile(json!({})), Value::Null).answer.is_allowed());
}

#[test]
fn nulls_are_absent() {
    let schema = compile(json!({ "rules": [{ "rule": "!has(self.name) && self.disks.size() == 2" }] }));
    let review = created(&schema, json!({ "name": null, "disks": [null, { "gb": null }] }));
    assert_eq!(errors(&review), Vec::<String>::new());
    assert_eq!(extension(&review)["name"], Value::Null);
}

#[test]
fn unknown_fields_are_treated_as_declared() {
    let given = json!({ "x": 1, "disks": [{ "y": 2 }], "mode": "m" });
    let of = |how: &str| created(&compile(json!({ "unknownFields": how })), given.clone());
    assert_eq!(extension(&of("Keep")), given);
    assert_eq!(of("Warn").answer.warnings.len(), 2);
    assert_eq!(errors(&of("Deny")), ["spec.ext.disks[0].y Invalid", "spec.ext.x Invalid"]);
    assert_eq!(extension(&of("Prune")), json!({ "disks": [{}], "mode": "m" }));
}

#[test]
fn a_reference_that_leads_nowhere_is_a_warning() {
    let reference = json!([{ "path": ".secret.name", "resource": "secrets", "message": "is not there" }]);
    let schema = compile(json!({ "references": reference }));
    assert!(created(&schema, json!({ "secret": { "name": "there" } })).answer.warnings.is_empty());
    assert!(created(&schema, json!({ "secret": { "name": "" } })).answer.warnings.is_empty());
    let review = created(&schema, json!({ "secret": { "name": "gone" } }));
    assert_eq!(
        (review.answer.is_allowed(), review.answer.warnings),
        (true, vec!["spec.ext.secret.name: is not there".to_owned()])
    );
}

#[test]
fn a_reference_whose_namespace_cannot_be_evaluated_is_reported() {
    let reference = json!([{ "path": ".secret.name", "resource": "secrets", "severity": "Deny",
                             "namespace": "object.spec.namespace" }]);
    let schema = compile(json!({ "references": reference }));
    let holder = |name: &str, namespace: Value| {
        let mut holder = holder(json!({ "secret": { "name": name } }));
        holder["spec"]["namespace"] = namespace;
        holder
    };
    let asked = |new: &Value, old: Option<&Value>| errors(&asked(&schema, new, old, &json!({})));
    let wrong = holder("there", json!(1));
    assert_eq!(asked(&wrong, None), ["spec.ext.secret.name Invalid"]);
    assert_eq!(asked(&holder("gone", json!(1)), Some(&wrong)), [""; 0], "so it was before");
    for namespace in ["ns", ""] {
        assert_eq!(asked(&holder("there", json!(namespace)), None), [""; 0]);
    }
}

#[test]
fn an_update_is_judged_by_what_it_changes() {
    let rules = json!([
        { "rule": "self.?size.orValue(0) > 0", "field": ".size" },
        { "rule": "self.?name.orValue('') != 'bad'", "field": ".name" },
        { "rule": "!has(self.mode) || !has(oldSelf.mode) || self.mode == oldSelf.mode", "field": ".mode" },
    ]);
    let schema = compile(json!({ "rules": rules }));
    // The extension is as it was.
    assert!(updated(&schema, json!({ "size": 0 }), json!({ "size": 0 })).answer.is_allowed());
    // A fault that was there is a warning, a new one is an error.
    let review = updated(&schema, json!({ "size": 0 }), json!({ "size": 0, "name": "bad" }));
    assert_eq!(errors(&review), ["spec.ext.name Invalid"]);
    assert_eq!(review.answer.warnings.len(), 1);
    // A rule about a change is never older than the change.
    let review = updated(&schema, json!({ "size": 1, "mode": "a" }), json!({ "size": 1, "mode": "b" }));
    assert_eq!(errors(&review), ["spec.ext.mode Invalid"]);
    let schema = compile(json!({ "rules": rules, "ratcheting": "Disabled" }));
    assert_eq!(
        errors(&updated(&schema, json!({ "size": 0 }), json!({ "size": 0 }))),
        ["spec.ext.size Invalid"]
    );
}

const EXPENSIVE: [&str; 2] = [
    // For all parts together, and for each.
    "object.spec.parts.exists(part, part.ext.name == 'last') && extension.name != 'none'",
    "object.spec.parts.all(one, object.spec.parts.exists(other, other.ext.name == one.ext.name))",
];

/// A box whose last part is wrong, with so many others that `when` costs too much.
fn expensive_box(when: &str) -> (Compiled, Value) {
    let schema = compile(json!({ "when": when, "defaultOn": ["CREATE", "UPDATE"] }));
    let mut parts: Vec<_> = (0..3_000).map(|n| json!({ "ext": { "name": n.to_string() } })).collect();
    parts.push(json!({ "ext": { "name": "last", "size": "wrong" } }));
    let metadata = json!({ "name": "b", "finalizers": ["a", "b"] });
    let spec = json!({ "parts": parts });
    (schema, json!({ "apiVersion": "example.com/v1", "kind": "Box", "metadata": metadata, "spec": spec }))
}

#[test]
fn what_costs_too_much_to_be_determined_is_refused() {
    for when in EXPENSIVE {
        let ((schema, expensive), facts) = (expensive_box(when), json!({}));
        let review = asked(&schema, &expensive, None, &facts);
        assert_eq!(errors(&review), ["spec.parts[*].ext Invalid"], "{when}");
        assert!(review.answer.warnings.iter().any(|warning| warning.contains("defaults are not set")));
        let mut changed = expensive.clone();
        changed["spec"]["parts"][0]["ext"]["size"] = json!(1);
        let review = asked(&schema, &changed, Some(&expensive), &facts);
        assert_eq!(errors(&review), ["spec.parts[*].ext Invalid"], "{when}");
    }
}

#[test]
fn what_costs_too_much_is_not_held_back_where_an_update_leaves_it_alone() {
    let ((schema, expensive), facts) = (expensive_box(EXPENSIVE[0]), json!({}));
    let mut labelled = expensive.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    let mut released = expensive.clone();
    released["metadata"]["finalizers"] = json!(["b"]);
    for left_alone in [labelled, released] {
        assert!(asked(&schema, &left_alone, Some(&expensive), &facts).answer.is_allowed());
    }
}

#[test]
fn an_object_on_its_way_out_is_not_held_back() {
    let schema = compile(json!({ "rules": [
        { "rule": "false", "field": ".always" },
        { "rule": "object.metadata.?labels == oldObject.metadata.?labels", "scope": "Object", "field": ".metadata.labels" },
    ] }));
    let with = |finalizers: Value, more: Value| {
        let mut object = holder(json!({ "size": 1 }));
        object["metadata"]["finalizers"] = finalizers;
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["labels"] = more;
        object
    };
    let facts = json!({});
    let old = with(json!(["a", "b"]), json!({}));
    let done = asked(&schema, &with(json!(["b"]), json!({})), Some(&old), &facts);
    assert!(done.answer.is_allowed() && done.answer.warnings.is_empty());
    // A rule about a change still denies, others do not.
    let mut changed = with(json!(["b"]), json!({ "x": "y" }));
    changed["spec"]["ext"] = json!({ "size": 2 });
    assert_eq!(errors(&asked(&schema, &changed, Some(&old), &facts)), ["metadata.labels Invalid"]);
}

#[test]
fn a_schema_warns_until_it_denies() {
    let schema = compile(
        json!({ "enforcement": "Warn", "rules": [{ "rule": "false", "field": ".x", "message": "no" }] }),
    );
    let review = created(&schema, json!({}));
    assert_eq!(
        (review.answer.is_allowed(), review.answer.warnings),
        (true, vec!["spec.ext.x: no".to_owned()])
    );
}

#[test]
fn a_warning_names_the_problem_also_where_the_type_alone_shows_it() {
    let text = json!({ "type": "string" });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "required": ["k"], "properties": {
        "k": text, "n": { "type": "integer", "maximum": 3 }, "e": { "type": "string", "enum": ["a"] },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": text },
    } } });
    let wrong = json!({ "n": 4, "e": "hunter2", "set": ["hunter2", "hunter2"] });
    let expected = [
        "spec.ext.e: Unsupported value: supported values: \"a\"",
        "spec.ext.k: Required value",
        "spec.ext.n: n in body should be less than or equal to 3",
        "spec.ext.set[1]: Duplicate value",
    ];
    let sorted = |review: Review| {
        let mut warnings = review.answer.warnings;
        warnings.sort();
        warnings
    };
    let warns = compile(json!({ "schema": schema, "enforcement": "Warn" }));
    assert_eq!(sorted(created(&warns, wrong.clone())), expected);
    // An old violation is a warning.
    let ratchets = compile(json!({ "schema": schema }));
    let mut changed = wrong.clone();
    changed["new"] = json!(1);
    assert_eq!(sorted(updated(&ratchets, wrong, changed)), expected);
}

#[test]
fn a_value_to_merge_that_is_no_object_is_a_problem_or_a_warning() {
    let merge = |value: &str| json!({ "defaults": [{ "path": ".", "where": "Merge", "value": value }] });
    for value in ["5", "'hunter2'", "[1]", "self.?size"] {
        let problems = Compiled::new(&declaration(merge(value))).expect_err(value);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].field, "spec.defaults[0].value");
        let expected = "the expression must evaluate to an object, not to ";
        assert!(problems[0].problem.starts_with(expected), "{problems:?}");
    }
    // Its type is known with the request only.
    let schema = compile(merge("object.metadata.name"));
    let review = created(&schema, json!({ "size": 1 }));
    let expected = ["spec.ext: cannot compute its default: with where: Merge, its value must be an object"];
    assert_eq!(
        (extension(&review), &review.answer.warnings[..]),
        (json!({ "size": 1, "mode": "fast" }), &expected.map(str::to_owned)[..])
    );
    for nothing in ["null", "self.?secret", "{}"] {
        let review = created(&compile(merge(nothing)), json!({ "mode": "m" }));
        assert_eq!(
            (extension(&review), review.answer.warnings.len()),
            (json!({ "mode": "m" }), 0),
            "{nothing}"
        );
    }
}

#[test]
fn a_computed_number_is_judged_as_an_api_server_stores_it() {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": {
        "size": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self > 0" }] },
        "part": { "type": "object", "properties": {
            "gb": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self > 0" }] } } },
    } } });
    let defaults =
        json!([{ "path": ".size", "value": "2.0" }, { "path": ".part", "value": "{'gb': double(3)}" }]);
    let review = created(&compile(json!({ "schema": schema, "defaults": defaults })), json!({}));
    assert_eq!(errors(&review), Vec::<String>::new());
    assert_eq!(extension(&review).to_string(), r#"{"part":{"gb":3},"size":2}"#);
}

#[test]
fn what_is_malformed_in_a_declaration_is_named_with_its_place() {
    let rule = |rule: Value| json!({ "rules": [{ "rule": "true" }, rule] });
    for (more, expected) in [
        (json!({ "required": true }), "spec.required: invalid type: boolean, expected an object"),
        (
            json!({ "required": { "field": 1 } }),
            "spec.required.field: invalid type: integer, expected a string",
        ),
        (
            json!({ "defaultOn": ["CREATE", "hunter2"] }),
            "spec.defaultOn[1]: unknown value, expected `CREATE` or `UPDATE`",
        ),
        (json!({ "defaultOn": "CREATE" }), "spec.defaultOn: invalid type: string, expected a sequence"),
        (rule(json!({ "message": "m" })), "spec.rules[1]: missing field `rule`"),
        (
            rule(json!({ "rule": 1, "message": "m" })),
            "spec.rules[1].rule: invalid type: integer, expected a string",
        ),
        (rule(json!({ "rule": "true", "operations": ["CREATE", 7] })), "spec.rules[1].operations[1]: "),
        (
            json!({ "facts": [{ "name": "a", "object": { "version": "v1", "resource": [], "name": "n" } }] }),
            "spec.facts[0].object.resource: invalid type: sequence, expected a string",
        ),
        (json!({ "targets": null }), "spec.targets: names no resource"),
    ] {
        let mut spec = json!({ "targets": [], "schema": { "openAPIV3Schema": {} } });
        for (name, value) in more.as_object().expect("an object") {
            spec[name] = value.clone();
        }
        let problems = Declaration::read(&spec).expect_err(expected);
        let problems: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert!(matches!(&problems[..], [one] if one.starts_with(expected)), "{expected}: {problems:?}");
    }
    let both = json!({ "targets": [], "required": 1, "rules": 2 });
    assert_eq!(Declaration::read(&both).expect_err("problems").len(), 2);
    assert_eq!(Declaration::read(&json!([])).expect_err("problems")[0].field, "spec");
}

#[test]
fn each_extension_of_an_object_is_one_of_its_own() {
    let schema = compile(json!({
        "when": "extension != null && extension.?name.orValue('') != 'other'",
        "defaults": [{ "path": ".size", "value": "1" }],
        "rules": [{ "rule": "self.mode == 'fast'", "field": ".mode" }],
    }));
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Box", "metadata": {},
        "spec": { "parts": [{ "ext": {} }, { "ext": { "name": "other" } }, { "ext": { "mode": "slow", "size": 2 } }] },
    });
    let review = asked(&schema, &object, None, &json!({}));
    assert_eq!(errors(&review), ["spec.parts[2].ext.mode Invalid"]);
    let object = review.object.expect("an object");
    assert_eq!(object.pointer("/spec/parts/0/ext"), Some(&json!({ "mode": "fast", "size": 1 })));
    assert_eq!(object.pointer("/spec/parts/1/ext"), Some(&json!({ "name": "other" })));
}

#[test]
fn an_extension_that_moves_in_its_list_is_the_same_one() {
    let schema = compile(json!({ "rules": [
        { "rule": "self.size == oldSelf.size", "field": ".size", "type": "Forbidden" },
        { "rule": "self.?name.orValue('') != 'bad'", "field": ".name" },
    ] }));
    let object = |parts: Value| {
        let parts: Vec<Value> =
            parts.as_array().expect("a list").iter().map(|ext| json!({ "ext": ext })).collect();
        json!({ "apiVersion": "example.com/v1", "kind": "Box", "metadata": {}, "spec": { "parts": parts } })
    };
    let refused =
        |old: Value, new: Value| errors(&asked(&schema, &object(new), Some(&object(old)), &json!({})));
    let (a, b, bad) = (json!({ "size": 1 }), json!({ "size": 2 }), json!({ "size": 2, "name": "bad" }));
    for (old, new) in [
        (json!([a, b]), json!([b])),
        (json!([a, b]), json!([b, a])),
        (json!([b]), json!([a, b])),
        (json!([a, bad]), json!([bad])),
        // Without an old one there is no change.
        (json!([a, b]), json!([{ "size": 3 }])),
    ] {
        assert_eq!(refused(old.clone(), new.clone()), [""; 0], "{old} {new}");
    }
    let moved = ["spec.parts[1].ext.size Forbidden"];
    assert_eq!(refused(json!([a, b]), json!([a, { "size": 3 }])), moved);
    assert_eq!(refused(json!([a, b]), json!([b, { "size": 3 }])), moved);
    let new_fault = ["spec.parts[0].ext.name Invalid"];
    assert_eq!(refused(json!([bad, b]), json!([{ "size": 2, "name": "bad", "mode": "m" }])), new_fault);
    assert_eq!(refused(json!([bad]), json!([{ "size": 2, "name": "bad", "mode": "m" }])), [""; 0]);
}

#[test]
fn only_the_targets_are_looked_at() {
    let schema = compile(json!({ "rules": [{ "rule": "false" }] }));
    for (api_version, kind) in [("example.com/v2", "Holder"), ("v1", "Holder"), ("example.com/v1", "Other")] {
        let mut object = holder(json!({}));
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        assert!(asked(&schema, &object, None, &json!({})).answer.is_allowed(), "{api_version} {kind}");
    }
}

#[test]
fn facts_come_from_objects_with_fallbacks() {
    let schema = compile(json!({ "facts": [
        { "name": "id", "object": { "group": "g", "version": "v1", "resource": "r", "name": "n" }, "path": ".status.id" },
        { "name": "zones", "object": { "version": "v1", "resource": "r", "name": "n" }, "expression": "object.zones.size()" },
        { "name": "arch", "constant": "amd64" },
        { "name": "region", "object": { "version": "v1", "resource": "r", "name": "n" }, "path": ".region", "fallback": "" },
    ] }));
    assert_eq!(schema.fact_objects().count(), 3);
    let object = json!({ "status": { "id": "demo" }, "zones": [1, 2] });
    assert_eq!(schema.fact_from("id", &object), Some(json!("demo")));
    assert_eq!(schema.fact_from("zones", &object), Some(json!(2)));
    assert_eq!((schema.fact_from("region", &object), schema.fact_from("arch", &object)), (None, None));
    let known = json!({ "id": "demo", "other": 1 });
    let (facts, missing) = schema.facts(known.as_object().expect("a map"));
    assert_eq!(
        (facts, missing),
        (json!({ "id": "demo", "arch": "amd64", "region": "" }), vec!["zones".to_owned()])
    );
}

#[test]
fn everything_that_is_wrong_with_a_declaration_is_named() {
    let declared = declaration(json!({
        "facts": [{ "name": "id", "constant": 1 }, { "name": "none" }],
        "when": "facts.idd == 1",
        "defaults": [{ "path": "name", "value": "1" }, { "path": ".name", "value": "self.sise", "resources": ["rings"] }],
        "rules": [{ "rule": "self.size" }, { "rule": "true", "messageExpression": "1", "forEach": ".disks[" }],
        "references": [{ "path": ".secret.name", "resource": "secrets", "namespace": "1" }],
    }));
    let problems = Compiled::new(&declared).expect_err("problems");
    let fields: Vec<&str> = problems.iter().map(|problem| &*problem.field).collect();
    assert_eq!(
        fields,
        [
            "spec.facts[1]",
            "spec.when",
            "spec.defaults[0].path",
            "spec.defaults[1].resources",
            "spec.defaults[1].value",
            "spec.rules[0].rule",
            "spec.rules[1].forEach",
            "spec.references[0].namespace",
        ]
    );
    let broken =
        declaration(json!({ "schema": { "openAPIV3Schema": { "properties": { "a": { "type": "x" } } } } }));
    let problems = Compiled::new(&broken).expect_err("problems");
    assert!(
        problems.iter().all(|problem| problem.field.starts_with("spec.schema.openAPIV3Schema")),
        "{problems:?}"
    );
}

#[test]
fn a_structural_problem_is_named_with_the_rule_that_it_breaks() {
    let metadata = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let broken = json!({ "openAPIV3Schema": { "type": "object", "properties": { "metadata": metadata } } });
    let problems = Compiled::new(&declaration(json!({ "schema": broken }))).expect_err("problems");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].field, "spec.schema.openAPIV3Schema.properties[metadata]");
    assert_eq!(
        problems[0].problem,
        "must not specify anything other than name and generateName, but metadata is implicitly specified"
    );
}

#[test]
fn a_second_path_of_a_resource_is_refused_and_not_ignored() {
    let target = |path: &str| json!({ "version": "v1", "resource": "holders", "path": path });
    let twice = declaration(json!({ "targets": [target(".a"), target(".b")] }));
    let problems = Compiled::new(&twice).expect_err("problems");
    let fields: Vec<&str> = problems.iter().map(|problem| &*problem.field).collect();
    assert_eq!(fields, ["spec.targets[1]"]);
}
