//! Values of objects and sets of their fields, as structured-merge-diff treats maps that are owned field by
//! field, and scalars. It must not know lists, atomic maps or map keys: no schema of the model has them.
//!
//! Source: structured-merge-diff v6 `typed/{compare,merge,tofieldset,remove}.go`, `fieldpath/serialize.go`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Places of an object, each as `.spec.size`.
pub type Fields = BTreeSet<String>;

/// How two values differ.
#[derive(Default)]
pub struct Difference {
    /// Those that are new.
    pub added: Fields,
    /// Those that are gone.
    pub removed: Fields,
    /// Those with another value.
    pub modified: Fields,
}

/// What differs from one value to the next. A map that comes or goes counts beside what it holds.
pub fn compare(before: &Value, after: &Value) -> Difference {
    let mut found = Difference::default();
    walk(Some(before), Some(after), "", &mut found);
    found
}

fn walk(before: Option<&Value>, after: Option<&Value>, at: &str, found: &mut Difference) {
    let (Some(either), is_leaf) = (before.or(after), is_leaf(before) && is_leaf(after)) else { return };
    if !is_leaf {
        let names: BTreeSet<&String> =
            [before, after].into_iter().flatten().filter_map(Value::as_object).flat_map(Map::keys).collect();
        for name in names {
            walk(part(before, name), part(after, name), &format!("{at}.{name}"), found);
        }
    }
    let set = match (before, after) {
        (None, _) => &mut found.added,
        (_, None) => &mut found.removed,
        (Some(_), Some(after)) if is_leaf && either != after => &mut found.modified,
        _ => return,
    };
    set.insert(at.to_owned());
}

/// Whether a value is compared as a whole; a map that holds nothing is, too.
fn is_leaf(value: Option<&Value>) -> bool {
    value.and_then(Value::as_object).is_none_or(Map::is_empty)
}

fn part<'v>(value: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    value?.get(name)
}

/// What a manager that applies a value owns: its scalars and its empty maps.
pub fn applied(value: &Value) -> Fields {
    let mut fields = Fields::new();
    leaves(value, "", &mut |place, _| {
        fields.insert(place.to_owned());
    });
    fields
}

/// Calls `found` with every scalar and empty map, by its place.
pub fn leaves<'v>(value: &'v Value, at: &str, found: &mut impl FnMut(&str, &'v Value)) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, inner)| leaves(inner, &format!("{at}.{name}"), found));
        }
        _ if at.is_empty() => {}
        _ => found(at, value),
    }
}

/// These places and all above them.
pub fn with_parents(fields: &Fields) -> Fields {
    let mut all = fields.clone();
    for place in fields {
        let ends = place.match_indices('.').map(|(end, _)| end).filter(|end| *end > 0);
        all.extend(ends.map(|end| place[..end].to_owned()));
    }
    all
}

/// A value without these places. A map that loses all it has becomes null.
pub fn without(value: &Value, fields: &Fields) -> Value {
    removed(value, "", fields)
}

fn removed(value: &Value, at: &str, fields: &Fields) -> Value {
    let Value::Object(inner) = value else { return value.clone() };
    let below = format!("{at}.");
    if !fields.iter().any(|place| place.starts_with(&below)) {
        return value.clone();
    }
    let kept = inner.iter().filter_map(|(name, value)| {
        let at = format!("{at}.{name}");
        (!fields.contains(&at)).then(|| (name.clone(), removed(value, &at, fields)))
    });
    let kept: Map<String, Value> = kept.collect();
    if kept.is_empty() && !at.is_empty() { Value::Null } else { Value::Object(kept) }
}

/// A value with all that another one holds.
pub fn merged(value: &Value, other: &Value) -> Value {
    match (value, other) {
        (Value::Object(fields), Value::Object(others)) => {
            let mut all = fields.clone();
            for (name, other) in others {
                let merged = fields.get(name).map_or_else(|| other.clone(), |value| merged(value, other));
                all.insert(name.clone(), merged);
            }
            Value::Object(all)
        }
        _ => other.clone(),
    }
}

/// A set of fields as `managedFields` has it.
pub fn to_json(fields: &Fields) -> Value {
    let mut root = json!({});
    for place in fields {
        let mut at = &mut root;
        for name in place.split('.').skip(1) {
            at = &mut at[format!("f:{name}")];
            if at.is_null() {
                *at = json!({});
            }
        }
    }
    for place in fields.iter().filter(|place| has_below(fields, place)) {
        let pointer: String = place.split('.').skip(1).map(|name| format!("/f:{name}")).collect();
        if let Some(at) = root.pointer_mut(&pointer) {
            at["."] = json!({});
        }
    }
    root
}

fn has_below(fields: &Fields, place: &str) -> bool {
    let below = format!("{place}.");
    fields.iter().any(|other| other.starts_with(&below))
}

/// The set that `managedFields` names.
pub fn from_json(elements: &Value) -> Fields {
    let mut fields = Fields::new();
    read(elements, "", &mut fields);
    fields
}

fn read(elements: &Value, at: &str, fields: &mut Fields) {
    let Some(elements) = elements.as_object() else { return };
    if !at.is_empty() && (elements.is_empty() || elements.contains_key(".")) {
        fields.insert(at.to_owned());
    }
    for (element, inner) in elements {
        if let Some(name) = element.strip_prefix("f:") {
            read(inner, &format!("{at}.{name}"), fields);
        }
    }
}
