//! What values of a Go type look like in JSON.

use super::package::{Field, Package, Type};

/// What values of a type look like in JSON.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// A string.
    Text,
    /// Bytes, as a string.
    Bytes,
    /// A boolean.
    Bool,
    /// A whole number.
    Integer,
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

/// The fields of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Struct<'a> {
    /// The fields in the declared form, with embedded ones.
    pub fields: &'a [Field],
    /// Where it is declared.
    pub package: &'a Package,
}
