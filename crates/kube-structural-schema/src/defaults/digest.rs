//! One number for everything that decides what filling does.
//! It does not depend on how the schema was written: key order, spacing, `1` or `1.0`, descriptions.
//!
//! The canonical form is one JSON text without spaces, after the line `structural-defaults/1`. A node is an
//! object of these members, in this order, each left out if it is empty:
//!
//! - `"d"`: the default, pruned; keys sorted by their bytes, whole numbers within 64 bits as integers
//! - `"n"`: `true` where a null keeps its place although there is a default
//! - `"p"`: the nodes of properties, by name; sorted
//! - `"i"`: the node of items
//! - `"v"`: the node of a map's values
//!
//! Nodes without a default that lead to none are left out, so they cannot change the digest; save declared
//! properties beside `"v"`, which are not among the map's values.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Node;

/// SHA-256 over the canonical form of a compiled schema; `Display` is its hexadecimal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of the whole schema, from its root on.
    pub(crate) fn of(root: &Node) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"structural-defaults/1\n");
        node(root, &mut hash);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn node(node: &Node, hash: &mut Sha256) {
    let mut members = Members::default();
    if let Some(default) = &node.default {
        members.next("d", hash);
        value(default, hash);
        if node.nullable {
            members.next("n", hash);
            hash.update(b"true");
        }
    }
    if !node.properties.is_empty() {
        members.next("p", hash);
        let mut names = Members::default();
        for (name, property) in &node.properties {
            names.next(name, hash);
            self::node(property, hash);
        }
        names.end(hash);
    }
    for (name, below) in [("i", &node.items), ("v", &node.values)] {
        if let Some(below) = below {
            members.next(name, hash);
            self::node(below, hash);
        }
    }
    members.end(hash);
}

fn value(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Object(fields) => {
            // The map is sorted already, unless a dependency has serde_json keep the order of insertion.
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| name.as_str());
            let mut members = Members::default();
            for (name, value) in sorted {
                members.next(name, hash);
                self::value(value, hash);
            }
            members.end(hash);
        }
        Value::Array(items) => {
            hash.update(b"[");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    hash.update(b",");
                }
                self::value(item, hash);
            }
            hash.update(b"]");
        }
        Value::String(text) => hash.update(quoted(text)),
        Value::Number(number) => hash.update(canonical(number)),
        Value::Bool(_) | Value::Null => hash.update(value.to_string()),
    }
}

/// Writes the members of one object.
#[derive(Default)]
struct Members {
    begun: bool,
}

impl Members {
    fn next(&mut self, name: &str, hash: &mut Sha256) {
        hash.update(if self.begun { b"," } else { b"{" });
        hash.update(quoted(name));
        hash.update(b":");
        self.begun = true;
    }

    fn end(self, hash: &mut Sha256) {
        hash.update(if self.begun { &b"}"[..] } else { b"{}" });
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Equal numbers get equal texts: every whole float that fits is written as an integer.
fn canonical(number: &serde_json::Number) -> String {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && (-BOUND..BOUND).contains(&float) => {
            (float as i64).to_string()
        }
        _ => number.to_string(),
    }
}
