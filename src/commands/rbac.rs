//! `etch rbac`: the permissions that Etch needs for the objects of CRDs, and for what EmbeddedSchemas name.

mod read;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use etch::cluster::Target;
use etch_admission::{Declaration, FactObject, OnExisting, is_asked_about};
use etch_core::api::{DefaultsPolicySpec, Mode, Policies, RefusedObjects, assign};
use etch_core::namespaces::Namespaces;
use etch_core::rbac::{Access, Account, Grant, role, role_in};
use etch_core::selection::Selection;
use sha2::{Digest as _, Sha256};

use self::read::{Found, Known, Named, from_files, live, read_policy};
use super::one_stdin;
use crate::commands::emit::{emit_object, emit_objects};
use crate::commands::global::Format;
use crate::commands::outcome::Outcome;
use crate::commands::streams::note;

/// The ServiceAccount that roles are for unless another one is named.
pub(crate) const SERVICE_ACCOUNT: &str = "etch-system:etch";

/// Print the roles that Etch needs for CRDs and EmbeddedSchemas
///
/// The rules allow exactly what Etch needs: get, list, watch and patch on the custom resources of CRDs. For
/// EmbeddedSchemas they allow list on the targets, also get and patch with `existing: Persist`, and list and
/// watch of the objects that facts read, in their namespaces. Grant access to references yourself. A label
/// adds the rules to the ClusterRole etch-custom-resources, which the installation binds to Etch. For the
/// CRDs of a cluster, the mode of the policy that governs each one counts: Audit needs no patch, Ignore
/// nothing. For a policy whose objects.namespaces are names without *, the command prints a Role and a
/// RoleBinding in each of these namespaces instead.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch rbac | kubectl apply -f -
  etch rbac crds/ --name etch-ours
  etch rbac provider.yaml --name etch-provider | kubectl apply -f -
  etch rbac --policy certificates
  etch rbac --policy team-a --service-account team-a:etch
  helm template cert-manager | etch rbac -")]
pub(crate) struct Rbac {
    /// Files or folders with CRDs or EmbeddedSchemas, or - for standard input [default: those of the cluster]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Use the CRDs and EmbeddedSchemas of the cluster, as without files
    #[arg(long, conflicts_with = "files")]
    live: bool,
    /// Use only the CRDs that this DefaultsPolicy selects, and no EmbeddedSchema: a file, or the name of a
    /// policy in the cluster, without the CRDs that another one governs
    #[arg(long, value_name = "FILE|NAME")]
    policy: Option<String>,
    /// Omit the permission to write, which reports do not need
    #[arg(long)]
    read_only: bool,
    /// Print a ClusterRole for all namespaces even if the policy names the namespaces
    #[arg(long, requires = "policy")]
    cluster_wide: bool,
    /// The service account in RoleBindings
    #[arg(long, value_name = "NAMESPACE:NAME", default_value = SERVICE_ACCOUNT, value_parser = account)]
    service_account: Account,
    /// The name of the roles [default: etch-crds, or a name for the policy or the files, so that no grant
    /// replaces another]
    #[arg(long)]
    name: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Rbac {
    pub(crate) async fn run(&self, target: &Target, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        one_stdin(&self.files)?;
        let Found { crds, schemas, policies } =
            if self.files.is_empty() { live(target).await? } else { from_files(&self.files)? };
        let (policy, policies) = match &self.policy {
            Some(policy) => {
                let Named { name, spec, policies } = read_policy(policy, target).await?;
                (Some((name, spec)), policies)
            }
            None => (None, policies),
        };
        let spec = policy.as_ref().map(|(_, spec)| spec);
        let of_crd = |crd: &Known| {
            let grant = grant(crd, policy.as_ref(), policies.as_ref(), self.read_only);
            let of_status = grant.as_ref().and_then(|grant| of_status(grant, crd, spec));
            grant.into_iter().chain(of_status)
        };
        let namespaces = spec.filter(|_| !self.cluster_wide).and_then(namespaces);
        let is_limited = |crd: &&Known| namespaces.is_some() && crd.is_namespaced;
        let limited: Vec<Grant> = crds.iter().filter(is_limited).flat_map(of_crd).collect();
        let of_crds = crds.iter().filter(|crd| !is_limited(crd)).flat_map(of_crd);
        let schemas = || schemas.iter().filter(|_| policy.is_none());
        let of_schemas = schemas().flat_map(|(_, declared)| for_schema(declared, self.read_only));
        let grants: Vec<Grant> = of_crds.chain(of_schemas).collect();
        let names = namespaces.iter().flat_map(Namespaces::names).filter(|_| !limited.is_empty());
        let mut of_namespaces: Vec<_> = names.map(|name| (name.as_str(), limited.clone())).collect();
        of_namespaces.extend(for_facts(schemas().map(|(_, declared)| declared)));
        if grants.is_empty() && of_namespaces.is_empty() {
            return nothing_to_grant(policy.as_ref());
        }
        let name = match (&self.name, &policy) {
            (Some(name), _) => name.clone(),
            (None, Some((policy, _))) => format!("etch-policy-{policy}"),
            (None, None) if self.files.is_empty() => "etch-crds".to_owned(),
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
            let (role, binding) = role_in(namespace, &name, &self.service_account, grants);
            roles.extend([serde_json::to_value(role)?, serde_json::to_value(binding)?]);
        }
        if namespaces.is_some() && roles.iter().all(|role| role["kind"] != "ClusterRole") {
            let stale = format!(
                "an earlier ClusterRole {name} still allows all namespaces: delete it if it is there"
            );
            note(&stale)?;
        }
        match &roles[..] {
            [role] => emit_object(out, self.output, role)?,
            roles => emit_objects(out, self.output, roles)?,
        }
        Ok(Outcome::Clean)
    }
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

fn account(text: &str) -> Result<Account, String> {
    match text.split_once(':') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains(':') => {
            Ok(Account { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err("expected NAMESPACE:NAME, such as etch-system:etch".to_owned()),
    }
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

/// Explains why no role is printed: one without rules would take away what another grant of its name allows.
fn nothing_to_grant(policy: Option<&(String, DefaultsPolicySpec)>) -> anyhow::Result<Outcome> {
    let (why, outcome) = match policy {
        Some((name, spec)) if spec.mode == Some(Mode::Ignore) => {
            let why = format!(
                "DefaultsPolicy {name} has mode: Ignore, so Etch needs no permission for the objects of its \
                 CRDs"
            );
            (why, Outcome::Clean)
        }
        Some((name, _)) => (
            format!("DefaultsPolicy {name} selects none of the CRDs, or other policies govern them"),
            Outcome::Findings,
        ),
        None => ("Etch needs no permission for them".to_owned(), Outcome::Clean),
    };
    note(&format!("{why}; no role is printed"))?;
    Ok(outcome)
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
    use serde_json::Value;

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
            serde_json::json!({ "name": name, "path": ".id",
            "object": { "version": "v1", "resource": "configmaps", "name": name, "namespace": namespace } })
        };
        let declared = serde_json::json!({
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
            let document = serde_json::json!({
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
        let (with, without) = (crd(serde_json::json!({ "status": {} })), crd(Value::Null));
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
            &serde_json::json!({
                "metadata": { "name": "things.example.com" },
                "spec": { "group": "example.com", "names": { "plural": "things" } },
            })
            .into(),
        )
        .expect("a CRD");
        let all = |own: &str| {
            let policies = serde_json::json!({
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
