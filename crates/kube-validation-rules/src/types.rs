//! The types of expressions, and when one will do for another.
//!
//! Source: cel-go `checker/types.go`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::model::{Fields, Format, Node, Shape};

/// A type. Objects of the schema are distinguished by the node that describes them.
#[derive(Clone, Debug)]
pub(super) enum Type<'m> {
    /// Known only at run time.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type<'m>>),
    Map(Arc<(Type<'m>, Type<'m>)>),
    /// A list of the schema; [`Self::open`] gives it with its items. Schemas nest deeper than types may.
    Array(&'m Node),
    /// A map of the schema, likewise.
    Mapping(&'m Node),
    Object(&'m Node),
    /// One of Kubernetes' own types.
    Named(&'static str),
    Optional(Arc<Type<'m>>),
    /// The type of a type.
    Meta(Arc<Type<'m>>),
    /// A type that a signature leaves open, by its letter.
    Open(u8),
    /// A type that is still to be found while an expression is checked.
    Var(u32),
}

impl<'m> Type<'m> {
    pub(super) fn list(item: Self) -> Self {
        Self::List(Arc::new(item))
    }

    pub(super) fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    pub(super) fn optional(inner: Self) -> Self {
        Self::Optional(Arc::new(inner))
    }

    /// The declared type of a node's values.
    pub(super) fn of_node(node: &'m Node) -> Self {
        match &node.shape {
            Shape::IntOrString | Shape::Dynamic | Shape::Unknown | Shape::Invalid => Self::Dyn,
            Shape::Object(fields) if fields.entries.is_some() => Self::Mapping(node),
            Shape::Object(_) => Self::Object(node),
            Shape::Map(_) => Self::Mapping(node),
            Shape::Array { .. } => Self::Array(node),
            Shape::Text(Format::None) => Self::String,
            Shape::Text(Format::Byte) => Self::Bytes,
            Shape::Text(Format::Duration) => Self::Duration,
            Shape::Text(Format::Date | Format::DateTime) => Self::Timestamp,
            Shape::Bool => Self::Bool,
            Shape::Integer => Self::Int,
            Shape::Number => Self::Double,
        }
    }

    /// The type with one more of its layers known.
    pub(super) fn open(&self) -> Self {
        match self {
            Self::Array(node) => match &node.shape {
                Shape::Array { items: Some(items), .. } => Self::list(Self::of_node(items)),
                _ => Self::list(Self::Dyn),
            },
            Self::Mapping(node) => match &node.shape {
                Shape::Map(values) | Shape::Object(Fields { entries: Some(values), .. }) => {
                    Self::map(Self::String, Self::of_node(values))
                }
                _ => Self::Dyn,
            },
            other => other.clone(),
        }
    }

    fn is_closed(&self) -> bool {
        matches!(self, Self::Array(_) | Self::Mapping(_))
    }

    /// The type inside an optional, or the type itself, and whether it was one.
    pub(super) fn unwrap_optional(&self) -> (Self, bool) {
        match self {
            Self::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        }
    }

    /// Whether both are the same type.
    pub(super) fn is(&self, other: &Self) -> bool {
        if self.is_closed() || other.is_closed() {
            return self.open().is(&other.open());
        }
        match (self, other) {
            (Self::List(a), Self::List(b))
            | (Self::Optional(a), Self::Optional(b))
            | (Self::Meta(a), Self::Meta(b)) => a.is(b),
            (Self::Map(a), Self::Map(b)) => a.0.is(&b.0) && a.1.is(&b.1),
            (Self::Object(a), Self::Object(b)) => std::ptr::eq(*a, *b),
            (Self::Named(a), Self::Named(b)) => a == b,
            (Self::Open(a), Self::Open(b)) => a == b,
            (Self::Var(a), Self::Var(b)) => a == b,
            (a, b) => a.is_plain() && std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(
            self,
            Self::Dyn
                | Self::Null
                | Self::Bool
                | Self::Int
                | Self::Uint
                | Self::Double
                | Self::String
                | Self::Bytes
                | Self::Duration
                | Self::Timestamp
        )
    }

    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Object(_)
                | Self::Named(_)
                | Self::Optional(_)
                | Self::Duration
                | Self::Timestamp
        )
    }

    /// Whether this is the more general of the two: `dyn` in place of the other's type.
    fn covers(&self, other: &Self) -> bool {
        if self.is_closed() || other.is_closed() {
            return self.open().covers(&other.open());
        }
        match (self, other) {
            (Self::Dyn | Self::Var(_) | Self::Open(_), _) => true,
            (_, Self::Dyn | Self::Var(_) | Self::Open(_)) => false,
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.covers(b),
            (Self::Map(a), Self::Map(b)) => a.0.covers(&b.0) && a.1.covers(&b.1),
            (Self::Meta(_), Self::Meta(_)) => true,
            _ => self.is(other),
        }
    }

    /// The more general of two types that unify.
    pub(super) fn most_general(a: &Self, b: &Self) -> Self {
        if a.covers(b) { a.clone() } else { b.clone() }
    }

    /// The type with every open letter replaced.
    pub(super) fn instantiate(&self, letters: &mut impl FnMut(u8) -> Type<'m>) -> Self {
        match self {
            Self::Open(letter) => letters(*letter),
            Self::List(inner) => Self::list(inner.instantiate(letters)),
            Self::Map(inner) => {
                let key = inner.0.instantiate(letters);
                Self::map(key, inner.1.instantiate(letters))
            }
            Self::Optional(inner) => Self::optional(inner.instantiate(letters)),
            Self::Meta(inner) => Self::Meta(Arc::new(inner.instantiate(letters))),
            other => other.clone(),
        }
    }
}

/// What the variables stand for, as far as it was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings<'m>(HashMap<u32, Type<'m>>);

impl<'m> Bindings<'m> {
    /// Whether a value of one type will do where the other is wanted. What was learned of the variables is
    /// kept only then.
    pub(super) fn assign(&mut self, from: &Type<'m>, to: &Type<'m>) -> bool {
        let mut attempt = self.clone();
        let fits = attempt.unify(from, to);
        if fits {
            *self = attempt;
        }
        fits
    }

    /// [`Self::assign`] of several at once.
    pub(super) fn assign_all(&mut self, from: &[Type<'m>], to: &[Type<'m>]) -> bool {
        if from.len() != to.len() {
            return false;
        }
        let mut attempt = self.clone();
        let fit = from.iter().zip(to).all(|(from, to)| attempt.unify(from, to));
        if fit {
            *self = attempt;
        }
        fit
    }

    /// The type with its variables replaced; those that stand for nothing are `dyn` if so wanted.
    pub(super) fn resolve(&self, ty: &Type<'m>, free_is_dyn: bool) -> Type<'m> {
        match ty {
            Type::Var(var) => match self.0.get(var) {
                Some(bound) => self.resolve(bound, free_is_dyn),
                None if free_is_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::Open(_) if free_is_dyn => Type::Dyn,
            Type::List(inner) => Type::list(self.resolve(inner, free_is_dyn)),
            Type::Map(inner) => {
                Type::map(self.resolve(&inner.0, free_is_dyn), self.resolve(&inner.1, free_is_dyn))
            }
            Type::Optional(inner) => Type::optional(self.resolve(inner, free_is_dyn)),
            Type::Meta(inner) => Type::Meta(Arc::new(self.resolve(inner, free_is_dyn))),
            other => other.clone(),
        }
    }

    fn unify(&mut self, from: &Type<'m>, to: &Type<'m>) -> bool {
        if let Type::Var(var) = to {
            match self.substitute(from, *var) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Var(var) = from {
            return self.substitute(to, *var).0;
        }
        if from.is_closed() || to.is_closed() {
            return self.unify(&from.open(), &to.open());
        }
        match (from, to) {
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::Null, other) | (other, Type::Null) => other.is_nullable(),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.unify(a, b),
            (Type::Map(a), Type::Map(b)) => self.unify(&a.0, &b.0) && self.unify(&a.1, &b.1),
            (a, b) => a.is(b),
        }
    }

    /// Whether a variable may stand for a type, and whether it stood for something before.
    fn substitute(&mut self, ty: &Type<'m>, var: u32) -> (bool, bool) {
        if matches!(ty, Type::Var(other) if *other == var) {
            return (true, true);
        }
        if let Some(bound) = self.0.get(&var).cloned() {
            if ty.is(&bound) {
                return (true, true);
            }
            if !self.unify(ty, &bound) {
                return (false, true);
            }
            let general = Type::most_general(ty, &bound);
            if !self.mentions(var, &general) {
                self.0.insert(var, general);
            }
            return (true, true);
        }
        if self.mentions(var, ty) {
            return (false, false);
        }
        self.0.insert(var, ty.clone());
        (true, false)
    }

    fn mentions(&self, var: u32, ty: &Type<'m>) -> bool {
        match ty {
            Type::Var(other) => {
                *other == var || self.0.get(other).is_some_and(|bound| self.mentions(var, bound))
            }
            Type::List(inner) | Type::Optional(inner) | Type::Meta(inner) => self.mentions(var, inner),
            Type::Map(inner) => self.mentions(var, &inner.0) || self.mentions(var, &inner.1),
            _ => false,
        }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(inner) => write!(f, "list({inner})"),
            Self::Map(inner) => write!(f, "map({}, {})", inner.0, inner.1),
            Self::Array(_) | Self::Mapping(_) => self.open().fmt(f),
            Self::Object(_) => f.write_str("object"),
            Self::Named(name) => f.write_str(name),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Meta(inner) => write!(f, "type({inner})"),
            Self::Open(letter) => write!(f, "{}", char::from(*letter)),
            Self::Var(var) => write!(f, "_var{var}"),
        }
    }
}
