//! What an object breaks only through the defaults that a write would store (facts B2, D7). A default is not
//! to blame for what is wrong without it, and the number of evaluations is bounded.
//!
//! The object is judged as it is shown and as it would be without the defaults that etcd lacks or may lack:
//! all of them, each by itself, and if there are few, every selection, because it is unknown which of them
//! etcd lacks. A violation that occurs in the object as shown and not in one of the others is caused by the
//! defaults. A default breaks a rule that fails with it and cannot be evaluated without it, too: another
//! default might satisfy the rule.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::room::may_be_cut;
use crate::crd::Crd;
use crate::field::place_in;
use crate::without::remove;
use kube_structural_schema::finding::{Finding, Kind, Refused};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Trail};
use kube_structural_schema::schema::Schema;
use kube_validation_rules::RUNTIME_BUDGET;
use serde_json::Value;

/// Up to how many places every selection of them is tried.
const FEW: usize = 4;
/// How many places are tried one by one, at most.
const ASKED: usize = 16;
/// What the rules that are run for that may cost, for all trials together.
const ASKING_BUDGET: i64 = 4 * RUNTIME_BUDGET;
/// The longest requirement that is shown, in characters.
const SHOWN: usize = 200;

/// One thing that an object would break.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Broken {
    /// Where, in the object's own terms.
    pub place: Path,
    /// What the schema requires there: a rule's message, the rule itself, or a restriction.
    pub requirement: String,
    /// Which updates of the object the API server refuses for it.
    pub refused: Refused,
    /// The place that such an update changes, if it is another.
    pub judged: Option<Path>,
}

/// What an object would break with its defaults, and the places of those that have to do with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Breach {
    pub(super) paths: Vec<Path>,
    pub(super) broken: Vec<Broken>,
}

/// What storing the defaults at the `missing` places of an object would break; `None` if nothing.
pub(super) fn breach(object: &Json, crd: &Crd, missing: &[Path]) -> Option<Breach> {
    let breakable = crd.breakable_scopes();
    if !missing.iter().any(|path| breakable.covers(path)) {
        return None;
    }
    let mut with = object.clone();
    crd.compiled().fill(&mut with);
    let found = judged(&with, crd, &mut { RUNTIME_BUDGET });
    if found.is_empty() {
        return None;
    }
    let candidates: Vec<&Path> = missing.iter().filter(|path| breakable.covers(path)).collect();
    let mut is_new = vec![false; found.len()];
    let mut involved = Vec::new();
    let mut budget = ASKING_BUDGET;
    let is_cut = may_be_cut(missing);
    for left_out in trials(&candidates) {
        let mut without = with.clone();
        left_out.iter().for_each(|path| remove(&mut without, path.steps()));
        if is_cut && left_out.len() == candidates.len() {
            leave_out_alike(&mut without, object, crd, &candidates);
        }
        let cured = new(&found, &judged(&without, crd, &mut budget));
        if budget < 0 {
            break;
        }
        if let ([path], true) = (&left_out[..], cured.contains(&true)) {
            involved.push((*path).clone());
        }
        is_new.iter_mut().zip(cured).for_each(|(is_new, cured)| *is_new |= cured);
    }
    let broken = broken(selected(&found, &is_new), crd, &with);
    if broken.is_empty() {
        return None;
    }
    involved.sort();
    let paths = if involved.is_empty() { candidates.into_iter().cloned().collect() } else { involved };
    Some(Breach { paths, broken })
}

/// Leaves out every default at the same places of the schema, too: not each was collected.
fn leave_out_alike(without: &mut Json, object: &Json, crd: &Crd, places: &[&Path]) {
    let of_schema: HashSet<Path> = places.iter().map(|path| path.to_schema()).collect();
    let mut leave_out = |trail: &Trail<'_>, _: &Value| {
        let place = trail.to_path();
        if of_schema.contains(&place.to_schema()) {
            remove(without, place.steps());
        }
    };
    crd.compiled().gaps(object, &mut leave_out);
    crd.compiled().filled(object, &mut leave_out);
}

/// Which of the places are left out at a time: all of them, each by itself, and every other selection of a
/// few.
fn trials<'p>(places: &[&'p Path]) -> Vec<Vec<&'p Path>> {
    if places.len() <= FEW {
        let selected = |mask: usize| {
            let chosen = places.iter().enumerate().filter(|(index, _)| mask & (1 << index) != 0);
            chosen.map(|(_, path)| *path).collect()
        };
        return (1..1 << places.len()).rev().map(selected).collect();
    }
    let each = places.iter().take(ASKED).map(|path| vec![*path]);
    std::iter::once(places.to_vec()).chain(each).collect()
}

/// What is wrong with an object after a change that is not wrong before it.
pub(super) fn broken_by_change(before: &Json, after: &Json, crd: &Crd) -> Vec<Broken> {
    let found = judged(after, crd, &mut { RUNTIME_BUDGET });
    if found.is_empty() {
        return Vec::new();
    }
    let known = judged(before, crd, &mut { RUNTIME_BUDGET });
    let is_new = new(&found, &known);
    broken(selected(&found, &is_new), crd, after)
}

fn judged(object: &Json, crd: &Crd, budget: &mut i64) -> Vec<Finding> {
    let schema = &crd.storage().schema;
    let mut found = crd.breakable_scopes().prepared(schema).unchanged(schema, object, budget);
    // A rule that could not be evaluated is not a default's fault.
    found.retain(|finding| finding.kind != Kind::Internal);
    found
}

/// Which findings are not among those that are known. The same thing may be wrong more than once.
fn new(found: &[Finding], known: &[Finding]) -> Vec<bool> {
    let mut left: HashMap<(Kind, &str, &str), usize> = HashMap::new();
    for finding in known {
        *left.entry((finding.kind, finding.place(), finding.requirement())).or_default() += 1;
    }
    let mut is_new = Vec::with_capacity(found.len());
    for finding in found {
        let known = left.get_mut(&(finding.kind, finding.place(), finding.requirement()));
        let known = known.filter(|count| **count > 0);
        is_new.push(known.is_none());
        if let Some(count) = known {
            *count -= 1;
        }
    }
    is_new
}

fn selected<'f>(findings: &'f [Finding], is_selected: &[bool]) -> impl Iterator<Item = &'f Finding> {
    findings.iter().zip(is_selected).filter(|(_, is_selected)| **is_selected).map(|(finding, _)| finding)
}

fn broken<'f>(findings: impl Iterator<Item = &'f Finding>, crd: &Crd, object: &Json) -> Vec<Broken> {
    let (mut all, mut known) = (Vec::new(), HashSet::new());
    for finding in findings {
        let broken = Broken::of(finding, &crd.storage().schema, object);
        if known.insert(broken.clone()) {
            all.push(broken);
        }
    }
    all
}

impl Broken {
    /// What is wrong with an object that has this schema.
    pub fn of(finding: &Finding, schema: &Schema, object: &Json) -> Self {
        let words = finding.requirement().split_whitespace().collect::<Vec<_>>().join(" ");
        let requirement = match words.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        };
        let place = |field: &str| place_in(field, schema, object);
        Self {
            place: place(finding.place()),
            requirement,
            refused: finding.refused,
            judged: finding.judged.as_deref().map(place),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.requirement)
    }
}
