//! One broken rule, and the list that the rules write to.

use crate::finding::{Finding, Kind};
use crate::schema::Place;

/// A broken structural rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Place, kind and wording.
    pub finding: Finding,
    /// The whole line as the server writes it into the condition. It quotes types and patterns of the schema,
    /// and nothing else.
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
        let asked = detail.clone();
        self.0.push(Violation { finding: Finding::new(kind, field, detail).asking(asked), text });
    }

    pub(super) fn into_sorted(mut self) -> Vec<Violation> {
        self.0.sort_by(|a, b| a.text.cmp(&b.text));
        self.0
    }
}
