//! `ObjectMeta` as the server keeps it: known fields of the right type, without empty ones.
//! It must not validate names, labels or anything else that has the right type.
//!
//! Source: apimachinery `pkg/apis/meta/v1/types.go`, decoded with `json.Unmarshal` and written back with
//! `DefaultUnstructuredConverter.ToUnstructured`.

use std::fmt;

use serde_json::{Map, Number, Value};

use crate::go::time::Time;
use crate::json::{Json, copy, level};

/// A field of metadata that has a value of the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The field, below `metadata`; empty for the metadata itself.
    pub field: String,
    /// What the server can decode there.
    pub expected: &'static str,
}

impl std::error::Error for Misfit {}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "must be {}", self.expected)
    }
}

/// What becomes of fields of the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// They are left out, as when an object is read from etcd.
    Drop,
    /// They are an error, as when a user sends them.
    Refuse,
}

struct Field {
    name: &'static str,
    form: Form,
}

enum Form {
    /// A text; left out if empty.
    Text,
    /// A text that is always there.
    RequiredText,
    /// An int64; left out if zero.
    Integer,
    /// An int64; left out if null.
    OptionalInteger,
    /// A boolean; left out if null.
    OptionalFlag,
    /// A time; left out if it is the zero time.
    Time,
    /// A time; the zero time becomes null.
    OptionalTime,
    /// A list of texts; left out if empty.
    Texts,
    /// A map of texts; left out if empty.
    TextMap,
    /// Any value; left out if null.
    Raw,
    /// A list of objects; left out if empty.
    Records(&'static [Field]),
}

const fn field(name: &'static str, form: Form) -> Field {
    Field { name, form }
}

const OBJECT_META: &[Field] = &[
    field("annotations", Form::TextMap),
    field("creationTimestamp", Form::Time),
    field("deletionGracePeriodSeconds", Form::OptionalInteger),
    field("deletionTimestamp", Form::OptionalTime),
    field("finalizers", Form::Texts),
    field("generateName", Form::Text),
    field("generation", Form::Integer),
    field("labels", Form::TextMap),
    field("managedFields", Form::Records(MANAGED_FIELDS_ENTRY)),
    field("name", Form::Text),
    field("namespace", Form::Text),
    field("ownerReferences", Form::Records(OWNER_REFERENCE)),
    field("resourceVersion", Form::Text),
    field("selfLink", Form::Text),
    field("uid", Form::Text),
];

const OWNER_REFERENCE: &[Field] = &[
    field("apiVersion", Form::RequiredText),
    field("blockOwnerDeletion", Form::OptionalFlag),
    field("controller", Form::OptionalFlag),
    field("kind", Form::RequiredText),
    field("name", Form::RequiredText),
    field("uid", Form::RequiredText),
];

const MANAGED_FIELDS_ENTRY: &[Field] = &[
    field("apiVersion", Form::Text),
    field("fieldsType", Form::Text),
    field("fieldsV1", Form::Raw),
    field("manager", Form::Text),
    field("operation", Form::Text),
    field("subresource", Form::Text),
    field("time", Form::OptionalTime),
];

/// Reads metadata and gives it back as the server writes it. What it gives may nest as deep as what it was given.
///
/// # Errors
/// Metadata that is neither an object nor null; and, where they are refused, the first field of the wrong type.
pub fn decode(metadata: &Value, malformed: Malformed) -> Result<Map<String, Value>, Misfit> {
    match metadata {
        Value::Null => Ok(Map::new()),
        Value::Object(given) => Ok(record(given, OBJECT_META, malformed)?.into_iter().map(plain).collect()),
        _ => Err(Misfit { field: String::new(), expected: "an object" }),
    }
}

/// Values are kept as [`Json`] until all are read, for an error drops those before it.
fn record(
    given: &Map<String, Value>,
    fields: &[Field],
    malformed: Malformed,
) -> Result<Vec<(&'static str, Json)>, Misfit> {
    let mut kept = Vec::new();
    for field in fields {
        let value = given.get(field.name).unwrap_or(&Value::Null);
        match read(value, &field.form) {
            Ok(value) => kept.extend(value.map(|value| (field.name, value))),
            Err(_) if malformed == Malformed::Drop => {}
            Err(Misfit { field: below, expected }) => {
                let dot = if below.is_empty() { "" } else { "." };
                return Err(Misfit { field: format!("{}{dot}{below}", field.name), expected });
            }
        }
    }
    Ok(kept)
}

fn plain((name, value): (&'static str, Json)) -> (String, Value) {
    (name.to_owned(), value.into_inner())
}

/// A null is Go's zero value everywhere.
fn read(value: &Value, form: &Form) -> Result<Option<Json>, Misfit> {
    let read = match form {
        Form::Text => Some(text(value)?).filter(|text| text != ""),
        Form::RequiredText => Some(text(value)?),
        Form::Integer => integer(value)?.filter(|integer| *integer != 0).map(Value::from),
        Form::OptionalInteger => integer(value)?.map(Value::from),
        Form::OptionalFlag => match value {
            Value::Null => None,
            Value::Bool(_) => Some(value.clone()),
            _ => return Err(misfit("a boolean")),
        },
        Form::Time => time(value)?.filter(|time| !time.is_zero()).map(|time| time.utc().to_rfc3339().into()),
        Form::OptionalTime => time(value)?.map(|time| match time.is_zero() {
            true => Value::Null,
            false => time.utc().to_rfc3339().into(),
        }),
        Form::TextMap => match value {
            Value::Null => None,
            Value::Object(texts) => {
                let texts = texts.iter().map(|(key, value)| Ok((key.clone(), text(value)?)));
                Some(texts.collect::<Result<Map<_, _>, _>>()?)
                    .filter(|texts| !texts.is_empty())
                    .map(Value::Object)
            }
            _ => return Err(misfit("a map of strings")),
        },
        Form::Texts => list(value, |item| text(item).map(Json::from))?,
        Form::Records(fields) => list(value, |item| {
            let none = Map::new();
            let given = match item {
                Value::Null => &none,
                Value::Object(given) => given,
                _ => return Err(misfit("an object")),
            };
            let record = record(given, fields, Malformed::Refuse)?;
            Ok(Value::Object(record.into_iter().map(plain).collect()).into())
        })?,
        Form::Raw => Some(value).filter(|value| !value.is_null()).map(recoded),
    };
    Ok(read.map(Json::from))
}

fn list(value: &Value, item: impl Fn(&Value) -> Result<Json, Misfit>) -> Result<Option<Value>, Misfit> {
    let items = match value {
        Value::Null => return Ok(None),
        Value::Array(items) => items.iter().map(item).collect::<Result<Vec<_>, _>>()?,
        _ => return Err(misfit("a list")),
    };
    Ok((!items.is_empty()).then(|| items.into_iter().map(Json::into_inner).collect()))
}

fn text(value: &Value) -> Result<Value, Misfit> {
    match value {
        Value::Null => Ok(Value::from("")),
        Value::String(_) => Ok(value.clone()),
        _ => Err(misfit("a string")),
    }
}

fn integer(value: &Value) -> Result<Option<i64>, Misfit> {
    let integer = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => recoded_integer(number),
        _ => None,
    };
    integer.map(Some).ok_or(misfit("a 64-bit integer"))
}

/// A copy of a value whose numbers are as they come back once they were encoded.
fn recoded(value: &Value) -> Value {
    let mut value = copy(value);
    recode(&mut value);
    value
}

fn recode(value: &mut Value) {
    match value {
        Value::Number(number) => *number = recoded_integer(number).map_or_else(|| number.clone(), Into::into),
        Value::Array(items) => level(|| items.iter_mut().for_each(recode)),
        Value::Object(fields) => level(|| fields.values_mut().for_each(recode)),
        _ => {}
    }
}

/// Upstream encodes metadata once more before it decodes it: `1.0` is an integer, and of a large float its shortest digits
/// are.
fn recoded_integer(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64()?.to_string().parse().ok())
}

fn time(value: &Value) -> Result<Option<Time>, Misfit> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => {
            Time::parse_rfc3339(text).map(Some).ok_or(misfit("a time in the form of RFC 3339"))
        }
        _ => Err(misfit("a time in the form of RFC 3339")),
    }
}

fn misfit(expected: &'static str) -> Misfit {
    Misfit { field: String::new(), expected }
}
