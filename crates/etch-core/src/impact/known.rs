//! Which of the problems of an object after an upgrade it had before. Places and messages decide, not values.

use std::collections::{BTreeSet, HashMap, HashSet};

use kube_structural_schema::finding::{Finding, Kind};

/// What is wrong, with whether it was wrong before; each once.
///
/// Two findings are the same if the same place breaks the same requirement. An upgrade may change a limit: as
/// many findings as are no longer there at a place, so many others of the same kind count as known there.
/// Those of rules only where nothing but numbers differ: another rule asks for something else.
pub(super) fn known<'f>(
    found: impl Iterator<Item = &'f Finding>,
    before: impl Iterator<Item = &'f Finding>,
) -> Vec<(&'f Finding, bool)> {
    let mut left: HashMap<(Kind, &str), BTreeSet<&str>> = HashMap::new();
    for finding in before {
        left.entry((finding.kind, finding.place())).or_default().insert(finding.requirement());
    }
    let mut all: Vec<(&Finding, bool)> = Vec::new();
    let mut reported = HashSet::new();
    for finding in found {
        let (at, words) = ((finding.kind, finding.place()), finding.requirement());
        if reported.insert((at, words)) {
            all.push((finding, left.get_mut(&at).is_some_and(|left| left.remove(words))));
        }
    }
    for (finding, is_known) in all.iter_mut().filter(|(_, is_known)| !is_known) {
        let Some(left) = left.get_mut(&(finding.kind, finding.place())) else { continue };
        let alike = left.iter().copied().find(|words| subject(words) == subject(finding.requirement()));
        *is_known = alike.is_some_and(|alike| left.remove(alike));
    }
    all
}

/// What a requirement is about, whatever its limit: a keyword of the schema, or a rule.
fn subject(words: &str) -> &str {
    let is_of_keyword =
        words.starts_with("it ") || words.starts_with("its ") || words.starts_with("there are ");
    if is_of_keyword {
        ""
    } else {
        words.split(|next: char| next.is_ascii_digit()).next().unwrap_or_default()
    }
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
            (vec![rule("a")], vec![rule("b")], vec![("b", false)]),
            (vec![rule("a < 5")], vec![rule("a < 3")], vec![("a < 3", true)]),
            (
                vec![rule("it must be at most 5")],
                vec![rule("it must be a 3")],
                vec![("it must be a 3", true)],
            ),
            (vec![rule("a")], vec![rule("it must be a 3")], vec![("it must be a 3", false)]),
            (vec![rule("a")], vec![finding(Kind::Invalid, "spec.x", "a")], vec![("a", false)]),
            (vec![rule("a")], vec![finding(Kind::TypeInvalid, "spec", "a")], vec![("a", false)]),
        ] {
            let reported = known(after.iter(), before.iter());
            let reported: Vec<_> =
                reported.iter().map(|(finding, known)| (finding.requirement(), *known)).collect();
            assert_eq!(reported, expected, "{before:?}");
        }
    }
}
