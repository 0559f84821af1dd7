//! A request about a CRD as the guard reads it, and its reasons in words.

use serde_json::Value;

use super::{Findings, GuardDecision, GuardMode, Guarded, decide, new_violations};
use crate::crd::{Crd, Version};
use crate::findings::SchemaFindings;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::schema::DEEPEST;

/// Both states of a CRD, read.
pub struct Crds {
    /// As it is stored.
    pub old: Crd,
    /// As it is to be.
    pub new: Crd,
    /// What is wrong with the new one, and not with the old one.
    pub violations: SchemaFindings,
    /// The stored CRD, as the request has it.
    pub document: Json,
}

/// Decides; `metadata` has the annotation that may allow the request.
pub fn decided(
    crd: &str,
    metadata: &Json,
    guarded: Guarded<'_>,
    guard_mode: GuardMode,
    findings: &Findings,
) -> GuardDecision {
    let allowed = metadata["annotations"][guarded.annotation()].as_str();
    decide(crd, guarded, guard_mode, findings, allowed)
}

/// Whether a request is about the CRD as it is stored: objects are listed for that one only.
pub fn is_stored(old: &Json, stored: &Json) -> bool {
    let at = |pointer| {
        (old.pointer(pointer).unwrap_or(&Value::Null), stored.pointer(pointer).unwrap_or(&Value::Null))
    };
    ["/metadata/uid", "/metadata/generation", "/spec"]
        .map(at)
        .into_iter()
        .all(|(old, stored)| same(old, stored))
}

/// Reads both states of a CRD.
///
/// # Errors
/// Why they cannot be compared.
pub fn read(old: &Json, new: &Json) -> Result<Crds, &'static str> {
    let (before, after) = (Crd::read(old).ok(), Crd::read(new).ok());
    let violations = new_violations((old, before.as_ref()), (new, after.as_ref()));
    let (Some(before), Some(after)) = (before, after) else { return Err("cannot read the CRD") };
    let is_deep = |version: &Version| version.schema.depth() > DEEPEST;
    if before.versions().iter().chain(after.versions()).any(is_deep) {
        return Err("the schema is nested too deep");
    }
    Ok(Crds { old: before, new: after, violations, document: old.clone() })
}

/// Why objects cannot be read as they are stored.
pub fn unserved(storage: &str) -> String {
    format!("the storage version {storage} is not served")
}

/// The text at a pointer; empty if there is none.
pub fn text<'j>(document: &'j Json, pointer: &str) -> &'j str {
    document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
