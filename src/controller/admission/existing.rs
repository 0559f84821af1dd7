//! The looks at existing objects: the leader judges them by each schema before anybody is refused for it.
//! It must not write anything, nor hold more than a page of objects.
//!
//! ```text
//! schema, facts or annotation changed, or a look failed ─> due ─> list each resource once, page by page
//!                                                                 ─> judge by all schemas of the resource ─> status
//! ```
//!
//! There is no look where nothing has changed: what a schema means is to be known before it is enforced, not followed for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use super::lookable::{Inputs, Lookable};
use super::state::{GATHER, Shared, lock};
use super::upgrades::unreadable;
use crate::api::{ExistingObjects, ObjectName};
use crate::cluster::{Backoff, CallError, Cluster, Page, Scan, Scope};
use crate::controller::status::writer::now;
use crate::domain::admission::{Compiled, Endpoint, Existing, existing};
use crate::domain::crd::Resource;
use crate::domain::object::Object;

/// How many objects are named of each kind.
const NAMED: usize = 10;
/// How long after one look the next follows at the earliest, where only facts have changed: some change all the time.
const FACTS_SETTLE: Duration = Duration::from_secs(30);
/// The waits after a look that could not see everything.
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LAST_WAIT: Duration = Duration::from_secs(300);

/// Looks at existing objects.
pub(super) struct Looker {
    cluster: Cluster,
    shared: Shared,
    endpoint: Endpoint,
}

/// A look that is over.
struct Done {
    inputs: Inputs,
    at: Instant,
    /// When to look again, where not everything was seen.
    again: Option<Instant>,
    backoff: Backoff,
}

impl Done {
    /// When to look again by these inputs; none where nothing asks for it.
    fn due(&self, inputs: &Inputs) -> Option<Instant> {
        let Inputs { uid, generation, asked, facts } = inputs;
        let done = &self.inputs;
        if (uid, generation, asked) != (&done.uid, &done.generation, &done.asked) {
            Some(self.at)
        } else if *facts != done.facts {
            Some(self.at + FACTS_SETTLE)
        } else {
            self.again
        }
    }
}

impl Looker {
    pub(super) fn new(cluster: Cluster, shared: Shared, endpoint: Endpoint) -> Self {
        Self { cluster, shared, endpoint }
    }

    /// Looks whenever something asks for it, for as long as it is polled. `looked` is told of each look.
    pub(super) async fn look(
        &self,
        mut changes: watch::Receiver<()>,
        looked: watch::Sender<()>,
    ) -> Infallible {
        let mut done: BTreeMap<String, Done> = BTreeMap::new();
        loop {
            changes.mark_unchanged();
            let known = lock(&self.shared).lookable();
            done.retain(|name, _| known.iter().any(|schema| schema.name == *name));
            let begun = Instant::now();
            let times: Vec<_> = known
                .iter()
                .map(|schema| match done.get(&schema.name) {
                    Some(done) => done.due(&schema.inputs),
                    None => Some(begun),
                })
                .collect();
            let is_due = |at: &Option<Instant>| at.is_some_and(|at| at <= begun);
            let due: Vec<&Lookable> =
                known.iter().zip(&times).filter(|(_, at)| is_due(at)).map(|(schema, _)| schema).collect();
            if due.is_empty() {
                let next = times.into_iter().flatten().min();
                tokio::select! {
                    () = sleep_until(next.unwrap_or(begun)), if next.is_some() => {}
                    Ok(()) = changes.changed() => {}
                    else => std::future::pending().await,
                }
                sleep(GATHER).await;
                continue;
            }
            for (schema, found) in self.look_at(&known, due).await {
                let before = done.remove(&schema.name);
                let is_asked = before.as_ref().is_some_and(|done| done.inputs.asked != schema.inputs.asked);
                let mut backoff = before.map_or(Backoff::new(FIRST_WAIT, LAST_WAIT), |done| done.backoff);
                let (at, inputs) = (Instant::now(), schema.inputs.clone());
                let again = (!found.complete).then(|| at + backoff.failed(None));
                if found.complete {
                    backoff.succeeded();
                }
                lock(&self.shared).looked(&schema.name, &inputs, found, is_asked);
                done.insert(schema.name.clone(), Done { inputs, at, again, backoff });
            }
            looked.send_replace(());
        }
    }

    /// Judges the objects of all resources of the schemas that are due: one resource at a time, each once.
    async fn look_at<'k>(
        &self,
        known: &'k [Lookable],
        due: Vec<&'k Lookable>,
    ) -> Vec<(&'k Lookable, ExistingObjects)> {
        let of = |schema: &Lookable| schema.schema.resources();
        let resources: BTreeSet<Resource> = due.iter().flat_map(|schema| of(schema)).collect();
        let mut tallies: BTreeMap<&str, Tally> =
            due.iter().map(|schema| (&*schema.name, Tally::default())).collect();
        for resource in resources {
            // What other schemas set counts as well, before the verdict.
            let judges: Vec<Lookable> =
                known.iter().filter(|schema| of(schema).contains(&resource)).cloned().collect();
            let judges = Arc::new(judges);
            let seen = self.resource(&resource, &judges, &mut tallies).await;
            if let Err(why) = seen {
                debug!(%resource, why, "existing objects cannot be looked at");
                for schema in judges.iter() {
                    if let Some(tally) = tallies.get_mut(&*schema.name) {
                        tally.unseen.push(why.clone());
                    }
                }
            }
        }
        let found = due.into_iter().map(|schema| {
            let tally = tallies.remove(&*schema.name).unwrap_or_default();
            (schema, tally.found(schema.inputs.generation))
        });
        found.collect()
    }

    async fn resource(
        &self,
        resource: &Resource,
        judges: &Arc<Vec<Lookable>>,
        tallies: &mut BTreeMap<&str, Tally>,
    ) -> Result<(), String> {
        let mut scan = Scan::new(self.cluster.clone(), resource.clone(), Scope::All);
        while let Some(page) = scan.next().await.map_err(|error| unlisted(&error, resource))? {
            let (judges, endpoint) = (judges.clone(), self.endpoint.clone());
            let judged = {
                let (judges, resource) = (judges.clone(), resource.clone());
                // Rules may cost some time: nothing else waits for that. It fails only by a panic, which was logged.
                spawn_blocking(move || judge(&page, &resource, &judges, &endpoint)).await
            };
            for (name, found) in judged.map_err(|_| "the look failed".to_owned())? {
                for (schema, found) in judges.iter().zip(found) {
                    if let (Some(tally), Some(found)) = (tallies.get_mut(&*schema.name), found) {
                        tally.add(&name, found);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The name of each object of a page that counts, and what each schema means for it.
fn judge(
    page: &Page,
    resource: &Resource,
    judges: &[Lookable],
    endpoint: &Endpoint,
) -> Vec<(ObjectName, Vec<Option<Existing>>)> {
    let schemas: Vec<(&Compiled, &Value)> =
        judges.iter().map(|judge| (&*judge.schema, &judge.inputs.facts)).collect();
    let objects = page.objects.iter().filter(|object| !object.is_terminating());
    let objects = objects.filter(|object| endpoint.is_asked_about(object.namespace()));
    objects.map(|object| (named(object, resource), existing(&schemas, resource, object.json()))).collect()
}

fn named(object: &Object, resource: &Resource) -> ObjectName {
    let Resource { group, plural, .. } = resource;
    ObjectName {
        resource: if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") },
        namespace: object.namespace().map(str::to_owned),
        name: object.name().to_owned(),
    }
}

/// What was found of the objects of one schema.
#[derive(Debug, Default)]
struct Tally {
    objects: u64,
    denied: u64,
    first_denied: Vec<ObjectName>,
    defaulted: u64,
    first_defaulted: Vec<ObjectName>,
    /// Why some were not seen.
    unseen: Vec<String>,
}

impl Tally {
    fn add(&mut self, name: &ObjectName, found: Existing) {
        let note = |is_so: bool, count: &mut u64, first: &mut Vec<ObjectName>| {
            *count += u64::from(is_so);
            if is_so && first.len() < NAMED {
                first.push(name.clone());
            }
        };
        let Existing { is_denied, gains_defaults } = found;
        self.objects += 1;
        note(is_denied, &mut self.denied, &mut self.first_denied);
        note(gains_defaults, &mut self.defaulted, &mut self.first_defaulted);
    }

    fn found(self, generation: i64) -> ExistingObjects {
        let Self { objects, denied, first_denied, defaulted, first_defaulted, unseen } = self;
        ExistingObjects {
            observed_generation: generation,
            last_looked: Some(Time(now())),
            complete: unseen.is_empty(),
            message: (!unseen.is_empty()).then(|| unseen.join("; ")),
            objects,
            denied,
            first_denied,
            defaulted,
            first_defaulted,
        }
    }
}

/// Why objects were not listed. The server's own words may quote values.
fn unlisted(error: &CallError, resource: &Resource) -> String {
    match error.code() {
        Some(404) => format!("{resource} is not served"),
        _ => unreadable(error, &resource.to_string()),
    }
}
