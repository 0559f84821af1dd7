//! What `kubectl explain` shows of the fields of Etch's own resources. The descriptions are the comments on
//! the fields.

use serde_json::Value;

/// Keeps the descriptions of optional fields whose type has one of its own. Without this, that of the type
/// takes the place of the field's, which has the meaning of each value, and the default.
pub fn fields(schema: &mut schemars::Schema) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in properties.into_iter().flat_map(|properties| properties.values_mut()) {
        if field.get("description").is_none() {
            continue;
        }
        let variants = field.get_mut("anyOf").and_then(Value::as_array_mut);
        for variant in variants.into_iter().flatten().filter_map(Value::as_object_mut) {
            variant.remove("description");
        }
    }
}
