//! What an update is not refused for, because the CRD before it was wrong in the same way.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`, `validationOptions`.

use std::collections::HashSet;

use super::conversion;
use super::document::{Crd, Spec, Validation};
use super::lists;
use super::options::{Options, TYPES};
use super::props::Props;
use super::{ca_bundle, selectable};
use kube_structural_schema::compile::has_unpruned_defaults;
use kube_structural_schema::schema::Schema;
use kube_structural_schema::schema::rules::violations;

/// How strict to be with a CRD that replaces another.
pub(super) fn options<'d>(crd: &'d Crd<'_>, old: &'d Crd<'_>, minor: u32) -> Options<'d> {
    let spec = &old.spec;
    let (known_rules, known_messages) = known(spec);
    Options {
        require_recognized_review: conversion::is_recognized(&spec.conversion.review_versions),
        require_immutable_names: old.established,
        require_schema: all_have_schemas(spec),
        require_valid_types: !spec
            .any_schema(|schema| !schema.kind.is_empty() && !TYPES.contains(&schema.kind)),
        require_structural: !spec.schemas().any(is_non_structural),
        require_pruned_defaults: !spec.schemas().any(has_unpruned),
        require_atomic_sets: !spec.any_schema(lists::is_set_of_composites),
        require_sound_list_keys: !spec.any_schema(lists::has_unsound_keys),
        allow_invalid_ca_bundle: allows_invalid_ca_bundle(old),
        known_rules,
        known_messages,
        unchanged: unchanged(&crd.spec, spec),
        many_selectable: selectable::too_many_before(&crd.spec, spec, minor),
        ..Options::strict(minor)
    }
}

fn known<'d>(spec: &'d Spec<'_>) -> (HashSet<&'d str>, HashSet<&'d str>) {
    let (mut rules, mut messages) = (HashSet::new(), HashSet::new());
    for schema in spec.schemas() {
        collect(schema, &mut rules, &mut messages);
    }
    (rules, messages)
}

fn collect<'d>(schema: &'d Props<'_>, rules: &mut HashSet<&'d str>, messages: &mut HashSet<&'d str>) {
    schema.each(&mut |schema| {
        for rule in &*schema.rules {
            rules.insert(rule.rule.as_str());
            if !rule.message_expression.is_empty() {
                messages.insert(rule.message_expression.as_str());
            }
        }
    });
}

fn all_have_schemas(spec: &Spec<'_>) -> bool {
    let has = |validation: &Option<Validation<'_>>| {
        validation.as_ref().is_some_and(|validation| validation.schema.is_some())
    };
    has(&spec.validation) || spec.versions.iter().all(|version| has(&version.validation))
}

fn is_non_structural(schema: &Props<'_>) -> bool {
    Schema::parse(schema.document.0).map_or(true, |schema| !violations(&schema, "").is_empty())
}

fn has_unpruned(schema: &Props<'_>) -> bool {
    let mut has_default = |schema: &Props<'_>| schema.default.is_some();
    schema.any(&mut has_default)
        && Schema::parse(schema.document.0)
            .is_ok_and(|schema| violations(&schema, "").is_empty() && has_unpruned_defaults(&schema))
}

fn allows_invalid_ca_bundle(old: &Crd<'_>) -> bool {
    if !old.established {
        return true;
    }
    let bundle = old.spec.conversion.client.as_ref().map_or(&[][..], |client| &client.ca_bundle);
    !bundle.is_empty() && ca_bundle::problem(bundle).is_some()
}

fn unchanged<'d>(spec: &Spec<'d>, old: &Spec<'d>) -> HashSet<&'d str> {
    let same = |name: &&str| match (schema_of(spec, name), schema_of(old, name)) {
        (Some(now), Some(before)) => now == before,
        _ => false,
    };
    spec.versions.iter().map(|version| version.name).filter(same).collect()
}

/// The schema of a version; `None` if the server cannot determine it. A schema at the top holds for any
/// version.
fn schema_of<'s, 'd>(spec: &'s Spec<'d>, name: &str) -> Option<Option<&'s Validation<'d>>> {
    if spec.versions.iter().all(|version| version.validation.is_none()) {
        return Some(spec.validation.as_ref());
    }
    if spec.validation.is_some() {
        return None;
    }
    let version = spec.versions.iter().find(|version| version.name == name)?;
    Some(version.validation.as_ref())
}
