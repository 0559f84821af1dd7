//! Which objects of a CRD a policy selects, by their namespace and their labels.
//! The object alone decides: namespaces are not read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::wildcard::matches;

/// Selects objects of a CRD. All fields that are set must match; without any, it selects all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.namespaces) || self.namespaces.all(p, p.matches('^[a-z0-9*-]+$'))",
        "message": "namespaces must be names of namespaces in lower case, such as team-a or team-*; * alone \
            matches all",
        "fieldPath": ".namespaces",
    },
    {
        "rule": "!has(self.excludeNamespaces) || self.excludeNamespaces.all(p, p.matches('^[a-z0-9*-]+$'))",
        "message": "excludeNamespaces must be names of namespaces in lower case, such as kube-system or \
            kube-*",
        "fieldPath": ".excludeNamespaces",
    },
    {
        "rule": "!has(self.namespaces) || !has(self.excludeNamespaces) || !self.namespaces.exists(p, p in \
            self.excludeNamespaces)",
        "message": "a namespace cannot be both in namespaces and in excludeNamespaces",
    },
]))]
pub struct ObjectSelector {
    /// Namespaces of the objects; `*` matches any characters. All namespaces if empty. Makes no difference
    /// for objects of CRDs with `scope: Cluster`, which have no namespace. If each is a name without `*`,
    /// Etch needs permissions in these namespaces only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
    /// Namespaces whose objects to exclude even if `namespaces` matches; `*` matches any characters. None if
    /// empty. Makes no difference for objects of CRDs with `scope: Cluster`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 63)))]
    pub exclude_namespaces: Vec<String>,
    /// Labels that an object must have. No label is needed if empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 20))]
    pub match_labels: BTreeMap<String, String>,
    /// What the labels of an object must be like, as in the label selectors of Kubernetes; each must hold.
    /// Nothing is required if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub match_expressions: Vec<LabelRequirement>,
}

/// What one label of an object must be like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.values) && size(self.values) > 0) == (self.operator in ['In', 'NotIn'])",
    "message": "values must be set with In and NotIn, and must not be set with Exists and DoesNotExist",
}]))]
pub struct LabelRequirement {
    /// The label's name.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// How the label is compared. `In`: its value is one of `values`. `NotIn`: the object lacks the label, or
    /// its value is none of `values`. `Exists`: the object has the label. `DoesNotExist`: the object lacks
    /// it.
    pub operator: LabelOperator,
    /// Values to compare with; needed by `In` and `NotIn`, and not allowed for the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(max = 63)))]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LabelOperator {
    /// Its value is one of the values.
    In,
    /// There is no such label, or its value is none of the values.
    NotIn,
    /// There is such a label.
    Exists,
    /// There is no such label.
    DoesNotExist,
}

/// Which objects of a CRD are selected: all of them without a selector; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Option<Arc<ObjectSelector>>);

impl Selection {
    /// Whether an object, as it is, is selected.
    pub fn selects(&self, object: &Object) -> bool {
        self.0.as_ref().is_none_or(|selector| selector.selects(object))
    }

    /// The namespaces of all objects with a namespace that are selected, if the selector names each of them.
    pub fn namespaces(&self) -> Option<Namespaces> {
        let selector = self.selector()?;
        let is_exact = selector.namespaces.iter().all(|name| !name.contains('*'));
        let selected = selector.namespaces.iter().filter(|name| selector.selects_namespace(name));
        Namespaces::new(selected.cloned()).filter(|_| is_exact)
    }

    /// What selects; `None` if all objects are selected.
    pub fn selector(&self) -> Option<&ObjectSelector> {
        self.0.as_deref()
    }
}

impl From<Option<ObjectSelector>> for Selection {
    fn from(selector: Option<ObjectSelector>) -> Self {
        Self(selector.filter(|selector| *selector != ObjectSelector::default()).map(Arc::new))
    }
}

impl ObjectSelector {
    fn selects(&self, object: &Object) -> bool {
        let labels = object.json()["metadata"]["labels"].as_object();
        let label = |key: &str| labels.and_then(|labels: &Map<String, Value>| labels.get(key)?.as_str());
        object.namespace().is_none_or(|namespace| self.selects_namespace(namespace))
            && self.match_labels.iter().all(|(key, value)| label(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.accepts(label(&requirement.key)))
    }

    fn selects_namespace(&self, namespace: &str) -> bool {
        let is_in = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, namespace));
        (self.namespaces.is_empty() || is_in(&self.namespaces)) && !is_in(&self.exclude_namespaces)
    }
}

impl LabelRequirement {
    fn accepts(&self, value: Option<&str>) -> bool {
        let is_listed = || value.is_some_and(|value| self.values.iter().any(|listed| listed == value));
        match self.operator {
            LabelOperator::In => is_listed(),
            LabelOperator::NotIn => !is_listed(),
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}

impl fmt::Display for ObjectSelector {
    /// `namespaces team-a, team-b; without namespaces team-b-*; labels tier=gold,!legacy`: labels as `kubectl
    /// -l` takes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
        };
        let labels = self.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
        let labels: Vec<_> = labels.chain(self.match_expressions.iter().map(ToString::to_string)).collect();
        let labels = (!labels.is_empty()).then(|| format!("labels {}", labels.join(",")));
        let parts = [
            names("namespaces", &self.namespaces),
            names("without namespaces", &self.exclude_namespaces),
            labels,
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, operator, values } = self;
        let values = values.join(",");
        match operator {
            LabelOperator::In => write!(f, "{key} in ({values})"),
            LabelOperator::NotIn => write!(f, "{key} notin ({values})"),
            LabelOperator::Exists => f.write_str(key),
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selection(selector: &Value) -> Selection {
        Some(serde_json::from_value::<ObjectSelector>(selector.clone()).expect("a selector")).into()
    }

    fn object(namespace: Option<&str>, labels: &Value) -> Object {
        json!({ "metadata": { "namespace": namespace, "name": "n", "labels": labels } }).into()
    }

    #[test]
    fn every_field_that_is_set_must_match() {
        let gold = object(Some("team-a"), &json!({ "tier": "gold", "app": "" }));
        for selector in [
            json!({}),
            json!({ "namespaces": ["other", "team-*"] }),
            json!({ "excludeNamespaces": ["team-b"] }),
            json!({ "matchLabels": { "tier": "gold", "app": "" } }),
            json!({ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["iron", "gold"] }] }),
            json!({ "matchExpressions": [{ "key": "none", "operator": "NotIn", "values": [""] }] }),
            json!({ "matchExpressions": [{ "key": "app", "operator": "Exists" }] }),
            json!({ "matchExpressions": [{ "key": "none", "operator": "DoesNotExist" }] }),
        ] {
            assert!(selection(&selector).selects(&gold), "{selector}");
        }
        for selector in [
            json!({ "namespaces": ["team"] }),
            json!({ "namespaces": ["team-*"], "excludeNamespaces": ["*-a"] }),
            json!({ "namespaces": ["team-a"], "matchLabels": { "tier": "iron" } }),
            json!({ "matchLabels": { "none": "" } }),
            json!({ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["iron"] }] }),
            json!({ "matchExpressions": [{ "key": "tier", "operator": "NotIn", "values": ["gold"] }] }),
            json!({ "matchExpressions": [{ "key": "none", "operator": "Exists" }] }),
            json!({ "matchExpressions": [
                { "key": "tier", "operator": "Exists" }, { "key": "app", "operator": "DoesNotExist" },
            ] }),
        ] {
            assert!(!selection(&selector).selects(&gold), "{selector}");
        }
    }

    #[test]
    fn namespaces_make_no_difference_to_objects_without_one() {
        let cluster_scoped = object(None, &json!({ "tier": "gold" }));
        let selector = json!({ "namespaces": ["team-a"], "excludeNamespaces": ["*"] });
        assert!(selection(&selector).selects(&cluster_scoped));
        let selector = json!({ "namespaces": ["*"], "matchLabels": { "tier": "iron" } });
        assert!(!selection(&selector).selects(&cluster_scoped));
    }

    #[test]
    fn namespaces_are_known_where_each_is_named() {
        let named = |selector: &Value| {
            selection(selector).namespaces().map(|namespaces| namespaces.names().join(" "))
        };
        let some = |names: &str| Some(names.to_owned());
        for (selector, expected) in [
            (json!({ "namespaces": ["b", "a"], "matchLabels": { "tier": "gold" } }), some("a b")),
            (json!({ "namespaces": ["a", "b"], "excludeNamespaces": ["b*"] }), some("a")),
            (json!({ "namespaces": ["a"], "excludeNamespaces": ["*"] }), None),
            (json!({ "namespaces": ["a", "b*"] }), None),
            (json!({ "matchLabels": { "tier": "gold" } }), None),
            (json!({}), None),
        ] {
            assert_eq!(named(&selector), expected, "{selector}");
        }
    }

    #[test]
    fn an_empty_selector_is_none_and_others_are_shown_in_a_line() {
        assert_eq!(selection(&json!({})).selector(), None);
        let selection = selection(&json!({
            "namespaces": ["team-a", "team-b-*"],
            "excludeNamespaces": ["team-b-x"],
            "matchLabels": { "tier": "gold" },
            "matchExpressions": [
                { "key": "env", "operator": "In", "values": ["a", "b"] },
                { "key": "old", "operator": "DoesNotExist" },
            ],
        }));
        assert_eq!(
            selection.selector().map(ToString::to_string).as_deref(),
            Some(
                "namespaces team-a, team-b-*; without namespaces team-b-x; labels tier=gold,env in (a,b),!old"
            )
        );
    }
}
