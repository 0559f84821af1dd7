//! What is reported of one CRD: its schemas, the numbers of its objects, and the objects by name.
//! It must not print.

use std::collections::{BTreeMap, BTreeSet};

use etch::cluster::etcd::decode;
use etch::domain::crd::Crd;
use etch::domain::impact::{Effect, Kind, Problem, SchemaChanges, Upgrade, compare};
use etch::domain::lint::Finding;
use etch::domain::object::{Identity, Object};
use etch::domain::path::Path;
use etch::domain::plan::{Plan, Record, Skip, decide, skip};
use etch::domain::schema::Schema;

use crate::commands::policy::Rules;
use crate::commands::sample::Sample;

/// What is reported of one CRD.
pub(super) struct Told {
    pub(super) crd: String,
    pub(super) old_version: Option<String>,
    pub(super) new_version: String,
    pub(super) schemas: SchemaChanges,
    /// How the operator treats the objects.
    pub(super) rules: Rules,
    /// What the API server refuses the upgrade for.
    pub(super) refusals: Vec<Finding>,
    /// Whether the cluster has the CRD, as far as it was asked.
    pub(super) in_cluster: bool,
    pub(super) counts: Counts,
    /// How many objects each effect is on, by its place in the schema.
    pub(super) summary: BTreeMap<Place, u64>,
    pub(super) details: Sample<Detail>,
    kinds: BTreeSet<Kind>,
}

/// One effect on a place in the schema, whatever the object.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) word: Word,
    pub(super) text: String,
}

/// What is reported of a place, the mildest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    Appears,
    Changes,
    Follows,
    Disappears,
    Hidden,
    Dropped,
    Problem,
}

/// An object to which something happens.
pub(super) struct Detail {
    pub(super) effect: Effect,
    /// Whether that is known, and not presumed from the owners.
    pub(super) exact: bool,
    pub(super) skipped: Option<Skip>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) total: u64,
    pub(super) gaining: u64,
    pub(super) changing: u64,
    pub(super) losing: u64,
    pub(super) hidden: u64,
    pub(super) following: u64,
    pub(super) dropped: u64,
    pub(super) held: u64,
    pub(super) invalid: u64,
    pub(super) protected: u64,
    pub(super) ignored: u64,
    pub(super) terminating: u64,
    /// Objects whose values would be protected if nobody asked to ignore them.
    pub(super) unprotected: u64,
}

impl Told {
    pub(super) fn new(name: &str, old: Option<&Crd>, new: &Crd, limit: Option<usize>, rules: Rules) -> Self {
        let nothing = Schema::default();
        let old_schema = old.map_or(&nothing, |old| &old.storage().schema);
        let schemas = compare(old_schema, &new.storage().schema);
        Self {
            crd: name.to_owned(),
            old_version: old.map(|old| old.storage().name.clone()),
            new_version: new.storage().name.clone(),
            kinds: schemas.kinds(),
            schemas,
            rules,
            refusals: Vec::new(),
            in_cluster: true,
            counts: Counts::default(),
            summary: BTreeMap::new(),
            details: Sample::new(limit),
        }
    }

    /// Notes what the API server refuses the upgrade for.
    pub(super) fn refuse(&mut self, refusals: Vec<Finding>) {
        if !refusals.is_empty() {
            self.kinds.insert(Kind::Problem);
        }
        self.refusals = refusals;
    }

    /// Adds what happens to an object of which etcd holds this.
    pub(super) fn look(&mut self, upgrade: &Upgrade<'_>, old: &Crd, identity: Identity, value: &[u8]) {
        let wrong = |problem| Effect { problems: vec![problem], ..Effect::default() };
        let looked = match decode(value) {
            Ok(stored) => upgrade.stored(stored).map_err(Problem::Unreadable),
            Err(opaque) => Err(Problem::Opaque { why: opaque.to_string() }),
        };
        match looked {
            Ok((object, effect)) => self.add(identity, effect, true, Some((&object, old))),
            Err(problem) => self.add(identity, wrong(problem), true, None),
        }
    }

    /// Adds what happens to an object, which comes as it is read before the upgrade where it can be read.
    pub(super) fn add(
        &mut self,
        identity: Identity,
        mut effect: Effect,
        exact: bool,
        read: Option<(&Object, &Crd)>,
    ) {
        let counts = &mut self.counts;
        counts.total += 1;
        let skipped = read.and_then(|(object, _)| skip(object));
        match skipped {
            Some(Skip::Ignored) => counts.ignored += 1,
            Some(Skip::Terminating) => counts.terminating += 1,
            None => {}
        }
        // What `etch persist` does not write it does not protect.
        if !effect.protected.is_empty() {
            let is_held = read.is_some_and(|(object, old)| {
                let plan = decide(object, old, &self.rules.terms(), &Record::default());
                matches!(plan, Plan::Hold(_))
            });
            if skipped.is_some() || is_held {
                effect.protected.clear();
                counts.unprotected += u64::from(skipped == Some(Skip::Ignored));
            }
        }
        for (count, is_so) in [
            (&mut counts.gaining, !effect.appears.is_empty()),
            (&mut counts.changing, !effect.changes.is_empty()),
            (&mut counts.losing, !effect.disappears.is_empty()),
            (&mut counts.hidden, !effect.hidden.is_empty()),
            (&mut counts.following, !effect.follows.is_empty()),
            (&mut counts.dropped, effect.dropped),
            (&mut counts.held, effect.held.is_some()),
            (&mut counts.invalid, !effect.problems.is_empty()),
            (&mut counts.protected, !effect.protected.is_empty()),
        ] {
            *count += u64::from(is_so);
        }
        if effect.is_none() {
            return;
        }
        for place in places(&effect) {
            *self.summary.entry(place).or_default() += 1;
        }
        self.kinds.extend(effect.kinds());
        self.details.add(identity, Detail { effect, exact, skipped });
    }

    /// The sorts of everything that happens, to the schema and to objects.
    pub(super) fn kinds(&self) -> &BTreeSet<Kind> {
        &self.kinds
    }
}

impl Word {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Appears => "appears",
            Self::Changes => "changes",
            Self::Follows => "follows",
            Self::Disappears => "disappears",
            Self::Hidden => "hidden",
            Self::Dropped => "dropped",
            Self::Problem => "problem",
        }
    }
}

/// The places of an effect by what happens there, the mildest first.
pub(super) fn by_word(effect: &Effect) -> [(Word, &[Path]); 5] {
    let hidden = if effect.dropped { Word::Dropped } else { Word::Hidden };
    [
        (Word::Appears, &effect.appears),
        (Word::Changes, &effect.changes),
        (Word::Follows, &effect.follows),
        (Word::Disappears, &effect.disappears),
        (hidden, &effect.hidden),
    ]
}

/// The places of an effect, each once: their number does not grow with the items and keys that an object has.
fn places(effect: &Effect) -> BTreeSet<Place> {
    let of = |word, path: &Path| Place { word, text: path.to_schema().to_string() };
    let mut places: BTreeSet<Place> = by_word(effect)
        .into_iter()
        .flat_map(|(word, paths)| paths.iter().map(move |path| of(word, path)))
        .collect();
    places.extend(effect.problems.iter().map(|problem| {
        let problem = match problem.clone() {
            Problem::Invalid { field, kind, before } => {
                Problem::Invalid { field: without_indices(&field), kind, before }
            }
            other => other,
        };
        Place { word: Word::Problem, text: problem.to_string() }
    }));
    places
}

/// A place as the API server writes it, `spec.ports[3].name`, without what is in its brackets.
fn without_indices(field: &str) -> String {
    let (mut short, mut depth) = (String::with_capacity(field.len()), 0_usize);
    for character in field.chars() {
        depth = if character == ']' { depth.saturating_sub(1) } else { depth };
        if depth == 0 {
            short.push(character);
        }
        depth += usize::from(character == '[');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_grow_with_items() {
        assert_eq!(without_indices("spec.ports[12].name"), "spec.ports[].name");
        assert_eq!(without_indices("spec.map[a[b]c].x[0]"), "spec.map[].x[]");
        assert_eq!(without_indices("spec.a"), "spec.a");
    }
}
