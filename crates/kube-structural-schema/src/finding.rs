//! What is wrong with a schema, a default or an object, in the API server's own terms. A finding's `field`
//! and `requirement` may be shown anywhere; its `detail` may quote values and never reaches a log or a
//! status.

use std::fmt;

use serde_json::Value;

use super::path::{Path, Step};
use go_text::json::marshal;
use go_text::number::Num;
use go_text::strconv::quote;

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

    /// What errors begin with, after their field.
    ///
    /// Source: `ErrorType.String` in apimachinery's `field`.
    pub fn problem(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// Which updates of an object the API server refuses for what is wrong with it already.
///
/// Source: apiextensions-apiserver `pkg/registry/customresource/strategy.go`, `ValidateUpdate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    /// Those that change what is wrong.
    #[default]
    Changes,
    /// None, as long as any list of the object is wrong before the update.
    Never,
    /// All.
    Always,
    /// All, though the object can be created: a rule compares it with what it was, and no unchanged object
    /// meets that.
    EveryUpdate,
}

/// A value as an error quotes it: texts and plain values as in Go, the rest as JSON.
fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => Num::of(number).to_string(),
        other => marshal(other),
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
    /// The place, if the API server has none for it: the server reports findings of clauses at the whole
    /// object.
    pub unnamed: Option<Box<str>>,
    /// What kind of violation it is.
    pub kind: Kind,
    /// The API server's wording. It may quote values: for tests and for the author of the file only.
    pub detail: String,
    /// What the schema requires, in its own words and without values: a rule's message, or a restriction.
    /// `None` if the kind alone shows it.
    pub asked: Option<Box<str>>,
    /// The value that the API server quotes, in its writing: for tests and for the author of the file only.
    pub quoted: Option<Box<str>>,
    /// Which updates of an object with it are refused.
    pub refused: Refused,
    /// The place of the value that such an update changes, in the server's writing, if it is not the
    /// finding's own: a missing field is wrong with the object that lacks it.
    pub judged: Option<Box<str>>,
}

impl Finding {
    /// A violation at a place.
    pub fn new(kind: Kind, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            kind,
            detail: detail.into(),
            unnamed: None,
            asked: None,
            quoted: None,
            refused: Refused::default(),
            judged: None,
        }
    }

    /// The finding with what the schema requires.
    #[must_use]
    pub fn asking(self, asked: impl Into<Box<str>>) -> Self {
        Self { asked: Some(asked.into()), ..self }
    }

    /// The finding at a place that the API server does not report.
    #[must_use]
    pub fn standing_at(self, place: impl Into<Box<str>>) -> Self {
        Self { unnamed: Some(place.into()), ..self }
    }

    /// The finding with the updates that the API server refuses for it.
    #[must_use]
    pub fn refusing(self, refused: Refused) -> Self {
        Self { refused, ..self }
    }

    /// The finding of the schema of the value at this place, which is empty for the whole object. Every
    /// update changes that in its metadata.
    #[must_use]
    pub fn judged_at(self, place: &str) -> Self {
        if place.is_empty() {
            return self.refusing(Refused::Always);
        }
        let judged = Some(place).filter(|place| *place != self.place()).map(Into::into);
        Self { judged, ..self }
    }

    /// The finding with the value that the API server quotes.
    #[must_use]
    pub fn quoting(self, value: &Value) -> Self {
        Self { quoted: Some(quoted(value).into()), ..self }
    }

    /// The whole line as the API server writes it, as far as it quotes values.
    pub fn line(&self) -> String {
        let problem = self.kind.problem();
        let parts =
            [&self.field, problem].into_iter().chain(self.quoted.as_deref()).chain(Some(&*self.detail));
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
    }

    /// Where it is, in the server's writing, even if the server does not report the place.
    pub fn place(&self) -> &str {
        self.unnamed.as_deref().unwrap_or(&self.field)
    }

    /// What is required and not met, without values.
    pub fn requirement(&self) -> &str {
        self.asked.as_deref().unwrap_or(match self.kind {
            Kind::Required => "it is required",
            Kind::Duplicate => "it is there twice",
            Kind::NotSupported => "it must be one of the values of an enum",
            Kind::Forbidden => "it must not be set",
            Kind::TooLong => "it is too long",
            Kind::TooMany => "there are too many",
            Kind::TypeInvalid => "it must be of another type",
            Kind::Invalid => "it is malformed or out of range",
            Kind::Internal => "it was not checked",
        })
    }

    /// The place in the schema of the default that a finding about defaults is about, or of the node that a
    /// structural rule is.
    ///
    /// The server writes it `openAPIV3Schema.properties[spec].items.default`, with the place inside the
    /// default after that.
    pub fn default_site(&self) -> Path {
        let mut path = Path::root();
        let mut rest = self.field.strip_prefix("openAPIV3Schema").unwrap_or(&self.field);
        loop {
            if let Some(after) = rest.strip_prefix(".properties[") {
                // A name may hold a bracket itself; the right one is followed by the next part.
                let ends = [
                    ".properties[",
                    ".items",
                    ".additionalProperties",
                    ".default",
                    ".allOf[",
                    ".anyOf[",
                    ".oneOf[",
                    ".not",
                    ".required[",
                    ".enum[",
                    ".x-kubernetes-",
                ];
                let end = after.match_indices(']').map(|(index, _)| index).find(|index| {
                    ends.iter().any(|end| after[index + 1..].starts_with(end)) || *index + 1 == after.len()
                });
                let Some(end) = end.or_else(|| after.find("].")) else { return path };
                path.push(Step::Field(after[..end].to_owned()));
                rest = &after[end + 1..];
            } else if let Some(after) = rest.strip_prefix(".items") {
                path.push(Step::Items);
                rest = after;
            } else if let Some(after) = rest.strip_prefix(".additionalProperties") {
                path.push(Step::Values);
                rest = after;
            } else {
                return path;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_about_a_default_tells_where_the_default_stands() {
        let cases = [
            ("openAPIV3Schema.properties[spec].properties[a].default", ".spec.a"),
            ("openAPIV3Schema.properties[spec].items.default.[1].name", ".spec[]"),
            (
                "openAPIV3Schema.properties[spec].additionalProperties.properties[x-y].default.b",
                ".spec{}.x-y",
            ),
            ("openAPIV3Schema.properties[a]b].default", ".a]b"),
            ("openAPIV3Schema.properties[a].anyOf[0].default", ".a"),
            ("openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule", ".a"),
            ("openAPIV3Schema.properties[a].x-kubernetes-list-map-keys[0]", ".a"),
        ];
        for (field, expected) in cases {
            assert_eq!(Finding::new(Kind::Invalid, field, "").default_site().to_string(), expected);
        }
    }
}
