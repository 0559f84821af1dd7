//! ETCH007: defaults of required fields.

use super::rule::{Report, Rule, Severity};
use super::subject::Subject;

pub(super) const RULE: Rule = Rule {
    code: "ETCH007",
    name: "required-default",
    severity: Severity::Info,
    summary: "a required field has a default",
    help: "\
The server fills in defaults before it validates an object, so a required field with a default is never
missing, and `required` has no effect. Generated documentation and clients still tell users to set the field.
A client whose Go type has neither a pointer nor `omitempty` sends the zero value, which the default does not
replace (KEP-1929, Non-pointer scalar fields).

Remove the field from `required` (with controller-gen: `+optional`). A key of a list of type map may stay
required.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    subject.each_site(&mut |version, site| {
        if site.default().is_some() && site.is_required() && !super::list_map_key::is_key(site) {
            report.add(
                &version.name,
                site.path(),
                "the field is required, which its default makes meaningless",
            );
        }
    });
}
