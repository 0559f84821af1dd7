//! The checks of existing objects: the leader judges them by each schema before the schema refuses any
//! request, and stores their defaults where the schema asks for that. It holds one page of objects at most.
//!
//! ```text
//! schema, facts or annotation changed, or a check failed ─> due
//!     ─> list each resource once, page by page ─┬─> judge by all schemas of the resource ─> status
//!                                               └─> `existing: Persist`, settled: persist
//! ```
//!
//! Without a change there is no check: what a schema means has to be known before it is enforced, and not
//! again later. But Etch looks once an hour for defaults that it is to store: an object may have been created
//! while no replica answered.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use futures::TryStreamExt;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use super::persist::Store;
use super::shared::{DEBOUNCE, Shared};
use crate::cluster::{Cluster, ObjectSource, ReadError, random};
use crate::operator::options::now;
use crate::operator::policy_lookup::{PolicyLookup, changed};
use etch_admission::Endpoint;
use etch_admission::api::ExistingObjects;
use etch_admission::check_schedule::CheckSchedule;
use etch_admission::checked_schema::{CheckedSchema, Judged, judge};
use etch_admission::tally::Tally;
use etch_core::call_error::unreadable;
use etch_core::crd::Resource;
use etch_core::object::Object;
use etch_core::object_machine::Kept;
use etch_core::plan::Withheld;
use etch_core::scope::Scope;

/// Checks existing objects.
pub(super) struct ExistingChecker {
    cluster: Cluster,
    shared: Shared,
    endpoint: Endpoint,
    store: Arc<Store>,
}

/// What a check has found for a schema.
struct Checked<'k> {
    schema: &'k CheckedSchema,
    found: ExistingObjects,
    /// Whether a policy has kept defaults from being stored, in some objects or in all.
    is_withheld: bool,
    /// Whether the API server serves none of its targets.
    is_unserved: bool,
}

impl ExistingChecker {
    pub(super) fn new(cluster: Cluster, shared: Shared, endpoint: Endpoint, store: Arc<Store>) -> Self {
        Self { cluster, shared, endpoint, store }
    }

    /// Checks whenever something asks for it, for as long as it is polled. `checked` is notified of each
    /// check.
    pub(super) async fn run(
        &self,
        mut changes: watch::Receiver<()>,
        checked: watch::Sender<()>,
    ) -> Infallible {
        let mut policies = self.store.policies.as_ref().map(PolicyLookup::changes);
        let mut schedule = CheckSchedule::default();
        loop {
            changes.mark_unchanged();
            let known = self.shared.lock().checked_schemas();
            let (due, next) = schedule.due(&known, std_now());
            if due.is_empty() {
                let next = next.map(Instant::from_std);
                tokio::select! {
                    () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
                    Ok(()) = changes.changed() => {}
                    () = changed(&mut policies) => schedule.policies_changed(std_now()),
                }
                sleep(DEBOUNCE).await;
                continue;
            }
            let storing = schedule.storing(&due);
            for Checked { schema, found, is_withheld, is_unserved } in
                self.check(&known, &due, &storing).await
            {
                let is_asked = schedule.checked(schema, &found, is_withheld, std_now(), random());
                self.shared.lock().checked(&schema.name, &schema.inputs, found, is_asked, is_unserved);
            }
            checked.send_replace(());
        }
    }

    /// Judges the objects of all resources of the schemas that are due: one resource at a time, each once.
    /// For those that are `storing` defaults are stored on the way.
    async fn check<'k>(
        &self,
        known: &'k [CheckedSchema],
        due: &[&'k CheckedSchema],
        storing: &BTreeSet<&str>,
    ) -> Vec<Checked<'k>> {
        let of = |schema: &CheckedSchema| schema.schema.resources();
        let mut listed: BTreeMap<&str, BTreeSet<Resource>> = BTreeMap::new();
        for schema in due {
            listed.insert(&schema.name, self.once_each(of(schema)).await);
        }
        let resources: BTreeSet<Resource> = listed.values().flatten().cloned().collect();
        let tally = |schema: &&'k CheckedSchema| {
            let is_storing = storing.contains(&*schema.name);
            (&*schema.name, Tally::new(schema.persist, is_storing, schema.restricted))
        };
        let mut tallies: BTreeMap<&str, Tally> = due.iter().map(tally).collect();
        let mut unserved = BTreeSet::new();
        for resource in resources {
            // What other schemas set counts as well, before the verdict.
            let judges: Vec<CheckedSchema> =
                known.iter().filter(|schema| of(schema).contains(&resource)).cloned().collect();
            let judges = Arc::new(judges);
            let counting = listed.iter().filter(|(_, listed)| listed.contains(&resource));
            let mut counting: BTreeMap<&str, Tally> =
                counting.filter_map(|(name, _)| tallies.remove_entry(name)).collect();
            if let Err(unchecked) = self.check_resource(&resource, &judges, &mut counting).await {
                let why = unchecked.why(&resource);
                debug!(%resource, why, "cannot check existing objects");
                counting.values_mut().for_each(|tally| tally.unseen(&why));
                if matches!(unchecked, Unchecked::NotServed) {
                    unserved.insert(resource);
                }
            }
            tallies.append(&mut counting);
        }
        let found = due.iter().map(|schema| {
            let tally = tallies.remove(&*schema.name).unwrap_or_default();
            let is_withheld = tally.is_withheld();
            let is_unserved = listed[&*schema.name].is_subset(&unserved);
            Checked { schema, found: tally.found(schema.inputs.generation, now()), is_withheld, is_unserved }
        });
        found.collect()
    }

    /// The resources, each at one version: at the storage version, if that is among them. Objects are the
    /// same at each.
    async fn once_each(&self, resources: impl IntoIterator<Item = Resource>) -> BTreeSet<Resource> {
        let mut versions: BTreeMap<(String, String), Vec<Resource>> = BTreeMap::new();
        for resource in resources {
            versions.entry((resource.group.clone(), resource.plural.clone())).or_default().push(resource);
        }
        let mut once = BTreeSet::new();
        for ((group, plural), mut versions) in versions {
            let mut chosen = 0;
            if versions.len() > 1
                && let Ok(Some(crd)) = self.cluster.crd(&format!("{plural}.{group}")).await
            {
                let mut named = crd["spec"]["versions"].as_array().into_iter().flatten();
                let storage =
                    named.find(|version| version["storage"] == true).map(|version| &version["name"]);
                let is_storage = |resource: &Resource| storage.is_some_and(|name| *name == *resource.version);
                chosen = versions.iter().position(is_storage).unwrap_or(0);
            }
            once.insert(versions.swap_remove(chosen));
        }
        once
    }

    /// Judges the objects of a resource for the schemas that have a tally.
    async fn check_resource(
        &self,
        resource: &Resource,
        judges: &Arc<Vec<CheckedSchema>>,
        tallies: &mut BTreeMap<&str, Tally>,
    ) -> Result<(), Unchecked> {
        let stores = |schema: &CheckedSchema, tallies: &BTreeMap<&str, Tally>| {
            tallies.get(&*schema.name).is_some_and(|tally| tally.stores(resource))
        };
        // A check of many objects takes hours where writes are paced.
        let is_current = |schema: &CheckedSchema| {
            let now = self.shared.lock().checked_schema(&schema.name);
            now.is_some_and(|now| now.persist && now.inputs == schema.inputs)
        };
        let mut writer = None;
        let source = ObjectSource::from(self.cluster.clone());
        let mut pages = source.pages(vec![resource.clone()], &Scope::All);
        while let Some(page) = pages.try_next().await.map_err(Unchecked::by)? {
            let is_asked = |object: &Object| {
                !object.is_terminating() && self.endpoint.is_asked_about(object.namespace())
            };
            let (too_deep, objects): (Vec<_>, _) =
                page.views().filter(is_asked).partition(Object::is_too_deep);
            for object in too_deep {
                for schema in judges.iter() {
                    if let Some(tally) = tallies.get_mut(&*schema.name) {
                        tally.too_deep(resource, &object.identity());
                    }
                }
            }
            for Judged { mut object, name, mut found } in judged(objects, resource, judges).await? {
                for (index, schema) in judges.iter().enumerate() {
                    let Some(before) = found[index] else { continue };
                    let mut kept = match before.gains_defaults && stores(schema, tallies) {
                        false => None,
                        true => {
                            if writer.is_none() {
                                writer = Some(self.store.writer(resource).await);
                            }
                            let read = object.resource_version().to_owned();
                            let kept = match &writer {
                                Some(Ok(writer)) => writer.store(schema, &mut object, &is_current).await,
                                Some(Err(stop)) => Err(stop.clone()),
                                None => Ok(Kept::Unknown),
                            };
                            if object.resource_version() != read {
                                let again = judged(vec![object.clone()], resource, judges).await?;
                                found = again.into_iter().next().map_or(found, |judged| judged.found);
                            }
                            Some(kept)
                        }
                    };
                    // It lacks none by this schema alone, and does together with the defaults of others.
                    let still_gains = found[index].is_some_and(|found| found.gains_defaults);
                    if kept == Some(Ok(Kept::Stored)) && still_gains {
                        kept = Some(Ok(Kept::Held(Withheld::Dependent)));
                    }
                    let is_gone = kept == Some(Ok(Kept::Gone));
                    if let Some(tally) = tallies.get_mut(&*schema.name) {
                        tally.add(resource, &name, before, kept);
                    }
                    if is_gone {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A moment as the schedule takes it in.
fn std_now() -> std::time::Instant {
    Instant::now().into_std()
}

/// Judges objects, apart: rules may cost some time, and nothing else waits for that.
async fn judged(
    objects: Vec<Object>,
    resource: &Resource,
    judges: &Arc<Vec<CheckedSchema>>,
) -> Result<Vec<Judged>, Unchecked> {
    let (judges, resource) = (judges.clone(), resource.clone());
    // The task fails only by a panic, which was logged.
    spawn_blocking(move || judge(objects, &resource, &judges)).await.map_err(|_| Unchecked::Failed)
}

/// Why objects of a resource were not checked.
enum Unchecked {
    NotServed,
    /// With the code of the server's answer. The server's own words may quote values.
    Unreadable(Option<u16>),
    Failed,
}

impl Unchecked {
    fn by(error: ReadError) -> Self {
        match error.code() {
            Some(404) => Self::NotServed,
            code => Self::Unreadable(code),
        }
    }

    fn why(&self, resource: &Resource) -> String {
        match self {
            Self::NotServed => format!("{resource} is not served"),
            Self::Unreadable(code) => unreadable(*code, &resource.to_string()),
            Self::Failed => "the check failed".to_owned(),
        }
    }
}
