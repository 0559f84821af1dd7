//! ETCH311, ETCH312, ETCH316 and ETCH326: what a CRD serves, and under which names.

use serde_json::Value;

use super::compare::upgrade;
use super::keywords::{self, is_set, present, text};
use super::pair::{Change, finding};
use super::{fields, read_by_rule};
use crate::rule::{Finding, Rule, Severity};
use kube_structural_schema::path::Path;

pub(super) const REMOVED: Rule = Rule {
    code: "ETCH311",
    name: "version-removed",
    severity: Severity::Error,
    summary: "an upgrade no longer serves a version",
    help: "\
Manifests and clients that use the version get 404. If objects are stored at it (`status.storedVersions`), the
API server refuses the CRD; owners of fields in `metadata.managedFields` that name the version make
server-side apply fail.

Serve the version for a while longer with `deprecated: true`, and have the objects rewritten at the new
version.",
    check: None,
};

pub(super) const RENAMED: Rule = Rule {
    code: "ETCH312",
    name: "names-changed",
    severity: Severity::Error,
    summary: "an upgrade changes the group, the scope or the names of a CRD",
    help: "\
Group, scope, kind and plural are part of every manifest and of every path in etcd. The API server refuses to
change them in a CRD that is established; to change them, a user has to delete the CRD and with it all
objects. Role-based access rules name the group and the plural. `kubectl` finds the type by its singular and
its short names, too.",
    check: None,
};

pub(super) const STORAGE: Rule = Rule {
    code: "ETCH316",
    name: "storage-version-changed",
    severity: Severity::Warning,
    summary: "an upgrade changes the storage version",
    help: "\
Objects stay in etcd at the old version until they are written. Reads apply the defaults of the version that
an object is stored at, so they lack those that only the new version has. The old version must stay in the CRD
until `status.storedVersions` no longer names it.",
    check: None,
};

pub(super) const ENDPOINT: Rule = Rule {
    code: "ETCH326",
    name: "endpoint-changed",
    severity: Severity::Warning,
    summary: "an upgrade changes subresources, selectable fields, short names or the conversion",
    help: "\
Objects that were valid stay valid, but requests of clients of the old release may fail or do something else:
with a status subresource, writes of the object no longer change its status, and without one, writes of
`/status` get 404. With another path of the scale subresource, `kubectl scale` and autoscalers read or write
another field. A field selector that is gone is a 400. Without a conversion webhook, values of one version are
shown as they are at another.",
    check: None,
};

pub(super) const CRD_REMOVED: Rule = Rule {
    code: "ETCH329",
    name: "crd-removed",
    severity: Severity::Error,
    summary: "only the files before the upgrade have a CRD",
    help: "\
A tool that prunes what its manifests no longer have deletes such a CRD, and with it all its objects. Helm,
and `kubectl apply` without --prune, leave it there with the old schema.

Name the file of the CRD as well if it has only moved, or compare the same files with --old git:REVISION.",
    check: None,
};

/// The versions of a CRD's spec.
pub(super) fn list_of(spec: &Value) -> &[Value] {
    keywords::list(spec, "versions")
}

/// The versions of a CRD's spec, in its order.
pub(super) fn list(spec: &Value) -> impl Iterator<Item = &Value> {
    list_of(spec).iter()
}

/// A version by its name.
pub(super) fn get<'a>(spec: &'a Value, version: &str) -> Option<&'a Value> {
    list(spec).find(|other| name(other) == version)
}

/// The name of a version.
pub(super) fn name(version: &Value) -> &str {
    text(version, "name")
}

/// The schema of a version.
pub(super) fn schema(version: &Value) -> &Value {
    &version["schema"]["openAPIV3Schema"]
}

/// The version at which objects are stored.
fn storage(spec: &Value) -> Option<&Value> {
    list(spec).find(|version| is_set(version, "storage"))
}

/// What objects lose because a version without it stores them, the defaults that they get there, and what
/// refuses them where the version before takes no writes any more: the API server prunes and fills by the
/// schema of the storage version what is written at another one (facts R12 and R16). What a conversion
/// webhook makes of it is not known.
pub(super) fn of_storage(old: &Value, new: &Value) -> Vec<Finding> {
    let (Some(before), Some(after)) = (storage(old), storage(new)) else { return Vec::new() };
    if name(before) == name(after) || new["conversion"]["strategy"] == "Webhook" {
        return Vec::new();
    }
    let mut changes = upgrade(schema(before), schema(after));
    // Objects that were valid stay writable at the version before as long as that is served.
    let is_served = get(new, name(before)).is_some_and(|version| is_set(version, "served"));
    changes.retain(|change| {
        let is_lost = [fields::REMOVED.code, read_by_rule::READ.code].contains(&change.rule.code);
        is_lost || !is_served && change.rule.can_refuse_objects()
    });
    let index = list(new).position(|version| name(version) == name(after));
    let found = changes.into_iter().map(|Change { rule, path, message }| {
        let message =
            format!("{message}: objects are stored at {}, and were at {}", name(after), name(before));
        finding(Change { rule, path, message }, name(after), index)
    });
    found.collect()
}

/// Whether a version is served or stored.
pub(super) fn is_in_use(version: &Value) -> bool {
    is_set(version, "served") || is_set(version, "storage")
}

pub(super) fn check(old: &Value, new: &Value, findings: &mut Vec<Finding>) {
    let mut add = |rule, message: String| findings.push(of_crd(rule, message));
    names(old, new, &mut add);
    if is_set(old, "preserveUnknownFields") && !is_set(new, "preserveUnknownFields") {
        let message = "spec.preserveUnknownFields is no longer true: fields that the schema does not declare \
            are dropped";
        add(&fields::REMOVED, message.to_owned());
    }
    let strategy = |spec: &Value| match text(&spec["conversion"], "strategy") {
        "" => "None".to_owned(),
        other => other.to_owned(),
    };
    if strategy(old) != strategy(new) {
        add(&ENDPOINT, format!("spec.conversion.strategy was {} and is {}", strategy(old), strategy(new)));
    }
    let (before, after) = (storage(old).map(name), storage(new).map(name));
    if let (Some(before), Some(after)) = (before, after)
        && before != after
    {
        add(&STORAGE, format!("the storage version was {before} and is {after}"));
    }
    for before in list(old).filter(|version| is_in_use(version)) {
        let version = name(before);
        let index = list(new).position(|other| name(other) == version);
        let mut add = |rule, message: &str| {
            let change = Change { rule, path: Path::root(), message: message.to_owned() };
            findings.push(finding(change, version, index));
        };
        let Some(after) = index.map(|index| &list_of(new)[index]) else {
            add(&REMOVED, "the version is gone");
            continue;
        };
        if !is_set(before, "served") {
            continue;
        }
        if is_set(after, "served") {
            endpoints(before, after, &mut add);
        } else {
            add(&REMOVED, "the version is no longer served");
        }
    }
}

fn names(old: &Value, new: &Value, add: &mut dyn FnMut(&'static Rule, String)) {
    let scalar = |spec: &Value, path: &[&str]| {
        let value = path.iter().fold(spec, |value, name| &value[name]);
        value.as_str().unwrap_or_default().to_owned()
    };
    // A field that is left out is derived from the kind, so a file without it means the same.
    const SCALARS: [&[&str]; 6] = [
        &["group"],
        &["scope"],
        &["names", "kind"],
        &["names", "plural"],
        &["names", "singular"],
        &["names", "listKind"],
    ];
    for path in SCALARS {
        let (before, after) = (scalar(old, path), scalar(new, path));
        if before != after && !before.is_empty() && !after.is_empty() {
            add(&RENAMED, format!("spec.{} was {before} and is {after}", path.join(".")));
        }
    }
    for keyword in ["shortNames", "categories"] {
        let of = |spec: &Value| -> Vec<String> {
            let list = spec["names"][keyword].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let kept = of(new);
        for gone in of(old).into_iter().filter(|name| !kept.contains(name)) {
            add(&ENDPOINT, format!("spec.names.{keyword} no longer has {gone}"));
        }
    }
}

fn endpoints(old: &Value, new: &Value, add: &mut dyn FnMut(&'static Rule, &str)) {
    for subresource in ["status", "scale"] {
        let has = |version: &Value| present(&version["subresources"], subresource).is_some();
        match (has(old), has(new)) {
            (true, false) => add(&ENDPOINT, &format!("the subresource {subresource} is gone")),
            (false, true) if subresource == "status" => add(
                &ENDPOINT,
                "the subresource status is new: writes of the object no longer change its status",
            ),
            _ => {}
        }
    }
    scale(&old["subresources"]["scale"], &new["subresources"]["scale"], add);
    let selectable =
        |version| keywords::list(version, "selectableFields").iter().map(|field| text(field, "jsonPath"));
    for gone in selectable(old).filter(|path| !selectable(new).any(|other| other == *path)) {
        add(&ENDPOINT, &format!("the selectable field {gone} is gone"));
    }
    if !is_set(old, "deprecated") && is_set(new, "deprecated") {
        add(&ENDPOINT, "the version is deprecated now: every request at it is answered with a warning");
    }
}

/// Paths of a scale subresource that lead elsewhere. A selector that is new breaks no client.
fn scale(old: &Value, new: &Value, add: &mut dyn FnMut(&'static Rule, &str)) {
    if old.is_null() || new.is_null() {
        return;
    }
    for path in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
        match (text(old, path), text(new, path)) {
            (before, after) if before == after || before.is_empty() => {}
            (before, "") => add(&ENDPOINT, &format!("scale.{path} was {before} and is gone")),
            (before, after) => add(&ENDPOINT, &format!("scale.{path} was {before} and is {after}")),
        }
    }
}

pub(super) fn of_crd(rule: &'static Rule, message: String) -> Finding {
    finding(Change { rule, path: Path::root(), message }, "", None)
}
