//! ETCH010: defaults of nullable fields.

use super::rule::{Report, Rule, Severity};
use super::subject::Subject;

pub(super) const RULE: Rule = Rule {
    code: "ETCH010",
    name: "nullable-default",
    severity: Severity::Warning,
    summary: "a nullable field has a default",
    help: "\
If a field is not nullable, the server drops a null and fills in the default. If it is nullable, null is a
value and stays (KEP-1929, Changes to CRD Normalization): an object with the field set to null does not get
the default. Clients that write null for an unset field, as some Go types do, never get it.

Remove `nullable`, or handle null where the field is used.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    subject.each_site(&mut |version, site| {
        if site.schema.nullable && site.default().is_some() {
            report.add(
                &version.name,
                site.path(),
                "the field is nullable, and the default does not replace a null",
            );
        }
    });
}
