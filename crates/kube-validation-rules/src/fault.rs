//! Why an expression has no value.
//! It must not decide what becomes of that: `&&` and `||` may still have one.

use std::borrow::Cow;
use std::fmt;

/// An error of evaluation, or the end of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No function takes arguments of these types. Only values that the compiler saw as `dyn` come here.
    NoOverload,
    /// Anything else that `&&` and `||` may absorb: no such key, division by zero, …
    Failed(Cow<'static, str>),
    /// The expression used up what one may cost; nothing absorbs it.
    TooExpensive,
    /// Upstream's own code panics here, and its rescue ends the expression; nothing absorbs it.
    Internal,
}

/// A value, or why there is none.
pub(super) type Outcome<T> = Result<T, Fault>;

impl Fault {
    /// Whether the whole expression ends with it.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::TooExpensive | Self::Internal)
    }

    /// An error with a text of its own.
    pub(super) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(text.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoOverload => "no such overload",
            Self::Failed(text) => text,
            Self::TooExpensive => "operation cancelled: actual cost limit exceeded",
            Self::Internal => "internal error",
        })
    }
}
