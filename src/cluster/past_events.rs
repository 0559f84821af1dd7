//! Past events in the watch cache of the API server: a watch may begin at any of them. A missing event does
//! not prove that nothing happened.

use std::collections::HashMap;

use super::watch::Change;
use super::{CallError, Cluster};
use etch_core::call_error::if_there;
use etch_core::crd::Resource;
use etch_core::plan::HistoryBuilder;
use etch_core::plan::memory::{Admission, Memory};
use etch_core::request::get;
use etch_core::request::path::collection;
use etch_core::request::resources::crds;

/// How long a watch stays open, in seconds: past events come at once, and nothing marks their end.
const OPEN: u32 = 1;
/// The versions at which MutatingAdmissionPolicies may be served.
const POLICY_VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

impl Cluster {
    /// All past events that Etch may read.
    pub(super) async fn memory(&self) -> Memory {
        let (crds, admission) = futures::join!(self.remembered_crds(), self.remembered_admission());
        Memory::new(crds.unwrap_or_default(), admission.ok())
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
        Ok(webhooks?.and(policies?))
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
            return Ok(found.since(since));
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
