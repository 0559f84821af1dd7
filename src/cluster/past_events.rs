//! Past events in the watch cache of the API server: a watch may begin at any of them. A missing event does
//! not prove that nothing happened.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::call::{get, if_there};
use super::read::collection;
use super::watch::Change;
use super::{CallError, Cluster, crds};
use etch_core::crd::{Crd, Resource};
use etch_core::plan::{History, HistoryBuilder};

/// How long a watch stays open, in seconds: past events come at once, and nothing marks their end.
const OPEN: u32 = 1;
/// The versions at which MutatingAdmissionPolicies may be served.
const POLICY_VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Past events about CRDs and mutating admission; read once, when needed.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By uid; only those of whose creation the server still has the event.
    crds: HashMap<String, HistoryBuilder>,
    admission: Option<Admission>,
}

/// For which resources mutating admission was called.
#[derive(Debug, Default)]
struct Admission {
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
    fn take(&mut self, document: &Value) {
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
    /// The history of a CRD, if its creation is remembered, and mutating admission has never been asked about
    /// its objects: a webhook may have put anything in them. Admission that an API server has in its own
    /// files is not visible to any client.
    pub(super) fn history(&mut self, crd: &Crd) -> Option<History> {
        let history = self.crds.remove(crd.uid())?.of(crd)?;
        let admission = self.admission.as_ref()?;
        let is_whole = history.since().is_some_and(|since| since >= admission.since);
        (is_whole && !admission.rules.iter().any(|rule| rule.matches(&crd.resource()))).then_some(history)
    }
}

impl Cluster {
    /// All past events that Etch may read.
    pub(super) async fn memory(&self) -> Memory {
        let (crds, admission) = futures::join!(self.remembered_crds(), self.remembered_admission());
        Memory { crds: crds.unwrap_or_default(), admission: admission.ok() }
    }

    async fn remembered_crds(&self) -> Result<HashMap<String, HistoryBuilder>, CallError> {
        let mut crds_by_uid: HashMap<String, HistoryBuilder> = HashMap::new();
        self.replay(&crds(), &mut |change| {
            let (Change::Created(crd) | Change::Applied(crd)) = change else { return };
            let is_created = matches!(change, Change::Created(_));
            if is_created {
                crds_by_uid.insert(crd.uid().to_owned(), HistoryBuilder::default());
            }
            if let Some((history, revision)) = crds_by_uid.get_mut(crd.uid()).zip(crd.revision()) {
                history.add(revision, crd.json());
            }
        })
        .await?;
        Ok(crds_by_uid)
    }

    async fn remembered_admission(&self) -> Result<Admission, CallError> {
        let webhooks = [of_admission("v1", "mutatingwebhookconfigurations")];
        let policies = POLICY_VERSIONS.map(|version| of_admission(version, "mutatingadmissionpolicies"));
        let (webhooks, policies) =
            futures::join!(self.remembered_of(&webhooks), self.remembered_of(&policies));
        let (mut all, policies) = (webhooks?, policies?);
        all.since = all.since.max(policies.since);
        all.rules.extend(policies.rules);
        Ok(all)
    }

    /// The rules of what is there and was there, at the first of these resources that is served.
    async fn remembered_of(&self, resources: &[Resource]) -> Result<Admission, CallError> {
        for resource in resources {
            let mut found = Admission::default();
            let list = if_there(self.call_for_json(get(&collection(resource, None))).await)?;
            let Some(list) = list else { continue };
            list["items"].as_array().into_iter().flatten().for_each(|item| found.take(item));
            let mut take = |change: &Change| match change {
                Change::Created(object) | Change::Applied(object) | Change::Deleted(object) => {
                    found.take(object.json());
                }
                Change::Bookmark(_) => {}
            };
            let since = self.replay(resource, &mut take).await?;
            return Ok(Admission { since, ..found });
        }
        Ok(Admission::default())
    }

    /// Visits what happened to the objects of a resource, from the beginning of the server's memory, in
    /// order; returns the resource version from which on it is complete (fact R13).
    async fn replay(
        &self,
        resource: &Resource,
        visit: &mut (dyn FnMut(&Change) + Send),
    ) -> Result<u64, CallError> {
        let mut since = 1;
        loop {
            match self.replay_from(resource, since, visit).await {
                Ok(()) => return Ok(since),
                Err(error) => match error.oldest_remembered().filter(|oldest| *oldest > since) {
                    Some(oldest) => since = oldest,
                    None => return Err(error),
                },
            }
        }
    }

    async fn replay_from(
        &self,
        resource: &Resource,
        since: u64,
        visit: &mut (dyn FnMut(&Change) + Send),
    ) -> Result<(), CallError> {
        let path = collection(resource, None);
        let path = format!("{path}?watch=true&timeoutSeconds={OPEN}&resourceVersion={since}");
        let mut watch = self.watch_at(resource, get(&path)).await?;
        while let Some(change) = watch.next().await? {
            visit(&change);
        }
        Ok(())
    }
}

fn of_admission(version: &str, plural: &str) -> Resource {
    Resource::new("admissionregistration.k8s.io", version, plural)
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
