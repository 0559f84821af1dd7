//! Reading typed fields out of a document, as Go's decoder reads them into structs. Fields that a type does
//! not have are skipped, and `null` is absent.
//!
//! Source: sigs.k8s.io/json, as apimachinery decodes requests with it.

use serde_json::{Map, Value};

use super::malformed::Malformed;
use go_text::base64;
use go_text::time::Time;
use kube_structural_schema::schema::Place;

pub(super) type Read<T> = Result<T, Malformed>;

/// An object that is being read, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Fields<'d, 'p> {
    fields: Option<&'d Map<String, Value>>,
    at: &'p Place<'p>,
}

impl<'d, 'p> Fields<'d, 'p> {
    /// The fields of an object; `null` has none.
    pub(super) fn of(value: &'d Value, at: &'p Place<'p>) -> Read<Self> {
        match value {
            Value::Null => Ok(Self { fields: None, at }),
            Value::Object(fields) => Ok(Self { fields: Some(fields), at }),
            _ => Err(Malformed::new(at, "an object")),
        }
    }

    /// A field that is there and not null.
    pub(super) fn get(&self, name: &str) -> Option<&'d Value> {
        self.fields?.get(name).filter(|value| !value.is_null())
    }

    /// A field read by a function that gets its place.
    pub(super) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'d Value, &Place<'_>) -> Read<T>,
    ) -> Read<Option<T>> {
        self.get(name).map(|value| read(value, &self.at.child(name))).transpose()
    }

    /// A list read item by item; null items are read too.
    pub(super) fn each<T>(
        &self,
        name: &str,
        read: impl Fn(&'d Value, &Place<'_>) -> Read<T>,
    ) -> Read<Option<Vec<T>>> {
        self.read(name, |value, at| {
            let items = value.as_array().ok_or_else(|| Malformed::new(at, "a list"))?;
            items.iter().enumerate().map(|(index, item)| read(item, &at.index(index))).collect()
        })
    }

    /// A map read value by value.
    pub(super) fn entries<T>(
        &self,
        name: &str,
        read: impl Fn(&'d Value, &Place<'_>) -> Read<T>,
    ) -> Read<Option<Vec<(&'d str, T)>>> {
        self.read(name, |value, at| {
            let entries = value.as_object().ok_or_else(|| Malformed::new(at, "an object"))?;
            entries.iter().map(|(key, value)| Ok((key.as_str(), read(value, &at.key(key))?))).collect()
        })
    }

    /// A text; empty where there is none.
    pub(super) fn text(&self, name: &str) -> Read<&'d str> {
        self.optional_text(name).map(Option::unwrap_or_default)
    }

    pub(super) fn optional_text(&self, name: &str) -> Read<Option<&'d str>> {
        self.read(name, text)
    }

    /// Texts; `None` if there is no list.
    pub(super) fn texts(&self, name: &str) -> Read<Option<Vec<&'d str>>> {
        self.each(name, |item, at| if item.is_null() { Ok("") } else { text(item, at) })
    }

    pub(super) fn flag(&self, name: &str) -> Read<bool> {
        self.optional_flag(name).map(Option::unwrap_or_default)
    }

    pub(super) fn optional_flag(&self, name: &str) -> Read<Option<bool>> {
        self.read(name, |value, at| value.as_bool().ok_or_else(|| Malformed::new(at, "a boolean")))
    }

    pub(super) fn number(&self, name: &str) -> Read<Option<f64>> {
        self.read(name, |value, at| value.as_f64().ok_or_else(|| Malformed::new(at, "a number")))
    }

    pub(super) fn integer(&self, name: &str) -> Read<Option<i64>> {
        self.read(name, |value, at| value.as_i64().ok_or_else(|| Malformed::new(at, "a 64-bit integer")))
    }

    pub(super) fn small_integer(&self, name: &str) -> Read<Option<i32>> {
        self.read(name, |value, at| {
            let integer = value.as_i64().and_then(|value| i32::try_from(value).ok());
            integer.ok_or_else(|| Malformed::new(at, "a 32-bit integer"))
        })
    }

    /// A moment as metadata has them: looked at and not kept.
    pub(super) fn time(&self, name: &str) -> Read<()> {
        let checked = self.read(name, |value, at| {
            let time = Time::parse_rfc3339(text(value, at)?);
            time.map(drop).ok_or_else(|| Malformed::new(at, "a time as in RFC 3339"))
        });
        checked.map(Option::unwrap_or_default)
    }

    /// Bytes in base64.
    pub(super) fn bytes(&self, name: &str) -> Read<Option<Vec<u8>>> {
        self.read(name, |value, at| {
            let bytes = base64::decode(text(value, at)?.as_bytes(), base64::Alphabet::Standard);
            bytes.ok_or_else(|| Malformed::new(at, "bytes in base64"))
        })
    }
}

fn text<'d>(value: &'d Value, at: &Place<'_>) -> Read<&'d str> {
    value.as_str().ok_or_else(|| Malformed::new(at, "a string"))
}
