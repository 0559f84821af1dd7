//! cel-go's functions on lists and sets, and what its two-variable loops need of maps.
//! It must not know Kubernetes' own; those are in `lists`.
//!
//! Source: cel-go `ext/lists.go` (version 3), `ext/sets.go`, `ext/comprehensions.go`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::args::{int, position};
use super::lists::COMPARABLE;
use super::table::Table;
use crate::compare;
use crate::fault::{Fault, Outcome};
use crate::macros::{MAP_INSERT, SORT_BY_KEYS};
use crate::value::{Key, Value};

/// The most numbers that `lists.range` makes.
const MAX_RANGE: i64 = 1_000_000;

pub(super) fn declare(table: &mut Table) {
    table.method("slice", "list_slice", "list<T>, int, int -> list<T>", slice);
    table.method("flatten", "list_flatten", "list<list<T>> -> list<T>", |args| flattened(&args[0], 1));
    table.method("flatten", "list_flatten_int", "list<dyn>, int -> list<dyn>", |args| {
        flattened(&args[0], int(args, 1)?)
    });
    for ty in COMPARABLE {
        let name = type_name(ty);
        table.method("sort", format!("list_{name}_sort"), &format!("list<{ty}> -> list<{ty}>"), |args| {
            sorted(&args[0], &args[0])
        });
        let signature = format!("list<T>, list<{ty}> -> list<T>");
        table.method(SORT_BY_KEYS, format!("list_{name}_sortByAssociatedKeys"), &signature, |args| {
            sorted(&args[0], &args[1])
        });
    }
    table.function("lists.range", "lists_range", "int -> list<int>", |args| match int(args, 0)? {
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
    table.method("reverse", "list_reverse", "list<T> -> list<T>", |args| {
        let mut items: Vec<Value<'_>> = compare::items(&args[0])?.map(Value::kept).collect();
        items.reverse();
        Ok(Value::list(items))
    });
    table.method("distinct", "list_distinct", "list<T> -> list<T>", |args| {
        let mut unique: Vec<Value<'_>> = Vec::new();
        for item in compare::items(&args[0])?.map(Value::kept) {
            if !unique.iter().any(|seen| compare::same(&item, seen) == Ok(true)) {
                unique.push(item);
            }
        }
        Ok(Value::list(unique))
    });
    table.function("sets.contains", "list_sets_contains_list", "list<T>, list<T> -> bool", |args| {
        contains_all(&args[0], &args[1]).map(Value::Bool)
    });
    table.function("sets.equivalent", "list_sets_equivalent_list", "list<T>, list<T> -> bool", |args| {
        Ok(Value::Bool(contains_all(&args[0], &args[1])? && contains_all(&args[1], &args[0])?))
    });
    table.function("sets.intersects", "list_sets_intersects_list", "list<T>, list<T> -> bool", |args| {
        let mut items = compare::items(&args[0])?;
        let common = items.any(|item| item.and_then(|item| compare::contains(&args[1], &item)) == Ok(true));
        Ok(Value::Bool(common))
    });
    table.function(
        MAP_INSERT,
        "@mapInsert_map_key_value",
        "map<K, V>, K, V -> map<K, V>",
        |args| match args {
            [Value::Map(map), key, value] => {
                let mut map = (**map).clone();
                insert(&mut map, key, value.clone())?;
                Ok(Value::Map(Arc::new(map)))
            }
            _ => Err(Fault::NoOverload),
        },
    );
    table.function(
        MAP_INSERT,
        "@mapInsert_map_map",
        "map<K, V>, map<K, V> -> map<K, V>",
        |args| match args {
            [Value::Map(map), more] => {
                let mut map = (**map).clone();
                insert_all(&mut map, more)?;
                Ok(Value::Map(Arc::new(map)))
            }
            _ => Err(Fault::NoOverload),
        },
    );
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
    kube_structural_schema::json::level(|| {
        for item in compare::items(list)?.map(Value::kept) {
            match item {
                nested @ (Value::List(_) | Value::Array(_)) if depth > 0 => {
                    flatten(&nested, depth - 1, flat)?
                }
                item => flat.push(item),
            }
        }
        Ok(())
    })
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
        if !compare::contains(list, &Value::kept(item))? {
            return Ok(false);
        }
    }
    Ok(true)
}
