//! ETCH004: bad defaults that no server notices: below `additionalProperties`, with what is below them, of
//! int-or-string, and in sets and maps.

use super::rule::{Report, Rule, Severity};
use super::subject::Subject;
use super::{invalid, unpruned};
use kube_structural_schema::compile::Compiled;

pub(super) const RULE: Rule = Rule {
    code: "ETCH004",
    name: "unnoticed-default",
    severity: Severity::Error,
    summary: "a default is invalid in objects or has unknown fields, and the server does not notice",
    help: "\
When a CRD is written, the server validates each default by itself. It does not look at defaults below
additionalProperties, nor for items that are in a set or in a list map twice, nor at the type of an
int-or-string, nor at what a default comes to with the defaults below it, as with `maxProperties: 1`,
`default: {a: 1}` and a default for b. It fills them in all the same, and then refuses every object that gets
one. It drops unknown fields of a default below additionalProperties silently.

Make the default match its schema together with the defaults below it.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in &subject.versions {
        let findings = &version.default_findings().beyond_server;
        if findings.is_empty() {
            continue;
        }
        let compiled = Compiled::new(&version.schema);
        for finding in findings {
            let site = finding.default_site();
            if unpruned::is_about(finding) {
                let message =
                    "the default has fields that the schema does not have; the server drops them silently";
                report.add(&version.name, site, message);
                continue;
            }
            let mut is_alone = true;
            if let Some(default) = compiled.default_at(site.clone()) {
                default.gaps(&mut |_| is_alone = false);
            }
            let with = if is_alone { "" } else { ", with the defaults below it," };
            let wrong = invalid::message(finding, with);
            let message = format!("{wrong}; the server accepts it, and refuses the objects that get it");
            report.add(&version.name, site, message);
        }
    }
}
