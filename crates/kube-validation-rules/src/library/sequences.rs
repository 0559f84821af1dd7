//! cel-go's functions on lists and sets, and what its two-variable loops need of maps.
//! Kubernetes' own are in `lists`.
//!
//! Source: cel-go `ext/lists.go` (version 3), `ext/sets.go`, `ext/comprehensions.go`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::args::{int, position};
use super::lists::COMPARABLE;
use super::table::Table;
use crate::compare;
use crate::cost::{CHARACTER, NEW_LIST, size};
use crate::fault::{Fault, Outcome};
use crate::macros::{MAP_INSERT, SORT_BY_KEYS};
use crate::price::{Argument, Estimate, ONE, Price};
use crate::range::Range;
use crate::stop;
use crate::value::{Key, Value};

/// The most numbers that `lists.range` makes.
const MAX_RANGE: i64 = 1_000_000;

pub(super) fn declare(table: &mut Table) {
    table.method("slice", "list_slice", "list<T>, int, int -> list<T>", SLICE, slice);
    table.method("flatten", "list_flatten", "list<list<T>> -> list<T>", FLATTEN, |args| {
        flattened(&args[0], 1)
    });
    table.method("flatten", "list_flatten_int", "list<dyn>, int -> list<dyn>", FLATTEN_TO, |args| {
        flattened(&args[0], int(args, 1)?)
    });
    for ty in COMPARABLE {
        let name = type_name(ty);
        let (sort, sort_by) = match ty {
            "string" | "bytes" => (sorting_price::<0, true>(), sorting_price::<1, true>()),
            _ => (sorting_price::<0, false>(), sorting_price::<1, false>()),
        };
        table.method(
            "sort",
            format!("list_{name}_sort"),
            &format!("list<{ty}> -> list<{ty}>"),
            sort,
            |args| sorted(&args[0], &args[0]),
        );
        let signature = format!("list<T>, list<{ty}> -> list<T>");
        table.method(
            SORT_BY_KEYS,
            format!("list_{name}_sortByAssociatedKeys"),
            &signature,
            sort_by,
            |args| sorted(&args[0], &args[1]),
        );
    }
    table.function("lists.range", "lists_range", "int -> list<int>", RANGE, |args| match int(args, 0)? {
        n @ 0..=MAX_RANGE => Ok(Value::list((0..n).map(Value::Int).collect())),
        n if n < 0 => {
            let plain = "lists.range: size must be non-negative";
            Err(Fault::quoting(plain, format!("{plain}, got {n}")))
        }
        n => {
            let words = format!("lists.range: size {n} exceeds maximum allowed ({MAX_RANGE})");
            Err(Fault::quoting("lists.range: size exceeds maximum allowed", words))
        }
    });
    table.method("reverse", "list_reverse", "list<T> -> list<T>", REVERSE, |args| {
        let mut items: Vec<Value<'_>> = compare::items(&args[0])?.map(Value::kept).collect();
        items.reverse();
        Ok(Value::list(items))
    });
    table.method("distinct", "list_distinct", "list<T> -> list<T>", DISTINCT, |args| {
        let mut unique: Vec<Value<'_>> = Vec::new();
        for item in compare::items(&args[0])?.map(Value::kept) {
            stop::go_on()?;
            if !unique.iter().any(|seen| compare::same(&item, seen) == Ok(true)) {
                unique.push(item);
            }
        }
        Ok(Value::list(unique))
    });
    table.function(
        "sets.contains",
        "list_sets_contains_list",
        "list<T>, list<T> -> bool",
        sets_price::<1>(),
        |args| contains_all(&args[0], &args[1]).map(Value::Bool),
    );
    table.function(
        "sets.equivalent",
        "list_sets_equivalent_list",
        "list<T>, list<T> -> bool",
        sets_price::<2>(),
        |args| Ok(Value::Bool(contains_all(&args[0], &args[1])? && contains_all(&args[1], &args[0])?)),
    );
    table.function(
        "sets.intersects",
        "list_sets_intersects_list",
        "list<T>, list<T> -> bool",
        sets_price::<1>(),
        |args| {
            for item in compare::items(&args[0])? {
                stop::go_on()?;
                if item.and_then(|item| compare::contains(&args[1], &item)) == Ok(true) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        },
    );
    table.function(MAP_INSERT, "@mapInsert_map_key_value", "map<K, V>, K, V -> map<K, V>", ONE, |args| {
        match args {
            [Value::Map(map), key, value] => {
                let mut map = (**map).clone();
                insert(&mut map, key, value.clone())?;
                Ok(Value::Map(Arc::new(map)))
            }
            _ => Err(Fault::NoOverload),
        }
    });
    table.function(MAP_INSERT, "@mapInsert_map_map", "map<K, V>, map<K, V> -> map<K, V>", ONE, |args| {
        match args {
            [Value::Map(map), more] => {
                let mut map = (**map).clone();
                insert_all(&mut map, more)?;
                Ok(Value::Map(Arc::new(map)))
            }
            _ => Err(Fault::NoOverload),
        }
    });
}

const SLICE: Price = Price {
    estimated: |call| {
        let [list, start, end] = &call.args[..] else { return (ONE.estimated)(call) };
        let len = number(end, list.size.max).wrapping_sub(number(start, 0));
        new_list_estimate(1.0, Range::fixed(len))
    },
    ..REVERSE
};

const RANGE: Price = Price {
    estimated: |call| new_list_estimate(1.0, Range::fixed(number(&call.args[0], u64::MAX))),
    ..REVERSE
};

const REVERSE: Price = Price::cel(
    |_, result| Ok(new_list(result.as_ref().map_or(1, size), 1.0)),
    |call| new_list_estimate(1.0, call.args[0].size),
);

const FLATTEN: Price =
    Price::cel(|args, _| Ok(new_list(size(&args[0]), 1.0)), |call| new_list_estimate(1.0, call.args[0].size));

const FLATTEN_TO: Price = Price::cel(
    |args, _| match &args[1] {
        Value::Int(depth) => Ok(new_list(size(&args[0]), *depth as f64)),
        other => {
            let given = if matches!(other, Value::Null) { "*types.Err" } else { other.go_type() };
            let panic = format!("interface conversion: ref.Val is {given}, not types.Int");
            Err(Fault::Internal(panic.into()))
        }
    },
    |call| new_list_estimate(number(&call.args[1], u64::MAX) as f64, call.args[0].size),
);

const DISTINCT: Price = sorting_price::<0, false>().of_pairs();

/// Every item of one argument with every other. Texts are compared by their characters.
const fn sorting_price<const KEYS: usize, const TEXTS: bool>() -> Price {
    Price::cel(
        |args, _| sorting(&args[KEYS]),
        |call| {
            let size = call.args[KEYS].size;
            new_list_estimate(if TEXTS { 2.0 + CHARACTER } else { 2.0 }, size.times(size))
        },
    )
}

/// Every item of one list with every one of another, so many times.
const fn sets_price<const TIMES: u32>() -> Price {
    Price::cel(
        |args, _| {
            let pairs = size(&args[0]).saturating_mul(size(&args[1]));
            Ok(1_u64.saturating_add((pairs as f64 * f64::from(TIMES)) as u64))
        },
        |call| {
            let pairs = call.args[0].size.times(call.args[1].size);
            Estimate::of(pairs.scaled(TIMES.into()).plus(Range::fixed(1)))
        },
    )
    .of_pairs()
}

fn sorting(list: &Value<'_>) -> Outcome<u64> {
    const NO_LIST: Fault = Fault::Internal(Cow::Borrowed(
        "interface conversion: *types.Err is not traits.Lister: missing method Add",
    ));
    let size = size(list);
    let first = compare::items(list).map_err(|_| NO_LIST)?.next();
    let factor = match first {
        Some(Ok(Value::String(_) | Value::Bytes(_))) => 2.0 + CHARACTER,
        _ => 2.0,
    };
    Ok(new_list(size.saturating_mul(size), factor))
}

fn new_list(size: u64, factor: f64) -> u64 {
    let factor = if factor < 0.0 { 1.0 } else { factor };
    ((size as f64 * factor) as u64).saturating_add(1 + NEW_LIST)
}

fn new_list_estimate(factor: f64, size: Range) -> Estimate {
    Estimate::sized(size.scaled(factor).plus(Range::fixed(1 + NEW_LIST)), size)
}

/// The value of a literal, if it is one of the right type.
fn number(argument: &Argument<'_>, otherwise: u64) -> u64 {
    argument.literal.map_or(otherwise, |value| u64::try_from(value).unwrap_or(0))
}

/// A map that is being made.
pub(crate) type Entries<'v> = std::collections::BTreeMap<Key, Value<'v>>;

/// Adds an entry whose key is not there yet.
pub(crate) fn insert<'v>(map: &mut Entries<'v>, key: &Value<'v>, value: Value<'v>) -> Outcome<()> {
    if crate::value::find(map, key).is_some() {
        let words = format!("insert failed: key {} already exists", key.shown());
        return Err(Fault::quoting("insert failed: key already exists", words));
    }
    map.insert(Key::from_value(key).ok_or(Fault::new("unsupported key type"))?, value);
    Ok(())
}

/// Adds the entries of another map.
pub(crate) fn insert_all<'v>(map: &mut Entries<'v>, more: &Value<'v>) -> Outcome<()> {
    match more {
        Value::Map(more) => {
            more.iter().try_for_each(|(key, value)| insert(map, &key.to_value(), value.clone()))
        }
        Value::Object(more) => more.keys().try_for_each(|key| {
            let value = more.find(&key)?.ok_or(Fault::new("no such key"))?;
            insert(map, &key, value)
        }),
        _ => Err(Fault::NoOverload),
    }
}

fn type_name(ty: &str) -> &str {
    match ty {
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        other => other,
    }
}

fn slice<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    let (start, end) = (int(args, 1)?, int(args, 2)?);
    let (Ok(from), Ok(to)) = (position(start), position(end)) else {
        return Err(Fault::new(format!("cannot slice({start}, {end}), negative indexes not supported")));
    };
    if from > to {
        return Err(Fault::new(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        )));
    }
    let len = args[0].size().unwrap_or_default();
    if len < to {
        let words = format!("cannot slice({start}, {end}), list is length {len}");
        return Err(Fault::quoting("cannot slice: the list is shorter", words));
    }
    Ok(Value::list(compare::items(&args[0])?.skip(from).take(to - from).map(Value::kept).collect()))
}

fn flattened<'v>(list: &Value<'v>, depth: i64) -> Outcome<Value<'v>> {
    if depth < 0 {
        return Err(Fault::new("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten(list, depth, &mut flat)?;
    Ok(Value::list(flat))
}

fn flatten<'v>(list: &Value<'v>, depth: i64, flat: &mut Vec<Value<'v>>) -> Outcome<()> {
    for item in compare::items(list)?.map(Value::kept) {
        match item {
            nested @ (Value::List(_) | Value::Array(_)) if depth > 0 => flatten(&nested, depth - 1, flat)?,
            item => flat.push(item),
        }
    }
    Ok(())
}

/// A list in the order of its keys; of equal keys the order is kept, where Go's sorting promises nothing.
fn sorted<'v>(list: &Value<'v>, keys: &Value<'v>) -> Outcome<Value<'v>> {
    let items: Vec<Value<'v>> = compare::items(list)?.map(Value::kept).collect();
    // Upstream takes an item that does not fit its schema for one that has no order.
    let keys: Vec<Value<'v>> = compare::items(keys)?.map(Value::kept).collect();
    if items.len() != keys.len() {
        return Err(Fault::new("a list is sorted by as many keys as it has elements"));
    }
    let Some(first) = keys.first() else { return Ok(list.clone()) };
    compare::order(first, first).map_err(|_| Fault::new("list elements must be comparable"))?;
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(Fault::new("list elements must have the same type"));
    }
    let mut pairs: Vec<_> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(a, _), (b, _)| compare::order(a, b).ok().flatten().unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn contains_all(list: &Value<'_>, wanted: &Value<'_>) -> Outcome<bool> {
    for item in compare::items(wanted)? {
        stop::go_on()?;
        if !compare::contains(list, &Value::kept(item))? {
            return Ok(false);
        }
    }
    Ok(true)
}
