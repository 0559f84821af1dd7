//! What the libraries under `crates/` may be made of: nothing impure, and nothing of the rest of the
//! workspace.

mod imports;
mod packages;
mod proofs;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use e2e::cargo::forget_package;
use e2e::install::root;

/// Packages that await, log, read clocks or use the network.
const IMPURE: [&str; 9] =
    ["chrono", "etch", "hyper", "kube-client", "log", "reqwest", "time", "tokio", "tracing"];

pub(crate) fn libraries() -> Result<Vec<String>> {
    let folders = fs::read_dir(root().join("crates"))?;
    let mut names = Vec::new();
    for folder in folders {
        let folder = folder?;
        if folder.file_type()?.is_dir() {
            names.push(folder.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    ensure!(names.len() >= 3, "only {names:?}");
    Ok(names)
}

fn cargo(folder: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new("cargo");
    command.args(words).current_dir(folder);
    forget_package(&mut command);
    let output = command.output().context("cargo cannot be run")?;
    ensure!(output.status.success(), "cargo {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The Rust files below a folder, tests left out, each with its text.
pub(crate) fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "tests" {
                sources(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !matches!(&*name, "tests.rs" | "laws.rs")
        {
            let text = fs::read_to_string(&path)?;
            let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).fold(
                String::new(),
                |mut code, line| {
                    code.push_str(line);
                    code.push('\n');
                    code
                },
            );
            let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            found.push((path, code));
        }
    }
    Ok(())
}

#[test]
fn no_library_depends_on_what_is_impure() -> Result<()> {
    for name in libraries()? {
        let tree = cargo(root(), &["tree", "--package", &name, "--edges", "normal", "--prefix", "none"])?;
        let packages: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        ensure!(packages.contains(&*name), "{name} has no tree: {tree}");
        for impure in IMPURE {
            ensure!(!packages.contains(impure), "{name} depends on {impure}");
        }
    }
    Ok(())
}

#[test]
fn no_library_touches_the_world() -> Result<()> {
    let mut files = Vec::new();
    for name in libraries()? {
        sources(&root().join("crates").join(name).join("src"), &mut files)?;
    }
    ensure!(files.len() > 100, "only {} files", files.len());
    let impure = [
        "std::fs",
        "std::env",
        "std::process",
        "std::thread",
        "std::io::std",
        "Instant::now",
        "SystemTime",
        "Timestamp::now",
        "Zoned::now",
        "TcpStream",
        "UdpSocket",
        "println!",
        "eprintln!",
        "async fn",
        ".await",
        "tokio::",
        "tracing::",
    ];
    for (path, code) in files {
        for word in impure {
            ensure!(!code.contains(word), "{} mentions {word}", path.display());
        }
    }
    Ok(())
}

/// A feature that only tests turn on has everything above its package compiled twice.
#[test]
fn programs_are_built_with_the_features_of_the_tests() -> Result<()> {
    let tree = |words: &[&str]| -> Result<BTreeSet<String>> {
        let always = ["tree", "--prefix", "none", "--format", "{p} {f}"];
        let tree = cargo(root(), &[&always, words].concat())?;
        Ok(tree.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect())
    };
    let tests = tree(&["--workspace", "--edges", "normal,build,dev"])?;
    for program in [&["--package", "e2e"][..], &["--workspace"]] {
        let program = tree(&[program, &["--edges", "normal,build"]].concat())?;
        let other: Vec<_> = program.difference(&tests).collect();
        ensure!(
            other.is_empty(),
            "tests are built with more features of {other:?}: take them as dependencies"
        );
    }
    Ok(())
}
