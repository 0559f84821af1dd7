//! Whole CRDs, and the parts of the server's answer that show one rule each. `e2e/vectors` has thousands
//! more.

use serde_json::{Value, json};

use super::{Release, validate_create, validate_create_on, validate_update};
use kube_structural_schema::finding::Finding;

fn crd(spec: Value) -> Value {
    let mut crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", true, spec)]}});
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    crd
}

fn version(name: &str, storage: bool, spec: Value) -> Value {
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema":
        {"type": "object", "properties": {"spec": spec}}}})
}

fn lines(found: &[Finding]) -> Vec<String> {
    found.iter().map(|finding| format!("{} {}: {}", finding.kind, finding.field, finding.detail)).collect()
}

fn created(spec: Value) -> Vec<String> {
    lines(&validate_create(&crd(spec)).expect("decodes"))
}

#[test]
fn a_sound_crd_is_accepted() {
    assert_eq!(created(json!({"type": "object"})), [""; 0]);
}

#[test]
fn the_namespace_of_a_crd_is_cleared() {
    let sound = crd(json!({"type": "object"}));
    let mut in_namespace = sound.clone();
    in_namespace["metadata"]["namespace"] = json!("default");
    assert_eq!(validate_create(&in_namespace).expect("decodes"), []);
    assert_eq!(validate_update(&in_namespace, &sound).expect("decodes"), []);
}

#[test]
fn what_all_versions_share_is_reported_once_and_at_the_top() {
    let mut twins = crd(json!({"type": "object", "uniqueItems": true}));
    let twin = twins["spec"]["versions"][0].clone();
    twins["spec"]["versions"] = json!([twin, twin]);
    twins["spec"]["versions"][1]["name"] = json!("v2");
    twins["spec"]["versions"][1]["storage"] = json!(false);
    let found = validate_create(&twins).expect("decodes");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].field, "spec.validation.openAPIV3Schema.properties[spec].uniqueItems");
    twins["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["description"] = json!("another");
    let found = validate_create(&twins).expect("decodes");
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1].field, "spec.versions[1].schema.openAPIV3Schema.properties[spec].uniqueItems");
}

#[test]
fn a_rule_over_unbounded_items_is_too_expensive_and_the_advice_has_the_factor() {
    let rule = json!([{"rule": "self.all(x, self.all(y, x != y))"}]);
    let items = json!({
        "type": "array", "items": {"type": "string", "maxLength": 64}, "x-kubernetes-validations": rule,
    });
    let found = created(items.clone());
    assert!(found[0].contains("estimated rule cost exceeds budget by factor of more than 100x"), "{found:?}");
    let mut bounded = items;
    bounded["maxItems"] = json!(20);
    assert_eq!(created(bounded), [""; 0]);
}

#[test]
fn a_transition_rule_that_can_never_apply_is_refused() {
    let item =
        json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    let found = created(json!({"type": "array", "maxItems": 9, "items": item}));
    assert_eq!(
        found,
        ["FieldValueInvalid \
             spec.validation.openAPIV3Schema.properties[spec].items.x-kubernetes-validations[0].rule: \
             oldSelf cannot be used on the uncorrelatable portion of the schema within \
             spec.validation.openAPIV3Schema.properties[spec]"]
    );
}

#[test]
fn an_update_may_keep_what_was_wrong_before() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let old = crd(set);
    assert!(!validate_create(&old).expect("decodes").is_empty());
    assert_eq!(validate_update(&old, &old).expect("decodes"), []);
}

#[test]
fn a_version_that_was_stored_must_stay() {
    let old = crd(json!({"type": "object"}));
    let mut new = old.clone();
    new["spec"]["versions"] = json!([version("v2", true, json!({"type": "object"}))]);
    let found = validate_update(&new, &old).expect("decodes");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].field, "status.storedVersions[0]");
}

#[test]
fn releases_differ_where_their_functions_and_their_grammar_do() {
    let strings = json!({"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9}});
    let object = json!({"type": "object", "properties": {"in": {"type": "integer"}}});
    for (mut schema, rule, expected) in [
        (strings, "self.distinct() == self", &["1.34"][..]),
        (object, "self.`in` < 5", &["1.34", "1.35", "1.36"]),
        (json!({"type": "integer"}), "duration(self) < duration('5s')", &["1.37"]),
    ] {
        schema["x-kubernetes-validations"] = json!([{ "rule": rule }]);
        let crd = crd(schema);
        let refused: Vec<String> = Release::ALL
            .into_iter()
            .filter(|release| !validate_create_on(*release, &crd).expect("decodes").is_empty())
            .map(|release| release.to_string())
            .collect();
        assert_eq!(refused, expected, "{rule}");
    }
}

#[test]
fn what_does_not_decode_names_the_field() {
    let malformed = validate_create(&crd(json!({"maxLength": "9"}))).expect_err("a text is no number");
    assert_eq!(
        malformed.to_string(),
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].maxLength: must be a 64-bit integer"
    );
}

#[test]
fn owners_are_the_servers_own_in_a_new_crd_and_are_judged_in_an_update_that_it_can_read() {
    let entry = |field: &str, value: Value| {
        let mut entry = json!({"manager": "m", "operation": "Update", "apiVersion": "apiextensions.k8s.io/v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:group": {}}}});
        entry[field] = value;
        entry
    };
    let long = || entry("manager", json!("x".repeat(129)));
    let with = |field: &str, value: Value| {
        let mut entry = long();
        entry[field] = value;
        entry
    };
    let too_long = "FieldValueTooLong metadata.managedFields[0].manager: may not be more than 128 bytes";
    let cases = [
        (json!([{}]), ""),
        (json!([entry("operation", json!(""))]), ""),
        (json!([entry("operation", json!("Foo"))]), ""),
        (json!([entry("fieldsType", json!("Foo"))]), ""),
        (json!([long()]), too_long),
        (json!([long(), entry("operation", json!("Foo"))]), ""),
        (json!([with("fieldsV1", json!({}))]), ""),
        (json!([with("fieldsV1", json!({"x": {}}))]), ""),
        (json!([with("apiVersion", json!("foo/v7"))]), ""),
        (
            json!([entry("manager", json!("a\nb"))]),
            "FieldValueInvalid metadata.managedFields[0].manager: invalid character U+000A (at position 1)",
        ),
        (
            json!([entry("subresource", json!("x".repeat(257)))]),
            "FieldValueTooLong metadata.managedFields[0].subresource: may not be more than 256 bytes",
        ),
    ];
    for (managed, expected) in cases {
        let mut old = crd(json!({"type": "object"}));
        let mut new = old.clone();
        new["metadata"]["managedFields"] = managed.clone();
        assert_eq!(lines(&validate_create(&new).expect("decodes")), [""; 0], "{managed}");
        for crd in [&mut old, &mut new] {
            crd["metadata"]["resourceVersion"] = json!("1");
        }
        let found = lines(&validate_update(&new, &old).expect("decodes"));
        let expected: Vec<_> = [expected].into_iter().filter(|line| !line.is_empty()).collect();
        assert_eq!(found, expected, "{managed}");
    }
}
