//! Arguments of a call, by type.
//! A value of another type is an error; none is converted.

use crate::fault::{Fault, Outcome};
use crate::kind::{Kind, downcast};
use crate::value::Value;

pub(super) fn text<'a>(args: &'a [Value<'_>], index: usize) -> Outcome<&'a str> {
    match args.get(index) {
        Some(Value::String(text)) => Ok(text.as_str()),
        _ => Err(Fault::NoOverload),
    }
}

pub(super) fn int(args: &[Value<'_>], index: usize) -> Outcome<i64> {
    match args.get(index) {
        Some(Value::Int(value)) => Ok(*value),
        _ => Err(Fault::NoOverload),
    }
}

/// An index that is not negative.
pub(super) fn position(value: i64) -> Outcome<usize> {
    usize::try_from(value).map_err(|_| Fault::new("index out of range"))
}

/// The number of items or characters as a value.
pub(super) fn count<'v>(count: usize) -> Value<'v> {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// A value of a type that Kubernetes adds.
pub(super) fn kind<'a, K: Kind>(args: &'a [Value<'_>], index: usize) -> Outcome<&'a K> {
    match args.get(index) {
        Some(Value::Kind(kind)) => downcast(&**kind).ok_or(Fault::NoOverload),
        _ => Err(Fault::NoOverload),
    }
}
