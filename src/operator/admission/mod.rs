//! What admission answers by: on every replica EmbeddedSchemas and facts are watched; the leader writes
//! statuses and webhooks, and makes certificates where Etch itself has to. `server::admission` answers
//! requests.

mod certificates;
mod deletions;
mod existing;
mod issue;
mod keys;
mod listing;
mod migrations;
mod persist;
mod shared;
mod upgrades;
mod webhooks;
mod whole;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::OptionFuture;
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::{AbortHandle, Id, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::warn;

use super::options::{Clock, now};
use super::policy_lookup::{PolicyLookup, changed};
use crate::cluster::{Backoff, Cluster};
use crate::server::Readiness;
use crate::server::admission::{AcceptedKeys, Authority, Presented, ServedSchemas};
use crate::tasks::Tasks;
use certificates::{SelfManagedCertificates, Trusted};
use etch_admission::api::EmbeddedSchema;
use etch_admission::state::{FactState, State, Taking};
use etch_admission::status::{self, Unserved, Wanted};
use etch_admission::{Endpoint, FactObject};
use etch_core::call_error::{CallError, unreadable};
use etch_core::policy_index::Change;
use existing::ExistingChecker;
use persist::Store;
use shared::{DEBOUNCE, Shared};

pub use certificates::SelfManaged;
pub use upgrades::UpgradeGuard;

/// How long a replica that is otherwise ready waits for facts that may not be read: they do not hold it up.
const FACTS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it waits for an API server that does not answer: it would let through what other replicas refuse.
const SERVER_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the leader checks whether its webhooks are still there.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// The waits after a write that failed.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LAST_WAIT: Duration = Duration::from_secs(60);

/// What every replica that serves admission does, leader or not.
pub struct Admission {
    cluster: Cluster,
    endpoint: Endpoint,
    authority: watch::Receiver<Authority>,
    /// Until when the certificate of this replica is valid.
    until: Option<watch::Receiver<Option<Timestamp>>>,
    shared: Shared,
    changes: watch::Receiver<()>,
    /// Changes when a webhook configuration is deleted.
    deletions: watch::Receiver<()>,
    policies: Option<PolicyLookup>,
    max_writes_per_second: Option<u32>,
    accepted: AcceptedKeys,
    clock: Clock,
    following: [JoinHandle<()>; 2],
    tasks: Tasks,
    trusted: watch::Sender<Option<Trusted>>,
    certificates: Option<SelfManagedCertificates>,
}

/// What is known of an object that facts are taken from.
type Fact = (FactObject, FactState);

impl Admission {
    /// Begins to watch, and to set what is served. `ready` is set as soon as all of it is known.
    ///
    /// `accepted` is set to the keys in the webhooks. `endpoint` and `authority` are for the webhooks, should
    /// this replica lead.
    pub fn start(
        cluster: Cluster,
        serving: ServedSchemas,
        accepted: AcceptedKeys,
        ready: Arc<Readiness>,
        endpoint: Endpoint,
        authority: watch::Receiver<Authority>,
    ) -> Self {
        let shared = Shared::default();
        let (changed, changes) = watch::channel(());
        let tasks = ready.tasks().clone();
        let (deleted, deletions) = watch::channel(());
        let keys = keys::follow(cluster.clone(), accepted.clone(), ready.clone(), deleted);
        let keys = tasks.spawn("watches the keys of webhooks", keys);
        let schemas = follow(cluster.clone(), shared.clone(), serving, ready, changed);
        let schemas = tasks.spawn("watches EmbeddedSchemas", schemas);
        let trusted = watch::Sender::new(None);
        Self {
            cluster,
            endpoint,
            authority,
            until: None,
            shared,
            changes,
            deletions,
            policies: None,
            max_writes_per_second: None,
            accepted,
            clock: Clock::default(),
            following: [keys, schemas],
            tasks,
            trusted,
            certificates: None,
        }
    }

    /// Renews keys by this clock.
    #[must_use]
    pub fn by(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Reports a certificate that has expired. `until` is when the one of this replica does.
    #[must_use]
    pub fn serving_until(mut self, until: watch::Receiver<Option<Timestamp>>) -> Self {
        self.until = Some(until);
        self
    }

    /// Has Etch make the certificates itself. What they are is what the returned channel has.
    #[must_use]
    pub fn issuing(
        mut self,
        options: SelfManaged,
        clock: Clock,
    ) -> (Self, watch::Receiver<Option<Presented>>) {
        let trusted = self.trusted.subscribe();
        let certificates =
            SelfManagedCertificates::start(self.cluster.clone(), options, trusted, clock, &self.tasks);
        let presented = certificates.presented();
        self.certificates = Some(certificates);
        (self, presented)
    }

    /// Has the API server ask about upgrades of CRDs too, while a policy asks for that.
    #[must_use]
    pub fn guarding_upgrades(mut self, policies: PolicyLookup) -> Self {
        self.policies = Some(policies);
        self
    }

    /// Stores defaults of no more existing objects per second than this.
    #[must_use]
    pub fn writing_at_most(mut self, per_second: Option<u32>) -> Self {
        self.max_writes_per_second = per_second;
        self
    }

    /// Writes statuses and webhooks, checks existing objects, and renews certificates, for as long as it is
    /// polled, which only the leader may do.
    pub async fn lead(&self) -> Infallible {
        self.shared.lock().forget_looks();
        // Another replica may have led meanwhile.
        self.trusted.send_replace(None);
        let (checked, checks) = watch::channel(());
        let store = Store::new(self.cluster.clone(), self.policies.clone(), self.max_writes_per_second);
        let checker =
            ExistingChecker::new(self.cluster.clone(), self.shared.clone(), self.endpoint.clone(), store);
        let renewing = async {
            match &self.certificates {
                Some(certificates) => certificates.lead().await,
                None => pending().await,
            }
        };
        tokio::select! {
            never = self.reconcile_webhooks(checks) => never,
            never = checker.run(self.changes.clone(), checked) => never,
            never = renewing => never,
        }
    }

    async fn reconcile_webhooks(&self, mut checks: watch::Receiver<()>) -> Infallible {
        let (mut changes, mut authority) = (self.changes.clone(), self.authority.clone());
        let (mut until, mut deletions) = (self.until.clone(), self.deletions.clone());
        let mut policies: Option<broadcast::Receiver<Change>> =
            self.policies.as_ref().map(PolicyLookup::changes);
        let mut backoff = Backoff::new(FIRST_WAIT, LAST_WAIT);
        loop {
            changes.mark_unchanged();
            authority.mark_unchanged();
            checks.mark_unchanged();
            deletions.mark_unchanged();
            let wait = match self.write().await {
                // An injector takes a moment.
                Ok(unserved) if unserved.awaits_injector() => backoff.failed(None),
                Ok(_) => {
                    backoff.succeeded();
                    LOOK_AGAIN
                }
                Err(error) => {
                    let wait = backoff.failed(error.retry_after());
                    let retry_in_seconds = wait.as_secs_f64();
                    warn!(%error, retry_in_seconds, "cannot write webhooks or statuses of EmbeddedSchemas");
                    wait
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                Ok(()) = changes.changed() => {}
                Ok(()) = authority.changed() => {}
                Some(Ok(())) = OptionFuture::from(until.as_mut().map(watch::Receiver::changed)) => {}
                Ok(()) = checks.changed() => {}
                Ok(()) = deletions.changed() => {}
                () = changed(&mut policies) => {}
            }
            sleep(DEBOUNCE).await;
        }
    }

    /// Writes what is not there yet. The statuses name what keeps the API server from asking, which is
    /// returned.
    async fn write(&self) -> Result<Unserved, CallError> {
        if !self.shared.lock().is_listed {
            return Ok(Unserved::default());
        }
        let (unserved, written) = match self.write_webhooks().await {
            Ok(unserved) => (unserved, Ok(())),
            Err(error) => (Unserved::unwritten(error.to_string()), Err(error)),
        };
        let statuses = status::statuses(&self.shared.lock(), &unserved, now());
        let mut refused = None;
        for wanted in statuses {
            let Wanted { name, uid, status } = &wanted;
            match self.cluster.set_status::<EmbeddedSchema>(name, uid, status).await {
                Ok(()) => {}
                // It is gone, or was created again: then the watch reports it.
                Err(error) if matches!(error.code(), Some(404 | 409)) => {}
                // It may be too large, or admission may fail for it: that is so of this one alone.
                Err(error @ CallError::Refused(_)) => drop(refused.get_or_insert(error)),
                Err(error) => return Err(error),
            }
        }
        written?;
        refused.map_or(Ok(unserved), Err)
    }

    async fn write_webhooks(&self) -> Result<Unserved, CallError> {
        let (authority, has_certificate) = match self.authority.borrow().clone() {
            // The leader before may have named the authority of a certificate that is still served.
            Authority::Unknown => (None, false),
            Authority::Unnamed => (None, true),
            Authority::Named(authority) => (Some(authority), true),
        };
        let declared: Vec<_> = {
            let state = self.shared.lock();
            let good = state.schemas.iter().filter_map(|(name, schema)| Some((name, schema.good.as_ref()?)));
            good.map(|(name, good)| (name.clone(), good.declared.clone())).collect()
        };
        let guard = match &self.policies {
            Some(policies) => policies.asks_for_guard(),
            None => Some(false),
        };
        let Some(new_key) = keys::make() else {
            return Ok(Unserved::unwritten("the system gives no random bytes for a key".to_owned()));
        };
        let client = webhooks::Client {
            endpoint: &self.endpoint,
            authority: authority.as_deref(),
            only_there: !has_certificate,
            accepted: &self.accepted,
            now: self.clock.now(),
            new_key,
        };
        let unserved = webhooks::write(&self.cluster, declared, guard, client).await?;
        if !has_certificate {
            return Ok(Unserved::without_certificate());
        }
        let until = self.until.as_ref().and_then(|until| *until.borrow());
        if let Some(until) = until.filter(|until| *until <= now()) {
            return Ok(Unserved::expired(until));
        }
        if let Some(bundle) = authority {
            self.trusted.send_if_modified(|trusted| {
                let is_new = trusted.as_ref().is_none_or(|trusted| trusted.bundle != bundle);
                if is_new {
                    *trusted = Some(Trusted { bundle, since: Instant::now() });
                }
                is_new
            });
        }
        Ok(unserved)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.following.iter().for_each(JoinHandle::abort);
    }
}

/// Keeps what is served in step with the cluster.
async fn follow(
    cluster: Cluster,
    shared: Shared,
    serving: ServedSchemas,
    ready: Arc<Readiness>,
    changed: watch::Sender<()>,
) {
    let mut schemas = cluster.watch_embedded_schemas().boxed();
    let (send, mut facts) = mpsc::channel(64);
    let mut watches = Watches { cluster, send, tasks: JoinSet::new(), objects: BTreeMap::new() };
    let mut evaluations = Evaluations::default();
    let (mut listed, mut due) = (None, None);
    loop {
        tokio::select! {
            Some(event) = schemas.next() => {
                let mut state = shared.lock();
                schema_event(&mut state, event);
                watches.set(&state.fact_objects());
            }
            Some((object, fact)) = facts.recv() => shared.lock().fact(object, fact),
            Some((taking, values)) = evaluations.next() => shared.lock().taken(taking, values),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            else => return,
        }
        let state = shared.lock();
        evaluations.start(state.takings());
        let before = serving.now();
        let served = state.serving(&before);
        let gone: Vec<&String> = before.keys().filter(|name| !served.contains_key(*name)).collect();
        serving.set(served);
        gone.into_iter().for_each(|name| watches.cluster.metrics().forget_reviews(name));
        if state.is_listed {
            let listed = *listed.get_or_insert_with(Instant::now);
            let timeout = if state.is_settled() { FACTS_TIMEOUT } else { SERVER_TIMEOUT };
            let is_over = listed.elapsed() >= timeout;
            if state.is_complete() || is_over {
                ready.knows_the_schemas();
            }
            due = (!is_over).then(|| listed + timeout);
        }
        drop(state);
        changed.send_replace(());
    }
}

fn schema_event(state: &mut State, event: Event<DynamicObject>) {
    match event {
        Event::Init => state.list_schemas(),
        Event::InitApply(schema) | Event::Apply(schema) => state.schema_applied(schema),
        Event::InitDone => state.schemas_listed(),
        Event::Delete(schema) => state.schema_deleted(schema.metadata.name.as_deref().unwrap_or_default()),
    }
}

/// The watches of objects that facts are taken from; they end with this.
struct Watches {
    cluster: Cluster,
    send: mpsc::Sender<Fact>,
    tasks: JoinSet<()>,
    objects: BTreeMap<FactObject, AbortHandle>,
}

impl Watches {
    /// Watches these objects and no others.
    fn set(&mut self, wanted: &BTreeSet<FactObject>) {
        self.objects.retain(|object, task| {
            let is_wanted = wanted.contains(object);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        for object in wanted {
            if !self.objects.contains_key(object) {
                let follow = follow_fact(self.cluster.clone(), object.clone(), self.send.clone());
                self.objects.insert(object.clone(), self.tasks.spawn(follow));
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }
}

/// The evaluations of facts that are under way, apart: none holds up a change of another schema.
#[derive(Default)]
struct Evaluations {
    tasks: JoinSet<Map<String, Value>>,
    takings: HashMap<Id, Taking>,
}

impl Evaluations {
    /// Starts these, unless one of the same facts is under way: a newer state of the object follows it.
    fn start(&mut self, takings: Vec<Taking>) {
        for taking in takings {
            if self.takings.values().any(|under_way| under_way.is_same(&taking)) {
                continue;
            }
            let evaluated = taking.clone();
            let task = self.tasks.spawn_blocking(move || evaluated.values());
            self.takings.insert(task.id(), taking);
        }
    }

    /// The next one that ends, with its values; without any if it has panicked, which was logged.
    async fn next(&mut self) -> Option<(Taking, Map<String, Value>)> {
        let (id, values) = match self.tasks.join_next_with_id().await? {
            Ok(ended) => ended,
            Err(error) => (error.id(), Map::new()),
        };
        Some((self.takings.remove(&id)?, values))
    }
}

async fn follow_fact(cluster: Cluster, object: FactObject, send: mpsc::Sender<Fact>) {
    let mut events = cluster.watch_fact(&object).boxed();
    let mut seen = false;
    while let Some(event) = events.next().await {
        let fact = match event {
            Ok(Event::Init) => {
                seen = false;
                continue;
            }
            Ok(Event::InitApply(found) | Event::Apply(found)) => {
                seen = true;
                FactState::of(&object, found)
            }
            Ok(Event::Delete(gone)) if gone.metadata.namespace != object.namespace => continue,
            Ok(Event::InitDone) if seen => continue,
            // Where no API server serves the resource, there is no such object.
            Ok(Event::InitDone | Event::Delete(_)) | Err(Some(404)) => FactState::Absent,
            Err(code) => {
                let FactObject { group, resource, .. } = &object;
                let name = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
                let why = unreadable(code, &name);
                match code {
                    None | Some(408 | 429 | 500..) => FactState::Unanswered(why),
                    Some(_) => FactState::Unread(why),
                }
            }
        };
        if send.send((object.clone(), fact)).await.is_err() {
            return;
        }
    }
}
