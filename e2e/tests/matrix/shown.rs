//! What the matrix shows, as facts of `docs/apiserver.md`: each holds for all cells of all releases that are
//! kept.

use anyhow::{Result, ensure};
use e2e::matrix::{Admission, Conversion, Outcome, Owners, Part, Place, Places, S, Verb};

use crate::{Case, each_case, is_stored_elsewhere};

/// Fails unless this many cells are looked at, and none of them is against the fact.
fn holds(least: usize, is_against: impl Fn(&Case<'_>) -> Option<bool>) -> Result<()> {
    let (mut count, mut against) = (0, Vec::new());
    each_case(|case| {
        let Some(is_against) = is_against(case) else { return };
        count += 1;
        if is_against {
            against.push(format!("{} {} {}", case.release, case.world, case.cell));
        }
    })?;
    ensure!(count >= least, "only {count} cells were looked at");
    ensure!(against.is_empty(), "{} of {count} cells: {}", against.len(), against.join(", "));
    Ok(())
}

fn is_ok(outcome: &Outcome) -> bool {
    outcome.answer == "200" || outcome.answer == "201"
}

fn creates(case: &Case<'_>) -> bool {
    case.cell.owners == Owners::New
}

/// Whether all owners before the request are at versions that have the defaulted fields.
fn owners_know(case: &Case<'_>) -> bool {
    matches!(
        case.cell.owners,
        Owners::Nobody | Owners::AppliedV1 | Owners::UpdatedV1 | Owners::UpdatedV1beta1
    )
}

fn all() -> Places {
    Places(Place::ALL.iter().copied().collect())
}

#[test]
fn w32_identity_of_the_status() -> Result<()> {
    holds(30, |case| {
        let Outcome { raw, generation, before, after, .. } = case.outcome;
        let is_meant = case.cell.verb == Verb::Identity
            && case.cell.part == Part::Status
            && case.cell.version == S
            && matches!(case.cell.owners, Owners::AppliedV1 | Owners::UpdatedV1);
        let is_whole = || raw.as_ref().is_some_and(|raw| raw.version == S && raw.holds == all());
        is_meant.then(|| !(is_ok(case.outcome) && is_whole() && *generation == 0 && before == after))
    })
}

#[test]
fn d11_creates() -> Result<()> {
    let status = Places([Place::Status].into());
    holds(15, |case| {
        let is_meant =
            creates(case) && case.world.has_status && case.cell.version == S && is_ok(case.outcome);
        is_meant.then(|| case.lacks() != status)
    })
}

#[test]
fn a_write_at_s_stores_what_it_shows() -> Result<()> {
    holds(500, |case| {
        let is_meant = !creates(case) && owners_know(case) && case.cell.version == S && is_ok(case.outcome);
        is_meant.then(|| case.outcome.raw.as_ref().is_none_or(|raw| raw.holds != all()))
    })
}

#[test]
fn d13_stripped() -> Result<()> {
    holds(100, |case| {
        let is_meant = case.world.admission == Admission::Strips
            && case.world.conversion == Conversion::None
            && owners_know(case)
            && case.cell.version != "v1alpha1"
            && is_ok(case.outcome);
        is_meant.then(|| !case.outcome.raw.as_ref().is_some_and(|raw| raw.holds.0.contains(&Place::Spec)))
    })
}

#[test]
fn d15_removed() -> Result<()> {
    holds(50, |case| {
        let is_meant = case.cell.verb == Verb::Remove && owners_know(case) && case.cell.version == S;
        is_meant.then(|| !case.outcome.raw.as_ref().is_some_and(|raw| raw.holds.0.contains(&Place::Spec)))
    })
}

#[test]
fn w27_versions() -> Result<()> {
    let metadata = Places([Place::Metadata].into());
    holds(100, |case| {
        let is_meant = case.cell.version == "v1alpha1"
            && case.cell.part == Part::Main
            && case.world.conversion == Conversion::None
            && case.outcome.written
            && !is_stored_elsewhere(case.cell)
            && is_ok(case.outcome);
        is_meant.then(|| {
            case.outcome.raw.as_ref().is_none_or(|raw| raw.holds != metadata && !raw.holds.is_empty())
        })
    })
}

#[test]
fn w28_conversion() -> Result<()> {
    holds(100, |case| {
        let is_meant = case.world.conversion == Conversion::Old
            && case.cell.version == "v1beta1"
            && case.outcome.written
            && owners_know(case)
            && is_ok(case.outcome);
        is_meant.then(|| case.outcome.raw.as_ref().is_none_or(|raw| raw.holds.0.contains(&Place::Spec)))
    })
}

#[test]
fn w29_subresources() -> Result<()> {
    let status = Places([Place::Status].into());
    holds(50, |case| {
        let is_meant = is_stored_elsewhere(case.cell)
            && case.world.has_status
            && case.world.admission == Admission::None
            && case.world.conversion != Conversion::Old
            && case.cell.version != "v1alpha1"
            && is_ok(case.outcome);
        let changes = !matches!(case.cell.verb, Verb::Identity | Verb::Delete);
        let held = match case.cell.part {
            Part::Main if changes => all().beyond(&status),
            Part::Status if changes => status.clone(),
            _ => Places::default(),
        };
        let raw = case.outcome.raw.as_ref();
        is_meant.then(|| raw.is_none_or(|raw| raw.version != S || raw.holds != held))
    })
}
