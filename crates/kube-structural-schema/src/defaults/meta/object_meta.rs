//! `ObjectMeta` as the server keeps it: known fields of the right type, without empty ones.
//! What has the right type, such as names and labels, is not validated.
//!
//! Source: apimachinery `pkg/apis/meta/v1/types.go`, decoded with `json.Unmarshal` and written back with
//! `DefaultUnstructuredConverter.ToUnstructured`.

use std::fmt;

use serde_json::{Map, Number, Value};

use crate::json::Json;
use go_text::json::marshal;
use go_text::time::{Time, rfc3339_problem};

/// A field of metadata that has a value of the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The field, below `metadata`; empty for the metadata itself.
    pub field: String,
    /// What the server can decode there.
    pub expected: &'static str,
    /// The server's words, which are those of Go's decoder; they may quote a number or a text.
    pub words: String,
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

/// What happens to fields of the wrong type.
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

/// A Go struct.
struct Struct {
    name: &'static str,
    /// Its type, as a type and as that of a list's items.
    go: [&'static str; 2],
    fields: &'static [Field],
}

/// Why a value does not fit a field.
struct Wrong {
    /// The field below the one that was read; empty for itself.
    below: String,
    expected: &'static str,
    words: Words,
}

enum Words {
    /// Go's decoder continues, reports it at the end, and names the type that it has and the one that it
    /// needs.
    Type { given: String, needed: &'static str },
    /// Go's decoder continues and reports this text, with the field.
    Said(String),
    /// Go's decoder stops here, and drops what it would have reported.
    Last(String),
    /// Go's decoder stops here, and names the two types.
    LastType { given: String, needed: &'static str },
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
    Records(&'static Struct),
}

const fn field(name: &'static str, form: Form) -> Field {
    Field { name, form }
}

const OBJECT_META: Struct =
    Struct { name: "ObjectMeta", go: ["v1.ObjectMeta", "[]v1.ObjectMeta"], fields: OBJECT_META_FIELDS };

const OBJECT_META_FIELDS: &[Field] = &[
    field("annotations", Form::TextMap),
    field("creationTimestamp", Form::Time),
    field("deletionGracePeriodSeconds", Form::OptionalInteger),
    field("deletionTimestamp", Form::OptionalTime),
    field("finalizers", Form::Texts),
    field("generateName", Form::Text),
    field("generation", Form::Integer),
    field("labels", Form::TextMap),
    field("managedFields", Form::Records(&MANAGED_FIELDS_ENTRY)),
    field("name", Form::Text),
    field("namespace", Form::Text),
    field("ownerReferences", Form::Records(&OWNER_REFERENCE)),
    field("resourceVersion", Form::Text),
    field("selfLink", Form::Text),
    field("uid", Form::Text),
];

const OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    go: ["v1.OwnerReference", "[]v1.OwnerReference"],
    fields: OWNER_REFERENCE_FIELDS,
};

const OWNER_REFERENCE_FIELDS: &[Field] = &[
    field("apiVersion", Form::RequiredText),
    field("blockOwnerDeletion", Form::OptionalFlag),
    field("controller", Form::OptionalFlag),
    field("kind", Form::RequiredText),
    field("name", Form::RequiredText),
    field("uid", Form::RequiredText),
];

const MANAGED_FIELDS_ENTRY: Struct = Struct {
    name: "ManagedFieldsEntry",
    go: ["v1.ManagedFieldsEntry", "[]v1.ManagedFieldsEntry"],
    fields: MANAGED_FIELDS_ENTRY_FIELDS,
};

const MANAGED_FIELDS_ENTRY_FIELDS: &[Field] = &[
    field("apiVersion", Form::Text),
    field("fieldsType", Form::Text),
    field("fieldsV1", Form::Raw),
    field("manager", Form::Text),
    field("operation", Form::Text),
    field("subresource", Form::Text),
    field("time", Form::OptionalTime),
];

/// Whether metadata has such a field.
pub fn is_field(name: &str) -> bool {
    OBJECT_META_FIELDS.iter().any(|field| field.name == name)
}

/// Reads metadata and gives it back as the server writes it. What it gives may nest as deep as what it was
/// given.
///
/// # Errors
/// Metadata that is neither an object nor null; and, where they are refused, the first field of the wrong
/// type.
pub fn decode(metadata: &Value, malformed: Malformed) -> Result<Map<String, Value>, Misfit> {
    match metadata {
        Value::Null => Ok(Map::new()),
        Value::Object(given) => {
            let fields = record(given, &OBJECT_META, "", malformed).map_err(|wrong| Misfit {
                field: wrong.below,
                expected: wrong.expected,
                words: match wrong.words {
                    Words::Said(words) | Words::Last(words) => words,
                    Words::Type { given, needed } | Words::LastType { given, needed } => {
                        in_value(&given, needed)
                    }
                },
            })?;
            Ok(fields.into_iter().map(plain).collect())
        }
        other => {
            let words = in_value(kind_of(other), OBJECT_META.go[0]);
            Err(Misfit { field: String::new(), expected: "an object", words })
        }
    }
}

fn in_value(given: &str, needed: &str) -> String {
    format!("json: cannot unmarshal {given} into Go value of type {needed}")
}

/// Values are kept as [`Json`] until all are read, because an error drops those before it. `above` is the
/// field that the record is in, with a point behind it.
fn record(
    given: &Map<String, Value>,
    of: &Struct,
    above: &str,
    malformed: Malformed,
) -> Result<Vec<(&'static str, Json)>, Wrong> {
    let mut kept = Vec::new();
    let mut first: Option<Wrong> = None;
    for field in of.fields {
        let value = given.get(field.name).unwrap_or(&Value::Null);
        let wrong = match read(value, field) {
            Ok(value) => {
                kept.extend(value.map(|value| (field.name, value)));
                continue;
            }
            Err(_) if malformed == Malformed::Drop => continue,
            Err(wrong) => wrong,
        };
        let in_field = |given: &str, needed: &str| {
            let place = format!("{}.{above}{}", of.name, field.name);
            format!("json: cannot unmarshal {given} into Go struct field {place} of type {needed}")
        };
        let words = match wrong.words {
            Words::Type { given, needed } => Words::Said(in_field(&given, needed)),
            Words::LastType { given, needed } => Words::Last(in_field(&given, needed)),
            words => words,
        };
        let dot = if wrong.below.is_empty() { "" } else { "." };
        let below = format!("{}{dot}{}", field.name, wrong.below);
        let wrong = Wrong { below, expected: wrong.expected, words };
        if matches!(wrong.words, Words::Last(_)) {
            return Err(wrong);
        }
        first.get_or_insert(wrong);
    }
    first.map_or(Ok(kept), Err)
}

fn plain((name, value): (&'static str, Json)) -> (String, Value) {
    (name.to_owned(), value.into_inner())
}

/// A null is Go's zero value everywhere.
fn read(value: &Value, field: &Field) -> Result<Option<Json>, Wrong> {
    let text = |value: &Value| text(value, text_type(field.name));
    let read = match &field.form {
        Form::Text => Some(text(value)?).filter(|text| text != ""),
        Form::RequiredText => Some(text(value)?),
        Form::Integer => integer(value)?.filter(|integer| *integer != 0).map(Value::from),
        Form::OptionalInteger => integer(value)?.map(Value::from),
        Form::OptionalFlag => match value {
            Value::Null => None,
            Value::Bool(_) => Some(value.clone()),
            _ => return Err(wrong(value, "a boolean", "bool")),
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
            _ => return Err(wrong(value, "a map of strings", "map[string]string")),
        },
        Form::Texts => list(value, "[]string", |item| text(item).map(Json::from))?,
        Form::Records(of) => list(value, of.go[1], |item| {
            let none = Map::new();
            let given = match item {
                Value::Null => &none,
                Value::Object(given) => given,
                _ => return Err(wrong(item, "an object", of.go[0])),
            };
            let record = record(given, of, &format!("{}.", field.name), Malformed::Refuse)?;
            Ok(Value::Object(record.into_iter().map(plain).collect()).into())
        })?,
        Form::Raw => Some(value).filter(|value| !value.is_null()).map(recoded),
    };
    Ok(read.map(Json::from))
}

/// The Go type of a text field.
fn text_type(name: &str) -> &'static str {
    match name {
        "uid" => "types.UID",
        "operation" => "v1.ManagedFieldsOperationType",
        _ => "string",
    }
}

fn list(
    value: &Value,
    go: &'static str,
    item: impl Fn(&Value) -> Result<Json, Wrong>,
) -> Result<Option<Value>, Wrong> {
    let items = match value {
        Value::Null => return Ok(None),
        Value::Array(items) => items,
        _ => return Err(wrong(value, "a list", go)),
    };
    let (mut read, mut first) = (Vec::with_capacity(items.len()), None);
    for value in items {
        match item(value) {
            Ok(item) => read.push(item),
            Err(wrong) if matches!(wrong.words, Words::Last(_)) => return Err(wrong),
            Err(wrong) => drop(first.get_or_insert(wrong)),
        }
    }
    match first {
        Some(wrong) => Err(wrong),
        None => Ok((!read.is_empty()).then(|| read.into_iter().map(Json::into_inner).collect())),
    }
}

fn text(value: &Value, go: &'static str) -> Result<Value, Wrong> {
    match value {
        Value::Null => Ok(Value::from("")),
        Value::String(_) => Ok(value.clone()),
        _ => Err(wrong(value, "a string", go)),
    }
}

fn integer(value: &Value) -> Result<Option<i64>, Wrong> {
    const EXPECTED: &str = "a 64-bit integer";
    match value {
        Value::Null => Ok(None),
        Value::Number(number) => recoded_integer(number).map(Some).ok_or_else(|| {
            let given = format!("number {}", marshal(value));
            Wrong { below: String::new(), expected: EXPECTED, words: Words::Type { given, needed: "int64" } }
        }),
        _ => Err(wrong(value, EXPECTED, "int64")),
    }
}

/// A copy of a value whose numbers are as they come back once they were encoded.
fn recoded(value: &Value) -> Value {
    let mut value = value.clone();
    recode(&mut value);
    value
}

fn recode(value: &mut Value) {
    match value {
        Value::Number(number) => *number = recoded_integer(number).map_or_else(|| number.clone(), Into::into),
        Value::Array(items) => items.iter_mut().for_each(recode),
        Value::Object(fields) => fields.values_mut().for_each(recode),
        _ => {}
    }
}

/// Upstream encodes metadata once more before it decodes it: `1.0` is an integer, and of a large float its
/// shortest digits are.
fn recoded_integer(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64()?.to_string().parse().ok())
}

const TIME: &str = "a time in the form of RFC 3339";

fn time(value: &Value) -> Result<Option<Time>, Wrong> {
    let words = match value {
        Value::Null => return Ok(None),
        Value::String(text) => match Time::parse_rfc3339(text) {
            Some(time) => return Ok(Some(time)),
            None => rfc3339_problem(text),
        },
        _ => {
            let words = Words::LastType { given: kind_of(value).to_owned(), needed: "string" };
            return Err(Wrong { below: String::new(), expected: TIME, words });
        }
    };
    Err(Wrong { below: String::new(), expected: TIME, words: Words::Last(words) })
}

fn wrong(value: &Value, expected: &'static str, needed: &'static str) -> Wrong {
    let given = kind_of(value).to_owned();
    Wrong { below: String::new(), expected, words: Words::Type { given, needed } }
}

/// What Go's decoder calls a value.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
