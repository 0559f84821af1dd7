//! ETCH101: defaults that a Go client never asks for.

use super::site::{Report, Site};
use crate::domain::go::Shape;
use crate::domain::lint::rule::{Rule, Severity};
use crate::domain::lint::site::{is_zero, shown};

pub(super) const RULE: Rule = Rule {
    code: "ETCH101",
    name: "go-unset-scalar",
    severity: Severity::Warning,
    summary: "a scalar field in Go has a default other than its zero value, and neither a pointer nor omitempty",
    help: "\
Go always writes such a field: an unset one as its zero value. A CRD's default does not replace a value that is present, so
Go clients never get the default, and users of YAML do; for built-in types the default replaces a zero that somebody set on
purpose. KEP-1929 (Non-pointer scalar fields) requires omitempty unless the default is the zero value.

Add `omitempty` to the json tag. If users must be able to set the zero value as well, make the field a pointer.",
    check: None,
};

pub(super) fn check(site: &Site<'_>, report: &mut Report) {
    let is_scalar = matches!(site.resolved.shape, Shape::Text | Shape::Bool | Shape::Integer | Shape::Float);
    if !is_scalar || site.resolved.is_pointer || site.field.omits_empty() {
        return;
    }
    if let Some(value) = site.value().filter(|value| !is_zero(value)) {
        let message = format!(
            "the default is {}, but Go clients send the zero value if they do not set the field: it has no omitempty",
            shown(&value)
        );
        report.field(&RULE, site, message);
    }
}
