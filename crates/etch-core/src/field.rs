//! Fields as API servers write them, such as `spec.ports[0].name`, read as places. A name that neither the
//! schema nor Kubernetes declares must not pass for a field's: it is the key of a map, and data of users.

use serde_json::Value;

use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;

/// What the `metadata` of every object may hold (`ObjectMeta` of apimachinery, and the owner references in
/// it).
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

/// The place of a field. Servers write a key in brackets or behind a dot, and a key may hold dots: where one
/// stands behind a dot, the rest of the field is taken for the key.
pub fn place(field: &str, schema: &Schema) -> Path {
    read(field, At { schema: Declared::Root(schema), value: None })
}

/// The place of a field of this object, which shows where a key with a dot or a bracket in it ends.
pub fn place_in(field: &str, schema: &Schema, object: &Value) -> Path {
    read(field, At { schema: Declared::Root(schema), value: Some(object) })
}

/// The place of a field of this object, as the author of an EmbeddedSchema has written it: names behind dots
/// are not data of users there.
pub fn written_place_in(field: &str, object: &Value) -> Path {
    read(field, At { schema: Declared::AsWritten, value: Some(object) })
}

fn read(field: &str, mut at: At<'_>) -> Path {
    let mut path = Path::root();
    let is_whole = field == "<nil>" && !at.declares(field);
    let mut rest = if is_whole { "" } else { field.strip_prefix('.').unwrap_or(field) };
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('[') {
            Some(rest) => at.bracket(rest),
            None => at.name(rest),
        };
        at = at.below(&step);
        path.push(step);
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    path
}

/// Where a walk along a field has come to.
#[derive(Clone, Copy)]
struct At<'a> {
    schema: Declared<'a>,
    /// The value there, where the object is known and has one.
    value: Option<&'a Value>,
}

/// What is declared of a place.
#[derive(Clone, Copy)]
enum Declared<'a> {
    /// The whole object, or one inside it.
    Root(&'a Schema),
    /// `metadata`, and what is below it.
    Metadata,
    /// A place that the schema describes.
    Described(&'a Schema),
    /// A place that no schema describes, with whatever name is written behind a dot.
    AsWritten,
    /// A place of which nothing is declared.
    Unknown,
}

impl<'a> At<'a> {
    /// The first step of a field, and what follows it.
    fn name(self, field: &str) -> (Step, &str) {
        let ends = || field.match_indices(['.', '[']).map(|(end, _)| end).chain([field.len()]);
        let longest = |is_known: &dyn Fn(&str) -> bool| ends().filter(|end| is_known(&field[..*end])).last();
        if let Some(end) = longest(&|name| self.declares(name)) {
            return (Step::Field(field[..end].to_owned()), &field[end..]);
        }
        let known = longest(&|name| self.has(name));
        if let Declared::AsWritten = self.schema {
            let end = known.or_else(|| ends().next()).unwrap_or(field.len());
            return (Step::Field(field[..end].to_owned()), &field[end..]);
        }
        let end = known.unwrap_or(field.len());
        (Step::Key(field[..end].to_owned()), &field[end..])
    }

    /// The first step of a field that begins with a bracket, which is taken off already, and what follows it.
    /// A bracket that is never closed goes to the end.
    fn bracket(self, field: &str) -> (Step, &str) {
        let ends = || field.match_indices(']').map(|(end, _)| end);
        let known = ends().rev().find(|end| self.has(&field[..*end]));
        let (text, after) = match known.or_else(|| ends().next()) {
            Some(end) => (&field[..end], &field[end + 1..]),
            None => (field, ""),
        };
        let step = match text.parse() {
            Ok(index) if self.has_items() => Step::Index(index),
            _ if self.declares(text) => Step::Field(text.to_owned()),
            _ => Step::Key(text.to_owned()),
        };
        (step, after)
    }

    /// Whether a name is one that every object of the kind may have.
    fn declares(self, name: &str) -> bool {
        match self.schema {
            Declared::Root(_) if matches!(name, "apiVersion" | "kind" | "metadata") => true,
            Declared::Root(schema) | Declared::Described(schema) => {
                let required = schema.constraints.iter().flat_map(|constraints| &constraints.required);
                schema.properties.contains(name) || required.into_iter().any(|required| required == name)
            }
            Declared::Metadata => METADATA.contains(&name),
            Declared::AsWritten | Declared::Unknown => false,
        }
    }

    /// Whether the object has a value of this name there.
    fn has(self, name: &str) -> bool {
        self.value.and_then(Value::as_object).is_some_and(|fields| fields.contains_key(name))
    }

    /// Whether a number is that of an item there. A map may have numbers for keys.
    fn has_items(self) -> bool {
        match (self.value, self.schema) {
            (Some(value), _) => value.is_array(),
            (None, Declared::Described(schema)) => {
                schema.items.is_some() || schema.additional_schema().is_none()
            }
            (None, Declared::AsWritten) => false,
            (None, Declared::Root(_) | Declared::Metadata | Declared::Unknown) => true,
        }
    }

    fn below(self, step: &Step) -> Self {
        let described = |schema: Option<&'a Schema>| match schema {
            Some(schema) if schema.embedded_resource => Declared::Root(schema),
            Some(schema) => Declared::Described(schema),
            None => Declared::Unknown,
        };
        let schema = match (self.schema, step) {
            (Declared::Root(_), Step::Field(name)) if name == "metadata" => Declared::Metadata,
            // Their names are users' own.
            (Declared::Metadata, Step::Field(name)) if name == "labels" || name == "annotations" => {
                Declared::Unknown
            }
            (Declared::Metadata, _) => Declared::Metadata,
            (Declared::Root(schema) | Declared::Described(schema), Step::Field(name)) => {
                described(schema.properties.get(name).or_else(|| schema.additional_schema()))
            }
            (Declared::Root(schema) | Declared::Described(schema), Step::Key(_)) => {
                described(schema.additional_schema())
            }
            (Declared::Root(schema) | Declared::Described(schema), Step::Index(_)) => {
                described(schema.items.as_deref())
            }
            (Declared::AsWritten, _) => Declared::AsWritten,
            (_, Step::Items | Step::Values) | (Declared::Unknown, _) => Declared::Unknown,
        };
        let value = self.value.and_then(|value| step.part_of(value));
        Self { schema, value }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let item = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
            "ports": { "type": "array", "items": item },
            "hosts": { "type": "object", "additionalProperties": item },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "a.b": item,
            "bare": { "type": "object", "required": ["x"] },
            "inner": {
                "type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            },
        }}}});
        Schema::parse(&schema).expect("a schema")
    }

    #[test]
    fn no_key_of_a_map_is_named_where_the_author_wrote_the_place() {
        let object = json!({ "spec": { "ext": { "a.b]c": [{ "12": { "x": 1 } }] } } });
        for (field, place) in [
            ("", "."),
            ("spec.ext", ".spec.ext"),
            ("spec.ext[a.b]c][0][12].x", r#".spec.ext["*"][0]["*"].x"#),
            ("spec.ext[other].y", r#".spec.ext["*"].y"#),
            ("spec.gone[3]", r#".spec.gone["*"]"#),
            ("spec.ext[open", r#".spec.ext["*"]"#),
        ] {
            assert_eq!(written_place_in(field, &object).without_keys().to_string(), place, "{field}");
        }
    }

    #[test]
    fn names_of_the_schema_stay_and_keys_do_not() {
        let schema = schema();
        for (field, shown) in [
            ("spec.ports[0].name", ".spec.ports[0].name"),
            (".spec.ports[12].name", ".spec.ports[12].name"),
            ("spec.hosts[secret.io].name", r#".spec.hosts["*"].name"#),
            ("spec.hosts.secret.io.name", r#".spec.hosts["*"]"#),
            ("spec.hosts.secret", r#".spec.hosts["*"]"#),
            ("spec.hosts[7].name", r#".spec.hosts["*"].name"#),
            ("spec.free.secret", r#".spec.free["*"]"#),
            ("spec.free[secret].secret", r#".spec.free["*"]["*"]"#),
            ("spec[ports]", ".spec.ports"),
            ("spec.a.b.name", r#".spec."a.b".name"#),
            ("spec.bare.x", ".spec.bare.x"),
            ("spec.inner.metadata.name", ".spec.inner.metadata.name"),
            ("secret", r#"["*"]"#),
            ("apiVersion", ".apiVersion"),
            ("metadata.uid", ".metadata.uid"),
            ("metadata.labels", ".metadata.labels"),
            ("metadata.labels.secret", r#".metadata.labels["*"]"#),
            ("metadata.labels.name", r#".metadata.labels["*"]"#),
            ("metadata.annotations[secret]", r#".metadata.annotations["*"]"#),
            ("metadata.ownerReferences[0].uid", ".metadata.ownerReferences[0].uid"),
            (".metadata.managedFields", ".metadata.managedFields"),
            ("spec.hosts[secret", r#".spec.hosts["*"]"#),
            ("<nil>", "."),
            ("", "."),
        ] {
            assert_eq!(place(field, &schema).without_keys().to_string(), shown, "{field}");
        }
    }

    #[test]
    fn an_object_tells_where_a_key_ends() {
        let schema = schema();
        let object = json!({ "spec": {
            "hosts": { "secret.io": {}, "a]b": {}, "c[0]": {}, "7": {}, "secret": {} },
            "free": { "x.y": { "z": [{}] } },
        }});
        for (field, shown) in [
            ("spec.hosts.secret.io.name", r#".spec.hosts["secret.io"].name"#),
            ("spec.hosts.secret.name", r#".spec.hosts["secret"].name"#),
            ("spec.hosts[a]b].name", r#".spec.hosts["a]b"].name"#),
            ("spec.hosts.c[0].name", r#".spec.hosts["c[0]"].name"#),
            ("spec.hosts[7].name", r#".spec.hosts["7"].name"#),
            ("spec.hosts.gone.name", r#".spec.hosts["gone.name"]"#),
            ("spec.free.x.y.z[0]", r#".spec.free["x.y"]["z"][0]"#),
        ] {
            assert_eq!(place_in(field, &schema, &object).to_string(), shown, "{field}");
        }
    }

    #[test]
    fn a_field_may_have_the_name_that_stands_for_none() {
        let schema = json!({ "type": "object", "properties": { "<nil>": { "type": "string" } } });
        let schema = Schema::parse(&schema).expect("a schema");
        assert_eq!(place("<nil>", &schema).to_string(), ".<nil>");
    }
}
