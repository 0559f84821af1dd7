//! What is wrong with a CRD, before any of its objects is looked at.
//! It must not show a default's value, only its place.

use super::charge::Judged;
use crate::domain::crd::{Crd, CrdError};
use crate::domain::json::Json;

/// Reads a CRD and judges it.
pub(super) fn judge(document: &Json) -> Result<(Crd, Judged), CrdError> {
    let crd = Crd::read(document)?;
    Ok((crd, Judged::default()))
}
