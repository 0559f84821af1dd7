//! Which CRDs have a task, and which task they have.
//! It must not look at objects: that is the tasks' work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize as _;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tracing::{Instrument, error, info, info_span, warn};

use super::Options;
use super::announce;
use super::charge::Charge;
use super::govern::{self, Policy, Scope};
use super::judge::{Judged, judge};
use super::ledger::Ledger;
use super::listed::Listed;
use super::proclaim::{PolicyStatus, proclaim};
use super::record::{Recorder, Subject, now};
use super::retries::Retries;
use super::spans::seconds;
use super::verdict;
use crate::api::{Assignment, DefaultsPolicySpec, DefaultsPolicyStatus, Mode, Pause, Policies, assign};
use crate::cluster::{Cluster, Events, Feed, FeedEvent, Pace, Permissions, crds, policies};
use crate::domain::condition::{self, Condition};
use crate::domain::crd::Crd;
use crate::domain::json::Json;
use crate::domain::object::Object;
use crate::server::Readiness;

/// The state of the report on a CRD that no policy selects any more.
const NOT_SELECTED: &str = "NotSelected";
/// Changes of what policies do are gathered for this long.
const GOVERN: Duration = Duration::from_secs(1);

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
        readable: Policies::new(),
        crds: Listed::default(),
        charges: BTreeMap::new(),
        tasks: JoinSet::new(),
        permissions: watch::Sender::new(()),
        ready,
        govern_at: None,
        statuses: watch::Sender::default(),
    };
    let (crd_sender, mut crd_events) = mpsc::channel(64);
    let (policy_sender, mut policy_events) = mpsc::channel(64);
    let mut feeds = JoinSet::new();
    feeds.spawn(dispatch.run());
    feeds.spawn(proclaim(cluster.clone(), supervisor.statuses.subscribe()));
    feeds.spawn(Feed::new(cluster.clone(), crds()).run(crd_sender));
    feeds.spawn(Feed::new(cluster.clone(), policies()).run(policy_sender));
    let permissions = supervisor.permissions.clone();
    feeds.spawn(async move { match cluster.follow_permissions(&permissions).await {} });
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(event) = policy_events.recv() => {
                supervisor.policy_event(event);
                supervisor.count_paused();
            }
            Some(event) = crd_events.recv() => {
                supervisor.crd_event(event);
                supervisor.count_paused();
            }
            () = at(supervisor.govern_at) => supervisor.govern(),
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
    policies: Listed<Policy>,
    /// The policies that count.
    readable: Policies,
    crds: Listed<Known>,
    charges: BTreeMap<String, Running>,
    tasks: JoinSet<()>,
    /// Tells the tasks that what we may do has changed.
    permissions: watch::Sender<()>,
    ready: Arc<Readiness>,
    /// When the policies' statuses are to be looked at.
    govern_at: Option<Instant>,
    statuses: watch::Sender<Vec<PolicyStatus>>,
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
    /// None where it only takes back what was said before.
    assignment: Option<Assignment>,
    /// Tells the task that writes are paused, or may go on.
    pause: watch::Sender<Option<Pause>>,
    task: AbortHandle,
}

impl Supervisor {
    fn policy_event(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Listing => self.policies.listing(),
            FeedEvent::Applied(object) => {
                self.govern_soon();
                if !self.policy_applied(&object) {
                    return;
                }
            }
            FeedEvent::Deleted(object) => drop(self.policies.items.remove(object.name())),
            FeedEvent::Listed => self.policies.listed(),
            FeedEvent::Failed(error, again_in) => {
                warn!(%error, retry_in_seconds = seconds(again_in), "the policies cannot be watched");
                return;
            }
        }
        if !self.policies.is_listing() {
            self.readable = govern::readable(&self.policies.items);
            self.govern_soon();
            self.reassign_all();
        }
    }

    /// Takes a policy in; whether it says something new.
    fn policy_applied(&mut self, object: &Object) -> bool {
        let document = object.json();
        let status = document.get("status").and_then(|status| DefaultsPolicyStatus::deserialize(status).ok());
        let status = status.unwrap_or_default();
        let (name, uid) = (object.name(), object.uid());
        let generation = document["metadata"]["generation"].as_i64().unwrap_or_default();
        if let Some(known) = self.policies.items.get_mut(name)
            && (known.uid.as_str(), known.generation) == (uid, generation)
            && generation > 0
        {
            known.status = status;
            self.policies.seen(name);
            return false;
        }
        let spec = DefaultsPolicySpec::deserialize(&document["spec"]).map_err(|error| {
            warn!(policy = name, %error, "this policy cannot be read and selects nothing");
        });
        let pause_all = document["spec"]["pauseAll"] == true;
        let policy = Policy { uid: uid.to_owned(), generation, spec: spec.ok(), pause_all, status };
        self.policies.insert(name, policy);
        true
    }

    fn count_paused(&self) {
        let assigned = self.charges.values().filter_map(|running| running.assignment.as_ref());
        let paused = assigned.filter(|assignment| {
            assignment.settings.mode == Mode::Persist && assignment.settings.pause.is_some()
        });
        self.cluster.metrics().paused.set(i64::try_from(paused.count()).unwrap_or(i64::MAX));
    }

    fn govern_soon(&mut self) {
        self.govern_at.get_or_insert_with(|| Instant::now() + GOVERN);
    }

    /// Says what each policy does at present, where it says something else.
    fn govern(&mut self) {
        self.govern_at = None;
        if !self.policies.is_complete() || !self.crds.is_complete() {
            return;
        }
        let assigned = self.charges.iter();
        let assigned =
            assigned.filter_map(|(name, running)| Some((name.as_str(), running.assignment.as_ref()?)));
        let crd = |name: &str| self.crds.items.get(name)?.crd.as_deref();
        let scope = Scope { policies: &self.policies.items, readable: &self.readable, crd: &crd };
        let statuses = govern::statuses(scope, assigned, now());
        let with_uids = statuses.into_iter().map(|(name, status)| {
            let uid = self.policies.items[&name].uid.clone();
            PolicyStatus { name, uid, status }
        });
        let wanted: Vec<_> = with_uids.collect();
        for PolicyStatus { name, uid, status } in &wanted {
            let told =
                self.statuses.borrow().iter().find(|told| told.name == *name).map(|told| told.status.clone());
            let before = told.as_ref().unwrap_or(&self.policies.items[name].status);
            let news = announce::about_policy(name, uid, &before.conditions, &status.conditions);
            news.into_iter().for_each(|event| self.events.tell(event));
        }
        self.statuses.send_if_modified(|before| {
            let is_new = *before != wanted;
            *before = wanted;
            is_new
        });
    }

    fn crd_event(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Listing => self.crds.listing(),
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
            FeedEvent::Failed(error, again_in) => {
                warn!(%error, retry_in_seconds = seconds(again_in), "the CRDs cannot be watched");
            }
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
            self.crds.seen(&name);
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
        if !self.policies.is_complete() {
            return;
        }
        self.ready.set_listed(self.crds.is_complete());
        let Some(known) = self.crds.items.get(name) else {
            if let Some(running) = self.charges.remove(name) {
                running.task.abort();
                self.cluster.metrics().forget(name);
                self.govern_soon();
            }
            return;
        };
        let settle = self.options.settle;
        let Some(assignment) = assign(&self.readable, name, &known.group, &known.labels, settle) else {
            return self.release(name);
        };
        if let Some(Running { uid, generation, assignment: Some(current), pause, task }) =
            self.charges.get_mut(name)
            && (&*uid, *generation) == (&known.uid, known.generation)
            && current.settings.same_apart_from_pause(&assignment.settings)
            && !task.is_finished()
        {
            if *current != assignment {
                // The task goes on: what it is writing comes to its end, and what it knows is kept.
                pause.send_replace(assignment.settings.pause.clone());
                *current = assignment;
                self.govern_soon();
            }
            return;
        }
        let Assignment { settings, ties, .. } = &assignment;
        let pause = watch::Sender::new(settings.pause.clone());
        if !ties.is_empty() {
            let policy = &settings.policy;
            let ties = ties.join(", ");
            warn!(crd = name, policy, ties, "several policies select this CRD as specifically");
        }
        let mut recorder = known.recorder(&self.cluster, &self.events, name);
        let (uid, generation, judged) = (known.uid.clone(), known.generation, known.judged.clone());
        let revision = known.revision.clone();
        // Not `name`: that is what a span is called in JSON.
        let span = info_span!("reconcile", crd = name);
        let task = match known.crd.clone() {
            Some(crd) => {
                let (cluster, pace) = (self.cluster.clone(), self.pace.clone());
                let (settings, ledger, retries) = (settings.clone(), Ledger::default(), Retries::new());
                let changes = None;
                let (at_once, rate) = (self.options.max_in_flight, settings.max_writes_per_second);
                let own_pace = Arc::new(Pace::new(at_once, rate));
                let permissions = Permissions::of(&self.permissions);
                let charge = Charge {
                    cluster,
                    pace,
                    own_pace,
                    crd,
                    settings,
                    pause: pause.subscribe(),
                    judged,
                    recorder,
                    revision,
                    ledger,
                    changes,
                    retries,
                    permissions,
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
        self.run(name, Running { uid, generation, assignment: Some(assignment), pause, task });
    }

    /// Takes back what was said on a CRD that no policy selects any more.
    fn release(&mut self, name: &str) {
        let Some(known) = self.crds.items.get(name) else { return };
        match self.charges.get(name) {
            None if known.conditions.borrow().is_empty() => return,
            Some(Running { uid, assignment: None, .. }) if *uid == known.uid => return,
            _ => {}
        }
        self.cluster.metrics().forget(name);
        let mut recorder = known.recorder(&self.cluster, &self.events, name);
        let (uid, generation) = (known.uid.clone(), known.generation);
        let leave = async move {
            recorder.unsay().await;
            recorder.restate(NOT_SELECTED, "", false).await;
            recorder.insist().await;
        };
        let task = self.tasks.spawn(leave.instrument(info_span!("reconcile", crd = name)));
        let pause = watch::Sender::default();
        self.run(name, Running { uid, generation, assignment: None, pause, task });
    }

    /// Keeps a task in place of the one before.
    fn run(&mut self, name: &str, running: Running) {
        if let Some(before) = self.charges.insert(name.to_owned(), running) {
            before.task.abort();
        }
        self.govern_soon();
    }

    fn task_ended(&mut self, ended: Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            let mut charges = self.charges.iter();
            let crd = charges.find(|(_, running)| running.task.id() == error.id()).map(|(name, _)| name);
            error!(crd, "a task failed in a way that it should not; it is started again");
            self.reassign_all();
        }
    }
}

/// Waits for a time, if there is one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn labels(document: &Json) -> BTreeMap<String, String> {
    let labels = document.get("metadata").and_then(|metadata| metadata.get("labels"));
    let all = labels.and_then(serde_json::Value::as_object).into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
