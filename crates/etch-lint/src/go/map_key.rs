//! ETCH105: keys of lists of type map that items may lack.

use super::site::{Report, Site, effective};
use crate::go_types::{Marker, Shape};
use crate::rule::{Rule, Severity};

pub(super) const RULE: Rule = Rule {
    code: "ETCH105",
    name: "go-list-map-key",
    severity: Severity::Error,
    summary: "a list with keys in Go is not of type map, or a key is no scalar field, or neither required \
        nor has a default",
    help: "\
The keys of a list of type map identify its items. An item without a key has no identity, and server-side
apply cannot merge it: associative keys must be required or defaulted (KEP-1929, Motivation). The server
refuses a new CRD with a key that is neither, that is no scalar, or of a list that is not of type map.

Remove `omitempty` and `+optional` from the key, mark it `+required`, or give it a default. Items declared in
packages that are not read cannot be checked.",
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
    let has_keys = !values(["listMapKey", "k8s:listMapKey"]).is_empty();
    if !values(["listType", "k8s:listType"]).contains(&"map") {
        if has_keys {
            report.field(&RULE, site, "the list has +listMapKey and is not of type map (+listType=map)");
        }
        return;
    }
    let mut keys = values(["listMapKey", "k8s:listMapKey"]);
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        report.field(&RULE, site, "the list is of type map and has no +listMapKey");
    }
    let item = match site.packages.resolve(site.resolved.scope.clone(), items).shape {
        Shape::Struct(item) => item,
        shape if is_no_object(&shape) => {
            return report.field(&RULE, site, "the list is of type map, and its items are no objects");
        }
        _ => return,
    };
    for key in keys {
        let message = match item.field(site.packages, key) {
            (None, true) => format!("the key {key} is not a field of the list's items"),
            (Some((scope, field)), _)
                if matches!(
                    site.packages.resolve_field(scope.clone(), field).shape,
                    Shape::Struct(_) | Shape::List(_) | Shape::Map(_)
                ) =>
            {
                format!("the key {key} of the list's items is no scalar")
            }
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

/// Whether it is neither an object nor a map, nor what may write itself as one.
fn is_no_object(shape: &Shape<'_>) -> bool {
    match shape {
        Shape::Text
        | Shape::Bytes
        | Shape::Bool
        | Shape::Integer(_)
        | Shape::IntegerOrText
        | Shape::Float
        | Shape::List(_) => true,
        Shape::Struct(_) | Shape::Map(_) | Shape::Custom | Shape::Unknown => false,
    }
}
