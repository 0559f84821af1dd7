//! ETCH113: scalars that Go clients always send, and others need not.

use super::site::{Report, Site};
use crate::go_types::{Shape, Unset};
use crate::rule::{Rule, Severity};
use crate::site::shown;

pub(super) const RULE: Rule = Rule {
    code: "ETCH113",
    name: "go-scalar-without-default",
    severity: Severity::Info,
    summary: "an optional scalar field in Go has neither a pointer, omitempty nor a default",
    help: "\
Go always writes such a field, an unset one as its zero value, while users of YAML may omit it: the same
object is stored in two forms, and `has(self.field)` in a rule holds for one of them. KEP-1929 (Changes to
kubebuilder/default-gen, rule 4) has the generator write the zero value as the default; kube-openapi does,
controller-gen does not.

Add the zero value as the default, such as `+kubebuilder:default=0`, or `omitempty` to the json tag. Only
packages with controller-gen markers are checked; not reported are required fields, which users may not omit,
and fields of a status.",
    check: None,
};

pub(super) fn check(site: &Site<'_>, report: &mut Report) {
    let is_scalar =
        matches!(site.resolved.shape, Shape::Text | Shape::Bool | Shape::Integer(_) | Shape::Float);
    let is_optional = site.package.is_kubebuilder && !site.field.is_required(site.package);
    let is_of_status = site.declaration.name.ends_with("Status");
    if !is_scalar || site.resolved.writes_itself() || !is_optional || is_of_status || site.default().is_some()
    {
        return;
    }
    if let Unset::Value(sent) = site.resolved.unset(site.packages, site.field) {
        let message =
            format!("Go clients send {} if they do not set the field, and others omit it", shown(&sent));
        report.field(&RULE, site, message);
    }
}
