//! `etch audit --stored-versions`: at which versions etcd holds objects, and which versions could go out of
//! `status.storedVersions`. It does not change that list.

use std::io::Write;

use crate::commands::namespace;
use etch::cluster::etcd::{Opaque, decode};
use etch::cluster::{Cluster, ObjectSource, Shown, Witnesses};
use etch_answers::failures::{self, Failure, in_short};
use etch_answers::sample::{Sample, write_left};
use etch_answers::scope;
use etch_answers::{Cell, Style, Table, Tone, counted};
use etch_core::crd::Crd;
use etch_core::object::Identity;
use etch_core::plan::{Clock, Record, Witness};
use etch_core::prediction::record_of;
use etch_core::scope::Scope;
use etch_core::stored_versions::{OldVersion, VersionTally, Whereabouts, removable};
use futures::TryStreamExt;
use jiff::Timestamp;
use kube_structural_schema::json::{Json, outline};
use serde_json::{Value, json};

use super::super::etcd::report_on;
use super::super::{crds_named, failure, serves_its_objects};
use super::{Audit, definitions};
use crate::commands::emit::{emit, ended};
use crate::commands::global::Global;
use crate::commands::outcome::Outcome;

/// What is reported of one CRD.
#[derive(Default)]
struct Versions {
    crd: String,
    storage: Option<String>,
    /// `status.storedVersions` without the storage version.
    listed: Vec<String>,
    tally: VersionTally,
    /// The same versions, and those at which objects are stored without being listed, with why each of them
    /// has to stay.
    old: Vec<OldVersion>,
    /// The objects that are not proved to be at the storage version.
    details: Sample<Whereabouts>,
    /// Why there are no numbers, or not all.
    error: Option<String>,
}

/// What is reported of all CRDs.
#[derive(Default)]
struct Looked {
    all: Vec<Versions>,
    /// How many CRDs were skipped because of what their `status.storedVersions` lists.
    skipped: u64,
}

/// A CRD whose objects are looked at.
struct Look<'a> {
    crd: &'a Crd,
    /// What proves where objects are that are shown as the API server reads them.
    record: Record,
    versions: &'a mut Versions,
}

impl Audit {
    pub(super) async fn stored_versions(
        &self,
        global: &Global,
        out: &mut dyn Write,
    ) -> anyhow::Result<Outcome> {
        let scope = global.scope()?;
        let source = self.etcd.open().await?;
        let by_bytes = source.is_some();
        let mut looked = match source {
            Some(snapshot @ ObjectSource::Snapshot(..)) => {
                let looked = self.versions_in_snapshot(&snapshot, &scope).await?;
                if looked.all.iter().all(|versions| versions.tally.objects() == 0) {
                    namespace::note_no_objects(&scope)?;
                }
                looked
            }
            etcd => {
                let cluster = Cluster::connect(&global.target()).await?;
                namespace::exists(&cluster, &scope).await?;
                self.versions_in_cluster(&cluster, etcd, &scope).await?
            }
        };
        let is_nothing = !looked.all.is_empty() && looked.all.iter().all(Versions::is_nothing);
        if self.crds.is_empty() {
            looked.all.retain(|versions| !versions.is_clean() || versions.error.is_some());
        }
        let Looked { all, skipped } = looked;
        if is_nothing {
            return Err(failure(failed(&all, &scope)));
        }
        let document = || {
            let crds: Vec<_> = all.iter().map(|versions| versions.document(self.objects)).collect();
            self.etcd.in_document(scope::in_document(json!({ "crds": crds, "skipped": skipped }), &scope))
        };
        emit(out, self.output, document, |out| {
            scope::write(out, &scope)?;
            match all.is_empty() {
                true => writeln!(out, "{}", nothing_old(by_bytes))?,
                false => table(out, &global.style(), &all, self.objects)?,
            }
            if skipped > 0 {
                writeln!(out, "{}", not_read(skipped))?;
            }
            self.etcd.of_snapshot(false).iter().try_for_each(|sentence| writeln!(out, "{sentence}"))
        })?;
        ended(failed(&all, &scope), all.iter().all(Versions::is_clean))
    }

    /// Looks at the objects of a cluster, by their views or by what its etcd holds.
    async fn versions_in_cluster(
        &self,
        cluster: &Cluster,
        etcd: Option<ObjectSource>,
        scope: &Scope,
    ) -> anyhow::Result<Looked> {
        let (mut looked, mut witnesses) = (Looked::default(), Witnesses::default());
        let all = &mut looked.all;
        let is_by_view = etcd.is_none();
        let source = etcd.unwrap_or_else(|| ObjectSource::from(cluster.clone()));
        let is_named = !self.crds.is_empty();
        for name in crds_named(cluster, &self.crds).await? {
            let (crd, document) = match definitions::in_cluster(cluster, &name).await {
                Ok(Some(read)) => read,
                // Deleted since it was listed.
                Ok(None) => continue,
                Err(error) => {
                    all.push(Versions::failed(&name, error));
                    continue;
                }
            };
            if !scope::covers(scope, &crd, is_named)? {
                continue;
            }
            // Only etcd shows whether its list was shortened by hand.
            if is_by_view && !is_named && !crd.stored_elsewhere() {
                looked.skipped += 1;
                continue;
            }
            let mut versions = self.versions_of(&crd);
            let read = async {
                let mut record = Record::default();
                if is_by_view {
                    serves_its_objects(cluster, &crd).await?;
                    let report = report_on(cluster, &crd).await?;
                    record = record_of(report.as_ref(), &document, &crd, Timestamp::now());
                    witnesses.feed(cluster, &crd.resource(), scope, &mut record.clock).await;
                }
                look(&source, vec![Look { crd: &crd, record, versions: &mut versions }], scope).await
            };
            let read = read.await;
            versions.error = read.err().map(|error| failures::of_objects(&*error, &crd, &document));
            versions.conclude(&crd, scope, lag(&document, &crd));
            all.push(versions);
        }
        Ok(looked)
    }

    /// Looks at what a snapshot holds: its CRDs, and their objects.
    async fn versions_in_snapshot(&self, snapshot: &ObjectSource, scope: &Scope) -> anyhow::Result<Looked> {
        let is_named = !self.crds.is_empty();
        let begin = |crd: &Crd, _: &Json| {
            let is_in_scope = is_named || scope::reaches(scope, crd);
            Ok((is_in_scope && scope::covers(scope, crd, is_named)?).then(|| self.versions_of(crd)))
        };
        let mut all = definitions::in_snapshot(snapshot, &self.crds, begin, Versions::failed).await?;
        let looks = all.iter_mut().filter_map(|(crd, versions)| {
            Some(Look { crd: crd.as_ref()?, record: Record::default(), versions })
        });
        look(snapshot, looks.collect(), scope).await?;
        for (crd, versions) in &mut all {
            if let Some(crd) = crd {
                versions.conclude(crd, scope, None);
            }
        }
        Ok(Looked { all: all.into_iter().map(|(_, versions)| versions).collect(), skipped: 0 })
    }

    fn versions_of(&self, crd: &Crd) -> Versions {
        Versions {
            crd: crd.name().to_owned(),
            storage: Some(crd.storage().name.clone()),
            listed: crd.versions_elsewhere().map(str::to_owned).collect(),
            details: Sample::new(self.limit.of(self.output)),
            ..Versions::default()
        }
    }
}

/// Looks at all objects of CRDs.
async fn look(source: &ObjectSource, mut looks: Vec<Look<'_>>, scope: &Scope) -> anyhow::Result<()> {
    let resources = looks.iter().map(|look| look.crd.resource()).collect();
    let mut pages = source.pages(resources, scope);
    while let Some(page) = pages.try_next().await? {
        let Look { crd, record, versions } = &mut looks[page.of];
        for shown in page.objects {
            let (identity, whereabouts) = match shown {
                Shown::View(object) | Shown::Written(object) => {
                    Witness::of(&object).into_iter().for_each(|witness| record.clock.add_witness(witness));
                    (object.identity(), Whereabouts::of_view(&object, crd, record))
                }
                Shown::Stored(identity, value) => (identity, of_bytes(&value.bytes, crd)),
            };
            versions.tally.add(&whereabouts);
            if whereabouts != Whereabouts::Storage {
                versions.details.add(identity, whereabouts);
            }
        }
    }
    Ok(())
}

/// The version that a value is stored at. Reads only the version, because the value may be nested too deeply.
fn of_bytes(bytes: &[u8], crd: &Crd) -> Whereabouts {
    let stored = match decode(bytes) {
        Err(Opaque::TooDeep) => outline(bytes).ok(),
        stored => stored.ok(),
    };
    stored.map_or(Whereabouts::Unreadable, |stored| Whereabouts::of_bytes(&stored, crd))
}

/// Why API servers may still store objects at an old version after they were read; `None` if they do not.
fn lag(document: &Json, crd: &Crd) -> Option<String> {
    let may_lag = crd.generation() != 1 && Clock::of(document, Timestamp::now()).may_lag(Timestamp::now());
    may_lag.then(|| {
        "nothing shows that the CRD last changed more than 11 minutes ago, and API servers that lag behind \
         may still store objects at it"
            .to_owned()
    })
}

impl Versions {
    /// Of a CRD that cannot be read.
    fn failed(name: &str, error: String) -> Self {
        Self { crd: name.to_owned(), error: Some(error), ..Self::default() }
    }

    /// Whether it failed before anything was read.
    fn is_nothing(&self) -> bool {
        self.error.is_some() && self.tally.objects() == 0
    }

    fn is_clean(&self) -> bool {
        self.listed.is_empty() && self.tally.is_proved()
    }

    /// Finds out which versions could go, once all objects were looked at, or as many as could be.
    fn conclude(&mut self, crd: &Crd, scope: &Scope, lag: Option<String>) {
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

/// Between the version and what could go are numbers.
const COLUMNS: [&str; 9] =
    ["CRD", "STORAGE", "OBJECTS", "PROVED", "ELSEWHERE", "UNKNOWN", "UNREADABLE", "COULD GO", "NOTE"];

fn table(out: &mut dyn Write, style: &Style, all: &[Versions], objects: bool) -> std::io::Result<()> {
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
fn write_objects(out: &mut dyn Write, style: &Style, all: &[Versions]) -> std::io::Result<()> {
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
fn failed(all: &[Versions], scope: &Scope) -> Vec<String> {
    let failures = all.iter().filter_map(|versions| {
        let error = versions.error.clone()?;
        Some(Failure { crd: versions.crd.clone(), error, resume: String::new() })
    });
    failures::lines(failures.collect(), scope)
}
