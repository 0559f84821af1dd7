//! Why no further object of a CRD may be processed.

use crate::rbac::MissingPermissions;

/// Why no further object of the CRD may be processed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// A permission is missing.
    #[error("a permission is missing: {0}")]
    Forbidden(MissingPermissions),
    /// A policy paused or resumed writes. Writes in flight have ended.
    #[error("a policy paused or resumed writes")]
    Pause,
    /// It was cancelled. Writes that had begun have ended.
    #[error("interrupted")]
    Ended,
    /// A write made the server forget owners.
    #[error(
        "a write to {object} made the API server drop the field owners {managers:?}; Etch writes nothing more"
    )]
    OwnersLost {
        /// Which object.
        object: String,
        /// Whose entries are gone.
        managers: Vec<String>,
    },
    /// The CRD has changed.
    #[error("the CRD changed while its objects were written")]
    CrdChanged,
    /// A write has dropped fields that the object showed.
    #[error(
        "the answer to a write of {object} lacks the fields {paths}: the API server's schema no longer has \
         them, or admission removed them; Etch writes nothing more before it has read the CRD again"
    )]
    FieldsDropped {
        /// Which object.
        object: String,
        /// The fields, without the keys of maps.
        paths: String,
    },
}

impl StopReason {
    /// The reason without the name of an object.
    pub fn without_names(&self) -> String {
        match self {
            Self::OwnersLost { managers, .. } => {
                format!(
                    "a write made the API server drop the field owners {managers:?}; Etch writes nothing more"
                )
            }
            Self::FieldsDropped { paths, .. } => {
                format!(
                    "the answer to a write lacks the fields {paths}: the API server's schema no longer has \
                     them, or admission removed them"
                )
            }
            other => other.to_string(),
        }
    }

    /// Whether writes that had begun end before anything else is done about the CRD: what they did is still
    /// counted in the object's own terms, and others may need the room.
    pub fn lets_writes_end(&self) -> bool {
        matches!(self, Self::Pause | Self::Ended | Self::CrdChanged | Self::FieldsDropped { .. })
    }
}
