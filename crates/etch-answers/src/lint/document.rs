//! The findings for programs: the keys do not change.

use kube_crd_validation::crd::Release;
use kube_structural_schema::finding::Kind;
use serde::Serialize;

use super::checked::{Checked, Located};

#[derive(Serialize)]
struct Document<'a> {
    findings: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    code: &'static str,
    rule: &'static str,
    severity: &'static str,
    crd: &'a str,
    version: &'a str,
    path: String,
    message: &'a str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    refusal: Option<Refused<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<usize>,
    /// Why the finding is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<&'a str>,
    /// The import path of the Go package.
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<&'a str>,
    /// The line of a place in Go.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

/// What the API server answers, in its own terms.
#[derive(Serialize)]
struct Refused<'a> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    detail: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    releases: Vec<String>,
}

/// What was found, one entry for each finding.
pub fn document(checked: &Checked) -> impl Serialize {
    let findings = checked.findings.iter().map(|Located { origin, crd, finding, accepted, .. }| Entry {
        code: finding.rule.code,
        rule: finding.rule.name,
        severity: finding.rule.severity.as_str(),
        crd,
        version: &finding.version,
        path: finding.place(),
        message: &finding.message,
        refusal: finding.refusal.as_ref().filter(|_| finding.is_of_server()).map(|refusal| Refused {
            kind: refusal.kind.map(Kind::as_str),
            detail: &refusal.detail,
            releases: refusal.releases.iter().map(Release::to_string).collect(),
        }),
        file: origin.as_ref().map(|origin| &*origin.file),
        document: origin.as_ref().filter(|_| finding.go.is_none()).map(|origin| origin.document),
        accepted: accepted.as_deref(),
        package: finding.go.as_ref().map(|place| place.package.as_str()),
        line: finding.go.as_ref().map(|place| place.at.line),
    });
    Document { findings: findings.collect() }
}
