//! A cluster small enough to read: CRDs, their objects as etcd holds them, a policy, and the reports of Etch.
//! It does what the scenarios need; what a real server does is for the end-to-end tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etch::cluster::{Cluster, PaceMode};
use etch::operator::{self, Clock, Options};
use etch_core::crd::Crd;
use futures::StreamExt;
use kube_structural_schema::json::Json;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::patch::json_patched;
use super::requests::not_found;
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
    /// The default of `spec.size` by which objects are read, and that by which they are written: two servers,
    /// one of which may lag behind.
    defaults: [u64; 2],
    /// Reports by the name of their CRD.
    reports: BTreeMap<String, Value>,
    /// Events by their name.
    events: BTreeMap<String, Value>,
    fault: Option<Fault>,
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
            defaults: [1, 1],
            reports: BTreeMap::new(),
            events: BTreeMap::new(),
            fault: None,
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
        let seen = state.read(plural, &object);
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
        self.lock().defaults = [read, write];
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

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no test panics here")
    }

    /// What the world answers to a request.
    pub(crate) fn answer(&self, request: &Request) -> Answer {
        if let Some(answer) = self.lock().fault.as_mut().and_then(|fault| fault(request)) {
            return answer;
        }
        let segments: Vec<&str> = request.path.split('/').filter(|segment| !segment.is_empty()).collect();
        match segments[1..] {
            ["authorization.k8s.io", ..] => Answer::json(json!({ "status": { "allowed": true } })),
            ["etch-operator.io", _, "defaultsreports", crd, ..] => self.report_answer(crd, request),
            ["events.k8s.io", "v1", "namespaces", namespace, "events", ..] => {
                self.event_answer(namespace, segments.get(6).copied(), request)
            }
            ["apiextensions.k8s.io", _, CRDS] => self.collection(CRDS, request),
            ["apiextensions.k8s.io", _, CRDS, name] => {
                self.stored(CRDS, name).map_or(not_found(name), Answer::json)
            }
            ["apiextensions.k8s.io", _, CRDS, name, "status"] => self.set_conditions(name, request),
            ["etch-operator.io", _, POLICIES] => self.collection(POLICIES, request),
            ["etch-operator.io", _, POLICIES, name, "status"] => self.set_status(POLICIES, name, request),
            ["example.com", _, THINGS] => self.collection(THINGS, request),
            ["example.com", _, OTHERS] => self.collection(OTHERS, request),
            ["example.com", _, "namespaces", namespace, THINGS] => {
                self.collection_in(THINGS, Some(namespace), request)
            }
            ["example.com", _, "namespaces", _, THINGS, name] => self.one(THINGS, name, request),
            ["example.com", _, "namespaces", _, THINGS, name, "status"] => self.one(THINGS, name, request),
            ["example.com", _, "namespaces", _, OTHERS, name] => self.one(OTHERS, name, request),
            ["etch-operator.io", _, SCHEMAS] => self.collection(SCHEMAS, request),
            ["etch-operator.io", _, SCHEMAS, name, "status"] => self.set_status(SCHEMAS, name, request),
            ["config.example.com", _, FACTS] => self.collection(FACTS, request),
            ["v1", "namespaces", _, SECRETS] if request.method == "GET" => self.collection(SECRETS, request),
            ["v1", "namespaces", _, SECRETS, ..] => self.secret(request),
            ["admissionregistration.k8s.io", _, which] => {
                let known = WEBHOOKS.iter().find(|known| **known == which).expect("a resource");
                self.collection(known, request)
            }
            ["admissionregistration.k8s.io", _, which, name] => self.webhooks(which, name, request),
            ["apiregistration.k8s.io", _, "apiservices", name] => not_found(name),
            _ => Answer::text(404, "404 page not found\n"),
        }
    }

    /// A webhook configuration: what is applied is all that there is.
    fn webhooks(&self, which: &str, name: &str, request: &Request) -> Answer {
        let of = |known: &&&'static str| **known == which;
        let Some(which) = WEBHOOKS.iter().find(of) else { return not_found(name) };
        if request.verb() == "PATCH apply" {
            if request.asked("dryRun") == "All" {
                return Answer::json(request.body.clone());
            }
            self.put(which, request.body.clone());
        }
        self.stored(which, name).map_or(not_found(name), Answer::json)
    }

    /// A Secret that is created, or applied as it was read; what it holds is what was sent last.
    fn secret(&self, request: &Request) -> Answer {
        let name = request.body["metadata"]["name"].as_str().expect("a name");
        let read = &request.body["metadata"]["resourceVersion"];
        match (request.verb().as_str(), self.stored(SECRETS, name)) {
            ("POST", Some(_)) => return Answer::status(409, "AlreadyExists", "it is there"),
            ("POST", None) => self.put(SECRETS, request.body.clone()),
            ("PATCH apply", Some(mut secret)) => {
                if secret["metadata"]["resourceVersion"] != *read {
                    return Answer::status(409, "Conflict", "the object has been modified");
                }
                secret["data"] = request.body["data"].clone();
                self.put(SECRETS, secret);
            }
            _ => return not_found(name),
        }
        self.stored(SECRETS, name).map_or(not_found(name), Answer::json)
    }

    fn collection(&self, plural: &'static str, request: &Request) -> Answer {
        self.collection_in(plural, None, request)
    }

    /// What there is in a namespace, or everywhere.
    fn collection_in(&self, plural: &'static str, namespace: Option<&str>, request: &Request) -> Answer {
        if request.asked("sendInitialEvents") == "true" {
            return self.initial_events(plural, namespace);
        }
        if request.is_watch() {
            let from: u64 = request.asked("resourceVersion").parse().expect("a resource version");
            return self.watch(plural, namespace.map(str::to_owned), from);
        }
        let state = self.lock();
        let items: Vec<Value> = state
            .stored
            .iter()
            .filter(|((kind, _), object)| *kind == plural && is_in(namespace, object))
            .map(|(_, object)| state.read(plural, object))
            .collect();
        let metadata = json!({ "resourceVersion": state.revision.to_string() });
        Answer::json(json!({ "metadata": metadata, "items": items }))
    }

    /// All there is, and where it ends.
    fn initial_events(&self, plural: &'static str, namespace: Option<&str>) -> Answer {
        let state = self.lock();
        let is_meant = |kind: &str, object: &Value| kind == plural && is_in(namespace, object);
        let all = state.stored.iter().filter(|((kind, _), object)| is_meant(kind, object));
        let mut events: Vec<Value> = all.map(|(_, object)| event("ADDED", object.clone())).collect();
        let metadata = json!({
            "resourceVersion": state.revision.to_string(), "annotations": { "k8s.io/initial-events-end": "true" },
        });
        events.push(event("BOOKMARK", json!({ "metadata": metadata })));
        Answer::open_watch(events)
    }

    /// What happens after a revision, until the server has had enough of it.
    fn watch(&self, plural: &'static str, namespace: Option<String>, from: u64) -> Answer {
        let changes = futures::stream::unfold((self.clone(), self.changed.subscribe(), from), {
            move |(world, mut changed, from)| {
                let namespace = namespace.clone();
                async move {
                    loop {
                        let next = {
                            let state = world.lock();
                            let is_meant = |kind: &str, event: &Value| {
                                kind == plural && is_in(namespace.as_deref(), &event["object"])
                            };
                            let mut later = state
                                .history
                                .iter()
                                .filter(|(at, kind, event)| *at > from && is_meant(kind, event));
                            later.next().map(|(at, _, event)| (*at, event.clone()))
                        };
                        match next {
                            Some((at, event)) => {
                                return Some((Ok(Bytes::from(format!("{event}\n"))), (world, changed, at)));
                            }
                            None => changed.changed().await.ok()?,
                        }
                    }
                }
            }
        });
        let mut ended = self.ended.subscribe();
        let end = Box::pin(async move {
            let _ = tokio::time::timeout(Duration::from_secs(290), ended.changed()).await;
        });
        Answer::Stream(changes.take_until(end).boxed())
    }

    fn one(&self, plural: &'static str, name: &str, request: &Request) -> Answer {
        let Some(before) = self.stored(plural, name) else { return not_found(name) };
        let [_, default] = self.lock().defaults;
        if request.verb() == "PATCH json" {
            let patched = json_patched(&filled_with(&before, default), request);
            match patched.map(|after| filled_with(&after, default)) {
                Ok(after) if request.asked("dryRun") == "All" => return Answer::json(after),
                Ok(after) => {
                    self.lock().unfilled.remove(name);
                    if after != before {
                        self.put(plural, after);
                    }
                }
                Err(refusal) => return *refusal,
            }
        } else if request.method == "PATCH" {
            let sent = &request.body["metadata"];
            let same = |field: &str| sent[field].is_null() || sent[field] == before["metadata"][field];
            if !same("uid") || !same("resourceVersion") {
                return Answer::status(409, "Conflict", "the object has been modified");
            }
            let mut after = filled_with(&before, default);
            if sent["managedFields"].is_array() {
                after["metadata"]["managedFields"] = sent["managedFields"].clone();
            }
            self.lock().unfilled.remove(name);
            if after != before {
                self.put(plural, after);
            }
        }
        let stored = self.stored(plural, name).expect("nothing is deleted here");
        Answer::json(self.lock().read(plural, &stored))
    }

    fn set_conditions(&self, name: &str, request: &Request) -> Answer {
        let mut crd = self.stored(CRDS, name).expect("the CRD");
        let conditions = request.body["status"]["conditions"].clone();
        if crd["status"]["conditions"] != conditions {
            crd["metadata"]["managedFields"] = match conditions.as_array() {
                Some(all) if !all.is_empty() => json!([{
                    "manager": "etch", "operation": "Apply", "apiVersion": "apiextensions.k8s.io/v1",
                    "fieldsType": "FieldsV1", "subresource": "status",
                    "fieldsV1": { "f:status": { "f:conditions": {} } },
                }]),
                _ => json!([]),
            };
            crd["status"]["conditions"] = conditions;
            self.put(CRDS, crd);
        }
        Answer::json(json!({}))
    }

    fn event_answer(&self, namespace: &str, name: Option<&str>, request: &Request) -> Answer {
        let mut state = self.lock();
        let given = request.body["metadata"]["name"].as_str();
        let Some(name) = name.or(given).map(str::to_owned) else { return Answer::text(400, "no name") };
        match (request.method.as_str(), state.events.get_mut(&name)) {
            ("POST", Some(_)) => Answer::status(409, "AlreadyExists", "it is there"),
            ("POST", None) => {
                assert_eq!(request.body["metadata"]["namespace"], namespace);
                state.events.insert(name, request.body.clone());
                Answer::json(json!({}))
            }
            ("PATCH", Some(event)) => {
                if !request.body["series"].is_null() {
                    event["series"] = request.body["series"].clone();
                }
                Answer::json(event.clone())
            }
            _ => not_found(&name),
        }
    }

    fn set_status(&self, plural: &'static str, name: &str, request: &Request) -> Answer {
        let Some(mut object) = self.stored(plural, name) else { return not_found(name) };
        if object["status"] != request.body["status"] {
            object["status"] = request.body["status"].clone();
            self.put(plural, object);
        }
        Answer::json(json!({}))
    }

    fn report_answer(&self, crd: &str, request: &Request) -> Answer {
        let mut state = self.lock();
        if request.method == "GET" {
            return state
                .reports
                .get(crd)
                .map_or_else(|| not_found(crd), |report| Answer::json(report.clone()));
        }
        let is_status = request.path.ends_with("/status");
        let before = state.reports.get(crd).cloned();
        let mut report = match (before, is_status) {
            (None, true) => return not_found(crd),
            (before, _) => before.unwrap_or_default(),
        };
        let expected = &request.body["metadata"]["resourceVersion"];
        if !expected.is_null() && *expected != report["metadata"]["resourceVersion"] {
            return Answer::status(409, "Conflict", "the object has been modified");
        }
        for part in if is_status { &["status"][..] } else { &["metadata", "spec"] } {
            report[part] = request.body[part].clone();
        }
        state.revision += 1;
        report["metadata"]["name"] = json!(crd);
        report["metadata"]["resourceVersion"] = json!(state.revision.to_string());
        state.reports.insert(crd.to_owned(), report.clone());
        Answer::json(json!({ "metadata": report["metadata"] }))
    }
}

impl State {
    /// What a read shows of what is stored.
    fn read(&self, plural: &str, object: &Value) -> Value {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let is_object = matches!(plural, THINGS | OTHERS);
        let [default, _] = self.defaults;
        if is_object && !self.unfilled.contains(name) { filled_with(object, default) } else { object.clone() }
    }
}

/// Whether an object is in a namespace, where one is meant.
fn is_in(namespace: Option<&str>, object: &Value) -> bool {
    namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace)
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
    filled_with(object, 1)
}

/// The same by another default of `spec.size`.
fn filled_with(object: &Value, default: u64) -> Value {
    let mut object = object.clone();
    let mut crd = crd_named(THINGS);
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["size"]["default"] = default.into();
    Crd::read(&Json::from(crd)).expect("a CRD").compiled().fill(&mut object);
    object
}

/// A CRD whose `spec.size` is 1 by default.
pub(crate) fn crd_named(plural: &str) -> Value {
    let spec = json!({ "type": "object", "properties": {
        "name": { "type": "string" }, "size": { "type": "integer", "default": 1 },
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com"), "uid": format!("crd-{plural}"), "generation": 1 },
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
