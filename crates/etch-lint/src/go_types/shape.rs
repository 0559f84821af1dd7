//! What values of a Go type look like in JSON.

use super::package::{Field, Type};
use super::scope::Scope;

/// What values of a type look like in JSON.
#[derive(Clone, Debug)]
pub enum Shape<'a> {
    /// A string.
    Text,
    /// Bytes, as a string.
    Bytes,
    /// A boolean.
    Bool,
    /// A whole number.
    Integer(Whole),
    /// A number.
    Float,
    /// A whole number or a string.
    IntegerOrText,
    /// A list of values of this type.
    List(&'a Type),
    /// A map with values of this type.
    Map(&'a Type),
    /// An object.
    Struct(Struct<'a>),
    /// Whatever it writes itself.
    Custom,
    /// It is declared in a package that was not read, or is anything.
    Unknown,
}

/// The whole numbers that a type holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The least one.
    pub least: i64,
    /// The largest one.
    pub largest: u64,
}

/// The fields of a struct.
#[derive(Clone, Debug)]
pub struct Struct<'a> {
    /// The fields in the declared form, with embedded ones.
    pub fields: &'a [Field],
    /// Where it is written.
    pub scope: Scope<'a>,
}

impl Whole {
    /// Those of a predeclared type, on a machine of 64 bits.
    pub(super) fn of(name: &str) -> Option<Self> {
        let between = |least: i64, largest: u64| Some(Self { least, largest });
        match name {
            "int8" => between(i8::MIN.into(), 0x7f),
            "int16" => between(i16::MIN.into(), 0x7fff),
            "int32" | "rune" => between(i32::MIN.into(), 0x7fff_ffff),
            "int" | "int64" => Some(Self::LONG),
            "uint8" | "byte" => Some(Self::BYTES),
            "uint16" => between(0, u16::MAX.into()),
            "uint32" => between(0, u32::MAX.into()),
            "uint" | "uint64" | "uintptr" => between(0, u64::MAX),
            _ => None,
        }
    }

    /// Those of a byte.
    pub(super) const BYTES: Self = Self { least: 0, largest: 0xff };
    /// Those of 64 bits with a sign.
    pub(super) const LONG: Self = Self { least: i64::MIN, largest: i64::MAX.unsigned_abs() };

    /// Whether a number is one of them; a float counts if it is whole.
    pub fn holds(self, number: &serde_json::Number) -> bool {
        let bounds = i128::from(self.least)..=i128::from(self.largest);
        match number.as_i128() {
            Some(whole) => bounds.contains(&whole),
            None => {
                number.as_f64().is_some_and(|float| float.fract() == 0.0 && bounds.contains(&(float as i128)))
            }
        }
    }
}
