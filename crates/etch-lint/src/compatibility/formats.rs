//! ETCH307: formats of texts and numbers, as far as the API server checks them.

use serde_json::Value;

use super::keywords::{is_set, text};
use super::pair::{Changes, LOOSENED, Pair};
use crate::rule::{Rule, Severity};
use crate::site::is_known_format;

pub(super) const CHANGED: Rule = Rule {
    code: "ETCH307",
    name: "format-changed",
    severity: Severity::Error,
    summary: "an upgrade adds or changes a format that the API server checks",
    help: "\
A value that was valid may not be of the new format, an empty text in particular. The API server refuses to
create such an object again, and every update that changes the field. It ignores formats that it does not know
(ETCH404), and so does this rule. A format of numbers refuses nothing where minimum and maximum were as narrow
before.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let is_text = text(pair.declared, "type") == "string"
        || !pair.is_in_clause() && is_set(pair.new, "x-kubernetes-int-or-string");
    let [old, new] = [pair.old, pair.new].map(|schema| checked(schema, is_text));
    // Dashes do not count.
    if old.replace('-', "") == new.replace('-', "") {
        return;
    }
    let (rule, message): (&'static Rule, _) = match (old, new) {
        (old, "") | (old @ "int32", "int64") | (old @ "float", "double") => {
            (&LOOSENED, format!("the format {old} is not checked any more"))
        }
        // All integers that are stored fit these.
        ("", "int64" | "double") => return,
        _ if !pair.may_refuse(&["format"]) => return,
        ("", new) => (&CHANGED, format!("the format is {new}; before, there was none")),
        (old, new) => (&CHANGED, format!("the format is {new}; before, it was {old}")),
    };
    changes.add(rule, pair.path.clone(), message);
}

/// The format, if the server checks it. Any text is a password; no number is one, where no type is beside it.
fn checked(schema: &Value, is_text: bool) -> &str {
    let format = text(schema, "format");
    match format {
        "password" if is_text => "",
        format if is_known_format(text(schema, "type"), format) => format,
        _ => "",
    }
}
