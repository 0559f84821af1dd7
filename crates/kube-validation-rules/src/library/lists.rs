//! Kubernetes' functions on lists: `sum`, `min`, `max`, `isSorted`, `indexOf`, `lastIndexOf`, `includes`.
//! cel-go's own are in `sequences`.
//!
//! Source: apiserver `pkg/cel/library/lists.go`, version 1.

use std::cmp::Ordering;

use super::args::count;
use super::operators;
use super::table::{Run, Table};
use crate::compare;
use crate::fault::{Fault, Outcome};
use crate::price::{Estimate, Price, TRAVERSAL, each};
use crate::value::Value;

/// The types whose values have an order.
pub(super) const COMPARABLE: [&str; 8] =
    ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"];

pub(super) fn declare(table: &mut Table) {
    for ty in COMPARABLE {
        table.method(
            "isSorted",
            format!("list_{ty}_is_sorted_bool"),
            &format!("list<{ty}> -> bool"),
            TRAVERSAL,
            is_sorted,
        );
        table.method(
            "max",
            format!("list_{ty}_max_{ty}"),
            &format!("list<{ty}> -> {ty}"),
            TRAVERSAL,
            |args| extreme(&args[0], "max", Ordering::is_lt),
        );
        table.method(
            "min",
            format!("list_{ty}_min_{ty}"),
            &format!("list<{ty}> -> {ty}"),
            TRAVERSAL,
            |args| extreme(&args[0], "min", Ordering::is_gt),
        );
    }
    let sums: [(&str, Run); 4] = [
        ("int", |args| sum(&args[0], Value::Int(0))),
        ("uint", |args| sum(&args[0], Value::Uint(0))),
        ("double", |args| sum(&args[0], Value::Double(0.0))),
        ("duration", |args| sum(&args[0], Value::Duration(0))),
    ];
    for (ty, run) in sums {
        table.method("sum", format!("list_{ty}_sum_{ty}"), &format!("list<{ty}> -> {ty}"), TRAVERSAL, run);
    }
    table.method("indexOf", "list_a_index_of_int", "list<A>, A -> int", TRAVERSAL, |args| {
        let mut items = compare::items(&args[0])?;
        Ok(items.position(|item| is(item, &args[1])).map_or(Value::Int(-1), count))
    });
    table.method("lastIndexOf", "list_a_last_index_of_int", "list<A>, A -> int", TRAVERSAL, |args| {
        let found =
            compare::items(&args[0])?.enumerate().filter(|(_, item)| is(item.clone(), &args[1])).last();
        Ok(found.map_or(Value::Int(-1), |(index, _)| count(index)))
    });
    table.method("includes", "list_includes_dyn_dyn", "dyn, dyn -> bool", INCLUDES, |args| {
        let [target, wanted] = args else { return Err(Fault::NoOverload) };
        Ok(Value::Bool(match target {
            Value::List(_) | Value::Array(_) => compare::items(target)?.any(|item| is(item, wanted)),
            single => compare::same(single, wanted) == Ok(true),
        }))
    });
}

/// A value that is not a list is taken for a list of it.
const INCLUDES: Price = Price {
    estimated: |call| {
        let list = &call.args[0];
        Estimate::of(list.item.map_or(list.size, |item| each(list.size, item)))
    },
    ..TRAVERSAL
};

fn is(item: Outcome<Value<'_>>, wanted: &Value<'_>) -> bool {
    item.is_ok_and(|item| compare::same(&item, wanted) == Ok(true))
}

fn is_sorted<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    let mut previous: Option<Value<'v>> = None;
    for item in compare::items(&args[0])? {
        let item = item?;
        // Only values with an order can be in such a list; of two that have none to each other the order is
        // kept.
        compare::order(&item, &item)?;
        if let Some(previous) = &previous
            && compare::order(previous, &item) == Ok(Some(Ordering::Greater))
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn extreme<'v>(list: &Value<'v>, name: &str, gives_way: fn(Ordering) -> bool) -> Outcome<Value<'v>> {
    let mut best: Option<Value<'v>> = None;
    for item in compare::items(list)? {
        let item = item?;
        compare::order(&item, &item)?;
        let better = match &best {
            None => true,
            Some(best) => compare::order(best, &item).is_ok_and(|order| order.is_some_and(gives_way)),
        };
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| Fault::new(format!("{name} called on empty list")))
}

fn sum<'v>(list: &Value<'v>, zero: Value<'v>) -> Outcome<Value<'v>> {
    compare::items(list)?.try_fold(zero, |sum, item| operators::add(&[sum, item?]))
}
