//! The rules for the fields of `metadata`, as for an object that is being created.

use serde_json::Value;

use super::names;
use crate::field::Field;
use go_text as go;
use kube_structural_schema::finding::{Finding, Kind};

/// The most that all annotations of an object may hold, keys and values together, in bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;
const MAX_MANAGER: usize = 128;
const MAX_SUBRESOURCE: usize = 256;

/// Reports what decoded metadata gets wrong. A name is not required, and a namespace is checked only if there
/// is one.
pub(super) fn check(metadata: &Value, at: &mut Field, found: &mut Vec<Finding>) {
    let text = |name: &str| text(metadata, name);
    let mut each = |name: &str, problems: Vec<String>| invalid(problems, name, &text(name).into(), at, found);
    each("generateName", names::path_segment_prefix(text("generateName")));
    each("name", names::path_segment(text("name")));
    if !text("namespace").is_empty() {
        each("namespace", names::dns_label(text("namespace")));
    }
    check_generation(metadata, at, found);
    check_common(metadata, true, at, found);
    managers(metadata, |_| true, at, found);
}

/// Reports a generation below zero.
fn check_generation(metadata: &Value, at: &mut Field, found: &mut Vec<Finding>) {
    if metadata.get("generation").and_then(Value::as_i64).is_some_and(|generation| generation < 0) {
        let problem = vec!["must be greater than or equal to 0".to_owned()];
        invalid(problem, "generation", &metadata["generation"], at, found);
    }
}

/// Reports what is wrong with labels, annotations, owners and, if so wanted, finalizers.
pub(crate) fn check_common(metadata: &Value, finalizers: bool, at: &mut Field, found: &mut Vec<Finding>) {
    let mut each =
        |name: &str, value: &str, problems: Vec<String>| invalid(problems, name, &value.into(), at, found);
    for (key, value) in texts(metadata, "labels") {
        each("labels", key, names::qualified_name(key));
        each("labels", value, names::label_value(value));
    }
    for (key, _) in texts(metadata, "annotations") {
        each("annotations", key, names::qualified_name(&key.to_lowercase()));
    }
    let size: usize = texts(metadata, "annotations").map(|(key, value)| key.len() + value.len()).sum();
    let finalizers: &[Value] = if finalizers { items(metadata, "finalizers") } else { &[] };
    let finalizers: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
    for finalizer in &finalizers {
        each("finalizers", finalizer, names::qualified_name(finalizer));
    }
    let (orphan, foreground) = ("orphan", "foregroundDeletion");
    if finalizers.contains(&orphan) && finalizers.contains(&foreground) {
        let problem = vec![format!("finalizer {orphan} and {foreground} cannot be both set")];
        invalid(problem, "finalizers", &metadata["finalizers"], at, found);
    }
    if size > MAX_ANNOTATIONS {
        too_long(MAX_ANNOTATIONS, "annotations", at, found);
    }
    owners(items(metadata, "ownerReferences"), at, found);
}

fn owners(owners: &[Value], at: &mut Field, found: &mut Vec<Finding>) {
    let list = at.child("ownerReferences");
    let mut controller: Option<String> = None;
    for (index, owner) in owners.iter().enumerate() {
        let mark = at.index(index);
        let (api_version, kind, name) = (text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name"));
        let slashes = api_version.matches('/').count();
        if !api_version.is_empty() && (slashes > 1 || api_version.ends_with('/')) {
            let detail = "must be <group>/<version> or <version>";
            invalid(vec![detail.to_owned()], "apiVersion", &owner["apiVersion"], at, found);
        }
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                let mark = at.child(field);
                found.push(Finding::new(Kind::Required, at.to_string(), "must not be empty"));
                at.back(mark);
            }
        }
        if matches!(api_version, "v1" | "/v1") && kind == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            found.push(Finding::new(Kind::Invalid, at.to_string(), detail).quoting(owner));
        }
        at.back(mark);
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{kind}/{name}");
            match &controller {
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references \
                         for {first} and {this}"
                    );
                    let finding = Finding::new(Kind::Invalid, at.to_string(), detail);
                    found.push(finding.quoting(&Value::from(owners)));
                }
                None => controller = Some(this),
            }
        }
    }
    at.back(list);
}

/// Reports what is wrong with those entries of `managedFields` that count.
pub(crate) fn managers(
    metadata: &Value,
    counts: impl Fn(&Value) -> bool,
    at: &mut Field,
    found: &mut Vec<Finding>,
) {
    let list = at.child("managedFields");
    let entries = items(metadata, "managedFields").iter().enumerate();
    for (index, entry) in entries.filter(|(_, entry)| counts(entry)) {
        let mark = at.index(index);
        let operation = at.child("operation");
        match text(entry, "operation") {
            "Apply" | "Update" => {}
            "" => found.push(Finding::new(Kind::Required, at.to_string(), "must not be empty")),
            _ => {
                let detail = "supported values: \"Apply\", \"Update\"";
                let finding = Finding::new(Kind::NotSupported, at.to_string(), detail);
                found.push(finding.quoting(&entry["operation"]));
            }
        }
        at.back(operation);
        if !matches!(text(entry, "fieldsType"), "" | "FieldsV1") {
            invalid(vec!["must be `FieldsV1`".to_owned()], "fieldsType", &entry["fieldsType"], at, found);
        }
        let manager = text(entry, "manager");
        if manager.len() > MAX_MANAGER {
            too_long(MAX_MANAGER, "manager", at, found);
        }
        let unprintable = manager.char_indices().filter(|(_, letter)| !go::strconv::is_print(*letter));
        let unprintable = unprintable.map(|(position, letter)| {
            format!("invalid character U+{:04X} (at position {position})", u32::from(letter))
        });
        invalid(unprintable.collect(), "manager", &entry["manager"], at, found);
        if text(entry, "subresource").len() > MAX_SUBRESOURCE {
            too_long(MAX_SUBRESOURCE, "subresource", at, found);
        }
        at.back(mark);
    }
    at.back(list);
}

fn invalid(problems: Vec<String>, field: &str, value: &Value, at: &mut Field, found: &mut Vec<Finding>) {
    let mark = at.child(field);
    let finding = |problem| Finding::new(Kind::Invalid, at.to_string(), problem).quoting(value);
    found.extend(problems.into_iter().map(finding));
    at.back(mark);
}

fn too_long(max: usize, field: &str, at: &mut Field, found: &mut Vec<Finding>) {
    let mark = at.child(field);
    found.push(Finding::new(Kind::TooLong, at.to_string(), format!("may not be more than {max} bytes")));
    at.back(mark);
}

fn text<'m>(fields: &'m Value, name: &str) -> &'m str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'m>(fields: &'m Value, name: &str) -> impl Iterator<Item = (&'m str, &'m str)> {
    let map = fields.get(name).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn items<'m>(fields: &'m Value, name: &str) -> &'m [Value] {
    fields.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
