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
use std::time::Duration;

use futures::TryStreamExt;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use super::persist::Store;
use super::{DEBOUNCE, Shared};
use crate::cluster::{Backoff, Cluster, ObjectSource, ReadError, Scope};
use crate::operator::options::now;
use crate::operator::policy_lookup::{PolicyLookup, changed};
use etch_admission::Endpoint;
use etch_admission::api::{ExistingObjects, SETTLING};
use etch_admission::checked_schema::{CheckedSchema, Inputs, Judged, judge};
use etch_admission::tally::{FORBIDDEN, INCOMPLETE, OWNERS_LOST, Tally};
use etch_core::call_error::unreadable;
use etch_core::crd::Resource;
use etch_core::object::Object;
use etch_core::object_machine::Kept;
use etch_core::plan::Withheld;

/// How long a schema and its facts have to stay unchanged before Etch stores defaults by them.
const SETTLE: Duration = Duration::from_secs(10);
/// How often objects are looked for that lack defaults which are to be stored.
const PERSIST_AGAIN: Duration = Duration::from_secs(3_600);
/// How long after one check the next follows at the earliest, where only facts have changed: some change all
/// the time.
const FACTS_SETTLE: Duration = Duration::from_secs(30);
/// The waits after a check that could not see everything.
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LAST_WAIT: Duration = Duration::from_secs(300);

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
    /// See [`LastCheck::is_withheld`].
    is_withheld: bool,
    /// Whether the API server serves none of its targets.
    is_unserved: bool,
}

/// A check that is over.
struct LastCheck {
    inputs: Inputs,
    at: Instant,
    /// When to check again by the same inputs.
    again: Option<Instant>,
    /// Whether a policy has kept defaults from being stored, in some objects or in all.
    is_withheld: bool,
    backoff: Backoff,
}

impl LastCheck {
    /// When to check again by these inputs; `None` if nothing asks for it.
    fn due(&self, inputs: &Inputs) -> Option<Instant> {
        let Inputs { uid, generation, asked, facts } = inputs;
        let last = &self.inputs;
        if (uid, generation, asked) != (&last.uid, &last.generation, &last.asked) {
            Some(self.at)
        } else if *facts != last.facts {
            Some(self.at + FACTS_SETTLE)
        } else {
            self.again
        }
    }
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
        let mut last: BTreeMap<String, LastCheck> = BTreeMap::new();
        loop {
            changes.mark_unchanged();
            let known = self.shared.lock().checked_schemas();
            last.retain(|name, _| known.iter().any(|schema| schema.name == *name));
            let begun = Instant::now();
            let at = |schema: &CheckedSchema| match last.get(&schema.name) {
                Some(last) => last.due(&schema.inputs),
                None => Some(begun),
            };
            let times: Vec<Option<Instant>> = known.iter().map(at).collect();
            let is_due = |at: &Option<Instant>| at.is_some_and(|at| at <= begun);
            let due: Vec<&CheckedSchema> =
                known.iter().zip(&times).filter(|(_, at)| is_due(at)).map(|(schema, _)| schema).collect();
            if due.is_empty() {
                let next = times.into_iter().flatten().min();
                tokio::select! {
                    () = sleep_until(next.unwrap_or(begun)), if next.is_some() => {}
                    Ok(()) = changes.changed() => {}
                    () = changed(&mut policies) => {
                        let withheld = last.values_mut().filter(|last| last.is_withheld);
                        withheld.for_each(|last| last.again = Some(Instant::now()));
                    }
                }
                sleep(DEBOUNCE).await;
                continue;
            }
            // Defaults are stored by what was checked before, and has not changed since.
            let is_settled = |schema: &&&CheckedSchema| {
                schema.persist && last.get(&schema.name).is_some_and(|last| last.inputs == schema.inputs)
            };
            let storing: BTreeSet<&str> = due.iter().filter(is_settled).map(|schema| &*schema.name).collect();
            for checked in self.check(&known, &due, &storing).await {
                let before = last.remove(&checked.schema.name);
                self.conclude(checked, before, &mut last);
            }
            checked.send_replace(());
        }
    }

    /// Records what was found, and sets when to check again.
    fn conclude(
        &self,
        checked: Checked<'_>,
        before: Option<LastCheck>,
        last: &mut BTreeMap<String, LastCheck>,
    ) {
        let Checked { schema, found, is_withheld, is_unserved } = checked;
        let is_asked = before.as_ref().is_some_and(|last| last.inputs.asked != schema.inputs.asked);
        let mut backoff = before.map_or(Backoff::new(FIRST_WAIT, LAST_WAIT), |last| last.backoff);
        let (at, inputs) = (Instant::now(), schema.inputs.clone());
        let reason = found.persisted.as_ref().map_or("", |persisted| &*persisted.reason);
        let wait = match reason {
            _ if !found.complete => Some(backoff.failed(None)),
            INCOMPLETE | FORBIDDEN => Some(backoff.failed(None)),
            SETTLING => Some(SETTLE),
            OWNERS_LOST => None,
            _ => schema.persist.then_some(PERSIST_AGAIN),
        };
        if found.complete && ![INCOMPLETE, FORBIDDEN].contains(&reason) {
            backoff.succeeded();
        }
        self.shared.lock().checked(&schema.name, &inputs, found, is_asked, is_unserved);
        let again = wait.map(|wait| at + wait);
        last.insert(schema.name.clone(), LastCheck { inputs, at, again, is_withheld, backoff });
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
