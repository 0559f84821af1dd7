//! What a CRD is reduced to, and what is not a CRD.

use serde_json::{Value, json};

use super::{Crd, CrdError, Unserved};
use kube_structural_schema::json::Json;

fn document() -> Value {
    json!({
        "metadata": { "name": "things.example.com", "uid": "u", "generation": 3 },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "kind": "Thing", "plural": "things" },
            "versions": [
                version("v1beta1", false, json!({ "type": "object" })),
                version("v1", true, json!({ "type": "object", "properties": { "spec": {
                    "type": "object", "properties": { "size": { "type": "integer", "default": 1 } },
                }}})),
            ],
        },
    })
}

fn version(name: &str, storage: bool, schema: Value) -> Value {
    json!({ "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema } })
}

fn read(document: Value) -> Result<Crd, CrdError> {
    Crd::read(&Json::from(document))
}

/// The document with the value at a JSON pointer replaced, or removed if it is null.
fn with(pointer: &str, value: Value) -> Value {
    let mut document = document();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let fields = document.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
    match value {
        Value::Null => drop(fields.remove(name)),
        value => drop(fields.insert(name.to_owned(), value)),
    }
    document
}

#[test]
fn says_what_decisions_need() {
    let crd = read(document()).expect("a CRD");
    assert_eq!((crd.name(), crd.uid(), crd.generation()), ("things.example.com", "u", 3));
    assert_eq!((crd.group(), crd.kind(), crd.is_namespaced()), ("example.com", "Thing", true));
    assert_eq!((crd.storage().name.as_str(), crd.api_version()), ("v1", "example.com/v1".to_owned()));
    assert_eq!(crd.resource().to_string(), "things.example.com/v1");
    assert!(crd.compiled().has_defaults());
    assert!(crd.version("v1beta1").is_some() && crd.version("v2").is_none());
    assert_eq!(crd.versions().len(), 2);
}

#[test]
fn a_document_from_a_file_has_neither_uid_nor_generation() {
    let crd = read(with("/metadata", json!({ "name": "things.example.com" }))).expect("a CRD");
    assert_eq!((crd.uid(), crd.generation()), ("", 0));
}

#[test]
fn what_is_missing_is_named() {
    let cases = [
        ("/spec", json!(null), "spec is missing or not an object"),
        ("/metadata/name", json!(null), "metadata.name is missing or not a name"),
        ("/metadata/name", json!(""), "metadata.name is missing or not a name"),
        ("/spec/group", json!(null), "spec.group is missing or not a group"),
        ("/spec/names/kind", json!(7), "spec.names.kind is missing or not a kind"),
        ("/spec/names/plural", json!(null), "spec.names.plural is missing or not a plural"),
        ("/spec/versions", json!(null), "spec.versions is missing or not a list of versions"),
        ("/spec/versions", json!([]), "spec.versions is missing or not a list of versions"),
        ("/spec/versions", json!({}), "spec.versions is missing or not a list of versions"),
        ("/spec/versions", json!([{ "storage": true }]), "spec.versions[].name is missing or not a name"),
        (
            "/spec/versions",
            json!([version("v1", false, json!({}))]),
            "spec.versions[].storage is missing or not true for any version",
        ),
    ];
    for (pointer, value, expected) in cases {
        let text = read(with(pointer, value.clone())).map(drop).expect_err(pointer).to_string();
        assert_eq!(text, expected, "{pointer} = {value}");
    }
    assert!(read(json!(null)).is_err() && read(json!([1])).is_err());
}

#[test]
fn a_schema_that_cannot_be_read_is_named_by_its_version_and_not_quoted() {
    let versions = json!([
        version("v1", true, json!({ "type": "object" })),
        version("v2", false, json!({ "type": "object", "properties": { "a": "hunter2" } })),
    ]);
    let error = read(with("/spec/versions", versions)).map(drop).expect_err("no schema");
    let text = error.to_string();
    assert!(text.starts_with("the schema of version v2 cannot be read: "), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_version_without_a_schema_says_nothing() {
    let versions = json!([{ "name": "v1", "served": true, "storage": true }]);
    let crd = read(with("/spec/versions", versions)).expect("a CRD");
    assert!(!crd.compiled().has_defaults());
}

#[test]
fn versions_disagree_where_a_served_one_has_another_schema() {
    let schema = || json!({ "type": "object", "properties": { "a": { "type": "integer", "maximum": 1 } } });
    let like = || json!({ "properties": { "a": { "maximum": 1.0, "type": "integer" } }, "type": "object" });
    let unserved = |mut version: Value| {
        version["served"] = json!(false);
        version
    };
    let cases = [
        (vec![version("v1", true, schema())], false),
        (vec![version("v1", true, schema()), version("v2", false, like())], false),
        (vec![version("v1", true, schema()), version("v2", false, json!({ "type": "object" }))], true),
        (
            vec![version("v1", true, schema()), unserved(version("v2", false, json!({ "type": "object" })))],
            false,
        ),
        (vec![unserved(version("v1", true, schema())), version("v2", false, json!({}))], true),
    ];
    for (versions, expected) in cases {
        let crd = read(with("/spec/versions", versions.clone().into())).expect("a CRD");
        assert_eq!(crd.versions_disagree(), expected, "{versions:?}");
    }
}

#[test]
fn versions_disagree_while_a_webhook_converts_a_second_one_that_is_served() {
    for (served, expected) in [(true, true), (false, false)] {
        let mut second = version("v1beta1", false, json!({ "type": "object" }));
        second["served"] = json!(served);
        let mut document = document();
        document["spec"]["versions"] = json!([version("v1", true, json!({ "type": "object" })), second]);
        document["spec"]["conversion"] = json!({ "strategy": "Webhook" });
        let crd = Crd::read(&Json::from(document)).expect("a CRD");
        assert_eq!(crd.versions_disagree(), expected, "served: {served}");
    }
}

#[test]
fn a_create_drops_status_where_a_served_version_has_the_subresource() {
    let size = |default: Value| json!({ "type": "object", "properties": { "size": default } });
    let schema =
        |field: &str| json!({ "type": "object", "properties": { field: size(json!({ "default": 1 })) } });
    for (field, subresources, expected) in [
        ("status", json!({ "status": {} }), true),
        ("status", json!({ "scale": {} }), false),
        ("status", Value::Null, false),
        ("spec", json!({ "status": {} }), false),
    ] {
        let mut only = version("v1", true, schema(field));
        only["subresources"] = subresources.clone();
        let crd = read(with("/spec/versions", json!([only]))).expect("a CRD");
        assert_eq!(crd.creates_drop_status(), expected, "{field} {subresources}");
        assert_eq!(crd.has_status_default(), field == "status");
    }
}

#[test]
fn a_webhook_may_rename_fields_and_none_does_not() {
    for (conversion, alike) in [
        (json!(null), true),
        (json!({ "strategy": "None" }), true),
        (json!({ "strategy": "Webhook" }), false),
    ] {
        let crd = read(with("/spec/conversion", conversion)).expect("a CRD");
        assert!(crd.names_fields_alike("v1"));
        assert_eq!(crd.names_fields_alike("v1beta1"), alike);
        assert_eq!(crd.names_fields_alike("gone"), alike);
    }
}

#[test]
fn cluster_scoped_objects_have_no_namespace() {
    assert!(!read(with("/spec/scope", json!("Cluster"))).expect("a CRD").is_namespaced());
}

#[test]
fn a_group_that_the_server_serves_itself_shadows_a_crd() {
    for (group, expected) in [
        ("apps", true),
        ("networking.k8s.io", true),
        ("policy", true),
        ("example.com", false),
        ("gateway.networking.k8s.io", false),
        ("apps.example.com", false),
    ] {
        let crd = read(with("/spec/group", json!(group))).expect("a CRD");
        assert_eq!(crd.is_shadowed(), expected, "{group}");
    }
}

/// A server serves such a CRD without the schema, or does not serve it (fact D12).
#[test]
fn a_schema_that_cannot_be_read_is_none_where_unknown_fields_are_kept() {
    let versions = json!([version(
        "v1",
        true,
        json!({ "type": "object", "properties": { "spec": {
        "default": { "a": 1 }, "$ref": "#/definitions/spec" } } })
    )]);
    assert!(matches!(read(with("/spec/versions", versions.clone())), Err(CrdError::Schema { .. })));
    let mut legacy = with("/spec/versions", versions);
    legacy["spec"]["preserveUnknownFields"] = json!(true);
    let crd = read(legacy).expect("a CRD");
    assert!(crd.preserves_unknown_fields() && !crd.compiled().has_defaults());
    let mut malformed = with("/spec/versions", json!([version("v1", true, json!({ "type": 1 }))]));
    malformed["spec"]["preserveUnknownFields"] = json!(true);
    assert!(matches!(read(malformed), Err(CrdError::Schema { .. })), "no server can read it");
}

#[test]
fn defaults_that_get_an_invalid_one_are_known() {
    let document = with(
        "/spec/versions",
        json!([version(
            "v1",
            true,
            json!({ "type": "object", "properties": {
        "m": { "type": "object", "default": { "a": {} },
            "additionalProperties": { "type": "object", "properties": {
            "p": { "type": "integer", "minimum": 1, "default": 0 },
            "q": { "type": "integer", "default": 0 } } } } } })
        )]),
    );
    let crd = read(document).expect("a CRD");
    let invalid: Vec<_> = crd.invalid_defaults().iter().map(ToString::to_string).collect();
    assert_eq!(invalid, [".m{}.p"]);
    let gives = |path: &str| crd.gives_invalid_default(&path.parse().expect("a path"));
    assert!(gives(".m") && gives(".m{}.p") && !gives(".m{}.q") && !gives(".m{}"));
}

#[test]
fn conditions_say_why_a_crd_is_not_served() {
    let crd = |status: Value| Unserved::of(&Json::from(json!({ "status": status })));
    let names = json!({ "plural": "crontabs", "kind": "CronTab" });
    let none = json!({ "plural": "", "kind": "" });
    let of_type =
        |name: &str, status: &str| json!([{ "type": name, "status": status, "reason": "KindConflict" }]);
    let refused = Some(Unserved::Names("KindConflict".to_owned()));
    assert_eq!(
        crd(json!({ "acceptedNames": none, "conditions": of_type("NamesAccepted", "False") })),
        refused
    );
    assert_eq!(crd(json!({ "acceptedNames": names, "conditions": of_type("Established", "True") })), None);
    assert_eq!(crd(json!({ "acceptedNames": names })), Some(Unserved::NoConditions));
    let ours = of_type("DefaultsPersisted", "True");
    assert_eq!(crd(json!({ "acceptedNames": names, "conditions": ours })), Some(Unserved::NoConditions));
    assert_eq!(crd(json!({ "acceptedNames": none, "conditions": null })), None, "new");
}
