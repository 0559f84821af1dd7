//! `cases/`: Go packages that state the expected findings themselves, as in the tests of Go's own analyzers.
//!
//! `// want CODE…` behind a line is what is found in it; `// want -1 CODE` in the line before.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::packages;
use crate::source::documents;
use etch_lint::{Finding, lint_go};
use kube_structural_schema::json::Json;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/source/go/cases")
}

/// The findings in some packages, and the CRDs beside them, as `file:line CODE`.
fn found(patterns: &[PathBuf], crds: &[Json]) -> (Vec<String>, Vec<Finding>) {
    let (packages, errors) = packages(patterns);
    assert!(errors.is_empty(), "{errors:?}");
    let findings = lint_go(&packages, crds);
    let mut lines: Vec<_> = findings
        .iter()
        .map(|finding| {
            let place = finding.go.as_ref().expect("a place in Go");
            format!("{}:{} {}", place.at.file, place.at.line, finding.rule.code)
        })
        .collect();
    lines.sort();
    (lines, findings)
}

/// The findings that the files of a folder expect.
fn wanted(folder: &Path) -> Vec<String> {
    let mut wanted = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            wanted.extend(wanted_below(&path));
        } else if path.extension().is_some_and(|ending| ending == "go") {
            let text = fs::read_to_string(&path).expect("a text");
            for (index, line) in text.lines().enumerate() {
                let Some((_, wording)) = line.split_once("// want ") else { continue };
                let mut at = index + 1;
                for word in wording.split_whitespace() {
                    match word.strip_prefix('-') {
                        Some(back) => at -= back.parse::<usize>().expect("a number of lines"),
                        None => wanted.push(format!("{}:{at} {word}", path.display())),
                    }
                }
            }
        }
    }
    wanted.sort();
    wanted
}

fn wanted_below(folder: &Path) -> Vec<String> {
    // What is only imported is not checked.
    if folder.ends_with("shared") { Vec::new() } else { wanted(folder) }
}

#[test]
fn packages_have_the_findings_that_they_say() {
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(cases()).expect("cases") {
        let folder = entry.expect("an entry").path();
        if !folder.is_dir() {
            continue;
        }
        let crds = folder.join("crds.yaml");
        let crds = if crds.exists() {
            documents(&[crds], &mut io::empty()).expect("CRDs").into_iter().map(|crd| crd.json).collect()
        } else {
            Vec::new()
        };
        let is_tree = !crds.is_empty();
        let pattern = if is_tree { folder.join("...") } else { folder.clone() };
        let (found, findings) = found(&[pattern], &crds);
        assert_eq!(found, wanted(&folder), "{}: {findings:#?}", folder.display());
        seen.extend(findings.iter().map(|finding| finding.rule.code));
    }
    let all: BTreeSet<_> = etch_lint::GO_RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(seen, all, "a rule that no case shows");
}

#[test]
fn imported_packages_are_read_and_not_checked() {
    let (packages, errors) = packages(&[cases().join("references")]);
    assert!(errors.is_empty(), "{errors:?}");
    let known: Vec<_> = packages.0.values().map(|package| (&*package.path, package.is_asked)).collect();
    assert_eq!(
        known,
        [("example.com/cases/references", true), ("example.com/cases/references/shared", false)]
    );
}

#[test]
fn what_is_no_go_is_an_error_and_the_rest_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write(
        "broken.go",
        "package a\n\ntype A struct {\n\tB string `json:\"b\"`\n}\n\ntype C struct {\n\tD }} string\n",
    );
    write("bytes.go", "package a\0");
    write("open.go", &format!("package a\n\ntype G {}", "struct { A ".repeat(1000)));
    write("fine.go", "package a\n\ntype E struct {\n\t// +default=\"x\"\n\tF string `json:\"f\"`\n}\n");
    let (packages, errors) = packages(&[folder.path().to_owned()]);
    let wording: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(wording.len(), 3, "{wording:?}");
    assert!(wording[1].contains("bytes.go: line 1: is not Go"), "{wording:?}");
    assert!(wording[2].contains("open.go: line "), "{wording:?}");
    assert!(wording[0].contains("broken.go: line 7: is not Go"), "{wording:?}");
    let findings = lint_go(&packages, &[]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    let (_, missing) = super::packages(&[folder.path().join("missing/...")]);
    assert!(missing.iter().any(|error| error.to_string().contains("cannot be read: ")), "{missing:?}");
    let (_, empty) = super::packages(&[tempfile::tempdir().expect("a folder").path().join("...")]);
    assert_eq!(empty.len(), 1);
}
