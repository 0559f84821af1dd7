//! A table of functions and their overloads.

use std::collections::HashMap;

use super::signature;
use crate::fault::{Fault, Outcome};
use crate::price::Price;
use crate::types::Type;
use crate::value::Value;

/// One way to call a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// cel-go's name for it.
    pub(crate) id: String,
    /// Whether it is called on its first argument: `a.f(b)`.
    pub(crate) member: bool,
    /// The types of all arguments, with that one first.
    pub(crate) args: Vec<Type<'static>>,
    pub(crate) result: Type<'static>,
    pub(crate) price: Price,
    pub(crate) run: Run,
    /// Whether the types of values are compared with those of the arguments; otherwise the function does that
    /// itself.
    guarded: bool,
}

/// What a function does. It is called with as many arguments as it declares, and where it is guarded of those
/// types.
pub(crate) type Run = for<'v> fn(&[Value<'v>]) -> Outcome<Value<'v>>;

/// All functions, by name.
#[derive(Debug, Default)]
pub(super) struct Table(HashMap<&'static str, Vec<Overload>>);

impl Overload {
    /// Whether values have the types that this overload takes. Of lists and maps the first entry is looked
    /// at.
    pub(crate) fn takes(&self, values: &[Value<'_>]) -> bool {
        self.args.len() == values.len()
            && (!self.guarded || self.args.iter().zip(values).all(|(ty, value)| is_of(value, ty)))
    }
}

fn is_of(value: &Value<'_>, ty: &Type<'_>) -> bool {
    match (ty, value) {
        (Type::Dyn | Type::Open(_) | Type::Var(_), _) => true,
        (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Optional(_), Value::Optional(_))
        | (Type::Meta(_), Value::Type(_)) => true,
        (Type::Named(name), value) => *name == value.type_name(),
        (Type::List(item), Value::List(list)) => list.items.first().is_none_or(|first| is_of(first, item)),
        (Type::List(item), Value::Array(array)) => {
            array.values().next().is_none_or(|first| is_of(&Value::kept(first), item))
        }
        (Type::Map(entry), Value::Map(map)) => map
            .first_key_value()
            .is_none_or(|(key, value)| is_of(&key.to_value(), &entry.0) && is_of(value, &entry.1)),
        (Type::Map(entry), Value::Object(object)) => object.keys().next().is_none_or(|key| {
            is_of(&key, &entry.0)
                && object.find(&key).is_ok_and(|value| value.is_some_and(|value| is_of(&value, &entry.1)))
        }),
        _ => false,
    }
}

impl Table {
    /// The overloads of a function; `None` if there is no such function.
    pub(super) fn overloads(&self, function: &str) -> Option<&[Overload]> {
        self.0.get(function).map(Vec::as_slice)
    }

    /// Declares a function that is called by its name.
    pub(super) fn function(
        &mut self,
        name: &'static str,
        id: impl Into<String>,
        signature: &str,
        price: Price,
        run: Run,
    ) {
        self.declare(name, id.into(), false, signature, price, run);
    }

    /// Declares a function that is called on its first argument.
    pub(super) fn method(
        &mut self,
        name: &'static str,
        id: impl Into<String>,
        signature: &str,
        price: Price,
        run: Run,
    ) {
        self.declare(name, id.into(), true, signature, price, run);
    }

    fn declare(
        &mut self,
        name: &'static str,
        id: String,
        member: bool,
        signature: &str,
        price: Price,
        run: Run,
    ) {
        let (args, result) = signature::parse(signature);
        let operator = name.starts_with(['_', '@', '!', '-']);
        let guarded = !operator && !matches!(name, "size" | "type" | "matches" | "dyn" | "sort" | "flatten");
        self.0.entry(name).or_default().push(Overload { id, member, args, result, price, run, guarded });
    }
}

/// What stands in for functions that the evaluator does itself, as they do not need all their arguments.
pub(super) fn built_in<'v>(_: &[Value<'v>]) -> Outcome<Value<'v>> {
    Err(Fault::NoOverload)
}

#[cfg(test)]
impl Table {
    pub(super) fn all(&self) -> impl Iterator<Item = &Overload> {
        self.0.values().flatten()
    }
}
