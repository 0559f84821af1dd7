//! `docs/apiserver.md` is the table of the facts that comments cite: each code that is cited has a row, and
//! each row has a test.
//!
//! It reads files only.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const TABLE: &str = "docs/apiserver.md";

/// The rows of the table: the code, and the test that proves it.
fn rows() -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(Path::new(ROOT).join(TABLE)).context(TABLE)?;
    let cells = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            [code, _, test] if is_code(code) => Some((code.to_owned(), test.trim_matches('`').to_owned())),
            _ => None,
        }
    });
    Ok(cells.collect())
}

/// Whether a word is the code of a fact, such as `W16`.
fn is_code(word: &str) -> bool {
    let (letter, number) = word.split_at(word.len().min(1));
    letter.bytes().all(|byte| byte.is_ascii_uppercase())
        && !letter.is_empty()
        && (1..=2).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// All Rust files of the project.
fn sources() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = ["src", "crates", "tests", "e2e/src", "e2e/tests"]
        .iter()
        .map(|name| Path::new(ROOT).join(name))
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            match path.is_dir() {
                true if !path.ends_with("target") => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
                _ => {}
            }
        }
    }
    Ok(found)
}

/// The codes in the comments of a source: in brackets, alone or after `fact` or `facts`.
fn cited(source: &str) -> BTreeSet<String> {
    let comments = source.lines().filter_map(|line| line.split_once("//")).map(|(_, comment)| comment);
    let bracketed =
        comments.flat_map(|comment| comment.split('(').skip(1).filter_map(|rest| rest.split_once(')')));
    let words = bracketed.flat_map(|(inside, _)| {
        let words: Vec<&str> = inside.split([',', ' ']).filter(|word| !word.is_empty()).collect();
        let is_citation = words.iter().all(|word| is_code(word) || ["fact", "facts", "and"].contains(word));
        if is_citation { words } else { Vec::new() }
    });
    words.filter(|word| is_code(word)).map(str::to_owned).collect()
}

#[test]
fn each_fact_that_is_cited_has_a_row() -> Result<()> {
    let known: BTreeSet<String> = rows()?.into_iter().map(|(code, _)| code).collect();
    let mut citations = 0;
    for path in sources()? {
        for code in cited(&fs::read_to_string(&path)?) {
            citations += 1;
            ensure!(known.contains(&code), "{} cites {code}, which {TABLE} does not have", path.display());
        }
    }
    ensure!(citations > 50, "only {citations} citations found: they are written as (W16) or (facts W9, W17)");
    Ok(())
}

#[test]
fn each_row_has_a_test_that_exists() -> Result<()> {
    let rows = rows()?;
    ensure!(rows.len() > 30, "only {} rows found", rows.len());
    for (code, test) in rows {
        let (file, function) = test.split_once("::").unwrap_or((&test, ""));
        let path = Path::new(ROOT).join(file);
        let source = fs::read_to_string(&path).with_context(|| format!("{TABLE}: {code}: {file}"))?;
        ensure!(source.contains(&format!("fn {function}")), "{TABLE}: {code}: {file} has no {function}");
    }
    Ok(())
}

/// Each difference between Kubernetes and its documentation names the tests that show it.
#[test]
fn each_difference_from_a_document_has_a_test_that_exists() -> Result<()> {
    const PAGE: &str = "docs/compatibility.md";
    let text = fs::read_to_string(Path::new(ROOT).join(PAGE)).context(PAGE)?;
    let (_, section) = text.split_once("## Where Kubernetes differs").context("the section")?;
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let mut count = 0;
    for row in rows {
        let tests = row.split('`').filter(|word| word.contains(".rs::"));
        let mut named = 0;
        for test in tests {
            let (file, function) = test.split_once("::").unwrap_or((test, ""));
            let source = fs::read_to_string(Path::new(ROOT).join(file)).with_context(|| file.to_owned())?;
            let is_there = source.lines().any(|line| {
                line.trim() == function || line.trim_start().contains(&format!("fn {function}("))
            });
            ensure!(is_there, "{PAGE}: {file} has no {function}");
            named += 1;
        }
        ensure!(named > 0, "{PAGE}: no test in {row}");
        count += 1;
    }
    ensure!(count > 5, "only {count} rows found");
    Ok(())
}

#[test]
fn codes_are_told_from_other_words() {
    let source = "let a = 1; // a (C7) and (facts W9, W17)\n/// no (K8s) nor (see W99) nor W1\n//! (fact R2)";
    assert_eq!(cited(source).into_iter().collect::<Vec<_>>(), ["C7", "R2", "W17", "W9"]);
}
