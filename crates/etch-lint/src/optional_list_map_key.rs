//! ETCH017: keys of lists of type map that items may lack.

use super::rule::{Report, Rule, Severity};
use super::site::{each, requires};
use super::subject::Subject;
use kube_structural_schema::path::Step;

pub(super) const RULE: Rule = Rule {
    code: "ETCH017",
    name: "optional-list-map-key",
    severity: Severity::Error,
    summary: "a key of a list of type map is neither required nor has a default",
    help: "\
The keys of a list of type map identify its items. An item without a key has no identity: server-side apply
cannot merge it. Associative keys must be required or defaulted (KEP-1929, Motivation). The server refuses a
new CRD with a key that is neither, and accepts it in a CRD that had it before.

Add the key to `required` of the items (with controller-gen: no `omitempty` and no `+optional`), or give it a
default.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in &subject.versions {
        each(&version.schema, &mut |site| {
            let Some(items) = &site.schema.items else { return };
            if site.schema.list_type.as_deref() != Some("map") {
                return;
            }
            for key in &site.schema.list_map_keys {
                if let Some(property) = items.child(key)
                    && property.default.is_none()
                    && !requires(items, key)
                {
                    let path = site.path().join(Step::Items).join(Step::Field(key.clone()));
                    report.add(
                        &version.name,
                        path,
                        "the key of the list's items is neither required nor has a default",
                    );
                }
            }
        });
    }
}
