//! One broken rule, and the list that the rules write to.
//! It must not know the rules.

use crate::domain::finding::{Finding, Kind};
use crate::domain::schema::Place;

/// A broken structural rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Place, kind and wording.
    pub finding: Finding,
    /// The whole line as the server writes it into the condition. It quotes types and patterns of the schema, and nothing
    /// else.
    pub text: String,
}

/// Collects violations.
#[derive(Default)]
pub(super) struct Report(Vec<Violation>);

impl Report {
    pub(super) fn required(&mut self, at: &Place<'_>, detail: impl Into<String>) {
        self.add(Kind::Required, at, "Required value", detail.into());
    }

    pub(super) fn forbidden(&mut self, at: &Place<'_>, detail: impl Into<String>) {
        self.add(Kind::Forbidden, at, "Forbidden", detail.into());
    }

    /// `value` is as the server shows it: texts in quotes.
    pub(super) fn invalid(&mut self, at: &Place<'_>, value: &str, detail: impl Into<String>) {
        self.add(Kind::Invalid, at, &format!("Invalid value: {value}"), detail.into());
    }

    fn add(&mut self, kind: Kind, at: &Place<'_>, problem: &str, detail: String) {
        let field = at.to_string();
        let text = format!("{field}: {problem}: {detail}");
        self.0.push(Violation { finding: Finding { field, kind, detail }, text });
    }

    pub(super) fn into_sorted(mut self) -> Vec<Violation> {
        self.0.sort_by(|a, b| a.text.cmp(&b.text));
        self.0
    }
}

/// A text in quotes, as Go's `%q` writes it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            ' '..='~' => out.push(c),
            '\0'..='\u{7f}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ if c.escape_debug().len() == 1 => out.push(c),
            '\u{80}'..='\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}
