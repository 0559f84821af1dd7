//! ETCH104: defaults of structs that are never absent.

use serde_json::Value;

use super::site::{Report, Site};
use crate::rule::{Rule, Severity};
use crate::site::shown;

pub(super) const RULE: Rule = Rule {
    code: "ETCH104",
    name: "go-struct-default",
    severity: Severity::Warning,
    summary: "a struct field in Go has no pointer and a default other than {}",
    help: "\
Go always writes such a field, as `{}` if nothing is set, so the default never applies to objects from Go
clients: they get the defaults of the fields instead, and users of YAML get this one. KEP-1929 (Non-pointer
structs) forbids it.

Give the fields their defaults and the struct `{}`, or make the field a pointer.",
    check: None,
};

pub(super) fn check(site: &Site<'_>, report: &mut Report) {
    let is_absent = site.resolved.is_pointer || site.field.tag.as_ref().is_some_and(|tag| tag.omitzero);
    // What clients send as status is dropped before an object is stored, and the default applies after that.
    let is_dropped = site.is_spec_or_status() && site.field.json_name() == Some("status");
    if is_absent || is_dropped || !site.resolved.is_object() {
        return;
    }
    if let Some(value @ Value::Object(_)) = site.value()
        && value.as_object().is_some_and(|fields| !fields.is_empty())
    {
        let message = format!("the default is {}, but Go clients send {{}} if nothing is set", shown(&value));
        report.field(&RULE, site, message);
    }
}
