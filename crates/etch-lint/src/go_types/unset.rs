//! What Go's encoder writes for a field that a program does not set.

use std::mem::discriminant;

use kube_structural_schema::json::{is_zero, same};
use serde_json::Value;

use super::package::{Field, Packages};
use super::resolve::Resolved;
use super::shape::Shape;
use super::well_known::Zero;

/// A field that is not set, in JSON.
#[derive(Debug, PartialEq)]
pub enum Unset {
    /// It is not there.
    Absent,
    /// It is null, which the API server replaces with a default.
    Null,
    /// It has this value, which hides a default.
    Value(Value),
    /// It has a value that only its type's method knows, and that hides a default.
    Written,
    /// It is an object with its own fields.
    Object,
    /// That is not known.
    Unknown,
}

/// How deep lists of fixed length may be nested to be written out.
const DEEPEST: usize = 3;
/// The longest list of fixed length that is written out.
const LONGEST: u64 = 64;

impl<'a> Resolved<'a> {
    /// What is written for a field of this type.
    pub fn unset(&self, packages: &'a Packages, field: &Field) -> Unset {
        let (omits_empty, omits_zero) =
            field.tag.as_ref().map_or((false, false), |tag| (tag.omitempty, tag.omitzero));
        if omits_zero || omits_empty && self.is_omitted(packages) {
            Unset::Absent
        } else {
            self.zero(packages, DEEPEST)
        }
    }

    /// Whether `omitempty` omits the zero value.
    pub fn is_omitted(&self, packages: &Packages) -> bool {
        match (&self.own, self.written()) {
            _ if self.is_pointer => true,
            (Some(own), _) => own.is_omitted,
            (None, Shape::List(_)) => self.length.is_none() || self.length(packages) == Some(0),
            (None, Shape::Struct(_)) => false,
            (None, _) => !self.is_object(),
        }
    }

    /// How many items a list of fixed length has.
    pub fn length(&self, packages: &Packages) -> Option<u64> {
        packages.value(self.scope.package, self.length?)?.as_u64()
    }

    /// What it is without methods, which generators of schemas pass over.
    pub fn written(&self) -> &Shape<'a> {
        match self.shape {
            Shape::Custom => &self.written,
            _ => &self.shape,
        }
    }

    /// What its zero value is written as.
    fn zero(&self, packages: &'a Packages, depth: usize) -> Unset {
        if self.is_pointer {
            return Unset::Null;
        }
        match self.own.as_ref().map(|own| own.zero) {
            Some(Zero::Null) => return Unset::Null,
            Some(Zero::Text(text)) => return Unset::Value(text.into()),
            Some(Zero::Number) => return Unset::Value(0.into()),
            Some(Zero::Written) => return Unset::Written,
            Some(Zero::Unknown) => return Unset::Unknown,
            None => {}
        }
        match self.written() {
            Shape::Text => Unset::Value("".into()),
            Shape::Bool => Unset::Value(false.into()),
            Shape::Integer(_) | Shape::Float => Unset::Value(0.into()),
            Shape::List(_) if self.length.is_some() && depth == 0 => Unset::Unknown,
            Shape::List(of) if self.length.is_some() => {
                let Some(length) = self.length(packages).filter(|length| *length <= LONGEST) else {
                    return Unset::Unknown;
                };
                let item = match packages.resolve(self.scope.clone(), of).zero(packages, depth - 1) {
                    Unset::Value(value) => value,
                    Unset::Null => Value::Null,
                    _ => return Unset::Unknown,
                };
                Unset::Value((0..length).map(|_| item.clone()).collect())
            }
            Shape::Bytes | Shape::List(_) | Shape::Map(_) => Unset::Null,
            Shape::Struct(_) => Unset::Object,
            Shape::Unknown if self.is_object() => Unset::Object,
            Shape::IntegerOrText | Shape::Custom | Shape::Unknown => Unset::Unknown,
        }
    }

    /// Whether a default may be what is sent anyway, or another way to write it, such as `0m` for `0s`.
    pub fn may_be_sent(&self, packages: &Packages, sent: &Unset, default: &Value) -> bool {
        let own = self.own.as_ref();
        let is_zero = match (own.map(|own| own.zero), default) {
            (Some(Zero::Text(zero)), Value::String(text)) if !zero.is_empty() => {
                let mut digits = text.chars().filter(char::is_ascii_digit).peekable();
                text == zero || digits.peek().is_some() && digits.all(|digit| digit == '0')
            }
            // The integer 0 and no text, not even one without letters.
            (Some(Zero::Number), default) => default.as_f64() == Some(0.0),
            _ => is_zero(default),
        };
        let is_same = match sent {
            // Of what a method reads, another kind may stand for the same.
            Unset::Value(sent) if own.is_none() && matches!(self.shape, Shape::Custom) => {
                same(sent, default) || discriminant(sent) != discriminant(default)
            }
            Unset::Value(sent) => same(sent, default),
            _ => false,
        };
        let is_written = own.and_then(|own| own.writer).is_some_and(|(package, writer)| {
            let names = || writer.names.iter().filter_map(|name| packages.constant(&package.path, name));
            default.as_str().is_some_and(|text| writer.literals.iter().any(|literal| literal.contains(text)))
                || names().any(|value| same(&value, default))
        });
        is_zero || is_same || is_written
    }
}
