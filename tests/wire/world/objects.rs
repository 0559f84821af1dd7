//! The objects of the world: what is made of a request is the simulator's answer, which the write matrix
//! holds against real servers.

use std::sync::Arc;

use serde_json::{Value, json};
use simulator::server::{self, Content, Effect, Entry, Refused, Release, Untypable, Verb, payload};

use super::super::requests::not_found;
use super::super::server::{Answer, Request};
use super::{CRDS, State, World};

/// Which of two servers: one of them may lag behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Server {
    Reads,
    Writes,
}

/// What a server has read of a CRD: its resource version, and what it makes of requests.
pub(super) type Served = (Value, Arc<Release>);

impl World {
    /// Answers a request for one object, or for its status.
    pub(super) fn object(&self, plural: &'static str, name: &str, request: &Request) -> Answer {
        let mut state = self.lock();
        let key = (plural, name.to_owned());
        let Some(before) = state.stored.get(&key).cloned() else { return not_found(name) };
        if request.method == "GET" {
            return Answer::json(state.read(plural, &before));
        }
        let Some(release) = state.release(plural, Server::Writes) else { return not_found(name) };
        let after = match written(&release, &before, request) {
            Ok(after) => after,
            Err(refused) => return refusal(&refused),
        };
        if request.asked("dryRun") == "All" {
            return Answer::json(after);
        }
        state.unfilled.remove(name);
        drop(state);
        if after != before {
            self.put(plural, after);
        }
        let mut state = self.lock();
        let stored = state.stored[&key].clone();
        Answer::json(state.read(plural, &stored))
    }
}

impl State {
    /// What a server makes of requests for the objects of a CRD; none where it does not serve them.
    fn release(&mut self, plural: &'static str, server: Server) -> Option<Arc<Release>> {
        let mut crd = self.stored.get(&(CRDS, format!("{plural}.example.com")))?.clone();
        let version = crd["metadata"]["resourceVersion"].clone();
        let known = self.served.get(&(plural, server)).filter(|(known, _)| *known == version);
        if let Some((_, release)) = known {
            return Some(release.clone());
        }
        if let Some(default) = self.defaults[server as usize] {
            for version in crd["spec"]["versions"].as_array_mut()? {
                let properties = &mut version["schema"]["openAPIV3Schema"]["properties"];
                properties["spec"]["properties"]["size"]["default"] = json!(default);
            }
        }
        let release = Arc::new(Release::read(crd).ok()?);
        self.served.insert((plural, server), (version, release.clone()));
        Some(release)
    }

    /// What a read shows of what is stored.
    pub(super) fn read(&mut self, plural: &'static str, object: &Value) -> Value {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if self.unfilled.contains(name) {
            return object.clone();
        }
        let release = self.release(plural, Server::Reads);
        let view = release.and_then(|release| release.view(&content(object), release.storage()).ok());
        view.map_or_else(|| object.clone(), |view| with_payload(object, &view))
    }
}

/// An object as a write leaves it in etcd.
fn written(release: &Release, before: &Value, request: &Request) -> Result<Value, Refused> {
    let verb = match request.verb().as_str() {
        "PATCH apply" if request.asked("force") == "true" => Verb::Force,
        "PATCH apply" => Verb::Apply,
        "PATCH merge" => Verb::Merge,
        "PATCH json" => Verb::Json,
        other => panic!("{other} is not sent"),
    };
    let sent = server::Request {
        version: request.path.split('/').nth(3).unwrap_or_default().to_owned(),
        manager: request.asked("fieldManager").to_owned(),
        verb,
        is_to_status: request.path.ends_with("/status"),
        body: request.body.clone(),
    };
    let mut metadata = before["metadata"].clone();
    metadata.as_object_mut().expect("an object").remove("managedFields");
    match server::handle(release, Untypable::Keeps, Some((&content(before), metadata)), &sent)? {
        Effect::Stored(content) => Ok(stored(release.crd.group(), before, content)),
        Effect::Deleted => unreachable!("no such request is read"),
    }
}

/// What a server knows of the bytes of an object.
fn content(object: &Value) -> Content {
    let version = object["apiVersion"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let owners = object["metadata"]["managedFields"].as_array().into_iter().flatten().map(Entry::read);
    Content { version: version.to_owned(), value: payload(object), owners: owners.collect() }
}

/// An object with other content. Entries of owners that stay the same keep their times, and their places.
fn stored(group: &str, before: &Value, content: Content) -> Value {
    let mut after = with_payload(before, &content.value);
    after["apiVersion"] = json!(format!("{group}/{}", content.version));
    let entries = before["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut owners = content.owners;
    let mut kept: Vec<Value> = Vec::new();
    for entry in entries {
        if let Some(index) = owners.iter().position(|owner| *owner == Entry::read(entry)) {
            owners.remove(index);
            kept.push(entry.clone());
        }
    }
    kept.extend(owners.iter().map(|owner| owner.json(group)));
    match kept.is_empty() {
        true => drop(after["metadata"].as_object_mut().expect("an object").remove("managedFields")),
        false => after["metadata"]["managedFields"] = json!(kept),
    }
    after
}

/// An object with another `spec` and `status`.
fn with_payload(object: &Value, payload: &Value) -> Value {
    let mut object = object.clone();
    for part in ["spec", "status"] {
        match payload.get(part) {
            Some(value) => object[part] = value.clone(),
            None => drop(object.as_object_mut().expect("an object").remove(part)),
        }
    }
    object
}

/// A refusal as it is answered.
pub(super) fn refusal(refused: &Refused) -> Answer {
    let reason = match refused.code {
        404 => "NotFound",
        409 => "Conflict",
        422 => "Invalid",
        _ => "InternalError",
    };
    Answer::status(refused.code, reason, &refused.message)
}
