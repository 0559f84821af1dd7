//! ETCH102: `omitempty` that omits nothing.

use super::site::{Report, Site};
use crate::rule::{Rule, Severity};

pub(super) const RULE: Rule = Rule {
    code: "ETCH102",
    name: "go-omitempty-struct",
    severity: Severity::Warning,
    summary: "a struct field in Go has omitempty and no pointer",
    help: "\
Go's encoder never omits a struct: it writes the field as `{}`, with or without omitempty. The generated
schema makes the field optional, so users of YAML omit it, while Go clients send an object that must be
complete and gets the defaults of its fields. KEP-1929 (Changes to kubebuilder/default-gen) forbids omitempty
on such fields.

If the field may be absent, make it a pointer or, from Go 1.24 on, use `omitzero`; or remove omitempty and
give it `default: {}`. Not reported are metadata, and spec and status of whole objects, which every client
sends.",
    check: None,
};

pub(super) fn check(site: &Site<'_>, report: &mut Report) {
    let is_struct = site.resolved.is_object() && !site.resolved.is_pointer;
    let omits = site.field.tag.as_ref().is_some_and(|tag| tag.omitempty && !tag.omitzero);
    if is_struct && omits && !site.is_spec_or_status() && site.field.json_name() != Some("metadata") {
        report.field(&RULE, site, "omitempty does not omit a struct: Go clients send {} if it is not set");
    }
}
