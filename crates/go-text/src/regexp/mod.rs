//! Regular expressions as the API server reads them: Go's `regexp` syntax, run by the engine of the `regex`
//! crate. That crate's own syntax accepts and refuses other patterns.
//!
//! The engine is the same kind of automaton as Go's and gives the same answers; the syntaxes differ, so
//! `parser` reads Go's and hands the engine a tree instead of a text. What differs, and is therefore decided
//! there:
//!
//! | | Go | `regex` crate |
//! |---|---|---|
//! | `\d` `\w` `\s` `\b` | ASCII; `\s` without `\v` | Unicode |
//! | `[a&&b]` `[a--b]` `[a[b]]` | literals | set operations |
//! | `{`, `a{,5}`, `a{x}` | literals | an error, or a repetition |
//! | `a**`, `a{2}{3}`, more than 1000 copies, nested ones multiplied | refused | accepted |
//! | `\12` `\07` | octal | refused |
//! | `\Q…\E` | literal text | refused |
//! | `\<` `\>` and other escaped punctuation | themselves | word boundaries, some refused |
//! | `\Z` `\C` `\u….` `(?x)` `\p{sc=…}` `\p{Alphabetic}` | refused | mostly accepted |
//! | `\p{greek}`, `\p{Old_Italic}` | any case; two-word scripts refused since Go 1.25 | both accepted |
//! | Unicode | 15.0 | 16.0 |
//! | `$` without `(?m)`, `\z` | end of text | end of text |
//!
//! Source: Go 1.26 `regexp/syntax/parse.go` with the flags of `regexp.Compile` (`syntax.Perl`).

mod class;
mod error;
mod parser;
#[cfg(test)]
mod tests;
mod texts;
mod unicode;

use std::ops::Range;

use regex_automata::meta;

pub use error::SyntaxError;
pub use texts::Texts;

/// Memory that one compiled pattern may take, in bytes. `\pL{1000}` is the largest a person has reason to
/// write.
const SIZE_LIMIT: usize = 64 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern(meta::Regex);

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Go refuses it as well.
    #[error(transparent)]
    Syntax(SyntaxError),
    /// Go accepts it, and here it would take more memory than a pattern may.
    #[error("the regular expression is too large")]
    TooLarge,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Where `regexp.Compile` returns one, with its text; or if the pattern is too large for this crate.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        let hir = parser::parse(pattern).map_err(PatternError::Syntax)?;
        let config = meta::Config::new().nfa_size_limit(Some(SIZE_LIMIT));
        meta::Regex::builder()
            .configure(config)
            .build_from_hir(&hir)
            .map(Self)
            .map_err(|_| PatternError::TooLarge)
    }

    /// Whether some part of the text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The parts of the text that match, from left to right and without overlap, as byte ranges.
    pub fn find_iter(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        self.0.find_iter(text).map(|part| part.range())
    }
}

/// Go's error text for a pattern that `regexp.Compile` refuses.
pub fn syntax_error(pattern: &str) -> Option<String> {
    parser::parse(pattern).err().map(|error| error.to_string())
}
