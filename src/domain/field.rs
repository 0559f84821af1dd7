//! Fields as API servers write them, such as `spec.ports[0].name`, without the keys of maps: those are data of users.
//! It must not keep a name that neither the schema nor Kubernetes declares.

use crate::domain::schema::Schema;

/// What stands for a key.
const KEY: &str = "*";
/// What the `metadata` of every object may hold (`ObjectMeta` of apimachinery, and the owner references in it).
const METADATA: [&str; 17] = [
    "apiVersion",
    "kind",
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The field with each key of a map as `*`. Servers write a key in brackets or behind a dot, and a key may hold dots: where one
/// stands behind a dot, what follows it is left out.
pub fn without_keys(field: &str, schema: &Schema) -> String {
    let mut shown = String::new();
    let mut at = Place::Root(schema);
    for step in steps(field) {
        let (next, text) = at.step(step);
        match step {
            TextStep::Bracket(_) => shown.extend(["[", text, "]"]),
            TextStep::Name(_) if shown.is_empty() => shown.push_str(text),
            TextStep::Name(_) => shown.extend([".", text]),
        }
        if text == KEY && matches!(step, TextStep::Name(_)) {
            break;
        }
        at = next;
    }
    shown
}

/// One step of a field's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextStep<'a> {
    /// `name`, at the beginning or behind a dot.
    Name(&'a str),
    /// `[text]`, without the brackets; one that is never closed goes to the end.
    Bracket(&'a str),
}

fn steps(field: &str) -> impl Iterator<Item = TextStep<'_>> {
    let mut rest = field.strip_prefix('.').unwrap_or(field);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(bracket) = rest.strip_prefix('[') {
            let (text, after) = bracket.split_once(']').unwrap_or((bracket, ""));
            rest = after.strip_prefix('.').unwrap_or(after);
            return Some(TextStep::Bracket(text));
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = rest[end..].strip_prefix('.').unwrap_or(&rest[end..]);
        Some(TextStep::Name(name))
    })
}

/// Where a walk along a field has come to.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// The whole object.
    Root(&'a Schema),
    /// `metadata`, and what is below it.
    Metadata,
    /// A place that the schema describes.
    Described(&'a Schema),
    /// A place of which nothing is declared.
    Unknown,
}

impl<'a> Place<'a> {
    /// The next place, and what is shown of the step to it.
    fn step<'t>(self, step: TextStep<'t>) -> (Self, &'t str) {
        let described = |schema: Option<&'a Schema>| schema.map_or(Place::Unknown, Place::Described);
        match (self, step) {
            (_, TextStep::Bracket(text)) if is_index(text) => match self {
                Self::Described(schema) if schema.items.is_some() => {
                    (described(schema.items.as_deref()), text)
                }
                // A map may have numbers for keys.
                Self::Described(schema) if schema.additional_schema().is_some() => {
                    (described(schema.additional_schema()), KEY)
                }
                Self::Metadata => (Self::Metadata, text),
                Self::Root(_) | Self::Described(_) | Self::Unknown => (Self::Unknown, text),
            },
            (Self::Described(schema) | Self::Root(schema), TextStep::Bracket(name)) => {
                match schema.properties.get(name) {
                    Some(child) => (Self::Described(child), name),
                    None => (described(schema.additional_schema()), KEY),
                }
            }
            (Self::Root(_), TextStep::Name(name @ ("apiVersion" | "kind" | "metadata"))) => {
                (Self::Metadata, name)
            }
            (Self::Metadata, TextStep::Name(name)) if METADATA.contains(&name) => (Self::Metadata, name),
            (Self::Described(schema) | Self::Root(schema), TextStep::Name(name)) => {
                match schema.properties.get(name) {
                    Some(child) => (Self::Described(child), name),
                    None => (described(schema.additional_schema()), KEY),
                }
            }
            (Self::Metadata | Self::Unknown, _) => (Self::Unknown, KEY),
        }
    }
}

fn is_index(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_the_schema_stay_and_keys_do_not() {
        let item = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let schema = Schema::parse(
            &json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
                "ports": { "type": "array", "items": item },
                "hosts": { "type": "object", "additionalProperties": item },
                "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            }}}}),
        )
        .expect("a schema");
        for (field, shown) in [
            ("spec.ports[0].name", "spec.ports[0].name"),
            (".spec.ports[12].name", "spec.ports[12].name"),
            ("spec.hosts[secret.io].name", "spec.hosts[*].name"),
            ("spec.hosts.secret.io.name", "spec.hosts.*"),
            ("spec.hosts.secret", "spec.hosts.*"),
            ("spec.hosts[7].name", "spec.hosts[*].name"),
            ("spec.free.secret", "spec.free.*"),
            ("spec.free[secret].secret", "spec.free[*].*"),
            ("spec[ports]", "spec[ports]"),
            ("secret", "*"),
            ("apiVersion", "apiVersion"),
            ("metadata.uid", "metadata.uid"),
            ("metadata.labels", "metadata.labels"),
            ("metadata.labels.secret", "metadata.labels.*"),
            ("metadata.annotations[secret]", "metadata.annotations[*]"),
            ("metadata.ownerReferences[0].uid", "metadata.ownerReferences[0].uid"),
            (".metadata.managedFields", "metadata.managedFields"),
            ("spec.hosts[secret", "spec.hosts[*]"),
            ("", ""),
        ] {
            assert_eq!(without_keys(field, &schema), shown, "{field}");
        }
    }
}
