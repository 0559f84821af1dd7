//! The tables of an audit, for people.

use std::io::{self, Write};

use etch_core::audit::{Lacking, Totals};
use kube_structural_schema::json::DEPTH;
use kube_structural_schema::path::Path;

use super::audited::Audited;
use super::unknown::Unknown;
use crate::failures::in_short;
use crate::policy::write_all;
use crate::sample::write_left;
use crate::{Cell, Style, Table, Tone, counted};

/// Between the version and the note are numbers.
const COLUMNS: [&str; 11] = [
    "CRD",
    "VERSION",
    "OBJECTS",
    "STORED",
    "PHANTOM",
    "UNKNOWN",
    "HELD",
    "IGNORED",
    "TERMINATING",
    "UNREADABLE",
    "NOTE",
];

/// The numbers of all CRDs, what is missing, and what to do; with `objects` also the objects.
///
/// # Errors
/// What the writer answers.
pub fn table(
    out: &mut dyn Write,
    style: &Style,
    all: &[Audited],
    objects: bool,
    is_snapshot: bool,
) -> io::Result<()> {
    if all.is_empty() {
        return writeln!(out, "No CRD has defaults.");
    }
    let mut table = Table::new(COLUMNS).numbers(&COLUMNS[2..10]);
    for audited in all {
        // Nothing was counted of what could not be read.
        let count = |number: u64, tone| match number {
            0 if audited.is_nothing() => Cell::default(),
            0 => Cell::new("0", Tone::Faint),
            number => Cell::new(number.to_string(), tone),
        };
        let Totals { objects, stored, phantom, unknown, unreadable, held, ignored, terminating, .. } =
            audited.totals;
        table.row([
            audited.crd.as_str().into(),
            audited.storage_version.as_deref().unwrap_or_default().into(),
            count(objects, Tone::Plain),
            count(stored, Tone::Good),
            count(phantom, Tone::Bad),
            count(unknown, Tone::Warning),
            count(held, Tone::Warning),
            count(ignored, Tone::Warning),
            count(terminating, Tone::Warning),
            count(unreadable, Tone::Warning),
            note(audited),
        ]);
    }
    table.write(out, style)?;
    let mut paths = Table::new(["CRD", "DEFAULT", "MISSING", "UNKNOWN"]).numbers(&["MISSING", "UNKNOWN"]);
    for audited in all {
        for (path, Lacking { missing, unknown }) in &audited.totals.paths {
            paths.row([
                audited.crd.as_str().into(),
                path.to_string().into(),
                missing.to_string().into(),
                unknown.to_string().into(),
            ]);
        }
    }
    paths.write_below(out, style)?;
    if objects {
        write_objects(out, style, all)?;
    }
    writeln!(out)?;
    let too_deep: u64 = all.iter().map(|audited| audited.totals.too_deep).sum();
    if too_deep > 0 {
        let objects = counted(too_deep, "object");
        writeln!(out, "Etch leaves {objects} alone: nested more than {DEPTH} levels deep.")?;
    }
    if all.iter().any(|audited| audited.totals.unknown > audited.totals.too_deep) {
        Unknown::write(all.iter().map(|audited| &audited.unknown), is_snapshot, out)?;
    }
    let not_selected: u64 = all.iter().map(|audited| audited.totals.not_selected).sum();
    if not_selected > 0 {
        let objects = counted(not_selected, "object");
        writeln!(out, "Etch does not write {objects}: not selected by the policy (objects).")?;
    }
    let following: u64 = all.iter().map(|audited| audited.totals.following).sum();
    if following > 0 {
        let objects = counted(following, "object");
        writeln!(out, "Values of {objects} are old defaults that follow the new one (onChange: Follow).")?;
    }
    let read = all.iter().filter(|audited| !audited.is_nothing());
    write_all(out, read.map(|audited| (audited.crd.as_str(), &audited.rules)))
}

/// What failed, or why the operator writes no object of the CRD, whatever its policy sets.
fn note(audited: &Audited) -> Cell {
    match (&audited.error, &audited.non_structural) {
        (Some(error), _) => Cell::new(in_short(error), Tone::Bad),
        (None, Some(_)) => Cell::new("not structural, so Etch writes none", Tone::Warning),
        (None, None) => Cell::default(),
    }
}

fn write_objects(out: &mut dyn Write, style: &Style, all: &[Audited]) -> io::Result<()> {
    let mut table = Table::new(["CRD", "OBJECT", "STATE", "WHERE"]);
    for audited in all {
        for (identity, detail) in audited.details.iter() {
            let paths: Vec<_> = detail
                .missing
                .iter()
                .map(|missing| format!("{} ({})", missing.path, missing.state))
                .collect();
            let mut reported = vec![paths.join(" ")];
            if let Some(held) = &detail.held {
                let broken = held.broken_in_short();
                let why = if broken.is_empty() { broken } else { format!(" ({broken})") };
                reported.push(format!("held: {}{why}", held.reason.as_str()));
            }
            reported.extend(detail.rejected.as_ref().map(|why| format!("rejected: {why}")));
            reported.extend(detail.skipped.map(|why| why.in_words().to_owned()));
            if !detail.follows.is_empty() {
                let follows: Vec<_> = detail.follows.iter().map(Path::to_string).collect();
                reported.push(format!("follows: {}", follows.join(" ")));
            }
            if !detail.hidden.is_empty() {
                let hidden: Vec<_> = detail.hidden.iter().map(Path::to_string).collect();
                reported.push(format!("only etcd holds {}", hidden.join(" ")));
            }
            reported.extend(detail.unreadable.clone());
            reported.retain(|text| !text.is_empty());
            table.row([
                audited.crd.as_str().into(),
                identity.to_string().into(),
                detail.state().into(),
                reported.join("; ").into(),
            ]);
        }
    }
    table.write_below(out, style)?;
    write_left(out, all.iter().map(|audited| audited.details.left()).sum())
}
