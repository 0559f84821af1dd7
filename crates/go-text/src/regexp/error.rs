//! Go's error for a pattern that it refuses.

/// Go's `syntax.Error`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{expression}`")]
pub struct SyntaxError {
    code: &'static str,
    expression: String,
}

pub(super) fn error(code: &'static str, expression: &str) -> SyntaxError {
    SyntaxError { code, expression: expression.to_owned() }
}
