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

#[test]
fn a_file_without_a_package_clause_is_an_error_unless_go_passes_over_it() {
    let utf_16 = |mark: [u8; 2], unit: fn(u16) -> [u8; 2]| {
        let text = "package a\n".encode_utf16().flat_map(unit);
        mark.into_iter().chain(text).collect::<Vec<u8>>()
    };
    for (text, is_go) in [
        (Vec::new(), false),
        (b"\n\n".to_vec(), false),
        (b"// Package a is none.\n".to_vec(), false),
        (b"type A int\n".to_vec(), false),
        (utf_16([0xff, 0xfe], u16::to_le_bytes), false),
        (utf_16([0xfe, 0xff], u16::to_be_bytes), false),
        (b"package a // \xe9\n".to_vec(), false),
        (b"package a\n".to_vec(), true),
        (b"\xef\xbb\xbfpackage a\n".to_vec(), true),
        (b"//go:build ignore\n".to_vec(), true),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("fine.go"), "package a\n").expect("a file");
        fs::write(folder.path().join("odd.go"), &text).expect("a file");
        let (_, errors) = packages(&[folder.path().to_owned()]);
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let is_named = errors.iter().any(|error| error.contains("odd.go: line 1: is not Go"));
        assert!(errors.len() == usize::from(!is_go) && is_named != is_go, "{text:?}: {errors:?}");
    }
}

/// Constants of which each is twice the one before.
fn sums(count: usize) -> String {
    let sums: String = (1..count).map(|index| format!("A{index} = A{0} + A{0}\n", index - 1)).collect();
    let last = count - 1;
    format!("package a\nconst (\nA0 = 1\n{sums})\ntype B struct {{\n// +default=ref(A{last})\nB int\n}}\n")
}

/// No text causes a panic or overflows the stack.
#[test]
fn any_text_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep = 20_000;
    let uses = "type B struct {\n// +default=1\nC A[int] `json:\"c\"`\n}\n";
    for text in [
        String::new(),
        "package".to_owned(),
        format!("package a\ntype A {}string\n", "[]".repeat(deep)),
        format!("package a\ntype A {}string\n", "*".repeat(deep)),
        format!("package a\ntype A {}int{}\n", "struct { A ".repeat(deep), " }".repeat(deep)),
        format!(
            "package a\ntype A struct {{\n// +kubebuilder:default={}\nB string `json:\"b\"`\n}}\n",
            "{".repeat(deep)
        ),
        format!("package a\ntype A struct {{\n// +default={}\nB string `json:\"b\"`\n}}\n", "[".repeat(deep)),
        format!("package a\nconst A = {}1{}\n", "(".repeat(deep), ")".repeat(deep)),
        format!("package a\nconst A = 1{}\n", "+ 1".repeat(deep)),
        sums(1000),
        "package a\ntype A[T any] struct { A *A[[]T] `json:\"a\"`; B T `json:\"b\"` }\ntype B struct {\n\
         // +default={\"a\":{\"a\":{\"b\":[[1]]}}}\nC A[int] `json:\"c\"`\n}\n"
            .to_owned(),
        format!("package a\ntype A[T any] = A[A[T]]\n{uses}"),
        format!("package a\ntype A[T any] struct {{ *A[[]T]; *A[T] }}\n{uses}"),
        format!("package a\ntype A[T any] []A[T]\n{uses}"),
        format!("package a\ntype A[T any] [1]A[T]\n{uses}"),
        "package a\nfunc (".to_owned(),
        "package a\ntype A struct { B struct { C `json:\"".to_owned(),
        "package a\ntype A = B\ntype B = A\ntype C struct { A; B }\n".to_owned(),
        "package a\ntype A struct { A `json:\",inline\"`; A2 A `json:\"a,omitempty\"` }\n".to_owned(),
    ] {
        fs::write(folder.path().join("a.go"), &text).expect("a file");
        let (packages, _) = packages(&[folder.path().to_owned()]);
        let _ = lint_go(&packages, &[]);
    }
}
