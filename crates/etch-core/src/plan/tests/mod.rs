//! Runs the cases of the decision table, and asserts the laws on every one of them.
//! The cases are data, in `src/plan/cases`.

mod case;
mod claims;
mod following;
mod gathered;
mod guarded;
mod history;
mod laws;
mod many;
mod model;
mod recorded;

use case::{Case, Expected, File};
use kube_structural_schema::json::Json;
use serde_json::Value;

use super::{Held, Plan, decide};
use crate::object::Object;

#[test]
fn passes_over_what_is_not_ours() {
    run(include_str!("../cases/skip.yaml"));
}

#[test]
fn only_selected_objects_are_written_and_only_these_are_on_record() {
    run(include_str!("../cases/selection.yaml"));
}

#[test]
fn knows_without_asking_what_is_stored() {
    run(include_str!("../cases/stored.yaml"));
}

#[test]
fn holds_what_a_write_would_destroy() {
    run(include_str!("../cases/hidden.yaml"));
    run(include_str!("../cases/hidden_versions.yaml"));
    run(include_str!("../cases/hidden_webhook.yaml"));
}

#[test]
fn holds_what_does_not_fit() {
    run(include_str!("../cases/misfit.yaml"));
    run(include_str!("../cases/misfit_lists.yaml"));
}

#[test]
fn holds_what_its_defaults_would_make_invalid() {
    run(include_str!("../cases/rules.yaml"));
    run(include_str!("../cases/invalid_defaults.yaml"));
}

#[test]
fn merges_into_objects_without_owners() {
    run(include_str!("../cases/merge.yaml"));
}

#[test]
fn applies_the_identity_and_nothing_else() {
    run(include_str!("../cases/apply.yaml"));
}

#[test]
fn applies_what_it_is_to_own() {
    run(include_str!("../cases/own.yaml"));
}

#[test]
fn rewrites_owners_that_cannot_express_a_default() {
    run(include_str!("../cases/rewrite.yaml"));
    run(include_str!("../cases/rewrite_webhook.yaml"));
    run(include_str!("../cases/rewrite_types.yaml"));
}

#[test]
fn moves_objects_of_a_version_without_defaults_where_a_policy_asks_for_it() {
    run(include_str!("../cases/moves.yaml"));
}

#[test]
fn follows_changed_defaults() {
    run(include_str!("../cases/follow.yaml"));
    run(include_str!("../cases/follow_versions.yaml"));
    run(include_str!("../cases/follow_removed.yaml"));
    run(include_str!("../cases/follow_rules.yaml"));
}

fn run(text: &str) {
    let file: File = serde_yaml_ng::from_str(text).expect("a file of cases");
    let crd = file.crd();
    let changes = file.changes(&crd);
    for case in &file.cases {
        let (object, terms, record) = (case.object(), case.terms(), case.record());
        let plan = decide(&object, &crd, &terms, &record);
        assert_plan(case, &crd, &plan);
        laws::assert_hold(&case.name, &crd, &object, &terms, &record, &plan);
        following::assert_case(case, &crd, &changes);
    }
}

fn assert_plan(case: &Case, crd: &crate::crd::Crd, plan: &Plan) {
    let name = &case.name;
    match (&case.plan, plan) {
        (Expected::Stored, Plan::Stored(_)) => {}
        (Expected::Skip(why), Plan::Skip(skip)) => assert_eq!(format!("{skip:?}"), *why, "{name}"),
        (
            Expected::Hold { reason, paths, broken },
            Plan::Hold(Held { reason: hold, paths: found, broken: breaks }),
        ) => {
            assert_eq!(format!("{hold:?}"), *reason, "{name}");
            assert_eq!(texts(found), *paths, "{name}: held for");
            let breaks: Vec<_> = breaks.iter().map(ToString::to_string).collect();
            assert_eq!(breaks, *broken, "{name}: broken");
        }
        (Expected::Write(expected), Plan::Write(write)) => {
            assert_eq!(format!("{:?}", write.strategy), expected.strategy, "{name}");
            assert_eq!(texts(&write.missing), expected.missing, "{name}: missing");
            assert_eq!(write.prove, expected.prove, "{name}: prove");
            assert_eq!(**write.body.json(), *case.body(expected, crd), "{name}: body");
        }
        (expected, plan) => panic!("{name}: expected {expected:?}, decided {plan:?}"),
    }
}

fn with_metadata(object: &Object, field: &str, value: Value) -> Object {
    let mut document: Json = object.json().clone();
    document["metadata"][field] = value;
    Object::from(document)
}

fn texts(paths: &[kube_structural_schema::path::Path]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}
