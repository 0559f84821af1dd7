//! `etch rbac`: the permissions that Etch needs for the objects of CRDs, and for what EmbeddedSchemas name.

mod needed;

use std::collections::BTreeMap;
use std::time::Duration;

use etch_admission::{Declaration, FactObject, OnExisting, is_asked_about};
use etch_core::api::{DefaultsPolicySpec, Mode, Policies, RefusedObjects, assign};
use etch_core::namespaces::Namespaces;
use etch_core::rbac::{Access, Account, Grant, role, role_in};
use etch_core::selection::Selection;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub use self::needed::{Known, Needed, NotGranted, declaration};

/// The ServiceAccount that roles are for unless another one is named.
pub const SERVICE_ACCOUNT: &str = "etch-system:etch";

/// How roles are asked for.
#[derive(Debug)]
pub struct Asked {
    /// The policy whose CRDs alone are granted for, and its name.
    pub policy: Option<(String, DefaultsPolicySpec)>,
    /// Whether nothing is to be written.
    pub read_only: bool,
    /// Whether one role is for all namespaces even if the policy names its namespaces.
    pub cluster_wide: bool,
    /// The account in RoleBindings.
    pub account: Account,
    /// The name of the roles; `None` for one by what is granted.
    pub name: Option<String>,
    /// Whether the CRDs are those of a cluster.
    pub is_live: bool,
}

/// The roles for what is needed.
#[derive(Debug)]
pub struct Granted {
    /// Roles and bindings, as `kubectl apply` takes them; empty if nothing is to be granted.
    pub roles: Vec<Value>,
    /// What to note beside them.
    pub note: Option<String>,
    /// Whether they are as they were asked for.
    pub is_clean: bool,
}

/// The roles for CRDs and EmbeddedSchemas. `needed.policies` decide which policy governs a CRD.
///
/// # Errors
/// A role cannot be written as JSON.
pub fn granted(needed: &Needed, asked: &Asked) -> serde_json::Result<Granted> {
    let Needed { crds, schemas, policies } = needed;
    let Asked { policy, read_only, cluster_wide, account, name, is_live } = asked;
    let (policy, policies) = (policy.as_ref(), policies.as_ref());
    let spec = policy.map(|(_, spec)| spec);
    let of_crd = |crd: &Known| {
        let grant = grant(crd, policy, policies, *read_only);
        let of_status = grant.as_ref().and_then(|grant| of_status(grant, crd, spec));
        grant.into_iter().chain(of_status)
    };
    let namespaces = spec.filter(|_| !cluster_wide).and_then(namespaces);
    let is_limited = |crd: &&Known| namespaces.is_some() && crd.is_namespaced;
    let limited: Vec<Grant> = crds.iter().filter(is_limited).flat_map(of_crd).collect();
    let of_crds = crds.iter().filter(|crd| !is_limited(crd)).flat_map(of_crd);
    let schemas = || schemas.iter().filter(|_| policy.is_none());
    let of_schemas = schemas().flat_map(|(_, declared)| for_schema(declared, *read_only));
    let grants: Vec<Grant> = of_crds.chain(of_schemas).collect();
    let names = namespaces.iter().flat_map(Namespaces::names).filter(|_| !limited.is_empty());
    let mut of_namespaces: Vec<_> = names.map(|name| (name.as_str(), limited.clone())).collect();
    of_namespaces.extend(for_facts(schemas().map(|(_, declared)| declared)));
    if grants.is_empty() && of_namespaces.is_empty() {
        return Ok(nothing_to_grant(policy));
    }
    let name = match (name, policy) {
        (Some(name), _) => name.clone(),
        (None, Some((policy, _))) => format!("etch-policy-{policy}"),
        (None, None) if *is_live => "etch-crds".to_owned(),
        (None, None) => {
            let of_schemas = schemas().map(|(name, _)| format!("embeddedschema-{name}"));
            name_for(crds.iter().map(|crd| crd.name.clone()).chain(of_schemas).collect())
        }
    };
    let mut roles = Vec::new();
    if !grants.is_empty() {
        roles.push(serde_json::to_value(role(&name, grants))?);
    }
    for (namespace, grants) in of_namespaces {
        let (role, binding) = role_in(namespace, &name, account, grants);
        roles.extend([serde_json::to_value(role)?, serde_json::to_value(binding)?]);
    }
    let is_stale = namespaces.is_some() && roles.iter().all(|role| role["kind"] != "ClusterRole");
    let stale =
        || format!("an earlier ClusterRole {name} still allows all namespaces: delete it if it is there");
    Ok(Granted { roles, note: is_stale.then(stale), is_clean: true })
}

/// What Etch is to be granted for a CRD; `None` if it does nothing with its objects by this policy, or by
/// that of the cluster that governs the CRD.
fn grant(
    crd: &Known,
    policy: Option<&(String, DefaultsPolicySpec)>,
    policies: Option<&Policies>,
    read_only: bool,
) -> Option<Grant> {
    let governing = policies.and_then(|all| assign(all, &crd.name, &crd.group, &crd.labels, Duration::ZERO));
    let governing = governing.map(|assigned| assigned.settings);
    let mode = match (policy, governing) {
        (Some((name, spec)), governing) => {
            spec.selector.weight(&crd.name, &crd.group, &crd.labels)?;
            if governing.is_some_and(|settings| settings.policy != *name) {
                return None;
            }
            spec.mode.unwrap_or_default()
        }
        (None, Some(settings)) => settings.mode,
        (None, None) => Mode::Persist,
    };
    let access = match mode {
        Mode::Persist if !read_only => Access::Write,
        Mode::Persist | Mode::Audit => Access::Read,
        Mode::Ignore => return None,
    };
    Some(Grant { group: crd.group.clone(), plural: crd.plural.clone(), name: None, access })
}

/// The namespaces to which the permissions for a policy can be limited.
fn namespaces(spec: &DefaultsPolicySpec) -> Option<Namespaces> {
    Selection::from(spec.objects.clone()).namespaces()
}

/// What Etch is to be granted for the status of a CRD's objects: to write those through it that admission
/// refuses.
fn of_status(grant: &Grant, crd: &Known, policy: Option<&DefaultsPolicySpec>) -> Option<Grant> {
    let is_wanted = policy?.refused_objects == Some(RefusedObjects::WriteStatus)
        && grant.access == Access::Write
        && crd.has_status;
    let plural = format!("{}/status", grant.plural);
    is_wanted.then(|| Grant { plural, access: Access::Patch, ..grant.clone() })
}

/// Why no role is printed: one without rules would take away what another grant of its name allows.
fn nothing_to_grant(policy: Option<&(String, DefaultsPolicySpec)>) -> Granted {
    let (why, is_clean) = match policy {
        Some((name, spec)) if spec.mode == Some(Mode::Ignore) => {
            let why = format!(
                "DefaultsPolicy {name} has mode: Ignore, so Etch needs no permission for the objects of its \
                 CRDs"
            );
            (why, true)
        }
        Some((name, _)) => {
            (format!("DefaultsPolicy {name} selects none of the CRDs, or other policies govern them"), false)
        }
        None => ("Etch needs no permission for them".to_owned(), true),
    };
    Granted { roles: Vec::new(), note: Some(format!("{why}; no role is printed")), is_clean }
}

/// A name that the same CRDs and schemas always have, and others have not.
fn name_for(mut granted: Vec<String>) -> String {
    granted.sort();
    granted.dedup();
    let [first, others @ ..] = &granted[..] else { return "etch-crds".to_owned() };
    if others.is_empty() {
        return format!("etch-{first}");
    }
    let group = |name: &str| name.split_once('.').map(|(_, group)| group.to_owned());
    let shared = group(first).filter(|shared| others.iter().all(|name| group(name).as_ref() == Some(shared)));
    let hash = Sha256::digest(granted.join("\n"));
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("etch-{}-{hash}", shared.as_deref().unwrap_or("crds"))
}

/// What Etch is to be granted for an EmbeddedSchema in all namespaces. Not the objects of references: Secrets
/// are for their owner to grant.
fn for_schema(declared: &Declaration, read_only: bool) -> Vec<Grant> {
    let access = match declared.existing.unwrap_or_default() {
        OnExisting::Persist if !read_only => Access::Store,
        OnExisting::Persist | OnExisting::LeaveAlone => Access::Look,
    };
    let targets = declared.targets.iter().filter(|target| is_asked_about(&target.group));
    let targets = targets.map(|target| Grant {
        group: target.group.clone(),
        plural: target.resource.clone(),
        name: None,
        access,
    });
    let facts = declared.facts.iter().filter_map(|fact| fact.object.as_ref());
    let facts = facts.filter(|object| object.namespace.is_none()).map(for_fact);
    targets.chain(facts).collect()
}

/// What Etch is to be granted for the facts of EmbeddedSchemas, by the namespaces of their objects.
fn for_facts<'d>(schemas: impl Iterator<Item = &'d Declaration>) -> BTreeMap<&'d str, Vec<Grant>> {
    let mut granted: BTreeMap<&str, Vec<Grant>> = BTreeMap::new();
    for object in schemas.flat_map(|declared| &declared.facts).filter_map(|fact| fact.object.as_ref()) {
        if let Some(namespace) = &object.namespace {
            granted.entry(namespace).or_default().push(for_fact(object));
        }
    }
    granted
}

fn for_fact(object: &FactObject) -> Grant {
    Grant {
        group: object.group.clone(),
        plural: object.resource.clone(),
        name: Some(object.name.clone()),
        access: Access::Read,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_that_of_what_is_granted_and_of_nothing_else() {
        let name = |granted: &[&str]| name_for(granted.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(name(&["widgets.example.com"]), "etch-widgets.example.com");
        assert_eq!(name(&["embeddedschema-provider"]), "etch-embeddedschema-provider");
        let two = name(&["widgets.example.com", "gadgets.example.com"]);
        assert!(two.starts_with("etch-example.com-"), "{two}");
        assert_eq!(name(&["gadgets.example.com", "widgets.example.com", "gadgets.example.com"]), two);
        assert_ne!(name(&["gadgets.example.com", "wheels.example.com"]), two);
        assert!(name(&["widgets.example.com", "widgets.example.org"]).starts_with("etch-crds-"));
    }

    #[test]
    fn a_fact_is_granted_in_its_namespace_alone() {
        let object = |name: &str, namespace: Option<&str>| {
            json!({ "name": name, "path": ".id",
            "object": { "version": "v1", "resource": "configmaps", "name": name, "namespace": namespace } })
        };
        let declared = json!({
            "targets": [{ "group": "example.com", "version": "v1", "resource": "things", "path": ".spec" }],
            "facts": [object("a", None), object("b", Some("ns")), object("c", Some("ns"))],
        });
        let declared = Declaration::read(&declared).expect("a declaration");
        let names = |grants: &[Grant]| grants.iter().map(|grant| grant.name.clone()).collect::<Vec<_>>();
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(names(&for_schema(&declared, false)), [None, named("a")]);
        let granted = for_facts([&declared].into_iter());
        assert_eq!(granted.keys().collect::<Vec<_>>(), [&"ns"]);
        assert_eq!(names(&granted["ns"]), [named("b"), named("c")]);
    }

    #[test]
    fn the_status_is_granted_for_a_policy_that_has_objects_written_through_it_and_for_no_other() {
        let crd = |subresources: Value| {
            let document = json!({
                "metadata": { "name": "things.example.com" },
                "spec": {
                    "group": "example.com", "names": { "plural": "things" }, "versions": [{
                        "subresources": subresources,
                    }],
                },
            });
            Known::read(&document.into()).expect("a CRD")
        };
        let policy =
            |refused_objects| DefaultsPolicySpec { refused_objects, ..DefaultsPolicySpec::default() };
        let granted = |crd: &Known, access, policy: Option<&DefaultsPolicySpec>| {
            let (group, plural) = ("example.com".to_owned(), "things".to_owned());
            let grant = of_status(&Grant { group, plural, name: None, access }, crd, policy);
            grant.map(|grant| (grant.plural, grant.access.verbs()))
        };
        let (with, without) = (crd(json!({ "status": {} })), crd(Value::Null));
        let asks = policy(Some(RefusedObjects::WriteStatus));
        let expected = Some(("things/status".to_owned(), &["patch"][..]));
        assert_eq!(granted(&with, Access::Write, Some(&asks)), expected);
        assert_eq!(granted(&without, Access::Write, Some(&asks)), None);
        assert_eq!(granted(&with, Access::Read, Some(&asks)), None);
        assert_eq!(granted(&with, Access::Write, Some(&policy(None))), None);
        assert_eq!(granted(&with, Access::Write, None), None);
    }

    #[test]
    fn a_crd_that_another_policy_governs_is_granted_by_that_one() {
        let crd = Known::read(
            &json!({
                "metadata": { "name": "things.example.com" },
                "spec": { "group": "example.com", "names": { "plural": "things" } },
            })
            .into(),
        )
        .expect("a CRD");
        let all = |own: &str| {
            let policies = json!({
                "default": {}, "own": { "selector": { "groups": ["example.com"] }, "mode": own } });
            serde_json::from_value::<Policies>(policies).expect("policies")
        };
        let verbs = |named: Option<&str>, all: Option<&Policies>, read_only| {
            let policy = named.map(|name| (name.to_owned(), DefaultsPolicySpec::default()));
            grant(&crd, policy.as_ref(), all, read_only).map(|grant| grant.access)
        };
        for (mode, access) in
            [("Ignore", None), ("Audit", Some(Access::Read)), ("Persist", Some(Access::Write))]
        {
            let all = all(mode);
            assert_eq!(verbs(Some("default"), Some(&all), false), None, "own governs it");
            assert_eq!(verbs(None, Some(&all), false), access);
        }
        assert_eq!(verbs(Some("own"), Some(&all("Persist")), true), Some(Access::Read));
        assert_eq!(
            verbs(Some("default"), None, false),
            Some(Access::Write),
            "of a file nothing else is known"
        );
        assert_eq!(
            verbs(None, Some(&Policies::new()), false),
            Some(Access::Write),
            "it may come to be selected"
        );
    }
}
