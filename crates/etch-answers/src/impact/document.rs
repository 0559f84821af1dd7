//! All that is reported of an impact, for programs.

use std::collections::BTreeSet;

use etch_core::impact::{Changed, Counts, Effect, Kind, SchemaChanges};
use etch_core::plan::Skip;
use etch_core::scope::Scope;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;
use serde_json::{Value, json};

use super::crd_impact::{CrdImpact, Detail};
use super::looked::Looked;
use crate::scope;

/// Everything that is reported, as JSON.
pub fn document(all: &[Looked], gone: &[String], scope: &Scope) -> Value {
    let mut document = json!({ "crds": list(all, |looked| crd(&looked.impact)) });
    if !gone.is_empty() {
        document["gone"] = gone.into();
    }
    scope::in_document(document, scope)
}

fn crd(impact: &CrdImpact) -> Value {
    let SchemaChanges {
        defaults_added,
        defaults_changed,
        defaults_removed,
        fields_removed,
        unknown_removed,
        nulls_removed,
    } = &impact.schemas;
    let Counts {
        total,
        gaining,
        gaining_on_write,
        changing,
        losing,
        hidden,
        following,
        dropped,
        held,
        invalid,
        protected,
        ignored,
        terminating,
        open,
        claimed,
        only_open: _,
        unprotected: _,
    } = impact.tally.counts;
    let mut document = json!({
        "crd": impact.crd,
        "policy": impact.rules.document(),
        "storageVersion": { "old": impact.old_version, "new": impact.new_version },
        "kinds": words(&impact.kinds()),
        "defaultsAdded": added(defaults_added),
        "defaultsChanged": changed(defaults_changed),
        "defaultsRemoved": removed(defaults_removed),
        "fieldsRemoved": texts(fields_removed),
        "unknownFieldsRemoved": texts(unknown_removed),
        "nullsRemoved": nulls_removed.iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>(),
        "objects": {
            "total": total, "gaining": gaining, "gainingOnWrite": gaining_on_write, "changing": changing,
            "losing": losing,
            "hidden": hidden, "following": following, "dropped": dropped, "held": held, "invalid": invalid,
            "protectedByPersist": protected,
            "ignored": ignored, "terminating": terminating, "unknown": open,
            "claimed": claimed,
        },
        "summary": impact
            .tally
            .summary
            .iter()
            .map(|(place, objects)| {
                json!({
                    "effect": place.effect.as_str(), "where": place.text, "objects": objects,
                    "known": !place.is_open,
                })
            })
            .collect::<Vec<_>>(),
        "details": impact
            .details
            .iter()
            .map(|(identity, Detail { effect, exact, skipped })| {
                let Effect {
                    appears,
                    appears_on_write,
                    changes,
                    disappears,
                    hidden,
                    follows,
                    protected,
                    dropped,
                    held,
                    problems,
                    open,
                    claimed,
                } = effect;
                let broken: Vec<_> =
                    held.iter().flat_map(|held| &held.broken).map(ToString::to_string).collect();
                let unknown: BTreeSet<_> = open.places.iter().map(|(_, place)| place.to_string()).collect();
                json!({
                    "namespace": identity.namespace,
                    "name": identity.name,
                    "exact": exact,
                    "ignored": skipped.is_some_and(Skip::is_by_annotation),
                    "terminating": *skipped == Some(Skip::Terminating),
                    "tooDeep": *skipped == Some(Skip::TooDeep),
                    "kinds": words(&effect.kinds()),
                    "appears": texts(appears),
                    "appearsOnWrite": texts(appears_on_write),
                    "changes": texts(changes),
                    "disappears": texts(disappears),
                    "hidden": texts(hidden),
                    "follows": texts(follows),
                    "dropped": dropped,
                    "held": held.as_ref().map(|held| held.reason.as_str()),
                    "broken": broken,
                    "protectedByPersist": texts(protected),
                    "unknown": unknown,
                    "claimed": texts(claimed),
                    "problems": list(problems, |problem| Value::from(problem.to_string())),
                })
            })
            .collect::<Vec<_>>(),
    });
    if !impact.other_defaults.is_empty() {
        document["otherVersions"] = list(&impact.other_defaults, |(version, changes)| {
            json!({
                "version": version, "defaultsAdded": added(&changes.defaults_added),
                "defaultsChanged": changed(&changes.defaults_changed),
                "defaultsRemoved": removed(&changes.defaults_removed),
            })
        });
    }
    if !impact.in_cluster {
        document["inCluster"] = false.into();
    }
    if !impact.narrowed.is_empty() {
        document["narrowed"] = list(&impact.narrowed, |finding| {
            json!({
                "code": finding.rule.code, "version": finding.version, "path": finding.path.to_string(),
                "message": finding.message,
            })
        });
    }
    if !impact.refusals.is_empty() {
        document["refused"] =
            list(&impact.refusals, |refusal| json!({ "path": refusal.place(), "message": refusal.message }));
    }
    document
}

fn added(defaults: &[(Path, Json)]) -> Value {
    list(defaults, |(path, value)| json!({ "path": path.to_string(), "value": value }))
}

fn changed(defaults: &[Changed]) -> Value {
    list(defaults, |Changed { path, old, new }| json!({ "path": path.to_string(), "old": old, "new": new }))
}

fn removed(defaults: &[(Path, Json)]) -> Value {
    list(defaults, |(path, old)| json!({ "path": path.to_string(), "old": old }))
}

fn list<T>(items: &[T], form: impl Fn(&T) -> Value) -> Value {
    Value::Array(items.iter().map(form).collect())
}

fn texts(paths: &[Path]) -> Value {
    list(paths, |path| Value::from(path.to_string()))
}

fn words(kinds: &BTreeSet<Kind>) -> Value {
    kinds.iter().map(|kind| Value::from(kind.as_str())).collect()
}
