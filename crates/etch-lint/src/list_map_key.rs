//! ETCH008: defaults of the keys of lists of type map.

use super::rule::{Report, Rule, Severity};
use super::site::{Site, shown};
use super::subject::Subject;
use kube_structural_schema::path::TrailStep;

pub(super) const RULE: Rule = Rule {
    code: "ETCH008",
    name: "defaulted-list-map-key",
    severity: Severity::Warning,
    summary: "a key of a list of type map has a default",
    help: "\
The keys of a list of type map identify its items, for server-side apply and for the check for duplicates. If
a key has a default, items that omit it equal an item that sets it to that value. If you add or change the
default later, existing items become other items, and their owners lose them.

KEP-1929 (Motivation) lets a key be required or defaulted: require it. Not reported are the keys for which
Kubernetes itself has a default: the protocol of a port, and the name of a reference in lists such as
imagePullSecrets.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    subject.each_site(&mut |version, site| {
        if let Some(default) = site.default().filter(|_| !site.is_copy_of_core())
            && is_key(site)
        {
            let message = format!("a key of the list's items has the default {}", shown(default));
            report.add(&version.name, site.path(), message);
        }
    });
}

/// Whether a place is a key of the items of a list of type map.
pub(super) fn is_key(site: &Site<'_>) -> bool {
    let (Some(name), Some(item)) = (site.name(), site.up) else { return false };
    let Some(list) = item.up.filter(|_| matches!(item.step, TrailStep::Items)) else { return false };
    list.schema.list_type.as_deref() == Some("map") && list.schema.list_map_keys.iter().any(|key| key == name)
}
