//! Why an expression has no value. The evaluator decides what follows: `&&` and `||` may still have one.

use std::borrow::Cow;
use std::fmt;

/// An error of evaluation, or the end of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// No function takes arguments of these types. Only values that the compiler saw as `dyn` come here.
    NoOverload,
    /// No overload, where the server names the function, or how it was called.
    NoOverloadOf(Box<str>),
    /// Anything else that `&&` and `||` may absorb: no such key, division by zero, …
    Failed(Failure),
    /// The expression used up what one may cost; nothing absorbs it.
    TooExpensive,
    /// Upstream's own code panics here, and its rescue ends the expression; nothing absorbs it.
    Internal(Cow<'static, str>),
}

/// An error in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Without values: it may be shown anywhere.
    pub(super) plain: Cow<'static, str>,
    /// As the server words it, where that quotes values.
    quoted: Option<Box<str>>,
    /// A value does not fit its schema.
    misfit: bool,
}

/// A value, or why there is none.
pub(super) type Outcome<T> = Result<T, Fault>;

impl Fault {
    /// Whether the whole expression ends with it.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::TooExpensive | Self::Internal(_))
    }

    /// An error with a text of its own.
    pub(super) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(Failure { plain: text.into(), quoted: None, misfit: false })
    }

    /// A value does not fit its schema.
    pub(super) fn misfit(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(Failure { plain: text.into(), quoted: None, misfit: true })
    }

    /// Whether it is because a value does not fit its schema.
    pub(super) fn is_misfit(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.misfit)
    }

    /// An error with a fixed text.
    pub(super) const fn fixed(text: &'static str) -> Self {
        Self::Failed(Failure { plain: Cow::Borrowed(text), quoted: None, misfit: false })
    }

    /// An error whose words in the server quote values; `plain` does not.
    pub(super) fn quoting(plain: &'static str, quoted: impl Into<Box<str>>) -> Self {
        Self::Failed(Failure { plain: Cow::Borrowed(plain), quoted: Some(quoted.into()), misfit: false })
    }
}

/// In the server's words, which may quote values.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoOverload => "no such overload",
            Self::NoOverloadOf(call) => return write!(f, "no such overload: {call}"),
            Self::Failed(failure) => failure.quoted.as_deref().unwrap_or(&failure.plain),
            Self::TooExpensive => "operation cancelled: actual cost limit exceeded",
            Self::Internal(panic) => return write!(f, "internal error: {panic}"),
        })
    }
}
