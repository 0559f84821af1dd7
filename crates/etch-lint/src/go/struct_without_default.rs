//! ETCH103: structs that Go clients always send, and others need not.

use super::site::{Report, Site, effective};
use crate::go_types::{Marker, Packages, Struct};
use crate::rule::{Rule, Severity};
use crate::site::is_zero;

pub(super) const RULE: Rule = Rule {
    code: "ETCH103",
    name: "go-struct-without-default",
    severity: Severity::Warning,
    summary: "a struct field in Go has no pointer, defaults inside, and no `default: {}`",
    help: "\
Go always writes such a field, as `{}` if nothing is set, and the defaults inside apply. Users of YAML who
omit it get none of them, or the server refuses the object if the field is required. KEP-1929 (Non-pointer
structs) has the generator write `default: {}`; kube-openapi does, controller-gen does not.

Add `+kubebuilder:default={}` to the field, or make it a pointer if it may be absent. Only packages with
controller-gen markers are checked; not reported are spec and status of objects and templates, nor structs for
which the API server may refuse `default: {}`: a field in it is required, even if that has a default, or a
marker such as ExactlyOneOf asks for one.",
    check: None,
};

/// How deep defaults are looked for.
const DEEPEST: usize = 8;

pub(super) fn check(site: &Site<'_>, report: &mut Report) {
    let Some(inner) = site.resolved.object() else { return };
    let is_sent = !site.resolved.is_pointer && !site.field.tag.as_ref().is_some_and(|tag| tag.omitzero);
    if !is_sent || !site.package.is_kubebuilder || site.is_spec_or_status() || site.default().is_some() {
        return;
    }
    if let Some(inside) = default_inside(site.packages, inner, DEEPEST)
        && can_be_empty(site, inner)
    {
        let message =
            format!("the struct has the default of {inside} inside and no default: {{}} of its own");
        report.field(&RULE, site, message);
    }
}

/// The first field with a default that matters, as JSON names it; structs that may be absent are passed over.
fn default_inside(packages: &Packages, of: &Struct<'_>, depth: usize) -> Option<String> {
    let mut found = None;
    of.each(packages, &mut |scope, field| {
        let Some(name) = field.json_name().filter(|_| found.is_none()) else { return };
        let resolved = packages.resolve_field(scope.clone(), field);
        let default = effective(packages, scope.package, field, &resolved);
        let value = default.and_then(|(default, _)| default.value.ok().flatten());
        if value.is_some_and(|value| !is_zero(&value)) {
            found = Some(name.to_owned());
        } else if let Some(inner) = resolved.object()
            && !resolved.is_pointer
            && depth > 0
        {
            found = default_inside(packages, inner, depth - 1).map(|inside| format!("{name}.{inside}"));
        }
    });
    found
}

/// Whether the API server takes `{}` as a default: it counts no defaults inside, so nothing may be required
/// there, neither by a field nor by a marker.
fn can_be_empty(site: &Site<'_>, of: &Struct<'_>) -> bool {
    let declared = site.resolved.declared.iter().flat_map(|(_, type_)| &type_.markers);
    let mut is_complete = !site.field.markers.iter().chain(declared).any(asks_for_fields);
    // What an embedded struct from elsewhere requires is not known.
    of.each(site.packages, &mut |scope, field| {
        is_complete &= field.json_name().is_none() || !field.is_required(scope.package);
    }) && is_complete
}

/// Whether a marker may refuse a struct in which nothing is set. Rules are not evaluated here: any of them
/// may.
fn asks_for_fields(marker: &Marker) -> bool {
    // An embedded resource needs apiVersion and kind.
    const ASKING: [&str; 6] = [
        "ExactlyOneOf",
        "AtLeastOneOf",
        "MinProperties",
        "XValidation",
        "EmbeddedResource",
        "XEmbeddedResource",
    ];
    marker.name.strip_prefix("kubebuilder:validation:").is_some_and(|name| {
        ASKING
            .iter()
            .any(|asking| name.strip_prefix(asking).is_some_and(|end| end.is_empty() || end.starts_with(':')))
    })
}
