//! ETCH019: defaults below objects that may be null.

use super::rule::{Report, Rule, Severity};
use super::site::{Site, is_zero};
use super::subject::Subject;
use kube_structural_schema::path::TrailStep;
use kube_structural_schema::schema::{Schema, SchemaType};

pub(super) const RULE: Rule = Rule {
    code: "ETCH019",
    name: "default-hidden-by-null",
    severity: Severity::Info,
    summary: "an object that is always present may be null, and then none of the defaults below it applies",
    help: "\
A null of a nullable object is a value and stays (KEP-1929, Changes to CRD Normalization). The server fills in
nothing below it, so readers of the object do not see the defaults of its fields, as if the object were
absent.

Remove `nullable`, so that the server removes the null or refuses it; or handle null where the object is used.
Reported are required objects, items and map values; ETCH005 and ETCH010 are about objects that may be
absent.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    subject.each_site(&mut |version, site| {
        if !is_null_object(site) || site.default().is_some() || site.is_in_status() {
            return;
        }
        let hidden =
            |(_, field): &(&str, &Schema)| field.default.as_deref().is_some_and(|default| !is_zero(default));
        let names: Vec<&str> =
            site.schema.properties.iter().filter(hidden).map(|(name, _)| name).take(3).collect();
        if !names.is_empty() {
            let message = format!(
                "the object may be null, which hides the defaults of its fields, such as {}",
                names.join(", ")
            );
            report.add(&version.name, site.path(), message);
        }
    });
}

/// Whether it is a nullable object that is always given where the place above it is.
fn is_null_object(site: &Site<'_>) -> bool {
    let is_given = matches!(site.step, TrailStep::Items | TrailStep::Values) || site.is_required();
    site.schema.kind == SchemaType::Object && site.schema.nullable && is_given
}
