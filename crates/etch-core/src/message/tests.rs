//! Whole messages, by the states of the objects.

use std::time::Duration;

use super::*;
use crate::api::StoredVersions;
use crate::object::Identity;
use crate::object_state::{ObjectState, Skipped};
use crate::plan::{Held, Terms};

fn status(states: Vec<(&str, ObjectState)>) -> (Option<bool>, String) {
    let mut tally = Tally::default();
    for (name, state) in states {
        let (namespace, name) = (Some("default".to_owned()), name.to_owned());
        tally.add(Identity { namespace, uid: name.clone(), name }, state, &[]);
    }
    let crd_status = of(&SchemaFindings::default(), &settings(), &tally);
    let nameless = crd_status.without_names();
    assert!(!nameless.contains("default/"), "events about CRDs name no objects: {nameless}");
    (crd_status.persisted, format!("{}: {}", crd_status.reason.as_str(), crd_status.message))
}

fn settings() -> Settings {
    Settings {
        policy: "default".to_owned(),
        mode: Mode::Persist,
        terms: Terms::default(),
        settle: Duration::ZERO,
        max_writes_per_second: None,
        stop_after_rejected: None,
        canary: None,
        stored_versions: StoredVersions::default(),
        pause: None,
        follow: Vec::new(),
        names_paths: false,
    }
}

#[test]
fn nothing_is_read_for_a_crd_in_a_group_of_the_servers_own() {
    let schema = serde_json::json!({ "type": "object", "properties": { "spec": {
        "type": "object", "properties": { "replicas": { "type": "integer", "default": 1 } } } } });
    let crd = |group: &str| {
        let document = serde_json::json!({
            "metadata": { "name": format!("deployments.{group}") },
            "spec": { "group": group, "names": { "kind": "Deployment", "plural": "deployments" },
                "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] },
        });
        Crd::read(&document.into()).expect("a CRD")
    };
    let (settings, findings) = (settings(), SchemaFindings::default());
    let refused = without_objects(&crd("apps"), &settings, &findings).expect("a status");
    assert_eq!((refused.persisted, refused.reason), (Some(false), Reason::NotServed));
    assert!(refused.message.contains("the group apps itself"), "{}", refused.message);
    assert!(without_objects(&crd("apps.example.com"), &settings, &findings).is_none());
}

#[test]
fn a_schema_that_is_not_structural_matters_where_there_are_defaults() {
    let findings = SchemaFindings {
        non_structural: vec!["spec.preserveUnknownFields: Invalid value: true: must be false".to_owned()],
        ..SchemaFindings::default()
    };
    let crd =
        |properties: serde_json::Value| crate::crd::sample::things(crate::crd::sample::with_spec(properties));
    let without = crd(serde_json::json!({ "a": {} }));
    let status = without_objects(&without, &settings(), &findings).expect("a status");
    assert_eq!((status.persisted, status.reason), (Some(true), Reason::NoDefaults));
    let with = crd(serde_json::json!({ "a": { "default": 3 } }));
    assert!(without_objects(&with, &settings(), &findings).is_none(), "its objects are counted");

    let mut tally = Tally::default();
    for (name, state) in [("old", ObjectState::Due), ("new", ObjectState::Stored)] {
        let (namespace, name) = (Some("default".to_owned()), name.to_owned());
        tally.add(Identity { namespace, uid: name.clone(), name }, state, &[]);
    }
    let permitted = findings.permitted(settings());
    assert_eq!(permitted.mode, Mode::Audit, "nothing is written");
    let status = of(&findings, &permitted, &tally);
    assert_eq!((status.persisted, status.reason), (Some(false), Reason::NonStructural));
    assert_eq!(
        status.message,
        "1 of 2 objects is known to store its defaults; 1 with defaults that etcd lacks or may lack: \
         default/old; Etch does not write them, because the schema is not structural: make it structural \
         (condition NonStructural)"
    );
}

fn skipped(why: Skip, lacks: bool) -> ObjectState {
    ObjectState::Skipped(Skipped { why, lacks })
}

#[test]
fn what_managed_fields_only_suggest_is_said_as_a_suggestion_with_the_fields() {
    let held = |paths: &[&str]| {
        let paths = paths.iter().map(|path| path.parse().expect("a path"));
        ObjectState::Held(Held::new(Hold::HiddenFields, paths.collect()))
    };
    assert_eq!(
        status(vec![
            ("a", held(&[".spec.legacy"])),
            ("b", held(&[".spec.legacy", ".spec.old"])),
            ("c", ObjectState::Stored),
        ]),
        (
            Some(false),
            "HiddenFields: 1 of 3 objects is known to store its defaults; 2 held: a write would destroy \
             fields that etcd may still hold and reads do not show: .spec.legacy, .spec.old (default/a, \
             default/b)"
                .to_owned()
        )
    );
}

#[test]
fn who_is_ignored_or_being_deleted_is_named_and_not_said_to_be_stored() {
    let ignored = || skipped(Skip::Ignored, true);
    assert_eq!(
        status(vec![("a", ignored()), ("b", ignored()), ("c", ObjectState::Stored)]),
        (
            Some(true),
            "AllPersisted: 1 of 3 objects is known to store its defaults; 2 ignored by annotation, etcd may \
             lack their defaults (default/a, default/b)"
                .to_owned()
        )
    );
    assert_eq!(
        status(vec![("a", skipped(Skip::Terminating, true)), ("b", skipped(Skip::Ignored, false))]).1,
        "AllPersisted: 0 of 2 objects are known to store their defaults; 1 ignored by annotation, no default \
         missing; 1 being deleted, etcd may lack its defaults (default/a)"
    );
    let names: Vec<String> = (0..9).map(|index| format!("o{index}")).collect();
    let many = status(names.iter().map(|name| (name.as_str(), ignored())).collect()).1;
    assert!(
        many.ends_with("(default/o0, default/o1, default/o2, default/o3, default/o4 and 4 more)"),
        "{many}"
    );
}

#[test]
fn what_is_not_read_is_not_selected_and_no_claim_is_about_it() {
    let within = |names: &[&str], states: Vec<ObjectState>| {
        let mut tally = Tally::default();
        for (index, state) in states.into_iter().enumerate() {
            let (namespace, name) = (Some(names[0].to_owned()), index.to_string());
            tally.add(Identity { namespace, uid: name.clone(), name }, state, &[]);
        }
        let within = Namespaces::new(names.iter().map(|name| (*name).to_owned()));
        let wording = held(&SchemaFindings::default(), &settings(), None, within.as_ref(), &tally);
        let moves =
            done_without_defaults(&SchemaFindings::default(), Aim::Move, None, within.as_ref(), &tally);
        for claim in [&wording.message, &moves.message] {
            assert!(claim.contains(NOT_SELECTED), "{claim}");
        }
        assert!(!moves.without_names().contains("web"), "{}", moves.without_names());
        (wording.message.clone(), wording.without_names().to_owned())
    };
    let others = "all others are not selected by DefaultsPolicy default";
    assert_eq!(
        within(&["web"], vec![ObjectState::Stored]),
        (
            format!("1 of 1 selected object stores its defaults; only namespace web is read, {others}"),
            format!("1 of 1 selected object stores its defaults; only 1 namespace is read, {others}")
        )
    );
    assert_eq!(
        within(&["web", "db"], vec![ObjectState::Stored, skipped(Skip::NotSelected, false)]).0,
        "1 of 1 selected object stores its defaults; 1 not selected by DefaultsPolicy default; only \
         namespaces db, web are read"
    );
}
