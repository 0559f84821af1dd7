//! Go's error for a pattern that it refuses.

use std::fmt;

/// Go's `syntax.Error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    code: &'static str,
    expression: String,
}

pub(super) fn error(code: &'static str, expression: &str) -> SyntaxError {
    SyntaxError { code, expression: expression.to_owned() }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error parsing regexp: {}: `{}`", self.code, self.expression)
    }
}
