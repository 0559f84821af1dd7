//! The files under `matrix/RELEASE`: CRDs, parts, and outcomes with the cells that have them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::axes::{Cell, World};
use super::manifest::{GROUP, crd, served};
use super::outcome::{Outcome, Parts};
use crate::control_plane::Kubernetes;
use crate::drift::File;

/// The matrix of one release.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Data {
    /// What the cells of each world came to.
    pub outcomes: BTreeMap<World, BTreeMap<Cell, Outcome>>,
    /// The objects and sets of fields that outcomes name.
    pub parts: Parts,
}

impl Data {
    /// Where the files of a release are.
    pub fn folder(release: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("matrix").join(release)
    }

    /// The releases whose matrix is kept, the oldest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn releases() -> Result<Vec<String>> {
        let all = Kubernetes::supported()?.into_iter().map(|release| release.to_string());
        Ok(all.filter(|release| Self::folder(release).join("outcomes.jsonl").exists()).collect())
    }

    /// Reads what is kept of a release.
    ///
    /// # Errors
    /// A file is missing, or is not as this program writes it.
    pub fn read(release: &str) -> Result<Self> {
        let folder = Self::folder(release);
        let text = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
        };
        let mut data = Self::default();
        for line in text("parts.jsonl")?.lines() {
            let (id, value) = serde_json::from_str::<(String, Value)>(line)?;
            data.parts.0.insert(id, value);
        }
        for line in text("outcomes.jsonl")?.lines() {
            let (cells, outcome): (BTreeMap<String, Vec<String>>, Outcome) = serde_json::from_str(line)?;
            for (world, cells) in cells {
                let known = data.outcomes.entry(world.parse()?).or_default();
                for cell in cells {
                    known.insert(cell.parse()?, outcome.clone());
                }
            }
        }
        Ok(data)
    }

    /// The files of a release. Equal outcomes are one line, with all cells that have them.
    ///
    /// # Errors
    /// Something cannot be written as JSON.
    pub fn files(&self, release: &str) -> Result<Vec<File>> {
        let mut parts = String::new();
        for (id, value) in &self.parts.0 {
            writeln!(parts, "{}", json!([id, value]))?;
        }
        let mut grouped: BTreeMap<&Outcome, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for (world, cells) in &self.outcomes {
            for (cell, outcome) in cells {
                let worlds = grouped.entry(outcome).or_default();
                worlds.entry(world.to_string()).or_default().push(cell.to_string());
            }
        }
        let lines = grouped.into_iter().map(|(outcome, cells)| Ok(serde_json::to_string(&(cells, outcome))?));
        let mut lines = lines.collect::<Result<Vec<_>>>()?;
        lines.sort();
        let mut crds = serde_json::Map::new();
        let nowhere = json!({ "url": "https://127.0.0.1:1/" });
        for world in self.outcomes.keys() {
            crds.insert(world.to_string(), crd(*world, GROUP, served("v1alpha1"), &nowhere));
        }
        let file = |name: &str, text: String| File {
            name: format!("matrix/{release}/{name}"),
            path: Self::folder(release).join(name),
            text,
        };
        let crds: Vec<String> = crds.iter().map(|crd| json!([crd.0, crd.1]).to_string()).collect();
        Ok(vec![
            file("crds.jsonl", crds.join("\n") + "\n"),
            file("parts.jsonl", parts),
            file("outcomes.jsonl", lines.join("\n") + "\n"),
        ])
    }

    /// Handles the outcomes of one world.
    ///
    /// # Errors
    /// Two different parts have one id.
    pub fn add(&mut self, world: World, outcomes: BTreeMap<Cell, Outcome>, parts: Parts) -> Result<()> {
        for (id, value) in &parts.0 {
            ensure!(self.parts.0.get(id).is_none_or(|known| known == value), "two parts are called {id}");
        }
        self.parts.extend(parts);
        self.outcomes.insert(world, outcomes);
        Ok(())
    }
}
