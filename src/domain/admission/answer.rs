//! The answer to the author of a request.
//! It must not decide what is wrong.

use serde::Serialize;

use crate::domain::finding::Kind;

/// The longest warning that every client shows, in bytes. Source: Kubernetes API, `Warning` headers of admission.
const LONGEST_WARNING: usize = 256;

/// One error of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// The field as the API server writes it: `spec.disks[0].name`.
    pub field: String,
    /// What kind of error it is.
    pub kind: Kind,
    /// What is asked for. It may quote values of the object: it is for the author of the request only.
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
        shortened(format!("{place}{}", self.detail))
    }
}

/// A warning of a length that every client shows.
pub fn shortened(mut warning: String) -> String {
    const MORE: &str = "…";
    if warning.len() > LONGEST_WARNING {
        let end = (0..=LONGEST_WARNING - MORE.len()).rev().find(|end| warning.is_char_boundary(*end));
        warning.truncate(end.unwrap_or_default());
        warning.push_str(MORE);
    }
    warning
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_as_long_as_clients_show() {
        let error =
            |detail: &str| FieldError { field: "a".into(), kind: Kind::Invalid, detail: detail.into() };
        assert_eq!(error("short").warning(), "a: short");
        let long = error(&"é".repeat(400)).warning();
        assert!(long.len() <= LONGEST_WARNING && long.ends_with('…'), "{} bytes", long.len());
    }
}
