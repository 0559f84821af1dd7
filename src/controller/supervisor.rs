//! Which CRDs have a task, and which task they have.
//! It must not look at objects: that is the tasks' work.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tracing::{Instrument, error, info, info_span, warn};

use super::Options;
use super::assign::{Assignment, Policies, assign};
use super::charge::Charge;
use super::judge::{Judged, judge};
use super::keep::Retries;
use super::ledger::Ledger;
use super::record::{Recorder, Subject};
use super::verdict;
use crate::api::{DefaultsPolicy, Settings};
use crate::cluster::{Cluster, Events, Feed, FeedEvent, Pace, crds, policies};
use crate::domain::condition::{self, Condition};
use crate::domain::crd::Crd;
use crate::domain::json::Json;
use crate::domain::object::Object;
use crate::server::Readiness;

/// The state of the report on a CRD that no policy selects any more.
const NOT_SELECTED: &str = "NotSelected";

/// Runs the operator until `shutdown` is ready, then ends every task.
///
/// `ready` is told as soon as all CRDs and policies are known.
pub async fn run(
    cluster: Cluster,
    options: Options,
    ready: Arc<Readiness>,
    shutdown: impl Future<Output = ()>,
) {
    let pace = Arc::new(Pace::new(options.max_in_flight, options.max_writes_per_second));
    let (events, dispatch) = Events::new(cluster.clone(), &options.instance);
    let mut supervisor = Supervisor {
        cluster: cluster.clone(),
        events,
        pace,
        options,
        policies: Listed::default(),
        crds: Listed::default(),
        charges: BTreeMap::new(),
        tasks: JoinSet::new(),
        ready,
    };
    let (crd_sender, mut crd_events) = mpsc::channel(64);
    let (policy_sender, mut policy_events) = mpsc::channel(64);
    let mut feeds = JoinSet::new();
    feeds.spawn(dispatch.run());
    feeds.spawn(Feed::new(cluster.clone(), crds()).run(crd_sender));
    feeds.spawn(Feed::new(cluster, policies()).run(policy_sender));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(event) = policy_events.recv() => supervisor.policy_event(event),
            Some(event) = crd_events.recv() => supervisor.crd_event(event),
            Some(ended) = supervisor.tasks.join_next(), if !supervisor.tasks.is_empty() => supervisor.task_ended(ended),
        }
    }
    info!("shutting down");
    feeds.shutdown().await;
    supervisor.tasks.shutdown().await;
}

struct Supervisor {
    cluster: Cluster,
    events: Events,
    pace: Arc<Pace>,
    options: Options,
    policies: Listed<Result<crate::api::DefaultsPolicySpec, ()>>,
    crds: Listed<Known>,
    charges: BTreeMap<String, Running>,
    tasks: JoinSet<()>,
    ready: Arc<Readiness>,
}

/// What is known of a CRD.
struct Known {
    uid: String,
    group: String,
    generation: i64,
    labels: BTreeMap<String, String>,
    /// Its resource version when this generation was first seen.
    revision: String,
    /// None where a schema cannot be read.
    crd: Option<Arc<Crd>>,
    judged: Judged,
    conditions: watch::Sender<Vec<Condition>>,
}

impl Known {
    fn recorder(&self, cluster: &Cluster, events: &Events, name: &str) -> Recorder {
        let (uid, crd) = (self.uid.clone(), self.crd.clone());
        let subject = Subject { name: name.to_owned(), uid, generation: self.generation, crd };
        Recorder::new(cluster.clone(), events.clone(), subject, self.conditions.subscribe())
    }
}

/// The task of a CRD, and what it was started for.
struct Running {
    uid: String,
    generation: i64,
    settings: Settings,
    task: AbortHandle,
}

/// Objects by name, complete or about to be.
struct Listed<T> {
    items: BTreeMap<String, T>,
    /// The names seen by a list that is under way.
    relisted: Option<Vec<String>>,
    complete: bool,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), relisted: None, complete: false }
    }
}

impl<T> Listed<T> {
    fn insert(&mut self, name: &str, item: T) {
        if let Some(relisted) = &mut self.relisted {
            relisted.push(name.to_owned());
        }
        self.items.insert(name.to_owned(), item);
    }

    /// Says that the list is complete: what it did not name is gone.
    fn listed(&mut self) {
        if let Some(mut names) = self.relisted.take() {
            names.sort();
            self.items.retain(|name, _| names.binary_search(name).is_ok());
        }
        self.complete = true;
    }
}

impl Supervisor {
    fn policy_event(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Listing => self.policies.relisted = Some(Vec::new()),
            FeedEvent::Applied(object) => {
                let spec = serde_json::from_slice::<DefaultsPolicy>(&object.json().to_vec());
                let spec = spec.map(|policy| policy.spec).map_err(|error| {
                    warn!(policy = object.name(), %error, "this policy cannot be read and selects nothing");
                });
                self.policies.insert(object.name(), spec);
            }
            FeedEvent::Deleted(object) => drop(self.policies.items.remove(object.name())),
            FeedEvent::Listed => self.policies.listed(),
            FeedEvent::Failed(error, again_in) => {
                warn!(%error, ?again_in, "the policies cannot be watched");
                return;
            }
        }
        if self.policies.relisted.is_none() {
            self.reassign_all();
        }
    }

    fn crd_event(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Listing => self.crds.relisted = Some(Vec::new()),
            FeedEvent::Applied(object) => {
                let name = object.name().to_owned();
                self.crd_applied(object);
                self.reassign(&name);
            }
            FeedEvent::Deleted(object) => {
                self.crds.items.remove(object.name());
                self.reassign(object.name());
            }
            FeedEvent::Listed => {
                self.crds.listed();
                self.reassign_all();
            }
            FeedEvent::Failed(error, again_in) => warn!(%error, ?again_in, "the CRDs cannot be watched"),
        }
    }

    fn crd_applied(&mut self, object: Object) {
        let name = object.name().to_owned();
        if object.is_terminating() {
            self.crds.items.remove(&name);
            return;
        }
        let document = object.json();
        let generation = document["metadata"]["generation"].as_i64().unwrap_or_default();
        let conditions = condition::present(document);
        let labels = labels(document);
        if let Some(known) = self.crds.items.get_mut(&name)
            && known.uid == object.uid()
            && known.generation == generation
        {
            known.labels = labels;
            known.conditions.send_if_modified(|seen| {
                let changed = *seen != conditions;
                *seen = conditions;
                changed
            });
            if let Some(relisted) = &mut self.crds.relisted {
                relisted.push(name);
            }
            return;
        }
        let (crd, judged) = judge(document);
        let known = Known {
            uid: object.uid().to_owned(),
            group: document["spec"]["group"].as_str().unwrap_or_default().to_owned(),
            generation,
            labels,
            revision: object.resource_version().to_owned(),
            crd: crd.map(Arc::new),
            judged,
            conditions: watch::Sender::new(conditions),
        };
        self.crds.insert(&name, known);
    }

    fn reassign_all(&mut self) {
        let names: Vec<String> = self.crds.items.keys().chain(self.charges.keys()).cloned().collect();
        for name in names {
            self.reassign(&name);
        }
    }

    /// Starts, replaces or ends the task of a CRD, if what it should do has changed.
    fn reassign(&mut self, name: &str) {
        if !self.policies.complete {
            return;
        }
        self.ready.set_listed(self.crds.complete);
        let wanted = self.crds.items.get(name).and_then(|known| {
            let readable =
                self.policies.items.iter().filter_map(|(name, spec)| Some((name, spec.as_ref().ok()?)));
            let policies: Policies = readable.map(|(name, spec)| (name.clone(), spec.clone())).collect();
            Some((known, assign(&policies, name, &known.group, &known.labels, self.options.settle)?))
        });
        let Some((known, Assignment { settings, ties })) = wanted else {
            if let Some(running) = self.charges.remove(name) {
                running.task.abort();
                self.cluster.metrics().forget(name);
                self.release(name);
            }
            return;
        };
        let running = self.charges.get(name);
        if running.is_some_and(|running| {
            (&running.uid, running.generation, &running.settings) == (&known.uid, known.generation, &settings)
                && !running.task.is_finished()
        }) {
            return;
        }
        if !ties.is_empty() {
            warn!(
                crd = name,
                policy = settings.policy,
                ?ties,
                "several policies select this CRD as specifically"
            );
        }
        let mut recorder = known.recorder(&self.cluster, &self.events, name);
        let (uid, generation, judged) = (known.uid.clone(), known.generation, known.judged.clone());
        let revision = known.revision.clone();
        let span = info_span!("crd", name);
        let task = match known.crd.clone() {
            Some(crd) => {
                let (cluster, pace) = (self.cluster.clone(), self.pace.clone());
                let ledger = Ledger::open(None, &crd, &settings, &revision);
                let settings = settings.clone();
                let retries = Retries::new();
                let changes = None;
                let charge = Charge {
                    cluster,
                    pace,
                    crd,
                    settings,
                    judged,
                    recorder,
                    revision,
                    ledger,
                    changes,
                    retries,
                };
                self.tasks.spawn(charge.run().instrument(span))
            }
            None => {
                let policy = settings.policy.clone();
                self.tasks.spawn(
                    async move {
                        let verdict = verdict::unreadable(&judged);
                        let state = verdict.reason.as_str();
                        recorder.say(verdict).await;
                        recorder.restate(state, &policy, true).await;
                        recorder.insist().await;
                    }
                    .instrument(span),
                )
            }
        };
        if let Some(before) =
            self.charges.insert(name.to_owned(), Running { uid, generation, settings, task })
        {
            before.task.abort();
        }
    }

    /// Takes our conditions off a CRD that no policy selects any more.
    fn release(&mut self, name: &str) {
        let Some(known) = self.crds.items.get(name) else { return };
        let mut recorder = known.recorder(&self.cluster, &self.events, name);
        let leave = async move {
            recorder.unsay().await;
            recorder.restate(NOT_SELECTED, "", false).await;
        };
        self.tasks.spawn(leave.instrument(info_span!("crd", name)));
    }

    fn task_ended(&mut self, ended: Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            error!("a task failed in a way that it should not; it is started again");
            self.reassign_all();
        }
    }
}

fn labels(document: &Json) -> BTreeMap<String, String> {
    let labels = document.get("metadata").and_then(|metadata| metadata.get("labels"));
    let all = labels.and_then(serde_json::Value::as_object).into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
