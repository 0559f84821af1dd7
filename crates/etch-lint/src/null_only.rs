//! ETCH018: defaults of items and of values of maps, which nothing but a null makes way for.

use super::rule::{Report, Rule, Severity};
use super::site::{is_zero, shown};
use super::subject::Subject;
use kube_structural_schema::path::TrailStep;

pub(super) const RULE: Rule = Rule {
    code: "ETCH018",
    name: "default-for-nulls-only",
    severity: Severity::Info,
    summary: "a default of a list's items or a map's values, which replaces nulls only",
    help: "\
A list has no absent items and a map no absent values. Such a default replaces only a null that a client
writes: `[null, foo]` becomes `[apple, foo]` (KEP-1929, Lists and String Maps). It does not fill an absent or
empty list.

If the list should not be empty, give the list itself a default. Remove the default if no client writes nulls.
Not reported are defaults that are a zero value, as generators write them, and nullable items, which ETCH010
is about.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    subject.each_site(&mut |version, site| {
        let of = match site.step {
            TrailStep::Items => "an item of the list",
            TrailStep::Values => "a value of the map",
            _ => return,
        };
        if let Some(default) = site.default().filter(|default| !is_zero(default))
            && !site.schema.nullable
        {
            let message = format!("the default {} applies only if {of} is null", shown(default));
            report.add(&version.name, site.path(), message);
        }
    });
}
