//! The first objects, by their names, of however many there are: what a table names.
//! It must not hold more than is printed.

use std::collections::BTreeMap;

use clap::Args;
use etch::domain::object::Identity;

use super::global::Output;

/// How many objects a table names, unless another number is asked for: a screen of them.
const LIMIT: usize = 10;

/// How many objects are named.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LimitArg {
    /// Name at most this many objects of each CRD in a table; 0 names all. JSON and YAML always name all
    #[arg(long, value_name = "NUMBER", default_value_t = LIMIT)]
    limit: usize,
}

impl LimitArg {
    /// The limit for a way of printing; none where all are named.
    pub(crate) fn of(self, output: Output) -> Option<usize> {
        Some(self.limit).filter(|limit| output == Output::Table && *limit > 0)
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

    /// Takes an object in, if it is among the first.
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

    /// What is said below the first ones; nothing where there are no others.
    pub(crate) fn rest(&self) -> Option<String> {
        let rest = self.all - self.kept.len() as u64;
        (rest > 0).then(|| format!("and {rest} more; --limit 0 names all"))
    }
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
        assert_eq!((some.all(), some.rest().as_deref()), (5, Some("and 3 more; --limit 0 names all")));
        assert_eq!(all.rest(), None);
        let mut three = Sample::new(Some(2));
        for name in ["a", "b", "c"] {
            three.add(named(name), ());
        }
        assert_eq!(three.rest().as_deref(), Some("and 1 more; --limit 0 names all"));
    }

    #[test]
    fn only_a_table_is_limited() {
        let of = |limit, output| LimitArg { limit }.of(output);
        assert_eq!((of(3, Output::Table), of(0, Output::Table), of(3, Output::Json)), (Some(3), None, None));
    }
}
