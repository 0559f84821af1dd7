//! The parts of values: fields, entries and items, and the errors about those that are not there.
//!
//! Source: cel-go `interpreter/attributes.go`.

use super::fault::{Fault, Outcome};
use super::plan::QualifierKey;
use super::value::{Value, find, to_int};

/// What a key leads to, if it is there.
pub(super) fn part<'v>(value: &Value<'v>, key: &Value<'_>) -> Outcome<Option<Value<'v>>> {
    match value {
        Value::Map(map) => Ok(find(map, key).cloned()),
        Value::Object(object) => object.find(key),
        Value::List(list) => {
            index(key)?.and_then(|index| list.items.get(index)).map(Value::unwrapped).transpose()
        }
        Value::Array(array) => match index(key)? {
            Some(index) if index < array.len() => match key {
                Value::Int(_) => array.get(index).map(Some),
                _ => Err(Fault::new("unsupported index")),
            },
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// The index that a key is; `None` if it is negative.
fn index(key: &Value<'_>) -> Outcome<Option<usize>> {
    let index = match key {
        Value::Int(index) => Some(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(index) => to_int(*index),
        other => {
            let words = format!("unsupported index type '{}' in list", other.type_name());
            return Err(Fault::new(words));
        }
    };
    index.map(|index| usize::try_from(index).ok()).ok_or_else(|| {
        let words = format!("unsupported index value {} in list", key.shown());
        Fault::quoting("unsupported index value in list", words)
    })
}

/// A key is named where the expression states it; others may be values of the object.
pub(super) fn missing(value: &Value<'_>, key: &QualifierKey, read: Option<Value<'_>>) -> Fault {
    let what = match value {
        Value::List(_) | Value::Array(_) => "index out of bounds",
        _ => "no such key",
    };
    match key {
        QualifierKey::Constant(Value::String(name)) => Fault::new(format!("{what}: {}", name.as_str())),
        QualifierKey::Constant(Value::Int(index)) => Fault::new(format!("{what}: {index}")),
        QualifierKey::Constant(Value::Uint(index)) => Fault::new(format!("{what}: {index}")),
        QualifierKey::Constant(key) => Fault::quoting(what, format!("{what}: {}", key.shown())),
        QualifierKey::Attribute(_) => {
            let key = read.map(|key| key.shown()).unwrap_or_default();
            Fault::quoting(what, format!("{what}: {key}"))
        }
    }
}
