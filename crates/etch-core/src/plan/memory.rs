//! What an API server remembers of CRDs and of mutating admission: what its watch cache still has. A missing
//! event does not prove that nothing happened.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::history::{History, HistoryBuilder};
use crate::crd::{Crd, Resource};

/// Past events about CRDs and mutating admission; read once, when needed.
#[derive(Debug, Default)]
pub struct Memory {
    /// By uid; only those of whose creation the server still has the event.
    crds: HashMap<String, HistoryBuilder>,
    admission: Option<Admission>,
}

/// For which resources mutating admission was called.
#[derive(Debug, Default)]
pub struct Admission {
    /// The resource version after which the server has every event.
    since: u64,
    rules: Vec<Rule>,
}

/// The resources that a webhook or a policy handles, as `admissionregistration.k8s.io` writes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
}

impl Rule {
    fn matches(&self, resource: &Resource) -> bool {
        let is_meant = |named: &String| {
            let name = named.split('/').next().unwrap_or_default();
            name == "*" || name == resource.plural
        };
        self.api_groups.iter().any(|group| group == "*" || *group == resource.group)
            && self.resources.iter().any(is_meant)
    }
}

impl Admission {
    /// The same, complete from this resource version on.
    #[must_use]
    pub fn since(self, since: u64) -> Self {
        Self { since, ..self }
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.since = self.since.max(other.since);
        self.rules.extend(other.rules);
        self
    }

    /// Takes in a webhook configuration or a policy, as it is or was.
    pub fn take(&mut self, document: &Value) {
        let webhooks = document["webhooks"].as_array().into_iter().flatten().map(|webhook| &webhook["rules"]);
        let of_policy = &document["spec"]["matchConstraints"]["resourceRules"];
        for rules in webhooks.chain([of_policy]) {
            for rule in rules.as_array().into_iter().flatten() {
                // A rule that cannot be read may match any resource.
                let any = || Rule { api_groups: vec!["*".to_owned()], resources: vec!["*".to_owned()] };
                self.rules.push(Rule::deserialize(rule).unwrap_or_else(|_| any()));
            }
        }
    }
}

impl Memory {
    /// What the server remembers of CRDs, by uid, and of mutating admission; `None` where Etch may not read
    /// that.
    pub fn new(crds: HashMap<String, HistoryBuilder>, admission: Option<Admission>) -> Self {
        Self { crds, admission }
    }

    /// The history of a CRD, if its creation is remembered, and mutating admission has never been asked about
    /// its objects: a webhook may have put anything in them. Admission that an API server has in its own
    /// files is not visible to any client.
    pub fn history(&mut self, crd: &Crd) -> Option<History> {
        let history = self.crds.remove(crd.uid())?.of(crd)?;
        let admission = self.admission.as_ref()?;
        let is_whole = history.since().is_some_and(|since| since >= admission.since);
        (is_whole && !admission.rules.iter().any(|rule| rule.matches(&crd.resource()))).then_some(history)
    }
}

#[cfg(test)]
mod tests {
    use kube_structural_schema::json::Json;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_is_about_resources_and_their_subresources_of_its_groups() {
        let crontabs = Resource::new("example.com", "v1", "crontabs");
        let is_asked = |webhooks, policy| {
            let mut admission = Admission::default();
            let rules = json!({ "resourceRules": policy });
            admission
                .take(&Json::from(json!({ "webhooks": webhooks, "spec": { "matchConstraints": rules } })));
            admission.rules.iter().any(|rule| rule.matches(&crontabs))
        };
        let rule = |group: &str, resource: &str| json!([{ "apiGroups": [group], "resources": [resource] }]);
        let webhook = |rules| json!([{ "name": "a", "rules": rules }]);
        for resource in ["crontabs", "*", "*/*", "crontabs/*", "crontabs/status"] {
            assert!(is_asked(webhook(rule("example.com", resource)), json!(null)), "{resource}");
            assert!(is_asked(json!(null), rule("*", resource)), "{resource}");
        }
        assert!(!is_asked(webhook(rule("example.org", "*")), rule("example.com", "deployments")));
        assert!(is_asked(webhook(json!([{ "apiGroups": 7 }])), json!(null)), "it cannot be read");
    }
}
