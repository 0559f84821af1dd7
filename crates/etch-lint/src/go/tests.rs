use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::go_types::{GoParser, NotGo, Package};

/// The findings on a file of one package, in short: the place and the code.
fn found(declarations: &str) -> Vec<String> {
    let line = |finding: &Finding| {
        let name = finding.go.as_ref().map(|place| place.name.as_str()).unwrap_or_default();
        format!("{name} {}", finding.rule.code)
    };
    findings(declarations).iter().map(line).collect()
}

/// The messages of these findings.
fn messages(declarations: &str) -> Vec<String> {
    findings(declarations).into_iter().map(|finding| finding.message).collect()
}

fn findings(declarations: &str) -> Vec<Finding> {
    const IMPORTS: &str = "corev1 \"k8s.io/api/core/v1\"\nmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"";
    let text = format!("package v1\n\nimport (\n{IMPORTS}\n)\n\n{declarations}\n");
    let path = "example.com/api/v1".to_owned();
    let package = Package { path, is_asked: true, is_kubebuilder: true, ..Package::default() };
    let (packages, read) = read(text.into_bytes(), package);
    assert_eq!(read, Ok(true));
    lint_go(&packages, &[])
}

/// A package of one file.
fn read(file: Vec<u8>, mut package: Package) -> (Packages, Result<bool, NotGo>) {
    let mut parser = GoParser::new().expect("a parser");
    let read = parser.read(file, "a.go".into(), &mut package, &mut BTreeSet::new());
    (Packages(BTreeMap::from([(package.path.clone(), package)])), read)
}

#[test]
fn structs_of_kubernetes_are_always_sent() {
    let of = |kind: &str, tag: &str, default: &str| {
        found(&format!("type Spec struct {{\n{default}\n\tF {kind} `json:\"f{tag}\"`\n}}"))
    };
    let default = "\t// +kubebuilder:default={x: \"1\"}";
    for kind in ["corev1.ResourceRequirements", "metav1.LabelSelector", "corev1.LocalObjectReference"] {
        assert_eq!(of(kind, ",omitempty", default), ["Spec.F ETCH102", "Spec.F ETCH104"], "{kind}");
        assert_eq!(of(kind, "", default), ["Spec.F ETCH104"], "{kind}");
        assert_eq!(of(kind, ",omitempty", ""), ["Spec.F ETCH102"], "{kind}");
        assert_eq!(of(kind, ",omitzero", default), [""; 0], "{kind}");
        assert_eq!(of(&format!("*{kind}"), ",omitempty", default), [""; 0], "{kind}");
        let defined = format!(
            "type Own {kind}\n\ntype Spec struct {{\n{default}\n\tF Own `json:\"f,omitempty\"`\n\tL []{kind} \
             `json:\"l,omitempty\"`\n}}"
        );
        assert_eq!(found(&defined), ["Spec.F ETCH102", "Spec.F ETCH104"], "{kind}");
    }
    for kind in ["corev1.ResourceList", "metav1.Time", "corev1.Unheard"] {
        assert_eq!(of(kind, ",omitempty", ""), [""; 0], "{kind}");
    }
}

#[test]
fn a_struct_whose_marker_asks_for_fields_needs_no_empty_default() {
    let inner = "type Inner struct {\n\t// +kubebuilder:default=1\n\tN int32 `json:\"n,omitempty\"`\n}";
    let above = |field: &str, kind: &str| {
        found(&format!("// {kind}\n{inner}\n\ntype Spec struct {{\n\t// {field}\n\tF Inner `json:\"f\"`\n}}"))
    };
    assert_eq!(above("", ""), ["Spec.F ETCH103"]);
    for marker in ["EmbeddedResource", "XEmbeddedResource", "MinProperties=1", "AtLeastOneOf=n;o"] {
        let marker = format!("+kubebuilder:validation:{marker}");
        assert_eq!(above(&marker, ""), [""; 0], "{marker}");
        assert_eq!(above("", &marker), [""; 0], "{marker}");
    }
}

#[test]
fn a_default_above_a_type_is_for_other_generators() {
    let above = |marker: &str| {
        found(&format!("// {marker}\ntype Kind string\n\ntype Spec struct {{\n\tK *Kind `json:\"k\"`\n}}"))
    };
    assert_eq!(above("+kubebuilder:default=c"), ["Kind ETCH112"]);
    assert_eq!(above("+default=\"c\""), [""; 0]);
    assert_eq!(above("+kubebuilder:validation:Enum=c;d"), [""; 0]);
}

#[test]
fn fields_beside_an_embedded_type_that_writes_the_struct_are_in_no_object() {
    let of = |embedded: &str| {
        found(&format!(
            "type Own struct {{\n\t{embedded}\n\t// +kubebuilder:default=1\n\tX int `json:\"x\"`\n}}"
        ))
    };
    assert_eq!(of("metav1.Time"), [""; 0]);
    assert_eq!(of("corev1.LocalObjectReference"), ["Own.X ETCH101"]);
}

#[test]
fn an_empty_list_of_a_named_type_is_written_in_the_syntax_of_kep_1929() {
    let of = |kind: &str| {
        let field = format!("\t// +kubebuilder:default={{}}\n\tF {kind} `json:\"f\"`");
        messages(&format!("type Names []string\n\ntype Spec struct {{\n{field}\n}}"))
    };
    let reported = "+kubebuilder:default: controller-gen before 0.23 writes {} for a list that is a type \
        with a name; write +default=[]";
    assert_eq!(of("Names"), [reported]);
    assert_eq!(of("[]string"), [""; 0]);
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
        let (_, read) = read(text.clone(), Package::default());
        let error = read.err().map(|error| error.to_string());
        let is_named = error.as_ref().is_some_and(|error| error.starts_with("line 1: is not Go"));
        assert!(error.is_none() == is_go && is_named != is_go, "{text:?}: {error:?}");
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
        let (packages, _) = read(text.into_bytes(), Package { is_asked: true, ..Package::default() });
        let _ = lint_go(&packages, &[]);
    }
}
