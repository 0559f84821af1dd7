//! The answer to the author of a request.

use serde::Serialize;

use etch_core::warning::shortened;
use kube_structural_schema::finding::Kind;

/// One error of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// The field as the API server writes it: `spec.disks[0].name`.
    pub field: String,
    /// What kind of error it is.
    pub kind: Kind,
    /// What the schema requires. It may quote values of the object: it is for the author of the request only.
    pub detail: String,
}

/// The verdict on a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Why the request is refused; it is not if this is empty.
    pub errors: Vec<FieldError>,
    /// Warnings for its author, which refuse nothing.
    pub warnings: Vec<String>,
}

impl Answer {
    /// Whether the request passes.
    pub fn is_allowed(&self) -> bool {
        self.errors.is_empty()
    }
}

impl FieldError {
    /// The error as a warning.
    pub(super) fn warning(&self) -> String {
        let place = if self.field.is_empty() { String::new() } else { format!("{}: ", self.field) };
        shortened(format!("{place}{}", self.problem()))
    }

    /// The error without its field, as the API server words it.
    pub(super) fn body(&self) -> String {
        let kind = self.kind.problem();
        match &*self.detail {
            "" => kind.to_owned(),
            // Details of schemas are in the server's words, which may begin so.
            detail if detail.starts_with(kind) => detail.to_owned(),
            detail => format!("{kind}: {detail}"),
        }
    }

    /// What is wrong, for readers who see no type beside it. "Invalid value" would add nothing to a detail.
    pub(super) fn problem(&self) -> String {
        match self.kind {
            Kind::Invalid | Kind::TypeInvalid if !self.detail.is_empty() => self.detail.clone(),
            _ => self.body(),
        }
    }
}

impl Serialize for FieldError {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut error = serializer.serialize_struct("FieldError", 3)?;
        error.serialize_field("field", &self.field)?;
        error.serialize_field("type", self.kind.as_str())?;
        error.serialize_field("detail", &self.detail)?;
        error.end()
    }
}
