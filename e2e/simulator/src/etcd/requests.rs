//! Requests for objects, and what Etch's own do.

use std::sync::Arc;

use etch_core::object::{IGNORE_ANNOTATION, Object};
use serde_json::json;

use super::{Clock, Happened, Live, Marks, Resource, Sent, Server};
use crate::admission::Admission;
use crate::laws::{self, Law};
use crate::server::{self, Content, Effect, Refused, Request, Tag, Uid, Verb, document};
use crate::worlds::World;

impl Resource {
    /// An object as a server shows it to a client that knows a generation.
    pub fn shown(&self, name: &str, live: &Live, server: Server, version: &str) -> Result<Object, Refused> {
        let release = &self.generations[self.served(server)].release;
        let mut document = document(release, &live.content, live.tag.metadata(), version)?;
        let metadata = &mut document["metadata"];
        metadata["name"] = json!(name);
        if live.marks.is_ignored {
            metadata["annotations"] = json!({ IGNORE_ANNOTATION: "true" });
        }
        if live.marks.is_terminating {
            metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Ok(Object::from(document))
    }

    /// Processes a request for an object: the object as it is then; none where it is gone.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn process(
        &mut self,
        clock: &mut Clock,
        name: &str,
        server: Server,
        request: &Request,
    ) -> Result<Option<Live>, Refused> {
        let generation = self.generations[self.served(server)].clone();
        let before = self.objects.get(name).cloned();
        let known = before.as_ref().map(|live| (&*live.content, live.tag.metadata()));
        let World { untypable, admission, .. } = &*self.world;
        let effect = server::admit(&generation.release, *untypable, *admission, known, request)?;
        let content = match effect {
            Effect::Deleted if before.as_ref().is_some_and(|live| live.marks.is_terminating) => {
                return Ok(before);
            }
            Effect::Deleted => {
                self.remove(name, clock);
                return Ok(None);
            }
            Effect::Stored(content) if request.verb == Verb::DryRun => {
                let tag = before.map_or(Tag { uid: 0, revision: 0 }, |live| live.tag);
                let marks = self.objects.get(name).map(|live| live.marks).unwrap_or_default();
                return Ok(Some(Live { content: Arc::new(content), marks, tag, is_late: false }));
            }
            Effect::Stored(content) => content,
        };
        if let Some(live) = before.as_ref().filter(|live| *live.content == content) {
            return Ok(Some(live.clone()));
        }
        clock.revision += 1;
        clock.uids += Uid::from(before.is_none());
        let uid = before.as_ref().map_or(clock.uids, |live| live.tag.uid);
        let is_late = server == Server::Behind && self.lags();
        let tag = Tag { uid, revision: clock.revision };
        let marks = before.as_ref().map(|live| live.marks).unwrap_or_default();
        let live = Live { content: Arc::new(content), marks, tag, is_late };
        let happened = match before {
            None => Happened::Created(live.clone()),
            Some(_) => Happened::Changed(live.clone()),
        };
        self.events.push((clock.revision, name.to_owned(), happened));
        self.objects.insert(name.to_owned(), live.clone());
        Ok(Some(live))
    }

    /// Takes an object out of etcd.
    pub(super) fn remove(&mut self, name: &str, clock: &mut Clock) {
        let Some(live) = self.objects.remove(name) else { return };
        clock.revision += 1;
        let tag = Tag { revision: clock.revision, ..live.tag };
        let last = Happened::Deleted(Live { tag, ..live });
        self.events.push((clock.revision, name.to_owned(), last));
    }

    /// A user changes what the metadata of an object shows. As with every write, the server stores what it
    /// shows of the object.
    pub fn mark(&mut self, name: &str, change: impl FnOnce(&mut Marks), clock: &mut Clock) {
        let Some(before) = self.objects.get(name).map(|live| live.marks) else { return };
        let mut marks = before;
        change(&mut marks);
        let (version, body) = (self.release().storage().to_owned(), json!({}));
        let request =
            Request { version, manager: "marker".to_owned(), verb: Verb::Merge, is_to_status: false, body };
        let is_new = marks != before;
        // What is refused has not happened.
        let Some(Ok(Some(live))) = is_new.then(|| self.process(clock, name, Server::Current, &request))
        else {
            return;
        };
        clock.revision += 1;
        let live = Live { marks, tag: Tag { revision: clock.revision, ..live.tag }, ..live };
        self.events.push((clock.revision, name.to_owned(), Happened::Changed(live.clone())));
        self.objects.insert(name.to_owned(), live);
    }

    /// The finalizers of an object that is being deleted have finished.
    pub fn finalize(&mut self, name: &str, clock: &mut Clock) {
        if self.objects.get(name).is_some_and(|live| live.marks.is_terminating) {
            self.remove(name, clock);
        }
    }

    /// Which law a change of an object by Etch breaks: it had last seen `basis` of it, and knew a generation.
    pub fn broken(
        &self,
        (before, after): (Option<&Live>, Option<&Live>),
        server: Server,
        sent: &Sent,
    ) -> Option<Law> {
        let (before, after) = match (before, after) {
            (None, None) => return None,
            (Some(before), Some(after)) => (before, after),
            _ => return Some(Law::Creates),
        };
        if before.tag == after.tag {
            return None;
        }
        let Sent { basis, follows, knows, doubtful, .. } = sent;
        if before.tag.uid != basis.uid {
            return Some(Law::Creates);
        }
        let served = (!self.is_strict).then(|| &self.generations[self.served(server)].release);
        // A default that changes while Etch's write is on its way comes too late for the object.
        let reader = (*knows == self.generation()).then(|| self.release());
        let is_known = *knows == self.generation();
        let reported =
            self.reported.iter().filter(|_| is_known).map(|index| &self.generations[*index].release);
        let law = laws::broken(
            &self.world,
            (self.release(), served, reader, &reported.collect::<Vec<_>>()),
            (&before.content, &after.content),
            *follows,
            doubtful,
        );
        law.or((before.tag != *basis).then_some(Law::Race))
    }

    /// Processes a write of Etch's, and judges what it does.
    ///
    /// # Errors
    /// The law that it breaks; inside, the refusal.
    pub fn process_sent(
        &mut self,
        clock: &mut Clock,
        name: &str,
        server: Server,
        sent: &Sent,
    ) -> Result<Result<Live, Refused>, Law> {
        let is_refused = |live: &Live| {
            self.world.admission.is_some_and(|admission| admission.refuses(&live.content.value))
        };
        if self.refuses(name) || self.objects.get(name).is_some_and(is_refused) {
            let message = "admission webhook \"v.example.com\" denied the request: never".to_owned();
            return Ok(Err(Refused { code: 403, message }));
        }
        let before = self.objects.get(name).cloned();
        let is_seen = |live: &Live| live.marks != Marks::default() && live.tag == sent.basis;
        if sent.request.verb != Verb::DryRun && before.as_ref().is_some_and(is_seen) {
            return Err(Law::Allowed);
        }
        let asked = self.asked(before.as_ref(), server, &sent.request);
        let answer = self.process(clock, name, server, &sent.request);
        let after = self.objects.get(name).map(|live| match asked {
            Some(content) => Live { content: Arc::new(content), ..live.clone() },
            None => live.clone(),
        });
        let states = (before.as_ref(), after.as_ref());
        if let Some(law) = self.broken(states, server, sent) {
            return Err(law);
        }
        Ok(answer.and_then(|live| live.ok_or_else(|| Refused { code: 404, message: "not found".to_owned() })))
    }

    /// What a request asks for, where a webhook makes something else of it: that is not Etch's change.
    fn asked(&self, before: Option<&Live>, server: Server, request: &Request) -> Option<Content> {
        let World { untypable, admission, .. } = &*self.world;
        admission.as_ref()?;
        let release = &self.generations[self.served(server)].release;
        let known = before.map(|live| (&*live.content, live.tag.metadata()));
        match server::handle(release, *untypable, known, request) {
            Ok(Effect::Stored(content)) => Some(content),
            Ok(Effect::Deleted) | Err(_) => None,
        }
    }

    /// Whether a webhook lets some writes of Etch's never pass, or never as they are.
    pub fn are_some_rejected_for_good(&self) -> bool {
        self.world
            .admission
            .is_some_and(|admission| matches!(admission, Admission::Counts | Admission::Refuses))
    }

    /// Whether admission refuses what Etch sends for an object.
    pub fn refuses(&self, name: &str) -> bool {
        self.refuses && name.bytes().last().is_some_and(|last| last % 2 == 1)
    }
}
