//! The rules that Etch needs for the objects of CRDs, and for what EmbeddedSchemas name, and no more. Rules
//! that exist already are not considered: the API server knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::crd::Resource;
use crate::namespaces::Namespaces;

/// Carries the rules of a role into `etch-custom-resources`, which is bound to Etch's service account.
pub const AGGREGATION_LABEL: (&str, &str) = ("etch-operator.io/aggregate-to-etch", "true");
/// Shows which Roles and RoleBindings are Etch's.
const LABEL: (&str, &str) = ("app.kubernetes.io/name", "etch");

/// What Etch is to do with the objects of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// To look at them once.
    Look,
    /// To write them, and no more: of a subresource.
    Patch,
    /// To report on them, and on every change.
    Read,
    /// To look at them once, and to have defaults stored.
    Store,
    /// To report on them and on every change, and to have defaults stored.
    Write,
}

/// What Etch needs on custom resources, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// To read one object again.
    Get,
    /// To find out what is missing.
    List,
    /// To see changes.
    Watch,
    /// To have defaults stored.
    Patch,
}

impl Verb {
    /// The verb that RBAC writes so; `None` if Etch never uses it.
    pub fn named(text: &str) -> Option<Self> {
        [Self::Get, Self::List, Self::Watch, Self::Patch].into_iter().find(|verb| verb.as_str() == text)
    }

    /// The verb as RBAC writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Patch => "patch",
        }
    }
}

/// The objects of one resource, as RBAC names them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// `stable.example.com`
    pub group: String,
    /// `crontabs`
    pub plural: String,
    /// One object alone; none for all.
    pub name: Option<String>,
    /// What Etch is to do.
    pub access: Access,
}

impl Access {
    /// What allows both.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Read, Self::Store) | (Self::Store, Self::Read) => Self::Write,
            _ => self.max(other),
        }
    }

    /// The verbs of RBAC that this takes. There is none with which an object could be created or deleted.
    pub fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::Look => &["list"],
            Self::Patch => &["patch"],
            Self::Read => &["list", "watch"],
            Self::Store => &["get", "list", "patch"],
            Self::Write => &["get", "list", "watch", "patch"],
        }
    }
}

/// The service account that something is granted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl FromStr for Account {
    type Err = String;

    /// Reads `NAMESPACE:NAME`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains(':') => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected NAMESPACE:NAME, such as etch-system:etch".to_owned()),
        }
    }
}

/// The ClusterRole that grants exactly this. Two grants for the same objects become one that allows both.
pub fn role(name: &str, grants: impl IntoIterator<Item = Grant>) -> ClusterRole {
    ClusterRole {
        metadata: labelled(name, AGGREGATION_LABEL),
        rules: Some(rules(grants)),
        ..ClusterRole::default()
    }
}

/// The Role that grants exactly this in one namespace, and the RoleBinding that gives it to an account.
pub fn role_in(
    namespace: &str,
    name: &str,
    account: &Account,
    grants: impl IntoIterator<Item = Grant>,
) -> (Role, RoleBinding) {
    let metadata = ObjectMeta { namespace: Some(namespace.to_owned()), ..labelled(name, LABEL) };
    let Account { namespace, name: account } = account.clone();
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name: account,
        namespace: Some(namespace),
        ..Subject::default()
    };
    let role_ref = RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: "Role".to_owned(),
        name: name.to_owned(),
    };
    let role = Role { metadata: metadata.clone(), rules: Some(rules(grants)) };
    (role, RoleBinding { metadata, role_ref, subjects: Some(vec![subject]) })
}

fn labelled(name: &str, (label, value): (&str, &str)) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(BTreeMap::from([(label.to_owned(), value.to_owned())])),
        ..ObjectMeta::default()
    }
}

/// One rule for each group, name and kind of access, in order. Two grants for the same objects become one
/// that allows both.
fn rules(grants: impl IntoIterator<Item = Grant>) -> Vec<PolicyRule> {
    let mut granted = BTreeMap::<_, Access>::new();
    for Grant { group, plural, name, access } in grants {
        let known = granted.entry((group, plural, name)).or_insert(access);
        *known = known.and(access);
    }
    let mut rules = BTreeMap::<_, BTreeSet<String>>::new();
    for ((group, plural, name), access) in granted {
        rules.entry((group, name, access)).or_default().insert(plural);
    }
    let rules = rules.into_iter().map(|((group, name, access), plurals)| PolicyRule {
        api_groups: Some(vec![group]),
        resources: Some(plurals.into_iter().collect()),
        resource_names: name.map(|name| vec![name]),
        verbs: access.verbs().iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    });
    rules.collect()
}

/// Permissions that are missing for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPermissions {
    /// The API group.
    pub group: String,
    /// The resource's plural.
    pub plural: String,
    /// The verbs.
    pub verbs: Vec<Verb>,
    /// Where they are missing; none for all objects.
    pub namespaces: Option<Namespaces>,
}

/// For which objects of a resource Etch may use the verbs that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// For all.
    Everywhere,
    /// For those of these namespaces, which are all that the policy selects.
    Within(Namespaces),
    /// Not for all that the policy selects.
    Missing(MissingPermissions),
}

impl Allowed {
    /// The namespaces to which that is limited.
    pub fn within(self) -> Option<Namespaces> {
        match self {
            Self::Within(namespaces) => Some(namespaces),
            Self::Everywhere | Self::Missing(_) => None,
        }
    }
}

impl MissingPermissions {
    /// These verbs on all objects of a resource.
    pub fn of(resource: &Resource, verbs: Vec<Verb>) -> Self {
        let Resource { group, plural, .. } = resource.clone();
        Self { group, plural, verbs, namespaces: None }
    }

    /// The same, where it is enough to permit them for the objects of these namespaces.
    #[must_use]
    pub fn in_namespaces(self, namespaces: Option<Namespaces>) -> Self {
        Self { namespaces, ..self }
    }

    /// What the rule is to be added to.
    pub fn place(&self) -> String {
        match &self.namespaces {
            None => "Etch's ClusterRole".to_owned(),
            Some(namespaces) => format!("Etch's Role in {namespaces}"),
        }
    }

    /// The rule to add, as it stands in a Role or ClusterRole.
    pub fn rule(&self) -> impl fmt::Display {
        let verbs: Vec<String> = self.verbs.iter().map(|verb| format!("{:?}", verb.as_str())).collect();
        let Self { group, plural, .. } = self;
        format!("{{apiGroups: [{group:?}], resources: [{plural:?}], verbs: [{}]}}", verbs.join(", "))
    }
}

impl fmt::Display for MissingPermissions {
    /// The rule to add, and the namespaces where it is missing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule().fmt(f)?;
        match &self.namespaces {
            None => Ok(()),
            Some(namespaces) => write!(f, " in {namespaces}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Access, Account, Grant, MissingPermissions, Verb, role, role_in};
    use crate::crd::Resource;
    use crate::namespaces::Namespaces;

    fn grant(group: &str, plural: &str, access: Access) -> Grant {
        Grant { group: group.to_owned(), plural: plural.to_owned(), name: None, access }
    }

    fn rules(grants: &[Grant]) -> serde_json::Value {
        serde_json::to_value(role("etch-some", grants.iter().cloned())).expect("JSON")["rules"].take()
    }

    #[test]
    fn a_group_is_one_rule_with_the_four_verbs() {
        let grants = [
            grant("b.example.com", "backups", Access::Write),
            grant("a.example.com", "crontabs", Access::Write),
            grant("a.example.com", "apples", Access::Write),
        ];
        let verbs = ["get", "list", "watch", "patch"];
        let expected = json!([
            {"apiGroups": ["a.example.com"], "resources": ["apples", "crontabs"], "verbs": verbs},
            {"apiGroups": ["b.example.com"], "resources": ["backups"], "verbs": verbs},
        ]);
        assert_eq!(rules(&grants), expected);
    }

    #[test]
    fn who_only_reads_is_not_granted_patch_and_the_larger_grant_counts() {
        let grants = [
            grant("a.example.com", "read", Access::Read),
            grant("a.example.com", "both", Access::Write),
            grant("a.example.com", "both", Access::Read),
        ];
        let expected = json!([
            {"apiGroups": ["a.example.com"], "resources": ["read"], "verbs": ["list", "watch"]},
            {
                "apiGroups": ["a.example.com"], "resources": ["both"], "verbs": [
                    "get", "list", "watch", "patch",
                ],
            },
        ]);
        assert_eq!(rules(&grants), expected);
    }

    #[test]
    fn one_object_is_granted_by_its_name() {
        let named = |plural: &str, access| Grant {
            name: Some("cluster".to_owned()),
            ..grant("config.example.com", plural, access)
        };
        let grants = [
            named("dnses", Access::Read),
            grant("config.example.com", "dnses", Access::Look),
            named("infrastructures", Access::Read),
        ];
        let expected = json!([
            {"apiGroups": ["config.example.com"], "resources": ["dnses"], "verbs": ["list"]},
            {"apiGroups": ["config.example.com"], "resources": ["dnses", "infrastructures"],
             "resourceNames": ["cluster"], "verbs": ["list", "watch"]},
        ]);
        assert_eq!(rules(&grants), expected);
    }

    #[test]
    fn what_allows_both_is_granted() {
        let two = |a, b| rules(&[grant("a.example.com", "things", a), grant("a.example.com", "things", b)]);
        assert_eq!(two(Access::Read, Access::Store)[0]["verbs"], json!(["get", "list", "watch", "patch"]));
        assert_eq!(two(Access::Store, Access::Look)[0]["verbs"], json!(["get", "list", "patch"]));
    }

    #[test]
    fn a_role_of_a_namespace_is_bound_to_the_account() {
        let account = Account { namespace: "tenant".to_owned(), name: "etch".to_owned() };
        let grants = [grant("a.example.com", "things", Access::Write)];
        let (role, binding) = role_in("web", "etch-some", &account, grants);
        let [role, binding] = [serde_json::to_value(role), serde_json::to_value(binding)];
        let (role, binding) = (role.expect("JSON"), binding.expect("JSON"));
        let metadata = json!({
            "name": "etch-some", "namespace": "web", "labels": { "app.kubernetes.io/name": "etch" },
        });
        assert_eq!((&role["kind"], &role["metadata"]), (&json!("Role"), &metadata));
        assert_eq!(role["rules"][0]["verbs"], json!(["get", "list", "watch", "patch"]));
        assert_eq!((&binding["kind"], &binding["metadata"]), (&json!("RoleBinding"), &metadata));
        let role_ref =
            json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "etch-some" });
        let subject = json!({ "kind": "ServiceAccount", "name": "etch", "namespace": "tenant" });
        assert_eq!((&binding["roleRef"], &binding["subjects"]), (&role_ref, &json!([subject])));
    }

    #[test]
    fn what_is_missing_in_namespaces_names_them() {
        let missing = || {
            MissingPermissions::of(
                &Resource::new("example.com", "v1", "things"),
                vec![Verb::List, Verb::Patch],
            )
        };
        let rule = r#"{apiGroups: ["example.com"], resources: ["things"], verbs: ["list", "patch"]}"#;
        assert_eq!(
            (missing().to_string(), missing().place()),
            (rule.to_owned(), "Etch's ClusterRole".to_owned())
        );
        let missing = missing().in_namespaces(Namespaces::new(["b", "a"].map(str::to_owned)));
        assert_eq!(missing.to_string(), format!("{rule} in namespaces a, b"));
        assert_eq!(missing.place(), "Etch's Role in namespaces a, b");
        assert_eq!(missing.rule().to_string(), rule);
    }

    #[test]
    fn the_role_is_collected_by_its_label() {
        let role = serde_json::to_value(role("etch-some", [])).expect("JSON");
        assert_eq!(
            (&role["kind"], &role["apiVersion"]),
            (&json!("ClusterRole"), &json!("rbac.authorization.k8s.io/v1"))
        );
        let metadata = json!({"name": "etch-some", "labels": {"etch-operator.io/aggregate-to-etch": "true"}});
        assert_eq!((&role["metadata"], &role["rules"]), (&metadata, &json!([])));
    }
}
