//! `docs/apiserver.md` is the table of the facts that comments cite: each code that is cited has a row, and
//! each row has a test. The tests and files that the pages of `docs` name exist.
//!
//! It reads files only.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::install::root;

const TABLE: &str = "docs/apiserver.md";
/// The folders whose files the pages name.
const FOLDERS: [&str; 7] = ["src", "crates", "tests", "e2e", "config", "yaml", "docs"];

/// The rows of the table: the code, and the test that proves it.
fn rows() -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(root().join(TABLE)).context(TABLE)?;
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

/// The files and folders below a folder.
fn below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    found.push(folder.to_owned());
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        match path.is_dir() {
            true if path.ends_with("target") => {}
            true => below(&path, found)?,
            false => found.push(path),
        }
    }
    Ok(())
}

/// All Rust files of the project.
fn sources() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in ["src", "crates", "tests", "e2e"] {
        below(&root().join(folder), &mut found)?;
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
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
fn each_row_names_a_test() -> Result<()> {
    let rows = rows()?;
    ensure!(rows.len() > 30, "only {} rows found", rows.len());
    for (code, test) in rows {
        ensure!(test.contains(".rs"), "{TABLE}: {code}: no test in {test:?}");
    }
    Ok(())
}

/// Each difference between Kubernetes and its documentation names the tests that show it.
#[test]
fn each_difference_from_a_document_names_a_test() -> Result<()> {
    const PAGE: &str = "docs/compatibility.md";
    let text = fs::read_to_string(root().join(PAGE)).context(PAGE)?;
    let (_, section) = text.split_once("## Where Kubernetes differs").context("the section")?;
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with('|')).skip(2).collect();
    ensure!(rows.len() > 5, "only {} rows found", rows.len());
    let without = rows.iter().find(|row| !row.contains(".rs::"));
    ensure!(without.is_none(), "{PAGE}: no test in {without:?}");
    Ok(())
}

/// The pages of the documentation, by their names.
fn pages() -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root().join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            pages.push((format!("docs/{name}"), fs::read_to_string(&path)?));
        }
    }
    Ok(pages)
}

/// What a page has in backticks, blocks of code left out.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.split("```").step_by(2).flat_map(|text| text.split('`').skip(1).step_by(2))
}

/// A test is named as `FILE::TEST`, and another one of the same file as `…::TEST`.
#[test]
fn each_test_that_a_page_names_exists() -> Result<()> {
    let mut count = 0;
    for (page, text) in pages()? {
        let mut file = "";
        for name in quoted(&text) {
            let Some((before, test)) = name.split_once("::") else { continue };
            match before {
                "…" => {}
                before if before.ends_with(".rs") => file = before,
                _ => continue,
            }
            let source = fs::read_to_string(root().join(file)).with_context(|| format!("{page}: {name}"))?;
            // Facts are listed by their names.
            let is_it = |line: &str| line.trim() == test || line.contains(&format!("fn {test}("));
            ensure!(source.lines().any(is_it), "{page}: {file} has no {test}");
            count += 1;
        }
    }
    ensure!(count > 80, "only {count} tests are named");
    Ok(())
}

/// A path from the root, or from a folder that the page names before it.
#[test]
fn each_file_that_a_page_names_exists() -> Result<()> {
    let is_path = |name: &str| {
        let folder = name.split('/').next().unwrap_or_default();
        name.contains('/')
            && (name.ends_with(".rs") || FOLDERS.contains(&folder))
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
    };
    let mut all = Vec::new();
    for folder in FOLDERS {
        below(&root().join(folder), &mut all)?;
    }
    let mut count = 0;
    for (page, text) in pages()? {
        for name in quoted(&text).filter(|name| is_path(name)) {
            ensure!(all.iter().any(|path| path.ends_with(name)), "{page}: there is no {name}");
            count += 1;
        }
    }
    ensure!(count > 100, "only {count} files are named");
    Ok(())
}

#[test]
fn codes_are_told_from_other_words() {
    let source = "let a = 1; // a (C7) and (facts W9, W17)\n/// no (K8s) nor (see W99) nor W1\n//! (fact R2)";
    assert_eq!(cited(source).into_iter().collect::<Vec<_>>(), ["C7", "R2", "W17", "W9"]);
}
