//! Declarations: their targets, facts and extensions, and what is wrong with them.

use super::*;

#[test]
fn targets_are_found_by_their_kind_and_named_by_their_resource() {
    let target = |kind: Value| {
        json!({
            "group": "g.io", "version": "v1", "resource": "ox", "kind": kind, "path": ".a",
        })
    };
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
        "spec": {
            "parts": [
                { "ext": {} }, { "ext": { "name": "other" } }, { "ext": { "mode": "slow", "size": 2 } },
            ],
        },
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
        {
            "name": "id", "object": { "group": "g", "version": "v1", "resource": "r", "name": "n" },
            "path": ".status.id",
        },
        {
            "name": "zones", "object": { "version": "v1", "resource": "r", "name": "n" },
            "expression": "object.zones.size()",
        },
        { "name": "arch", "constant": "amd64" },
        {
            "name": "region", "object": { "version": "v1", "resource": "r", "name": "n" }, "path": ".region",
            "fallback": "",
        },
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
        "defaults": [
            { "path": "name", "value": "1" }, { "path": ".name", "value": "self.sise", "resources": [
                "rings",
            ] },
        ],
        "rules": [
            { "rule": "self.size" }, { "rule": "true", "messageExpression": "1", "forEach": ".disks[" },
        ],
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
