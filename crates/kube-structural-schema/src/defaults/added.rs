//! What reading added to an object, found by comparing the two.
//! It needs no schema, so it compares built-in types as well.

use serde_json::Value;

use crate::path::{Path, Trail, TrailStep};

/// The topmost places at which `after` has a value and `before` has none or a null, sorted.
pub fn added(before: &Value, after: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    compare(before, after, &Trail::ROOT, &mut found);
    found.sort();
    found
}

fn compare(before: &Value, after: &Value, at: &Trail<'_>, found: &mut Vec<Path>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, after) in after {
                let here = at.join(TrailStep::Field(name));
                match before.get(name) {
                    Some(before) => compare(before, after, &here, found),
                    None => found.push(here.to_path()),
                }
            }
        }
        // Reading neither adds nor drops items.
        (Value::Array(before), Value::Array(after)) => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                compare(before, after, &at.join(TrailStep::Index(index)), found);
            }
        }
        (Value::Null, after) if !after.is_null() => found.push(at.to_path()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_topmost_new_places_are_found() {
        let before = json!({"a": {"b": 1, "gone": 1}, "l": [{"x": 1}, null, null], "n": null});
        let after = json!({"a": {"b": 1, "c": {"d": 2}}, "l": [{"x": 1, "y": 2}, {}, null], "n": 0});
        let paths: Vec<_> = added(&before, &after).iter().map(Path::to_string).collect();
        assert_eq!(paths, [".a.c", ".l[0].y", ".l[1]", ".n"]);
    }
}
