//! ETCH021: defaults that the server does not publish as the schema has them.

use serde_json::Value;

use super::rule::{Finding, Report, Rule, Severity};
use crate::published::{Document, OpenApiError, TypeName, Unpublished, unpublished};
use kube_structural_schema::json::Json;

pub(super) const RULE: Rule = Rule {
    code: "ETCH021",
    name: "unpublished-default",
    severity: Severity::Info,
    summary: "the API server does not publish a default as the schema has it",
    help: "\
The server publishes the schemas of CRDs as OpenAPI v3, for kubectl explain, client generators and other
readers of /openapi/v3. It fills in defaults by the CRD itself; what these readers see may lack a default. The
server publishes nothing of a schema that is not structural, and replaces `apiVersion`, `kind` and `metadata`
with its own schema, also in embedded resources. OpenAPI v2 has no defaults for any type.

Make the schema structural. You cannot change what the server publishes of embedded resources: mention the
default in the description. A server that has not yet processed a changed CRD also causes this finding for
some seconds. Only --live reports it.",
    check: None,
};

/// What is found about a version.
#[derive(Debug, Default)]
pub struct PublishedFindings {
    /// The findings, in the order of their places.
    pub findings: Vec<Finding>,
    /// Whether the document may be that of an older state of the CRD, so that another look may find nothing.
    pub may_be_behind: bool,
}

/// Compares the defaults of a CRD's version with the document that is published of it.
///
/// # Errors
/// The document is broken.
pub fn lint_published(
    crd: &Json,
    version: &str,
    document: Option<&Document>,
) -> Result<PublishedFindings, OpenApiError> {
    let versions = crd["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(index) = versions.iter().position(|known| known["name"] == version) else {
        return Ok(PublishedFindings::default());
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = TypeName {
        api_version: format!("{}/{version}", text(&crd["spec"]["group"])),
        kind: text(&crd["spec"]["names"]["kind"]),
    };
    let mut findings = Vec::new();
    let mut report = Report { rule: &RULE, findings: &mut findings };
    let mut may_be_behind = false;
    for Unpublished { path, why } in
        unpublished(&versions[index]["schema"]["openAPIV3Schema"], &of, document)?
    {
        may_be_behind |= why.may_be_behind();
        report.add(version, path, format!("the default is not published as it is: {why}"));
    }
    for finding in &mut findings {
        finding.version_index = Some(index);
    }
    Ok(PublishedFindings { findings, may_be_behind })
}
