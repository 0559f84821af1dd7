//! The first objects by name, which tables list.
//! It holds no more than is printed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use etch_core::object::Identity;

/// The first objects of some, and how many there are.
#[derive(Debug)]
pub struct Sample<T> {
    limit: Option<usize>,
    /// A document may be given twice, so that its name alone is no key.
    kept: BTreeMap<(Identity, u64), T>,
    all: u64,
}

impl<T> Sample<T> {
    /// An empty sample of at most so many.
    pub fn new(limit: Option<usize>) -> Self {
        Self { limit, kept: BTreeMap::new(), all: 0 }
    }

    /// Counts an object, and keeps it if it is among the first.
    pub fn add(&mut self, identity: Identity, item: T) {
        self.kept.insert((identity, self.all), item);
        self.all += 1;
        if self.limit.is_some_and(|limit| self.kept.len() > limit) {
            self.kept.pop_last();
        }
    }

    /// The first ones, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Identity, &T)> {
        self.kept.iter().map(|((identity, _), item)| (identity, item))
    }

    /// How many there are in all.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// How many there are beside the first ones.
    pub fn left(&self) -> u64 {
        self.all - self.kept.len() as u64
    }
}

impl<T> Default for Sample<T> {
    fn default() -> Self {
        Self::new(None)
    }
}

/// Prints below the named objects how many more there are; nothing if there are none.
///
/// # Errors
/// What the writer answers.
pub fn write_left(out: &mut dyn Write, left: u64) -> io::Result<()> {
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
}
