//! Objects that are stored at, or written in, another version than the storage version.

use super::*;

#[test]
fn a_document_at_another_version_is_converted_where_no_webhook_is_needed() {
    let (plain, color) = (spec(json!({ "a": {} })), spec(json!({ "a": {}, "color": { "default": "red" } })));
    let old = crd(&[("v1beta1", false, plain.clone()), ("v1", true, plain.clone())]);
    let new = crd(&[("v1beta1", false, plain), ("v1", true, color)]);
    let beta: Object =
        json!({ "apiVersion": "example.com/v1beta1", "metadata": { "name": "a" }, "spec": { "a": 1 } })
            .into();
    assert_eq!(
        reported(&Upgrade::new(&old, &new).object(&beta)),
        ["appears on write .spec.color"],
        "fact R2"
    );
    assert_eq!(reported(&Upgrade::new(&new, &new).object(&beta)), [""; 0], "it was so before");
    let unknown: Object = json!({ "apiVersion": "example.com/v7", "metadata": { "name": "a" } }).into();
    assert_eq!(
        reported(&Upgrade::new(&old, &new).object(&unknown)),
        ["problems it cannot be read: stored at v7, which the CRD does not have"]
    );
}

#[test]
fn what_a_server_returned_at_a_narrower_version_does_not_show_what_the_upgrade_removes() {
    let (narrow, wide) = (spec(json!({ "a": {} })), spec(json!({ "a": {}, "legacy": {} })));
    let old = crd(&[("v1", true, wide.clone()), ("v2", false, narrow.clone())]);
    let mut object = tab(json!({ "a": 1 }), json!({ "f:a": {} })).json().clone();
    object["apiVersion"] = json!("example.com/v2");
    let object = Object::from(object);
    let new = crd(&[("v1", true, narrow.clone()), ("v2", false, narrow.clone())]);
    let effect = Upgrade::new(&old, &new).object(&object);
    let partly = Problem::PartlyShown { version: "v2".to_owned(), storage: "v1".to_owned() };
    assert_eq!(effect.problems, [partly]);
    let same = Upgrade::new(&old, &old).object(&object);
    assert!(same.problems.is_empty(), "{same:?}");
}

#[test]
fn an_object_stored_at_the_old_storage_version_is_read_with_that_versions_defaults() {
    let (plain, color) = (json!({ "a": {} }), json!({ "a": {}, "color": { "default": "red" } }));
    let old = crd(&[("v1beta1", true, spec(plain.clone()))]);
    let new = crd(&[("v1beta1", false, spec(plain.clone())), ("v1", true, spec(color.clone()))]);
    let mut object = tab(json!({ "a": 1 }), json!({ "f:a": {} })).json().clone();
    object["apiVersion"] = json!("example.com/v1beta1");
    let object = Object::from(object);
    assert_eq!(reported(&Upgrade::new(&old, &new).object(&object)), ["appears on write .spec.color"]);
    assert_eq!(Upgrade::new(&old, &new).schemas().defaults_added.len(), 1);
    let (bare, full) = (spec(plain.clone()), spec(color.clone()));
    let blue = spec(json!({ "a": {}, "color": { "default": "blue" } }));
    let red = crd(&[("v1beta1", false, bare.clone()), ("v1", true, full)]);
    let blue = crd(&[("v1beta1", false, bare), ("v1", true, blue)]);
    let (_, other) =
        Upgrade::new(&red, &blue).stored(object.json().clone(), 0, &Record::default()).expect("readable");
    assert_eq!(reported(&other), ["appears on write .spec.color"], "the same default gave another value");
    let new = crd(&[("v1beta1", false, spec(color.clone())), ("v1", true, spec(plain))]);
    let hidden = Upgrade::new(&old, &new).object(&object);
    assert_eq!(reported(&hidden), [""; 0], "what conversion hands over is pruned");
    let new = crd(&[("v1", true, spec(color))]);
    assert_eq!(
        reported(&Upgrade::new(&old, &new).object(&object)),
        ["problems it cannot be read: stored at v1beta1, which the CRD does not have"]
    );
}

#[test]
fn what_lacks_a_default_of_the_storage_version_may_show_those_of_the_version_that_it_is_stored_at() {
    let versions = |beta: Value| {
        let storage = json!({ "count": {}, "size": { "default": 1 } });
        crd(&[("v1beta1", false, spec(beta)), ("v1", true, spec(storage))])
    };
    let old = versions(json!({ "count": { "default": 5 }, "size": {} }));
    let new = versions(json!({ "count": {}, "size": {} }));
    let reported = |object| reported(&Upgrade::new(&old, &new).object(&object));
    assert_eq!(
        reported(tab(json!({ "count": 5 }), json!({}))),
        ["disappears .spec.count", "protected .spec.count"]
    );
    assert_eq!(reported(tab(json!({ "count": 6 }), json!({}))), [""; 0]);
}

#[test]
fn fields_that_another_version_loses_may_be_hidden_in_objects_that_are_stored_there() {
    let crd = |beta: Value| {
        let storage = json!({ "a": {}, "b": {}, "new": {} });
        crd(&[("v1beta1", false, spec(beta)), ("v1", true, spec(storage))])
    };
    let (old, new) = (crd(json!({ "a": {}, "b": {} })), crd(json!({ "a": {} })));
    let upgrade = Upgrade::new(&old, &new);
    let object = tab(json!({ "a": 1, "b": 2 }), json!({ "f:a": {}, "f:b": {} }));
    let effect = upgrade.object(&object);
    assert_eq!(reported(&effect), ["hidden .spec.b"]);
    assert!(effect.open.is_open(EffectKind::Hidden, &effect.hidden[0]));
    let moved = Record { all_at_storage_version: true, ..Record::default() };
    assert_eq!(reported(&upgrade.on_record(&object, &moved).0), [""; 0]);
    let since = tab(json!({ "a": 1, "b": 2, "new": 3 }), json!({ "f:a": {}, "f:b": {}, "f:new": {} }));
    assert_eq!(
        reported(&upgrade.object(&since)),
        [""; 0],
        "read at v1beta1, it would not show the new field"
    );
}

#[test]
fn what_a_webhook_converts_is_not_judged_in_other_terms() {
    let (old, new) = (
        converted(json!({ "host": { "type": "string" } })),
        converted(json!({ "host": { "type": "string" }, "port": { "default": 1 } })),
    );
    let bytes =
        json!({ "apiVersion": "example.com/v1beta1", "metadata": { "name": "a" }, "spec": { "host": "h" } });
    let (_, effect) = Upgrade::new(&old, &new).stored(bytes.into(), 0, &Record::default()).expect("readable");
    assert_eq!(
        reported(&effect),
        [
            "appears .spec.port",
            "problems not known to be valid: it is stored at v1beta1, and a webhook converts it"
        ]
    );
}

#[test]
fn what_a_webhook_converts_may_lose_fields_before() {
    let (old, new) = (converted(json!({ "host": {}, "port": {} })), converted(json!({ "host": {} })));
    let object = tab(json!({ "host": 1 }), json!({ "f:host": {} }));
    let (effect, _) = Upgrade::new(&old, &new).on_record(&object, &Record::default());
    let loses =
        "problems not known to be stored at v1: at v1beta1 it loses fields that v1beta1 no longer has";
    assert_eq!(reported(&effect), [loses]);
    let moved = Record { all_at_storage_version: true, ..Record::default() };
    assert_eq!(reported(&Upgrade::new(&old, &new).on_record(&object, &moved).0), [""; 0]);
    assert_eq!(reported(&Upgrade::new(&new, &old).on_record(&object, &Record::default()).0), [""; 0]);
}

#[test]
fn nothing_is_certain_of_the_defaults_of_what_a_webhook_may_convert() {
    let with = |port: Value| converted_to(json!({ "host": {} }), json!({ "host": {}, "port": port }));
    let (old, new) = (with(json!({})), with(json!({ "default": 1 })));
    let object = tab(json!({ "host": 1 }), json!({ "f:host": {} }));
    let (effect, _) = Upgrade::new(&old, &new).on_record(&object, &Record::default());
    assert_eq!(reported(&effect), ["appears .spec.port"]);
    assert!(effect.open.is_open(EffectKind::Appears, &effect.appears[0]));
    let moved = Record { all_at_storage_version: true, ..Record::default() };
    let (effect, _) = Upgrade::new(&old, &new).on_record(&object, &moved);
    assert_eq!(reported(&effect), ["appears .spec.port"]);
    assert!(effect.open.is_none(), "{effect:?}");
}

/// A CRD whose objects a webhook converts, with this `spec` at the version that is not the storage version.
fn converted(beta: Value) -> Crd {
    converted_to(beta, json!({ "host": { "type": "integer" } }))
}

/// The same with these fields at the storage version.
fn converted_to(beta: Value, stable: Value) -> Crd {
    let schema =
        |spec: Value| json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    let stable = spec(stable);
    Crd::read(&Json::from(json!({
        "metadata": { "name": "tabs.example.com" },
        "spec": {
            "group": "example.com", "names": { "kind": "Tab", "plural": "tabs" },
            "conversion": { "strategy": "Webhook" },
            "versions": [
                { "name": "v1beta1", "served": true, "schema": schema(spec(beta)) },
                { "name": "v1", "served": true, "storage": true, "schema": schema(stable) },
            ],
        },
        "status": { "storedVersions": ["v1beta1", "v1"] },
    })))
    .expect("a CRD")
}
