//! `page.json`: every example of "Extend the Kubernetes API with CustomResourceDefinitions" beyond its
//! sections on defaulting, which `kube_structural_schema` has, and on OpenAPI v2, which etch's `lint` has: by
//! its section, with the answer of the page.
//!
//! The cases show what a schema or a CRD is refused for, and what happens to objects. Where the page has a
//! slip, leaves something out (`...`), or the server answers otherwise, the case has the server's answer and
//! notes it.

use std::collections::BTreeMap;

use kube_structural_schema::finding::Finding;
use kube_structural_schema::json::Json;
use kube_structural_schema::prune::prune;
use kube_structural_schema::schema::Schema;
use kube_validation_rules::RUNTIME_BUDGET;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{validate_create, validate_update};
use crate::Prepared;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    name: String,
    /// The schema of the only version; or the `spec` of the CRD.
    #[serde(default)]
    schema: Option<Value>,
    #[serde(default)]
    spec: Option<Value>,
    /// A part of each error that creating the CRD is refused with; empty if it is accepted.
    #[serde(default)]
    refused: Vec<String>,
    #[serde(default)]
    objects: Vec<Object>,
    /// What is different from the page.
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    object: Value,
    /// What an update replaces.
    #[serde(default)]
    old: Option<Value>,
    /// What is left of it, where that is the point.
    #[serde(default)]
    pruned: Option<Value>,
    /// A part of each error; empty if it is accepted.
    #[serde(default)]
    errors: Vec<String>,
}

fn examples() -> BTreeMap<String, Vec<Example>> {
    serde_json::from_str(include_str!("page.json")).expect("well-formed examples")
}

/// The spec around a schema that an example shows alone.
fn around(schema: Value) -> Value {
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "crontabs", "kind": "CronTab"});
    json!({"group": "stable.example.com", "scope": "Namespaced", "names": names, "versions": [version]})
}

fn lines(found: &[Finding]) -> Vec<String> {
    found.iter().map(|finding| format!("{}: {}", finding.field, finding.detail)).collect()
}

/// Whether each error is one of those that are expected, and each of those is there.
fn same(found: &[String], expected: &[String]) -> bool {
    found.len() == expected.len()
        && expected.iter().all(|part| found.iter().any(|line| line.contains(part.as_str())))
}

/// What is wrong with the answers to an example.
fn wrong(example: Example) -> Vec<String> {
    let Example { name, schema, spec, refused, objects, note } = example;
    let mut wrong = Vec::new();
    let spec = spec.or_else(|| schema.map(around)).expect("a schema or a spec");
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"}, "spec": spec,
    });
    let found = lines(&validate_create(&crd).expect("decodes"));
    if !same(&found, &refused) {
        wrong.push(format!("{name} {note}: {found:#?} is not {refused:#?}"));
    }
    if objects.is_empty() {
        return wrong;
    }
    let schema = Schema::parse(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).expect("a schema");
    let prepared = Prepared::of(&schema);
    for Object { object, old, pruned, errors } in objects {
        let mut left = Json::from(object.clone());
        prune(&mut left, &schema, true, &mut |_| {});
        if pruned.as_ref().is_some_and(|pruned| *left != *pruned) {
            wrong.push(format!("{name} {note}: {object} is pruned to {}", *left));
        }
        let found = prepared.embedded(&schema, &left, old.as_ref(), &mut { RUNTIME_BUDGET });
        let mut found = [found.values, found.rules, found.misfits].concat();
        found.dedup();
        let found = lines(&found);
        if !same(&found, &errors) {
            wrong.push(format!("{name} {note}: {object}: {found:#?} is not {errors:#?}"));
        }
    }
    wrong
}

fn holds(section: &str) {
    let examples = examples().remove(section).expect("a section of the file");
    assert!(!examples.is_empty(), "{section}");
    let wrong: Vec<String> = examples.into_iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{section}: {}", wrong.join("\n"));
}

/// One test for each section, so that it has its name.
macro_rules! sections {
    ($($section:ident)*) => {
        const SECTIONS: &[&str] = &[$(stringify!($section)),*];
        $(
            #[test]
            fn $section() {
                holds(stringify!($section));
            }
        )*
    };
}

sections! {
    create_a_custom_resource_definition
    specifying_a_structural_schema_rules
    non_structural_example_1
    non_structural_example_2
    non_structural_example_3
    field_pruning
    controlling_pruning
    int_or_string
    raw_extension
    validation_restrictions
    validation
    validation_rules
    validation_rules_examples
    validation_rules_scopes
    validation_rules_unknown_data
    validation_rules_escaping
    validation_rules_lists
    validation_rules_types
    the_message_expression_field
    transition_rules
    resource_use_by_validation_functions
    defaulting_of_embedded_metadata
    additional_printer_columns
    status_subresource
    scale_subresource
    categories
}

/// The KEP on defaulting would let such an update pass, and one that brings the default in fail.
#[test]
fn an_update_does_not_keep_an_invalid_metadata_default() {
    let crd = |metadata: Value, short_names: Value| {
        let default = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        let pod = json!({
            "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
            "default": default,
        });
        let mut spec = around(json!({"type": "object", "properties": {"pod": pod}}));
        spec["names"]["shortNames"] = short_names;
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "crontabs.stable.example.com", "resourceVersion": "1"}, "spec": spec,
        })
    };
    let invalid = || json!({"name": "a", "finalizers": 1});
    let errors = |old: Value, new: Value| {
        let found = lines(&validate_update(&new, &old).expect("decodes"));
        assert!(found.iter().all(|line| line.contains("properties[pod].default.metadata: ")), "{found:?}");
        found.len()
    };
    assert_eq!(errors(crd(invalid(), json!([])), crd(invalid(), json!(["ct"]))), 1);
    assert_eq!(errors(crd(json!({"name": "a"}), json!([])), crd(invalid(), json!([]))), 1);
    // What is not known is not an error in either.
    let unknown = json!({"name": "a", "unknown": 1});
    assert_eq!(errors(crd(json!({"name": "a"}), json!([])), crd(unknown, json!([]))), 0);
}

#[test]
fn each_section_of_the_file_is_tested() {
    let mut tested = SECTIONS.to_vec();
    tested.sort_unstable();
    assert!(examples().keys().eq(tested.iter()));
}
