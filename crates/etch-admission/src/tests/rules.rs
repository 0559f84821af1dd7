//! What rules and types refuse, and what an update may leave as it was.

use super::*;

#[test]
fn all_faults_are_named_with_their_fields() {
    let schema = compile(json!({ "rules": [
        { "rule": "self.?size.orValue(0) > \
            0", "field": ".size", "type": "Required", "message": "has to be set" },
        { "rule": "self.?size.orValue(0) < 9", "field": "spec.Size" },
        { "rule": "item.?gb.orValue(0) > \
            0", "forEach": ".disks[*]", "field": ".Disks[*].GB", "messageExpression": "'disk ' + string(index)" },
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
        rule("self.?size.orValue(0) != 1", ".a"), rule("self.?size.orValue(0) < 1", ".b"),
        rule("self.?size.orValue(0) < 5", ".c"),
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

#[test]
fn an_old_violation_of_an_item_of_a_map_list_moves_with_the_item() {
    let declared = |list: &str| {
        let item = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" }, "gb": { "type": "integer", "maximum": 9 } } });
        let disks = json!({ "type": "array", "x-kubernetes-list-type": list,
            "x-kubernetes-list-map-keys": ["name"],
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
        { "rule": "object.metadata.?labels == \
            oldObject.metadata.?labels", "scope": "Object", "field": ".metadata.labels" },
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
