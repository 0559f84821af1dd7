//! Each default that applies to an object, with what is known of it and what Etch will do about it.
//! It must not hold a value of the object.

use std::collections::BTreeSet;

use super::{Missing, State, places};
use crate::domain::crd::Crd;
use crate::domain::object::{IGNORE_ANNOTATION, Object};
use crate::domain::ownership::{is_named, owners};
use crate::domain::path::{Path, Trail};
use crate::domain::plan::{Hold, Plan, Record, Skip, Strategy, Terms, decide};

/// What is known of one default of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Where it applies.
    pub path: Path,
    /// What is known of it.
    pub state: State,
    /// Where the value comes from that is shown: `object`, `schema`, either, or nowhere.
    pub origin: &'static str,
    /// The managers that own it, or something in it, each once.
    pub owners: Vec<String>,
    /// What Etch will do about it, and why.
    pub reason: String,
}

/// Tells of each default of the storage version that applies, in the order of their places, what is known of it.
///
/// `missing` is what was found by the view or, where `exact` is set, by the bytes. Of the record only what is known to be gone
/// counts.
pub fn explain(
    object: &Object,
    crd: &Crd,
    terms: &Terms,
    record: &Record,
    missing: &[Missing],
    exact: bool,
) -> Vec<Account> {
    let mut filled = Vec::new();
    crd.compiled().filled(object.json(), &mut |at: &Trail<'_>, _: &_| filled.push(at.to_path()));
    let plan = decide(object, crd, terms, &record.of_cleared());
    let account = |path: Path| {
        let found =
            missing.iter().find(|missing| missing.path.contains(&path) || path.contains(&missing.path));
        // A part that is missing below a place that is there says nothing of the place.
        let found = found.filter(|missing| missing.path.contains(&path));
        let state = found.map_or(State::Stored, |missing| missing.state);
        let is_default = filled.iter().any(|filled| filled.contains(&path));
        let origin = match state {
            State::Gap => "nowhere",
            State::Phantom => "schema",
            State::Possible => "object or schema",
            State::Stored => "object",
        };
        let owners = owners_of(object, crd, &path);
        let reason = match state {
            State::Stored if !is_default => {
                "the value is another than the default, so somebody wrote it".to_owned()
            }
            State::Stored if exact => "etcd holds it".to_owned(),
            State::Stored => "it was written since the default is in the schema".to_owned(),
            _ => intention(&plan, state, !owners.is_empty()),
        };
        Account { path, state, origin, owners, reason }
    };
    places(object.json(), crd).into_iter().map(account).collect()
}

fn owners_of(object: &Object, crd: &Crd, path: &Path) -> Vec<String> {
    let schema = &crd.storage().schema;
    let names = |owner: &_| is_named(std::iter::once(*owner), object.json(), schema, path.steps());
    let found: BTreeSet<_> = owners(object).filter(names).map(|owner| owner.manager.to_owned()).collect();
    found.into_iter().collect()
}

/// What Etch will do about a default that is not stored, or may not be.
fn intention(plan: &Plan, state: State, is_owned: bool) -> String {
    let known = match state {
        State::Gap => "the object is stored at a version without it",
        State::Phantom => "etcd does not hold it",
        _ if is_owned => "it has an owner, so etcd probably holds it, but a claim may outlive its field",
        _ => "what is shown does not tell whether etcd holds it",
    };
    let intention = match plan {
        Plan::Skip(Skip::Terminating) => "Etch leaves the object alone: it is being deleted".to_owned(),
        Plan::Skip(Skip::Ignored) => {
            format!("Etch leaves the object alone: its annotation {IGNORE_ANNOTATION} asks for it")
        }
        Plan::Hold(held) => {
            let why = match held.reason {
                Hold::HiddenFields => {
                    "a write may destroy fields that the schema no longer knows and managedFields (or last-applied) still name"
                        .to_owned()
                }
                Hold::Misfit => {
                    "a write would make the server forget who owns what, for a type does not fit the schema"
                        .to_owned()
                }
                Hold::InvalidDefaults if held.broken.is_empty() => "the default is itself invalid".to_owned(),
                Hold::InvalidDefaults => {
                    format!("with its defaults it would be invalid: {}", held.broken_in_short())
                }
            };
            let paths: Vec<_> = held.paths.iter().map(Path::to_string).collect();
            format!("Etch leaves the object alone: {why} ({})", paths.join(", "))
        }
        Plan::Write(write) => match write.strategy {
            Strategy::Apply => {
                "Etch has it stored by a server-side apply that names the object alone".to_owned()
            }
            Strategy::Merge => {
                "Etch has it stored by an empty merge patch, for nobody owns anything".to_owned()
            }
            Strategy::Follow => "Etch replaces it, as its policy says".to_owned(),
            Strategy::Rewrite => {
                "Etch has it stored by a patch that names the owners anew at the storage version".to_owned()
            }
        },
        Plan::Stored => "Etch counts it as stored".to_owned(),
    };
    format!("{known}; {intention}")
}
