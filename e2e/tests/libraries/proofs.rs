//! The places in the product that conclude from a view or an answer that etcd holds something, and the
//! observed facts that each rests on.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, ensure};
use etch_core::plan::Proof;

use crate::{root, sources};

/// Each place, with its proof. A place that is added has to be added here, and its fact observed first.
const PLACES: [(&str, Proof); 17] = [
    ("crates/etch-core/src/audit/exact.rs", Proof::Bytes),
    ("crates/etch-core/src/engine/stage.rs", Proof::UnchangedSincePass),
    ("crates/etch-core/src/engine/sweep.rs", Proof::UnchangedSincePass),
    ("crates/etch-core/src/engine/watching.rs", Proof::UnchangedSincePass),
    ("crates/etch-core/src/object_machine/mod.rs", Proof::RepeatChangedNothing),
    ("crates/etch-core/src/object_machine/mod.rs", Proof::UnchangedSincePass),
    ("crates/etch-core/src/object_machine/mod.rs", Proof::WriteChangedNothing),
    ("crates/etch-core/src/plan/decide.rs", Proof::NothingToFill),
    ("crates/etch-core/src/plan/lag_check.rs", Proof::DryRunShowsNewDefault),
    ("crates/etch-core/src/plan/record.rs", Proof::UnchangedSincePass),
    ("crates/etch-core/src/plan/record.rs", Proof::WrittenSince),
    ("crates/etch-core/src/plan/stored_at.rs", Proof::UnchangedSincePass),
    ("crates/etch-core/src/plan/write_machine.rs", Proof::DryRunShowsNewDefault),
    ("crates/etch-core/src/plan/write_machine.rs", Proof::RepeatChangedNothing),
    ("crates/etch-core/src/plan/write_machine.rs", Proof::WriteAnswered),
    ("crates/etch-core/src/plan/write_machine.rs", Proof::WriteChangedNothing),
    ("crates/etch-core/src/stored_versions.rs", Proof::Bytes),
];

#[test]
fn each_place_that_concludes_that_etcd_holds_something_names_its_proof() -> Result<()> {
    let mut files = Vec::new();
    for folder in ["crates", "src"] {
        sources(&root().join(folder), &mut files)?;
    }
    let mut found = BTreeSet::new();
    for (path, _) in files {
        // With the comments, in which some places name theirs.
        let text = fs::read_to_string(&path)?;
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let file = path.strip_prefix(root())?.to_string_lossy().into_owned();
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
