//! Which extension of the old object is the one of the new object. The index in a list does not show that:
//! items move when another one is removed.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use serde_json::Value;

use super::place::{Location, Part, Place, find, written};
use kube_structural_schema::json::same;
use kube_structural_schema::path::Step;

/// An extension of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extension {
    /// Where it stands.
    pub(super) at: Location,
    /// Where it stands in the old object; `None` if it is new.
    pub(super) former: Option<Location>,
}

/// The extensions of an object at a place, each with the value there, in their order.
///
/// An item of a list is the old item with the same extension, wherever that stands in the old list. The other
/// items are the other old ones, in their order, if the list has kept its length; else they are new.
pub(super) fn extensions<'v>(
    place: &Place,
    object: &'v Value,
    old: Option<&Value>,
) -> Vec<(Extension, &'v Value)> {
    let mut search = Search { at: Location::new(), former: Location::new(), found: Vec::new() };
    search.descend(place.parts(), object, old);
    search.found
}

struct Search<'v> {
    at: Location,
    former: Location,
    found: Vec<(Extension, &'v Value)>,
}

impl<'v> Search<'v> {
    fn descend(&mut self, parts: &[Part], new: &'v Value, old: Option<&Value>) {
        let Some((part, rest)) = parts.split_first() else {
            let is_there = old.is_some_and(|old| !old.is_null());
            let former = is_there.then(|| self.former.clone());
            self.found.push((Extension { at: self.at.clone(), former }, new));
            return;
        };
        match (part, new) {
            (Part::Field(name), Value::Object(fields)) => {
                if let Some(value) = fields.get(name) {
                    let step = Step::Field(name.clone());
                    self.enter(rest, [step.clone(), step], value, old.and_then(|old| old.get(name)));
                }
            }
            (Part::Each, Value::Object(fields)) => {
                for (key, value) in fields {
                    let step = Step::Key(key.clone());
                    self.enter(rest, [step.clone(), step], value, old.and_then(|old| old.get(key)));
                }
            }
            (Part::Each, Value::Array(items)) => {
                let old = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let former = former_items(rest, items, old);
                for ((index, item), former) in items.iter().enumerate().zip(former) {
                    let steps = [Step::Index(index), Step::Index(former.unwrap_or_default())];
                    self.enter(rest, steps, item, former.map(|former| &old[former]));
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, rest: &[Part], [at, former]: [Step; 2], new: &'v Value, old: Option<&Value>) {
        self.at.push(at);
        self.former.push(former);
        self.descend(rest, new, old);
        self.at.pop();
        self.former.pop();
    }
}

/// For each item of a list the index of the old one that it is.
fn former_items(rest: &[Part], new: &[Value], old: &[Value]) -> Vec<Option<usize>> {
    let mut former: Vec<Option<usize>> = vec![None; new.len()];
    let mut is_left = vec![true; old.len()];
    for (index, (new, old)) in new.iter().zip(old).enumerate() {
        if is_alike(&below(rest, new), &below(rest, old)) {
            (former[index], is_left[index]) = (Some(index), false);
        }
    }
    // By a hash: lists may be long, and each item would be compared with every other.
    let state = RandomState::new();
    let mut others: HashMap<u64, Vec<usize>> = HashMap::new();
    for index in (0..old.len()).rev().filter(|index| is_left[*index]) {
        others.entry(hash(&state, &below(rest, &old[index]))).or_default().push(index);
    }
    for (former, item) in former.iter_mut().zip(new).filter(|(former, _)| former.is_none()) {
        let item = below(rest, item);
        let Some(indices) = others.get_mut(&hash(&state, &item)) else { continue };
        let found = indices.iter().rposition(|index| is_alike(&item, &below(rest, &old[*index])));
        *former = found.map(|found| indices.remove(found));
        former.iter().for_each(|index| is_left[*index] = false);
    }
    if new.len() == old.len() {
        let left = (0..old.len()).filter(|index| is_left[*index]);
        former.iter_mut().filter(|former| former.is_none()).zip(left).for_each(|(former, index)| {
            *former = Some(index);
        });
    }
    former
}

/// The extensions below an item.
fn below<'v>(rest: &[Part], item: &'v Value) -> Vec<(Location, &'v Value)> {
    let mut found = find(rest, item);
    found.retain(|(_, value)| !value.is_null());
    found
}

fn is_alike(new: &[(Location, &Value)], old: &[(Location, &Value)]) -> bool {
    let pairs = || new.iter().zip(old);
    new.len() == old.len() && pairs().all(|((at, new), (former, old))| at == former && same(new, old))
}

fn hash(state: &RandomState, extensions: &[(Location, &Value)]) -> u64 {
    let all = extensions.iter().map(|(at, value)| (written(at), hash_of_value(state, value)));
    state.hash_one(all.collect::<Vec<_>>())
}

/// Equal values have the same hash, also if they are written differently.
fn hash_of_value(state: &RandomState, value: &Value) -> u64 {
    let hash = |value| hash_of_value(state, value);
    match value {
        Value::Null => 0,
        Value::Bool(flag) => state.hash_one(flag),
        // Without the sign of a zero.
        Value::Number(number) => state.hash_one((number.as_f64().unwrap_or_default() + 0.0).to_bits()),
        Value::String(text) => state.hash_one(text),
        Value::Array(items) => state.hash_one(items.iter().map(hash).collect::<Vec<_>>()),
        Value::Object(fields) => fields
            .iter()
            .fold(1, |sum: u64, (name, value)| sum.wrapping_add(state.hash_one((name, hash(value))))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Where each extension of the new object stands in the old one.
    fn former(place: &str, new: &Value, old: &Value) -> Vec<String> {
        let place = Place::read(&format!(".o{place}")).expect("a place");
        let (new, old) = (json!({ "o": new }), json!({ "o": old }));
        let found = extensions(&place, &new, Some(&old)).into_iter().map(|(extension, _)| extension.former);
        found.map(|former| former.map_or_else(|| "new".to_owned(), |former| written(&former[1..]))).collect()
    }

    #[test]
    fn an_item_that_is_the_same_is_the_old_one_wherever_it_stands() {
        let list = |items: Value| -> Value {
            items.as_array().expect("a list").iter().map(|item| json!({ "x": item })).collect()
        };
        for (new, old, expected) in [
            (json!([1, 2]), json!([1, 2]), vec!["[0].x", "[1].x"]),
            (json!([2]), json!([1, 2]), vec!["[1].x"]),
            (json!([3, 1, 2]), json!([1, 2]), vec!["new", "[0].x", "[1].x"]),
            (json!([2.0, 1]), json!([1, 2]), vec!["[1].x", "[0].x"]),
            (json!([1, 3]), json!([1, 2]), vec!["[0].x", "[1].x"]),
            (json!([2, 3]), json!([1, 2]), vec!["[1].x", "[0].x"]),
            (json!([3, 2]), json!([1, 2, 4]), vec!["new", "[1].x"]),
            (json!([1, 1, 1]), json!([1, 1]), vec!["[0].x", "[1].x", "new"]),
            (json!([{ "a": 1, "b": [0] }, 5]), json!([5, { "b": [-0.0], "a": 1 }]), vec!["[1].x", "[0].x"]),
            (json!([1]), json!([]), vec!["new"]),
        ] {
            assert_eq!(former("[*].x", &list(new.clone()), &list(old.clone())), expected, "{old} {new}");
        }
    }

    #[test]
    fn maps_go_by_their_keys_and_lists_in_lists_by_what_they_hold() {
        let (new, old) = (json!({ "m": { "a": 1, "b": 2 } }), json!({ "m": { "a": 2, "c": 1 } }));
        assert_eq!(former(".m[*]", &new, &old), ["m[a]", "new"]);
        let of = |lists: Value| -> Value {
            lists.as_array().expect("a list").iter().map(|inner| json!({ "l": inner })).collect()
        };
        let (new, old) = (of(json!([[3, 4], [2]])), of(json!([[1, 2], [3, 4]])));
        assert_eq!(former("[*].l[*]", &new, &old), ["[1].l[0]", "[1].l[1]", "[0].l[1]"]);
        assert_eq!(former(".x", &json!({ "x": 1 }), &json!({ "x": null })), ["new"]);
        assert_eq!(former(".x", &json!({ "x": 1 }), &json!([])), ["new"]);
    }

    #[test]
    fn long_lists_are_compared_in_one_go() {
        let list = |add: u32| -> Value { (0..20_000).map(|item| json!({ "x": item + add })).collect() };
        let found = former("[*].x", &list(1), &list(0));
        assert_eq!((&*found[0], &*found[19_999]), ("[1].x", "[0].x"));
    }
}
