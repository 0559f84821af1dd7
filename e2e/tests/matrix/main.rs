//! The write matrix: whether servers still do what is kept, and whether what Etch concludes from a view or an
//! answer agrees with it.
//!
//! `MATRIX_SEED` chooses the worlds that are observed again.

mod claims;
mod drift;
mod proofs;
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Result, ensure};
use e2e::matrix::{Cell, Data, GROUP, Outcome, Owners, Places, S, World, crd, served};
use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::plan::Record;
use kube_structural_schema::json::Json;
use serde_json::json;

/// One cell of a release, as Etch would meet it.
pub(crate) struct Case<'a> {
    pub(crate) release: &'a str,
    pub(crate) world: World,
    pub(crate) cell: Cell,
    pub(crate) outcome: &'a Outcome,
    /// The CRD when the request was sent.
    pub(crate) crd: &'a Crd,
    /// The same once no other version is served.
    pub(crate) since: &'a Crd,
    /// The object as a reader at S sees it, written after all that is on record.
    pub(crate) object: Object,
}

/// The revision of what is on record.
const THROUGH: u64 = 1;

/// Calls `check` with every cell that left an object, of every release.
pub(crate) fn each_case(mut check: impl FnMut(&Case<'_>)) -> Result<()> {
    let releases = Data::releases()?;
    ensure!(!releases.is_empty(), "no matrix is kept; run `just matrix`");
    for release in &releases {
        let data = Data::read(release)?;
        let mut crds = BTreeMap::new();
        for (world, cells) in &data.outcomes {
            for version in ["v1", "v1beta1", "v1alpha1"] {
                for stored in [&[S][..], &["v1alpha1", S]] {
                    crds.insert((*world, version, stored.len()), read(*world, version, stored)?);
                }
            }
            for (cell, outcome) in cells {
                let stored = if is_stored_elsewhere(*cell) { 2 } else { 1 };
                let Some(view) = data.parts.view(outcome, THROUGH + 1) else { continue };
                let case = Case {
                    release,
                    world: *world,
                    cell: *cell,
                    outcome,
                    crd: &crds[&(*world, cell.version, stored)],
                    since: &crds[&(*world, S, stored)],
                    object: Object::from(view),
                };
                check(&case);
            }
        }
    }
    Ok(())
}

/// Whether the bytes were at another version than S before the request.
pub(crate) fn is_stored_elsewhere(cell: Cell) -> bool {
    cell.owners == Owners::StoredV1alpha1
}

fn read(world: World, version: &str, stored: &[&str]) -> Result<Crd> {
    let mut document = crd(world, GROUP, served(version), &json!({ "url": "https://127.0.0.1:1/" }));
    document["status"] = json!({ "storedVersions": stored });
    Ok(Crd::read(&Json::from(document))?)
}

impl Case<'_> {
    /// What a reader at S sees and etcd does not hold.
    pub(crate) fn lacks(&self) -> Places {
        let shows = self.outcome.views.get(S).cloned().unwrap_or_default();
        let holds = self.outcome.raw.as_ref().map(|raw| raw.holds.clone()).unwrap_or_default();
        shows.beyond(&holds)
    }

    /// What is on record of the objects before the request. One with bytes at another version is always
    /// excepted: before the request nothing proved it.
    pub(crate) fn records(&self) -> Vec<Record> {
        let record = Record { through: Some(THROUGH), ..Record::empty(self.crd) };
        let excepted = Record { exceptions: std::iter::once("uid".to_owned()).collect(), ..record.clone() };
        match self.cell.owners {
            Owners::New => vec![record],
            _ if is_stored_elsewhere(self.cell) => vec![excepted],
            _ => vec![record.of_known_object(), record, excepted],
        }
    }
}

/// Differences by their cause.
#[derive(Default)]
pub(crate) struct Differences(BTreeMap<String, Requests>);

/// The requests that have a cause in common, and how many cells they are.
#[derive(Default)]
struct Requests {
    cells: usize,
    kinds: BTreeSet<String>,
}

impl Differences {
    /// Notes that Etch claims what is not so.
    pub(crate) fn add(&mut self, claim: &str, case: &Case<'_>, lacks: &Places) {
        let Case { world, cell, .. } = case;
        let Cell { verb, part, version, owners } = cell;
        let before = match owners {
            Owners::New => "none",
            _ if is_stored_elsewhere(*cell) => "at v1alpha1",
            _ => "at v1",
        };
        let cause = format!(
            "{claim}: etcd lacks {}; request at {version}, bytes before it {before}, conversion {}, status \
             subresource: {}",
            lacks.words(),
            world.conversion.word(),
            world.has_status,
        );
        let requests = self.0.entry(cause).or_default();
        requests.cells += 1;
        requests.kinds.insert(format!("{} {}", verb.word(), part.word()));
    }

    /// # Errors
    /// There are some; the error lists them.
    pub(crate) fn none(self) -> Result<()> {
        let mut text = String::new();
        for (cause, Requests { cells, kinds }) in &self.0 {
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            writeln!(text, "{cause}: {cells} cells ({})", kinds.join(", "))?;
        }
        ensure!(self.0.is_empty(), "Etch claims what etcd does not hold:\n{text}");
        Ok(())
    }
}
