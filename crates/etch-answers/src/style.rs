//! What the output can show.
//! The caller passes the environment.

use std::fmt;

/// How output for people looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether text has colours.
    pub color: bool,
    /// How many characters fit on a line; `None` if there is no limit, as in a file.
    pub width: Option<usize>,
}

/// What a text is about, as far as its colour shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// A head or a name.
    Strong,
    /// What can be skipped.
    Faint,
    /// Good.
    Good,
    /// Something to look at.
    Warning,
    /// Something is wrong.
    Bad,
}

impl Style {
    /// A text in its colour, where there are colours.
    pub fn paint<T: fmt::Display>(&self, tone: Tone, text: T) -> impl fmt::Display {
        Painted { text, code: Some(tone.code()).filter(|_| self.color && tone != Tone::Plain) }
    }
}

impl Tone {
    /// The parameters of `SGR`. Only the colours that every terminal lets its user choose.
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31",
        }
    }
}

struct Painted<T> {
    text: T,
    code: Option<&'static str>,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "\u{1b}[{code}m{}\u{1b}[0m", self.text),
            None => self.text.fmt(f),
        }
    }
}
