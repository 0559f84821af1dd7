//! ETCH328: defaults that a clause, or a number of fields, of the object around them judges. An object is looked for
//! that was valid before and is not with the new default: where there is one, objects of users may be as it is.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::keywords::{fields, list, present, property};
use super::pair::{Changes, Pair};
use super::read_by_rule::READ;
use etch_core::impact::{Changed, SchemaChanges};
use kube_crd_validation::validate;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Step;
use kube_structural_schema::schema::Schema;

const CLAUSES: [&str; 4] = ["allOf", "anyOf", "oneOf", "not"];
/// What judges how many fields there are.
const NUMBER: &str = "maxProperties";
/// How many fields beside the default are tried together.
const BESIDE: usize = 4;

/// The keywords of both schemas that judge the fields of an object, and say the same as before.
pub(super) fn kept(pair: &Pair<'_>) -> Vec<&'static str> {
    CLAUSES
        .into_iter()
        .chain([NUMBER])
        .filter(|keyword| present(pair.old, keyword).is_some() && pair.old[*keyword] == pair.new[*keyword])
        .collect()
}

pub(super) fn check(pair: &Pair<'_>, keywords: &[&str], compared: SchemaChanges, changes: &mut Changes) {
    // What requires a default that is gone has a finding of its own.
    let SchemaChanges { defaults_added, defaults_changed, .. } = compared;
    let added = defaults_added.into_iter().map(|(path, value)| (path, None, value, "is new"));
    let changed =
        defaults_changed.into_iter().map(|Changed { path, old, new }| (path, Some(old), new, "has changed"));
    for (path, before, after, what) in added.chain(changed) {
        let [Step::Field(name)] = path.steps() else { continue };
        let judges = |keyword: &&&str| is_broken(pair.new, keyword, name, before.as_ref(), &after);
        if let Some(keyword) = keywords.iter().find(judges) {
            let of = if pair.path.is_root() { "the object".to_owned() } else { pair.path.to_string() };
            let message = format!("the default {what}, and {keyword} of {of} judges the field");
            changes.add(&READ, pair.path.join(Step::Field(name.clone())), message);
        }
    }
}

/// Whether an object that meets a keyword of a schema with one value of a field does not with another one.
fn is_broken(schema: &Value, keyword: &str, name: &str, before: Option<&Json>, after: &Json) -> bool {
    let alone = json!({ "type": "object", "properties": schema["properties"], keyword: schema[keyword] });
    let Ok(judge) = Schema::parse(&alone) else { return false };
    let is_valid = |object: &Map<String, Value>, value: Option<&Json>| {
        let mut object = object.clone();
        if let Some(value) = value {
            object.insert(name.to_owned(), Value::clone(value));
        }
        validate(&judge, &Value::Object(object)).is_empty()
    };
    beside(schema, keyword, name)
        .iter()
        .any(|object| is_valid(object, before) && !is_valid(object, Some(after)))
}

/// Objects with some of the fields that the keyword is about, without this one.
fn beside(schema: &Value, keyword: &str, name: &str) -> Vec<Map<String, Value>> {
    let mut named = BTreeSet::new();
    match keyword {
        NUMBER => named.extend(fields(schema).map(|(name, _)| name.clone())),
        _ => mentioned(&schema[keyword], &mut named),
    }
    named.remove(name);
    let samples: Vec<(String, Value)> = named
        .into_iter()
        .filter_map(|name| Some((name.clone(), sample(property(schema, &name)?)?)))
        .collect();
    if keyword == NUMBER {
        // As many as there may be.
        let most = schema[NUMBER].as_u64().and_then(|most| usize::try_from(most).ok()).unwrap_or_default();
        return vec![samples.into_iter().take(most).collect()];
    }
    let samples = &samples[..samples.len().min(BESIDE)];
    let some = |choice: u32| {
        samples
            .iter()
            .enumerate()
            .filter(move |(index, _)| choice >> index & 1 == 1)
            .map(|(_, field)| field.clone())
    };
    (0..1 << samples.len()).map(|choice| some(choice).collect()).collect()
}

/// The fields that clauses name.
fn mentioned(clause: &Value, found: &mut BTreeSet<String>) {
    match clause {
        Value::Array(clauses) => clauses.iter().for_each(|clause| mentioned(clause, found)),
        clause => {
            found.extend(list(clause, "required").iter().filter_map(Value::as_str).map(str::to_owned));
            found.extend(fields(clause).map(|(name, _)| name.clone()));
            CLAUSES
                .iter()
                .filter_map(|keyword| clause.get(keyword))
                .for_each(|inner| mentioned(inner, found));
        }
    }
}

/// A value that a schema allows; `None` where that is not obvious.
fn sample(schema: &Value) -> Option<Value> {
    if let Some(value) = schema["enum"].as_array().and_then(|values| values.first()) {
        return Some(value.clone());
    }
    let value = match schema["type"].as_str()? {
        "string" => {
            json!("x".repeat(usize::try_from(schema["minLength"].as_u64().unwrap_or(1)).ok()?.clamp(1, 64)))
        }
        "integer" | "number" => present(schema, "minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => return None,
    };
    let parsed = Schema::parse(&json!({ "type": "object", "properties": { "value": schema } })).ok()?;
    validate(&parsed, &json!({ "value": value })).is_empty().then_some(value)
}
