//! The objects that are not written whatever they lack: not selected, ignored by their annotation, or being
//! deleted. It holds no more of one than a hash, apart from the names of the first.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::object::Identity;
use crate::object_state::Skipped;
use crate::plan::Skip;

/// How many objects are remembered by name: of those that are skipped, of those that are due, and of those
/// that have a problem and are tried again.
pub const REMEMBERED: usize = 1000;

/// All objects that are not written whatever they lack.
#[derive(Clone, Debug, Default)]
pub struct SkippedObjects {
    all: HashMap<u64, Skipped>,
    /// The first of them.
    named: BTreeMap<Identity, Skipped>,
    /// How many may lack a default.
    lacking: u64,
}

impl SkippedObjects {
    /// Adds one that was not known before.
    pub fn insert(&mut self, identity: Identity, skipped: Skipped) {
        self.lacking += u64::from(skipped.lacks);
        self.all.insert(hash(&identity), skipped);
        // One that is not selected is named nowhere.
        if skipped.why == Skip::NotSelected {
            return;
        }
        // An unclear annotation is rare, and a user must see it.
        if self.named.len() < REMEMBERED
            || skipped.why == Skip::IgnoredUnclear && self.named.len() < 2 * REMEMBERED
        {
            self.named.insert(identity, skipped);
        }
    }

    /// What is known about one; `None` if it is not skipped.
    pub fn get(&self, identity: &Identity) -> Option<Skipped> {
        self.all.get(&hash(identity)).copied()
    }

    /// Takes one out; returns what was known about it, if it was there.
    pub fn remove(&mut self, identity: &Identity) -> Option<Skipped> {
        let skipped = self.all.remove(&hash(identity))?;
        self.lacking -= u64::from(skipped.lacks);
        self.named.remove(identity);
        Some(skipped)
    }

    /// How many may lack a default in etcd.
    pub fn lacking(&self) -> u64 {
        self.lacking
    }

    /// The first that are skipped for this reason, in order, and whether each may lack a default.
    pub fn named(&self, why: Skip) -> impl Iterator<Item = (&Identity, Skipped)> {
        let named = self.named.iter().filter(move |(_, skipped)| skipped.why == why);
        named.map(|(identity, skipped)| (identity, *skipped))
    }

    /// How many are skipped for this reason.
    pub fn count(&self, why: Skip) -> u64 {
        self.all.values().filter(|skipped| skipped.why == why).count() as u64
    }

    /// How many are skipped for this reason and may lack a default.
    pub fn lacking_for(&self, why: Skip) -> u64 {
        let lacking = self.all.values().filter(|skipped| skipped.why == why && skipped.lacks);
        lacking.count() as u64
    }
}

fn hash(identity: &Identity) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity.uid.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_state::ObjectState;
    use crate::plan::{Held, Hold};
    use crate::report::tally::Tally;
    use kube_structural_schema::path::Path;

    fn of(name: &str) -> Identity {
        Identity { namespace: Some("ns".to_owned()), name: name.to_owned(), uid: format!("uid-{name}") }
    }

    fn skipped(why: Skip, lacks: bool) -> ObjectState {
        ObjectState::Skipped(Skipped { why, lacks })
    }

    /// Objects, stored, ignored, terminating, held, and those that may lack a default.
    fn numbers(tally: &Tally) -> [u64; 6] {
        let counts = tally.counts();
        let stored = counts.already_stored + counts.written;
        [counts.objects, stored, counts.ignored, counts.terminating, counts.held, tally.phantoms()]
    }

    #[test]
    fn skipped_objects_have_numbers_of_their_own_and_are_never_stored() {
        let mut tally = Tally::default();
        tally.add(of("a"), skipped(Skip::Ignored, true), &[]);
        tally.add(of("b"), skipped(Skip::Ignored, false), &[]);
        tally.add(of("c"), skipped(Skip::Terminating, true), &[]);
        tally.add(of("d"), ObjectState::Stored, &[]);
        tally.add(of("e"), ObjectState::Gone, &[]);
        assert_eq!(numbers(&tally), [4, 1, 2, 1, 0, 2]);
        assert_eq!(tally.skipped().lacking_for(Skip::Ignored), 1);
        let named: Vec<_> = tally.skipped().named(Skip::Ignored).collect();
        let ((first, skipped), problem) = (named[0], named[0].1.problem());
        assert_eq!((first.name.as_str(), skipped.lacks, problem.reason), ("a", true, "Ignored"));
        assert!(problem.message.contains("etch-operator.io/ignore") && named.len() == 2, "{named:?}");
    }

    #[test]
    fn what_the_watch_shows_of_an_object_that_had_gone_when_it_was_counted_changes_no_number() {
        let mut tally = Tally::default();
        tally.add(of("a"), ObjectState::Written { resource_version: "9".to_owned() }, &[]);
        tally.add(of("b"), ObjectState::Gone, &[]);
        let one_written = [1, 1, 0, 0, 0, 0];
        assert!(!tally.update(&of("b"), skipped(Skip::Ignored, false), &[]));
        assert_eq!(numbers(&tally), one_written, "it is shown as it was before it went");
        assert!(!tally.deleted(&of("b")));
        assert_eq!(numbers(&tally), one_written);
    }

    #[test]
    fn an_object_that_changes_its_state_while_it_is_watched_is_counted_once() {
        let mut tally = Tally::default();
        tally.add(of("a"), ObjectState::Stored, &[]);
        tally.add(of("b"), ObjectState::Written { resource_version: "9".to_owned() }, &[]);
        let steps = [
            (skipped(Skip::Ignored, true), true, [2, 1, 1, 0, 0, 1]),
            (skipped(Skip::Ignored, true), false, [2, 1, 1, 0, 0, 1]),
            (skipped(Skip::Ignored, false), true, [2, 1, 1, 0, 0, 0]),
            (ObjectState::Stored, true, [2, 2, 0, 0, 0, 0]),
            (skipped(Skip::Ignored, true), true, [2, 1, 1, 0, 0, 1]),
            (ObjectState::Unknown, true, [2, 1, 0, 0, 0, 1]),
            (skipped(Skip::Ignored, true), true, [2, 1, 1, 0, 0, 1]),
            (ObjectState::Held(Held::new(Hold::HiddenFields, vec![Path::root()])), true, [2, 1, 0, 0, 1, 1]),
            (skipped(Skip::Terminating, true), true, [2, 1, 0, 1, 0, 1]),
            (ObjectState::Gone, false, [2, 1, 0, 1, 0, 1]),
        ];
        for (index, (state, is_news, expected)) in steps.into_iter().enumerate() {
            assert_eq!(tally.update(&of("a"), state, &[]), is_news, "step {index}");
            assert_eq!(numbers(&tally), expected, "step {index}");
        }
        assert!(tally.deleted(&of("a")));
        assert_eq!(numbers(&tally), [1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn objects_that_come_and_go_are_counted() {
        let mut tally = Tally::default();
        tally.add(of("a"), ObjectState::Stored, &[]);
        assert!(tally.created(&of("b"), skipped(Skip::Ignored, true), &[]));
        assert!(!tally.created(&of("c"), ObjectState::Stored, &[]));
        assert!(!tally.created(&of("d"), ObjectState::Gone, &[]));
        assert_eq!(numbers(&tally), [3, 2, 1, 0, 0, 1]);
        assert!(tally.deleted(&of("b")));
        assert!(!tally.deleted(&of("c")));
        assert_eq!(numbers(&tally), [1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn more_are_counted_than_are_named() {
        let mut tally = Tally::default();
        for index in 0..REMEMBERED + 3 {
            tally.add(of(&format!("{index:05}")), skipped(Skip::Ignored, true), &[]);
        }
        assert_eq!(tally.skipped().named(Skip::Ignored).count(), REMEMBERED);
        for index in 0..REMEMBERED + 3 {
            assert!(tally.deleted(&of(&format!("{index:05}"))));
        }
        assert_eq!(numbers(&tally), [0; 6]);
    }
}
