//! The first objects by name, which tables list.
//! It holds no more than is printed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Args;
use etch_core::object::Identity;

use super::global::Output;

/// How many objects a table lists by default.
const LIMIT: usize = 10;

/// How many objects are named.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LimitArg {
    /// List at most this many objects of each CRD in a table; 0 lists all. JSON and YAML always list all
    #[arg(long, value_name = "NUMBER", default_value_t = LIMIT)]
    limit: usize,
}

impl LimitArg {
    /// The limit for an output format; `None` if it names all.
    pub(crate) fn of(self, output: Output) -> Option<usize> {
        Some(self.limit).filter(|limit| output == Output::Table && *limit > 0)
    }

    /// The flag as typed; `None` for the default.
    pub(crate) fn word(self) -> Option<String> {
        (self.limit != LIMIT).then(|| format!("--limit={}", self.limit))
    }
}

/// The first objects of some, and how many there are.
pub(crate) struct Sample<T> {
    limit: Option<usize>,
    /// A document may be given twice, so that its name alone is no key.
    kept: BTreeMap<(Identity, u64), T>,
    all: u64,
}

impl<T> Sample<T> {
    /// An empty sample of at most so many.
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self { limit, kept: BTreeMap::new(), all: 0 }
    }

    /// Counts an object, and keeps it if it is among the first.
    pub(crate) fn add(&mut self, identity: Identity, item: T) {
        self.kept.insert((identity, self.all), item);
        self.all += 1;
        if self.limit.is_some_and(|limit| self.kept.len() > limit) {
            self.kept.pop_last();
        }
    }

    /// The first ones, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Identity, &T)> {
        self.kept.iter().map(|((identity, _), item)| (identity, item))
    }

    /// How many there are in all.
    pub(crate) fn all(&self) -> u64 {
        self.all
    }

    /// How many there are beside the first ones.
    pub(crate) fn left(&self) -> u64 {
        self.all - self.kept.len() as u64
    }
}

impl<T> Default for Sample<T> {
    fn default() -> Self {
        Self::new(None)
    }
}

/// Prints below the named objects how many more there are; nothing if there are none.
pub(crate) fn write_left(out: &mut dyn Write, left: u64) -> io::Result<()> {
    if left == 0 { Ok(()) } else { writeln!(out, "and {left} more; --limit 0 lists all") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Identity {
        Identity { namespace: None, name: name.to_owned(), uid: String::new() }
    }

    fn names(sample: &Sample<()>) -> Vec<&str> {
        sample.iter().map(|(identity, ())| identity.name.as_str()).collect()
    }

    #[test]
    fn the_first_by_name_are_kept_and_the_rest_counted() {
        let (mut some, mut all) = (Sample::new(Some(2)), Sample::new(None));
        for name in ["c", "a", "d", "b", "a"] {
            some.add(named(name), ());
            all.add(named(name), ());
        }
        assert_eq!((names(&some), names(&all)), (vec!["a", "a"], vec!["a", "a", "b", "c", "d"]));
        assert_eq!((some.all(), some.left(), all.left()), (5, 3, 0));
        let mut out = Vec::new();
        write_left(&mut out, 0).expect("memory");
        assert!(out.is_empty());
        write_left(&mut out, 3).expect("memory");
        assert_eq!(String::from_utf8_lossy(&out), "and 3 more; --limit 0 lists all\n");
    }

    #[test]
    fn only_a_table_is_limited() {
        let of = |limit, output| LimitArg { limit }.of(output);
        assert_eq!((of(3, Output::Table), of(0, Output::Table), of(3, Output::Json)), (Some(3), None, None));
    }
}
