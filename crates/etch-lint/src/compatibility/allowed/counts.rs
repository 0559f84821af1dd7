//! How many items and fields there were.

use std::collections::BTreeSet;

use serde_json::Value;

use super::place::{Allowed, names};
use crate::compatibility::keywords::{fields, keeps_unknown, list, number, present, text, values};
use kube_structural_schema::path::Step;

impl Allowed<'_> {
    /// Whether every value has a field.
    pub(super) fn has(&self, name: &str) -> bool {
        let field = self.field(name);
        if present(field.now, "default").is_some() {
            return true;
        }
        let is_required = || self.held.iter().any(|schema| names(schema).any(|required| required == name));
        // What a default gave need not be stored.
        let is_own = present(field.held[0], "default").is_none() && !field.loses_nulls();
        !field.is_absent && is_own && (is_required() || has_all_fields(self))
    }
}

pub(super) fn all_fit(allowed: &Allowed<'_>, keyword: &str, schema: &Value) -> bool {
    let limit = number(schema, keyword).unwrap_or_default();
    match range(allowed, keyword) {
        (least, _) if keyword.starts_with("min") => least >= limit,
        (_, most) => most <= limit,
    }
}

pub(super) fn none_fits(allowed: &Allowed<'_>, keyword: &str, schema: &Value) -> bool {
    let limit = number(schema, keyword).unwrap_or_default();
    match range(allowed, keyword) {
        (_, most) if keyword.starts_with("min") => most < limit,
        (least, _) => least > limit,
    }
}

/// Whether the values have as many fields as they can have.
fn has_all_fields(allowed: &Allowed<'_>) -> bool {
    let held = first_by(allowed.held.iter().filter_map(|schema| number(schema, "minProperties")), f64::max);
    possible(allowed).zip(held).is_some_and(|(possible, least)| least >= possible.len() as f64)
}

/// The least and the most of what a keyword limits.
fn range(allowed: &Allowed<'_>, keyword: &str) -> (f64, f64) {
    let limits =
        |keyword: &'static str| allowed.held.iter().filter_map(move |schema| number(schema, keyword));
    if keyword.ends_with("Items") {
        let least = first_by(limits("minItems"), f64::max).unwrap_or_default();
        let distinct = distinct_items(allowed).map(|count| count as f64);
        return (least, first_by(limits("maxItems").chain(distinct), f64::min).unwrap_or(f64::INFINITY));
    }
    let declared = fields(allowed.now).map(|(name, _)| name.as_str());
    let named: BTreeSet<&str> =
        allowed.held.iter().flat_map(|schema| names(schema)).chain(declared).collect();
    let there = named.into_iter().filter(|name| allowed.has(name)).count() as f64;
    // What the new schema drops does not count any more.
    let is_kept = fields(allowed.held[0]).all(|(name, _)| {
        let field = allowed.field(name);
        !field.is_absent && !field.loses_nulls()
    });
    let is_kept = is_kept && !allowed.child(&Step::Values).loses_nulls();
    let least = limits("minProperties").filter(|_| is_kept).fold(there, f64::max);
    let by_default =
        fields(allowed.now).filter(|(name, _)| allowed.field(name).new_default().is_some()).count() as f64;
    let held = limits("maxProperties").map(|limit| limit + by_default);
    let possible = possible(allowed).map(|names| names.len() as f64);
    (least, first_by(held.chain(possible), f64::min).unwrap_or(f64::INFINITY))
}

/// The names of the fields that a value can have; `None` if they are not known.
fn possible<'a>(allowed: &Allowed<'a>) -> Option<Vec<&'a String>> {
    let is_known = values(allowed.now).is_none() && !keeps_unknown(allowed.now) && !allowed.is_open;
    (is_known && !allowed.is_resource)
        .then(|| fields(allowed.now).map(|(name, _)| name).filter(|name| !allowed.lacks(name)).collect())
}

/// The most items that can differ, where they must.
fn distinct_items(allowed: &Allowed<'_>) -> Option<usize> {
    let items = allowed.child(&Step::Items);
    match text(allowed.held[0], "x-kubernetes-list-type") {
        "set" => items.values().map(|values| values.len()),
        "map" => list(allowed.held[0], "x-kubernetes-list-map-keys")
            .iter()
            .filter_map(Value::as_str)
            .map(|key| items.field(key).values().map(|values| values.len()))
            .product(),
        _ => None,
    }
}

fn first_by(limits: impl Iterator<Item = f64>, choose: fn(f64, f64) -> f64) -> Option<f64> {
    limits.reduce(choose)
}
