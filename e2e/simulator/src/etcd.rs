//! One CRD and its objects: what etcd holds, and the two API servers in front of it, of which one may lag
//! behind.

mod conditions;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use etch_core::api::{DefaultsReport, DefaultsReportSpec};
use etch_core::condition::Condition;
use etch_core::crd::Crd;
use etch_core::engine::status;
use etch_core::findings::{SchemaFindings, judge};
use etch_core::report::state::LAG;
use etch_core::stored_versions::{Trim, trim};
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::Pool;
use serde_json::{Value, json};

pub use self::conditions::CrdState;
use self::conditions::WrittenAt;
use super::laws::Law;
use super::server::{self, Content, NAME, Refused, Release, Request, Revision, Tag, Uid};
use super::worlds::{Versions, World, definition};

/// Which API server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// One that serves the CRD as it is.
    Current,
    /// One whose watch of CRDs hangs.
    Behind,
}

/// What the metadata of an object shows beside its owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Whether an annotation asks Etch to ignore it.
    pub is_ignored: bool,
    /// Whether it is being deleted, and a finalizer holds it.
    pub is_terminating: bool,
}

/// How a user changes a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// In its metadata alone.
    Label,
    /// In its state.
    State,
    /// It is deleted.
    Delete,
}

/// An object in etcd.
#[derive(Clone, Debug)]
pub struct Live {
    /// What is stored.
    pub content: Arc<Content>,
    /// What its metadata shows.
    pub marks: Marks,
    /// Which object, and when.
    pub tag: Tag,
    /// Whether a server that lagged behind has stored it.
    pub is_late: bool,
}

/// A request of Etch's as it is sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The request.
    pub request: Request,
    /// What Etch had last seen of the object.
    pub basis: Tag,
    /// Whether values may follow.
    pub follows: bool,
    /// The generation that Etch knows.
    pub knows: usize,
    /// The places at which it showed an old default, where the dry run was refused that asks whether etcd
    /// holds it.
    pub doubtful: Vec<String>,
}

/// What happened to an object.
#[derive(Clone, Debug)]
pub enum Happened {
    /// It was created.
    Created(Live),
    /// It was changed.
    Changed(Live),
    /// It was deleted; its last state.
    Deleted(Live),
}

/// The CRD as it came to be at one generation.
pub struct Generation {
    /// Which of the world's it is.
    variant: usize,
    /// What servers make of requests.
    pub release: Release,
    /// What is wrong with it.
    pub findings: SchemaFindings,
}

/// The number of something that was written to etcd, and what clients know it by.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// The last revision.
    pub revision: Revision,
    uids: Uid,
}

/// One CRD and its objects.
#[derive(Clone)]
pub struct Resource {
    /// What it may become, what users send, and what the policy allows.
    pub world: Arc<World>,
    /// All generations; the last one is in force.
    pub generations: Vec<Arc<Generation>>,
    /// The first one of the CRD that is there now: those before were of others of the same name.
    first: usize,
    variant: usize,
    stored_versions: Vec<String>,
    /// The generation that a server still serves which lags behind.
    behind: usize,
    changed: Option<Instant>,
    /// The resource version of the CRD.
    pub revision: Revision,
    /// Our conditions on it.
    pub conditions: Vec<Condition>,
    /// When these were written.
    conditions_at: Option<WrittenAt>,
    /// For how long it has been there.
    age: Duration,
    /// The moment of that.
    now: Option<Instant>,
    /// The report on it.
    pub report: Option<DefaultsReport>,
    /// The generations whose defaults Etch has reported.
    pub reported: BTreeSet<usize>,
    /// What etcd holds, by name.
    pub objects: BTreeMap<String, Live>,
    /// What happened, by revision.
    pub events: Vec<(Revision, String, Happened)>,
    /// The revision up to which nothing is known of what happened.
    pub compacted: Revision,
    /// Whether admission refuses what Etch sends for each second object.
    pub refuses: bool,
    /// Whether the limits that the documents name count as broken laws.
    pub is_strict: bool,
    /// Whether etcd was restored, so that what Etch had reported of objects no longer holds.
    pub is_restored: bool,
    backup: Option<Backup>,
}

/// What a backup holds.
#[derive(Clone, Debug)]
struct Backup {
    generation: usize,
    conditions: Vec<Condition>,
    conditions_at: Option<WrittenAt>,
    report: Option<DefaultsReport>,
    stored_versions: Vec<String>,
    objects: BTreeMap<String, Live>,
    /// Whether a user has deleted the report since: Etch has begun anew, and does not know what the old one
    /// says.
    is_report_deleted: bool,
}

impl Resource {
    /// A CRD without objects.
    pub fn new(world: Arc<World>, clock: &mut Clock) -> Self {
        let mut resource = Self {
            world,
            generations: Vec::new(),
            first: 0,
            variant: 0,
            stored_versions: Vec::new(),
            behind: 0,
            changed: None,
            revision: 0,
            conditions: Vec::new(),
            conditions_at: None,
            age: Duration::ZERO,
            now: None,
            report: None,
            reported: BTreeSet::new(),
            objects: BTreeMap::new(),
            events: Vec::new(),
            compacted: 0,
            refuses: false,
            is_strict: false,
            is_restored: false,
            backup: None,
        };
        resource.become_variant(0, clock);
        resource
    }

    fn become_variant(&mut self, variant: usize, clock: &mut Clock) {
        let versions: &Versions = &self.world.versions[variant];
        self.stored_versions.retain(|name| versions.iter().any(|(known, _)| known == name));
        if let Some((storage, _)) = versions.last()
            && !self.stored_versions.iter().any(|name| name == storage)
        {
            self.stored_versions.push((*storage).to_owned());
        }
        let mut document = definition(
            versions,
            self.world.unserved.get(variant).copied().unwrap_or_default(),
            self.world.status.get(variant),
            self.generations.len() - self.first + 1,
        );
        document["metadata"]["uid"] = json!(format!("crd-{}", self.first));
        let webhook_knows = self.world.webhook_knows;
        if webhook_knows.is_some() {
            document["spec"]["conversion"] = json!({ "strategy": "Webhook" });
        }
        let (_, findings) = judge(&Json::from(document.clone()), &Pool::default());
        let release = Release::new(document, &self.stored_versions).converted_by(webhook_knows);
        self.generations.push(Arc::new(Generation { variant, release, findings }));
        self.variant = variant;
        clock.revision += 1;
        self.revision = clock.revision;
    }

    /// The generation in force, counted from zero.
    pub fn generation(&self) -> usize {
        self.generations.len() - 1
    }

    /// What is in force.
    pub fn release(&self) -> &Release {
        &self.generations[self.generation()].release
    }

    /// The generation that a server serves.
    pub fn served(&self, server: Server) -> usize {
        match server {
            Server::Current => self.generation(),
            Server::Behind => self.behind,
        }
    }

    /// Whether old versions are listed, and are to go.
    pub fn is_to_be_trimmed(&self) -> bool {
        self.world.terms.moves && self.stored_versions.len() > 1
    }

    /// Whether a server lags behind.
    pub fn lags(&self) -> bool {
        self.behind != self.generation()
    }

    /// Whether the defaults that the server still gives which lags behind were reported by Etch since they
    /// were in force.
    ///
    /// A limit: where they were not, as where Etch is installed within minutes after a change, it cannot tell
    /// an old default that such a server shows or stores from a user's value.
    pub fn was_reported(&self) -> bool {
        let crd = &self.generations[self.behind].release.crd;
        let (behind, digest) = (crd.compiled(), crd.compiled().digest().to_string());
        let is_this = |other: &str, generation: i64| other == digest && generation >= crd.generation();
        let report = self.report.as_ref().and_then(|report| report.status.as_ref());
        let is_reported = report.is_some_and(|status| {
            let mut previous = status.previous.iter();
            is_this(&status.digest, status.generation)
                || previous.any(|previous| is_this(&previous.digest, previous.generation))
        });
        self.is_strict || !behind.has_defaults() || is_reported
    }

    /// Whether the CRD has changed within this time.
    pub fn has_just_changed(&self, now: Instant, within: Duration) -> bool {
        self.changed.is_some_and(|changed| now < changed + within)
    }

    /// Whether the CRD has changed since then.
    pub fn has_changed_since(&self, then: Instant) -> bool {
        self.changed.is_some_and(|changed| changed >= then)
    }

    /// Whether the report announces another verification: what it states until then may be wrong
    /// where a server lagged behind.
    pub fn is_verified_later(&self) -> bool {
        let report = self.report.as_ref().and_then(|report| report.status.as_ref());
        report.is_none_or(|status| status.verify_at.is_some())
    }

    /// Whether a server lags behind, and stores what the CRD still knows.
    pub fn may_store_late(&self) -> bool {
        let behind = &self.generations[self.behind].release;
        self.lags() && self.release().has(behind.storage())
    }

    /// Changes the CRD, to what comes next or back to what it was; whether the API server allows it.
    pub fn upgrade(&mut self, is_back: bool, is_slow: bool, now: Instant, clock: &mut Clock) -> bool {
        let next = if is_back { self.variant.checked_sub(1) } else { Some(self.variant + 1) };
        let Some(next) = next.filter(|next| self.may_become(*next)) else { return false };
        self.become_variant(next, clock);
        self.changed = Some(now);
        if !is_slow {
            self.behind = self.generation();
        }
        true
    }

    /// Deletes the CRD, and creates it again as it was at first.
    pub fn make_anew(&mut self, now: Instant, clock: &mut Clock) {
        let names: Vec<String> = self.objects.keys().cloned().collect();
        names.iter().for_each(|name| self.remove(name, clock));
        (self.conditions, self.conditions_at) = (Vec::new(), None);
        (self.report, self.backup) = (None, None);
        self.reported.clear();
        self.stored_versions.clear();
        self.first = self.generations.len();
        self.become_variant(0, clock);
        (self.behind, self.changed) = (self.generation(), Some(now));
    }

    /// Whether the CRD can be changed to what comes next.
    pub fn may_upgrade(&self) -> bool {
        self.may_become(self.variant + 1)
    }

    /// The server refuses to drop a version at which objects are stored; and one that lags behind knows none
    /// of what is two changes away.
    fn may_become(&self, variant: usize) -> bool {
        let Some(versions) = self.world.versions.get(variant) else { return false };
        let has = |version: &str| versions.iter().any(|(known, _)| *known == version);
        !self.lags() && self.objects.values().all(|live| has(&live.content.version))
    }

    /// Has every server serve what is in force.
    pub fn catch_up(&mut self) {
        self.behind = self.generation();
    }

    /// No server lags behind for longer than [`LAG`], with some of it to spare.
    pub fn take_time(&mut self, now: Instant) {
        self.age += self.now.replace(now).map_or(Duration::ZERO, |before| now - before);
        if self.changed.is_some_and(|changed| now >= changed + LAG - Duration::from_secs(60)) {
            self.catch_up();
        }
    }

    /// Everything that it holds, and of the events those after a revision, if any.
    pub fn shown_to(&self, delivered: Option<Revision>) -> impl fmt::Debug {
        let variants = self.generations.iter().map(|generation| generation.variant).collect::<Vec<_>>();
        let is_new =
            |(revision, ..): &&(Revision, String, Happened)| delivered.is_none_or(|last| *revision > last);
        let events: Vec<_> = self.events.iter().filter(is_new).collect();
        let crd =
            (self.world.name, variants, &self.stored_versions, self.behind, self.changed, self.revision);
        let status = (&self.conditions, self.conditions_at, &self.report, &self.backup);
        format!("{:?}", (crd, status, &self.objects, events, self.compacted, self.refuses, self.is_restored))
    }

    /// The CRD as it is read.
    pub fn document(&self) -> Value {
        let mut document = self.release().document.clone();
        let metadata = &mut document["metadata"];
        metadata["resourceVersion"] = json!(self.version());
        metadata["managedFields"] = self.managed_fields();
        document["status"] = json!({ "storedVersions": self.stored_versions, "conditions": self.conditions });
        document
    }

    /// The CRD.
    pub fn crd(&self) -> &Arc<Crd> {
        &self.release().crd
    }

    /// Writes conditions or report; the resource version of the report.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn set_status(&mut self, command: &status::Command, clock: &mut Clock) -> Result<String, Refused> {
        let version = (clock.revision + 1).to_string();
        match command {
            status::Command::SetConditions(_, expected) if *expected != self.version() => {
                return server::refused(409, "the object has been modified");
            }
            status::Command::SetConditions(conditions, _) => {
                if conditions[..] != self.conditions[..] {
                    self.write_conditions(conditions.to_vec(), true, clock);
                }
                return Ok(self.version());
            }
            status::Command::OpenReport => {
                let (crd, crd_uid) = (self.crd().name().to_owned(), self.crd().uid().to_owned());
                let new = || DefaultsReport::new(&crd, DefaultsReportSpec { crd: crd.clone(), crd_uid });
                let report = self.report.get_or_insert_with(new);
                report.metadata.resource_version = Some(version.clone());
            }
            status::Command::SetReport(status, expected) => {
                let Some(report) = &mut self.report else { return server::refused(404, "not found") };
                if report.metadata.resource_version.as_ref() != Some(expected) {
                    return server::refused(409, "the object has been modified");
                }
                report.metadata.resource_version = Some(version.clone());
                report.status = Some((**status).clone());
                self.note_reported(&status.digest, &status.storage_version);
            }
            _ => {}
        }
        clock.revision += 1;
        Ok(version)
    }

    /// A user changes the report.
    pub fn edit_report(&mut self, edit: Edit, clock: &mut Clock) {
        let Some(report) = &mut self.report else { return };
        clock.revision += 1;
        report.metadata.resource_version = Some(clock.revision.to_string());
        match (edit, &mut report.status) {
            (Edit::State, Some(status)) => status.state = "Edited".to_owned(),
            (Edit::State | Edit::Label, _) => {}
            (Edit::Delete, _) => {
                self.report = None;
                self.reported.clear();
                self.backup.iter_mut().for_each(|backup| backup.is_report_deleted = true);
            }
        }
    }

    fn note_reported(&mut self, digest: &str, storage_version: &str) {
        let is_this = |crd: &Crd| crd.digest() == digest && crd.storage().name == storage_version;
        let all = self.generations.iter().enumerate();
        self.reported.extend(all.filter(|(_, known)| is_this(&known.release.crd)).map(|(index, _)| index));
    }

    /// Takes versions out of `status.storedVersions`, unless the CRD is another one by now.
    ///
    /// # Errors
    /// An object is stored at one of them. After a restore that is no fault: Etch had asked before.
    pub fn trim(&mut self, crd: &Crd, versions: &[String], clock: &mut Clock) -> Result<Trim, Law> {
        if trim(&Json::from(self.document()), crd, versions).is_none() {
            return Ok(Trim::Changed);
        }
        let is_there = |live: &Live| versions.contains(&live.content.version);
        if !self.is_restored && self.objects.values().any(is_there) {
            return Err(Law::Persisted);
        }
        self.stored_versions.retain(|name| !versions.contains(name));
        self.list_versions();
        clock.revision += 1;
        self.revision = clock.revision;
        Ok(Trim::Done)
    }

    /// Has the CRD that is in force list the versions at which objects are stored.
    fn list_versions(&mut self) {
        let Some(last) = self.generations.pop() else { return };
        let release = Release::new(last.release.document.clone(), &self.stored_versions);
        let release = release.converted_by(self.world.webhook_knows);
        let Generation { variant, ref findings, .. } = *last;
        self.generations.push(Arc::new(Generation { variant, release, findings: findings.clone() }));
    }

    /// Takes a backup of etcd.
    pub fn back_up(&mut self) {
        self.backup = Some(Backup {
            generation: self.generation(),
            conditions: self.conditions.clone(),
            conditions_at: self.conditions_at,
            report: self.report.clone(),
            stored_versions: self.stored_versions.clone(),
            objects: self.objects.clone(),
            is_report_deleted: false,
        });
    }

    /// The report as it stands in the backup.
    pub fn report_in_backup(&self) -> Option<&DefaultsReport> {
        self.backup.as_ref()?.report.as_ref()
    }

    /// Puts back what was there; whether there was anything. What a watch has not brought yet is lost.
    pub fn restore(&mut self, now: Instant, clock: &mut Clock) -> bool {
        let Some(backup) = self.backup.take() else { return false };
        clock.revision += 1;
        if backup.generation != self.generation() {
            // The CRD has an earlier generation again; what follows has a number that none had, so that
            // nobody confuses it with what is lost. API servers begin anew.
            let again = self.generations[backup.generation].clone();
            self.variant = again.variant;
            self.generations.push(again);
            (self.behind, self.revision) = (self.generation(), clock.revision);
            self.changed = Some(now);
        }
        (self.conditions, self.report, self.objects) = (backup.conditions, backup.report, backup.objects);
        (self.stored_versions, self.conditions_at) = (backup.stored_versions, backup.conditions_at);
        self.reported.clear();
        let known = self.report.as_ref().filter(|_| !backup.is_report_deleted);
        if let Some(status) = known.and_then(|report| report.status.clone()) {
            self.note_reported(&status.digest, &status.storage_version);
            for past in &status.previous {
                self.note_reported(&past.digest, &past.storage_version);
            }
        }
        self.list_versions();
        self.compact();
        self.is_restored = true;
        true
    }

    /// Forgets what has happened so far.
    pub fn compact(&mut self) {
        if let Some((revision, ..)) = self.events.last() {
            self.compacted = *revision;
        }
        self.events.clear();
    }
}

/// The name of an object by its number.
pub fn name(number: usize) -> String {
    format!("{NAME}{number:03}")
}
