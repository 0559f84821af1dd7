//! The rules for what stands under `allOf`, `anyOf`, `oneOf` and `not`: restrictions only, no structure.
//! [`super::completeness`] requires that the structure exists.

use super::violation::Report;
use crate::schema::{Additional, Constraints, Place, Schema, SchemaType};
use go_text::regexp::syntax_error;
use go_text::strconv::quote;

/// The restrictions of a structural node.
///
/// One way to write an integer or a string is exempt. Upstream exempts it with or without
/// `x-kubernetes-int-or-string`.
pub(super) fn check_own(schema: &Schema, at: &Place<'_>, report: &mut Report) {
    let Some(constraints) = &schema.constraints else { return };
    let exempt = Exempt {
        any_of: is_int_or_string(&constraints.any_of),
        first_all_of: constraints.all_of.first().is_some_and(|clause| {
            clause.constraints.as_ref().is_some_and(|constraints| is_int_or_string(&constraints.any_of))
        }),
    };
    restrictions(constraints, exempt, at, report);
}

/// Which `anyOf` is not looked at: the node's own, or that of its first `allOf`.
#[derive(Clone, Copy, Default)]
struct Exempt {
    any_of: bool,
    first_all_of: bool,
}

fn is_int_or_string(clauses: &[Schema]) -> bool {
    let [integer, string] = clauses else { return false };
    says_only(integer, &SchemaType::Integer) && says_only(string, &SchemaType::String)
}

fn says_only(clause: &Schema, kind: &SchemaType) -> bool {
    clause.kind == *kind && !clause.adorned && clause.default.is_none() && clause.properties.is_empty()
}

/// `validateValueValidation`
fn restrictions(constraints: &Constraints, exempt: Exempt, at: &Place<'_>, report: &mut Report) {
    let nothing = Exempt::default();
    if !exempt.any_of {
        let here = at.child("anyOf");
        for (index, clause) in constraints.any_of.iter().enumerate() {
            check(clause, nothing, &here.index(index), report);
        }
    }
    let here = at.child("allOf");
    for (index, clause) in constraints.all_of.iter().enumerate() {
        check(
            clause,
            Exempt { any_of: exempt.first_all_of && index == 0, ..nothing },
            &here.index(index),
            report,
        );
    }
    let here = at.child("oneOf");
    for (index, clause) in constraints.one_of.iter().enumerate() {
        check(clause, nothing, &here.index(index), report);
    }
    if let Some(clause) = &constraints.not {
        check(clause, nothing, &at.child("not"), report);
    }
    if let Some(error) = syntax_error(&constraints.pattern) {
        report.invalid(
            &at.child("pattern"),
            &quote(&constraints.pattern),
            format!("must be a valid regular expression, but isn't: {error}"),
        );
    }
}

/// `validateNestedValueValidation`
fn check(clause: &Schema, exempt: Exempt, at: &Place<'_>, report: &mut Report) {
    if let Some(constraints) = &clause.constraints {
        restrictions(constraints, exempt, at, report);
    }
    if let Some(item) = &clause.items {
        check(item, Exempt::default(), &at.child("items"), report);
    }
    let properties = at.child("properties");
    for (name, property) in clause.properties.iter() {
        check(property, Exempt::default(), &properties.key(name), report);
    }
    if clause.properties.contains("metadata") {
        report.forbidden(&properties.key("metadata"), "must not be specified in a nested context");
    }
    for (keyword, set, wanted) in structural_keywords(clause) {
        if set {
            report.forbidden(&at.child(keyword), format!("must be {wanted} to be structural"));
        }
    }
}

/// The keywords that give structure, whether the clause uses them, and what they must be instead.
fn structural_keywords(clause: &Schema) -> [(&'static str, bool, &'static str); 13] {
    // `false` is unset here: upstream keeps only what allows something.
    let additional = !matches!(clause.additional, None | Some(Additional::Bool(false)));
    [
        ("type", clause.kind != SchemaType::Unset, "empty"),
        ("additionalProperties", additional, "undefined"),
        ("default", clause.default.is_some(), "undefined"),
        ("title", clause.titled, "empty"),
        ("description", clause.described, "empty"),
        ("nullable", clause.nullable, "false"),
        ("x-kubernetes-preserve-unknown-fields", clause.preserve_unknown_fields, "false"),
        ("x-kubernetes-embedded-resource", clause.embedded_resource, "false"),
        ("x-kubernetes-int-or-string", clause.int_or_string, "false"),
        ("x-kubernetes-list-map-keys", !clause.list_map_keys.is_empty(), "empty"),
        ("x-kubernetes-list-type", clause.list_type.is_some(), "undefined"),
        ("x-kubernetes-map-type", clause.map_type.is_some(), "undefined"),
        ("x-kubernetes-validations", !clause.rules.is_empty(), "empty"),
    ]
}
