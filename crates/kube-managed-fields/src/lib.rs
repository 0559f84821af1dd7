#![doc = include_str!("../README.md")]
//!
//! # What this is
//! The owners of an object's fields: its `managedFields`, read in place.
//!
//! The form is structured-merge-diff's FieldsV1: `f:` a field, `k:` an item of a list map by its keys, `v:` a
//! member of a set by its value, `i:` an item by its index, and `.` the thing itself.

mod claim;
mod contain;
mod cover;
mod items;
mod name;
mod readable;
mod unite;

use serde_json::Value;

pub use claim::{Claimants, is_claimed};
pub use contain::{contains, names_known};
pub use cover::{Claims, is_covered, is_named};
pub use items::Items;
pub use readable::are_readable;
pub use unite::unite;

/// The manager that the server invents when an object without `managedFields` is first applied; it owns every
/// field.
pub const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The manager under whose name the server gathers the oldest `Update` entries of an object that has more
/// than 10 of them.
///
/// Source: apimachinery `pkg/util/managedfields/internal/capmanagers.go`.
pub const ANCIENT_CHANGES: &str = "ancient-changes";

/// One entry of `managedFields`, borrowed from the object. What is missing or of an odd type reads as empty.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The field manager's name.
    pub manager: &'a str,
    /// `Apply` or `Update`.
    pub operation: &'a str,
    /// Group and version at which the fields are named: `stable.example.com/v1`.
    pub api_version: &'a str,
    /// `status`, `scale`, or empty.
    pub subresource: &'a str,
    /// The field set in FieldsV1 form; `Null` where there is none.
    pub fields: &'a Value,
}

/// The owners of an object, in the order of its `managedFields`; none if these are missing or of an
/// unexpected type.
pub fn owners(object: &Value) -> impl Iterator<Item = Owner<'_>> + Clone {
    let entries = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    entries.and_then(Value::as_array).into_iter().flatten().map(Owner::from_entry)
}

impl<'a> Owner<'a> {
    /// Reads one entry of `managedFields`.
    pub fn from_entry(entry: &'a Value) -> Self {
        let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        Self {
            manager: text("manager"),
            operation: text("operation"),
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            fields: entry.get("fieldsV1").unwrap_or(&Value::Null),
        }
    }

    /// The version without its group: `v1`.
    pub fn version(&self) -> &'a str {
        self.api_version.rsplit('/').next().unwrap_or_default()
    }

    /// Whether both entries are the same writer's, at whatever version.
    pub fn is_same_writer(&self, other: &Self) -> bool {
        self.writer() == other.writer()
    }

    /// What identifies a writer, at whatever version: manager, operation, subresource.
    pub fn writer(&self) -> (&'a str, &'a str, &'a str) {
        (self.manager, self.operation, self.subresource)
    }
}

#[cfg(test)]
mod tests;
