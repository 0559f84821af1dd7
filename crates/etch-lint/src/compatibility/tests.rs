use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// A case of `cases.yaml`.
#[derive(Deserialize)]
struct Case {
    name: String,
    old: Value,
    new: Value,
    found: Vec<String>,
}

fn version(name: &str, served: bool, storage: bool, spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}})
}

fn crd(versions: &[Value]) -> Value {
    json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"}, "versions": versions}})
}

/// What is found, in short; findings about the CRD as a whole have no path.
fn found(old: Value, new: Value) -> Vec<String> {
    let short = |finding: Finding| match finding.path.is_root() {
        true => format!("{} {}: {}", finding.rule.code, finding.version, finding.message),
        false => format!("{} {}: {}", finding.rule.code, finding.path, finding.message),
    };
    compatibility(&old.into(), &new.into()).into_iter().map(short).collect()
}

#[test]
fn changes_of_schemas_are_found() {
    let cases: Vec<Case> = serde_yaml_ng::from_str(include_str!("cases.yaml")).expect("cases");
    let mut seen: Vec<String> = Vec::new();
    for Case { name, old, new, found: mut expected } in cases {
        let one = |spec: &Value| crd(&[version("v1", true, true, spec)]);
        let mut found = found(one(&old), one(&new));
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{name}");
        assert_eq!(self::found(one(&old), one(&old)), [""; 0], "{name}: nothing changes");
        seen.extend(found.iter().map(|text| text[..7].to_owned()));
    }
    let of_crd = ["ETCH311", "ETCH312", "ETCH316", "ETCH317", "ETCH326", "ETCH329"];
    for rule in COMPATIBILITY_RULES {
        assert!(
            of_crd.contains(&rule.code) || seen.iter().any(|code| code == rule.code),
            "{} has no case",
            rule.code
        );
    }
}

#[test]
fn what_a_crd_serves_is_compared() {
    let spec = json!({"type": "object"});
    let old = crd(&[
        version("v1", true, true, &spec),
        version("v1beta1", true, false, &spec),
        version("v1alpha1", false, false, &spec),
    ]);
    let new = crd(&[version("v1", false, false, &spec), version("v2", true, true, &spec)]);
    assert_eq!(
        found(old, new),
        [
            "ETCH311 v1beta1: the version is gone",
            "ETCH316 : the storage version was v1 and is v2",
            "ETCH311 v1: the version is no longer served",
        ]
    );
}

#[test]
fn a_new_storage_version_loses_what_it_does_not_have() {
    let (wide, narrow) =
        (json!({"properties": {"a": {}, "b": {}}, "required": ["a"]}), json!({"properties": {"a": {}}}));
    let both = |is_moved: bool| {
        crd(&[version("v1", true, !is_moved, &wide), version("v2", true, is_moved, &narrow)])
    };
    let moved = "ETCH316 : the storage version was v1 and is v2";
    assert_eq!(
        found(both(false), both(true)),
        [moved, "ETCH310 .spec.b: the field is gone: objects are stored at v2, and were at v1"]
    );
    assert_eq!(found(both(true), both(false)), ["ETCH316 : the storage version was v2 and is v1"]);
    // One that the version itself loses is a finding once.
    let mut old = both(false);
    old["spec"]["versions"][1] = version("v2", true, false, &wide);
    let lost = ["ETCH310 .spec.b: the field is gone"];
    assert_eq!(
        found(old, both(true)).into_iter().filter(|text| text.starts_with("ETCH310")).collect::<Vec<_>>(),
        lost
    );
    let converted = |mut crd: Value| {
        crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
        crd
    };
    assert_eq!(found(converted(both(false)), converted(both(true))), [moved]);
}

#[test]
fn a_new_storage_version_refuses_objects_where_the_one_before_takes_no_writes_any_more() {
    let (wide, narrow) = (
        json!({"properties": {"a": {"enum": ["x", "y"]}}}),
        json!({"properties": {"a": {"enum": ["x"]}}, "required": ["a"]}),
    );
    let at = |served: bool, is_moved: bool| {
        crd(&[version("v1", served, !is_moved, &wide), version("v2", true, is_moved, &narrow)])
    };
    let codes = |old: Value, new: Value| -> Vec<String> {
        let all = found(old, new).into_iter().filter(|text| text.contains("objects are stored at v2"));
        all.map(|text| text.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(codes(at(true, false), at(false, true)), ["ETCH302", "ETCH303"]);
    assert_eq!(codes(at(true, false), at(true, true)), [""; 0]);
}

#[test]
fn names_and_endpoints_are_compared() {
    let version = version("v1", true, true, &json!({"type": "object"}));
    let (mut old, mut new) = (crd(std::slice::from_ref(&version)), crd(&[version]));
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["names"]["kind"] = json!("Other");
    old["spec"]["names"]["shortNames"] = json!(["th", "t"]);
    new["spec"]["names"]["shortNames"] = json!(["t"]);
    old["spec"]["conversion"] = json!({"strategy": "Webhook"});
    old["spec"]["preserveUnknownFields"] = json!(true);
    old["spec"]["versions"][0]["subresources"] = json!({"scale": {}});
    new["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    old["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.a"}]);
    new["spec"]["versions"][0]["deprecated"] = json!(true);
    assert_eq!(
        found(old, new),
        [
            "ETCH310 : spec.preserveUnknownFields is no longer true: fields that the schema does not declare \
             are dropped",
            "ETCH312 : spec.names.kind was Thing and is Other",
            "ETCH312 : spec.scope was Namespaced and is Cluster",
            "ETCH326 : spec.conversion.strategy was Webhook and is None",
            "ETCH326 : spec.names.shortNames no longer has th",
            "ETCH326 v1: the selectable field .spec.a is gone",
            "ETCH326 v1: the subresource scale is gone",
            "ETCH326 v1: the subresource status is new: writes of the object no longer change its status",
            "ETCH326 v1: the version is deprecated now: every request at it is answered with a warning",
        ]
    );
}

#[test]
fn paths_of_the_scale_subresource_are_compared() {
    let of = |scale: Value| {
        let mut version = version("v1", true, true, &json!({"type": "object"}));
        version["subresources"] = json!({"scale": scale});
        crd(&[version])
    };
    let old = json!({
        "specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r", "labelSelectorPath": ".status.s",
    });
    let new = json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.r"});
    assert_eq!(
        found(of(old.clone()), of(new.clone())),
        [
            "ETCH326 v1: scale.labelSelectorPath was .status.s and is gone",
            "ETCH326 v1: scale.specReplicasPath was .spec.r and is .spec.size",
        ]
    );
    let bare = json!({"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"});
    assert_eq!(found(of(bare), of(old)), [""; 0]);
}

#[test]
fn what_every_object_has_need_not_be_declared() {
    let of = |schema: Value| {
        crd(&[json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}})])
    };
    let declared = of(
        json!({"type": "object", "required": ["metadata"], "properties": {"apiVersion": {"type": "string"},
        "kind": {"type": "string"}, "metadata": {"type": "object"}, "status": {"type": "object"}}}),
    );
    let bare = of(json!({"type": "object"}));
    assert_eq!(found(declared.clone(), bare.clone()), ["ETCH310 .status: the field is gone"]);
    assert_eq!(found(bare, declared), [""; 0]);
}

#[test]
fn limits_of_what_every_object_has_are_new_though_it_was_not_declared() {
    let of = |properties: Value| {
        let schema = json!({"type": "object", "properties": properties});
        crd(&[json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}})])
    };
    let short = json!({"type": "string", "maxLength": 10});
    let limited = of(json!({"metadata": {"type": "object", "properties": {"name": short}},
        "apiVersion": {"type": "string", "enum": ["example.com/v2"]}}));
    let expected = [
        "ETCH303 .apiVersion: only \"example.com/v2\" are allowed now",
        "ETCH305 .metadata.name: maxLength is 10; before, there was none",
    ];
    assert_eq!(found(of(json!({})), limited.clone()), expected);
    assert_eq!(found(of(json!({"metadata": {"type": "object"}})), limited.clone()), expected);
    assert_eq!(found(limited, of(json!({}))), [""; 0]);
}

#[test]
fn versions_that_come_to_differ_are_found_once() {
    let (wide, narrow) = (
        json!({"properties": {"a": {"type": "string"}}}),
        json!({"properties": {"a": {"type": "string", "maxLength": 3}}}),
    );
    let both = |v1: &Value, v2: &Value| crd(&[version("v1", true, true, v1), version("v2", true, false, v2)]);
    let before = both(&wide, &wide);
    let expected =
        "ETCH317 .spec.a: an object written at v1: maxLength is 3; before, there was none (ETCH305)";
    let only = crd(&[version("v1", true, true, &wide)]);
    assert_eq!(found(only, both(&wide, &narrow)), [expected]);
    assert!(found(before, both(&wide, &narrow)).contains(&expected.to_owned()));
    assert_eq!(found(both(&wide, &narrow), both(&wide, &narrow)), [""; 0]);
    let mut converted = both(&wide, &narrow);
    converted["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let only = {
        let mut only = crd(&[version("v1", true, true, &wide)]);
        only["spec"]["conversion"] = json!({"strategy": "Webhook"});
        only
    };
    assert_eq!(found(only, converted.clone()), [""; 0]);
    // Nothing translates any more what differed all along.
    let strategy = "ETCH326 : spec.conversion.strategy was Webhook and is None";
    assert_eq!(found(converted, both(&wide, &narrow)), [strategy, expected]);
}

#[test]
fn a_default_of_the_version_written_at_is_there_at_another() {
    let required = |field: Value| json!({"type": "object", "required": ["a"], "properties": {"a": field}});
    let (with, without) =
        (required(json!({"type": "string", "default": "x"})), required(json!({"type": "string"})));
    let old = crd(&[version("v1", true, true, &with)]);
    let new = crd(&[version("v1", true, true, &with), version("v2", true, false, &without)]);
    assert_eq!(found(old, new), [""; 0]);
}

#[test]
fn findings_have_the_place_of_their_version() {
    let (old, new) =
        (json!({"properties": {"a": {"type": "string"}}}), json!({"properties": {"a": {"type": "integer"}}}));
    let of = |spec: &Value| crd(&[version("v2", true, true, &old), version("v1", true, false, spec)]);
    let findings = compatibility(&of(&old).into(), &of(&new).into());
    let places: Vec<_> = findings.iter().map(|finding| (finding.rule.code, finding.version_index)).collect();
    assert_eq!(places, [("ETCH317", Some(0)), ("ETCH301", Some(1)), ("ETCH317", Some(1))]);
}
