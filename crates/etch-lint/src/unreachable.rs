//! ETCH005: defaults that wait for an optional parent.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::rule::{Report, Rule, Severity};
use super::site::{Site, each, is_zero, shown};
use super::subject::Subject;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::path::Path;
use kube_structural_schema::schema::{Schema, SchemaType};

pub(super) const RULE: Rule = Rule {
    code: "ETCH005",
    name: "unreachable-default",
    severity: Severity::Info,
    summary: "a default applies only if an optional object above it is present",
    help: "\
The server fills in a default only if the object that contains it exists. If that object is optional and has
no default itself, users who omit it get none of the defaults below it. For a Go field that is not a pointer,
KEP-1929 (Non-pointer structs) has the generator write `default: {}`.

If these defaults should always apply, give the object that contains them `default: {}`. If the object enables
a feature by its presence, nothing is wrong. Not reported are objects that cannot be empty, because users must
write them anyway; defaults that are a zero value; and `.status`, which a controller writes.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in subject.in_use() {
        let mut waiting: BTreeMap<Path, (String, Path)> = BTreeMap::new();
        each(&version.schema, &mut |site| {
            if let Some(default) = site.default().filter(|default| !is_zero(default) && !site.is_in_status())
                && let Some(parent) = missing_parent(site)
            {
                waiting.insert(site.path(), (shown(default), parent));
            }
        });
        for (path, (default, parent)) in waiting {
            let message = format!(
                "the default {default} applies only if {parent} is present, which is optional and has no \
                 default"
            );
            report.add(&version.name, path, message);
        }
    }
}

/// The nearest object above that may be missing: an optional property without a default that could be left
/// empty.
fn missing_parent(site: &Site<'_>) -> Option<Path> {
    // The default of a map's values is for nulls in it, and waits for more than the map.
    site.name()?;
    let mut at = site.up?;
    loop {
        // What is in a list or a map is there when it is written.
        at.name()?;
        // Every object has a spec, required or not.
        if at.is_top_level("spec") || at.default().is_some() {
            return None;
        }
        if !at.is_required() {
            return can_be_empty(at.schema).then(|| at.path());
        }
        at = at.up?;
    }
}

/// Whether `{}` and the defaults below make a complete object.
fn can_be_empty(schema: &Schema) -> bool {
    if schema.kind != SchemaType::Object {
        return false;
    }
    let mut empty = Value::Object(Map::new());
    Compiled::new(schema).fill(&mut empty);
    let required = schema.constraints.iter().flat_map(|constraints| constraints.required.iter());
    required.into_iter().all(|name| empty.get(name).is_some())
}
