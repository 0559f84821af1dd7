//! ETCH301 and ETCH318: changes of a type.

use super::keywords::{is_set, keeps_unknown, property, text};
use super::pair::{Changes, Pair};
use crate::rule::{Rule, Severity};

pub(super) const CHANGED: Rule = Rule {
    code: "ETCH301",
    name: "type-changed",
    severity: Severity::Error,
    summary: "an upgrade changes the type of a field",
    help: "\
Values of the old type are invalid under the new schema. The API server refuses to create such an object
again, for example from a backup or from a manifest, and every update that changes the field; server-side
apply loses the owners of an object that does not fit its schema.

Add a field with another name instead, or a new version with a conversion webhook.",
    check: None,
};

pub(super) const WIDENED: Rule = Rule {
    code: "ETCH318",
    name: "type-widened",
    severity: Severity::Warning,
    summary: "an upgrade allows further types for a field",
    help: "\
Objects that were valid stay valid, but a client of the old release may fail to decode a value of a type that
it does not know: a Go client that reads an integer fails on 1.5 and on a string, and with it fails every list
that contains the object.",
    check: None,
};

/// What a field may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form<'a> {
    IntOrString,
    Any,
    Type(&'a str),
}

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    if pair.is_in_clause() {
        return;
    }
    let (old, new) = (form(pair.old), form(pair.new));
    if old != new {
        let widens = match (old, new) {
            (Form::Type("integer"), Form::Type("number") | Form::IntOrString)
            | (Form::Type("string"), Form::IntOrString) => true,
            (_, Form::Any) => keeps_unknown(pair.new),
            _ => false,
        };
        let rule = if widens { &WIDENED } else { &CHANGED };
        changes.add(
            rule,
            pair.path.clone(),
            format!("the type was {} and is {}", in_words(old), in_words(new)),
        );
    }
    embedded(pair, changes);
}

/// An embedded resource needs `apiVersion` and `kind`; another object drops them where they are not declared.
fn embedded(pair: &Pair<'_>, changes: &mut Changes) {
    let is = |schema| is_set(schema, "x-kubernetes-embedded-resource");
    let message = match (is(pair.old), is(pair.new)) {
        (false, true) => {
            "the object must be a whole resource now (x-kubernetes-embedded-resource), with apiVersion, kind \
             and valid metadata"
        }
        (true, false)
            if !keeps_unknown(pair.new)
                && ["apiVersion", "kind", "metadata"]
                    .iter()
                    .any(|name| property(pair.new, name).is_none()) =>
        {
            "the object is no longer a resource (x-kubernetes-embedded-resource): apiVersion, kind and \
             metadata are dropped"
        }
        _ => return,
    };
    changes.add(&CHANGED, pair.path.clone(), message);
}

fn form(schema: &serde_json::Value) -> Form<'_> {
    match text(schema, "type") {
        _ if is_set(schema, "x-kubernetes-int-or-string") => Form::IntOrString,
        "" => Form::Any,
        kind => Form::Type(kind),
    }
}

fn in_words(form: Form<'_>) -> &str {
    match form {
        Form::IntOrString => "integer or string",
        Form::Any => "any type",
        Form::Type(kind) => kind,
    }
}
