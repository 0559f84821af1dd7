//! What a declaration does to an extension that is empty: by that its author learns of a default that breaks
//! a rule.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::compile::Compiled;
use super::existing::request;
use super::place::{Location, Part};
use super::request::Request;
use super::spec::Scope;
use etch_core::patch::{Change, patch};
use kube_structural_schema::path::Path;

/// What a default breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenDefault {
    /// Which of `defaults` has set it; `None` if the schema has.
    pub default: Option<usize>,
    /// The place of the value below the extension: `.network`.
    pub field: String,
    /// What the schema requires there. It may quote the default.
    pub requirement: String,
}

/// What is wrong with an empty extension once its defaults are set, and not before, where a default was set.
/// Facts have their constants and fallbacks; a default that needs another one is not set.
pub fn broken_by_defaults(schema: &Compiled) -> Vec<BrokenDefault> {
    let (facts, _) = schema.facts(&Map::new());
    let (Some(target), Some(resource)) = (schema.targets.first(), schema.resources().into_iter().next())
    else {
        return Vec::new();
    };
    let mut object = json!({});
    for part in target.place.parts().iter().rev() {
        object = match part {
            Part::Field(name) => json!({ name: object }),
            Part::Each => json!([object]),
        };
    }
    let before = Request {
        named: super::request::Named::Resource {
            group: &target.declared.group,
            version: &target.declared.version,
            resource: &target.declared.resource,
        },
        ..request(&resource, &object, &facts)
    };
    let Some(with) = schema.with_defaults(&before).object else { return Vec::new() };
    let known = schema.found(&before);
    let known: HashSet<(&str, &str)> =
        known.iter().map(|found| (&*found.error.field, &*found.error.detail)).collect();
    let after = schema.found(&Request { object: &with, ..before });
    let locations = target.place.find(&object, &Location::new());
    let Some((location, _)) = locations.first() else { return Vec::new() };
    let written = target.written(location);
    let set = set_fields(&object, &with, location);
    let broken = after.iter().filter_map(|found| {
        let error = &found.error;
        let below = error.field.strip_prefix(&written)?;
        let is_new = found.denies() && !known.contains(&(&*error.field, &*error.detail));
        let field = set.iter().find(|set| {
            below
                .strip_prefix(set.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })?;
        let default = schema.defaults.iter().position(|default| {
            default.scope == Scope::Extension && format!(".{}", default.fields.join(".")) == *field
        });
        let (field, requirement) = (below.to_owned(), error.problem());
        is_new.then_some(BrokenDefault { default, field, requirement })
    });
    broken.collect()
}

/// The places below an extension that were set: `.network`.
fn set_fields(before: &Value, after: &Value, location: &Location) -> Vec<String> {
    let own = Path::from(location.clone()).pointer();
    let below = patch(before, after).into_iter().filter_map(|change| match change {
        Change::Add { path, .. } | Change::Replace { path, .. } => {
            Some(path.strip_prefix(&own)?.replace('/', "."))
        }
        Change::Remove { .. } => None,
    });
    below.collect()
}
