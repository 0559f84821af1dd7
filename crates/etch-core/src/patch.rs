//! The JSON patch from an object to its changed form: only what was set or removed, nothing that was there.
//! Source: RFC 6902 and 6901.

use serde::Serialize;
use serde_json::Value;

use kube_structural_schema::json::{Json, same};

/// One operation of a JSON patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Change {
    /// A field is new.
    Add {
        /// Where, as a JSON pointer.
        path: String,
        /// Its value.
        value: Json,
    },
    /// A value is another one.
    Replace {
        /// Where, as a JSON pointer.
        path: String,
        /// Its value.
        value: Json,
    },
    /// A field is gone.
    Remove {
        /// Where, as a JSON pointer.
        path: String,
    },
}

/// The topmost changes from one object to the other.
pub fn patch(before: &Value, after: &Value) -> Vec<Change> {
    patch_at_most(usize::MAX, before, after)
}

/// As [`patch`], but a list or map with more than `most` changes is replaced as a whole: as many operations
/// would take a multiple of its size. The object itself is not replaced.
pub fn patch_at_most(most: usize, before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(most, before, after, &mut String::new(), &mut changes);
    changes
}

fn compare(most: usize, before: &Value, after: &Value, path: &mut String, changes: &mut Vec<Change>) {
    let first = changes.len();
    // Whether there were too many, and one is there in their place.
    let replaced = |path: &str, changes: &mut Vec<Change>| {
        let is_replaced = changes.len() - first > most && !path.is_empty();
        if is_replaced {
            changes.truncate(first);
            changes.push(Change::Replace { path: path.to_owned(), value: after.clone().into() });
        }
        is_replaced
    };
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, old) in before {
                within(path, name, |path| match after.get(name) {
                    Some(new) => compare(most, old, new, path, changes),
                    None => changes.push(Change::Remove { path: path.clone() }),
                });
                if replaced(path, changes) {
                    return;
                }
            }
            for (name, new) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                within(path, name, |path| {
                    changes.push(Change::Add { path: path.clone(), value: new.clone().into() })
                });
                if replaced(path, changes) {
                    return;
                }
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (old, new)) in before.iter().zip(after).enumerate() {
                within(path, &index.to_string(), |path| compare(most, old, new, path, changes));
                if replaced(path, changes) {
                    return;
                }
            }
        }
        (before, after) if same(before, after) => {}
        (_, after) => changes.push(Change::Replace { path: path.clone(), value: after.clone().into() }),
    }
}

/// Does something at the place below `path`, a JSON pointer, that `name` leads to.
pub(crate) fn within<T>(path: &mut String, name: &str, step: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    path.push('/');
    path.push_str(&name.replace('~', "~0").replace('/', "~1"));
    let result = step(path);
    path.truncate(length);
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_changed_is_in_the_patch() {
        let before = json!({ "a": { "b": 1 }, "l": [{ "x": 0 }, {}], "e": [], "gone": 1, "same": 1.0 });
        let after = json!({
            "a": { "b": 1, "c/d~": { "e": true } }, "l": [{ "x": 5 }, { "y": 1 }], "e": [1], "same": 1,
        });
        let changes = serde_json::to_value(patch(&before, &after)).expect("JSON");
        assert_eq!(
            changes,
            json!([
                { "op": "add", "path": "/a/c~1d~0", "value": { "e": true } },
                { "op": "replace", "path": "/e", "value": [1] },
                { "op": "remove", "path": "/gone" },
                { "op": "replace", "path": "/l/0/x", "value": 5 },
                { "op": "add", "path": "/l/1/y", "value": 1 },
            ])
        );
        assert_eq!(patch(&before, &before), []);
    }

    #[test]
    fn what_has_too_many_changes_is_replaced_as_a_whole() {
        let before =
            json!({ "a": { "l": [{}, {}, {}], "m": { "x": 1, "y": 1, "z": 1 } }, "b": 1, "c": 1, "d": 1 });
        let mut after = before.clone();
        after["a"]["l"] = json!([{ "v": 1 }, { "v": 1 }, { "v": 1 }]);
        let replace = |path: &str| json!([{ "op": "replace", "path": path, "value": after.pointer(path) }]);
        let of =
            |most, after: &Value| serde_json::to_value(patch_at_most(most, &before, after)).expect("JSON");
        assert_eq!(of(3, &after).as_array().map(Vec::len), Some(3));
        assert_eq!(of(2, &after), replace("/a/l"));
        let mut both = after.clone();
        both["a"]["m"] = json!({ "v": 1 });
        assert_eq!(
            of(2, &both),
            json!([
                { "op": "replace", "path": "/a/l", "value": after["a"]["l"] },
                { "op": "replace", "path": "/a/m", "value": { "v": 1 } },
            ])
        );
        assert_eq!(of(1, &json!({})).as_array().map(Vec::len), Some(4), "not the object itself");
    }
}
