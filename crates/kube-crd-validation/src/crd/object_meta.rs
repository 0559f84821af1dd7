//! The metadata of the CRD itself.
//! The rules for objects inside others are in `crate::metadata`.
//!
//! Source: apimachinery `pkg/api/validation/objectmeta.go`. Before that the server clears the namespace, as
//! of each cluster-scoped object (apiserver `pkg/registry/rest/meta.go`), sets the generation itself,
//! restores what an update leaves out, and the time of creation or deletion whatever an update has there
//! (apiserver `pkg/registry/rest/update.go`). It writes the owners of a new CRD itself, whatever
//! `managedFields` has, and drops those of an update that it cannot read (apimachinery
//! `pkg/util/managedfields/internal`).

use serde_json::{Value, json};

use super::document::Crd;
use super::report::Report;
use crate::field::Field;
use crate::metadata::names::dns_subdomain;
use crate::metadata::rules;
use kube_structural_schema::names::masked;

/// Checks the metadata of a new CRD.
pub(super) fn check_create(crd: &Crd<'_>, report: &mut Report) {
    let wanted = format!("{}.{}", crd.spec.names.plural, crd.spec.group);
    let mut name = |at: &str, text: &str, prefix: bool| {
        let mut problems = dns_subdomain(&if prefix { masked(text) } else { text.to_owned() });
        if text != wanted {
            problems.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        problems.into_iter().for_each(|problem| report.invalid(at, problem));
    };
    let text = |name: &str| crd.metadata[name].as_str().unwrap_or_default();
    if !text("generateName").is_empty() {
        name("metadata.generateName", text("generateName"), true);
    }
    if text("name").is_empty() {
        report.required("metadata.name", "name or generateName is required");
    } else {
        name("metadata.name", text("name"), false);
    }
    rules::check_common(&crd.metadata, true, &mut Field::new("metadata"), &mut report.0);
}

/// Checks the metadata of a CRD that replaces another.
pub(super) fn check_update(crd: &Crd<'_>, old: &Crd<'_>, report: &mut Report) {
    let deleting = old.metadata["deletionTimestamp"].is_string();
    if deleting {
        new_finalizers(crd, old, report);
    }
    for name in ["name", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (now, before) = (&crd.metadata[name], &old.metadata[name]);
        let changed = text_or_null(now) != text_or_null(before);
        let changed = match name {
            "name" => changed,
            // A zero time is null here, and not the same as none.
            "deletionTimestamp" => before.is_null() && crd.metadata.get(name) != old.metadata.get(name),
            "creationTimestamp" => before.is_null() && changed,
            _ => changed && !text_or_null(now).is_null(),
        };
        if changed {
            report.invalid(format!("metadata.{name}"), "field is immutable");
        }
    }
    rules::check_common(&crd.metadata, false, &mut Field::new("metadata"), &mut report.0);
    // Owners of which one cannot be read are forgotten, all of them.
    if kube_managed_fields::are_readable(&json!({ "metadata": crd.metadata })) {
        rules::managers(&crd.metadata, is_kept, &mut Field::new("metadata"), &mut report.0);
    }
}

/// Whether the server keeps an owner: one that owns something, by a version of CRDs.
fn is_kept(entry: &Value) -> bool {
    entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty())
        && matches!(
            entry["apiVersion"].as_str(),
            Some("apiextensions.k8s.io/v1" | "apiextensions.k8s.io/v1beta1")
        )
}

/// An empty text is as good as none.
fn text_or_null(value: &Value) -> &Value {
    if value.as_str() == Some("") { &Value::Null } else { value }
}

fn new_finalizers(crd: &Crd<'_>, old: &Crd<'_>, report: &mut Report) {
    let finalizers = |crd: &Crd<'_>| -> Vec<String> {
        let list = crd.metadata["finalizers"].as_array();
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let before = finalizers(old);
    let mut added = finalizers(crd);
    added.retain(|finalizer| !before.contains(finalizer));
    added.sort();
    added.dedup();
    if !added.is_empty() {
        let added: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{}}}",
            added.join(", ")
        );
        report.forbidden("metadata.finalizers", detail);
    }
}
