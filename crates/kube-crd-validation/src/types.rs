//! The types of a schema, in the two forms in which the server validates with it.

use std::fmt;

use kube_structural_schema::schema::Schema;

/// Which of its two forms of a schema the server validates with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `Structural.ToKubeOpenAPI`, for defaults: formats as they are written, no type for int-or-string, and
    /// no `additionalProperties` under `allOf` and the like.
    Structural,
    /// `ConvertJSONSchemaProps`, for objects: formats that the server does not know are gone, int-or-string
    /// is two types.
    Props,
}

/// The types that a schema names: none, one, or the two of int-or-string.
#[derive(Clone, Copy)]
pub(super) enum Types<'s> {
    None,
    One(&'s str),
    IntOrString,
}

impl<'s> Types<'s> {
    pub(super) fn of(form: Form, schema: &'s Schema) -> Self {
        match schema.kind.as_str() {
            _ if schema.int_or_string && form == Form::Props => Self::IntOrString,
            "" => Self::None,
            name => Self::One(name),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn contains(self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::One(only) => only == name,
            Self::IntOrString => matches!(name, "integer" | "string"),
        }
    }

    /// The type if there is just one, else nothing.
    pub(super) fn only(self) -> &'s str {
        match self {
            Self::One(only) => only,
            _ => "",
        }
    }
}

impl fmt::Display for Types<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "",
            Self::One(only) => only,
            Self::IntOrString => "integer,string",
        })
    }
}
