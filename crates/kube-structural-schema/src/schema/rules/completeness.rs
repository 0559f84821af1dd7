//! The rule that whatever the root's `allOf`, `anyOf`, `oneOf` and `not` restrict is declared as structure as
//! well. Upstream does not look at restrictions below the root.

use super::violation::Report;
use crate::schema::{Constraints, Place, Schema};

/// `validateStructuralCompleteness`
pub(super) fn check(schema: &Schema, at: &Place<'_>, report: &mut Report) {
    if let Some(constraints) = &schema.constraints {
        clauses(constraints, schema, at, at, report);
    }
}

/// The structure's place and the clause's place go down side by side.
fn clauses(of: &Constraints, structure: &Schema, at: &Place<'_>, clause_at: &Place<'_>, report: &mut Report) {
    if let Some(clause) = &of.not {
        declared(clause, structure, at, &clause_at.child("not"), report);
    }
    for (name, clauses) in [("allOf", &of.all_of), ("anyOf", &of.any_of), ("oneOf", &of.one_of)] {
        let here = clause_at.child(name);
        for (index, clause) in clauses.iter().enumerate() {
            declared(clause, structure, at, &here.index(index), report);
        }
    }
}

fn declared(clause: &Schema, structure: &Schema, at: &Place<'_>, clause_at: &Place<'_>, report: &mut Report) {
    if let Some(constraints) = &clause.constraints {
        clauses(constraints, structure, at, clause_at, report);
    }
    if let Some(item) = &clause.items {
        let (at, clause_at) = (at.child("items"), clause_at.child("items"));
        part(item, structure.items.as_deref(), &at, &clause_at, report);
    }
    let (at, clause_at) = (at.child("properties"), clause_at.child("properties"));
    for (name, property) in clause.properties.iter() {
        part(property, structure.properties.get(name), &at.key(name), &clause_at.key(name), report);
    }
}

fn part(
    clause: &Schema,
    structure: Option<&Schema>,
    at: &Place<'_>,
    clause_at: &Place<'_>,
    report: &mut Report,
) {
    match structure {
        Some(structure) => declared(clause, structure, at, clause_at, report),
        None => report.required(at, format!("because it is defined in {clause_at}")),
    }
}
