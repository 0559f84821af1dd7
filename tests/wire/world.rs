//! A cluster small enough to read: CRDs, their objects as etcd holds them, a policy, and the reports of Etch.
//! It does what the scenarios need; what a write makes of an object is the [simulator's](objects) answer.

mod answers;
mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use etch::cluster::Cluster;
use etch::operator::{self, Clock, Options};
use etch_core::crd::Crd;
use etch_core::pace::limits::PaceMode;
use kube_structural_schema::json::Json;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::objects::{Served, Server};
use super::server::{Answer, Log, Request, event, serve};

/// The kinds that are listed and watched, by their plural.
pub(crate) const CRDS: &str = "customresourcedefinitions";
pub(crate) const POLICIES: &str = "defaultspolicies";
pub(crate) const THINGS: &str = "things";
pub(crate) const OTHERS: &str = "others";
pub(crate) const SCHEMAS: &str = "embeddedschemas";
pub(crate) const FACTS: &str = "configs";
pub(crate) const SECRETS: &str = "secrets";
/// The webhook configurations, in the order in which API servers ask.
pub(crate) const WEBHOOKS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// The CRD of most scenarios.
pub(crate) const CRD: &str = "things.example.com";

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

/// A script that comes before the world's own answers.
type Fault = Box<dyn FnMut(&Request) -> Option<Answer> + Send>;

/// What happens to an answer on its way: it comes after what the request asked for was done.
type Loss = Box<dyn FnMut(&World, &Request) -> Option<Answer> + Send>;

/// A cluster that scenarios share with its server.
#[derive(Clone)]
pub(crate) struct World {
    state: Arc<Mutex<State>>,
    /// The revision; watches wait for it to change.
    changed: watch::Sender<u64>,
    /// Changes when all open watches are to end.
    ended: watch::Sender<()>,
    loss: Arc<Mutex<Option<Loss>>>,
}

/// What etcd held at some time.
pub(crate) struct Snapshot {
    revision: u64,
    stored: BTreeMap<(&'static str, String), Value>,
    reports: BTreeMap<String, Value>,
}

struct State {
    revision: u64,
    /// Everything there is, by plural and name, as etcd holds it.
    stored: BTreeMap<(&'static str, String), Value>,
    /// What happened, by revision.
    history: Vec<(u64, &'static str, Value)>,
    /// Objects that are shown without defaults until a client writes them, as by a server that lags behind.
    unfilled: BTreeSet<String>,
    /// The default of `spec.size` by which each server reads and writes objects, where it is another than the
    /// CRD's.
    defaults: [Option<u64>; 2],
    /// What each server has read of each CRD.
    served: BTreeMap<(&'static str, Server), Served>,
    /// Reports by the name of their CRD.
    reports: BTreeMap<String, Value>,
    /// Events by their name.
    events: BTreeMap<String, Value>,
    fault: Option<Fault>,
    /// The webhook configurations as they were applied last: what else they hold, others have added.
    applied: BTreeMap<&'static str, Value>,
}

impl World {
    /// A world with a CRD whose `spec.size` is 1 by default, a policy that selects it, and objects that lack
    /// the default.
    pub(crate) fn with(names: &[&str]) -> Self {
        let state = State {
            revision: 10,
            stored: BTreeMap::new(),
            history: Vec::new(),
            unfilled: BTreeSet::new(),
            defaults: [None, None],
            served: BTreeMap::new(),
            reports: BTreeMap::new(),
            events: BTreeMap::new(),
            fault: None,
            applied: BTreeMap::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let (changed, ended) = (watch::Sender::new(0), watch::Sender::new(()));
        let world = Self { state, changed, ended, loss: Arc::default() };
        world.put(CRDS, crd_named(THINGS));
        let policy = json!({
            "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
            "metadata": { "name": "default", "uid": "p", "generation": 1 }, "spec": {},
        });
        world.put(POLICIES, policy);
        for name in names {
            world.put(THINGS, thing(name));
        }
        world
    }

    /// Sets what answers before the world does.
    pub(crate) fn fails(&self, fault: impl FnMut(&Request) -> Option<Answer> + Send + 'static) {
        self.lock().fault = Some(Box::new(fault));
    }

    /// Sets what is answered, and what happens, once the world has done what was asked.
    pub(crate) fn loses(&self, loss: impl FnMut(&Self, &Request) -> Option<Answer> + Send + 'static) {
        *self.loss.lock().expect("no test panics here") = Some(Box::new(loss));
    }

    /// Answers everything by itself from now on.
    pub(crate) fn heals(&self) {
        self.lock().fault = None;
    }

    /// Stores something, as a user would.
    pub(crate) fn put(&self, plural: &'static str, mut object: Value) {
        let mut state = self.lock();
        state.revision += 1;
        object["metadata"]["resourceVersion"] = json!(state.revision.to_string());
        let key = (plural, object["metadata"]["name"].as_str().expect("a name").to_owned());
        let kind = if state.stored.contains_key(&key) { "MODIFIED" } else { "ADDED" };
        let revision = state.revision;
        state.stored.insert(key, object.clone());
        let seen = state.seen(plural, &object);
        state.history.push((revision, plural, event(kind, seen)));
        drop(state);
        self.changed.send_replace(revision);
    }

    /// Sets one object back to what it was, as a restore of etcd does.
    pub(crate) fn set_back(&self, plural: &'static str, object: Value) {
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        self.lock().stored.insert((plural, name), object);
    }

    /// Deletes something, as a user would.
    pub(crate) fn remove(&self, plural: &'static str, name: &str) {
        let mut state = self.lock();
        let Some(mut object) = state.stored.remove(&(plural, name.to_owned())) else { return };
        state.revision += 1;
        let revision = state.revision;
        // As a server has it: a watch that goes on from here does not get it again.
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        state.history.push((revision, plural, event("DELETED", object)));
        drop(state);
        self.changed.send_replace(revision);
    }

    /// Stores an object that lacks the default, through a server that does not even show it yet.
    pub(crate) fn put_unfilled(&self, plural: &'static str, name: &str) {
        self.put_unfilled_object(plural, thing(name));
    }

    /// The same for any object.
    pub(crate) fn put_unfilled_object(&self, plural: &'static str, object: Value) {
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        self.lock().unfilled.insert(name);
        self.put(plural, object);
    }

    /// Reads objects by one default of `spec.size`, and writes them by another, whatever the CRD has.
    pub(crate) fn serves(&self, read: u64, write: u64) {
        let mut state = self.lock();
        state.defaults = [Some(read), Some(write)];
        state.served.clear();
    }

    /// Ends all watches that are open.
    pub(crate) fn end_watches(&self) {
        self.ended.send_replace(());
    }

    /// What etcd holds.
    pub(crate) fn stored(&self, plural: &'static str, name: &str) -> Option<Value> {
        self.lock().stored.get(&(plural, name.to_owned())).cloned()
    }

    /// Whether etcd holds the default of an object.
    pub(crate) fn is_persisted(&self, name: &str) -> bool {
        self.stored(THINGS, name).is_some_and(|object| !object["spec"]["size"].is_null())
    }

    /// `True AllPersisted: message` of our condition on the CRD; empty while there is none.
    pub(crate) fn persisted(&self) -> String {
        let crd = self.stored(CRDS, "things.example.com").expect("the CRD");
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == "DefaultsPersisted");
        found.map_or(String::new(), |condition| {
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}: {}", text("status"), text("reason"), text("message"))
        })
    }

    /// Changes the report on a CRD behind Etch's back.
    pub(crate) fn edit_report(&self, crd: &str, edit: impl FnOnce(&mut Value)) {
        let mut state = self.lock();
        state.revision += 1;
        let version = json!(state.revision.to_string());
        let report = state.reports.get_mut(crd).expect("a report");
        edit(report);
        report["metadata"]["resourceVersion"] = version;
    }

    pub(crate) fn report(&self, crd: &str) -> Option<Value> {
        self.lock().reports.get(crd).cloned()
    }

    /// The status of the report on the CRD; null while there is none.
    pub(crate) fn status(&self) -> Value {
        self.report(CRD).map(|report| report["status"].clone()).unwrap_or_default()
    }

    /// Everything there is now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        Snapshot { revision: state.revision, stored: state.stored.clone(), reports: state.reports.clone() }
    }

    /// Sets everything back, as a restore of etcd does: no watch learns of it. With `bump`, revisions go on
    /// from where they are.
    pub(crate) fn restore(&self, snapshot: &Snapshot, bump: bool) {
        let mut state = self.lock();
        state.stored.clone_from(&snapshot.stored);
        state.reports.clone_from(&snapshot.reports);
        state.history.retain(|(at, ..)| *at <= snapshot.revision);
        state.revision = if bump { state.revision + 1_000_000 } else { snapshot.revision };
    }

    /// Forgets all reports.
    pub(crate) fn lose_reports(&self) {
        self.lock().reports.clear();
    }

    /// All events, as `Type Reason kind/name: note` and how often they were reported, in order.
    pub(crate) fn events(&self) -> Vec<(String, u64)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let shown = |event: &Value| {
            let (kind, name) = (&event["regarding"]["kind"], &event["regarding"]["name"]);
            let about = format!("{}/{}", text(kind), text(name));
            let shown = format!(
                "{} {} {about}: {}",
                text(&event["type"]),
                text(&event["reason"]),
                text(&event["note"])
            );
            (shown, event["series"]["count"].as_u64().unwrap_or(1))
        };
        let mut events: Vec<_> = self.lock().events.values().map(shown).collect();
        events.sort();
        events
    }

    /// A connection to this world, and the log of what is asked through it.
    pub(crate) fn serve(&self) -> (Cluster, Log) {
        let world = self.clone();
        serve(move |request| {
            let answer = world.answer(request);
            let mut loss = world.loss.lock().expect("no test panics here");
            loss.as_mut().and_then(|loss| loss(&world, request)).unwrap_or(answer)
        })
    }

    /// Runs the operator on this world for a time, and ends it.
    pub(crate) async fn operate(&self, time: Duration) -> Log {
        let (cluster, log) = self.serve();
        operate(cluster, time).await;
        log
    }

    /// The same in a task of its own, while the test does something else.
    pub(crate) fn operates(&self, time: Duration) -> (JoinHandle<()>, Log) {
        let (cluster, log) = self.serve();
        (tokio::spawn(operate(cluster, time)), log)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no test panics here")
    }
}

impl State {
    /// What a client sees of what is stored.
    fn seen(&mut self, plural: &'static str, stored: &Value) -> Value {
        if matches!(plural, THINGS | OTHERS) { self.read(plural, stored) } else { stored.clone() }
    }
}

/// Runs the operator for a time, and ends it.
pub(crate) async fn operate(cluster: Cluster, time: Duration) {
    operate_by(Clock::default(), cluster, time).await;
}

/// The same with a clock that shows another time of day.
pub(crate) async fn operate_by(clock: Clock, cluster: Cluster, time: Duration) {
    operate_with(Options { clock, ..options() }, cluster, time).await;
}

/// The same with other options.
pub(crate) async fn operate_with(options: Options, cluster: Cluster, time: Duration) {
    operator::run(cluster, options, Arc::default(), tokio::time::sleep(time)).await;
}

/// What the operator is started with.
pub(crate) fn options() -> Options {
    Options {
        settle: Duration::ZERO,
        max_in_flight: 16,
        pace: PaceMode::Gentle,
        max_writes_per_second: None,
        instance: "wire".to_owned(),
        clock: Clock::default(),
        set_back: None,
    }
}

/// An object that a user has created before there was a default.
pub(crate) fn thing(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "managedFields": [{
                "manager": "user", "operation": "Apply", "apiVersion": "example.com/v1",
                "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:name": {} } },
            }],
        },
        "spec": { "name": "n" },
    })
}

/// An object as readers see it, and as a write by one of them stores it.
pub(crate) fn filled(object: &Value) -> Value {
    let mut object = object.clone();
    Crd::read(&Json::from(crd_named(THINGS))).expect("a CRD").compiled().fill(&mut object);
    object
}

/// A CRD whose `spec.size` is 1 by default.
pub(crate) fn crd_named(plural: &str) -> Value {
    let spec = json!({ "type": "object", "properties": {
        "name": { "type": "string" }, "size": { "type": "integer", "default": 1 },
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.example.com"), "uid": format!("crd-{plural}"), "generation": 1,
        },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Thing", "plural": plural },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            }],
        },
    })
}

/// Whether a request writes to an object.
pub(crate) fn is_write(request: &Request) -> bool {
    request.method == "PATCH" && request.path.contains("/things/")
}

/// Whether a request is about the objects, or one of them.
pub(crate) fn is_about_objects(request: &Request) -> bool {
    request.path.starts_with("/apis/example.com/")
}

/// Whether a request lists the objects.
pub(crate) fn is_object_list(request: &Request) -> bool {
    request.is_list() && is_about_objects(request)
}

/// Whether a request is about the object of this name.
pub(crate) fn is_of(name: &'static str) -> impl Fn(&Request) -> bool {
    move |request| request.path.ends_with(&format!("/things/{name}"))
}
