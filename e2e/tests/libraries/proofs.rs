//! The places in the product that conclude from a view or an answer that etcd holds something, and the observed facts that each rests on.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, ensure};
use etch::domain::plan::Proof;

use crate::{root, sources};

/// Each place, with its proof. A place that is added has to be added here, and its fact observed first.
const PLACES: [(&str, Proof); 15] = [
    ("domain/audit/exact.rs", Proof::Bytes),
    ("controller/crd/sweep.rs", Proof::UnchangedSincePass),
    ("controller/crd/sweep/known.rs", Proof::UnchangedSincePass),
    ("controller/crd/watch.rs", Proof::UnchangedSincePass),
    ("controller/object/reconcile.rs", Proof::RepeatChangedNothing),
    ("controller/object/reconcile.rs", Proof::UnchangedSincePass),
    ("controller/object/reconcile.rs", Proof::WriteChangedNothing),
    ("domain/plan/decide.rs", Proof::NothingToFill),
    ("domain/plan/lag_check.rs", Proof::DryRunShowsAnother),
    ("domain/plan/record.rs", Proof::UnchangedSincePass),
    ("domain/plan/record.rs", Proof::WrittenSince),
    ("domain/plan/write_machine.rs", Proof::DryRunShowsAnother),
    ("domain/plan/write_machine.rs", Proof::RepeatChangedNothing),
    ("domain/plan/write_machine.rs", Proof::WriteAnswered),
    ("domain/plan/write_machine.rs", Proof::WriteChangedNothing),
];

#[test]
fn each_place_that_concludes_that_etcd_holds_something_names_its_proof() -> Result<()> {
    let source = root().join("src");
    let mut files = Vec::new();
    sources(&source, &mut files)?;
    let mut found = BTreeSet::new();
    for (path, code) in files {
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        let file = path.strip_prefix(&source)?.to_string_lossy().into_owned();
        for proof in Proof::ALL {
            if code.contains(&format!("Proof::{}", proof.as_str())) {
                found.insert((file.clone(), *proof));
            }
        }
    }
    let expected: BTreeSet<_> = PLACES.iter().map(|(file, proof)| ((*file).to_owned(), *proof)).collect();
    let new: Vec<_> = found.difference(&expected).collect();
    let gone: Vec<_> = expected.difference(&found).collect();
    ensure!(new.is_empty() && gone.is_empty(), "not listed: {new:?}; listed, and not there: {gone:?}");
    Ok(())
}

#[test]
fn each_proof_rests_on_facts_that_were_observed() -> Result<()> {
    let facts = fs::read_to_string(root().join("docs/apiserver.md"))?;
    for proof in Proof::ALL {
        for row in proof.rows() {
            let is_there = match *row {
                "matrix" => facts.contains("## The write matrix"),
                row => facts.contains(&format!("| {row} |")),
            };
            ensure!(is_there, "docs/apiserver.md has no {row}, on which Proof::{} rests", proof.as_str());
        }
    }
    Ok(())
}
