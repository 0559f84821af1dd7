//! The values that expressions work on.

use std::collections::BTreeMap;
use std::sync::Arc;

use go_text::strconv::format_float;
use go_text::time::Time;
use serde_json::Value as Json;

use super::fault::{Fault, Outcome};
use super::kind::Kind;
use super::time::MIN_SECONDS;
use super::view::{Array, ListKind, Object};

/// 2^63, where signed integers end.
pub(super) const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// A value. Copies are cheap: what can be large is borrowed from the object or shared.
#[derive(Clone, Debug)]
pub(super) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'v>),
    Bytes(Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Time),
    /// A type, by its name.
    Type(&'static str),
    /// A list that the expression made.
    List(Arc<List<'v>>),
    /// A list of the object.
    Array(Array<'v>),
    /// A map that the expression made.
    Map(Arc<BTreeMap<Key, Value<'v>>>),
    /// An object or map of the object.
    Object(Object<'v>),
    /// What stands at a place without a type: it can only be compared.
    Untyped(&'v Json),
    /// What does not fit its schema, inside an optional or a list: an error once it is taken out.
    Misfit(Fault),
    Optional(Option<Arc<Value<'v>>>),
    /// A value of a type that Kubernetes adds.
    Kind(Arc<dyn Kind>),
}

/// A text: of the object, or made.
#[derive(Clone, Debug)]
pub(super) enum Text<'v> {
    Borrowed(&'v str),
    Shared(Arc<str>),
}

/// A list that an expression made, and how it is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct List<'v> {
    pub(super) items: Vec<Value<'v>>,
    pub(super) kind: ListKind<'v>,
}

/// A key of a map that an expression made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// By its bits.
    Double(u64),
    String(Arc<str>),
}

impl<'v> Value<'v> {
    /// A text that was made.
    pub(super) fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// A list of values in this order.
    pub(super) fn list(items: Vec<Value<'v>>) -> Self {
        Self::List(Arc::new(List { items, kind: ListKind::Atomic }))
    }

    /// A list of texts.
    pub(super) fn texts<T: Into<Arc<str>>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::list(texts.into_iter().map(Self::text).collect())
    }

    /// An optional that has this value.
    pub(super) fn some(value: Value<'v>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// A value of a type that Kubernetes adds.
    pub(super) fn kind(kind: impl Kind) -> Self {
        Self::Kind(Arc::new(kind))
    }

    /// What was read, be it a value or an error that stands for one until it is taken out.
    pub(super) fn kept(read: Outcome<Self>) -> Self {
        read.unwrap_or_else(Self::Misfit)
    }

    /// What an optional or a list holds.
    ///
    /// # Errors
    /// It does not fit its schema.
    pub(super) fn unwrapped(&self) -> Outcome<Self> {
        match self {
            Self::Misfit(fault) => Err(fault.clone()),
            value => Ok(value.clone()),
        }
    }

    /// The name of the value's type, as `type(value)` has it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Type(_) => "type",
            Self::List(_) | Self::Array(_) => "list",
            Self::Map(_) | Self::Object(_) => "map",
            Self::Untyped(_) => "unknown",
            Self::Misfit(_) => "error",
            Self::Optional(_) => "optional_type",
            Self::Kind(kind) => kind.type_name(),
        }
    }

    /// The name of the value's type in cel-go's source.
    pub(super) fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Duration(_) => "types.Duration",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Type(_) => "*types.Type",
            Self::Optional(_) => "*types.Optional",
            other => other.type_name(),
        }
    }

    /// The value as Go prints it (`%v`), where it is a plain one; else the name of its type.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => value.to_string(),
            Self::Double(value) => format_float(*value),
            Self::String(text) => text.as_str().to_owned(),
            other => other.type_name().to_owned(),
        }
    }

    /// How many characters, bytes, items or entries there are; `None` if the value has no size.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::String(text) => Some(text.as_str().chars().count()),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::List(list) => Some(list.items.len()),
            Self::Array(array) => Some(array.len()),
            Self::Map(map) => Some(map.len()),
            Self::Object(object) => Some(object.len()),
            _ => None,
        }
    }

    /// Whether this is `0`, empty, `false`, `null` or the like.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.as_str().is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Duration(nanos) => *nanos == 0,
            Self::Timestamp(time) => time.seconds == MIN_SECONDS && time.nanos == 0,
            Self::List(list) => list.items.is_empty(),
            Self::Map(map) => map.is_empty(),
            // Upstream's lists and maps of the object do not show whether they are empty.
            _ => false,
        }
    }
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl Key {
    /// The key that a value is; `None` if it cannot be one.
    pub(super) fn from_value(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::Double(value) => Self::Double(value.to_bits()),
            Value::String(text) => Self::String(text.as_str().into()),
            _ => return None,
        })
    }

    /// The value that a key is.
    pub(super) fn to_value(&self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Uint(value) => Value::Uint(*value),
            Self::Double(bits) => Value::Double(f64::from_bits(*bits)),
            Self::String(text) => Value::String(Text::Shared(Arc::clone(text))),
        }
    }
}

/// The entry of a map, by a key or by the same number of another type.
pub(super) fn find<'m, 'v>(map: &'m BTreeMap<Key, Value<'v>>, key: &Value<'_>) -> Option<&'m Value<'v>> {
    let exact = Key::from_value(key)?;
    if let Some(value) = map.get(&exact) {
        return Some(value);
    }
    let (int, uint) = match key {
        Value::Double(value) => (to_int(*value), to_uint(*value)),
        Value::Int(value) => (None, u64::try_from(*value).ok()),
        Value::Uint(value) => (i64::try_from(*value).ok(), None),
        _ => (None, None),
    };
    int.and_then(|int| map.get(&Key::Int(int))).or_else(|| map.get(&Key::Uint(uint?)))
}

/// The integer of the same value.
pub(super) fn to_int(value: f64) -> Option<i64> {
    (value.trunc() == value && value > -TWO_63 && value < TWO_63).then_some(value as i64)
}

/// The unsigned integer of the same value.
pub(super) fn to_uint(value: f64) -> Option<u64> {
    (value.trunc() == value && (0.0..TWO_63 * 2.0).contains(&value)).then_some(value as u64)
}
