//! What an upgrade does to many objects: how many there are, and how many at each place of the schema.
//! It holds no object, and does not grow with their number.

use std::collections::{BTreeMap, BTreeSet};

use super::{Effect, EffectKind, Kind, Problem, by_effect};
use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{Plan, Record, Skip, Terms, decide, skip};
use kube_structural_schema::path::Path;

/// What was counted. Every report of an upgrade is made of this, so that they agree.
#[derive(Debug, Default)]
pub struct Tally {
    terms: Terms,
    /// How many objects there are, and what happens to them.
    pub counts: Counts,
    /// How many objects each effect is on, by its place in the schema.
    pub summary: BTreeMap<Place, u64>,
    /// How many objects each effect is on, for certain or only perhaps (`true`), wherever it is.
    pub effects: BTreeMap<(EffectKind, bool), u64>,
}

/// One effect on a place in the schema, whatever the object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// What happens.
    pub effect: EffectKind,
    /// Where, or what is wrong; without values, and without keys of maps.
    pub text: String,
    /// The sort of effect that this is.
    pub kind: Kind,
    /// Whether this is what may happen: what etcd holds is not known.
    pub is_open: bool,
    /// What is wrong, if this is a problem.
    pub problem: Option<Problem>,
}

/// How many objects something happens to.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "each is named as the field of `Effect` that it counts")]
pub struct Counts {
    pub total: u64,
    pub gaining: u64,
    pub gaining_on_write: u64,
    pub changing: u64,
    pub losing: u64,
    pub hidden: u64,
    pub following: u64,
    pub dropped: u64,
    pub held: u64,
    pub invalid: u64,
    pub protected: u64,
    pub ignored: u64,
    pub terminating: u64,
    /// Objects of which it is not known whether all of this happens.
    pub open: u64,
    /// Objects of which it is not known whether anything happens.
    pub only_open: u64,
    /// Objects to which something else happens if etcd lacks what their owners name.
    pub claimed: u64,
    /// Objects whose values would be protected if no annotation asked to ignore them.
    pub unprotected: u64,
}

/// The result for one object.
#[derive(Debug)]
pub struct Counted {
    /// Why Etch writes to it in no case.
    pub skipped: Option<Skip>,
    /// Where in the schema something happens to it.
    pub places: BTreeSet<Place>,
}

impl Tally {
    /// Nothing yet, in a cluster in which writes may do this.
    pub fn new(terms: Terms) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Whether a default that the upgrade makes invalid may be stored nowhere yet: to store it is to break
    /// the object.
    pub fn may_break(&self) -> bool {
        let is_open = |place: &Place| place.is_open && matches!(place.problem, Some(Problem::Invalid { .. }));
        self.summary.keys().any(is_open)
    }

    /// Counts what happens to an object, which comes as it is read before the upgrade where it can be read,
    /// with what is on record of it. What `etch persist` would not write is taken out of what that protects.
    pub fn add(&mut self, effect: &mut Effect, read: Option<(&Object, &Crd, &Record)>) -> Counted {
        let counts = &mut self.counts;
        counts.total += 1;
        let skipped = read.and_then(|(object, ..)| skip(object));
        match skipped {
            Some(Skip::Ignored | Skip::IgnoredUnclear) => counts.ignored += 1,
            Some(Skip::Terminating) => counts.terminating += 1,
            Some(Skip::TooDeep | Skip::NotSelected) | None => {}
        }
        if !effect.protected.is_empty() {
            let is_held = read.is_some_and(|(object, old, record)| {
                matches!(decide(object, old, &self.terms, record), Plan::Hold(_))
            });
            if skipped.is_some() || is_held {
                effect.protected.clear();
                counts.unprotected += u64::from(skipped.is_some_and(Skip::is_by_annotation));
            }
        }
        for (count, is_so) in [
            (&mut counts.gaining, !effect.appears.is_empty()),
            (&mut counts.gaining_on_write, !effect.appears_on_write.is_empty()),
            (&mut counts.changing, !effect.changes.is_empty()),
            (&mut counts.losing, !effect.disappears.is_empty()),
            (&mut counts.hidden, !effect.hidden.is_empty()),
            (&mut counts.following, !effect.follows.is_empty()),
            (&mut counts.dropped, effect.dropped),
            (&mut counts.held, effect.held.is_some()),
            (&mut counts.invalid, !effect.problems.is_empty()),
            (&mut counts.protected, !effect.protected.is_empty()),
            (&mut counts.open, !effect.open.is_none()),
            (&mut counts.claimed, !effect.claimed.is_empty()),
        ] {
            *count += u64::from(is_so);
        }
        let places = if effect.is_none() { BTreeSet::new() } else { places(effect) };
        counts.only_open += u64::from(!places.is_empty() && places.iter().all(|place| place.is_open));
        for place in &places {
            *self.summary.entry(place.clone()).or_default() += 1;
        }
        let kinds: BTreeSet<EffectKind> = places.iter().map(|place| place.effect).collect();
        for kind in kinds {
            let is_open = places.iter().filter(|place| place.effect == kind).all(|place| place.is_open);
            *self.effects.entry((kind, is_open)).or_default() += 1;
        }
        Counted { skipped, places }
    }
}

impl Place {
    /// Whether it is one of these problems.
    pub fn is_one_of(&self, problems: &[Problem]) -> bool {
        self.problem.as_ref().is_some_and(|problem| problems.contains(problem))
    }

    fn as_sure(&self) -> Self {
        Self { is_open: false, ..self.clone() }
    }
}

/// The sort of effect, where it is no problem.
fn kind_of(effect: EffectKind) -> Kind {
    match effect {
        EffectKind::Appears | EffectKind::AppearsOnWrite => Kind::Addition,
        EffectKind::Changes | EffectKind::Follows => Kind::Change,
        EffectKind::Disappears | EffectKind::Hidden | EffectKind::Dropped => Kind::Loss,
        EffectKind::Problem => Kind::Problem,
    }
}

/// The places of an effect, each once: their number does not grow with the items and keys that an object has.
fn places(effect: &Effect) -> BTreeSet<Place> {
    let of = |kind: EffectKind, path: &Path| Place {
        effect: kind,
        text: path.to_schema().to_string(),
        kind: kind_of(kind),
        is_open: effect.open.is_open(kind, path),
        problem: None,
    };
    let mut places: BTreeSet<Place> = by_effect(effect)
        .into_iter()
        .flat_map(|(effect, paths)| paths.iter().map(move |path| of(effect, path)))
        .collect();
    // What happens for certain is not listed as possible as well.
    let sure: Vec<_> = places.iter().filter(|place| !place.is_open).map(|place| place.as_sure()).collect();
    places.retain(|place| !place.is_open || !sure.contains(&place.as_sure()));
    places.extend(effect.problems.iter().map(|problem| {
        let is_open = effect.open.problems.contains(problem);
        let kind = if problem.is_known() { Kind::Known } else { Kind::Problem };
        let problem = problem.to_schema();
        let text = problem.to_string();
        Place { effect: EffectKind::Problem, text, kind, is_open, problem: Some(problem) }
    }));
    places
}
