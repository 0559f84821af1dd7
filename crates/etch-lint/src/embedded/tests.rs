use serde_json::{Value, json};

use super::super::lint_embedded;
use super::at::parts;
use super::*;

fn document(more: Value) -> Json {
    let mut spec = json!({
        "targets": [{ "group": "example.com", "version": "v1", "resource": "things", "path": ".spec.ext" }],
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "size": { "type": "string" }, "count": { "type": "integer" },
            "disks": {
                "type": "array", "items": {
                    "type": "object", "properties": { "name": { "type": "string" } },
                },
            },
        } } },
    });
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    Json::from(json!({ "kind": "EmbeddedSchema", "metadata": { "name": "a" }, "spec": spec }))
}

fn crd() -> Json {
    let ext = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": { "ext": ext, "all": { "type": "array", "items": ext },
            "closed": { "type": "object", "properties": { "size": { "type": "string" }, "disks": ext } } } },
    } });
    Json::from(json!({
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": { "kind": "Thing", "plural": "things" },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } },
            ],
        },
    }))
}

fn found(more: Value) -> Vec<String> {
    let findings = lint_embedded(&document(more), &[crd()]);
    findings
        .iter()
        .map(|finding| format!("{} {} {}", finding.rule.code, finding.place(), finding.message))
        .collect()
}

fn target(path: &str) -> Value {
    json!({ "group": "example.com", "version": "v1", "resource": "things", "path": path })
}

fn fact(group: &str, namespace: &str, resource: &str, version: &str, name: &str) -> Value {
    let object = json!({
        "group": group, "version": version, "resource": resource, "namespace": namespace, "name": name,
    });
    json!({ "name": "id", "object": object, "path": ".data.id" })
}

/// A case for each rule, and the most similar declaration that the rule does not report.
#[test]
fn every_rule_finds_what_is_planted_and_nothing_else() {
    let cases = [
        (
            "ETCH201 spec.facts[0] must have either a constant or an object",
            json!({ "facts": [{ "name": "id" }] }),
            json!({ "facts": [{ "name": "id", "constant": 1 }] }),
        ),
        (
            "ETCH201 spec.facts[0].name must have only letters and digits, and begin with a letter",
            json!({ "facts": [{ "name": "cluster-id", "constant": 1 }] }),
            json!({ "facts": [{ "name": "clusterId", "constant": 1 }] }),
        ),
        (
            "ETCH201 spec.facts[0].object.name no object has this name",
            json!({ "facts": [fact("", "n", "secrets", "v1", "")] }),
            json!({ "facts": [fact("", "n", "secrets", "v1", "system:a.b")] }),
        ),
        (
            "ETCH201 spec.facts[0].object.namespace no namespace has this name; leave it out for \
             cluster-scoped resources",
            json!({ "facts": [fact("", "", "secrets", "v1", "a")] }),
            json!({ "facts": [fact("", "n-1", "secrets", "v1", "a")] }),
        ),
        (
            "ETCH201 spec.facts[0].object.resource no resource has this name: write its plural, in lower \
             case and without a subresource",
            json!({ "facts": [fact("apps", "n", "deployments/status", "v1", "a")] }),
            json!({ "facts": [fact("apps", "n", "deployments", "v1", "a")] }),
        ),
        (
            "ETCH201 spec.facts[0].object.resource must not be empty",
            json!({ "facts": [fact("apps", "n", "", "v1", "a")] }),
            json!({ "facts": [fact("apps", "n", "deployments", "v1", "a")] }),
        ),
        (
            "ETCH201 spec.facts[0].object.group no group has this name",
            json!({ "facts": [fact("*", "n", "deployments", "v1", "a")] }),
            json!({ "facts": [fact("a.example.com", "n", "deployments", "v1", "a")] }),
        ),
        (
            "ETCH201 spec.facts[0].object.version no version has this name",
            json!({ "facts": [fact("apps", "n", "deployments", "*", "a")] }),
            json!({ "facts": [fact("apps", "n", "deployments", "v1beta2", "a")] }),
        ),
        (
            "ETCH201 spec.enforced there is no such field",
            json!({ "enforced": "Deny" }),
            json!({ "enforcement": "Deny" }),
        ),
        (
            "ETCH201 spec.required invalid type: boolean, expected an object",
            json!({ "required": true }),
            json!({ "required": {} }),
        ),
        (
            "ETCH201 spec.defaultOn[1] unknown value, expected `CREATE` or `UPDATE`",
            json!({ "defaultOn": ["CREATE", "DELETE"] }),
            json!({ "defaultOn": ["CREATE", "UPDATE"] }),
        ),
        (
            "ETCH202 spec.defaults[0].value the expression must evaluate to an object, not to int",
            json!({ "defaults": [{ "path": ".", "where": "Merge", "value": "5" }] }),
            json!({ "defaults": [{ "path": ".", "where": "Merge", "value": "{'size': 'a'}" }] }),
        ),
        (
            "ETCH202 spec.rules[0].rule undefined field 'sizes'",
            json!({ "rules": [{ "rule": "self.sizes == 'a'" }] }),
            json!({ "rules": [{ "rule": "self.size == 'a'" }] }),
        ),
        (
            "ETCH203 spec.targets[0].path things.example.com v1 knows nothing below .spec",
            json!({ "targets": [target(".spec.value")] }),
            json!({ "targets": [target(".spec.ext.value")] }),
        ),
        (
            "ETCH203 spec.targets[0].path things.example.com v1 knows nothing below .spec",
            json!({ "targets": [target(".spec.every[*]")] }),
            json!({ "targets": [target(".spec.all[*]")] }),
        ),
        (
            "ETCH203 spec.targets[0].path things.example.com v1 has type array there, and the schema type \
             object; to name its items, write [*] behind it",
            json!({ "targets": [target(".spec.all")] }),
            json!({ "targets": [target(".spec.all[*]")] }),
        ),
        (
            "ETCH201 spec.targets[0].resource no resource has this name: write its plural, in lower case and \
             without a subresource",
            json!({
                "targets": [{
                    "group": "example.com", "version": "v1", "resource": "things/status", "path": ".spec",
                }],
            }),
            json!({
                "targets": [{ "group": "other.com", "version": "v1", "resource": "things", "path": ".spec" }],
            }),
        ),
        (
            "ETCH205 spec.targets[0].path things.example.com v1 does not keep .count there, which the schema \
             declares",
            json!({ "targets": [target(".spec.closed")] }),
            json!({ "targets": [target(".spec.ext")] }),
        ),
        (
            "ETCH401 spec.schema.openAPIV3Schema.properties.size.defualt unknown field \"defualt\": it is \
             accepted here, and has no effect; did you mean default?",
            json!({
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object", "properties": { "size": { "type": "string", "defualt": "a" } },
                    },
                },
            }),
            json!({
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object", "properties": { "size": { "type": "string", "x-own": "a" } },
                    },
                },
            }),
        ),
        (
            "ETCH203 spec.targets[0].version things.example.com has no version v2",
            json!({
                "targets": [{
                    "group": "example.com", "version": "v2", "resource": "things", "path": ".spec.ext",
                }],
            }),
            json!({
                "targets": [{ "group": "other.com", "version": "v2", "resource": "things", "path": ".spec" }],
            }),
        ),
        (
            "ETCH204 spec.targets[1] spec.targets[0] is the same version of the same resource; declare this \
             path in another EmbeddedSchema",
            json!({ "targets": [target(".spec.ext"), target(".spec.all[*]")] }),
            json!({ "targets": [target(".spec.all[*]")] }),
        ),
        (
            "ETCH205 spec.defaults[0].path the schema has no such field below the extension",
            json!({ "defaults": [{ "path": ".seize", "value": "'a'" }] }),
            json!({ "defaults": [{ "path": ".seize", "value": "'a'", "scope": "Object" }] }),
        ),
        (
            "ETCH205 spec.rules[0].forEach the schema has no such field below .disks[]",
            json!({ "rules": [{ "rule": "true", "forEach": ".disks[*].labels[*]" }] }),
            json!({ "rules": [{ "rule": "true", "forEach": ".disks[*].name" }] }),
        ),
        (
            "ETCH206 spec.defaults[0] .size is set by default and refused: ",
            json!({ "defaults": [{ "path": ".size", "value": "1" }] }),
            json!({ "defaults": [{ "path": ".size", "value": "'a'" }] }),
        ),
        (
            "ETCH206 spec.defaults[0] .count is set by default and refused: failed rule: \
             self.?count.orValue(1) > 0",
            json!({ "defaults": [{ "path": ".count", "value": "0" }],
                    "rules": [{ "rule": "self.?count.orValue(1) > 0", "field": ".count" }] }),
            json!({ "defaults": [{ "path": ".count", "value": "1" }],
                    "rules": [{ "rule": "self.?count.orValue(1) > 0", "field": ".count" },
                              { "rule": "has(self.size)", "field": ".size" }] }),
        ),
        (
            "ETCH012 spec.schema.image the default is an image with a tag",
            json!({ "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "image": { "type": "string", "default": "a/b:1.2.3" } } } } }),
            json!({ "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "image": { "type": "string", "default": "a/b" } } } } }),
        ),
    ];
    for (expected, planted, nearest) in cases {
        let (planted, nearest) = (found(planted), found(nearest));
        assert!(matches!(&planted[..], [one] if one.starts_with(expected)), "{expected}: {planted:#?}");
        assert_eq!(nearest, [""; 0], "{expected}");
    }
}

#[test]
fn a_rule_that_may_cost_too_much_is_named_with_its_place() {
    let schema = |limit: Value| {
        let mut list = json!({ "type": "array", "items": { "type": "string" },
            "x-kubernetes-validations": [{ "rule": "self.all(a, self.all(b, a == b || a.contains(b)))" }] });
        list.as_object_mut().expect("a map").extend(limit.as_object().expect("a map").clone());
        json!({ "schema": { "openAPIV3Schema": { "type": "object", "properties": { "names": list } } } })
    };
    let found = found(schema(json!({})));
    assert!(
        matches!(&found[..], [one] if one.starts_with("ETCH207 spec.schema.openAPIV3Schema") && one.contains("names")),
        "{found:#?}"
    );
    let bounded = json!({ "maxItems": 5, "items": { "type": "string", "maxLength": 10 } });
    assert_eq!(self::found(schema(bounded)), [""; 0]);
}

#[test]
fn an_expression_that_may_cost_too_much_is_named_with_its_field() {
    let disks = |limits: &Value| {
        let name = json!({ "type": "string" });
        let mut disks =
            json!({ "type": "array", "items": { "type": "object", "properties": { "name": name } } });
        disks.as_object_mut().expect("a map").extend(limits.as_object().expect("a map").clone());
        json!({ "openAPIV3Schema": { "type": "object", "properties": { "disks": disks } } })
    };
    let all = "self.disks.all(a, self.disks.all(b, a.name == b.name))";
    let each = "self.disks.exists(a, a.name == item.name)";
    for (expected, limits, more) in [
        ("spec.rules[0].rule may cost ", json!({}), json!({ "rules": [{ "rule": all }] })),
        ("", json!({ "maxItems": 50 }), json!({ "rules": [{ "rule": all }] })),
        (
            "spec.defaults[0].value may cost ",
            json!({}),
            json!({ "defaults": [{ "path": ".count", "value": format!("{all} ? 1 : 2") }] }),
        ),
        // Once for each item.
        (
            "spec.rules[0].rule may cost ",
            json!({}),
            json!({ "rules": [{ "rule": each, "forEach": ".disks[*]" }] }),
        ),
        ("", json!({ "maxItems": 50 }), json!({ "rules": [{ "rule": each, "forEach": ".disks[*]" }] })),
        ("", json!({}), json!({ "rules": [{ "rule": "item.name == 'a'", "forEach": ".disks[*]" }] })),
        ("spec.when may cost ", json!({}), json!({ "when": "object.a.all(a, object.a.all(b, a == b))" })),
    ] {
        let mut more = more;
        more["schema"] = disks(&limits);
        let found: Vec<String> =
            self::found(more.clone()).into_iter().filter(|line| line.starts_with("ETCH208")).collect();
        match expected {
            "" => assert_eq!(found, [""; 0], "{more}"),
            _ => assert!(
                matches!(&found[..], [only] if only.starts_with(&format!("ETCH208 {expected}"))),
                "{more}: {found:#?}"
            ),
        }
    }
}

#[test]
fn what_cannot_be_read_is_named_field_by_field() {
    let document = Json::from(json!({ "spec": { "targets": [], "enforcement": "Maybe", "rules": 1 } }));
    let places: Vec<String> = lint_embedded(&document, &[]).iter().map(Finding::place).collect();
    assert_eq!(places, ["spec.enforcement", "spec.rules"]);
    let wrong = json!({
        "rules": [
            { "rule": "true" }, { "rule": 5, "message": [1] }, { "message": "m" }, 7,
            { "rule": "true", "severity": "No" },
        ],
        "defaults": [{ "path": ".size", "value": "'a'", "where": "Sometimes" }],
        "facts": [{ "name": "a", "object": { "group": 1 } }],
        "required": { "message": 1 },
    });
    let expected = [
        "ETCH201 spec.defaults[0].where unknown value, expected one of `Absent`, `Empty`, `Merge`",
        "ETCH201 spec.facts[0].object.group invalid type: integer, expected a string",
        "ETCH201 spec.required.message invalid type: integer, expected a string",
        "ETCH201 spec.rules[1].message invalid type: sequence, expected a string",
        "ETCH201 spec.rules[1].rule invalid type: integer, expected a string",
        "ETCH201 spec.rules[2] missing field `rule`",
        "ETCH201 spec.rules[3] invalid type: integer, expected an object",
        "ETCH201 spec.rules[4].severity unknown value, expected `Deny` or `Warn`",
    ];
    assert_eq!(found(wrong), expected);
}

#[test]
fn a_target_in_a_subresource_is_never_asked_about() {
    let found = |subresources: Value| {
        let mut crd = crd().into_inner();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] =
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        crd["spec"]["versions"][0]["subresources"] = subresources;
        let found =
            lint_embedded(&document(json!({ "targets": [target(".status.value")] })), &[Json::from(crd)]);
        found.iter().map(|finding| format!("{} {}", finding.rule.code, finding.message)).collect::<Vec<_>>()
    };
    assert_eq!(
        found(json!({ "status": {} })),
        ["ETCH203 API servers never ask about .status of things.example.com v1: it is a subresource"]
    );
    assert_eq!(found(json!({})), [""; 0]);
}

#[test]
fn places_in_the_schema_are_the_servers_or_those_of_the_embedded_schema() {
    let schema = |properties: Value, rules: Value| {
        json!({
            "schema": {
                "openAPIV3Schema": {
                    "type": "object", "properties": properties, "x-kubernetes-validations": rules,
                },
            },
        })
    };
    let typed = |rule: &str| json!([{ "rule": "true" }, { "rule": rule }]);
    let places = |more: Value| -> Vec<String> {
        let line = |line: String| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
        found(more).into_iter().map(line).collect()
    };
    let below = json!({
        "l": { "type": "array", "items": { "type": "object", "x-kubernetes-validations": typed("self.x") } },
    });
    assert_eq!(
        places(schema(below, typed("self.y"))),
        [
            "ETCH202 spec.schema.openAPIV3Schema.properties[l].items.x-kubernetes-validations[1].rule",
            "ETCH202 spec.schema.openAPIV3Schema.x-kubernetes-validations[1].rule",
        ]
    );
    let held = json!({ "ob": { "type": "object", "properties": { "d": { "type": "string", "default": "x" } },
        "x-kubernetes-validations": [{ "rule": "self.d == oldSelf.d" }] } });
    let found = found(schema(held, json!([])));
    let expected = "ETCH014 spec.schema.ob.d a rule of spec.schema.ob compares the field with its old value";
    assert!(found.contains(&expected.to_owned()), "{found:?}");
    assert!(!found.iter().any(|line| line.contains("etchExtension")), "{found:?}");
}

#[test]
fn a_path_goes_through_lists_with_stars_and_a_merged_default_is_an_object() {
    let default =
        |path: &str, value: &str| json!({ "defaults": [{ "path": path, "value": value, "where": "Merge" }] });
    assert_eq!(found(default(".disks[*]", "{'name': 'a'}")), [""; 0]);
    assert_eq!(
        found(default(".disks[].name", "{}")),
        ["ETCH201 spec.defaults[0].path expected `.name` or `[*]` at character 8"]
    );
    assert_eq!(
        found(default(".size", "'a'")),
        ["ETCH202 spec.defaults[0].value the expression must evaluate to an object, not to string"]
    );
}

#[test]
fn a_field_leads_to_its_line() {
    let (field, item) = (|name: &str| Part::Field(name.to_owned()), Part::Item);
    assert_eq!(parts("spec.rules[3].rule"), [field("spec"), field("rules"), item(3), field("rule")]);
    assert_eq!(parts("spec"), [field("spec")]);
    assert_eq!(
        parts("spec.properties[l].items.x-kubernetes-validations[1].rule"),
        [
            field("spec"),
            field("properties"),
            field("l"),
            field("items"),
            field("x-kubernetes-validations"),
            item(1),
            field("rule")
        ]
    );
}
