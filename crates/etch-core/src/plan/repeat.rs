//! The write that proves another: a repeat that must change nothing (law 5).

use super::{Body, Strategy, Write, body, owned_apply};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::owners;

/// The repeat of `write`, for the object as the first one left it.
///
/// A change of the resource version in the answer to it means that the first write did not store what it
/// showed (W6). To an object without owners Etch does not send an apply (W5), and an apply names again what
/// Etch owns, because it gives up what it leaves out.
pub fn repeat(object: &Object, crd: &Crd, write: &Write) -> Write {
    let asked = if let Body::Values(_) = write.body { &write.missing[..] } else { &[] };
    let (strategy, body) = match owners(object).next() {
        None => (Strategy::Merge, body::merge(object)),
        Some(_) if write.strategy == Strategy::Merge => (Strategy::Merge, body::merge(object)),
        Some(_) if write.strategy == Strategy::Status => {
            (Strategy::Status, Body::Identity(body::identity(object, crd)))
        }
        Some(_) => (Strategy::Apply, owned_apply::body(object, crd, asked.iter())),
    };
    Write::new(strategy, body, write.missing.clone())
}
