//! The crates that Etch is built of, as cargo resolves them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{file, shell};

/// What images are built for, as in `deny.toml`.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// The name and the version of a crate.
pub(super) type Id = (String, String);

/// A crate.
#[derive(Clone, Debug)]
pub(super) struct Crate {
    /// An SPDX expression.
    pub(super) license: String,
    pub(super) repository: Option<String>,
    /// Where its source is.
    pub(super) folder: PathBuf,
    /// The SHA-256 of what the registry delivers; none for those of this repository.
    pub(super) checksum: Option<String>,
    /// Whether it is part of the binary, and not only of its build.
    pub(super) is_linked: bool,
    pub(super) dependencies: BTreeSet<Id>,
}

/// All of them by name and version, `etch` included.
pub(super) fn of_etch() -> Result<BTreeMap<Id, Crate>> {
    let all = tree("normal,build")?;
    let linked = tree("normal,no-proc-macro")?;
    let checksums = checksums(&String::from_utf8(file("Cargo.lock")?)?);
    let mut arguments = vec!["metadata", "--locked", "--format-version=1"];
    arguments.extend(TARGETS.iter().flat_map(|target| ["--filter-platform", target]));
    let metadata: Value = serde_json::from_str(&shell::cargo(&arguments)?)?;
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = array(&metadata["packages"]);
    let id = |package: &Value| (text(&package["name"]), text(&package["version"]));
    let ids: BTreeMap<String, Id> =
        packages.iter().map(|package| (text(&package["id"]), id(package))).collect();
    let mut dependencies = BTreeMap::new();
    for node in array(&metadata["resolve"]["nodes"]) {
        let needed = array(&node["deps"]);
        let needed = needed
            .iter()
            .filter(|needed| array(&needed["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev"));
        let known =
            needed.filter_map(|needed| ids.get(needed["pkg"].as_str()?)).filter(|id| all.contains(id));
        dependencies.insert(text(&node["id"]), known.cloned().collect::<BTreeSet<_>>());
    }
    let mut crates = BTreeMap::new();
    for package in packages.iter().filter(|package| all.contains(&id(package))) {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        crates.insert(
            id(package),
            Crate {
                // Crates from before SPDX expressions were demanded have a slash.
                license: text(&package["license"]).replace('/', " OR "),
                repository: package["repository"].as_str().map(str::to_owned),
                folder: manifest.parent().context("a folder of a manifest")?.to_owned(),
                checksum: checksums.get(&id(package)).cloned(),
                is_linked: linked.contains(&id(package)),
                dependencies: dependencies.remove(&text(&package["id"])).unwrap_or_default(),
            },
        );
    }
    Ok(crates)
}

/// What `cargo tree` finds over these edges. Cargo's metadata does not show which features, and so which
/// optional crates, are those of one package.
fn tree(edges: &str) -> Result<BTreeSet<Id>> {
    let mut arguments =
        vec!["tree", "--locked", "--package=etch", "--prefix=none", "--format={p}", "--edges", edges];
    arguments.extend(TARGETS.iter().flat_map(|target| ["--target", target]));
    let tree = shell::cargo(&arguments)?;
    let id = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    };
    Ok(tree.lines().filter_map(id).collect())
}

/// The checksums of `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let packages = lock.split("[[package]]").skip(1).filter_map(|package| {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            line.map(|value| value.trim_end_matches('"').to_owned())
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    });
    packages.collect()
}
