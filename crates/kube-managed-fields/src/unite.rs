//! The union of two field sets in FieldsV1 form.

use serde_json::{Map, Value};

/// Adds every path of `other` to `fields`.
///
/// `{}` below an element means that the element itself is in the set; once it gains children, that is spelled
/// `.`.
pub fn unite(fields: &mut Value, other: &Value) {
    match (&mut *fields, other) {
        (Value::Object(fields), Value::Object(other)) => unite_children(fields, other),
        (_, Value::Object(_)) => *fields = other.clone(),
        _ => {}
    }
}

fn unite_children(fields: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (element, theirs) in other {
        match fields.get_mut(element) {
            None => {
                fields.insert(element.clone(), theirs.clone());
            }
            Some(ours) => {
                let (we_are_leaf, they_are_leaf) = (is_leaf(ours), is_leaf(theirs));
                unite(ours, theirs);
                if element != "."
                    && we_are_leaf != they_are_leaf
                    && let Value::Object(ours) = ours
                {
                    ours.insert(".".to_owned(), Value::Object(Map::new()));
                }
            }
        }
    }
}

fn is_leaf(fields: &Value) -> bool {
    fields.as_object().is_none_or(Map::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_union_names_what_either_named() {
        let cases = [
            (json!({}), json!({"f:a": {}}), json!({"f:a": {}})),
            (json!({"f:a": {}}), json!({"f:b": {}}), json!({"f:a": {}, "f:b": {}})),
            (
                json!({"f:a": {"f:x": {}}}),
                json!({"f:a": {"f:y": {}}}),
                json!({"f:a": {"f:x": {}, "f:y": {}}}),
            ),
            (json!({"f:a": {}}), json!({"f:a": {"f:y": {}}}), json!({"f:a": {".": {}, "f:y": {}}})),
            (json!({"f:a": {".": {}, "f:x": {}}}), json!({"f:a": {}}), json!({"f:a": {".": {}, "f:x": {}}})),
            (
                json!({"f:l": {"v:1": {}}}),
                json!({"f:l": {"v:2": {}}}),
                json!({"f:l": {"v:1": {}, "v:2": {}}}),
            ),
        ];
        for (mut fields, other, expected) in cases {
            unite(&mut fields, &other);
            assert_eq!(fields, expected);
            unite(&mut fields, &other);
            assert_eq!(fields, expected, "uniting again must change nothing");
        }
    }
}
