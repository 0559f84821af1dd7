//! Every object of a few small schemas, compared with the server's verdict on it as it is stored and as it is
//! shown. The test must not use the code that decides: validity is that of `Validator`, and what is stored is
//! what the test made.

use serde_json::{Map, Value, json};

use crate::crd::Crd;
use crate::crd::sample::things;
use crate::object::Object;
use crate::plan::{Held, Hold, Plan, Record, Terms, decide};
use kube_crd_validation::Validator;
use kube_structural_schema::json::Json;

/// The restrictions that a spec may have on its fields as a whole.
fn restrictions() -> Vec<Value> {
    let rule = |text: &str| json!({ "x-kubernetes-validations": [{ "rule": text }] });
    vec![
        rule("self.a < 3"),
        rule("!has(self.a) || self.a < 3"),
        rule("!has(self.a) || !has(self.b)"),
        rule("has(self.a) && !(has(self.b) || has(self.c))"),
        rule("has(self.a) == has(self.b) || has(self.c)"),
        rule("(has(self.a) ? self.a : 0) + (has(self.b) ? self.b : 0) + (has(self.c) ? self.c : 0) < 7"),
        json!({ "x-kubernetes-validations": [{ "rule": "!has(self.a) || self.a == \
            2" }, { "rule": "!has(self.c)" }] }),
        json!({ "maxProperties": 1 }),
        json!({ "maxProperties": 2, "minProperties": 1 }),
        json!({ "enum": [{ "a": 2, "b": 1, "c": 5 }, { "b": 2 }, {}] }),
        json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        json!({ "anyOf": [{ "not": { "required": ["c"] } }, { "properties": { "a": { "maximum": 2 } } }] }),
        json!({ "allOf": [{ "properties": { "c": { "maximum": 3 } } }] }),
        json!({ "not": { "required": ["a", "c"] } }),
    ]
}

fn crd(restriction: &Value) -> Crd {
    let mut spec = json!({ "type": "object", "properties": {
        "a": { "type": "integer", "default": 5 },
        "b": { "type": "integer", "default": 1 },
        "c": { "type": "integer", "default": 5 },
    } });
    for (name, value) in restriction.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    things(json!({ "type": "object", "properties": { "spec": spec } }))
}

/// Every spec in which each field is absent, the default, or 2.
fn specs() -> Vec<Map<String, Value>> {
    let mut all = vec![Map::new()];
    for (name, default) in [("a", 5), ("b", 1), ("c", 5)] {
        let with = |value: i64| {
            let all: Vec<Map<String, Value>> = all.clone();
            all.into_iter().map(move |mut spec| {
                spec.insert(name.to_owned(), value.into());
                spec
            })
        };
        let more: Vec<_> = with(default).chain(with(2)).collect();
        all.extend(more);
    }
    all
}

fn object(spec: &Map<String, Value>) -> Json {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": { "name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "1" }, "spec": spec,
    })
    .into()
}

#[test]
fn no_valid_object_is_stored_with_defaults_that_make_it_invalid_and_none_is_held_that_stays_valid() {
    let (mut held, mut written) = (0, 0);
    for restriction in restrictions() {
        let crd = crd(&restriction);
        let validator = Validator::new(&crd.storage().schema);
        for spec in specs() {
            let stored = object(&spec);
            let mut shown = stored.clone();
            crd.compiled().fill(&mut shown);
            let (is_valid, stays_valid) =
                (validator.object(&stored).is_empty(), validator.object(&shown).is_empty());
            let plan = decide(&Object::from(shown), &crd, &Terms::default(), &Record::default());
            let case = format!("{restriction} {spec:?}: {plan:?}");
            match &plan {
                Plan::Hold(Held { reason, paths, broken }) => {
                    held += 1;
                    assert_eq!(*reason, Hold::InvalidDefaults, "{case}");
                    assert!(!stays_valid, "held without need: {case}");
                    assert!(!paths.is_empty() && !broken.is_empty(), "{case}");
                }
                plan => {
                    written += usize::from(matches!(plan, Plan::Write(_)));
                    assert!(!is_valid || stays_valid, "made invalid: {case}");
                }
            }
        }
    }
    assert!(held > 100 && written > 100, "{held} held, {written} written");
}
