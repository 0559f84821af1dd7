//! ETCH009: versions that fill in different defaults.

use std::collections::BTreeMap;

use super::rule::{Report, Rule, Severity};
use super::site::{is_zero, shown};
use super::subject::Subject;
use super::subject::Version;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::Path;

pub(super) const RULE: Rule = Rule {
    code: "ETCH009",
    name: "versions-disagree",
    severity: Severity::Warning,
    summary: "versions of the CRD have different defaults for the same field",
    help: "\
The server fills in defaults by the schema of the version in which it stores an object, and by that of the
version in which a request is made. If they differ, an object's value depends on the version of its last
write, and on the time of that write. Reading an object at another version than its stored one shows none of
the defaults that only this other version has.

Give all versions the same defaults for the fields that they share. Not reported is a zero value in one
version and no default in another.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    let Some(storage) = subject.versions.iter().find(|version| version.storage) else { return };
    let stored = defaults(storage);
    for version in subject.versions.iter().filter(|version| version.served && !version.storage) {
        let own = defaults(version);
        for (path, default) in &own {
            match stored.get(path) {
                Some(other) if same(default, other) => {}
                Some(other) => {
                    let (own, other) = (shown(default), shown(other));
                    let message =
                        format!("the default is {own}, but {other} at the storage version {}", storage.name);
                    report.add(&version.name, path.clone(), message);
                }
                None if storage.schema.describes(path.steps()) && !is_zero(default) => {
                    let own = shown(default);
                    let message =
                        format!("the default is {own}; the storage version {} has none", storage.name);
                    report.add(&version.name, path.clone(), message);
                }
                None => {}
            }
        }
        for (path, default) in stored.iter().filter(|(path, _)| !own.contains_key(*path)) {
            if version.schema.describes(path.steps()) && !is_zero(default) {
                let other = shown(default);
                let message =
                    format!("there is no default; at the storage version {} it is {other}", storage.name);
                report.add(&version.name, path.clone(), message);
            }
        }
    }
}

fn defaults(version: &Version) -> BTreeMap<Path, Json> {
    let mut defaults = BTreeMap::new();
    Compiled::new(&version.schema).each_default(&mut |at, default| {
        defaults.insert(at.to_path(), Json::from(default.clone()));
    });
    defaults
}
