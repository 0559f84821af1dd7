//! Upgrades in short: two schemas, an object, and what happens to it.

mod policy;
mod problems;
mod versions;

use serde_json::{Value, json};

use super::*;
use crate::crd::sample;
use crate::plan::{Clock, History, Skip};

fn crd(versions: &[(&str, bool, Value)]) -> Crd {
    let stored: Vec<&str> = versions.iter().map(|(name, ..)| *name).collect();
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, storage, spec)| {
            json!({
                "name": name, "served": true, "storage": storage,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            })
        })
        .collect();
    let document = json!({
        "metadata": { "name": "tabs.example.com" },
        "spec": {
            "group": "example.com", "names": { "kind": "Tab", "plural": "tabs" }, "versions": versions,
        },
        "status": { "storedVersions": stored },
    });
    Crd::read(&document.into()).expect("a CRD")
}

fn spec(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// An object that a server has returned, with one manager who owns `fields` of its spec.
fn tab(spec: Value, fields: Value) -> Object {
    json!({
        "apiVersion": "example.com/v1", "kind": "Tab",
        "metadata": {
            "name": "a", "uid": "1", "resourceVersion": "5",
            "managedFields": [{
                "manager": "user", "operation": "Apply", "fieldsType": "FieldsV1",
                "apiVersion": "example.com/v1",
                "fieldsV1": { "f:spec": fields },
            }],
        },
        "spec": spec,
    })
    .into()
}

/// A record of a pass that every object is older than.
fn all_stored() -> Record {
    Record { through: Some(5), ..Record::default() }
}

/// The effect in short: a line for each list that is not empty.
fn reported(effect: &Effect) -> Vec<String> {
    let paths = |paths: &[Path]| paths.iter().map(Path::to_string).collect::<Vec<_>>().join(" ");
    let problems: Vec<_> = effect.problems.iter().map(ToString::to_string).collect();
    [
        ("appears", paths(&effect.appears)),
        ("appears on write", paths(&effect.appears_on_write)),
        ("changes", paths(&effect.changes)),
        ("follows", paths(&effect.follows)),
        ("disappears", paths(&effect.disappears)),
        ("hidden", paths(&effect.hidden)),
        ("protected", paths(&effect.protected)),
        ("dropped", if effect.dropped { "yes".to_owned() } else { String::new() }),
        ("held", effect.held.as_ref().map(|held| held.reason.as_str().to_owned()).unwrap_or_default()),
        ("problems", problems.join("; ")),
    ]
    .iter()
    .filter(|(_, text)| !text.is_empty())
    .map(|(name, text)| format!("{name} {text}"))
    .collect()
}

fn effect(old: Value, new: Value, object: &Object) -> Vec<String> {
    let (old, new) = (crd(&[("v1", true, spec(old))]), crd(&[("v1", true, spec(new))]));
    reported(&Upgrade::new(&old, &new).object(object))
}

#[test]
fn what_is_stored_stays_and_what_is_not_follows_the_default() {
    let old = json!({ "a": { "type": "integer", "default": 1 } });
    let new = json!({ "a": { "type": "integer", "default": 5 } });
    let phantom = tab(json!({ "a": 1 }), json!({}));
    assert_eq!(effect(old.clone(), new.clone(), &phantom), ["changes .spec.a", "protected .spec.a"]);
    let owned = tab(json!({ "a": 1 }), json!({ "f:a": {} }));
    assert_eq!(effect(old.clone(), new.clone(), &owned), [""; 0]);
    let [before, after] = [&old, &new].map(|schema| crd(&[("v1", true, spec(schema.clone()))]));
    let upgrade = Upgrade::new(&before, &after);
    let claimed = |record: &Record| {
        let mut effect = upgrade.on_record(&owned, record).0;
        let mut tally = Tally::default();
        tally.add(&mut effect, Some((&owned, &before, record)));
        (effect.claimed.iter().map(Path::to_string).collect::<Vec<_>>(), tally.counts.claimed)
    };
    assert_eq!(claimed(&Record::default()), (vec![".spec.a".to_owned()], 1), "a claim can be stale");
    assert_eq!(claimed(&all_stored()), (Vec::new(), 0));
    let other = tab(json!({ "a": 2 }), json!({ "f:a": {} }));
    assert_eq!(effect(old.clone(), new, &other), [""; 0]);
    let gone = json!({ "a": { "type": "integer" } });
    assert_eq!(effect(old, gone, &phantom), ["disappears .spec.a", "protected .spec.a"]);
}

#[test]
fn what_the_new_schema_refuses_is_not_protected() {
    let old = json!({ "a": { "type": "integer", "default": 10 }, "b": { "type": "integer", "default": 1 } });
    let phantom = tab(json!({ "a": 10, "b": 1 }), json!({}));
    let effect = |a: Value| {
        let new = json!({ "a": a, "b": { "type": "integer", "default": 2 } });
        let effect = effect(old.clone(), new, &phantom);
        effect.into_iter().filter(|line| line.starts_with("protected")).collect::<Vec<_>>()
    };
    let all = ["protected .spec.a .spec.b"];
    assert_eq!(effect(json!({ "type": "integer", "default": 5 })), all);
    // Storing `b` would store the 10 as well.
    assert_eq!(effect(json!({ "type": "integer", "default": 5, "maximum": 5 })), [""; 0]);
    assert_eq!(effect(json!({ "type": "string", "default": "10" })), [""; 0]);
}

#[test]
fn what_metadata_of_a_new_embedded_resource_drops_is_hidden() {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let mut resource = any.clone();
    resource["x-kubernetes-embedded-resource"] = json!(true);
    let metadata = json!({ "name": "a", "labels": { "a": 5 }, "foo": 1, "creationTimestamp": null });
    let object: Object = json!({
        "apiVersion": "example.com/v1", "kind": "Tab", "metadata": { "name": "a" },
        "spec": { "t": { "apiVersion": "v1", "kind": "Pod", "metadata": metadata } },
    })
    .into();
    let found = effect(json!({ "t": any }), json!({ "t": resource }), &object);
    assert_eq!(
        found,
        [
            "disappears .spec.t.metadata.creationTimestamp",
            "hidden .spec.t.metadata.foo .spec.t.metadata.labels"
        ]
    );
}

#[test]
fn of_defaults_in_one_another_the_outer_one_may_be_stored_alone() {
    let object = |default: Option<Value>, inner: Option<i64>| {
        let mut x = json!({ "type": "integer" });
        let mut o = json!({ "type": "object" });
        inner.into_iter().for_each(|inner| x["default"] = json!(inner));
        default.into_iter().for_each(|default| o["default"] = default);
        o["properties"] = json!({ "x": x });
        json!({ "o": o })
    };
    let phantom = tab(json!({ "o": { "x": 7 } }), json!({}));
    let old = object(Some(json!({})), Some(7));
    assert_eq!(
        effect(old.clone(), object(None, Some(1)), &phantom),
        ["changes .spec.o.x", "disappears .spec.o", "protected .spec.o .spec.o.x"]
    );
    assert_eq!(
        effect(old.clone(), object(Some(json!({ "x": 3 })), None), &phantom),
        ["changes .spec.o.x", "disappears .spec.o.x", "protected .spec.o.x"]
    );
    assert_eq!(effect(old.clone(), old.clone(), &phantom), [""; 0]);
    // An owner of the outer value leaves no doubt.
    let owned = tab(json!({ "o": { "x": 7 } }), json!({ "f:o": { ".": {} } }));
    assert_eq!(effect(old, object(None, Some(1)), &owned), ["changes .spec.o.x", "protected .spec.o.x"]);
    // An item that was stored before the default inside of it was there.
    let list = |default: Option<Value>, inner: i64| {
        let x = json!({ "type": "integer", "default": inner });
        let items = json!({ "type": "object", "properties": { "name": { "type": "string" }, "x": x } });
        let mut list = json!({ "type": "array", "items": items });
        default.into_iter().for_each(|default| list["default"] = default);
        json!({ "l": list })
    };
    let phantom = tab(json!({ "l": [{ "name": "a", "x": 1 }] }), json!({}));
    assert_eq!(
        effect(list(Some(json!([{ "name": "a" }])), 1), list(None, 5), &phantom),
        ["changes .spec.l[0].x", "disappears .spec.l", "protected .spec.l .spec.l[0].x"]
    );
}

#[test]
fn a_document_that_no_server_returned_is_what_is_stored() {
    let (old, new) = (json!({ "a": { "default": 1 } }), json!({ "a": { "default": 5 } }));
    let written = |spec: Value| -> Object {
        json!({ "apiVersion": "example.com/v1", "metadata": { "name": "a" }, "spec": spec }).into()
    };
    assert_eq!(effect(old.clone(), new.clone(), &written(json!({ "a": 1 }))), [""; 0]);
    assert_eq!(effect(old, new, &written(json!({}))), ["changes .spec.a", "protected .spec.a"]);
}

#[test]
fn what_is_known_to_be_stored_needs_no_owner() {
    let (old, new) = (json!({ "a": { "default": 1 } }), json!({ "a": { "default": 5 } }));
    let (old, new) = (crd(&[("v1", true, spec(old))]), crd(&[("v1", true, spec(new))]));
    let upgrade = Upgrade::new(&old, &new);
    assert_eq!(reported(&upgrade.on_record(&tab(json!({ "a": 1 }), json!({})), &all_stored()).0), [""; 0]);
    let bytes = |spec: Value| {
        json!({ "apiVersion": "example.com/v1", "metadata": { "name": "a" }, "spec": spec }).into()
    };
    let (view, effect) =
        upgrade.stored(bytes(json!({ "gone": 1 })), 0, &Record::default()).expect("readable");
    assert_eq!(view.json()["spec"]["a"], 1);
    assert_eq!(
        reported(&effect),
        ["changes .spec.a", "protected .spec.a"],
        "what was hidden before is no effect"
    );
    let (_, effect) = upgrade.stored(bytes(json!({ "a": 1 })), 0, &Record::default()).expect("readable");
    assert_eq!(reported(&effect), [""; 0]);
}

#[test]
fn a_new_default_appears_where_its_parent_is() {
    let old = json!({ "l": { "items": spec(json!({ "n": {} })) }, "m": {} });
    let new = json!({
        "l": { "items": spec(json!({ "n": {}, "p": { "default": "TCP" } })) },
        "m": { "additionalProperties": spec(json!({ "q": { "default": true } })) },
    });
    let object = tab(json!({ "l": [{ "n": 1 }, {}] }), json!({ "f:l": {} }));
    assert_eq!(effect(old.clone(), new.clone(), &object), ["appears .spec.l[0].p .spec.l[1].p"]);
    let map = tab(json!({ "m": {} }), json!({ "f:m": {} }));
    assert_eq!(effect(old, new, &map), [""; 0]);
}

#[test]
fn keys_of_maps_are_told_from_fields() {
    let old = json!({ "m": { "additionalProperties": spec(json!({ "q": { "default": 1 } })) } });
    let new = json!({ "m": { "additionalProperties": spec(json!({ "q": { "default": 2 } })) } });
    let object = tab(json!({ "m": { "k.1": { "q": 1 } } }), json!({ "f:m": { "f:k.1": {} } }));
    let place = r#".spec.m["k.1"].q"#;
    assert_eq!(effect(old, new, &object), [format!("changes {place}"), format!("protected {place}")]);
}

#[test]
fn what_the_new_schema_does_not_know_is_hidden_where_it_is_stored() {
    let old = json!({ "a": { "default": 1 }, "b": spec(json!({ "c": {}, "d": {} })) });
    let new = json!({ "b": spec(json!({ "c": {} })) });
    let stored = tab(json!({ "a": 1, "b": { "c": 1, "d": 1 } }), json!({ "f:a": {}, "f:b": { "f:d": {} } }));
    assert_eq!(effect(old.clone(), new.clone(), &stored), ["hidden .spec.a .spec.b.d"]);
    let phantom = tab(json!({ "a": 1 }), json!({}));
    assert_eq!(effect(old, new, &phantom), ["disappears .spec.a"]);
}

#[test]
fn a_default_that_somebody_wrote_a_part_of_is_stored_in_part() {
    let part = |default| {
        json!({
            "type": "object", "default": {}, "properties": {
                "x": { "default": default }, "y": { "default": default },
            },
        })
    };
    let (old, new) = (json!({ "o": part(1) }), json!({ "o": part(2) }));
    let object = tab(json!({ "o": { "x": 1, "y": 1 } }), json!({ "f:o": { "f:x": {} } }));
    assert_eq!(effect(old.clone(), new.clone(), &object), ["changes .spec.o.y", "protected .spec.o.y"]);
    let nobody = tab(json!({ "o": { "x": 1, "y": 1 } }), json!({}));
    assert_eq!(effect(old, new, &nobody), ["changes .spec.o.x .spec.o.y", "protected .spec.o.x .spec.o.y"]);
    let gone = json!({ "o": spec(json!({ "x": {}, "y": {} })) });
    assert_eq!(
        effect(json!({ "o": part(1) }), gone.clone(), &nobody),
        ["disappears .spec.o", "protected .spec.o"]
    );
    let empty = tab(json!({ "o": { "x": 1, "y": 1 } }), json!({ "f:o": {} }));
    assert_eq!(
        effect(json!({ "o": part(1) }), gone, &empty),
        ["disappears .spec.o.x .spec.o.y", "protected .spec.o.x .spec.o.y"]
    );
}

#[test]
fn an_object_that_is_nested_too_deeply_is_not_checked() {
    let old = crd(&[("v1", true, spec(json!({ "size": { "type": "integer" } })))]);
    let new = crd(&[("v1", true, spec(json!({ "size": { "type": "integer", "default": 5 } })))]);
    let outline = json!({
        "apiVersion": "example.com/v1", "metadata": { "name": "n", "uid": "u", "resourceVersion": "7" },
    });
    let object = Object::too_deep(outline.into());
    let (mut effect, is_exact) = Upgrade::new(&old, &new).on_record(&object, &Record::default());
    let problems: Vec<String> = effect.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        (&*problems, is_exact),
        (&["not checked: it is nested more than 1000 levels deep".to_owned()][..], false)
    );
    let changed = "2026-01-01T00:00:00Z";
    let served = json!({ "metadata": { "creationTimestamp": changed,
        "managedFields": [{ "time": changed, "fieldsV1": { "f:spec": {} } }] } });
    let record = Record { clock: Clock::of(&served.into(), jiff::Timestamp::MAX), ..Record::default() };
    let outline = json!({ "apiVersion": "example.com/v1", "metadata": { "name": "n", "uid": "u",
        "resourceVersion": "5", "creationTimestamp": "2026-01-02T00:00:00Z" } });
    let object = Object::too_deep(outline.into());
    assert!(record.covers(&object, &old).is_some(), "its write stored what it showed");
    let (covered, is_exact) = Upgrade::new(&old, &new).on_record(&object, &record);
    assert_eq!((covered.problems, is_exact), (vec![Problem::TooDeep], false));
    let counted = Tally::default().add(&mut effect, Some((&object, &old, &Record::default())));
    assert_eq!((counted.skipped, effect.appears.is_empty()), (Some(Skip::TooDeep), true));
}

#[test]
fn a_null_that_the_old_schema_drops_as_well_is_not_hidden() {
    let old = json!({ "a": { "type": "string" }, "b": { "type": "string", "nullable": true } });
    let written = Object::from(json!({
        "apiVersion": "example.com/v1", "kind": "Tab", "metadata": { "name": "n" }, "spec": {
            "a": null, "b": null,
        },
    }));
    assert_eq!(effect(old, json!({}), &written), ["hidden .spec.b"]);
}

#[test]
fn schemas_are_compared_by_meaning_and_the_topmost_removed_field_is_named() {
    let old = spec(json!({
        "same": { "default": { "x": 1.0 } },
        "changed": { "default": [1] },
        "a.b": { "type": "object", "properties": { "c": { "default": 1 } } },
        "l": { "items": spec(json!({ "gone": {}, "was": { "default": null }, "left": { "default": 2 } })) },
        "m": { "additionalProperties": spec(json!({ "k": {} })) },
    }));
    let new = spec(json!({
        "same": { "default": { "x": 1 } },
        "changed": { "default": [2] },
        "l": { "items": spec(json!({ "was": { "default": 1 }, "left": {} })) },
        "m": { "additionalProperties": spec(json!({ "k": { "default": "" } })) },
    }));
    let (old, new) = (crd(&[("v1", true, old)]), crd(&[("v2", true, new)]));
    let changes = compare(&old.storage().schema, &new.storage().schema);
    let places = |list: &[(Path, Json)]| list.iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>();
    assert_eq!(places(&changes.defaults_added), [".spec.l[].was", ".spec.m{}.k"]);
    assert_eq!(places(&changes.defaults_removed), [r#".spec."a.b".c"#, ".spec.l[].left"]);
    assert_eq!(changes.defaults_changed.len(), 1);
    assert_eq!(changes.defaults_changed[0].path.to_string(), ".spec.changed");
    let removed: Vec<_> = changes.fields_removed.iter().map(Path::to_string).collect();
    assert_eq!(removed, [r#".spec."a.b""#, ".spec.l[].gone"]);
    assert!(compare(&old.storage().schema, &old.storage().schema).is_none());
}

/// The step from `preserveUnknownFields: true` to `false`, which servers recommend.
#[test]
fn unknown_fields_that_were_kept_become_hidden() {
    let with = |preserve: bool, properties: Value| {
        let mut document = sample::things_document(sample::with_spec(properties));
        document["spec"]["preserveUnknownFields"] = json!(preserve);
        Crd::read(&document.into()).expect("a CRD")
    };
    let properties = json!({ "a": { "type": "string" }, "gone": { "type": "string" } });
    let (old, same) = (with(true, properties.clone()), with(true, json!({ "a": { "type": "string" } })));
    let new = with(false, properties);
    let stored = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "one" },
        "spec": { "a": "y", "unknown": { "data": 1 } }, "beside": 1,
    });
    let hidden = |new: &Crd| {
        let upgrade = Upgrade::new(&old, new);
        let (view, effect) = upgrade.stored(stored.clone().into(), 0, &Record::default()).expect("readable");
        assert_eq!(view.json()["spec"]["unknown"], json!({ "data": 1 }));
        effect.hidden.iter().map(Path::to_string).collect::<Vec<_>>()
    };
    assert_eq!(hidden(&new), [".beside", ".spec.unknown"]);
    assert_eq!(hidden(&same), [""; 0]);
    let schemas = |old: &Crd, new: &Crd| Upgrade::new(old, new).schemas();
    assert_eq!(schemas(&old, &new).unknown_removed, [Path::root()]);
    assert!(schemas(&old, &new).kinds().contains(&Kind::Loss));
    assert!(schemas(&old, &same).is_none(), "what is no longer declared is shown all the same");
    assert!(schemas(&new, &old).is_none());
}

#[test]
fn a_place_may_stop_keeping_unknown_fields() {
    let open = |keyword: &str, value: Value| {
        let mut a = json!({ "type": "object", "properties": { "b": { "type": "string" } } });
        a[keyword] = value;
        sample::things(sample::with_spec(json!({ "a": a })))
    };
    let old = open("x-kubernetes-preserve-unknown-fields", json!(true));
    let removed = |new: &Crd| {
        let changes = Upgrade::new(&old, new).schemas();
        changes.unknown_removed.iter().map(Path::to_string).collect::<Vec<_>>()
    };
    assert_eq!(removed(&open("description", json!("closed"))), [".spec.a"]);
    assert_eq!(removed(&open("additionalProperties", json!({ "type": "string" }))), [""; 0]);
    assert_eq!(removed(&old), [""; 0]);
}

#[test]
fn what_no_write_can_have_stored_changes_for_certain() {
    let integer = |default: Value| json!({ "type": "integer", "default": default });
    let with_d = |d: Value| crd(&[("v1", true, spec(json!({ "a": { "type": "integer" }, "d": d })))]);
    let without = crd(&[("v1", true, spec(json!({ "a": { "type": "integer" } })))]);
    let (old, new) = (with_d(integer(json!(1))), with_d(integer(json!(2))));
    let upgrade = Upgrade::new(&old, &new);
    let phantom = tab(json!({ "a": 1, "d": 1 }), json!({ "f:a": {} }));
    let unknown = upgrade.on_record(&phantom, &Record::default());
    assert!(!unknown.1 && !unknown.0.open.is_none(), "{unknown:?}");
    let record = Record {
        history: History::of_states([(1, without), (9, with_d(integer(json!(1))))]),
        ..Record::default()
    };
    let (effect, is_certain) = upgrade.on_record(&phantom, &record);
    assert!(is_certain && effect.open.is_none());
    assert_eq!(reported(&effect), ["changes .spec.d", "protected .spec.d"]);
}

/// The owner of a null owns the field, and nothing shows which it has stored.
#[test]
fn what_may_be_null_may_change() {
    let with_d = |d: Value| crd(&[("v1", true, spec(json!({ "d": d })))]);
    let nullable = with_d(json!({ "type": "integer", "nullable": true }));
    let defaulted = |default: i64| with_d(json!({ "type": "integer", "default": default }));
    let (old, new) = (defaulted(1), defaulted(2));
    let upgrade = Upgrade::new(&old, &new);
    let owned = tab(json!({ "d": 1 }), json!({ "f:d": {} }));
    let of = |first: Crd| {
        let record =
            Record { history: History::of_states([(1, first), (9, defaulted(1))]), ..Record::default() };
        let (effect, is_certain) = upgrade.on_record(&owned, &record);
        assert!(!is_certain);
        reported(&effect)
    };
    assert_eq!(of(nullable), ["changes .spec.d", "protected .spec.d"]);
    assert_eq!(of(defaulted(1)), [""; 0]);
    // A map's value gets its default only in place of a null.
    let map = |value: Value| with_d(json!({ "type": "object", "additionalProperties": value }));
    let defaulted = |default: i64| map(json!({ "type": "integer", "default": default }));
    let (old, new) = (defaulted(1), defaulted(2));
    let first = map(json!({ "type": "integer", "nullable": true }));
    let record = Record { history: History::of_states([(1, first), (9, defaulted(1))]), ..Record::default() };
    let owned = tab(json!({ "d": { "x": 1 } }), json!({ "f:d": { "f:x": {} } }));
    let (effect, _) = Upgrade::new(&old, &new).on_record(&owned, &record);
    assert_eq!(reported(&effect), ["changes .spec.d[\"x\"]", "protected .spec.d[\"x\"]"]);
}
