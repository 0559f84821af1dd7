//! `cases.json`: metadata and what apimachinery v0.37.2 keeps of it; it keeps nothing of what is not
//! metadata.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Malformed, coerce, decode};
use crate::finding::Kind;
use crate::json::Json;
use crate::schema::{Place, Schema};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    metadata: Value,
    /// Whether a user who sends it is refused.
    refused: bool,
    kept: Option<Json>,
}

#[test]
fn keeps_what_the_server_keeps() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("cases.json")).expect("well-formed cases");
    for Case { metadata, refused, kept } in cases {
        let lenient = decode(&metadata, Malformed::Drop).ok().map(|kept| Json::from(Value::Object(kept)));
        assert_eq!(lenient, kept, "{metadata}");
        // `1.0` and `1` are equal, and not the same in etcd.
        let text = |kept: &Option<Json>| serde_json::to_string(kept).expect("JSON");
        assert_eq!(text(&lenient), text(&kept), "{metadata}");
        let strict = decode(&metadata, Malformed::Refuse).ok().map(|kept| Json::from(Value::Object(kept)));
        assert_eq!(strict, kept.filter(|_| !refused), "{metadata}");
    }
}

#[test]
fn names_the_field_that_does_not_fit() {
    for (metadata, misfit) in [
        (json!({"labels": {"a": 1}}), "labels: must be a string"),
        (json!({"finalizers": {}}), "finalizers: must be a list"),
        (json!({"ownerReferences": [{"controller": 1}]}), "ownerReferences.controller: must be a boolean"),
        (
            json!({"managedFields": [{"time": "x"}]}),
            "managedFields.time: must be a time in the form of RFC 3339",
        ),
        (json!({"generation": 1.5}), "generation: must be a 64-bit integer"),
        (json!(5), "must be an object"),
    ] {
        assert_eq!(decode(&metadata, Malformed::Refuse).expect_err("misfit").to_string(), misfit);
    }
}

/// The place of the first error, or none.
fn refused(schema: Value, mut value: Value, whole: bool) -> Option<String> {
    let schema = Schema::parse(&schema).expect("a schema");
    let finding = coerce(&mut value, &schema, whole, Malformed::Refuse, &Place::root("")).err()?;
    assert_eq!(finding.kind, Kind::Invalid);
    Some(finding.field)
}

#[test]
fn refuses_at_the_place_where_the_server_does() {
    let embedded = json!({"x-kubernetes-embedded-resource": true});
    let at = |schema: Value, value: Value| refused(schema, value, false);
    assert_eq!(at(json!({}), json!({"kind": 5, "metadata": 5})), None);
    assert_eq!(refused(json!({}), json!({"kind": 5}), true).as_deref(), Some("kind"));
    assert_eq!(at(embedded.clone(), json!({"apiVersion": null})).as_deref(), Some("apiVersion"));
    assert_eq!(at(embedded.clone(), json!({"metadata": {"name": 1}})).as_deref(), Some("metadata"));
    assert_eq!(
        at(json!({"items": {"additionalProperties": embedded}}), json!([{}, {"k": {"metadata": []}}]))
            .as_deref(),
        Some("[1][k].metadata")
    );
    let below = json!({"properties": {"x": {"properties": {"metadata": {"properties": {"y": embedded}}}}}});
    assert_eq!(
        at(below.clone(), json!({"x": {"metadata": {"y": {"kind": 1}}}})).as_deref(),
        Some("x.metadata.y.kind")
    );
    let mut inside = below["properties"]["x"].clone();
    inside["x-kubernetes-embedded-resource"] = json!(true);
    assert_eq!(
        at(inside, json!({"metadata": {"name": "n", "y": {"kind": 1}}})).as_deref(),
        Some("metadata.y.kind"),
        "what the server forgets of metadata is checked all the same"
    );
}
