//! ETCH306: patterns of texts.

use super::keywords::{present, text};
use super::pair::{Changes, LOOSENED, Pair, before};
use crate::rule::{Rule, Severity};
use crate::site::shown;

pub(super) const CHANGED: Rule = Rule {
    code: "ETCH306",
    name: "pattern-changed",
    severity: Severity::Error,
    summary: "an upgrade adds or changes a pattern",
    help: "\
A text that was valid may not match the new pattern, an empty one in particular. The API server refuses to
create such an object again, and every update that changes the field. A pattern that matches all texts which
the old enum, pattern, format and lengths allowed is not reported. For very long patterns this is not worked
out: record it with --exceptions.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let (old, new) = (text(pair.old, "pattern"), text(pair.new, "pattern"));
    if old == new {
        return;
    }
    match present(pair.new, "pattern").filter(|_| !new.is_empty()) {
        Some(_) if !pair.may_refuse(&["pattern"]) => {}
        Some(pattern) => {
            let before = before(present(pair.old, "pattern").filter(|_| !old.is_empty()));
            let message = format!("the pattern is {}; before, {before}", shown(pattern));
            changes.add(&CHANGED, pair.path.clone(), message);
        }
        None => changes.add(&LOOSENED, pair.path.clone(), "there is no pattern any more"),
    }
}
