//! What can be wrong with a value, and how the API server words it.
//!
//! Source: kube-openapi `pkg/validation/errors/schema.go` and `pkg/validation/validate/schema_messages.go`,
//! and `kubeOpenAPIResultToFieldErrors` of apiextensions-apiserver `pkg/apiserver/validation/validation.go`.

use std::fmt;

use serde_json::Value;

use go_text::{self as go, number::Num};
use kube_structural_schema::finding::{Finding, Kind};
use kube_structural_schema::json::Json;

/// One violation, at a path that is written as upstream's validators do: with a leading dot in some places,
/// and joined to the place of the whole value only at the end.
#[derive(Debug)]
pub(super) struct Violation<'v> {
    pub(super) path: String,
    pub(super) what: What<'v>,
}

/// What is wrong. Texts are the schema's or the value's.
#[derive(Debug)]
pub(super) enum What<'v> {
    /// The JSON type is none of those expected.
    Type {
        expected: String,
        actual: &'static str,
    },
    /// The text is not of the format.
    Format {
        name: &'v str,
        text: &'v str,
    },
    /// The object has no field of this name, with which the path ends.
    Required(&'v str),
    TooLong(i64),
    TooShort(i64),
    /// The text does not match, or the pattern cannot be used for the reason given.
    Pattern {
        pattern: &'v str,
        problem: Option<String>,
    },
    Enum(&'v [Json]),
    /// The value, or the bound of a restriction, is not of the schema's numeric type or format.
    Range {
        of: Bound,
        type_name: &'v str,
        format: &'v str,
    },
    MultipleOf(Num),
    FactorNotPositive(Num),
    Maximum {
        limit: Num,
        exclusive: bool,
    },
    Minimum {
        limit: Num,
        exclusive: bool,
    },
    TooManyItems(i64),
    TooFewItems(i64),
    Duplicates,
    TooManyProperties(i64),
    TooFewProperties(i64),
    Unexpected(&'v str),
    AnyOf,
    OneOf {
        valid: usize,
    },
    AllOf {
        none: bool,
    },
    Not,
    /// The server would check the pattern; here it takes too much memory.
    Unchecked {
        pattern: &'v str,
    },
}

/// Which number is out of the range of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Value,
    MultipleOf,
    Maximum,
    Minimum,
}

impl Violation<'_> {
    /// Upstream's error text; of two violations with the same text it reports one.
    pub(super) fn message(&self) -> String {
        self.to_string()
    }

    /// As a `field.Error`, below the place of the whole value; an empty place is the root of an object.
    pub(super) fn finding(&self, base: &str) -> Finding {
        use What::*;
        let (kind, detail) = match &self.what {
            Type { .. } | Format { .. } => (Kind::TypeInvalid, self.message()),
            Required(_) => (Kind::Required, String::new()),
            TooLong(max) => {
                (Kind::TooLong, limited("value is too long", "may not be more than", *max, "byte"))
            }
            Enum(values) => (Kind::NotSupported, supported(values)),
            TooManyItems(max) | TooManyProperties(max) => {
                (Kind::TooMany, limited("has too many items", "must have at most", *max, "item"))
            }
            Unchecked { .. } => (Kind::Internal, self.message()),
            _ => (Kind::Invalid, self.message()),
        };
        let path = self.path.strip_prefix('.').unwrap_or(&self.path);
        let named = if self.has_place() { path } else { "" };
        let finding = Finding::new(kind, below(base, named), detail).asking(self.what.requirement());
        let finding = if named == path { finding } else { finding.standing_at(below(base, path)) };
        match (base, self.judged()) {
            ("", "") => finding.judged_at(""),
            (base, judged) => finding.judged_at(&below(base, judged)),
        }
    }

    /// The path of the value whose schema is violated: of a missing field, that of the object that lacks it.
    fn judged(&self) -> &str {
        let path = match self.what {
            What::Required(name) => self.path.strip_suffix(name).and_then(|path| path.strip_suffix('.')),
            _ => None,
        };
        let path = path.unwrap_or(&self.path);
        path.strip_prefix('.').unwrap_or(path)
    }

    /// Upstream has no place for some errors, and so reports them at the whole value.
    fn has_place(&self) -> bool {
        use What::*;
        !matches!(self.what, Range { .. } | AnyOf | OneOf { .. } | AllOf { .. } | Not)
    }
}

impl What<'_> {
    /// What the schema requires: the same for every value that breaks it, and without values.
    fn requirement(&self) -> String {
        use What::*;
        match self {
            Type { expected, .. } => format!("it must be of type {expected}"),
            Format { name, .. } => format!("it must have the format {name}"),
            Required(_) => "it is required".to_owned(),
            TooLong(max) => format!("it must have at most {max} characters"),
            TooShort(min) => format!("it must have at least {min} characters"),
            Pattern { pattern, .. } => format!("it must match the pattern '{pattern}'"),
            Enum(_) => "it must be one of the values of its enum".to_owned(),
            Range { type_name, format: "", .. } => format!("it must be of type {type_name}"),
            Range { format, .. } => format!("it must be in the range of the format {format}"),
            MultipleOf(factor) | FactorNotPositive(factor) => format!("it must be a multiple of {factor}"),
            Maximum { limit, exclusive: false } => format!("it must be at most {limit}"),
            Maximum { limit, exclusive: true } => format!("it must be less than {limit}"),
            Minimum { limit, exclusive: false } => format!("it must be at least {limit}"),
            Minimum { limit, exclusive: true } => format!("it must be greater than {limit}"),
            TooManyItems(max) => format!("it must have at most {max} items"),
            TooFewItems(min) => format!("it must have at least {min} items"),
            Duplicates => "its items must differ".to_owned(),
            TooManyProperties(max) => format!("it must have at most {max} fields"),
            TooFewProperties(min) => format!("it must have at least {min} fields"),
            Unexpected(_) => "it has a field that it must not have".to_owned(),
            AnyOf => "it must meet at least one clause of anyOf".to_owned(),
            OneOf { .. } => "it must meet exactly one clause of oneOf".to_owned(),
            AllOf { .. } => "it must meet all clauses of allOf".to_owned(),
            Not => "it must not meet the clause of not".to_owned(),
            Unchecked { .. } => "it was not checked".to_owned(),
        }
    }
}

impl fmt::Display for Violation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use What::*;
        let path = &self.path;
        match &self.what {
            Type { expected, actual } => write!(f, "{path} in body must be of type {expected}: \"{actual}\""),
            Format { name, text } => {
                write!(f, "{path} in body must be of type {name}: {}", go::strconv::quote(text))
            }
            Required(_) => write!(f, "{path} in body is required"),
            TooLong(max) => write!(f, "{path} in body should be at most {max} chars long"),
            TooShort(min) => write!(f, "{path} in body should be at least {min} chars long"),
            Pattern { pattern, problem: None } => write!(f, "{path} in body should match '{pattern}'"),
            Pattern { pattern, problem: Some(problem) } => {
                write!(f, "{path} in body should match '{pattern}, but pattern is invalid: {problem}'")
            }
            Enum(values) => {
                let values: Vec<_> = values.iter().map(|value| go::fmt::value(value)).collect();
                write!(f, "{path} in body should be one of [{}]", values.join(" "))
            }
            Range { of, type_name, format } => {
                let of = match of {
                    Bound::Value => "Checked",
                    Bound::MultipleOf => "MultipleOf",
                    Bound::Maximum => "Maximum boundary",
                    Bound::Minimum => "Minimum boundary",
                };
                write!(f, "{of} value must be of type {type_name} ")?;
                match *format {
                    "" => write!(f, "(default format) in {path}"),
                    format => write!(f, "with format {format} in {path}"),
                }
            }
            MultipleOf(factor) => write!(f, "{path} in body should be a multiple of {factor}"),
            FactorNotPositive(factor) => {
                write!(f, "factor MultipleOf declared for {path} must be positive: {factor}")
            }
            Maximum { limit, exclusive: false } => {
                write!(f, "{path} in body should be less than or equal to {limit}")
            }
            Maximum { limit, exclusive: true } => write!(f, "{path} in body should be less than {limit}"),
            Minimum { limit, exclusive: false } => {
                write!(f, "{path} in body should be greater than or equal to {limit}")
            }
            Minimum { limit, exclusive: true } => write!(f, "{path} in body should be greater than {limit}"),
            TooManyItems(max) => write!(f, "{path} in body should have at most {max} items"),
            TooFewItems(min) => write!(f, "{path} in body should have at least {min} items"),
            Duplicates => write!(f, "{path} in body shouldn't contain duplicates"),
            TooManyProperties(max) => write!(f, "{path} in body should have at most {max} properties"),
            TooFewProperties(min) => write!(f, "{path} in body should have at least {min} properties"),
            Unexpected(key) => write!(f, "{path}.{key} in body is a forbidden property"),
            AnyOf => write!(f, "{} must validate at least one schema (anyOf)", go::strconv::quote(path)),
            OneOf { valid } => {
                write!(f, "{} must validate one and only one schema (oneOf). ", go::strconv::quote(path))?;
                match valid {
                    0 => f.write_str("Found none valid"),
                    valid => write!(f, "Found {valid} valid alternatives"),
                }
            }
            AllOf { none } => {
                let none = if *none { ". None validated" } else { "" };
                write!(f, "{} must validate all the schemas (allOf){none}", go::strconv::quote(path))
            }
            Not => write!(f, "{} must not validate the schema (not)", go::strconv::quote(path)),
            Unchecked { pattern } => {
                write!(f, "{path} was not checked, its pattern is too large: '{pattern}'")
            }
        }
    }
}

/// A place below another one, as the server writes it.
fn below(base: &str, path: &str) -> String {
    match (base, path) {
        ("", "") => "<nil>".to_owned(),
        ("", path) => path.to_owned(),
        (base, "") => base.to_owned(),
        (base, path) => format!("{base}.{path}"),
    }
}

fn limited(unlimited: &str, text: &str, max: i64, unit: &str) -> String {
    match max {
        i64::MIN..=-1 => unlimited.to_owned(),
        1 => format!("{text} 1 {unit}"),
        _ => format!("{text} {max} {unit}s"),
    }
}

fn supported(values: &[Json]) -> String {
    let values: Vec<_> = values
        .iter()
        .map(|value| match &**value {
            Value::String(text) => go::strconv::quote(text),
            other => go::strconv::quote(&go::json::marshal(other)),
        })
        .collect();
    format!("supported values: {}", values.join(", "))
}
