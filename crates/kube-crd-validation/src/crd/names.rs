//! `names`: plural, singular, kinds, short names and categories. Which of them are required is decided
//! elsewhere: that differs between `spec` and `status`.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `ValidateCustomResourceDefinitionNames`.

use super::document::Names;
use super::report::Report;
use crate::metadata::names::{dns_1035_label, small};

const MIXED_CASE: &str = "may have mixed case, but should otherwise match: ";

pub(super) fn check(names: &Names<'_>, at: &str, report: &mut Report) {
    let mut label = |field: String, text: &str, before: &str| {
        if !text.is_empty() || field.ends_with(']') {
            let text = if before.is_empty() { text.to_owned() } else { small(text) };
            report.malformed(field, before, &dns_1035_label(&text));
        }
    };
    label(format!("{at}.plural"), names.plural, "");
    label(format!("{at}.singular"), &names.singular, "");
    label(format!("{at}.kind"), names.kind, MIXED_CASE);
    label(format!("{at}.listKind"), &names.list_kind, MIXED_CASE);
    for (index, name) in names.short.iter().enumerate() {
        label(format!("{at}.shortNames[{index}]"), name, "");
    }
    for (index, name) in names.categories.iter().enumerate() {
        label(format!("{at}.categories[{index}]"), name, "");
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        report.invalid(format!("{at}.listKind"), "kind and listKind may not be the same");
    }
}
