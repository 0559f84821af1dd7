//! Which of the problems of an object after an upgrade it had before. Places and messages decide, not values.

use std::collections::{BTreeSet, HashMap, HashSet};

use kube_structural_schema::finding::{Finding, Kind};

/// What is wrong, with whether it was wrong before; each once.
///
/// Two findings are the same if the same place breaks the same requirement. An upgrade may change a limit or
/// the text of a rule: as many findings as are no longer there at a place, so many others of the same kind
/// count as known there.
pub(super) fn known<'f>(
    found: impl Iterator<Item = &'f Finding>,
    before: impl Iterator<Item = &'f Finding>,
) -> Vec<(&'f Finding, bool)> {
    let mut left: HashMap<(Kind, &str), BTreeSet<&str>> = HashMap::new();
    for finding in before {
        left.entry((finding.kind, finding.place())).or_default().insert(finding.requirement());
    }
    let mut all: Vec<(&Finding, bool)> = Vec::new();
    let mut told = HashSet::new();
    for finding in found {
        let (at, words) = ((finding.kind, finding.place()), finding.requirement());
        if told.insert((at, words)) {
            all.push((finding, left.get_mut(&at).is_some_and(|left| left.remove(words))));
        }
    }
    for (finding, is_known) in all.iter_mut().filter(|(_, is_known)| !is_known) {
        let left = left.get_mut(&(finding.kind, finding.place()));
        *is_known = left.is_some_and(|left| left.pop_first().is_some());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_before_is_told_from_what_comes() {
        let finding = |kind: Kind, place: &str, words: &str| Finding::new(kind, place, "").asking(words);
        let rule = |words: &str| finding(Kind::Invalid, "spec", words);
        for (before, after, expected) in [
            (vec![], vec![rule("a")], vec![("a", false)]),
            (vec![rule("a")], vec![rule("a")], vec![("a", true)]),
            (vec![rule("a")], vec![rule("a"), rule("a")], vec![("a", true)]),
            (vec![rule("a")], vec![rule("b"), rule("a")], vec![("b", false), ("a", true)]),
            (vec![rule("at most 5")], vec![rule("at most 3")], vec![("at most 3", true)]),
            (vec![rule("a"), rule("b")], vec![rule("c"), rule("d")], vec![("c", true), ("d", true)]),
            (vec![rule("a")], vec![finding(Kind::Invalid, "spec.x", "a")], vec![("a", false)]),
            (vec![rule("a")], vec![finding(Kind::TypeInvalid, "spec", "a")], vec![("a", false)]),
        ] {
            let told = known(after.iter(), before.iter());
            let told: Vec<_> = told.iter().map(|(finding, known)| (finding.requirement(), *known)).collect();
            assert_eq!(told, expected, "{before:?}");
        }
    }
}
