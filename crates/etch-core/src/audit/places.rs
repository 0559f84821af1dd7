//! Where in an object defaults apply.

use serde_json::Value;

use crate::crd::Crd;
use kube_structural_schema::path::Path;

/// All places of an object at which a default of the storage version applies: where it is present, and where
/// it is absent and its parent is there. Below a place that is absent there is none.
pub fn places(object: &Value, crd: &Crd) -> Vec<Path> {
    let mut found = Vec::new();
    crd.compiled().places(object, &mut |at| found.push(at.to_path()));
    found.sort();
    found
}
