//! The objects that are not written whatever they lack: ignored by their annotation, or being deleted.
//! It must not hold more of one than a hash, apart from the names of the first.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::api::{Counts, ObjectProblem};
use crate::controller::state::tally::REMEMBERED;
use crate::domain::object::{IGNORE_ANNOTATION, Identity};
use crate::domain::plan::Skip;

/// Why one object is not written, and whether that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controller) struct Skipped {
    pub(in crate::controller) why: Skip,
    /// Whether etcd lacks a default of it, or may.
    pub(in crate::controller) lacks: bool,
}

/// All objects that are not written whatever they lack.
#[derive(Clone, Debug, Default)]
pub(in crate::controller) struct SkippedObjects {
    all: HashMap<u64, Skipped>,
    /// The first of them.
    named: BTreeMap<Identity, Skipped>,
    /// How many may lack a default.
    lacking: u64,
}

impl SkippedObjects {
    /// Adds one that was not known before, and counts it.
    pub(in crate::controller) fn insert(
        &mut self,
        identity: Identity,
        skipped: Skipped,
        counts: &mut Counts,
    ) {
        *count(counts, skipped.why) += 1;
        self.lacking += u64::from(skipped.lacks);
        self.all.insert(hash(&identity), skipped);
        if self.named.len() < REMEMBERED {
            self.named.insert(identity, skipped);
        }
    }

    /// What is known of one; none if it is not skipped.
    pub(in crate::controller) fn get(&self, identity: &Identity) -> Option<Skipped> {
        self.all.get(&hash(identity)).copied()
    }

    /// Takes one out, and out of the counts; whether it was there.
    pub(in crate::controller) fn remove(&mut self, identity: &Identity, counts: &mut Counts) -> bool {
        let Some(skipped) = self.all.remove(&hash(identity)) else { return false };
        *count(counts, skipped.why) -= 1;
        self.lacking -= u64::from(skipped.lacks);
        self.named.remove(identity);
        true
    }

    /// How many may lack a default in etcd.
    pub(in crate::controller) fn lacking(&self) -> u64 {
        self.lacking
    }

    /// The first that are skipped for this reason, in order, and whether each may lack a default.
    pub(in crate::controller) fn named(&self, why: Skip) -> impl Iterator<Item = (&Identity, bool)> {
        let named = self.named.iter().filter(move |(_, skipped)| skipped.why == why);
        named.map(|(identity, skipped)| (identity, skipped.lacks))
    }

    /// How many are skipped for this reason and may lack a default.
    pub(in crate::controller) fn lacking_for(&self, why: Skip) -> u64 {
        let lacking = self.all.values().filter(|skipped| skipped.why == why && skipped.lacks);
        lacking.count() as u64
    }

    /// The first that are skipped for this reason, as the report has them.
    pub(in crate::controller) fn describe(&self, why: Skip) -> impl Iterator<Item = ObjectProblem> {
        self.named(why).map(move |(identity, lacks)| describe(identity, why, lacks))
    }
}

fn describe(identity: &Identity, why: Skip, lacks: bool) -> ObjectProblem {
    let (reason, why) = match why {
        Skip::Ignored => {
            ("Ignored", format!("its annotation {IGNORE_ANNOTATION} asks Etch to leave it alone"))
        }
        Skip::Terminating => ("Terminating", "it is being deleted, and Etch leaves it alone".to_owned()),
    };
    let message = match lacks {
        true => format!("{why}; its defaults are not stored, as far as is known"),
        false => format!("{why}; it lacks no default"),
    };
    ObjectProblem {
        namespace: identity.namespace.clone(),
        name: identity.name.clone(),
        uid: identity.uid.clone(),
        reason: reason.to_owned(),
        message,
        paths: Vec::new(),
    }
}

fn count(counts: &mut Counts, why: Skip) -> &mut u64 {
    match why {
        Skip::Ignored => &mut counts.ignored,
        Skip::Terminating => &mut counts.terminating,
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
    use crate::controller::state::tally::{Fate, Tally};
    use crate::domain::path::Path;
    use crate::domain::plan::{Held, Hold};

    fn of(name: &str) -> Identity {
        Identity { namespace: Some("ns".to_owned()), name: name.to_owned(), uid: format!("uid-{name}") }
    }

    fn skipped(why: Skip, lacks: bool) -> Fate {
        Fate::Skipped(Skipped { why, lacks })
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
        tally.add(of("d"), Fate::Stored, &[]);
        tally.add(of("e"), Fate::Gone, &[]);
        assert_eq!(numbers(&tally), [4, 1, 2, 1, 0, 2]);
        assert_eq!(tally.skipped().lacking_for(Skip::Ignored), 1);
        let told: Vec<_> = tally.skipped().describe(Skip::Ignored).collect();
        assert_eq!((told[0].name.as_str(), told[0].reason.as_str()), ("a", "Ignored"));
        assert!(told[0].message.contains("etch-operator.io/ignore") && told.len() == 2, "{told:?}");
    }

    #[test]
    fn an_object_that_changes_its_state_while_it_is_watched_is_counted_once() {
        let mut tally = Tally::default();
        tally.add(of("a"), Fate::Stored, &[]);
        tally.add(of("b"), Fate::Written("9".to_owned()), &[]);
        let steps = [
            (skipped(Skip::Ignored, true), true, [2, 1, 1, 0, 0, 1]),
            (skipped(Skip::Ignored, true), false, [2, 1, 1, 0, 0, 1]),
            (skipped(Skip::Ignored, false), true, [2, 1, 1, 0, 0, 0]),
            (Fate::Stored, true, [2, 2, 0, 0, 0, 0]),
            (skipped(Skip::Ignored, true), true, [2, 1, 1, 0, 0, 1]),
            (Fate::Unknown, true, [2, 1, 0, 0, 0, 1]),
            (skipped(Skip::Ignored, true), true, [2, 1, 1, 0, 0, 1]),
            (Fate::Held(Held::new(Hold::HiddenFields, vec![Path::root()])), true, [2, 1, 0, 0, 1, 1]),
            (skipped(Skip::Terminating, true), true, [2, 1, 0, 1, 0, 1]),
            (Fate::Gone, false, [2, 1, 0, 1, 0, 1]),
        ];
        for (index, (fate, is_news, expected)) in steps.into_iter().enumerate() {
            assert_eq!(tally.settle(&of("a"), fate, &[]), is_news, "step {index}");
            assert_eq!(numbers(&tally), expected, "step {index}");
        }
        assert!(tally.deleted(&of("a")));
        assert_eq!(numbers(&tally), [1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn objects_that_come_and_go_are_counted() {
        let mut tally = Tally::default();
        tally.add(of("a"), Fate::Stored, &[]);
        assert!(tally.created(&of("b"), skipped(Skip::Ignored, true), &[]));
        assert!(!tally.created(&of("c"), Fate::Stored, &[]));
        assert!(!tally.created(&of("d"), Fate::Gone, &[]));
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
