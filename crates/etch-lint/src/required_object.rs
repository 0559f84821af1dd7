//! ETCH020: required objects that could as well be empty.

use serde_json::{Map, Value};

use super::rule::{Report, Rule, Severity};
use super::site::is_zero;
use super::subject::Subject;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::schema::{Schema, SchemaType};

pub(super) const RULE: Rule = Rule {
    code: "ETCH020",
    name: "required-object-without-default",
    severity: Severity::Info,
    summary: "a required object may be empty and has no default",
    help: "\
Go clients send an object whose field is not a pointer even if nothing in it is set, as `{}`, and its fields
get their defaults. The server refuses it from users who write YAML and omit it. So KEP-1929 (Changes to
kubebuilder/default-gen, and Non-pointer structs) gives such a field `default: {}`.

Give the object `default: {}` and remove it from `required`. Reported are objects for which the server accepts
this default and that are valid with it; not `.spec`, which every object has, nor `.status`, which a
controller writes.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    subject.each_site(&mut |version, site| {
        if site.is_required()
                && site.default().is_none()
                && !site.schema.nullable
                && !site.is_in_status()
                // Every object has a spec, required or not.
                && !site.is_top_level("spec")
                && is_complete(site.schema)
        {
            report.add(
                &version.name,
                site.path(),
                "the object is required though its defaults make it complete; it has no default of its own",
            );
        }
    });
}

/// Whether `{}` gets a default that matters, is valid with all that it gets, and is accepted as a default,
/// which is without.
fn is_complete(schema: &Schema) -> bool {
    let fills = |field: &Schema| field.default.as_deref().is_some_and(|default| !is_zero(default));
    if schema.kind != SchemaType::Object || !schema.properties.iter().any(|(_, field)| fills(field)) {
        return false;
    }
    let mut empty = Value::Object(Map::new());
    if !kube_crd_validation::default(schema, &empty).is_empty() {
        return false;
    }
    Compiled::new(schema).fill(&mut empty);
    kube_crd_validation::validate(schema, &empty).is_empty()
}
