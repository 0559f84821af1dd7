//! When two values are equal, and which of two comes first.
//!
//! Source: cel-go `common/types` (`Equal`, `Compare`) and apiserver `pkg/cel/common/valuesunstructured.go`.
//! There equality belongs to the left operand, and what it does with an operand of another kind differs from
//! type to type.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value as Json;

use kube_structural_schema::json::write;

use super::fault::{Fault, Outcome};
use super::names;
use super::value::{Text, Value, find};
use super::view::{ListKind, Object};

/// `==`.
pub(super) fn equal(a: &Value<'_>, b: &Value<'_>) -> Outcome<bool> {
    match (a, b) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Null, _) | (_, Value::Null) => Ok(false),
        _ => same(a, b),
    }
}

/// Upstream's `a.Equal(b)`: like `==`, except that each type decides whether it equals `null`.
pub(super) fn same(a: &Value<'_>, b: &Value<'_>) -> Outcome<bool> {
    match (a, b) {
        (Value::Misfit(fault), _) => Err(fault.clone()),
        (Value::Null, _) => Ok(matches!(b, Value::Null)),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => Ok(numbers(a, b) == Some(Ordering::Equal)),
        (Value::Bool(a), b) => Ok(matches!(b, Value::Bool(b) if a == b)),
        (Value::String(a), b) => Ok(matches!(b, Value::String(b) if a.as_str() == b.as_str())),
        (Value::Bytes(a), b) => Ok(matches!(b, Value::Bytes(b) if a == b)),
        (Value::Duration(a), b) => Ok(matches!(b, Value::Duration(b) if a == b)),
        (Value::Timestamp(a), b) => Ok(matches!(b, Value::Timestamp(b) if a.same_instant(*b))),
        (Value::Type(a), b) => Ok(matches!(b, Value::Type(b) if a == b)),
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => same(&a.unwrapped()?, &b.unwrapped()?),
            (a, b) => Ok(a.is_none() && b.is_none()),
        },
        (Value::Optional(_), _) => Ok(false),
        (Value::Kind(a), Value::Kind(b)) => a.same(&**b).ok_or(Fault::NoOverload),
        (Value::List(_) | Value::Array(_), _) => same_lists(a, b),
        (Value::Map(a), b) => match Keyed::of(b) {
            Some(_) if b.size() != Some(a.len()) => Ok(false),
            Some(other) => {
                for (key, value) in a.iter() {
                    match other.find(&key.to_value()) {
                        Ok(Some(found)) if equal(value, &found) != Ok(false) => {}
                        // An error is as good as equal.
                        Err(_) => {}
                        Ok(_) => return Ok(false),
                    }
                }
                Ok(true)
            }
            None => Ok(false),
        },
        (Value::Object(a), b) => same_objects(a, b),
        (Value::Untyped(a), b) => Ok(untyped(b).is_some_and(|b| deep_equal(a, &b))),
        _ => Err(Fault::NoOverload),
    }
}

fn same_objects(a: &Object<'_>, b: &Value<'_>) -> Outcome<bool> {
    let Some(other) = Keyed::of(b) else { return Err(Fault::NoOverload) };
    if b.size() != Some(a.len()) {
        return Ok(false);
    }
    for (name, json) in a.fields {
        if a.node_of(name).is_some() {
            let key = Value::String(Text::Borrowed(name));
            match (a.find(&key)?, other.find(&key)?) {
                (None, None) => {}
                (Some(mine), Some(theirs)) => {
                    if !same(&mine, &theirs)? {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
        } else {
            let Value::Object(b) = b else { return Err(Fault::NoOverload) };
            if b.fields.get(name).is_some_and(|theirs| !deep_equal(json, theirs)) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn same_lists(a: &Value<'_>, b: &Value<'_>) -> Outcome<bool> {
    let (kind, from_object) = match a {
        Value::Array(array) => (array.kind, true),
        Value::List(list) => (list.kind, list.kind != ListKind::Atomic),
        _ => return Err(Fault::NoOverload),
    };
    if !matches!(b, Value::List(_) | Value::Array(_)) {
        return if from_object { Err(Fault::NoOverload) } else { Ok(false) };
    }
    if a.size() != b.size() {
        return Ok(false);
    }
    match kind {
        ListKind::Atomic => {
            for (mine, theirs) in items(a)?.zip(items(b)?) {
                let (mine, theirs) = (Value::kept(mine), Value::kept(theirs));
                let same = if from_object {
                    same(&mine, &theirs)?
                } else {
                    // An error is as good as equal.
                    equal(&mine, &theirs) != Ok(false)
                };
                if !same {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListKind::Set => {
            let mine = items(a)?
                .map(|item| Scalar::of_set_item(&Value::kept(item)))
                .collect::<Outcome<HashSet<_>>>()?;
            let mut seen = HashSet::new();
            for item in items(b)? {
                let item = Scalar::of_set_item(&Value::kept(item))?;
                if item.is_none() || !mine.contains(&item) {
                    return Ok(false);
                }
                seen.insert(item);
            }
            Ok(seen.len() == mine.len())
        }
        ListKind::Map(keys) => same_map_lists(a, b, keys),
    }
}

/// Of items with the same keys the last counts, as in the Go map that upstream builds. In a list of the
/// object itself an item that is not an object has a key of its own there, so it equals none.
fn same_map_lists(a: &Value<'_>, b: &Value<'_>, keys: &[Box<str>]) -> Outcome<bool> {
    let mut mine: std::collections::HashMap<Vec<Option<Scalar>>, Value<'_>> =
        std::collections::HashMap::new();
    let (strict, mut strangers) = (matches!(a, Value::Array(_)), false);
    let key_of = |item: &Value<'_>| if strict { stored_key(item, keys) } else { Ok(map_key(item, keys)) };
    for item in items(a)?.map(Value::kept) {
        if strict && !matches!(item, Value::Object(_)) {
            strangers = true;
        } else {
            mine.insert(key_of(&item)?, item);
        }
    }
    let mut seen = HashSet::new();
    for item in items(b)?.map(Value::kept) {
        if strict && !matches!(item, Value::Object(_)) {
            return Ok(false);
        }
        let key = key_of(&item)?;
        match mine.get(&key) {
            Some(found) if same(found, &item)? => seen.insert(key),
            _ => return Ok(false),
        };
    }
    Ok(seen.len() == mine.len() && !strangers)
}

/// What identifies an item where a list of the object itself is compared. Upstream takes the spelling of a
/// key for its name there, and makes Go map keys of up to three unconverted values, which panics over an
/// object or a list.
fn stored_key(item: &Value<'_>, keys: &[Box<str>]) -> Outcome<Vec<Option<Scalar>>> {
    let Value::Object(object) = item else { return Err(Fault::NoOverload) };
    let key: Vec<_> = keys.iter().map(|key| object.fields.get(&**key).and_then(Scalar::of_json)).collect();
    let hashable = !key.iter().flatten().any(|value| matches!(value, Scalar::Written(_)));
    if hashable || keys.len() > 3 {
        return Ok(key);
    }
    let composite = keys
        .iter()
        .filter_map(|key| object.fields.get(&**key))
        .find(|value| value.is_array() || value.is_object());
    let kind =
        if composite.is_some_and(Json::is_array) { "[]interface {}" } else { "map[string]interface {}" };
    Err(Fault::Internal(format!("runtime error: hash of unhashable type {kind}").into()))
}

/// What identifies an item of a list of type map: the values of its keys, looked up by their spelling.
pub(super) fn map_key(item: &Value<'_>, keys: &[Box<str>]) -> Vec<Option<Scalar>> {
    keys.iter()
        .map(|key| {
            let spelled = Value::String(Text::Borrowed(key));
            match item {
                Value::Object(object) => Scalar::of_field(object, &spelled, key),
                Value::Map(map) => find(map, &spelled).and_then(Scalar::of),
                _ => None,
            }
        })
        .collect()
}

/// The items of a list, with errors for those that do not fit their schema.
pub(super) fn items<'a, 'v>(
    list: &'a Value<'v>,
) -> Outcome<Box<dyn Iterator<Item = Outcome<Value<'v>>> + 'a>> {
    match list {
        Value::List(list) => Ok(Box::new(list.items.iter().map(Value::unwrapped))),
        Value::Array(array) => Ok(Box::new(array.values())),
        _ => Err(Fault::NoOverload),
    }
}

/// `in` a list. For the object's own lists each item decides whether it equals the value, for others the
/// value does.
pub(super) fn contains(list: &Value<'_>, wanted: &Value<'_>) -> Outcome<bool> {
    match list {
        Value::Array(array) => {
            wanted.unwrapped()?;
            let mut fault = None;
            for item in array.values() {
                match item.and_then(|item| same(&item, wanted)) {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(other) => fault = fault.or(Some(other)),
                }
            }
            fault.map_or(Ok(false), Err)
        }
        Value::List(list) => Ok(list.items.iter().any(|item| same(wanted, item) == Ok(true))),
        _ => Err(Fault::NoOverload),
    }
}

/// What has entries by key.
enum Keyed<'a, 'v> {
    Map(&'a std::collections::BTreeMap<super::value::Key, Value<'v>>),
    Object(&'a Object<'v>),
}

impl<'a, 'v> Keyed<'a, 'v> {
    fn of(value: &'a Value<'v>) -> Option<Self> {
        match value {
            Value::Map(map) => Some(Self::Map(map)),
            Value::Object(object) => Some(Self::Object(object)),
            _ => None,
        }
    }

    fn find(&self, key: &Value<'_>) -> Outcome<Option<Value<'v>>> {
        match self {
            Self::Map(map) => Ok(find(map, key).cloned()),
            Self::Object(object) => object.find(key),
        }
    }
}

/// A value as the key of a Go map: its type counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    Text(String),
    Bytes(Vec<u8>),
    Duration(i64),
    Time(i64, u32),
    /// An object or a list, which Go cannot compare: as it is written.
    Written(Vec<u8>),
}

impl Scalar {
    fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::Double(value) => Self::Double(value.to_bits()),
            Value::String(text) => Self::Text(text.as_str().to_owned()),
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::Duration(nanos) => Self::Duration(*nanos),
            Value::Timestamp(time) => Self::Time(time.seconds, time.nanos),
            _ => return None,
        })
    }

    fn of_field(object: &Object<'_>, spelled: &Value<'_>, key: &str) -> Option<Self> {
        let value = object.find(spelled).ok()??;
        Self::of(&value).or_else(|| Self::of_json(object.fields.get(&*names::unescape(key)?)?))
    }

    fn of_json(json: &Json) -> Option<Self> {
        Some(match json {
            Json::Null => return None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Self::Int(value),
                None => Self::Double(number.as_f64()?.to_bits()),
            },
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(_) | Json::Object(_) => {
                let mut written = Vec::new();
                write(json, &mut written);
                Self::Written(written)
            }
        })
    }

    /// An item of a list of type set; `None` if it does not fit its schema: it equals no other.
    pub(super) fn of_set_item(item: &Value<'_>) -> Outcome<Option<Self>> {
        match item {
            Value::Misfit(_) => Ok(None),
            item => Self::of(item)
                .map(Some)
                .ok_or(Fault::new("listSet operations are only supported on lists of scalar values")),
        }
    }
}

/// The JSON behind a value, for a comparison with one that has no type.
fn untyped<'v>(value: &Value<'v>) -> Option<std::borrow::Cow<'v, Json>> {
    use std::borrow::Cow;
    Some(match value {
        Value::Untyped(json) => Cow::Borrowed(*json),
        Value::Bool(value) => Cow::Owned(Json::Bool(*value)),
        Value::Int(value) => Cow::Owned(Json::from(*value)),
        Value::Double(value) => Cow::Owned(Json::from(*value)),
        Value::String(text) => Cow::Owned(Json::from(text.as_str())),
        _ => return None,
    })
}

/// Go's `DeepEqual` of decoded JSON: `1` and `1.0` differ.
fn deep_equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => a.as_f64() == b.as_f64(),
            _ => false,
        },
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| deep_equal(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| deep_equal(a, b)))
        }
        _ => a == b,
    }
}

/// `<` and its like: which of two values of one kind comes first. `None` if a number is NaN.
pub(super) fn order(a: &Value<'_>, b: &Value<'_>) -> Outcome<Option<Ordering>> {
    match (a, b) {
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => Ok(numbers(a, b)),
        (Value::Bool(a), Value::Bool(b)) => Ok(Some(a.cmp(b))),
        (Value::String(a), Value::String(b)) => Ok(Some(a.as_str().cmp(b.as_str()))),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Some(a.cmp(b))),
        (Value::Duration(a), Value::Duration(b)) => Ok(Some(a.cmp(b))),
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            Ok(Some((a.seconds, a.nanos).cmp(&(b.seconds, b.nanos))))
        }
        _ => Err(Fault::NoOverload),
    }
}

/// Numbers by value, whatever their types; `None` if one is not a number.
fn numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        // As upstream: a double beyond the integers is not converted, others lose what a double cannot hold.
        (Value::Double(a), Value::Int(b)) => a.partial_cmp(&(*b as f64)),
        (Value::Double(a), Value::Uint(b)) => a.partial_cmp(&(*b as f64)),
        (Value::Int(_) | Value::Uint(_), Value::Double(_)) => numbers(b, a).map(Ordering::reverse),
        _ => None,
    }
}
