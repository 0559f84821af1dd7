use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::go_types::{GoParser, Package};

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
    let mut package =
        Package { path: path.clone(), is_asked: true, is_kubebuilder: true, ..Package::default() };
    let mut parser = GoParser::new().expect("a parser");
    parser.read(&text, "a.go".into(), &mut package, &mut BTreeSet::new()).expect("a file of Go");
    lint_go(&Packages(BTreeMap::from([(path, package)])), &[])
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
