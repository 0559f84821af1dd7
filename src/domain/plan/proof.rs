//! The write that proves another: a repeat that must change nothing (law 5).
//! It must not store what the first write did not.

use super::{Strategy, Write, body, own};
use crate::domain::crd::Crd;
use crate::domain::object::Object;

/// The repeat of `write`, for the object as the first one left it.
///
/// A change of the resource version in the answer to it means that the first write did not store what it showed (W6).
pub fn proof(object: &Object, crd: &Crd, write: &Write) -> Write {
    let owns = write.strategy == Strategy::Apply && write.body.as_object().is_some_and(|body| body.len() > 3);
    let (strategy, body) = match write.strategy {
        Strategy::Merge => (Strategy::Merge, body::merge(object)),
        // An apply gives up what it leaves out, so a repeat must name it again.
        Strategy::Apply if owns => (Strategy::Apply, own::body(object, crd, write.missing.iter())),
        Strategy::Apply | Strategy::Rewrite => (Strategy::Apply, body::identity(object, crd)),
    };
    Write { strategy, body, prove: false, missing: write.missing.clone() }
}
