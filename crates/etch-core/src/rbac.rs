//! The rules that Etch needs for the objects of CRDs, and for what EmbeddedSchemas name, and no more. Rules
//! that exist already are not considered: the API server knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::crd::Resource;

/// Carries the rules of a role into `etch-custom-resources`, which is bound to Etch's service account.
pub const AGGREGATION_LABEL: (&str, &str) = ("etch-operator.io/aggregate-to-etch", "true");

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

/// The ClusterRole that grants exactly this: one rule for each group, name and kind of access, in order.
///
/// Two grants for the same objects become one that allows both.
pub fn role(name: &str, grants: impl IntoIterator<Item = Grant>) -> ClusterRole {
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
    let (label, value) = AGGREGATION_LABEL;
    ClusterRole {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([(label.to_owned(), value.to_owned())])),
            ..ObjectMeta::default()
        },
        rules: Some(rules.collect()),
        ..ClusterRole::default()
    }
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
}

impl MissingPermissions {
    /// These verbs on all objects of a resource.
    pub fn of(resource: &Resource, verbs: Vec<Verb>) -> Self {
        Self { group: resource.group.clone(), plural: resource.plural.clone(), verbs }
    }
}

impl fmt::Display for MissingPermissions {
    /// The rule to add, as it stands in a Role or ClusterRole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs: Vec<String> = self.verbs.iter().map(|verb| format!("{:?}", verb.as_str())).collect();
        write!(
            f,
            "{{apiGroups: [{:?}], resources: [{:?}], verbs: [{}]}}",
            self.group,
            self.plural,
            verbs.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Access, Grant, role};

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
            {"apiGroups": ["a.example.com"], "resources": ["both"], "verbs": ["get", "list", "watch", "patch"]},
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
