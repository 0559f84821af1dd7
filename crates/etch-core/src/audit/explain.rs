//! Each default that applies to an object, with what is known of it and what Etch does about it.

use std::collections::BTreeSet;

use super::{Missing, State, places};
use crate::crd::Crd;
use crate::object::{IGNORE_ANNOTATION, Object};
use crate::ownership::{MANAGER, is_named, owners};
use crate::plan::{
    Change, Held, HiddenFields, Hold, Ownership, Plan, Prediction, Record, Skip, Strategy, Terms, predict,
    still_hidden,
};
use kube_structural_schema::json::DEPTH;
use kube_structural_schema::path::{Path, Trail};

/// What is known of one default of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultExplanation {
    /// Where it applies.
    pub path: Path,
    /// What is known of it.
    pub state: State,
    /// Where the value comes from that is shown: `object`, `schema`, either, or nowhere.
    pub origin: &'static str,
    /// The managers that own it, or something in it, each once.
    pub owners: Vec<String>,
    /// What Etch does about it, and why.
    pub reason: String,
}

/// What the operator decides by.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// What writes may do.
    pub terms: &'a Terms,
    /// What is on record.
    pub record: &'a Record,
    /// The part of it that decides what Etch does.
    pub deciding: &'a Record,
    /// The changed defaults that concern the object.
    pub changes: &'a [Change],
    /// Why the operator writes to no object, if it does not.
    pub idle: Option<&'a str>,
}

/// Explains each default of the storage version that applies, in the order of their places; behind them what
/// is missing of another version's defaults, with which the object may be read (fact R2), and each value that
/// goes with a default that is gone.
///
/// `missing` is what was found by the view or, where `exact` is set, by the bytes.
pub fn explain(
    object: &Object,
    crd: &Crd,
    rules: &Rules<'_>,
    missing: &[Missing],
    exact: bool,
) -> Vec<DefaultExplanation> {
    let mut filled = Vec::new();
    crd.compiled().filled(object.json(), &mut |at: &Trail<'_>, _: &_| filled.push(at.to_path()));
    let prediction = predict(object, crd, rules.terms, rules.deciding, rules.changes);
    let action = OperatorAction { object, crd, rules, prediction: &prediction };
    let explanation = |path: Path| {
        let found =
            missing.iter().find(|missing| missing.path.contains(&path) || path.contains(&missing.path));
        // A part that is missing below a place that is there shows nothing about the place.
        let found = found.filter(|missing| missing.path.contains(&path));
        let state = found.map_or(State::Stored, |missing| missing.state);
        let is_default = filled.iter().any(|filled| filled.contains(&path));
        let origin = match state {
            State::Gap => "nowhere",
            State::Phantom => "schema",
            State::Unknown => "object or schema",
            State::Stored => "object",
        };
        let owners = owners_of(object, crd, &path);
        let reason = match state {
            State::Stored if let Some(reason) = action.of_old_value(&path) => reason,
            State::Stored if !is_default => {
                "the value differs from the default: a client wrote it, or it is an earlier default"
                    .to_owned()
            }
            State::Stored => action.of_stored(&path, &owners, exact),
            _ => action.of_missing(state, !owners.is_empty()),
        };
        DefaultExplanation { path, state, origin, owners, reason }
    };
    // Which defaults apply to an object of which only the outline is known is not known either.
    let places = if object.is_too_deep() { vec![Path::root()] } else { places(object.json(), crd) };
    let mut explanations: Vec<DefaultExplanation> = places.into_iter().map(&explanation).collect();
    let is_reported = |path: &Path| explanations.iter().any(|reported| path.contains(&reported.path));
    let elsewhere: Vec<Path> =
        missing.iter().map(|missing| &missing.path).filter(|path| !is_reported(path)).cloned().collect();
    explanations.extend(elsewhere.into_iter().map(explanation));
    let is_reported = |path: &Path| explanations.iter().any(|explanation| explanation.path == *path);
    let gone: Vec<Path> = prediction.moved.iter().filter(|path| !is_reported(path)).cloned().collect();
    explanations.extend(gone.into_iter().map(|path| DefaultExplanation {
        reason: action.of_old_value(&path).unwrap_or_default(),
        owners: owners_of(object, crd, &path),
        state: State::Stored,
        origin: "object",
        path,
    }));
    explanations
}

fn owners_of(object: &Object, crd: &Crd, path: &Path) -> Vec<String> {
    let schema = &crd.storage().schema;
    let names = |owner: &_| is_named(std::iter::once(*owner), object.json(), schema, path.steps());
    let found: BTreeSet<_> = owners(object).filter(names).map(|owner| owner.manager.to_owned()).collect();
    found.into_iter().collect()
}

/// What Etch does with an object, and with one default of it.
struct OperatorAction<'a> {
    object: &'a Object,
    crd: &'a Crd,
    rules: &'a Rules<'a>,
    prediction: &'a Prediction,
}

impl OperatorAction<'_> {
    /// What Etch does about a value that is what its default gave before; `None` if it is not.
    fn of_old_value(&self, path: &Path) -> Option<String> {
        let known = "the value is what the default was before it changed";
        if self.prediction.moved.contains(path) {
            let is_gone = self
                .rules
                .changes
                .iter()
                .any(|change| *change.path() == path.to_schema() && change.present().is_none());
            let what = if is_gone { "removes it" } else { "replaces it with the new default" };
            return Some(match self.rules.idle {
                None => format!("{known}, and it has no owner; Etch {what} (onChange: Follow)"),
                Some(idle) => format!("{known}, and it has no owner; Etch does not write: {idle}"),
            });
        }
        self.prediction.kept.contains(path).then(|| match self.prediction.held() {
            Some(held) => format!("{known}; Etch keeps it: {}", why_held(held)),
            None => format!("{known}; Etch keeps it"),
        })
    }

    /// What is known of a default that is stored, and whether Etch stored it: by its entry, or by what is on
    /// record of its pass.
    fn of_stored(&self, path: &Path, owners: &[String], exact: bool) -> String {
        let proof = self.rules.record.coverage(self.object, self.crd).of_place(path);
        let is_ours = owners.iter().any(|owner| owner == MANAGER);
        let known = match proof {
            _ if is_ours => "Etch stored it, and owns it",
            Some(proof) if proof.is_of_pass() => {
                "Etch's pass stored it or found it stored; the object was not written since"
            }
            Some(_) => "the object was written after Etch's pass, which stores it",
            None if exact => "",
            None if self.rules.record.history.gives(self.object, path) => "the creator of the object set it",
            None => "the object was written after the schema had the default",
        };
        match (exact, known) {
            (true, "") => "etcd holds it".to_owned(),
            (true, known) => format!("etcd holds it: {known}"),
            (false, known) => known.to_owned(),
        }
    }

    /// What Etch does about a default that is not stored, or may not be.
    fn of_missing(&self, state: State, is_owned: bool) -> String {
        let known = match state {
            State::Gap => "the object is stored at a version without it",
            State::Phantom => "etcd does not hold it",
            _ if is_owned => "it has an owner, so etcd probably holds it; managedFields can be stale",
            _ => "the API does not show whether etcd holds it",
        };
        format!("{known}; {}", self.of_object())
    }

    fn of_object(&self) -> String {
        let write = match (&self.prediction.plan, self.rules.idle) {
            (Plan::Skip(Skip::Terminating), _) => {
                return "Etch skips the object: it is being deleted".to_owned();
            }
            (Plan::Skip(Skip::Ignored), _) => {
                return format!("Etch skips the object: it has the annotation {IGNORE_ANNOTATION}");
            }
            (Plan::Skip(Skip::IgnoredUnclear), _) => {
                return format!(
                    "Etch skips the object: it has the annotation {IGNORE_ANNOTATION}, whose value is \
                     neither \"true\" nor \"false\""
                );
            }
            (Plan::Skip(Skip::NotSelected), _) => {
                let selector = self.rules.terms.selection.selector().map(ToString::to_string);
                let selector = selector.unwrap_or_default();
                return format!(
                    "Etch does not write the object: the policy selects only objects with {selector}"
                );
            }
            (Plan::Skip(Skip::TooDeep), _) => {
                return format!("Etch leaves the object alone: it is nested more than {DEPTH} levels deep");
            }
            (_, Some(idle)) => return format!("Etch does not write: {idle}"),
            (Plan::Hold(held), None) => return format!("Etch holds the object: {}", why_held(held)),
            (Plan::Stored(_), None) => return "Etch counts it as stored".to_owned(),
            (Plan::Write(write), None) => write,
        };
        let how = match (write.strategy, self.rules.terms.ownership) {
            (Strategy::Apply, Ownership::None) => "with a write that changes nothing that a read shows",
            (Strategy::Apply, Ownership::Own) => "with a server-side apply, and owns it (ownership: Own)",
            (Strategy::Merge, _) => "with an empty merge patch, because the object has no managedFields",
            (Strategy::Rewrite, _) => "with a patch that moves managedFields entries to the storage version",
            (Strategy::Status, _) => "through its status",
            (Strategy::Follow | Strategy::Embed, _) => "with the new default",
        };
        let dropped = self.dropped();
        let dropped = match dropped.is_empty() {
            true => String::new(),
            false => format!(", and drops {} (hiddenFields: Drop)", dropped.join(", ")),
        };
        format!("Etch stores it {how}{dropped}")
    }

    /// The hidden fields that a write drops, as the policy asks. Those that are known to be gone are none.
    fn dropped(&self) -> Vec<String> {
        let Rules { terms, deciding, .. } = self.rules;
        if terms.hidden_fields == HiddenFields::Hold {
            return Vec::new();
        }
        still_hidden(self.object, self.crd, deciding).iter().map(Path::to_string).collect()
    }
}

fn why_held(held: &Held) -> String {
    let why = match held.reason {
        Hold::HiddenFields => {
            "a write may destroy fields that reads do not show: managedFields or last-applied name them, or \
             they had a default before"
                .to_owned()
        }
        Hold::Misfit => {
            "a field has another type than the schema, so a write would clear managedFields".to_owned()
        }
        Hold::InvalidDefaults if held.broken.is_empty() => "the default itself is invalid".to_owned(),
        Hold::InvalidDefaults => format!("its defaults would make it invalid: {}", held.broken_in_short()),
    };
    let paths: Vec<_> = held.paths.iter().map(Path::to_string).collect();
    format!("{why} ({})", paths.join(", "))
}
