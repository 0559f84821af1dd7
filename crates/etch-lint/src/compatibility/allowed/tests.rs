use serde_json::{Value, json};

use crate::compatibility::compatibility;

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    /// Whether an object that was accepted is refused.
    refuses: bool,
    old: Value,
    new: Value,
}

#[test]
fn only_what_refuses_a_value_is_an_error() {
    let cases: Vec<Case> = serde_yaml_ng::from_str(include_str!("cases.yaml")).expect("cases");
    let crd = |value: &Value| {
        let spec = json!({ "type": "object", "properties": { "v": value } });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let version = json!({
            "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
        });
        json!({ "spec": { "versions": [version] } })
    };
    let mut wrong = Vec::new();
    for Case { name, refuses, old, new } in cases {
        let mut found = compatibility(&crd(&old).into(), &crd(&new).into());
        found.retain(|finding| finding.rule.can_refuse_objects());
        if found.is_empty() == refuses {
            wrong.push(format!("{name}: {found:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}
