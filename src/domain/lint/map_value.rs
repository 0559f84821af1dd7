//! ETCH004: bad defaults below `additionalProperties`, where no server looks for them.

use super::rule::{Report, Rule, Severity};
use super::subject::Subject;
use super::{invalid, unpruned};

pub(super) const RULE: Rule = Rule {
    code: "ETCH004",
    name: "bad-default-under-map",
    severity: Severity::Error,
    summary: "a default under a map is invalid or has unknown fields, and the server does not notice",
    help: "\
When somebody writes a CRD, the server validates its defaults, except those below additionalProperties. It still fills them
in, and then refuses every object that gets one. It drops unknown fields of such a default silently.

Make the default match its schema, as anywhere else.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in &subject.versions {
        for finding in &version.default_findings().beyond_server {
            let message = if unpruned::is_about(finding) {
                "the default has fields that the schema does not have; the server drops them silently"
                    .to_owned()
            } else {
                format!(
                    "{}; the server accepts it, and refuses the objects that get it",
                    invalid::message(finding)
                )
            };
            report.add(&version.name, finding.default_site(), message);
        }
    }
}
