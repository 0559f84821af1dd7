//! What going through texts costs.
//!
//! Source: cel-go `common/cost.go`.

use super::range::Range;

/// A character of a text, and one of a regular expression.
pub(super) const CHARACTER: f64 = 0.1;
pub(super) const REGEX_CHARACTER: f64 = 0.25;

/// A regular expression on a text; even an empty text is looked at.
pub(super) fn search(text: Range, pattern: Range) -> Range {
    text.plus(Range::fixed(1)).scaled(CHARACTER).times(pattern.scaled(REGEX_CHARACTER))
}
