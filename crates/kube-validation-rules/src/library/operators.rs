//! The operators, `size`, `in` and `type`.
//! `&&`, `||`, `?:`, `==` and indexing are the evaluator's, which decides what is evaluated.
//!
//! Source: cel-go `common/stdlib/standard.go` and `common/types`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::args::count;
use super::table::{Run, Table, built_in};
use crate::compare::{self, Scalar, map_key};
use crate::cost::{CHARACTER, scaled, size as size_of};
use crate::fault::{Fault, Outcome};
use crate::price::{Argument, COMPARISON, Entry, Estimate, Given, ONE, Price};
use crate::range::Range;
use crate::time::{between, plus};
use crate::types::Type;
use crate::value::{List, Value, find};
use crate::view::ListKind;

/// The types that `<` and its like compare, and the names they go by there.
const ORDERED: [(&str, &str); 14] = [
    ("bool", "bool, bool"),
    ("int64", "int, int"),
    ("int64_double", "int, double"),
    ("int64_uint64", "int, uint"),
    ("uint64", "uint, uint"),
    ("uint64_double", "uint, double"),
    ("uint64_int64", "uint, int"),
    ("double", "double, double"),
    ("double_int64", "double, int"),
    ("double_uint64", "double, uint"),
    ("string", "string, string"),
    ("bytes", "bytes, bytes"),
    ("timestamp", "timestamp, timestamp"),
    ("duration", "duration, duration"),
];

pub(super) fn declare(table: &mut Table) {
    table.function("_?_:_", "conditional", "bool, A, A -> A", ONE, built_in);
    table.function("_&&_", "logical_and", "bool, bool -> bool", ONE, built_in);
    table.function("_||_", "logical_or", "bool, bool -> bool", ONE, built_in);
    table.function("!_", "logical_not", "bool -> bool", ONE, |args| match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(Fault::NoOverload),
    });
    table.function("@not_strictly_false", "not_strictly_false", "bool -> bool", ONE, built_in);
    table.function("_==_", "equals", "A, A -> bool", EQUAL, built_in);
    table.function("_!=_", "not_equals", "A, A -> bool", COMPARISON, built_in);
    declare_arithmetic(table);
    let relations: [(&'static str, &str, Run); 4] = [
        ("_<_", "less", |args| relate(args, Ordering::is_lt)),
        ("_<=_", "less_equals", |args| relate(args, Ordering::is_le)),
        ("_>_", "greater", |args| relate(args, Ordering::is_gt)),
        ("_>=_", "greater_equals", |args| relate(args, Ordering::is_ge)),
    ];
    for (operator, name, run) in relations {
        for (types, args) in ORDERED {
            let price = if matches!(types, "string" | "bytes") { COMPARISON } else { ONE };
            table.function(operator, format!("{name}_{types}"), &format!("{args} -> bool"), price, run);
        }
    }
    table.function("_[_]", "index_list", "list<A>, int -> A", ONE, built_in);
    table.function("_[_]", "index_map", "map<A, B>, A -> B", ONE, built_in);
    table.function("@in", "in_list", "A, list<A> -> bool", IN_LIST, is_in);
    table.function("@in", "in_map", "A, map<A, B> -> bool", ONE, is_in);
    for (ty, name) in [("bytes", "bytes"), ("list<A>", "list"), ("map<A, B>", "map"), ("string", "string")] {
        table.function("size", format!("size_{name}"), &format!("{ty} -> int"), ONE, size);
        table.method("size", format!("{name}_size"), &format!("{ty} -> int"), ONE, size);
    }
    table.function("type", "type", "A -> type<A>", ONE, |args| match &args[0] {
        Value::Untyped(_) => Err(Fault::new("type conversion not supported for values without a type")),
        value => Ok(Value::Type(value.type_name())),
    });
}

fn declare_arithmetic(table: &mut Table) {
    table.function("_+_", "add_bytes", "bytes, bytes -> bytes", ADD_TEXT, add);
    table.function("_+_", "add_string", "string, string -> string", ADD_TEXT, add);
    table.function("_+_", "add_list", "list<A>, list<A> -> list<A>", ADD_LIST, add);
    for (id, signature) in [
        ("add_double", "double, double -> double"),
        ("add_duration_duration", "duration, duration -> duration"),
        ("add_duration_timestamp", "duration, timestamp -> timestamp"),
        ("add_timestamp_duration", "timestamp, duration -> timestamp"),
        ("add_int64", "int, int -> int"),
        ("add_uint64", "uint, uint -> uint"),
    ] {
        table.function("_+_", id, signature, ONE, add);
    }
    for (id, signature) in [
        ("subtract_double", "double, double -> double"),
        ("subtract_duration_duration", "duration, duration -> duration"),
        ("subtract_int64", "int, int -> int"),
        ("subtract_timestamp_duration", "timestamp, duration -> timestamp"),
        ("subtract_timestamp_timestamp", "timestamp, timestamp -> duration"),
        ("subtract_uint64", "uint, uint -> uint"),
    ] {
        table.function("_-_", id, signature, ONE, subtract);
    }
    for (operator, name, run) in [("_*_", "multiply", multiply as Run), ("_/_", "divide", divide)] {
        for (ty, of) in [("double", "double"), ("int", "int64"), ("uint", "uint64")] {
            table.function(operator, format!("{name}_{of}"), &format!("{ty}, {ty} -> {ty}"), ONE, run);
        }
    }
    table.function("_%_", "modulo_int64", "int, int -> int", ONE, modulo);
    table.function("_%_", "modulo_uint64", "uint, uint -> uint", ONE, modulo);
    table.function("-_", "negate_double", "double -> double", ONE, negate);
    table.function("-_", "negate_int64", "int -> int", ONE, negate);
}

/// The longest name of a format, in characters.
const MAX_FORMAT: u64 = 64;

/// `==`: of Kubernetes' own types it costs the least there is.
pub(crate) const EQUAL: Price = Price {
    counted: |args, result| match args {
        [Value::Kind(_), _] => Ok(1),
        _ => (COMPARISON.counted)(args, result),
    },
    estimated: |call| {
        let [left, right] = &call.args[..] else { return (ONE.estimated)(call) };
        let cost = match left.ty {
            Type::Named(name) if left.ty.is(&right.ty) => kind_equality(name, right),
            _ => None,
        };
        cost.map_or_else(|| (COMPARISON.estimated)(call), Estimate::of)
    },
    ..COMPARISON
};

fn kind_equality(kind: &str, right: &Argument<'_>) -> Option<Range> {
    let max = match kind {
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => return Some(Range::fixed(1)),
        "kubernetes.NamedFormat" => MAX_FORMAT,
        "kubernetes.URL" => right.known.map_or(1, |size| size.max),
        _ => return None,
    };
    Some(Range { min: 1, max }.scaled(CHARACTER))
}

/// Every item of the list is compared.
const IN_LIST: Price =
    Price::cel(|args, _| Ok(size_of(&args[1])), |call| Estimate::of(call.args[1].cel_size().scaled(1.0)));

const ADD_LIST: Price = Price { estimated: |call| sum(call, |_| Range::fixed(1)), ..ONE };

const ADD_TEXT: Price = Price::cel(
    |args, _| Ok(scaled(size_of(&args[0]).saturating_add(size_of(&args[1])) as f64, CHARACTER)),
    |call| sum(call, |size| size.scaled(CHARACTER)),
);

fn sum(call: &Given<'_>, cost: fn(Range) -> Range) -> Estimate {
    let [left, right] = &call.args[..] else { return (ONE.estimated)(call) };
    let size = left.cel_size().plus(right.cel_size());
    Estimate { entry: Entry::union(left.entry, right.entry), ..Estimate::sized(cost(size), size) }
}

pub(super) fn add<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    let [a, b] = args else { return Err(Fault::NoOverload) };
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int).ok_or(INT_OVERFLOW),
        (Value::Uint(a), Value::Uint(b)) => a.checked_add(*b).map(Value::Uint).ok_or(UINT_OVERFLOW),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => Ok(Value::text([a.as_str(), b.as_str()].concat())),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&a[..], &b[..]].concat().into())),
        (Value::Duration(a), Value::Duration(b)) => {
            a.checked_add(*b).map(Value::Duration).ok_or(INT_OVERFLOW)
        }
        (Value::Duration(span), Value::Timestamp(time)) | (Value::Timestamp(time), Value::Duration(span)) => {
            plus(*time, *span).map(Value::Timestamp).ok_or(TIME_OVERFLOW)
        }
        (Value::List(_) | Value::Array(_), Value::List(_) | Value::Array(_)) => concat(a, b),
        _ => Err(Fault::NoOverload),
    }
}

/// `+` of lists: sets take no item twice, and in maps the items of the right replace those with the same
/// keys.
fn concat<'v>(a: &Value<'v>, b: &Value<'v>) -> Outcome<Value<'v>> {
    let kind = match a {
        Value::List(list) => list.kind,
        Value::Array(array) => array.kind,
        _ => return Err(Fault::NoOverload),
    };
    let mut items: Vec<Value<'v>> = compare::items(a)?.map(Value::kept).collect();
    match kind {
        ListKind::Atomic => {
            items.extend(compare::items(b)?.map(Value::kept));
        }
        ListKind::Set => {
            let mut seen =
                items.iter().map(Scalar::of_set_item).collect::<Outcome<std::collections::HashSet<_>>>()?;
            for item in compare::items(b)?.map(Value::kept) {
                let scalar = Scalar::of_set_item(&item)?;
                if scalar.is_none() || seen.insert(scalar) {
                    items.push(item);
                }
            }
        }
        ListKind::Map(keys) => {
            let places: std::collections::HashMap<_, usize> =
                items.iter().enumerate().map(|(index, item)| (map_key(item, keys), index)).collect();
            for item in compare::items(b)?.map(Value::kept) {
                match places.get(&map_key(&item, keys)) {
                    Some(index) => items[*index] = item,
                    None => items.push(item),
                }
            }
        }
    }
    Ok(Value::List(Arc::new(List { items, kind })))
}

fn subtract<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    match args {
        [Value::Int(a), Value::Int(b)] => a.checked_sub(*b).map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Uint(a), Value::Uint(b)] => a.checked_sub(*b).map(Value::Uint).ok_or(UINT_OVERFLOW),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => {
            a.checked_sub(*b).map(Value::Duration).ok_or(INT_OVERFLOW)
        }
        [Value::Timestamp(time), Value::Duration(span)] => {
            let back = span.checked_neg().ok_or(INT_OVERFLOW)?;
            plus(*time, back).map(Value::Timestamp).ok_or(TIME_OVERFLOW)
        }
        [Value::Timestamp(a), Value::Timestamp(b)] => {
            between(*b, *a).map(Value::Duration).ok_or(INT_OVERFLOW)
        }
        _ => Err(Fault::NoOverload),
    }
}

fn multiply<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    match args {
        [Value::Int(a), Value::Int(b)] => a.checked_mul(*b).map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Uint(a), Value::Uint(b)] => a.checked_mul(*b).map(Value::Uint).ok_or(UINT_OVERFLOW),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => Err(Fault::NoOverload),
    }
}

fn divide<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Fault::new("division by zero"))
        }
        [Value::Int(a), Value::Int(b)] => a.checked_div(*b).map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a / b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => Err(Fault::NoOverload),
    }
}

fn modulo<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Fault::new("modulus by zero"))
        }
        [Value::Int(a), Value::Int(b)] => a.checked_rem(*b).map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a % b)),
        _ => Err(Fault::NoOverload),
    }
}

fn negate<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    match args {
        [Value::Int(value)] => value.checked_neg().map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        _ => Err(Fault::NoOverload),
    }
}

fn relate<'v>(args: &[Value<'v>], holds: fn(Ordering) -> bool) -> Outcome<Value<'v>> {
    let [a, b] = args else { return Err(Fault::NoOverload) };
    let order = compare::order(a, b)?.ok_or(Fault::new("NaN values cannot be ordered"))?;
    Ok(Value::Bool(holds(order)))
}

fn is_in<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    let [wanted, container] = args else { return Err(Fault::NoOverload) };
    match container {
        Value::List(_) | Value::Array(_) => compare::contains(container, wanted).map(Value::Bool),
        Value::Map(map) => Ok(Value::Bool(find(map, wanted).is_some())),
        Value::Object(object) => Ok(Value::Bool(object.find(wanted)?.is_some())),
        _ => Err(Fault::NoOverload),
    }
}

fn size<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    args.first().and_then(Value::size).map(count).ok_or(Fault::NoOverload)
}

const INT_OVERFLOW: Fault = Fault::fixed("integer overflow");
const UINT_OVERFLOW: Fault = Fault::fixed("unsigned integer overflow");
const TIME_OVERFLOW: Fault = Fault::fixed("timestamp overflow");
