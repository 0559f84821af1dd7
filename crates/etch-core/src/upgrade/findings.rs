//! What was found in the objects, as lines for the author of the upgrade: a count, a place and the first
//! objects each.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::named::{NAMED, listed};
use super::unserved::Unserved;
use crate::crd::{Crd, Version};
use crate::findings::SchemaFindings;
use crate::impact::{Counted, Effect, EffectKind, Kind, Place, Problem, Tally};
use crate::object::Object;
use crate::plan::{Record, Terms};
use crate::words::counted;

/// How many lines there are at most: API servers cut warnings off that are longer than 4 KiB together.
const LINES: usize = 10;

/// The objects that were looked at.
#[derive(Debug, Default)]
pub struct FindingsBuilder {
    tally: Tally,
    /// The first objects at each place, in the order in which they came.
    first: BTreeMap<Place, Vec<String>>,
    unserved: Unserved,
    does_harm: bool,
}

/// Whether the check has met all objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    Whole,
    /// Not all of them, for this reason; as far as is known there are so many.
    Part {
        /// The reason, in some words.
        why: String,
        /// How many there are, about.
        of: Option<u64>,
    },
}

impl Extent {
    /// How many objects were checked, after which the rest of the sentence follows.
    pub(super) fn of(&self, objects: u64) -> String {
        match self {
            Self::Whole => counted(objects, "object"),
            Self::Part { .. } => format!("the {objects} that were checked"),
        }
    }
}

/// What was found out about an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What it does, the worst first.
    pub lines: Vec<String>,
    /// Whether it changes, takes away or breaks anything, as far as was checked.
    pub does_harm: bool,
    /// What could not be found out.
    pub unchecked: Option<String>,
}

/// What is built of all objects of a CRD that a request is about as a whole.
pub trait ObjectFindings: Default + Send + 'static {
    /// The version at which the objects are to be read: the storage version; `None` if that is not served.
    fn read_at(crd: &Crd) -> Option<&Version> {
        Some(crd.storage()).filter(|storage| storage.served)
    }

    /// Handles an object that was read at that version, with what is on record.
    fn add(&mut self, object: &Object, crd: &Crd, record: &Record);

    /// What was found in those that were taken in.
    fn findings(&self, crd: &Crd, extent: &Extent) -> Findings;

    /// Only why the objects of this CRD could not be checked.
    fn unknown(crd: &str, why: &str) -> Findings;
}

impl Findings {
    /// Only why nothing could be checked.
    pub fn unknown(why: &str) -> Self {
        FindingsBuilder::default()
            .findings(&SchemaFindings::default(), &Extent::Part { why: why.to_owned(), of: None })
    }
}

impl FindingsBuilder {
    /// No object yet of an upgrade between these states, in a cluster in which writes may do this.
    pub fn new(old: &Crd, new: &Crd, terms: Terms) -> Self {
        Self { tally: Tally::new(terms), unserved: Unserved::by(old, new), ..Self::default() }
    }

    /// Records what happens to an object, which comes as it is read before the upgrade, with what is on
    /// record.
    pub fn add(&mut self, object: &Object, old: &Crd, record: &Record, mut effect: Effect) {
        self.unserved.add(object);
        let Counted { places, .. } = self.tally.add(&mut effect, Some((object, old, record)));
        self.does_harm |= does_harm(&effect);
        for place in places.into_iter().filter(counts) {
            let first = self.first.entry(place).or_default();
            if first.len() < NAMED {
                first.push(object.identity().to_string());
            }
        }
    }

    /// How many objects that were.
    pub fn objects(&self) -> u64 {
        self.tally.counts.total
    }

    /// What was found, in objects and in the schema.
    pub fn findings(&self, violations: &SchemaFindings, extent: &Extent) -> Findings {
        let all = extent.of(self.objects());
        let mut places: Vec<_> = self.tally.summary.iter().filter(|(place, _)| counts(place)).collect();
        places.sort_by_key(|(place, objects)| {
            (Reverse(place.effect), place.is_open, Reverse(**objects), &place.text)
        });
        let mut lines = Vec::new();
        for (what, found) in [
            ("not structural", &violations.non_structural),
            ("invalid defaults", &violations.invalid_defaults),
        ] {
            if !found.is_empty() {
                lines.push(format!("{what}: {}", listed(found, found.len() as u64)));
            }
        }
        lines.extend(places.into_iter().map(|(place, objects)| {
            let named = self.first.get(place).map_or(&[][..], Vec::as_slice);
            let is_upper_limit = place.problem.as_ref().is_some_and(Problem::is_if_stored_elsewhere);
            let at_most = if is_upper_limit { "up to " } else { "" };
            format!("{at_most}{objects} of {all}: {}: {}", words(place), listed(named, *objects))
        }));
        lines.extend(self.unserved.line(&all));
        if lines.len() > LINES {
            let more = lines.split_off(LINES - 1).len();
            lines.push(format!("and {more} more places; `etch impact -f FILE --live` lists all"));
        }
        Findings {
            lines,
            does_harm: self.does_harm || !violations.is_none(),
            unchecked: self.unchecked(extent),
        }
    }

    fn unchecked(&self, extent: &Extent) -> Option<String> {
        let Extent::Part { why, of } = extent else { return None };
        let checked = match of {
            Some(of) => format!("{} of about {of} objects", self.objects()),
            None => format!("{} objects", self.objects()),
        };
        Some(format!("not fully checked, {checked}: {why}; `etch impact -f FILE --live` checks all"))
    }
}

/// Whether something happens there that is more than an addition, and was not there before.
fn counts(place: &Place) -> bool {
    matches!(place.kind, Kind::Change | Kind::Loss | Kind::Problem)
}

/// Whether it is known that something does, or presumed of what etcd holds. What could not be found out about
/// an object does not count as harm.
fn does_harm(effect: &Effect) -> bool {
    let kinds = effect.kinds();
    kinds.contains(&Kind::Change)
        || kinds.contains(&Kind::Loss)
        || effect.problems.iter().any(|problem| !problem.is_known() && !problem.is_open())
}

fn words(place: &Place) -> String {
    let text = &place.text;
    if let Some(Problem::MaybeStoredAt { removed, storage }) = &place.problem {
        let removed = removed.join(" and ");
        return format!(
            "not known to be stored at {storage}: at {removed} they become unreadable unless written before, \
             as by `etch persist --every-object`"
        );
    }
    if place.problem.as_ref().is_some_and(Problem::is_if_stored_elsewhere) {
        return text.clone();
    }
    if place.is_open {
        return match place.effect {
            EffectKind::Problem => format!("perhaps {text}"),
            effect => format!("{text} {}", effect.as_possibility()),
        };
    }
    match place.effect {
        EffectKind::Appears => format!("{text} appears"),
        EffectKind::AppearsOnWrite => format!("{text} appears on write"),
        EffectKind::Changes => format!("{text} changes"),
        EffectKind::Follows => format!("{text} follows its default (onChange: Follow)"),
        EffectKind::Disappears => format!("{text} disappears"),
        EffectKind::Hidden => format!("{text} becomes hidden, and the next write destroys it"),
        EffectKind::Dropped => format!("{text} becomes hidden, and Etch destroys it"),
        EffectKind::Problem => text.clone(),
    }
}
