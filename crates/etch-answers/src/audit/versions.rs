//! At which versions etcd holds objects, and which versions could go out of `status.storedVersions`.

use std::io::{self, Write};

use etch_core::crd::Crd;
use etch_core::object::Identity;
use etch_core::plan::Clock;
use etch_core::scope::Scope;
use etch_core::stored::{Opaque, decode};
use etch_core::stored_versions::{OldVersion, VersionTally, Whereabouts, removable};
use jiff::Timestamp;
use kube_structural_schema::json::{Json, outline};
use serde_json::{Value, json};

use crate::failures::{self, Failure, in_short};
use crate::sample::{Sample, write_left};
use crate::{Cell, Style, Table, Tone, counted, scope};

/// What is reported of one CRD.
#[derive(Default)]
pub struct Versions {
    /// Its name.
    pub crd: String,
    /// Its storage version; `None` if it cannot be read.
    storage: Option<String>,
    /// `status.storedVersions` without the storage version.
    listed: Vec<String>,
    /// At which versions how many objects are.
    pub tally: VersionTally,
    /// The same versions, and those at which objects are stored without being listed, with why each of them
    /// has to stay.
    old: Vec<OldVersion>,
    /// The objects that are not proved to be at the storage version.
    details: Sample<Whereabouts>,
    /// Why there are no numbers, or not all.
    pub error: Option<String>,
}

impl Versions {
    /// Of a CRD, before its objects are looked at. `limit` is how many objects are named; `None` for all.
    pub fn new(crd: &Crd, limit: Option<usize>) -> Self {
        Self {
            crd: crd.name().to_owned(),
            storage: Some(crd.storage().name.clone()),
            listed: crd.versions_elsewhere().map(str::to_owned).collect(),
            details: Sample::new(limit),
            ..Self::default()
        }
    }

    /// Counts an object, and lists it where it is not proved to be at the storage version.
    pub fn add(&mut self, identity: Identity, whereabouts: Whereabouts) {
        self.tally.add(&whereabouts);
        if whereabouts != Whereabouts::Storage {
            self.details.add(identity, whereabouts);
        }
    }

    /// Of a CRD that cannot be read.
    pub fn failed(name: &str, error: String) -> Self {
        Self { crd: name.to_owned(), error: Some(error), ..Self::default() }
    }

    /// Whether it failed before anything was read.
    pub fn is_nothing(&self) -> bool {
        self.error.is_some() && self.tally.objects() == 0
    }

    /// Whether all objects are proved to be at the storage version, and no other version is listed.
    pub fn is_clean(&self) -> bool {
        self.listed.is_empty() && self.tally.is_proved()
    }

    /// Finds out which versions could go, once all objects were looked at, or as many as could be.
    pub fn conclude(&mut self, crd: &Crd, scope: &Scope, lag: Option<String>) {
        let part = scope.namespace().map(|namespace| format!("only namespace {namespace} was read"));
        let failed = self.error.as_ref().map(|_| "not all objects were read".to_owned());
        self.old = self.tally.old_versions(crd, failed.or(part).or(lag).as_deref());
        self.old.extend(self.tally.unlisted(crd));
    }

    /// For programs.
    fn document(&self, keep_details: bool) -> Value {
        let VersionTally { proved, at, another, unknown, unreadable } = &self.tally;
        let mut document = json!({
            "crd": self.crd,
            "storageVersion": self.storage,
            "oldVersions": self.old
                .iter()
                .map(|old| json!({ "name": old.name, "removable": old.kept.is_empty(), "kept": old.kept }))
                .collect::<Vec<_>>(),
            "objects": self.tally.objects(),
            "proved": proved,
            "at": at,
            "another": another,
            "unknown": unknown,
            "unreadable": unreadable,
        });
        if keep_details {
            let of = |(Identity { namespace, name, .. }, whereabouts): (&Identity, &Whereabouts)| {
                json!({
                    "namespace": namespace, "name": name, "storedAt": whereabouts.as_str(),
                })
            };
            document["details"] = self.details.iter().map(of).collect();
        }
        if let Some(error) = &self.error {
            document["error"] = Value::from(error.as_str());
        }
        document
    }
}

/// The version that a value is stored at. Reads only the version, because the value may be nested too deeply.
pub fn of_bytes(bytes: &[u8], crd: &Crd) -> Whereabouts {
    let stored = match decode(bytes) {
        Err(Opaque::TooDeep) => outline(bytes).ok(),
        stored => stored.ok(),
    };
    stored.map_or(Whereabouts::Unreadable, |stored| Whereabouts::of_bytes(&stored, crd))
}

/// Why API servers may still store objects at an old version after they were read; `None` if they do not.
pub fn lag(document: &Json, crd: &Crd, now: Timestamp) -> Option<String> {
    let may_lag = crd.generation() != 1 && Clock::of(document, now).may_lag(now);
    may_lag.then(|| {
        "nothing shows that the CRD last changed more than 11 minutes ago, and API servers that lag behind \
         may still store objects at it"
            .to_owned()
    })
}

/// Between the version and what could go are numbers.
const COLUMNS: [&str; 9] =
    ["CRD", "STORAGE", "OBJECTS", "PROVED", "ELSEWHERE", "UNKNOWN", "UNREADABLE", "COULD GO", "NOTE"];

/// What was found of all CRDs, with how many were `skipped`; with `objects` also the objects. `by_bytes` is
/// whether etcd was read.
///
/// # Errors
/// What the writer answers.
pub fn table(
    out: &mut dyn Write,
    style: &Style,
    all: &[Versions],
    skipped: u64,
    (objects, by_bytes): (bool, bool),
) -> io::Result<()> {
    match all.is_empty() {
        true => writeln!(out, "{}", nothing_old(by_bytes))?,
        false => numbers(out, style, all, objects)?,
    }
    if skipped > 0 {
        writeln!(out, "{}", not_read(skipped))?;
    }
    Ok(())
}

fn numbers(out: &mut dyn Write, style: &Style, all: &[Versions], objects: bool) -> io::Result<()> {
    let mut table = Table::new(COLUMNS).numbers(&COLUMNS[2..7]);
    let mut kept = Table::new(["CRD", "OLD VERSION", "STAYS BECAUSE"]);
    for versions in all {
        let count = |number: u64, tone| match number {
            0 if versions.is_nothing() => Cell::default(),
            0 => Cell::new("0", Tone::Faint),
            number => Cell::new(number.to_string(), tone),
        };
        let tally = &versions.tally;
        let could_go: Vec<&str> = removable(&versions.old).collect();
        table.row([
            versions.crd.as_str().into(),
            versions.storage.as_deref().unwrap_or_default().into(),
            count(tally.objects(), Tone::Plain),
            count(tally.proved, Tone::Good),
            count(tally.elsewhere(), Tone::Bad),
            count(tally.unknown, Tone::Warning),
            count(tally.unreadable, Tone::Warning),
            Cell::new(could_go.join(" "), Tone::Good),
            versions.error.as_ref().map_or_else(Cell::default, |error| Cell::new(in_short(error), Tone::Bad)),
        ]);
        for old in versions.old.iter().filter(|old| !old.kept.is_empty()) {
            kept.row([versions.crd.as_str().into(), old.name.as_str().into(), old.kept.join("; ").into()]);
        }
    }
    table.write(out, style)?;
    kept.write_below(out, style)?;
    if objects {
        write_objects(out, style, all)?;
    }
    if all.iter().any(|versions| versions.tally.unknown > 0) {
        writeln!(
            out,
            "\nNothing shows at which version unknown objects are stored. To know it, give access to etcd \
             (--etcd-endpoints) or a snapshot of it, or run `etch persist CRD --every-object`, which stores \
             each at the storage version."
        )?;
    }
    Ok(())
}

/// What is printed where no CRD has an old version.
fn nothing_old(by_bytes: bool) -> &'static str {
    match by_bytes {
        true => {
            "All objects of each CRD are stored at its storage version, and status.storedVersions has no \
             other."
        }
        false => "status.storedVersions of each CRD has its storage version alone.",
    }
}

/// What is printed where CRDs were skipped.
fn not_read(skipped: u64) -> String {
    let crds = counted(skipped, "CRD");
    format!(
        "Not read: the objects of {crds} whose status.storedVersions has only the storage version. Only etcd \
         shows whether that list was shortened by hand: give access to it (--etcd-endpoints) or to a \
         snapshot of it."
    )
}

/// The objects that are not proved to be stored at the storage version.
fn write_objects(out: &mut dyn Write, style: &Style, all: &[Versions]) -> io::Result<()> {
    let mut table = Table::new(["CRD", "OBJECT", "STORED AT"]);
    for versions in all {
        for (identity, whereabouts) in versions.details.iter() {
            let at = whereabouts.as_str();
            table.row([versions.crd.as_str().into(), identity.to_string().into(), at.into()]);
        }
    }
    table.write_below(out, style)?;
    write_left(out, all.iter().map(|versions| versions.details.left()).sum())
}

/// What went wrong with each CRD.
pub fn failed(all: &[Versions], scope: &Scope) -> Vec<String> {
    let failures = all.iter().filter_map(|versions| {
        let error = versions.error.clone()?;
        Some(Failure { crd: versions.crd.clone(), error, resume: String::new() })
    });
    failures::lines(failures.collect(), scope)
}

/// Of all CRDs, for programs, with how many were skipped.
pub fn document(all: &[Versions], skipped: u64, keep_details: bool, scope: &Scope) -> Value {
    let crds: Vec<_> = all.iter().map(|versions| versions.document(keep_details)).collect();
    scope::in_document(json!({ "crds": crds, "skipped": skipped }), scope)
}
