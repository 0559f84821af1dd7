//! What the world answers to each request.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use simulator::patch::operate;

use super::super::requests::not_found;
use super::super::server::{Answer, Request, event, line};
use super::objects::refusal;
use super::{CRDS, FACTS, OTHERS, POLICIES, SCHEMAS, SECRETS, THINGS, WEBHOOKS, World};

impl World {
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
            ["apiextensions.k8s.io", _, CRDS, name, "status"] => self.set_conditions(name, &request.body),
            ["etch-operator.io", _, POLICIES] => self.collection(POLICIES, request),
            ["etch-operator.io", _, POLICIES, name, "status"] => self.set_status(POLICIES, name, request),
            ["example.com", _, THINGS] => self.collection(THINGS, request),
            ["example.com", _, OTHERS] => self.collection(OTHERS, request),
            ["example.com", _, "namespaces", namespace, THINGS] => {
                self.collection_in(THINGS, Some(namespace), request)
            }
            ["example.com", _, "namespaces", _, THINGS, name] => self.object(THINGS, name, request),
            ["example.com", _, "namespaces", _, THINGS, name, "status"] => self.object(THINGS, name, request),
            ["example.com", _, "namespaces", _, OTHERS, name] => self.object(OTHERS, name, request),
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

    /// A webhook configuration: what is applied is all that there is, but for conditions that others have
    /// added, which an apply leaves there.
    fn webhooks(&self, which: &str, name: &str, request: &Request) -> Answer {
        let of = |known: &&&'static str| **known == which;
        let Some(which) = WEBHOOKS.iter().find(of) else { return not_found(name) };
        if request.verb() == "PATCH apply" {
            if request.asked("dryRun") == "All" {
                return Answer::json(request.body.clone());
            }
            let (mut body, before) = (request.body.clone(), self.stored(which, name).unwrap_or_default());
            let last = self.lock().applied.insert(which, body.clone()).unwrap_or_default();
            keep_conditions_of_others(&mut body, &before, &last);
            self.put(which, body);
        } else if request.verb() == "PATCH json" {
            let Some(before) = self.stored(which, name) else { return not_found(name) };
            match operate(before, &request.body) {
                Ok(after) => self.put(which, after),
                Err(refused) => return refusal(&refused),
            }
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
        let mut state = self.lock();
        let is_meant = |kind: &str, object: &Value| kind == plural && is_in(namespace, object);
        let stored = state.stored.iter().filter(|((kind, _), object)| is_meant(kind, object));
        let stored: Vec<Value> = stored.map(|(_, object)| object.clone()).collect();
        let items: Vec<Value> = stored.iter().map(|object| state.seen(plural, object)).collect();
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
            "resourceVersion": state.revision.to_string(), "annotations": {
                "k8s.io/initial-events-end": "true",
            },
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
                                return Some((Ok(line(&event)), (world, changed, at)));
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

    /// Carries out an apply of our conditions, which removes only what it owns, or a merge patch.
    pub(crate) fn set_conditions(&self, name: &str, body: &Value) -> Answer {
        let mut crd = self.stored(CRDS, name).expect("the CRD");
        let expected = &body["metadata"]["resourceVersion"];
        if !expected.is_null() && *expected != crd["metadata"]["resourceVersion"] {
            return Answer::status(409, "Conflict", "the object has been modified");
        }
        let conditions = body["status"]["conditions"].clone();
        let owners = crd["metadata"]["managedFields"].as_array();
        let is_apply = !body["kind"].is_null();
        let keeps_all = is_apply && conditions == json!([]) && owners.is_none_or(Vec::is_empty);
        if crd["status"]["conditions"] != conditions && !keeps_all {
            crd["metadata"]["managedFields"] = match conditions.as_array() {
                Some(all) if !all.is_empty() => json!([{
                    "manager": "etch", "operation": "Apply", "apiVersion": "apiextensions.k8s.io/v1",
                    "fieldsType": "FieldsV1", "subresource": "status",
                    "fieldsV1": { "f:status": { "f:conditions": {} } }, "time": self.next_time(),
                }]),
                _ => json!([]),
            };
            crd["status"]["conditions"] = conditions;
            self.put(CRDS, crd);
        }
        let crd = self.stored(CRDS, name).expect("the CRD");
        Answer::json(json!({ "metadata": crd["metadata"] }))
    }

    /// A time that no write before this one had.
    fn next_time(&self) -> String {
        let second = 1_700_000_000 + i64::try_from(self.lock().revision).expect("a small number");
        jiff::Timestamp::from_second(second).expect("a time").to_string()
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

fn keep_conditions_of_others(body: &mut Value, before: &Value, last: &Value) {
    let of = |configuration: &Value, webhook: &Value| {
        let webhooks = configuration["webhooks"].as_array().cloned().unwrap_or_default();
        let found = webhooks.into_iter().find(|there| there["name"] == webhook["name"]).unwrap_or_default();
        found["matchConditions"].as_array().cloned().unwrap_or_default()
    };
    for webhook in body["webhooks"].as_array_mut().into_iter().flatten() {
        let (there, applied) = (of(before, webhook), of(last, webhook));
        let others = there.into_iter().filter(|condition| !applied.contains(condition));
        webhook["matchConditions"].as_array_mut().expect("conditions").extend(others);
    }
}

/// Whether an object is in a namespace, where one is meant.
fn is_in(namespace: Option<&str>, object: &Value) -> bool {
    namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace)
}
