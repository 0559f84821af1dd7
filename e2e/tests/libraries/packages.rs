//! The libraries that others can use: what a registry shows of them, and that each package is complete.
//! It asks no registry.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use e2e::target::target_folder;
use serde_json::Value;

use crate::{cargo, libraries, root};

/// Those that serve only Etch.
const PRIVATE: [&str; 4] = ["etch-admission", "etch-answers", "etch-core", "etch-lint"];
/// What crates.io takes of keywords, and of one.
const KEYWORDS: usize = 5;
const KEYWORD_LETTERS: usize = 20;
/// How long an example may be that shows what a library is for.
const EXAMPLE_LINES: usize = 15;
/// Larger packages are refused by crates.io.
const LARGEST: u64 = 10 << 20;

/// What cargo knows about all packages.
fn packages() -> Result<Vec<Value>> {
    let known: Value =
        serde_json::from_str(&cargo(root(), &["metadata", "--no-deps", "--format-version", "1"])?)?;
    Ok(known["packages"].as_array().context("packages")?.clone())
}

/// What cargo knows about the libraries that are published.
fn published() -> Result<Vec<Value>> {
    let mut packages = packages()?;
    packages.retain(|package| package["publish"] != serde_json::json!([]));
    Ok(packages)
}

fn name(package: &Value) -> Result<&str> {
    package["name"].as_str().context("a name")
}

#[test]
fn every_library_is_published_or_private() -> Result<()> {
    let mut all: Vec<_> = PRIVATE.map(str::to_owned).to_vec();
    for package in published()? {
        all.push(name(&package)?.to_owned());
    }
    all.sort();
    ensure!(all == libraries()?, "{all:?}");
    Ok(())
}

#[test]
fn the_registry_is_given_all_that_it_shows() -> Result<()> {
    for package in published()? {
        let name = name(&package)?;
        for field in ["description", "license", "readme", "rust_version"] {
            ensure!(package[field].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {field}");
        }
        let list = |field: &str| package[field].as_array().cloned().unwrap_or_default();
        let (keywords, categories) = (list("keywords"), list("categories"));
        ensure!((1..=KEYWORDS).contains(&keywords.len()), "{name}: {keywords:?}");
        let is_short = |keyword: &Value| keyword.as_str().is_some_and(|text| text.len() <= KEYWORD_LETTERS);
        ensure!(keywords.iter().all(is_short), "{name}: {keywords:?}");
        ensure!((1..=KEYWORDS).contains(&categories.len()), "{name}: {categories:?}");
    }
    Ok(())
}

/// The example is run with the documentation, which contains the README.
#[test]
fn each_readme_begins_with_a_short_example_that_is_a_test() -> Result<()> {
    for package in published()? {
        let name = name(&package)?;
        let folder = root().join("crates").join(name);
        let library = fs::read_to_string(folder.join("src/lib.rs"))?;
        ensure!(library.starts_with("#![doc = include_str!(\"../README.md\")]\n"), "{name}: src/lib.rs");
        let readme = fs::read_to_string(folder.join("README.md"))?;
        ensure!(readme.starts_with(&format!("# {name}\n")), "{name}: its README has another title");
        let example = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
        let lines =
            example.map(|example| example.lines().count()).with_context(|| format!("{name}: none"))?;
        ensure!(lines <= EXAMPLE_LINES, "{name}: the example has {lines} lines");
    }
    Ok(())
}

/// The version that all tests are built with is the oldest that is promised.
#[test]
fn the_oldest_rust_is_the_one_that_is_tested() -> Result<()> {
    let toolchain = fs::read_to_string(root().join("rust-toolchain.toml"))?;
    for package in published()? {
        let oldest = package["rust_version"].as_str().context("rust-version")?;
        ensure!(toolchain.contains(&format!("\nchannel = \"{oldest}.0\"\n")), "{oldest}: {toolchain}");
    }
    Ok(())
}

/// Cargo reads the manifests of all packages, also of those that it does not build.
#[test]
fn the_image_is_built_with_all_manifests() -> Result<()> {
    let dockerfile = fs::read_to_string(root().join("Dockerfile"))?;
    let sent = fs::read_to_string(root().join(".dockerignore"))?;
    let root = root().canonicalize()?;
    for package in packages()? {
        let manifest = package["manifest_path"].as_str().context("a manifest")?;
        let manifest = PathBuf::from(manifest).strip_prefix(&root)?.to_string_lossy().into_owned();
        let folder = manifest.trim_end_matches("Cargo.toml");
        let is_copied = |line: &str| line == format!("COPY {manifest} {folder}") || folder.is_empty();
        ensure!(dockerfile.lines().any(is_copied), "the Dockerfile does not copy {manifest}");
        let is_sent = |line: &str| line.strip_prefix('!').is_some_and(|path| manifest.starts_with(path));
        ensure!(sent.lines().any(is_sent), ".dockerignore leaves out {manifest}");
    }
    Ok(())
}

/// In the order of their dependencies, as they would be published: each is packaged against those before it.
/// Unpacked beside the private ones, under the settings that these inherit, all are checked with their tests
/// and examples, and nothing of the rest of the workspace.
///
/// cargo's own check of a package builds all of their dependencies once for each.
#[test]
fn packages_contain_all_that_they_need() -> Result<()> {
    let target = target_folder()?.join("libraries");
    let target = target.to_str().context("a target folder that is text")?;
    let mut words = vec!["package", "--offline", "--no-verify", "--allow-dirty", "--target-dir", target];
    let packages = published()?;
    for package in &packages {
        words.extend(["--package", name(package)?]);
    }
    cargo(root(), &words)?;

    let folder = tempfile::tempdir()?;
    let crates = folder.path().join("crates");
    fs::create_dir(&crates)?;
    let mut patches = String::new();
    for package in &packages {
        let (name, version) = (name(package)?, package["version"].as_str().context("a version")?);
        let file = PathBuf::from(target).join(format!("package/{name}-{version}.crate"));
        ensure!(fs::metadata(&file)?.len() < LARGEST, "{name} is too large");
        let unpacked = Command::new("tar").arg("-xzmf").arg(&file).arg("-C").arg(&crates).status()?;
        ensure!(unpacked.success(), "{}: {unpacked}", file.display());
        let library = crates.join(name);
        fs::rename(crates.join(format!("{name}-{version}")), &library)?;
        for needed in ["README.md", "LICENSE"] {
            ensure!(library.join(needed).is_file(), "{name}: no {needed}");
        }
        patches.push_str(&format!("{name} = {{ path = \"crates/{name}\" }}\n"));
    }
    for private in PRIVATE {
        let source = root().join("crates").join(private);
        let copied = Command::new("cp").arg("-r").arg(source).arg(&crates).status()?;
        ensure!(copied.success(), "{private}: {copied}");
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let settings = manifest.split("\n[package]").next().context("a workspace")?;
    let (head, tail) = settings.split_once("members = [").context("members")?;
    let (_, tail) = tail.split_once(']').context("members end")?;
    let manifest = format!("{head}members = [\"crates/*\"]{tail}\n[patch.crates-io]\n{patches}");
    fs::write(folder.path().join("Cargo.toml"), manifest)?;
    fs::copy(root().join("Cargo.lock"), folder.path().join("Cargo.lock"))?;
    fs::copy(root().join("rust-toolchain.toml"), folder.path().join("rust-toolchain.toml"))?;
    let check = ["check", "--offline", "--workspace", "--all-targets", "--target-dir", target];
    cargo(folder.path(), &check).map(drop)
}
