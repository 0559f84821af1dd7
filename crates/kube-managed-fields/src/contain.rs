//! Whether one field set names all that another one names.

use serde_json::{Map, Value};

use kube_structural_schema::schema::Schema;

/// Whether `fields` names every path that `other` names, both in FieldsV1 form.
///
/// `schema` is that of the object: fields that it does not know do not count, because the server takes them
/// out of every set.
pub fn contains(fields: &Value, other: &Value, schema: &Schema) -> bool {
    has_all(fields, other, Known { schema: Some(schema), is_resource: true })
}

/// A place of the schema; `None` if there is no schema here, and every field counts.
#[derive(Clone, Copy)]
struct Known<'s> {
    schema: Option<&'s Schema>,
    is_resource: bool,
}

/// Whether `fields`, in FieldsV1 form, names something that the schema of the object knows. The server takes
/// everything else out of a set, and forgets an owner of nothing.
pub fn names_known(fields: &Value, schema: &Schema) -> bool {
    has_known(fields, Known { schema: Some(schema), is_resource: true })
}

fn has_known(fields: &Value, known: Known<'_>) -> bool {
    let Value::Object(elements) = fields else { return false };
    let is_known = |(element, below): (&String, &Value)| match known.below(element) {
        Some(known) => below.as_object().is_some_and(is_itself) || has_known(below, known),
        None => false,
    };
    elements.iter().filter(|(element, _)| *element != ".").any(is_known)
}

fn has_all(fields: &Value, other: &Value, known: Known<'_>) -> bool {
    let Value::Object(theirs) = other else { return true };
    if is_itself(theirs) && !fields.as_object().is_some_and(is_itself) {
        return false;
    }
    {
        theirs.iter().filter(|(element, _)| *element != ".").all(|(element, theirs)| {
            known
                .below(element)
                .is_none_or(|known| fields.get(element).is_some_and(|ours| has_all(ours, theirs, known)))
        })
    }
}

/// Whether the thing at which a set stands is a member itself, beside what is in it.
fn is_itself(elements: &Map<String, Value>) -> bool {
    elements.is_empty() || elements.contains_key(".")
}

impl<'s> Known<'s> {
    /// The place that an element means; none for a field that the schema does not know.
    fn below(self, element: &str) -> Option<Self> {
        let anything = Self { schema: None, is_resource: false };
        let Some(schema) = self.schema else { return Some(anything) };
        let part = match element.strip_prefix("f:") {
            Some("apiVersion" | "kind" | "metadata") if self.is_resource => return Some(anything),
            Some(name) => match schema.child(name) {
                None if schema.preserve_unknown_fields || schema.additional.is_some() => {
                    return Some(anything);
                }
                child => child?,
            },
            None => match schema.items.as_deref() {
                Some(items) => items,
                None => return Some(anything),
            },
        };
        Some(Self { schema: Some(part), is_resource: part.embedded_resource })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_path_that_the_schema_knows_counts() {
        let schema = Schema::parse(&json!({ "type": "object", "properties": { "spec": {
            "type": "object",
            "properties": {
                "a": {
                    "type": "object", "properties": { "b": { "type": "string" }, "c": { "type": "string" } },
                },
                "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
                "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            },
        } } }))
        .expect("a schema");
        let spec = |fields: Value| json!({ "f:spec": fields });
        let cases = [
            (spec(json!({ "f:a": { "f:b": {}, "f:c": {} } })), spec(json!({ "f:a": { "f:b": {} } })), true),
            (spec(json!({ "f:a": { "f:b": {} } })), spec(json!({ "f:a": { "f:b": {}, "f:c": {} } })), false),
            (spec(json!({ "f:a": { "f:b": {} } })), spec(json!({ "f:a": { ".": {}, "f:b": {} } })), false),
            (spec(json!({ "f:a": { ".": {}, "f:b": {} } })), spec(json!({ "f:a": {} })), true),
            (spec(json!({ "f:a": {} })), spec(json!({ "f:a": { ".": {} } })), true),
            (spec(json!({ "f:a": { "f:b": {} } })), spec(json!({ "f:a": {} })), false),
            (spec(json!({ "f:tags": { "v:1": {} } })), spec(json!({ "f:tags": { "v:2": {} } })), false),
            (spec(json!({ "f:a": {} })), spec(json!({ "f:a": {}, "f:gone": { "f:x": {} } })), true),
            (spec(json!({ "f:free": {} })), spec(json!({ "f:free": { "f:x": {} } })), false),
            (
                json!({ "f:spec": {} }),
                json!({ "f:spec": {}, "f:metadata": { "f:labels": { "f:x": {} } } }),
                false,
            ),
            (Value::Null, json!({}), false),
            (json!({}), Value::Null, true),
        ];
        for (fields, other, expected) in cases {
            assert_eq!(contains(&fields, &other, &schema), expected, "{fields} {other}");
        }
    }
}
