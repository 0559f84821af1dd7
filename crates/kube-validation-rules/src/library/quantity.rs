//! Quantities: `quantity('500m')` and what can be done with one.
//! How they are written is in `kinds`.
//!
//! Source: apiserver `pkg/cel/library/quantity.go`.

use super::args::{int, kind, text};
use super::table::Table;
use crate::fault::{Fault, Outcome};
use crate::kinds::Quantity;
use crate::price::{ONE, PARSE};
use crate::value::Value;

pub(super) fn declare(table: &mut Table) {
    table.function("quantity", "string_to_quantity", "string -> quantity", PARSE, |args| {
        Ok(Value::kind(Quantity::parse(text(args, 0)?)?))
    });
    table.function("isQuantity", "is_quantity_string", "string -> bool", PARSE, |args| {
        Ok(Value::Bool(Quantity::parse(text(args, 0)?).is_ok()))
    });
    table.function("sign", "quantity_sign", "quantity -> int", ONE, |args| {
        Ok(Value::Int(quantity(args, 0)?.sign()))
    });
    table.method("isGreaterThan", "quantity_is_greater_than", "quantity, quantity -> bool", ONE, |args| {
        Ok(Value::Bool(quantity(args, 0)?.order(quantity(args, 1)?).is_gt()))
    });
    table.method("isLessThan", "quantity_is_less_than", "quantity, quantity -> bool", ONE, |args| {
        Ok(Value::Bool(quantity(args, 0)?.order(quantity(args, 1)?).is_lt()))
    });
    table.method("compareTo", "quantity_compare_to", "quantity, quantity -> int", ONE, |args| {
        Ok(Value::Int(quantity(args, 0)?.order(quantity(args, 1)?) as i64))
    });
    table.method("asApproximateFloat", "quantity_get_float", "quantity -> double", ONE, |args| {
        Ok(Value::Double(quantity(args, 0)?.to_f64()))
    });
    table.method("asInteger", "quantity_get_int", "quantity -> int", ONE, |args| {
        quantity(args, 0)?.to_i64().map(Value::Int).ok_or(Fault::new("cannot convert value to integer"))
    });
    table.method("isInteger", "quantity_is_integer", "quantity -> bool", ONE, |args| {
        Ok(Value::Bool(quantity(args, 0)?.to_i64().is_some()))
    });
    table.method("add", "quantity_add", "quantity, quantity -> quantity", ONE, |args| {
        Ok(Value::kind(quantity(args, 0)?.plus(quantity(args, 1)?)))
    });
    table.method("add", "quantity_add_int", "quantity, int -> quantity", ONE, |args| {
        let other = Quantity::from(int(args, 1)?);
        Ok(Value::kind(quantity(args, 0)?.plus(&other)))
    });
    table.method("sub", "quantity_sub", "quantity, quantity -> quantity", ONE, |args| {
        Ok(Value::kind(quantity(args, 0)?.plus(&quantity(args, 1)?.negated())))
    });
    table.method("sub", "quantity_sub_int", "quantity, int -> quantity", ONE, |args| {
        let other = Quantity::from(int(args, 1)?).negated();
        Ok(Value::kind(quantity(args, 0)?.plus(&other)))
    });
}

fn quantity<'a>(args: &'a [Value<'_>], index: usize) -> Outcome<&'a Quantity> {
    kind(args, index)
}
