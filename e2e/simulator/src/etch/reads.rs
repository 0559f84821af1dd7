//! What the machine asks, lists, reads and watches.

use std::sync::Arc;

use etch_core::call_error::CallError;
use etch_core::engine::Received;
use etch_core::engine::crd::protocol::{Answer, Question};
use etch_core::engine::sweep::{Form, Page, PageRequest};
use etch_core::engine::watching::Change;
use etch_core::object::{Identity, Object};
use etch_core::object_machine::Reconciled;
use etch_core::object_state::ObjectState;
use etch_core::rbac::Allowed;
use etch_core::report::served::served;
use etch_core::report::versions::list_key;
use etch_core::stored_versions::{Trim, VersionTally, Whereabouts};
use kube_structural_schema::json::Json;
use serde_json::json;

use super::{Driver, Items, PER_PAGE, Snapshot, Surroundings, call_refused, failed, lost, refused};
use crate::etcd::{Happened, Live, Resource, Server};
use crate::laws::Law;
use crate::sabotage::Sabotage;

impl Driver {
    pub(super) fn ask(
        &mut self,
        question: Question,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<(), Law> {
        let failure = Self::fails(at).then(|| failed(at));
        let is_lost = failure.is_some();
        fn answer<T>(failure: Option<CallError>, answer: T) -> Result<T, CallError> {
            failure.map_or(Ok(answer), Err)
        }
        let answered = match question {
            Question::Report => {
                if !is_lost {
                    self.note_report(resource);
                }
                let mut report = self.report(resource);
                if at.sabotage == Some(Sabotage::RemembersTooMuch)
                    && let Some(status) = report.as_mut().and_then(|report| report.status.as_mut())
                {
                    let crd = &self.machine.task().crd;
                    status.digest = crd.digest();
                    status.generation = crd.generation();
                }
                if at.sabotage == Some(Sabotage::ForgetsWhatWasServed)
                    && let Some(status) = report.as_mut().and_then(|report| report.status.as_mut())
                {
                    let crd = &self.machine.task().crd;
                    status.served = served(crd);
                    status.generation = status.generation.max(crd.generation() - 1);
                }
                if at.sabotage == Some(Sabotage::ForgetsFormerDefaults)
                    && let Some(status) = report.as_mut().and_then(|report| report.status.as_mut())
                {
                    status.former_defaults.clear();
                    if status.digest != self.machine.task().crd.digest() {
                        status.defaults.clear();
                    }
                }
                Answer::Report(answer(failure, report.map(Box::new)))
            }
            Question::Crd => Answer::Crd(answer(failure, Some(Json::from(resource.document())))),
            Question::Permissions(..) => {
                if at.sabotage == Some(Sabotage::TrimsAhead) {
                    let crd = self.machine.task().crd.clone();
                    let versions: Vec<String> = crd.versions_elsewhere().map(str::to_owned).collect();
                    resource.trim(&crd, &versions, at.clock)?;
                }
                Answer::Permissions(answer(failure, Allowed::Everywhere))
            }
            Question::Server => Answer::Server(answer(failure, ())),
            Question::Migration => {
                // One that writes nothing: what it would write is what Etch does.
                let runs = at.has_faults && at.dice.one_in(20);
                Answer::Migration(answer(failure, runs.then(|| "migration".to_owned())))
            }
            Question::Generation => {
                let is_same = resource.generation() == self.knows;
                self.is_over = !is_same;
                Answer::Generation(answer(failure, is_same))
            }
            Question::StoredVersions => {
                let mut tally = VersionTally::default();
                // It lists no object: nothing shows where any is.
                resource.objects.values().for_each(|_| tally.add(&Whereabouts::Unknown));
                Answer::StoredVersions(answer(failure, tally))
            }
            Question::Trim(versions) => {
                let crd = self.machine.task().crd.clone();
                // What is lost may have been carried out.
                let is_done = !is_lost || at.dice.roll(2) == 0;
                let trimmed = if is_done { resource.trim(&crd, &versions, at.clock)? } else { Trim::Changed };
                Answer::Trimmed(answer(failure, trimmed))
            }
            Question::ResumePoint { through, objects } => {
                let has_changed = resource.objects.len() as u64 != objects
                    || resource.objects.values().any(|live| u64::from(live.tag.revision) > through);
                let from = (!has_changed).then(|| at.clock.revision.to_string());
                Answer::ResumePoint(answer(failure, from))
            }
        };
        self.machine.answered(at.now, answered);
        Ok(())
    }

    pub(super) fn version(&self) -> String {
        self.machine.task().crd.storage().name.clone()
    }

    /// A server that can answer at the version that Etch asks for.
    pub(super) fn server(&self, resource: &Resource, at: &mut Surroundings<'_>) -> Server {
        let behind = &resource.generations[resource.served(Server::Behind)].release;
        let is_there = resource.may_store_late() && resource.was_reported() && behind.serves(&self.version());
        match is_there && at.dice.lags() {
            true => Server::Behind,
            false => Server::Current,
        }
    }

    pub(super) fn page(
        &mut self,
        request: &PageRequest,
        resource: &Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<Page, CallError> {
        if Self::fails(at) {
            return Err(failed(at));
        }
        if self.snapshot.is_none() {
            let server = self.server(resource, at);
            let objects = resource.objects.iter().map(|(name, live)| (name.clone(), live.clone())).collect();
            self.snapshot = Some(Snapshot { revision: at.clock.revision, server, objects });
        }
        let version = self.version();
        let Some(Snapshot { revision, server, objects }) = &self.snapshot else { return Err(lost()) };
        let first: usize = request.after.as_deref().map_or(0, |after| after.parse().unwrap_or_default());
        let end = (first + PER_PAGE).min(objects.len());
        let shown = objects[first..end].iter().map(|(name, live)| {
            let object = resource.shown(name, live, *server, &version);
            let object = object.map_err(|refused| call_refused(&refused))?;
            let object = self.taken(object, resource, at);
            Ok(match request.form {
                Form::Whole => object,
                Form::Metadata => {
                    let mut json = object.json().clone();
                    json["spec"].take();
                    Object::from(json)
                }
            })
        });
        let shown: Vec<Object> = shown.collect::<Result<_, CallError>>()?;
        Ok(Page {
            keys: shown.iter().map(list_key).collect(),
            resource_version: revision.to_string(),
            latest: revision.to_string(),
            next: (end < objects.len()).then(|| end.to_string()),
            total: None,
            read: at.now.at,
            objects: Arc::new(Items(shown)),
        })
    }

    pub(super) fn read(&mut self, identity: Identity, resource: &Resource, at: &mut Surroundings<'_>) {
        let now = at.now.at;
        let (server, is_lost) = (self.server(resource, at), Self::fails(at));
        let found = self.get(&identity, resource, server).filter(|_| !is_lost);
        let gone = if is_lost { ObjectState::Unknown } else { ObjectState::Gone };
        at.note(|| {
            format!("{identity} is read again, and is {}", if found.is_some() { "there" } else { "not" })
        });
        let Some(watching) = self.machine.watching() else { return };
        match found {
            Some(object) => watching.read(now, Received { object, hold: server }),
            None => watching.reconciled(now, &identity, Ok(Reconciled::of(gone, Vec::new())).into()),
        }
    }

    /// An object as it is shown, and as Etch takes it: with a sabotage, as one whose following values have no
    /// owner.
    pub(super) fn taken(&self, object: Object, resource: &Resource, at: &Surroundings<'_>) -> Object {
        if at.sabotage == Some(Sabotage::WritesWhatIsIgnored) {
            let mut json = object.json().clone();
            json["metadata"]["annotations"].take();
            return Object::from(json);
        }
        if at.sabotage != Some(Sabotage::FollowsWhatIsOwned) || resource.world.follow.is_empty() {
            return object;
        }
        let mut json = object.json().clone();
        let entries = json["metadata"]["managedFields"].as_array_mut().into_iter().flatten();
        entries.for_each(|entry| entry["fieldsV1"] = json!({ "f:spec": { "f:note": {} } }));
        Object::from(json)
    }

    pub(super) fn get(&self, identity: &Identity, resource: &Resource, server: Server) -> Option<Object> {
        let live = resource.objects.get(&identity.name)?;
        let object = resource.shown(&identity.name, live, server, &self.version()).ok()?;
        (object.uid() == identity.uid).then_some(object)
    }

    /// The watch brings one event, or expires.
    pub(super) fn hear(&mut self, resource: &Resource, at: &mut Surroundings<'_>) {
        let (server, version) = (self.server(resource, at), self.version());
        let Some(watch) = &mut self.watch else { return };
        if watch.is_expired || watch.delivered < resource.compacted {
            let delivered = Some(u64::from(watch.delivered));
            watch.is_expired = true;
            return self.machine.watch_expired(at.now, refused(410, "too old resource version"), delivered);
        }
        let next = resource.events.iter().find(|(revision, ..)| *revision > watch.delivered);
        let Some((revision, name, happened)) = next else { return };
        watch.delivered = *revision;
        if at.sabotage == Some(Sabotage::HearsNothing) {
            return;
        }
        let received = |live: &Live| {
            let object = resource.shown(name, live, server, &version).ok()?;
            Some(Received { object: self.taken(object, resource, at), hold: server })
        };
        let change = match happened {
            Happened::Created(live) => received(live).map(Change::Created),
            Happened::Changed(live) => received(live).map(Change::Applied),
            Happened::Deleted(live) => received(live).map(|received| Change::Deleted(received.object)),
        };
        match change {
            Some(change) => self.machine.object_changed(at.now.at, change),
            // A server that cannot show an object ends the watch.
            None => self.machine.watch_failed(at.now, refused(500, "no")),
        }
    }
}
