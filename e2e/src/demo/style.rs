//! Colour, where the reader can see it.

use std::env;
use std::io::IsTerminal;

/// Whether text is coloured. Colour never carries meaning that the text lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// Colour on a terminal that has some, unless `NO_COLOR` is set (<https://no-color.org>).
    pub fn of(output: &impl IsTerminal) -> Self {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        Self { colour: output.is_terminal() && !is_set("NO_COLOR") && !is_dumb }
    }

    /// No colour at all.
    pub const PLAIN: Self = Self { colour: false };

    /// A heading.
    pub(super) fn heading(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// What may be passed over.
    pub(super) fn aside(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// A value that the API shows and etcd does not hold.
    pub(super) fn phantom(self, text: &str) -> String {
        self.paint("1;33", text)
    }

    /// What is as it should be.
    pub(super) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// What is not.
    pub(super) fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
