//! What roles grant, what requests needed, and where the two differ.
//! Roles are documents, requests are events of the audit log.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context, Result};
use serde_json::Value;

/// What RBAC decides about: one verb on one resource of one group, of all objects or of one.
///
/// In a permission that a role grants, `*` means every group, resource or verb. In one that a request needs,
/// nothing does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// Empty for the core group.
    pub group: String,
    /// `crontabs` or `crontabs/status`.
    pub resource: String,
    /// `None` for all objects, and for a request that names none.
    pub name: Option<String>,
    /// A verb of RBAC, such as `watch`.
    pub verb: String,
}

/// Permissions that could be taken away without any of the requests being refused, and requests that none of
/// them allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Granted, and not needed.
    pub idle: Vec<Permission>,
    /// Needed, and not granted.
    pub lacking: Vec<Permission>,
}

impl Permission {
    /// Whether RBAC, given this, allows what a request needs.
    fn allows(&self, needed: &Self) -> bool {
        let Self { group, resource, name, verb } = self;
        let takes = |granted: &String, needed: &String| granted == "*" || granted == needed;
        takes(group, &needed.group)
            && takes(resource, &needed.resource)
            && takes(verb, &needed.verb)
            && (name.is_none() || *name == needed.name)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource, name, verb } = self;
        let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        write!(f, "{verb} {resource}.{group}{name}")
    }
}

/// What the roles among these documents grant.
///
/// # Errors
/// A rule is not as RBAC has it.
pub fn granted(documents: &[Value]) -> Result<BTreeSet<Permission>> {
    let roles = documents.iter().filter(|role| role["kind"] == "Role" || role["kind"] == "ClusterRole");
    let mut found = BTreeSet::new();
    for rule in roles.flat_map(|role| role["rules"].as_array().into_iter().flatten()) {
        let texts = |field: &str| -> Result<Vec<String>> {
            let list = rule[field].as_array().with_context(|| format!("{field} of {rule}"))?;
            list.iter().map(|text| Ok(text.as_str().context("a text")?.to_owned())).collect()
        };
        let names = match rule.get("resourceNames") {
            Some(_) => texts("resourceNames")?.into_iter().map(Some).collect(),
            None => vec![None],
        };
        for group in texts("apiGroups")? {
            for resource in texts("resources")? {
                for verb in texts("verbs")? {
                    found.extend(names.iter().map(|name| Permission {
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb: verb.clone(),
                    }));
                }
            }
        }
    }
    Ok(found)
}

/// The permissions of the requests that the authorizer allowed, regardless of their result.
pub fn used<'a>(events: impl IntoIterator<Item = &'a Value>) -> BTreeSet<Permission> {
    decided(events, "allow")
}

/// What those requests among these needed that the authorizer refused. Admission refuses for reasons of its
/// own.
pub fn refused<'a>(events: impl IntoIterator<Item = &'a Value>) -> BTreeSet<Permission> {
    decided(events, "forbid")
}

/// Compares what is granted with what was needed.
pub fn compare(granted: &BTreeSet<Permission>, needed: &BTreeSet<Permission>) -> Differences {
    let allowing = |needed: &Permission| granted.iter().filter(|one| one.allows(needed)).collect::<Vec<_>>();
    let mut indispensable = BTreeSet::new();
    let mut lacking = Vec::new();
    for needed in needed {
        match allowing(needed)[..] {
            [] => lacking.push(needed.clone()),
            [only] => {
                indispensable.insert(only);
            }
            _ => {}
        }
    }
    let idle = granted.iter().filter(|one| !indispensable.contains(one)).cloned().collect();
    Differences { idle, lacking }
}

fn decided<'a>(events: impl IntoIterator<Item = &'a Value>, decision: &str) -> BTreeSet<Permission> {
    let annotation = "authorization.k8s.io/decision";
    let decided = events.into_iter().filter(|event| event["annotations"][annotation] == decision);
    decided.flat_map(needed).collect()
}

/// What a request needs; nothing where it is about no resource.
fn needed(event: &Value) -> Vec<Permission> {
    let object = &event["objectRef"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (Some(resource), Some(verb)) = (text(&object["resource"]), text(&event["verb"])) else {
        return Vec::new();
    };
    let resource = match text(&object["subresource"]) {
        Some(subresource) => format!("{resource}/{subresource}"),
        None => resource,
    };
    let group = text(&object["apiGroup"]).unwrap_or_default();
    // RBAC knows no name of what is yet to be created, though the event may contain the one that it got.
    let name = if verb == "create" { None } else { text(&object["name"]) };
    let creates = verb == "patch" && event["responseStatus"]["code"] == 201;
    let permission = Permission { group, resource, name, verb };
    // An apply that creates is logged as patch, and the API server asks for create as well.
    let create = creates.then(|| Permission { verb: "create".into(), ..permission.clone() });
    [permission].into_iter().chain(create).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::{Differences, Permission, compare, granted, refused, used};

    /// `verb resource.group`, with the name of an object after it.
    fn permission(text: &str) -> Permission {
        let mut words = text.split(' ');
        let verb = words.next().expect("a verb").to_owned();
        let (resource, group) = words.next().and_then(|word| word.split_once('.')).expect("a resource");
        let (group, resource) = (group.to_owned(), resource.to_owned());
        Permission { group, resource, name: words.next().map(str::to_owned), verb }
    }

    fn permissions(texts: &[&str]) -> BTreeSet<Permission> {
        texts.iter().map(|text| permission(text)).collect()
    }

    fn roles() -> Vec<Value> {
        vec![
            json!({"kind": "ServiceAccount"}),
            json!({"kind": "ClusterRole", "rules": [
                {"apiGroups": ["a"], "resources": ["crds", "crds/status"], "verbs": ["patch"]},
                {"apiGroups": ["a"], "resources": ["crds"], "verbs": ["list", "watch"]},
            ]}),
            json!({"kind": "Role", "rules": [
                {"apiGroups": ["c"], "resources": ["leases"], "resourceNames": ["etch"], "verbs": ["get"]},
                {"apiGroups": ["c"], "resources": ["leases"], "verbs": ["create"]},
            ]}),
            json!({"kind": "ClusterRole", "aggregationRule": {}}),
        ]
    }

    fn event(verb: &str, object: Value, decision: &str, code: u16) -> Value {
        json!({"verb": verb, "objectRef": object, "responseStatus": {"code": code},
               "annotations": {"authorization.k8s.io/decision": decision}})
    }

    fn events() -> Vec<Value> {
        let crds = |name: Option<&str>| json!({"apiGroup": "a", "resource": "crds", "name": name});
        let status = json!({"apiGroup": "a", "resource": "crds", "subresource": "status", "name": "x"});
        let lease = json!({"apiGroup": "c", "resource": "leases", "name": "etch"});
        vec![
            event("list", crds(None), "allow", 200),
            event("watch", crds(None), "allow", 200),
            event("patch", crds(Some("x")), "allow", 409),
            event("patch", status, "allow", 200),
            event("get", lease.clone(), "allow", 404),
            event("create", lease, "allow", 201),
            event("delete", crds(Some("x")), "forbid", 403),
            json!({"verb": "get", "annotations": {"authorization.k8s.io/decision": "allow"}}),
        ]
    }

    #[test]
    fn a_role_grants_each_verb_of_each_resource_and_name() {
        let expected = [
            "patch crds.a",
            "patch crds/status.a",
            "list crds.a",
            "watch crds.a",
            "get leases.c etch",
            "create leases.c",
        ];
        assert_eq!(granted(&roles()).expect("roles"), permissions(&expected));
        assert!(granted(&[json!({"kind": "Role", "rules": [{"verbs": ["get"]}]})]).is_err());
    }

    #[test]
    fn each_verb_that_is_taken_away_is_found_to_be_lacking() {
        let (granted, used) = (granted(&roles()).expect("roles"), used(&events()));
        assert_eq!(compare(&granted, &used), Differences::default());
        for removed in &granted {
            let mut fewer = granted.clone();
            fewer.remove(removed);
            let Differences { idle, lacking } = compare(&fewer, &used);
            assert_eq!(idle, [], "without {removed}");
            assert!(matches!(&lacking[..], [one] if removed.allows(one)), "without {removed}: {lacking:?}");
        }
    }

    #[test]
    fn each_verb_that_no_request_needs_is_found_to_be_idle() {
        let (granted, events) = (granted(&roles()).expect("roles"), events());
        for left_out in &used(&events) {
            let fewer: Vec<_> = events.iter().filter(|event| !used([*event]).contains(left_out)).collect();
            let Differences { idle, lacking } = compare(&granted, &used(fewer));
            assert_eq!(lacking, [], "without {left_out}");
            assert!(matches!(&idle[..], [one] if one.allows(left_out)), "without {left_out}: {idle:?}");
        }
    }

    #[test]
    fn what_two_rules_grant_either_could_do_without() {
        let granted = permissions(&["get crds.a", "get *.*", "list *.*"]);
        let used = permissions(&["get crds.a x", "list crds.a"]);
        assert_eq!(compare(&granted, &used).idle, [permission("get *.*"), permission("get crds.a")]);
        let used = permissions(&["get crds.a x", "get others.b x", "list crds.a"]);
        assert_eq!(compare(&granted, &used).idle, [permission("get crds.a")]);
    }

    #[test]
    fn a_name_is_for_that_object_alone() {
        let granted = permissions(&["get leases.c etch"]);
        let used = permissions(&["get leases.c etch", "get leases.c other"]);
        assert_eq!(compare(&granted, &used).lacking, [permission("get leases.c other")]);
    }

    #[test]
    fn an_apply_that_creates_needs_create_as_well() {
        let object = json!({"apiGroup": "a", "resource": "crds", "name": "x"});
        let created = event("patch", object.clone(), "allow", 201);
        assert_eq!(used([&created]), permissions(&["patch crds.a x", "create crds.a x"]));
        let patched = event("patch", object.clone(), "allow", 200);
        assert_eq!(used([&patched]), permissions(&["patch crds.a x"]));
    }

    #[test]
    fn only_the_authorizer_refuses_a_permission() {
        assert_eq!(refused(&events()), permissions(&["delete crds.a x"]));
        let admission = event("patch", json!({"apiGroup": "a", "resource": "crds"}), "allow", 403);
        assert_eq!(refused([&admission]), BTreeSet::new());
    }
}
