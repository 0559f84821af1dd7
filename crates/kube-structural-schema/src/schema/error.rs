//! Why a document is not a schema.

use super::Place;

/// Why a document is not a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A keyword has a value of the wrong type, so that a server would not even decode the CRD.
    #[error("{place}: must be {expected}")]
    Malformed {
        /// The keyword, below `openAPIV3Schema`.
        place: String,
        /// What stands there in an accepted schema.
        expected: &'static str,
    },
    /// A keyword that CRDs must not use.
    #[error("{place}: {detail}")]
    Unsupported {
        /// The schema that uses it, below `openAPIV3Schema`.
        place: String,
        /// The server's wording, which names no place.
        detail: String,
    },
}

impl ParseError {
    pub(super) fn malformed(at: &Place<'_>, expected: &'static str) -> Self {
        Self::Malformed { place: at.to_string(), expected }
    }

    pub(super) fn unsupported(at: &Place<'_>, detail: String) -> Self {
        Self::Unsupported { place: at.to_string(), detail }
    }
}
