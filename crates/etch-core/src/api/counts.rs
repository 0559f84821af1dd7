//! How many objects of a CRD there were, by result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many objects there were, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Processed objects.
    #[serde(default)]
    pub objects: u64,
    /// Objects whose defaults Etch has stored with a write.
    #[serde(default)]
    pub written: u64,
    /// Objects that lacked no default.
    #[serde(default)]
    pub already_stored: u64,
    /// Objects that probably lack a default, and that Etch would write if the policy allowed it. This is an
    /// estimate, because only a write shows it for certain.
    #[serde(default)]
    pub due: u64,
    /// Objects of which only a write shows whether they lack a default, and that the policy does not allow
    /// Etch to write: an owner names each default that they show, or they were written after the schema had
    /// it.
    #[serde(default)]
    pub unproved: u64,
    /// Objects that Etch holds because a write would do harm.
    #[serde(default)]
    pub held: u64,
    /// Objects whose writes the API server or admission rejected.
    #[serde(default)]
    pub rejected: u64,
    /// Objects that Etch skips because of their annotation `etch-operator.io/ignore`: etcd may lack their
    /// defaults.
    #[serde(default)]
    pub ignored: u64,
    /// Objects that Etch skips because they are being deleted: etcd may lack their defaults.
    #[serde(default)]
    pub terminating: u64,
    /// Objects that Etch skips because they are nested more than 1,000 levels deep: etcd may lack their
    /// defaults.
    #[serde(default)]
    pub too_deep: u64,
    /// Objects that the policy does not select: Etch does not know whether etcd holds their defaults.
    #[serde(default)]
    pub not_selected: u64,
    /// Objects that changed and that Etch has not processed since.
    #[serde(default)]
    pub unknown: u64,
    /// Objects in which a write dropped what etcd may have held of fields that the schema no longer has, as
    /// the policy allows, since this report was created.
    #[serde(default)]
    pub dropped: u64,
    /// Objects in which a value has followed a changed default. Objects in which one would follow are due.
    #[serde(default)]
    pub followed: u64,
    /// Objects that keep the previous value of a changed default: it has an owner or may have one, or the
    /// policy does not have `Follow`.
    #[serde(default)]
    pub kept: u64,
}
