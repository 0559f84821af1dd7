//! ETCH306: patterns of texts.

use super::pair::{Changes, LOOSENED, Pair, before, present, text};
use crate::rule::{Rule, Severity};
use crate::site::shown;

pub(super) const CHANGED: Rule = Rule {
    code: "ETCH306",
    name: "pattern-changed",
    severity: Severity::Error,
    summary: "an upgrade adds or changes a pattern",
    help: "\
A text that was valid may not match the new pattern, an empty one in particular. The API server refuses to create such an object
again, and every update that changes the field. Whether one pattern allows all that another does is not worked out: if the new
one does, record that with --exceptions.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let (old, new) = (text(pair.old, "pattern"), text(pair.new, "pattern"));
    if old == new {
        return;
    }
    match present(pair.new, "pattern").filter(|_| !new.is_empty()) {
        Some(pattern) => {
            let before = before(present(pair.old, "pattern").filter(|_| !old.is_empty()));
            let message = format!("the pattern is {}; before, {before}", shown(pattern));
            changes.add(&CHANGED, pair.path.clone(), message);
        }
        None => changes.add(&LOOSENED, pair.path.clone(), "there is no pattern any more"),
    }
}
