//! Which of the defaults that an object shows no owner names.

use serde::Deserialize;
use serde_json::Value;

use super::case::{File, OwnerInShort, object};
use crate::plan::places::each_unclaimed;

/// One object, and the places.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    owners: Vec<OwnerInShort>,
    object: Value,
    unclaimed: Vec<String>,
}

#[test]
fn an_owner_claims_what_it_names_as_a_whole() {
    let file: File<Case> = serde_yaml_ng::from_str(include_str!("../cases/claims.yaml")).expect("cases");
    let crd = file.crd();
    for Case { name, owners, object: payload, unclaimed: expected } in &file.cases {
        let object = object(&Value::Null, Some(owners), payload);
        let mut found = Vec::new();
        each_unclaimed(&object, &crd, |trail| found.push(trail.to_path().to_string()));
        assert_eq!(&found, expected, "{name}");
    }
}
