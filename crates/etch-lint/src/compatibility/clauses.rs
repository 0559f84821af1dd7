//! ETCH314: allOf, anyOf, oneOf and not.

use serde_json::Value;

use super::keywords::{NOTHING, is_set, list, present};
use super::pair::{Changes, Check, LOOSENED, Pair};
use crate::rule::{Rule, Severity};

pub(super) const NARROWED: Rule = Rule {
    code: "ETCH314",
    name: "clause-narrowed",
    severity: Severity::Error,
    summary: "an upgrade adds or changes a clause of allOf, anyOf, oneOf or not",
    help: "\
An object that was valid may not satisfy the new clauses. The API server refuses to create it again, and every
update that changes the object around them.

What a clause of allOf says is compared keyword by keyword; other limits than an enum count as new when they
move out of it. A clause of anyOf must have one in the new list that allows all that it did. For oneOf and
not, every change counts that is not known to allow more: if yours allows all that was allowed before, record
that with --exceptions.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    all_of(pair, changes);
    any_of(pair, changes);
    one_of(pair, changes);
    not(pair, changes);
}

/// Each clause must hold. Those that stay where they are are compared in detail.
fn all_of(pair: &Pair<'_>, changes: &mut Changes) {
    let (old, new) = (list(pair.old, "allOf"), list(pair.new, "allOf"));
    let gone = old.iter().filter(|clause| says_more(pair.old, clause) && !holds(new, clause));
    let gone: Vec<_> = gone.collect();
    let came = new.iter().enumerate();
    let came: Vec<_> =
        came.filter(|(_, clause)| says_more(pair.new, clause) && !holds(old, clause)).collect();
    if gone.len() == came.len() {
        for (old, (index, new)) in gone.into_iter().zip(came) {
            pair.clause(old, new, format!("allOf[{index}]")).walk(changes);
        }
        return;
    }
    // The schema around a new clause may have had the same restriction before.
    for (index, new) in came {
        let mut found = Changes::checked_by(changes.checks);
        pair.clause(pair.old, new, format!("allOf[{index}]")).walk(&mut found);
        changes.found.extend(found.found.into_iter().filter(|change| change.rule.can_refuse_objects()));
    }
    if !gone.is_empty() {
        changes.add(&LOOSENED, pair.path.clone(), "allOf has fewer clauses");
    }
}

/// One clause must hold, so nothing is refused while another allows all that each did.
fn any_of(pair: &Pair<'_>, changes: &mut Changes) {
    let clauses = |schema| if is_of_int_or_string(schema) { &[][..] } else { list(schema, "anyOf") };
    let (old, new) = (clauses(pair.old), clauses(pair.new));
    match (old, new) {
        ([], []) => {}
        ([], _) => changes.add(&NARROWED, pair.path.clone(), "anyOf is new"),
        (_, []) => changes.add(&LOOSENED, pair.path.clone(), "there is no anyOf any more"),
        _ if old.iter().any(|clause| !is_covered(pair, clause, new, changes.checks)) => {
            changes.add(&NARROWED, pair.path.clone(), "a clause of anyOf is gone or another one");
        }
        _ if new.iter().any(|clause| !holds(old, clause)) => {
            changes.add(&LOOSENED, pair.path.clone(), "a clause of anyOf is new or allows more");
        }
        _ => {}
    }
}

/// Whether one of the new clauses allows all that an old one does.
fn is_covered(pair: &Pair<'_>, old: &Value, new: &[Value], checks: &'static [Check]) -> bool {
    holds(new, old)
        || new.iter().any(|new| !pair.clause(old, new, "anyOf".to_owned()).may_refuse_more(checks))
}

/// Exactly one clause must hold, so a further one may refuse as well as one that is gone.
fn one_of(pair: &Pair<'_>, changes: &mut Changes) {
    let (old, new) = (list(pair.old, "oneOf"), list(pair.new, "oneOf"));
    match (old, new) {
        _ if are_same(old, new) => {}
        ([], _) => changes.add(&NARROWED, pair.path.clone(), "oneOf is new"),
        (_, []) => changes.add(&LOOSENED, pair.path.clone(), "there is no oneOf any more"),
        _ => changes.add(&NARROWED, pair.path.clone(), "the clauses of oneOf are others"),
    }
}

fn not(pair: &Pair<'_>, changes: &mut Changes) {
    match (present(pair.old, "not"), present(pair.new, "not")) {
        (None, Some(_)) => changes.add(&NARROWED, pair.path.clone(), "not is new"),
        (Some(_), None) => changes.add(&LOOSENED, pair.path.clone(), "there is no not any more"),
        (Some(old), Some(new)) if judging(old) != judging(new) => {
            // What the new clause refuses, the old one refused if it allows all that the new one does. The
            // default of a field may be newer than the clause, so none counts.
            let clause = Pair { declared: &NOTHING, ..pair.clause(new, old, "not".to_owned()) };
            match clause.may_refuse_more(changes.checks) {
                true => changes.add(&NARROWED, pair.path.clone(), "the clause of not is another one"),
                false => changes.add(&LOOSENED, pair.path.clone(), "the clause of not refuses less"),
            }
        }
        _ => {}
    }
}

impl<'a> Pair<'a> {
    /// A clause, and what is compared with it. `keyword` leads to it.
    fn clause<'b>(&self, old: &'b Value, new: &'b Value, keyword: String) -> Pair<'b>
    where
        'a: 'b,
    {
        let inside = match self.inside.as_str() {
            "" => keyword,
            outer => format!("{outer}.{keyword}"),
        };
        let Pair { declared, is_needed, was_required, is_metadata, .. } = *self;
        Pair { old, new, declared, path: self.path.clone(), is_needed, was_required, is_metadata, inside }
    }

    /// Whether the new schema may refuse what the old one allows.
    fn may_refuse_more(&self, checks: &'static [Check]) -> bool {
        let mut changes = Changes::checked_by(checks);
        self.walk(&mut changes);
        changes.found.iter().any(|change| change.rule.can_refuse_objects())
    }
}

const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Whether anyOf is the one that the server lets stand beside `x-kubernetes-int-or-string`, and that adds
/// nothing to it.
fn is_of_int_or_string(schema: &Value) -> bool {
    is_set(schema, INT_OR_STRING) && is_either(schema)
}

/// Whether a clause restricts more than the schema that has it.
fn says_more(schema: &Value, clause: &Value) -> bool {
    !(is_set(schema, INT_OR_STRING) && is_either(clause))
}

/// Whether anyOf has a clause for integers and one for texts. The server lets it stand in a clause of allOf
/// as well.
fn is_either(schema: &Value) -> bool {
    let types: Vec<_> = list(schema, "anyOf").iter().map(|clause| &clause["type"]).collect();
    types == ["integer", "string"]
}

fn holds(clauses: &[Value], clause: &Value) -> bool {
    clauses.iter().any(|other| judging(other) == judging(clause))
}

/// Whether two lists have the same clauses, each as often, in any order.
fn are_same(old: &[Value], new: &[Value]) -> bool {
    let mut others: Vec<_> = new.iter().map(judging).collect();
    let mut is_there = |clause: &Value| {
        let place = others.iter().position(|other| *other == judging(clause));
        place.map(|place| others.swap_remove(place)).is_some()
    };
    old.len() == new.len() && old.iter().all(&mut is_there)
}

/// The clause without what refuses nothing.
fn judging(clause: &Value) -> Value {
    let mut clause = clause.clone();
    strip(&mut clause);
    clause
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for keyword in ["description", "title", "example", "externalDocs"] {
                // A property of that name is a schema.
                if fields.get(keyword).is_some_and(|text| text.is_string()) {
                    fields.remove(keyword);
                }
            }
            // The values of an enum are no schemas.
            let schemas =
                fields.iter_mut().filter(|(keyword, value)| *keyword != "enum" || !value.is_array());
            schemas.for_each(|(_, value)| strip(value));
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
