//! Each default of one object, for people and for programs.

use std::io::{self, Write};

use etch_core::api::ObjectProblem;
use etch_core::audit::{DefaultExplanation, State};
use etch_core::crd::Crd;
use etch_core::object::{IGNORE_ANNOTATION, Object};
use etch_core::plan::Skip;
use serde_json::{Value, json};

use crate::policy::{Rules, write_all};
use crate::{Cell, Style, Table, Tone};

/// An object, and what is known of each default that applies to it.
pub struct Explained<'a> {
    /// The object.
    pub object: &'a Object,
    /// Its CRD.
    pub crd: &'a Crd,
    /// How the operator treats it.
    pub rules: &'a Rules,
    /// Its defaults.
    pub defaults: &'a [DefaultExplanation],
}

impl Explained<'_> {
    /// For programs.
    pub fn document(&self) -> Value {
        let Self { object, crd, rules, defaults } = self;
        let skipped = rules.terms().skip(object);
        json!({
            "object": format!("{}/{}", crd.name(), object.identity()),
            "policy": rules.document(),
            "ignored": skipped.is_some_and(Skip::is_by_annotation),
            "terminating": skipped == Some(Skip::Terminating),
            "tooDeep": skipped == Some(Skip::TooDeep),
            "notSelected": skipped == Some(Skip::NotSelected),
            "defaults": defaults.iter().map(explanation).collect::<Vec<_>>(),
        })
    }

    /// For people.
    ///
    /// # Errors
    /// What the writer answers.
    pub fn table(&self, out: &mut dyn Write, style: &Style) -> io::Result<()> {
        let Self { object, crd, rules, defaults } = self;
        let skipped = rules.terms().skip(object);
        write_all(out, std::iter::once((crd.name(), *rules)))?;
        if let Some(why) = skipped {
            let remedy = match why {
                Skip::Ignored | Skip::IgnoredUnclear => {
                    format!("; to have its defaults stored, remove {IGNORE_ANNOTATION}")
                }
                Skip::TooDeep => "; to have its defaults stored, make it flatter".to_owned(),
                Skip::NotSelected => {
                    "; to have its defaults stored, change objects in the policy, or its labels".to_owned()
                }
                Skip::Terminating => String::new(),
            };
            writeln!(out, "Etch skips this object: {}{remedy}.", why.in_words())?;
        }
        if defaults.is_empty() {
            return writeln!(out, "No default applies to this object.");
        }
        let heads = ["DEFAULT", "STATE", "VALUE FROM", "OWNER", "REASON"];
        let mut table = Table::new(heads);
        for explanation in *defaults {
            let tone = if explanation.state == State::Stored { Tone::Good } else { Tone::Warning };
            table.row([
                explanation.path.to_string().into(),
                Cell::new(explanation.state.as_str(), tone),
                explanation.origin.into(),
                explanation.owners.join(", ").into(),
                explanation.reason.as_str().into(),
            ]);
        }
        table.write(out, style)
    }
}

fn explanation(explanation: &DefaultExplanation) -> Value {
    let DefaultExplanation { path, state, origin, owners, reason } = explanation;
    let owner = (!owners.is_empty()).then(|| owners.join(", "));
    json!({
        "path": path.to_string(), "state": state.as_str(), "origin": origin, "owner": owner, "reason": reason,
    })
}

/// Why the operator does not write an object, in words.
pub fn rejected(problem: &ObjectProblem) -> String {
    format!("the last write was rejected ({}); correct that, and Etch tries again", problem.in_words())
}
