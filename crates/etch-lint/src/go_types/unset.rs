//! What Go's encoder writes for a field that a program does not set.

use serde_json::Value;

use super::package::Field;
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

impl Resolved<'_> {
    /// What is written for a field of this type.
    pub fn unset(&self, field: &Field) -> Unset {
        let (omits_empty, omits_zero) =
            field.tag.as_ref().map_or((false, false), |tag| (tag.omitempty, tag.omitzero));
        let or_absent = |value: Unset| if omits_empty { Unset::Absent } else { value };
        if omits_zero {
            return Unset::Absent;
        }
        if self.is_pointer {
            return or_absent(Unset::Null);
        }
        match self.zero {
            Some(Zero::Null) => return Unset::Null,
            Some(Zero::Text(text)) => return Unset::Value(text.into()),
            Some(Zero::Number) => return Unset::Value(0.into()),
            Some(Zero::Written) => return Unset::Written,
            Some(Zero::Unknown) => return Unset::Unknown,
            None => {}
        }
        match self.shape {
            Shape::Text => or_absent(Unset::Value("".into())),
            Shape::Bool => or_absent(Unset::Value(false.into())),
            Shape::Integer | Shape::Float => or_absent(Unset::Value(0.into())),
            Shape::List(_) if self.is_array => Unset::Unknown,
            Shape::Bytes | Shape::List(_) | Shape::Map(_) => or_absent(Unset::Null),
            Shape::Struct(_) => Unset::Object,
            Shape::IntegerOrText | Shape::Custom | Shape::Unknown => Unset::Unknown,
        }
    }

    /// Whether it is a struct that writes its JSON itself.
    pub fn writes_itself(&self) -> bool {
        self.zero.is_some()
    }

    /// Whether a default is another way to write what is sent anyway, such as `0m` for `0s`.
    pub fn is_zero(&self, default: &Value) -> bool {
        match (self.zero, default) {
            (Some(Zero::Text(zero)), Value::String(text)) if !zero.is_empty() => {
                let mut digits = text.chars().filter(char::is_ascii_digit).peekable();
                text == zero || digits.peek().is_some() && digits.all(|digit| digit == '0')
            }
            // The integer 0 and no text, not even one without letters.
            (Some(Zero::Number), default) => default.as_f64() == Some(0.0),
            _ => kube_structural_schema::json::is_zero(default),
        }
    }
}
