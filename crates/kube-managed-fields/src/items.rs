//! The items of a list, found by what they hold in steps that do not grow with the list.

use std::collections::HashMap;

use serde_json::{Map, Value};

use kube_structural_schema::json::{same, write};

/// The items of one list, to be found many times.
#[derive(Debug)]
pub struct Items<'v> {
    list: &'v [Value],
    /// By the names of the keys that identify items, and then by the items' values under them. No names: by
    /// the items.
    indices: HashMap<Vec<String>, HashMap<Vec<u8>, Vec<usize>>>,
}

impl<'v> Items<'v> {
    /// The items of a list.
    pub fn of(list: &'v [Value]) -> Self {
        Self { list, indices: HashMap::new() }
    }

    /// Where the first item stands that has all of these keys, with the same values.
    pub fn keyed(&mut self, keys: &Map<String, Value>) -> Option<usize> {
        let names: Vec<&str> = keys.keys().map(String::as_str).collect();
        let list = self.list;
        let alike = self.alike(&names, |name| keys.get(name))?;
        alike.iter().copied().find(|index| has_keys(&list[*index], keys))
    }

    /// Where the first item stands that is the same as this one.
    pub fn member(&mut self, member: &Value) -> Option<usize> {
        let list = self.list;
        let alike = self.alike(&[], |_| Some(member))?;
        alike.iter().copied().find(|index| same(&list[*index], member))
    }

    /// Whether no other item has the same values under these keys as the item at `index`; without keys,
    /// whether no other is the same. An item that lacks one of the keys is not unique.
    pub fn is_unique(&mut self, index: usize, keys: &[String]) -> bool {
        let list = self.list;
        let Some(item) = list.get(index) else { return false };
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        let alike = match names.is_empty() {
            true => self.alike(&names, |_| Some(item)),
            false => self.alike(&names, |name| item.get(name)),
        };
        let is_twin = |other: &&usize| {
            let other = &list[**other];
            match keys {
                [] => same(other, item),
                keys => {
                    keys.iter().all(|key| other.get(key).zip(item.get(key)).is_some_and(|(a, b)| same(a, b)))
                }
            }
        };
        alike.is_some_and(|alike| alike.iter().filter(is_twin).nth(1).is_none())
    }

    /// The items that may be meant, in order; `None` if a key has no value.
    fn alike<'k>(&mut self, names: &[&str], value: impl Fn(&str) -> Option<&'k Value>) -> Option<&[usize]> {
        let index = self.indices.entry(names.iter().map(|name| (*name).to_owned()).collect());
        let list = self.list;
        let index = index.or_insert_with(|| {
            let mut index: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
            for (place, item) in list.iter().enumerate() {
                let key = match names.is_empty() {
                    true => key_of(names, |_| Some(item)),
                    false => key_of(names, |name| item.get(name)),
                };
                if let Some(key) = key {
                    index.entry(key).or_default().push(place);
                }
            }
            index
        });
        index.get(&key_of(names, value)?).map(Vec::as_slice)
    }
}

/// Whether an item has all of these keys, with the same values.
fn has_keys(item: &Value, keys: &Map<String, Value>) -> bool {
    keys.iter().all(|(key, value)| item.get(key).is_some_and(|other| same(other, value)))
}

/// What values that are the same have in common, and most others do not; `None` if one is missing.
pub(crate) fn key_of<'k>(names: &[&str], value: impl Fn(&str) -> Option<&'k Value>) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    if names.is_empty() {
        append(value("")?, &mut key);
    }
    for name in names {
        append(value(name)?, &mut key);
    }
    Some(key)
}

/// Numbers that are equal by value look alike, and holders with as many parts.
fn append(value: &Value, key: &mut Vec<u8>) {
    match value {
        Value::Number(number) => {
            key.push(b'#');
            key.extend((number.as_f64().unwrap_or_default() + 0.0).to_bits().to_be_bytes());
        }
        Value::Array(items) => {
            key.push(b'[');
            key.extend(items.len().to_be_bytes());
        }
        Value::Object(fields) => {
            key.push(b'{');
            key.extend(fields.len().to_be_bytes());
        }
        scalar => write(scalar, key),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_item_of_those_that_are_meant_is_found() {
        let list = json!([
            {"a": 1, "b": "x"}, {"a": 1.0, "b": "y"}, {"a": "1"}, 7, {"a": 1, "b": "x", "c": 2}, 7.0, "7",
            {"a": [
                1,
            ]},
        ]);
        let mut items = Items::of(list.as_array().expect("a list"));
        let cases = [
            (json!({"a": 1, "b": "x"}), Some(0)),
            (json!({"a": 1}), Some(0)),
            (json!({"b": "y"}), Some(1)),
            (json!({"a": "1"}), Some(2)),
            (json!({"a": [2]}), None),
            (json!({"a": [1]}), Some(7)),
            (json!({"z": 1}), None),
        ];
        for (keys, expected) in cases {
            assert_eq!(items.keyed(keys.as_object().expect("keys")), expected, "{keys}");
        }
        assert_eq!(items.member(&json!(7.0)), Some(3));
        assert_eq!(items.member(&json!("7")), Some(6));
        assert_eq!(items.member(&json!(8)), None);
        let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let unique = |items: &mut Items<'_>, names: &[&str]| -> Vec<usize> {
            (0..9).filter(|index| items.is_unique(*index, &keys(names))).collect()
        };
        assert_eq!(unique(&mut items, &["a", "b"]), [1]);
        assert_eq!(unique(&mut items, &["a"]), [2, 7]);
        assert_eq!(unique(&mut items, &[]), [0, 1, 2, 4, 6, 7]);
    }
}
