//! Optionals: values that may be absent.
//! `or`, `orValue` and `?` are the evaluator's, which decides what is evaluated.
//!
//! Source: cel-go `cel/library.go`, `OptionalTypes` of version 2.

use super::table::{Table, built_in};
use crate::compare;
use crate::fault::{Fault, Outcome};
use crate::price::ONE;
use crate::value::Value;

pub(super) fn declare(table: &mut Table) {
    table.function("optional.of", "optional_of", "V -> optional<V>", ONE, |args| {
        Ok(Value::some(args[0].clone()))
    });
    table.function("optional.ofNonZeroValue", "optional_ofNonZeroValue", "V -> optional<V>", ONE, |args| {
        Ok(if args[0].is_zero() { Value::Optional(None) } else { Value::some(args[0].clone()) })
    });
    table.function("optional.none", "optional_none", "-> optional<V>", ONE, |_| Ok(Value::Optional(None)));
    table.method("value", "optional_value", "optional<V> -> V", ONE, |args| match &args[0] {
        Value::Optional(Some(value)) => value.unwrapped(),
        Value::Optional(None) => Err(Fault::new("optional.none() dereference")),
        _ => Err(Fault::NoOverload),
    });
    table.method("hasValue", "optional_hasValue", "optional<V> -> bool", ONE, |args| match &args[0] {
        Value::Optional(value) => Ok(Value::Bool(value.is_some())),
        _ => Err(Fault::NoOverload),
    });
    table.method("or", "optional_or_optional", "optional<V>, optional<V> -> optional<V>", ONE, built_in);
    table.method("orValue", "optional_orValue_value", "optional<V>, V -> V", ONE, built_in);
    table.function("_?._", "select_optional_field", "dyn, string -> optional<V>", ONE, built_in);
    for (id, container, key) in [
        ("list_optindex_optional_int", "list<V>", "int"),
        ("optional_list_optindex_optional_int", "optional<list<V>>", "int"),
        ("map_optindex_optional_value", "map<K, V>", "K"),
        ("optional_map_optindex_optional_value", "optional<map<K, V>>", "K"),
    ] {
        table.function("_[?_]", id, &format!("{container}, {key} -> optional<V>"), ONE, built_in);
    }
    table.function("_[_]", "optional_list_index_int", "optional<list<V>>, int -> optional<V>", ONE, built_in);
    table.function(
        "_[_]",
        "optional_map_index_value",
        "optional<map<K, V>>, K -> optional<V>",
        ONE,
        built_in,
    );
    table.method("last", "list_last", "list<V> -> optional<V>", ONE, |args| end_of(&args[0], |len| len - 1));
    table.method("first", "list_first", "list<V> -> optional<V>", ONE, |args| end_of(&args[0], |_| 0));
    table.function("optional.unwrap", "optional_unwrap", "list<optional<V>> -> list<V>", ONE, unwrap_all);
    table.method("unwrapOpt", "optional_unwrapOpt", "list<optional<V>> -> list<V>", ONE, unwrap_all);
}

fn end_of<'v>(list: &Value<'v>, index: fn(usize) -> usize) -> Outcome<Value<'v>> {
    let len = list.size().ok_or(Fault::NoOverload)?;
    if len == 0 {
        return Ok(Value::Optional(None));
    }
    let item = compare::items(list)?.nth(index(len)).ok_or(Fault::NoOverload)?;
    Ok(Value::some(Value::kept(item)))
}

fn unwrap_all<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    let mut present = Vec::new();
    for item in compare::items(&args[0])? {
        match item? {
            Value::Optional(Some(value)) => present.push(value.unwrapped()?),
            Value::Optional(None) => {}
            _ => return Err(Fault::new("value is not optional")),
        }
    }
    Ok(Value::list(present))
}
