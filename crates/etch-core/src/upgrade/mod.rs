//! The warnings to the author of an upgrade, of the deletion, or of a StorageVersionMigration of a CRD, or
//! the refusal, at the moment of the request.
//! The callers give the objects and the policies.
//!
//! Only [`impact`](super::impact) decides what happens to the values of objects, so that `etch impact`, the
//! request and the operator agree; `unserved` adds which owners name a version that is no longer served.
//!
//! # Laws
//! 1. An update that cannot touch an object passes without a warning: [`matters`].
//! 2. What could not be found out is a warning, and refuses nothing. What may happen to a value, by what etcd
//!    is presumed to hold, counts as what happens.
//! 3. A refusal names the annotation that lets exactly this upgrade, or what is done to this very CRD,
//!    through.

mod decision;
mod deletion;
mod digest;
mod findings;
pub mod guarded;
mod migration;
mod named;
mod new_violations;
#[cfg(test)]
mod tests;
mod unserved;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use decision::{GuardDecision, Guarded, decide, digest_of_refusal};
pub use deletion::DeletionBuilder;
pub use digest::digest;
pub use findings::{Extent, Findings, FindingsBuilder, ObjectFindings};
pub use migration::MigrationBuilder;
pub use new_violations::new_violations;

/// The name of the webhook that is asked about upgrades and deletions of CRDs.
pub const GUARD: &str = "crd-upgrades.guard.etch-operator";
/// The annotation on a CRD that lets one upgrade through: its digest.
pub const ALLOW_ANNOTATION: &str = "etch-operator.io/allow-upgrade";
/// The annotation on a CRD that lets its deletion through: its uid.
pub const ALLOW_DELETION_ANNOTATION: &str = "etch-operator.io/allow-deletion";
/// The annotation on a StorageVersionMigration that lets it through: the uid of the CRD whose objects it
/// writes.
pub const ALLOW_MIGRATION_ANNOTATION: &str = "etch-operator.io/allow-migration";

/// What the guard does with a request that upgrades or deletes a CRD, or migrates its objects.
// Ordered from mildest to strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum GuardMode {
    /// Nothing: Etch does not look at it.
    Off,
    /// Its author is warned of what it does to objects.
    #[default]
    Warn,
    /// It is refused if it harms or deletes objects.
    Deny,
}

/// Whether an update of a CRD can touch an object: a schema, the storage version or the conversion strategy
/// changes, and the CRD is not being deleted.
pub fn matters(old: &Value, new: &Value) -> bool {
    new["metadata"]["deletionTimestamp"].is_null() && digest::meaning(old) != digest::meaning(new)
}
