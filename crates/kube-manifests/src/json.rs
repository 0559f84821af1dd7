//! Documents of JSON, one after the other. The items of a list are never held together, and a value that
//! another of the same key replaces is noted.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::budget::Budget;
use crate::document::{At, DuplicateKey, Found, ItemType, Piece, hand_over};
use crate::malformed::Malformed;
use kube_structural_schema::json::{DEPTH, Json, stored_number};
use kube_structural_schema::mismatch::without_values;

/// How far a text is JSON.
pub(super) struct Extent {
    pub(super) documents: usize,
    /// How many bytes those are.
    pub(super) end: usize,
    /// What is wrong behind them.
    pub(super) error: Option<Malformed>,
}

/// Looks how far a text is JSON, whatever is in it.
pub(super) fn extent(text: &str) -> Extent {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut extent = Extent { documents: 0, end: 0, error: None };
    while let Some(value) = values.next() {
        if let Err(error) = value {
            extent.error = Some(Malformed::Json(without_values(&error)));
            break;
        }
        extent.documents += 1;
        extent.end = values.byte_offset();
    }
    extent
}

/// A text whose escapes of half a pair (`\ud83d` alone) are those of the replacement character, as Go reads
/// them. They are as long, so every place stays where it was.
pub(super) fn with_pairs(text: &str) -> Cow<'_, str> {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut paired = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(next) = text[at..].find('\\') {
        at += next;
        let (escape, behind) = (&text[at..], text.get(at + 6..).unwrap_or_default());
        at += match (unit(escape), unit(behind)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                paired.to_mut().replace_range(at..at + 6, "\\ufffd");
                6
            }
            _ => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
    }
    paired
}

/// Reads all documents.
pub(super) fn parse(text: &str, found: &mut Found<'_>) -> Result<(), Malformed> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    while deserializer.end().is_err() {
        let stop = Cell::new(None);
        let mut reading = Reading {
            budget: Budget::default(),
            found,
            stop: &stop,
            place: Vec::new(),
            duplicates: Vec::new(),
            is_too_deep: false,
        };
        match (Root { reading: &mut reading }).deserialize(&mut deserializer) {
            Ok(document) => {
                let Reading { duplicates, is_too_deep, .. } = reading;
                if hand_over(document, duplicates, is_too_deep, found).is_break() {
                    return Ok(());
                }
            }
            Err(error) => {
                return match stop.take() {
                    None => Err(Malformed::Json(without_values(&error))),
                    Some(Stop::Asked) => Ok(()),
                    Some(Stop::Exceeded(reason)) => Err(reason),
                };
            }
        }
    }
    Ok(())
}

/// Why reading ended where the text would have gone on.
enum Stop {
    Asked,
    Exceeded(Malformed),
}

struct Reading<'a, 'f> {
    budget: Budget,
    found: &'a mut Found<'f>,
    /// Set before an error that is not about JSON.
    stop: &'a Cell<Option<Stop>>,
    /// Where the value that is read stands in what is to be handed over next.
    place: Vec<At>,
    /// The keys in it that occurred before.
    duplicates: Vec<DuplicateKey>,
    /// Whether it is nested too deeply.
    is_too_deep: bool,
}

impl Reading<'_, '_> {
    fn within<E: Error>(&self, result: Result<(), Malformed>) -> Result<(), E> {
        result.map_err(|reason| {
            self.stop.set(Some(Stop::Exceeded(reason)));
            E::custom("too much")
        })
    }
}

/// A whole document.
struct Root<'r, 'a, 'f> {
    reading: &'r mut Reading<'a, 'f>,
}

/// A value that stands in so many levels of a document, or of an item of a list.
struct Part<'r, 'a, 'f> {
    reading: &'r mut Reading<'a, 'f>,
    depth: usize,
}

/// The items of a list, handed over one by one.
struct Items<'r, 'a, 'f> {
    reading: &'r mut Reading<'a, 'f>,
    kind: ItemType,
}

impl<'de> DeserializeSeed<'de> for Root<'_, '_, '_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Root<'_, '_, '_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Json, A::Error> {
        map(self.reading, access, 1, true)
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_, '_, '_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_, '_, '_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::default())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Json, E> {
        Ok(Value::from(flag).into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Json, E> {
        Ok(Value::from(number).into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json, E> {
        Ok(Value::from(number).into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Json, E> {
        // As kubectl writes it in a request.
        Ok(stored_number(number).map_or(Value::Null, Value::Number).into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        let taken = self.reading.budget.scalar(text.len());
        self.reading.within(taken)?;
        Ok(Value::from(text).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let Self { reading, depth } = self;
        if depth == DEPTH {
            reading.is_too_deep = true;
            while access.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Json::default());
        }
        let depth = depth + 1;
        let mut items = Vec::new();
        loop {
            reading.place.push(At::Item(items.len()));
            let item = access.next_element_seed(Part { reading: &mut *reading, depth })?;
            reading.place.pop();
            let Some(item) = item else { break };
            let taken = reading.budget.item();
            reading.within(taken)?;
            items.push(item);
        }
        Ok(Value::Array(items.into_iter().map(Json::into_inner).collect()).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let Self { reading, depth } = self;
        if depth == DEPTH {
            reading.is_too_deep = true;
            while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Json::default());
        }
        map(reading, access, depth + 1, false)
    }
}

impl<'de> DeserializeSeed<'de> for Items<'_, '_, '_> {
    /// What is left of them.
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    /// As Go writes a list without items.
    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let Self { reading, kind } = self;
        let left = reading.budget.left();
        for number in 1.. {
            reading.budget.restore(left);
            let Some(mut item) = access.next_element_seed(Part { reading: &mut *reading, depth: 0 })? else {
                break;
            };
            kind.complete(&mut item);
            let duplicates = std::mem::take(&mut reading.duplicates);
            let is_too_deep = std::mem::take(&mut reading.is_too_deep);
            let piece = Piece { json: item, item: Some(number), duplicates, is_too_deep };
            if (reading.found)(piece).is_break() {
                reading.stop.set(Some(Stop::Asked));
                return Err(A::Error::custom("enough"));
            }
        }
        Ok(Value::Array(Vec::new()))
    }
}

/// Reads an object whose fields stand in so many levels.
fn map<'de, A: MapAccess<'de>>(
    reading: &mut Reading<'_, '_>,
    mut access: A,
    depth: usize,
    is_root: bool,
) -> Result<Json, A::Error> {
    let mut document = Json::from(Value::Object(Map::new()));
    while let Some(name) = access.next_key::<String>()? {
        let kind = if is_root && name == "items" { ItemType::of(&document) } else { ItemType::default() };
        let Value::Object(fields) = &mut *document else { break };
        let taken = reading.budget.field(name.len(), fields.is_empty());
        reading.within(taken)?;
        let is_items = is_root && name == "items" && begins_list(fields);
        if !is_items {
            reading.place.push(At::Field(name.clone()));
        }
        if fields.contains_key(&name) {
            reading.duplicates.push(DuplicateKey {
                place: reading.place.clone(),
                line: None,
                is_other_type: false,
            });
        }
        let value = if is_items {
            access.next_value_seed(Items { reading: &mut *reading, kind })?
        } else {
            let value = access.next_value_seed(Part { reading: &mut *reading, depth })?.into_inner();
            reading.place.pop();
            value
        };
        fields.insert(name, value);
    }
    Ok(document)
}

/// Whether the fields that come first are those of a list, as far as that is known before its items.
pub(super) fn begins_list(fields: &Map<String, Value>) -> bool {
    match fields.get("kind").and_then(Value::as_str) {
        Some(kind) => kind.ends_with("List"),
        // Written by kubectl, in the order of the names. No other type of this version has items.
        None => fields.get("apiVersion").is_some_and(|version| version == "v1"),
    }
}
