//! ETCH022: what the server leaves out of a schema when it publishes it as OpenAPI v2.
//!
//! Source: apiextensions-apiserver `pkg/controller/openapi/v2/conversion.go` (`ToStructuralOpenAPIV2`) and
//! `pkg/controller/openapi/builder/builder.go` (`buildKubeNative`), the same in all supported releases (fact
//! C12).

use std::collections::BTreeMap;

use super::rule::{Report, Rule, Severity};
use super::subject::Subject;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::rules::structural_errors;
use kube_structural_schema::schema::{Constraints, Schema, SchemaType};

pub(super) const RULE: Rule = Rule {
    code: "ETCH022",
    name: "lossy-openapi-v2",
    severity: Severity::Info,
    summary: "OpenAPI v2 lacks a part of the schema",
    help: "\
The server publishes the schemas of CRDs as OpenAPI v3, without loss, and as OpenAPI v2, which cannot express
all of them. In /openapi/v2 an object with `nullable: true` or `x-kubernetes-preserve-unknown-fields: true`
has neither type nor fields, and a list neither type nor items; nullable fields are not required; `allOf`,
`anyOf`, `oneOf` and `not` are gone, also the two types of an integer or a string; and if the whole object
keeps unknown fields, nothing of its schema is published. No default of any type is in it. The API server
itself validates and fills in defaults by the CRD.

Readers of v2 are kubectl explain before 1.27, validation on the client's side, and older generators of
clients: these see less, and accept more than the server. Nothing has to be changed if your users have tools
that read /openapi/v3. For the others, say in the description what v2 lacks. A finding names each sort of loss
once for a version, with its first places.",
    check: Some(check),
};

/// How many places a finding names beside its own.
const NAMED: usize = 2;

/// What a reader of v2 does not see, in the order of the findings at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    /// The whole schema, because the object keeps unknown fields.
    Whole,
    /// What a place with `nullable` is made of.
    Nullable,
    /// What a place that keeps unknown fields is made of.
    Open,
    /// That it is an integer or a string.
    IntOrString,
    /// One of the keywords that have no counterpart.
    Keyword(&'static str),
    /// That it is required, though it may be null.
    Required,
}

/// A loss at its first place, and where it is found again.
struct Lost {
    first: Path,
    what: String,
    also: Vec<Path>,
    times: usize,
}

type Losses = BTreeMap<Loss, Lost>;

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    let is_open = subject.spec["preserveUnknownFields"] == true;
    for version in subject.versions.iter().filter(|version| version.served) {
        let schema = &version.schema;
        // The server publishes nothing of such a schema, and ETCH001 is about it.
        if !structural_errors(schema).is_empty() {
            continue;
        }
        let mut losses = Losses::new();
        if is_open || schema.preserve_unknown_fields {
            // The server does not look further.
            let what = "OpenAPI v2 has nothing of the schema, because the object keeps unknown fields";
            add(&mut losses, Loss::Whole, &Path::root(), || what.to_owned());
        } else {
            walk(schema, &mut Path::root(), &mut losses);
        }
        for Lost { first, what, also, times } in losses.into_values() {
            report.add(&version.name, first, format!("{what}{}", elsewhere(&also, times)));
        }
    }
}

/// `; the same at .spec.b, .spec.c and 4 more places`
fn elsewhere(also: &[Path], times: usize) -> String {
    if also.is_empty() {
        return String::new();
    }
    let named: Vec<String> = also.iter().map(Path::to_string).collect();
    let more = match times - 1 - also.len() {
        0 => String::new(),
        1 => " and 1 more place".to_owned(),
        more => format!(" and {more} more places"),
    };
    format!("; the same at {}{more}", named.join(", "))
}

fn add(losses: &mut Losses, loss: Loss, at: &Path, what: impl FnOnce() -> String) {
    match losses.get_mut(&loss) {
        Some(lost) => {
            lost.times += 1;
            if lost.also.len() < NAMED {
                lost.also.push(at.clone());
            }
        }
        None => {
            let lost = Lost { first: at.clone(), what: what(), also: Vec::new(), times: 1 };
            losses.insert(loss, lost);
        }
    }
}

/// Goes through a schema as the conversion does: what it takes away is no longer looked at.
fn walk(schema: &Schema, at: &mut Path, losses: &mut Losses) {
    for (loss, name) in keywords(schema) {
        add(losses, loss, at, || match loss {
            Loss::IntOrString => "OpenAPI v2 has no type here, for it knows no integer or string".to_owned(),
            _ => format!("OpenAPI v2 lacks {name} here"),
        });
    }
    let is_cut = schema.nullable || schema.preserve_unknown_fields;
    if is_cut {
        let (loss, why) = match schema.nullable {
            true => (Loss::Nullable, "it knows no nullable"),
            false => (Loss::Open, "unknown fields are kept"),
        };
        let parts = parts(schema);
        if !parts.is_empty() {
            add(losses, loss, at, || format!("OpenAPI v2 has no {} here, because {why}", listed(&parts)));
        }
    }
    let below = schema.properties.iter().filter(|_| !is_cut);
    for (name, property) in below {
        within(at, Step::Field(name.to_owned()), &mut |at| {
            if property.nullable && required(schema).any(|required| required == name) {
                let what = || "OpenAPI v2 does not require it, because it may be null".to_owned();
                add(losses, Loss::Required, at, what);
            }
            walk(property, at, losses);
        });
    }
    if let Some(items) = schema.items.as_deref().filter(|_| !is_cut) {
        within(at, Step::Items, &mut |at| walk(items, at, losses));
    }
    if let Some(values) = schema.additional_schema() {
        if values.nullable && required(schema).next().is_some() {
            let what = || "OpenAPI v2 requires none of its keys, because their values may be null".to_owned();
            add(losses, Loss::Required, at, what);
        }
        within(at, Step::Values, &mut |at| walk(values, at, losses));
    }
}

fn within(at: &mut Path, step: Step, visit: &mut dyn FnMut(&mut Path)) {
    let mut below = at.join(step);
    visit(&mut below);
}

fn required(schema: &Schema) -> impl Iterator<Item = &str> {
    let constraints = schema.constraints.as_deref();
    constraints.into_iter().flat_map(|constraints| &constraints.required).map(String::as_str)
}

/// The keywords of a place that v2 does not have.
fn keywords(schema: &Schema) -> Vec<(Loss, &'static str)> {
    let mut found = Vec::new();
    // The server publishes the two types of it, whether or not the schema has them.
    if schema.int_or_string {
        found.push((Loss::IntOrString, "anyOf"));
    }
    let Some(Constraints { all_of, any_of, one_of, not, .. }) = schema.constraints.as_deref() else {
        return found;
    };
    // These types as the schema may have them: `anyOf` alone, or as the first clause of `allOf`.
    let is_type = |clauses: &[Schema]| {
        schema.int_or_string
            && matches!(clauses, [a, b] if a.kind == SchemaType::Integer && b.kind == SchemaType::String)
    };
    let first = all_of.first().and_then(|clause| clause.constraints.as_deref());
    let first_is_type = first.is_some_and(|clause| is_type(&clause.any_of));
    let others = [
        ("allOf", all_of.len() > usize::from(first_is_type)),
        ("anyOf", !any_of.is_empty() && !is_type(any_of)),
        ("oneOf", !one_of.is_empty()),
        ("not", not.is_some()),
    ];
    found.extend(others.into_iter().filter(|(_, is)| *is).map(|(name, _)| (Loss::Keyword(name), name)));
    found
}

/// What is taken away from a place that may be null or keeps unknown fields.
fn parts(schema: &Schema) -> Vec<&'static str> {
    let mut parts = Vec::new();
    let has_type = match schema.kind {
        SchemaType::Unset => false,
        // Without nullable, only objects and lists lose their type.
        SchemaType::Object => true,
        SchemaType::Array => schema.nullable || schema.items.is_some(),
        _ => schema.nullable,
    };
    parts.extend(has_type.then_some("type"));
    parts.extend((!schema.properties.is_empty()).then_some("fields"));
    parts.extend(schema.items.is_some().then_some("items"));
    if schema.embedded_resource && schema.preserve_unknown_fields {
        parts.extend(["apiVersion", "kind", "metadata"]);
    }
    parts
}

/// `type, fields and metadata`, or with `or` as it follows a `no`.
fn listed(parts: &[&str]) -> String {
    match parts {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::lint;
    use kube_structural_schema::json::Json;

    fn found(root: Value) -> Vec<String> {
        found_in(json!({"versions": [{
            "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root},
        }]}))
    }

    fn found_in(spec: Value) -> Vec<String> {
        let findings = lint(&Json::from(json!({"spec": spec}))).expect("a CRD");
        let own = findings.iter().filter(|finding| finding.rule.code == "ETCH022");
        own.map(|finding| format!("{} {}", finding.path, finding.message)).collect()
    }

    fn object(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    fn with(mut schema: Value, more: Value) -> Value {
        schema.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        schema
    }

    #[test]
    fn each_loss_is_named() {
        let text = json!({"type": "string"});
        for (schema, expected) in [
            (text.clone(), vec![]),
            (
                with(text.clone(), json!({"default": "a", "enum": ["a"], "maxLength": 3, "format": "date"})),
                vec![],
            ),
            (
                with(text.clone(), json!({"nullable": true})),
                vec![".a OpenAPI v2 has no type here, because it knows no nullable"],
            ),
            (
                with(object(json!({"b": {"type": "string", "nullable": true}})), json!({"nullable": true})),
                vec![".a OpenAPI v2 has no type or fields here, because it knows no nullable"],
            ),
            (
                json!({"type": "array", "nullable": true, "items": text}),
                vec![".a OpenAPI v2 has no type or items here, because it knows no nullable"],
            ),
            (
                with(object(json!({"b": text})), json!({"x-kubernetes-preserve-unknown-fields": true})),
                vec![".a OpenAPI v2 has no type or fields here, because unknown fields are kept"],
            ),
            (json!({"x-kubernetes-preserve-unknown-fields": true}), vec![]),
            (json!({"type": "string", "x-kubernetes-preserve-unknown-fields": true}), vec![]),
            (
                json!({
                    "type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true,
                }),
                vec![
                    ".a OpenAPI v2 has no type, apiVersion, kind or metadata here, because unknown fields \
                     are kept",
                ],
            ),
            (with(object(json!({"spec": text})), json!({"x-kubernetes-embedded-resource": true})), vec![]),
            (
                json!({"x-kubernetes-int-or-string": true}),
                vec![".a OpenAPI v2 has no type here, for it knows no integer or string"],
            ),
            (
                json!({
                    "x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
                }),
                vec![".a OpenAPI v2 has no type here, for it knows no integer or string"],
            ),
            (
                json!({"x-kubernetes-int-or-string": true, "allOf": [
                    {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"maxLength": 3}]}),
                vec![
                    ".a OpenAPI v2 has no type here, for it knows no integer or string",
                    ".a OpenAPI v2 lacks allOf here",
                ],
            ),
            (
                with(
                    text.clone(),
                    json!({"allOf": [{"minLength": 1}], "anyOf": [{"maxLength": 2}],
                    "oneOf": [{"pattern": "a"}], "not": {"pattern": "b"}}),
                ),
                vec![
                    ".a OpenAPI v2 lacks allOf here",
                    ".a OpenAPI v2 lacks anyOf here",
                    ".a OpenAPI v2 lacks not here",
                    ".a OpenAPI v2 lacks oneOf here",
                ],
            ),
            (
                with(object(json!({"b": {"type": "string", "nullable": true}})), json!({"required": ["b"]})),
                vec![
                    ".a.b OpenAPI v2 does not require it, because it may be null",
                    ".a.b OpenAPI v2 has no type here, because it knows no nullable",
                ],
            ),
            (
                json!({
                    "type": "object", "required": ["k"], "additionalProperties": {
                        "type": "string", "nullable": true,
                    },
                }),
                vec![
                    ".a OpenAPI v2 requires none of its keys, because their values may be null",
                    ".a{} OpenAPI v2 has no type here, because it knows no nullable",
                ],
            ),
        ] {
            assert_eq!(found(object(json!({"a": schema}))), expected, "{schema}");
        }
    }

    #[test]
    fn a_loss_is_found_once_for_a_version() {
        let none = json!({"type": "string", "nullable": true});
        let many = object(json!({"a": none, "b": none, "c": {"type": "array", "items": none}, "d": none}));
        let same = ".a OpenAPI v2 has no type here, because it knows no nullable; the same at .b, .c[] and 1 \
            more place";
        assert_eq!(found(many), [same]);
    }

    #[test]
    fn nothing_is_looked_for_where_nothing_is_published() {
        let inner = json!({"type": "string", "nullable": true});
        let whole = ". OpenAPI v2 has nothing of the schema, because the object keeps unknown fields";
        let open = with(object(json!({"a": inner})), json!({"x-kubernetes-preserve-unknown-fields": true}));
        assert_eq!(found(open), [whole]);
        let version = |served: bool, a: &Value| {
            json!({"name": if served { "v1" } else { "v2" }, "served": served, "storage": true,
                "schema": {"openAPIV3Schema": object(json!({"a": a}))}})
        };
        let legacy = json!({"preserveUnknownFields": true, "versions": [version(true, &inner)]});
        assert_eq!(found_in(legacy), [whole]);
        assert_eq!(found_in(json!({"versions": [version(false, &inner)]})), [""; 0]);
        assert_eq!(found_in(json!({"versions": [version(true, &json!({"nullable": true}))]})), [""; 0]);
    }
}
