//! An object without some of its parts. What stays does not move: an item of an array keeps its place.

use serde_json::Value;

use kube_structural_schema::path::Step;

/// Removes what is at a place; an item of an array becomes null, for only a null is replaced by an item's
/// default.
pub(super) fn remove(value: &mut Value, path: &[Step]) {
    let Some((step, rest)) = path.split_first() else { return };
    match (value, step) {
        (Value::Object(fields), Step::Field(name) | Step::Key(name)) => match rest {
            [] => drop(fields.remove(name)),
            rest => {
                if let Some(value) = fields.get_mut(name) {
                    remove(value, rest);
                }
            }
        },
        (Value::Array(items), Step::Index(index)) => {
            if let Some(item) = items.get_mut(*index) {
                match rest {
                    [] => *item = Value::Null,
                    rest => remove(item, rest),
                }
            }
        }
        _ => {}
    }
}
