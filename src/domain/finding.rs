//! What is wrong with a schema, a default or an object, in the API server's own terms.
//! A finding's `field` may be shown anywhere; its `detail` may quote values and never reaches a log or a status.

use std::fmt;

/// The kind of a violation, named as in apimachinery's `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A required value is missing.
    Required,
    /// Two items that must differ are the same.
    Duplicate,
    /// A value is malformed or out of range.
    Invalid,
    /// A value is not one of those listed.
    NotSupported,
    /// A field must not be set here.
    Forbidden,
    /// A string is too long.
    TooLong,
    /// There are too many items or properties.
    TooMany,
    /// A value has the wrong JSON type.
    TypeInvalid,
    /// The check itself failed.
    Internal,
}

impl Kind {
    /// The name that the API server uses in the causes of a `Status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One violation: what, where, and the API server's wording.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finding {
    /// The place as the API server writes it (`spec.ports[0].name`), without values.
    pub field: String,
    /// What kind of violation it is.
    pub kind: Kind,
    /// The API server's wording. It may quote values: for tests and for the author of the file only.
    pub detail: String,
}

impl Finding {
    /// A violation at a place.
    pub fn new(kind: Kind, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), kind, detail: detail.into() }
    }
}
