//! The values of an object, seen through its schema.
//! `compare` compares them.
//!
//! Source: apiserver `pkg/cel/common/valuesunstructured.go`.

use go_text::base64::{Alphabet, decode};
use go_text::time::Time;
use kube_structural_schema::format;
use serde_json::Value as Json;

use super::fault::{Fault, Outcome};
use super::model::{Format, Node, Order, Shape};
use super::names;
use super::value::{Text, Value};
use super::view::{Array, ListKind, Object};

/// The value at a place, or an error where it does not fit the schema.
pub(super) fn read<'v>(json: &'v Json, node: &'v Node) -> Outcome<Value<'v>> {
    match (&node.shape, json) {
        (_, Json::Null) if node.nullable => Ok(Value::Null),
        (_, Json::Null) => Err(Fault::misfit("invalid data, got null for schema with nullable=false")),
        (Shape::IntOrString, Json::String(text)) => Ok(Value::String(Text::Borrowed(text))),
        (Shape::IntOrString, Json::Number(number)) => integer(number).ok_or(Fault::misfit(
            "invalid data, expected XIntOrString value to be either a string or integer",
        )),
        (Shape::IntOrString, _) => {
            Err(Fault::misfit("invalid data, expected XIntOrString value to be either a string or integer"))
        }
        (Shape::Object(_) | Shape::Map(_), Json::Object(fields)) => {
            Ok(Value::Object(Object { fields, node }))
        }
        (Shape::Object(_) | Shape::Map(_), _) => {
            Err(Fault::misfit("invalid data, expected a map for the provided schema with type=object"))
        }
        (Shape::Array { items: Some(described), order }, Json::Array(items)) => {
            let kind = match order {
                Order::Atomic => ListKind::Atomic,
                Order::Set => ListKind::Set,
                Order::Map(keys) => ListKind::Map(keys),
                Order::Invalid => return Err(Fault::new("invalid x-kubernetes-list-type")),
            };
            Ok(Value::Array(Array { items, kind, node: described }))
        }
        (Shape::Array { items: None, .. }, Json::Array(_)) => {
            Err(Fault::new("invalid array type, expected Items with a non-empty Schema"))
        }
        (Shape::Array { .. }, _) => {
            Err(Fault::misfit("invalid data, expected an array for the provided schema with type=array"))
        }
        (Shape::Text(format), Json::String(text)) => read_text(*format, text),
        (Shape::Text(_), json) => Err(misfit("string", json)),
        (Shape::Number, Json::Number(number)) => Ok(Value::Double(double(number))),
        (Shape::Number, json) => Err(misfit("float", json)),
        (Shape::Integer, Json::Number(number)) => integer(number).ok_or_else(|| misfit("int", json)),
        (Shape::Integer, json) => Err(misfit("int", json)),
        (Shape::Bool, Json::Bool(value)) => Ok(Value::Bool(*value)),
        (Shape::Bool, json) => Err(misfit("bool", json)),
        (Shape::Dynamic, json) => Ok(dynamic(json, node)),
        (Shape::Unknown, json) => Ok(Value::Untyped(json)),
        // It ends with the type, which is not there.
        (Shape::Invalid, _) => Err(Fault::new(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ",
        )),
    }
}

/// A value of another type than its schema's.
fn misfit(expected: &str, json: &Json) -> Fault {
    let actual = match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.as_i64().is_some() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    };
    Fault::misfit(format!("invalid data, expected {expected}, got {actual}"))
}

/// A value as what it is, with all below it.
fn dynamic<'v>(json: &'v Json, node: &'v Node) -> Value<'v> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => integer(number).unwrap_or_else(|| Value::Double(double(number))),
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::Array(Array { items, kind: ListKind::Atomic, node }),
        Json::Object(fields) => Value::Object(Object { fields, node }),
    }
}

/// A number that Go's decoder keeps as an integer.
fn integer(number: &serde_json::Number) -> Option<Value<'static>> {
    number.as_i64().map(Value::Int)
}

fn double(number: &serde_json::Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn read_text(format: Format, text: &str) -> Outcome<Value<'_>> {
    match format {
        Format::None => Ok(Value::String(Text::Borrowed(text))),
        Format::Duration => {
            format::parse_duration(text).map(Value::Duration).ok_or(Fault::misfit("Invalid duration"))
        }
        Format::Date => {
            Time::parse_date(text).map(Value::Timestamp).ok_or(Fault::misfit("Invalid date formatted string"))
        }
        Format::DateTime => format::parse_date_time(text)
            .map(Value::Timestamp)
            .ok_or(Fault::misfit("Invalid date-time formatted string")),
        Format::Byte => decode(text.as_bytes(), Alphabet::Url)
            .map(|bytes| Value::Bytes(bytes.into()))
            .ok_or(Fault::misfit("Invalid byte formatted string")),
    }
}

impl<'v> Object<'v> {
    /// The value under a key; `None` if there is none. A null field counts as none; a null in a map is a
    /// value.
    pub(super) fn find(&self, key: &Value<'_>) -> Outcome<Option<Value<'v>>> {
        let Value::String(key) = key else { return Err(Fault::NoOverload) };
        let structured = self.is_structured();
        let unescaped = if structured { names::unescape(key.as_str()) } else { Some(key.as_str().into()) };
        let Some(name) = unescaped else { return Ok(None) };
        match (self.fields.get(&*name), self.node_of(&name)) {
            (Some(Json::Null), _) if structured => Ok(None),
            (Some(json), Some(node)) => read(json, node).map(Some),
            _ => Ok(None),
        }
    }

    /// The keys whose values the schema knows, as expressions spell them.
    pub(super) fn keys(&self) -> impl Iterator<Item = Value<'v>> + '_ {
        let structured = self.is_structured();
        self.fields.keys().filter(|key| self.node_of(key).is_some()).map(move |key| {
            if structured
                && let Some(spelled) = names::escape(key)
                && *spelled != **key
            {
                return Value::text(spelled);
            }
            Value::String(Text::Borrowed(key))
        })
    }

    /// What a loop over the object sees: the keys that the schema knows, and then a null for every other.
    /// Upstream makes room for all keys and fills in those that it knows.
    pub(super) fn entries(&self) -> impl Iterator<Item = Value<'v>> + '_ {
        let unknown = self.fields.keys().filter(|key| self.node_of(key).is_none());
        self.keys().chain(unknown.map(|_| Value::Null))
    }
}

impl<'v> Array<'v> {
    /// The item at an index that exists.
    pub(super) fn get(&self, index: usize) -> Outcome<Value<'v>> {
        let json = self.items.get(index).ok_or(Fault::new("index out of bounds"))?;
        read(json, self.node)
    }

    /// The items, in order.
    pub(super) fn values(&self) -> impl Iterator<Item = Outcome<Value<'v>>> + use<'v> {
        let node = self.node;
        self.items.iter().map(move |json| read(json, node))
    }
}
