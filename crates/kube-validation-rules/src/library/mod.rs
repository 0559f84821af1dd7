//! The functions that expressions may call: those of Kubernetes 1.37 for rules that are stored.
//! It must not know expressions; a function sees values only.
//!
//! Source: apiserver `pkg/cel/environment/base.go`. Beside CEL's own there are the libraries of cel-go for strings
//! (version 2), lists (3), sets, two-variable loops and optionals (2), and Kubernetes' own for lists, regular expressions,
//! URLs, quantities, IP addresses, CIDRs, named formats and semantic versions. `math`, `base64`, `cel.bind` and the
//! authorizer are not among them for CRDs.

mod calendar;
mod convert;
mod formatting;
mod lists;
mod named_format;
mod net;
mod operators;
mod optional;
mod quantity;
mod regex;
mod semver;
mod sequences;
mod signature;
mod strings;
mod url;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::fault::{Fault, Outcome};
use super::types::Type;
use super::value::Value;

pub(super) use convert::NAMES as CONVERSIONS;
pub(super) use formatting::{Clause, clauses};
pub(super) use named_format::NamedFormat;
pub(super) use net::Cidr;
pub(super) use quantity::Quantity;
pub(super) use regex::Search;
pub(super) use semver::Version;
pub(super) use sequences::{insert, insert_all};
pub(super) use url::Url;

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// cel-go's name for it, which tells what it costs.
    pub(super) id: String,
    /// Whether it is called on its first argument: `a.f(b)`.
    pub(super) member: bool,
    /// The types of all arguments, with that one first.
    pub(super) args: Vec<Type<'static>>,
    pub(super) result: Type<'static>,
    pub(super) run: Run,
    /// Whether the types of values are compared with those of the arguments; otherwise the function does that itself.
    guarded: bool,
}

/// What a function does. It is called with as many arguments as it declares, and where it is guarded of those types.
pub(super) type Run = for<'v> fn(&[Value<'v>]) -> Outcome<Value<'v>>;

/// All functions, by name.
#[derive(Debug, Default)]
struct Table(HashMap<&'static str, Vec<Overload>>);

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    operators::declare(&mut table);
    convert::declare(&mut table);
    calendar::declare(&mut table);
    optional::declare(&mut table);
    url::declare(&mut table);
    regex::declare(&mut table);
    quantity::declare(&mut table);
    strings::declare(&mut table);
    formatting::declare(&mut table);
    net::declare(&mut table);
    named_format::declare(&mut table);
    semver::declare(&mut table);
    sequences::declare(&mut table);
    lists::declare(&mut table);
    table
});

/// The overloads of a function, or none where there is no such function.
pub(super) fn overloads(function: &str) -> Option<&'static [Overload]> {
    TABLE.0.get(function).map(Vec::as_slice)
}

/// The type that an expression names, as in `type(x) == string`.
pub(super) fn type_named(name: &str) -> Option<(&'static str, Type<'static>)> {
    Some(match name {
        "bool" => ("bool", Type::Bool),
        "bytes" => ("bytes", Type::Bytes),
        "double" => ("double", Type::Double),
        "int" => ("int", Type::Int),
        "list" => ("list", Type::list(Type::Dyn)),
        "map" => ("map", Type::map(Type::Dyn, Type::Dyn)),
        "null_type" => ("null_type", Type::Null),
        "string" => ("string", Type::String),
        "type" => ("type", Type::Meta(Type::Dyn.into())),
        "uint" => ("uint", Type::Uint),
        "optional_type" => ("optional_type", Type::optional(Type::Dyn)),
        "google.protobuf.Duration" => ("google.protobuf.Duration", Type::Duration),
        "google.protobuf.Timestamp" => ("google.protobuf.Timestamp", Type::Timestamp),
        "net.IP" => ("net.IP", Type::Named("net.IP")),
        "net.CIDR" => ("net.CIDR", Type::Named("net.CIDR")),
        _ => return None,
    })
}

impl Overload {
    /// Whether values have the types that this overload takes. Of lists and maps the first entry is looked at.
    pub(super) fn takes(&self, values: &[Value<'_>]) -> bool {
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
    /// Declares a function that is called by its name.
    fn function(&mut self, name: &'static str, id: impl Into<String>, signature: &str, run: Run) {
        self.declare(name, id.into(), false, signature, run);
    }

    /// Declares a function that is called on its first argument.
    fn method(&mut self, name: &'static str, id: impl Into<String>, signature: &str, run: Run) {
        self.declare(name, id.into(), true, signature, run);
    }

    fn declare(&mut self, name: &'static str, id: String, member: bool, signature: &str, run: Run) {
        let (args, result) = signature::parse(signature);
        let operator = name.starts_with(['_', '@', '!', '-']);
        let guarded = !operator && !matches!(name, "size" | "type" | "matches" | "dyn" | "sort" | "flatten");
        self.0.entry(name).or_default().push(Overload { id, member, args, result, run, guarded });
    }
}

/// What stands in for functions that the evaluator does itself, as they do not need all their arguments.
fn built_in<'v>(_: &[Value<'v>]) -> Outcome<Value<'v>> {
    Err(Fault::NoOverload)
}

fn text<'a>(args: &'a [Value<'_>], index: usize) -> Outcome<&'a str> {
    match args.get(index) {
        Some(Value::String(text)) => Ok(text.as_str()),
        _ => Err(Fault::NoOverload),
    }
}

fn int(args: &[Value<'_>], index: usize) -> Outcome<i64> {
    match args.get(index) {
        Some(Value::Int(value)) => Ok(*value),
        _ => Err(Fault::NoOverload),
    }
}

/// An index that is not negative.
fn position(value: i64) -> Outcome<usize> {
    usize::try_from(value).map_err(|_| Fault::new("index out of range"))
}

/// The number of items or characters as a value.
fn count<'v>(count: usize) -> Value<'v> {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_overload_has_a_name_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for overload in TABLE.0.values().flatten() {
            assert!(seen.insert(&overload.id), "{} is declared twice", overload.id);
            assert!(!overload.member || !overload.args.is_empty(), "{} is called on nothing", overload.id);
        }
    }
}
