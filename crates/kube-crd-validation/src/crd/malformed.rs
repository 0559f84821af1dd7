//! Why a document is not a CRD.

use kube_structural_schema::schema::Place;

/// A CRD that the server cannot even decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: must be {expected}")]
pub struct Malformed {
    /// The field.
    pub place: String,
    /// What the server can decode there.
    pub expected: &'static str,
}

impl Malformed {
    pub(super) fn new(at: &Place<'_>, expected: &'static str) -> Self {
        Self { place: at.to_string(), expected }
    }
}
