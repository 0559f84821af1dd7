//! Which owners cover what: tables over `is_covered`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Owner, is_covered};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    object: Value,
    /// The field sets of the owners.
    owners: Vec<Value>,
    /// Places, as steps: a text is a field, a number an item.
    covered: Vec<Vec<Value>>,
    #[serde(default)]
    uncovered: Vec<Vec<Value>>,
}

#[test]
fn owners_cover_what_they_name() {
    #[derive(Deserialize)]
    struct File {
        schema: Value,
        cases: Vec<Case>,
    }
    let file: File = serde_yaml_ng::from_str(include_str!("cases.yaml")).expect("a file of cases");
    let schema = Schema::parse(&file.schema).expect("a schema");
    for case in &file.cases {
        for (places, expected) in [(&case.covered, true), (&case.uncovered, false)] {
            for place in places {
                let path: Path = place.iter().map(step).collect();
                let owners = case.owners.iter().map(owner_of);
                let covered = is_covered(owners, &case.object, &schema, path.steps());
                assert_eq!(covered, expected, "{}: {path}", case.name);
            }
        }
    }
}

#[test]
fn odd_managed_fields_have_no_owners() {
    for odd in [json!(null), json!("text"), json!({}), json!(3)] {
        assert_eq!(super::owners(&json!({ "metadata": { "managedFields": odd } })).count(), 0, "{odd}");
    }
    let entry = json!({ "manager": 3, "operation": [], "apiVersion": {}, "fieldsV1": "text" });
    let owner = Owner::from_entry(&entry);
    assert_eq!((owner.manager, owner.operation, owner.version()), ("", "", ""));
}

#[test]
fn a_thousand_levels_are_judged() {
    let mut schema = r#"{"type":"object","properties":{"a":"#.repeat(499);
    schema.push_str(r#"{"type":"string"}"#);
    schema.push_str(&"}}".repeat(499));
    let nested = |open: &str, leaf: &str| {
        Json::parse(format!("{}{leaf}{}", open.repeat(499), "}".repeat(499)).as_bytes()).expect("JSON")
    };
    let schema = Schema::parse(&Json::parse(schema.as_bytes()).expect("JSON")).expect("a schema");
    let (object, fields) = (nested(r#"{"a":"#, "1"), nested(r#"{"f:a":"#, "{}"));
    let part = [Step::Field("a".to_owned())];
    assert!(is_covered([owner_of(&json!({ "f:a": {} }))].into_iter(), &json!({ "a": 1 }), &schema, &part));
    let owner = Owner { fields: &fields, ..Owner::from_entry(&Value::Null) };
    assert!(is_covered([owner].into_iter(), &object, &schema, &part));
    let mut united = Json::default();
    super::unite(&mut united, &fields);
    assert!(united == fields);
}

fn owner_of(fields: &Value) -> Owner<'_> {
    Owner { fields, ..Owner::from_entry(&Value::Null) }
}

fn step(value: &Value) -> Step {
    match value {
        Value::String(name) => Step::Field(name.clone()),
        index => Step::Index(index.as_u64().expect("a field or an index") as usize),
    }
}
