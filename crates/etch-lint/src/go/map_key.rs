//! ETCH105: keys of lists of type map that items may lack.

use super::site::{Report, Site, effective};
use crate::go_types::{Marker, Shape};
use crate::rule::{Rule, Severity};

pub(super) const RULE: Rule = Rule {
    code: "ETCH105",
    name: "go-list-map-key",
    severity: Severity::Error,
    summary: "a key of a list of type map in Go is not a field, or is neither required nor has a default",
    help: "\
The keys of a list of type map identify its items. An item without a key has no identity, and server-side apply cannot merge
it: associative keys must be required or defaulted (KEP-1929, Motivation). The server refuses a new CRD with a key that is
neither.

Remove `omitempty` and `+optional` from the key, mark it `+required`, or give it a default. Items declared in packages
that are not read cannot be checked.",
    check: None,
};

pub(super) fn check(site: &Site<'_>, report: &mut Report) {
    let Shape::List(items) = site.resolved.shape else { return };
    let of_types = site.resolved.declared.iter().flat_map(|(_, declared)| &declared.markers);
    let markers: Vec<&Marker> = site.field.markers.iter().chain(of_types).collect();
    let values = |names: [&str; 2]| {
        let of = markers.iter().filter(move |marker| names.iter().any(|name| marker.is(name)));
        of.filter_map(|marker| marker.value.as_deref())
            .map(|value| value.trim().trim_matches('"'))
            .collect::<Vec<_>>()
    };
    if !values(["listType", "k8s:listType"]).contains(&"map") {
        return;
    }
    let mut keys = values(["listMapKey", "k8s:listMapKey"]);
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        report.field(&RULE, site, "the list is of type map and has no +listMapKey");
    }
    let Shape::Struct(item) = site.packages.resolve(site.resolved.scope.clone(), items).shape else { return };
    for key in keys {
        let message = match item.field(site.packages, key) {
            (None, true) => format!("the key {key} is not a field of the list's items"),
            (Some((scope, field)), _) if !field.is_required(scope.package) => {
                let resolved = site.packages.resolve_field(scope.clone(), field);
                if effective(site.packages, scope.package, field, &resolved).is_some() {
                    continue;
                }
                format!("the key {key} of the list's items is neither required nor has a default")
            }
            _ => continue,
        };
        report.field(&RULE, site, message);
    }
}
