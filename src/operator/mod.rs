//! The operator: a kube-runtime controller over CRDs.
//!
//! ```text
//! watch CRDs (metadata) ─┐                                      ┌─> status/writer  conditions, report ─┐
//!                        ├─> index ─> crd/reconcile ─> crd/task ┤                                      ├─> cluster
//! watch policies ────────┘    pure                   ⇅          └─> object/driver  pages, objects ─────┘
//!                                               engine::crd
//! ```
//!
//! [`Operator`] runs on every replica and keeps the index ([`etch_core::policy_index`]). Only the leader
//! reconciles ([`Operator::lead`]): kube-runtime's `applier` calls `crd::reconcile` for one CRD at a time,
//! which starts a task of its own for each CRD whose objects need work. What a reconciliation keeps for the
//! next is in the CRD's slot (`crd::slot`); what must outlive the process is in its report.
//!
//! It talks to an API server only through `cluster`. `etch_core` decides about objects: `engine` and
//! `object_machine` return what to do next, and this module performs it.

mod admission;
mod context;
mod crd;
mod object;
mod options;
mod persist;
mod policy_lookup;
mod policy_writer;
mod revert;
mod spans;
mod status;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, unfold};
use futures::{FutureExt, Stream, StreamExt};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::controller::{Config, applier};
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::watcher::Event;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tracing::{debug, info, warn};

use crate::cluster::{Cluster, CrdMeta, Events, WatchHealth};
use crate::server::Readiness;
use context::{Context, SharedIndex};
use crd::reconcile::{reconcile, retry};
use etch_core::api::{Mode, Settings};
use etch_core::event;
use etch_core::policy_index::{Change, Index, PolicyStatus};
use options::{now, restored};

pub use admission::{Admission, SelfManaged, UpgradeGuard};
pub use options::{Clock, Options};
pub use persist::{Pass, persist};
pub use policy_lookup::PolicyLookup;
pub use revert::{Reversion, RevertError, revert};
pub use spans::TRACED;

/// Changes of what policies do are gathered for this long.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// How long a watch may fail before nothing counts as known.
const UNKNOWN_AFTER: Duration = Duration::from_secs(60);
/// How often the operator checks whether the watches of CRDs and policies work.
const CHECK: Duration = Duration::from_secs(5);
/// Changes that may wait for a slow listener; one that falls further behind reconciles everything.
const BEHIND: usize = 1024;

/// What every replica does, leader or not: it watches CRDs and policies and keeps their index.
pub struct Operator {
    cluster: Cluster,
    options: Options,
    index: SharedIndex,
    crds: Store<CrdMeta>,
    changes: broadcast::Sender<Change>,
    watches: JoinHandle<()>,
    /// Since when, and why, changes of CRDs or policies are not noticed; `None` while they are.
    watch_failure: watch::Receiver<Option<String>>,
}

/// Runs the operator without leader election until `shutdown` is ready.
///
/// `ready` is notified as soon as all CRDs and policies are known.
pub async fn run(
    cluster: Cluster,
    options: Options,
    ready: Arc<Readiness>,
    shutdown: impl Future<Output = ()>,
) {
    Operator::start(cluster, options, ready).lead(shutdown).await;
}

impl Operator {
    /// Begins to watch. `ready` is notified as soon as all CRDs and policies are known.
    pub fn start(cluster: Cluster, options: Options, ready: Arc<Readiness>) -> Self {
        let (crds, mut writer) = store();
        let (index, changes) = (SharedIndex::default(), broadcast::Sender::new(BEHIND));
        let (failure, watch_failure) = watch::channel(None);
        let watches = {
            let (cluster, index, changes) = (cluster.clone(), index.clone(), changes.clone());
            let mut restore_sign = options.set_back.clone();
            let health = [("CRDs", WatchHealth::default()), ("policies", WatchHealth::default())];
            let mut crds = cluster.watch_crds(health[0].1.clone()).boxed();
            let mut policies = cluster.watch_policies(health[1].1.clone()).boxed();
            let mut checks = tokio::time::interval(CHECK);
            checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let tasks = ready.tasks().clone();
            tasks.spawn("watches CRDs and policies", async move {
                loop {
                    let change = tokio::select! {
                        _ = checks.tick() => {
                            report_failure(&health, &failure);
                            continue;
                        }
                        () = restored(restore_sign.as_mut()) => {
                            cluster.relist();
                            continue;
                        }
                        Some(event) = crds.next() => {
                            let change = crd_event(&mut index.write(), &event);
                            writer.apply_watcher_event(&event.modify(only_names));
                            change
                        }
                        Some(event) = policies.next() => policy_event(&mut index.write(), &event),
                        else => return,
                    };
                    ready.set_listed(index.read().is_complete());
                    if change != Change::Nothing {
                        // This fails if another replica leads: there is no receiver then.
                        let _ = changes.send(change);
                    }
                }
            })
        };
        Self { cluster, options, index, crds, changes, watches, watch_failure }
    }

    /// Which policy governs which CRD, for as long as this lives.
    pub fn policy_lookup(&self) -> PolicyLookup {
        PolicyLookup::new(self.index.clone(), self.changes.clone(), self.options.settle)
    }

    /// Reconciles all CRDs until `over` is ready; then nothing more is written.
    pub async fn lead(&self, over: impl Future<Output = ()>) {
        let (cluster, options) = (self.cluster.clone(), self.options.clone());
        let (events, dispatch) = Events::new(cluster.clone(), &options.instance);
        let (ended, ends) = mpsc::unbounded_channel();
        let settle = options.settle;
        let (index, watch_failure) = (self.index.clone(), self.watch_failure.clone());
        let context = Context::new(cluster.clone(), events, options, index, watch_failure, ended);
        let context = Arc::new(context);
        let (wanted, statuses) = watch::channel(Vec::new());
        let queue =
            queue(context.clone(), self.changes.subscribe(), ends).map(Ok::<_, std::convert::Infallible>);
        let controller = applier(
            |crd, context| -> BoxFuture<'static, _> { reconcile(crd, context).boxed() },
            retry,
            context.clone(),
            self.crds.clone(),
            queue,
            Config::default(),
        );
        let controller = controller.for_each(|reconciled| async move {
            if let Err(error) = reconciled {
                // A CRD that was deleted meanwhile; other failures were logged by `retry`.
                debug!(%error, "not reconciled");
            }
        });
        tokio::select! {
            // Not kube-runtime's graceful shutdown: a replica that loses the Lease must not finish a write
            // that is under way.
            () = over => info!("stopped reconciling"),
            () = controller => {}
            () = dispatch.run() => {}
            () = policy_writer::write_statuses(cluster.clone(), statuses) => {}
            () = policy_statuses(&context, self.changes.subscribe(), settle, wanted) => {}
            never = cluster.follow_permissions(&context.permissions) => match never {},
        }
        context.stop().await;
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.watches.abort();
    }
}

/// Reports whether one of these watches has failed for long. What was reported first stays, until all of them
/// work.
fn report_failure(watches: &[(&str, WatchHealth)], failure: &watch::Sender<Option<String>>) {
    let mut failing = watches.iter().filter_map(|(kind, health)| Some((kind, health.failing()?)));
    let long = failing.clone().find(|(_, (long, _))| *long >= UNKNOWN_AFTER);
    failure.send_if_modified(|reported| match (&reported, long) {
        (None, Some((kind, (long, why)))) => {
            let since = now().checked_sub(long).unwrap_or_else(|_| now());
            *reported = Some(format!(
                "the watch of {kind} has failed since {since:.0}, so Etch misses changes: {why}"
            ));
            true
        }
        (Some(_), None) if failing.next().is_none() => {
            *reported = None;
            true
        }
        _ => false,
    });
}

/// The CRDs to reconcile, by name: all of them at first, and then whichever something has happened to.
fn queue(
    context: Arc<Context>,
    changes: broadcast::Receiver<Change>,
    ends: mpsc::UnboundedReceiver<String>,
) -> impl Stream<Item = ObjectRef<CrdMeta>> {
    let permissions = context.permissions.subscribe();
    // What is under way for a CRD that is gone may take long to end, and the others do not wait for it.
    let forgetting = FuturesUnordered::new();
    let state = (context, changes, ends, permissions, forgetting, true);
    let names = unfold(
        state,
        |(context, mut changes, mut ends, mut permissions, mut forgetting, is_first)| async move {
            let forget = |name: String| {
                let context = context.clone();
                async move { context.forget(&name).await }
            };
            let names = if is_first {
                all(&context)
            } else {
                tokio::select! {
                    change = changes.recv() => match change {
                        Ok(Change::Crd(name)) => vec![name],
                        Ok(Change::Gone(name)) => {
                            forgetting.push(forget(name));
                            Vec::new()
                        }
                        Ok(Change::All) | Err(broadcast::error::RecvError::Lagged(_)) => {
                            forgetting.extend(context.absent().into_iter().map(forget));
                            all(&context)
                        }
                        Ok(Change::Nothing | Change::PolicyStatus) => Vec::new(),
                        Err(broadcast::error::RecvError::Closed) => return None,
                    },
                    Some(()) = forgetting.next(), if !forgetting.is_empty() => Vec::new(),
                    Some(name) = ends.recv() => vec![name],
                    Ok(()) = permissions.changed() => all(&context),
                }
            };
            // Until it is known which policy governs each, no CRD is to count as one that none selects. All
            // of them follow then.
            let names = if context.index.read().is_complete() { names } else { Vec::new() };
            Some((names, (context, changes, ends, permissions, forgetting, false)))
        },
    );
    names.flat_map(futures::stream::iter).map(|name| ObjectRef::new(&name))
}

/// The names of all CRDs.
fn all(context: &Context) -> Vec<String> {
    context.index.read().names().map(str::to_owned).collect()
}

/// Works out what the status of each policy should be, some time after anything has changed.
async fn policy_statuses(
    context: &Context,
    mut changes: broadcast::Receiver<Change>,
    settle: Duration,
    wanted: watch::Sender<Vec<PolicyStatus>>,
) {
    let mut due = Some(Instant::now() + DEBOUNCE);
    loop {
        tokio::select! {
            change = changes.recv() => {
                if let Err(broadcast::error::RecvError::Closed) = change {
                    return;
                }
                due.get_or_insert_with(|| Instant::now() + DEBOUNCE);
            }
            () = context.schemas_changed.notified() => {
                due.get_or_insert_with(|| Instant::now() + DEBOUNCE);
            }
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                renew_policy_statuses(context, settle, &wanted);
            }
        }
    }
}

fn renew_policy_statuses(context: &Context, settle: Duration, wanted: &watch::Sender<Vec<PolicyStatus>>) {
    let index = context.index.read();
    if !index.is_complete() {
        return;
    }
    let assignments = index.assignments(settle);
    let is_paused = |settings: &Settings| settings.mode == Mode::Persist && settings.pause.is_some();
    let paused = assignments.iter().filter(|(_, assignment)| is_paused(&assignment.settings)).count();
    let metrics = context.cluster.metrics();
    metrics.paused.set(i64::try_from(paused).unwrap_or(i64::MAX));
    metrics.unreadable_policies.set(i64::try_from(index.unreadable_policies()).unwrap_or(i64::MAX));
    let statuses = {
        let checked = context.schemas();
        let crd = |name: &str| checked.get(name).map(|crd| &**crd);
        index.policy_statuses(&assignments, &crd, now())
    };
    for PolicyStatus { name, uid, status } in &statuses {
        let sent = wanted.borrow().iter().find(|sent| sent.name == *name).map(|sent| sent.status.clone());
        let before = sent.or_else(|| index.policy_status(name).cloned()).unwrap_or_default();
        let news = event::about_policy(name, uid, &before.conditions, &status.conditions);
        news.into_iter().for_each(|event| context.events.publish(event));
    }
    wanted.send_if_modified(|before| {
        let is_new = *before != statuses;
        *before = statuses;
        is_new
    });
}

fn crd_event(index: &mut Index, event: &Event<CrdMeta>) -> Change {
    match event {
        Event::Init => index.list_crds(),
        Event::InitApply(crd) | Event::Apply(crd) => return index.crd_applied(&crd.metadata),
        Event::InitDone => return index.crds_listed(),
        Event::Delete(crd) => return index.crd_deleted(crd.name_any()),
    }
    Change::Nothing
}

fn policy_event(index: &mut Index, event: &Event<DynamicObject>) -> Change {
    match event {
        Event::Init => index.list_policies(),
        Event::InitApply(policy) | Event::Apply(policy) => {
            let (change, unread) = index.policy_applied(policy);
            if let Some(error) = unread {
                let policy = policy.name_any();
                warn!(policy, error, "cannot read this policy; what it governs is not written");
            }
            return change;
        }
        Event::InitDone => return index.policies_listed(),
        Event::Delete(policy) => return index.policy_deleted(&policy.name_any()),
    }
    Change::Nothing
}

/// All that the store needs of a CRD is its name: the index holds the rest.
fn only_names(crd: &mut CrdMeta) {
    let metadata = &mut crd.metadata;
    (metadata.managed_fields, metadata.annotations, metadata.labels) = (None, None, None);
}
