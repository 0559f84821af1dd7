//! A planned write without I/O: requests come out, answers go in, and an outcome ends it. It decides nothing
//! again, and repeats a request only to prove a write: the caller decides again from a fresh read.
//!
//! | strategy | requests |
//! |---|---|
//! | Apply, Merge | the write; the removal; if it has to be proved, a repeat that must change nothing |
//! | Rewrite | the identity alone, if that keeps the generation; the rewrite; the removal; the proof |
//! | Follow | the move; the removal |
//! | Status | the write, and a repeat that must change nothing, both to the status |
//! | Embed | the write as a dry run, which must cost no owner a field; the write; the removal |
//! | of doubtful places ([`super::with_lag_check`]) | a dry run that shows them stored; the same as without |
//! | with values ([`super::pinned`]) | the write; the removal, if the server lacked the values; the proof |
//!
//! The removal takes away Etch's own entry, if a patch has left one. An apply or merge that could take fields
//! from others is sent as a dry run before.
//!
//! Apply, Merge and Rewrite are sent as a patch that checks each field of the object, wherever that does no
//! harm: see [`presence`].
//!
//! A crash between any two of them leaves the object as readable as before, and the next decision continues
//! from there.

use super::alteration::Alterations;
use super::decide::apply_may_lose_fields;
use super::dropped::{dropped, unseen};
use super::outcome::{Outcome, Rejection, classify};
use super::{
    Body, Proof, Strategy, Terms, Write, ahead_of_rewrite, harmed, has_followed, has_gap, lag_check,
    presence, release, repeat, rewritten,
};
use crate::crd::Crd;
use crate::difference::difference;
use crate::object::Object;
use crate::ownership::lost;
use crate::refusal::Refusal;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

/// One request: a patch of the object that the write is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// How it is meant.
    pub kind: PatchKind,
    /// Its body.
    pub body: Json,
    /// Whether a server whose schema lacks a field that the object shows stores nothing by it: the request
    /// checks the fields, or is a dry run.
    pub keeps_fields: bool,
    /// Whether it addresses the object's status: its path has that at its end.
    pub to_status: bool,
}

impl Request {
    /// One that is sent as it stands.
    fn plain(kind: PatchKind, body: Json) -> Self {
        let keeps_fields = matches!(kind, PatchKind::DryRun | PatchKind::ApplyDryRun);
        Self { kind, body, keeps_fields, to_status: false }
    }

    /// A patch of operations, with a check of each field of the object that it is for.
    fn operations(body: &Json, object: &Object) -> Self {
        let operations = body.as_array().into_iter().flatten().cloned().collect();
        match presence::with_checks(operations, object) {
            Some(body) => Self { kind: PatchKind::Json, body, keeps_fields: true, to_status: false },
            None => Self::plain(PatchKind::Json, body.clone()),
        }
    }
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PatchKind {
    /// Server-side apply, never forced.
    Apply,
    /// JSON merge patch, RFC 7386.
    Merge,
    /// JSON patch, RFC 6902.
    Json,
    /// A JSON patch as a dry run.
    DryRun,
    /// Server-side apply as a dry run.
    ApplyDryRun,
}

/// What follows an answer.
#[derive(Debug)]
pub enum Step {
    /// Another request.
    Send(Request),
    /// Nothing: the write has ended with this outcome.
    Done(Outcome),
    /// Nothing: the server could not answer, and the outcome is unknown.
    Failed(Refusal),
}

/// A write under way.
#[derive(Debug)]
pub struct WriteMachine<'a> {
    crd: &'a Crd,
    object: &'a Object,
    write: &'a Write,
    terms: &'a Terms,
    sent: Sent,
    /// See [`Request::keeps_fields`], of the last one.
    keeps_fields: bool,
    /// What else the requests have changed; `None` if there is only one request.
    alterations: Option<Alterations>,
    /// See [`Self::unseen`].
    unseen: Vec<Path>,
}

/// The request that waits for its answer.
#[derive(Debug)]
enum Sent {
    /// The dry run that shows whether doubtful places are stored.
    LagCheck,
    /// The write as a dry run.
    DryRun,
    /// The write itself, or what it comes down to after [`Sent::Identity`].
    Write,
    /// The identity alone, ahead of a rewrite.
    Identity,
    /// The removal of Etch's own entry.
    Release,
    /// This repeat as a dry run, after a write with this resource version.
    RepeatDryRun(String, Request),
    /// A repeat that must leave this resource version alone.
    Repeat(String),
}

impl<'a> WriteMachine<'a> {
    /// Begins a write that was planned for `object` as it was read, with its first request.
    pub fn begin(crd: &'a Crd, object: &'a Object, write: &'a Write, terms: &'a Terms) -> (Self, Request) {
        let (sent, request) = match &write.doubtful[..] {
            [] => first(crd, object, write, terms),
            doubtful => {
                let body = lag_check::dry_run(object, doubtful);
                (Sent::LagCheck, Request::plain(PatchKind::DryRun, body))
            }
        };
        let is_one = write.strategy == Strategy::Apply && !write.prove && !is_pinned(write);
        let alterations = (!is_one).then(|| Alterations::none(object));
        let unseen = Vec::new();
        let keeps_fields = request.keeps_fields;
        (Self { crd, object, write, terms, sent, keeps_fields, alterations, unseen }, request)
    }

    /// Handles the object as the last request left it.
    pub fn answered(&mut self, answer: Object) -> Step {
        if !matches!(self.sent, Sent::LagCheck | Sent::DryRun | Sent::RepeatDryRun(..)) {
            if let Some(alterations) = &mut self.alterations {
                alterations.note(&answer);
            }
            let paths = dropped(self.object, &answer, self.crd, &self.write.missing);
            if !paths.is_empty() {
                return Step::Done(match self.is_checked() {
                    true => Outcome::Unproved,
                    false => Outcome::FieldsDropped { paths },
                });
            }
            self.unseen = unseen(self.object, &answer, self.crd);
        }
        match (&self.sent, self.write.strategy) {
            // Proof::DryRunShowsNewDefault.
            (Sent::LagCheck, _) => match lag_check::are_stored(&answer, &self.write.doubtful) {
                true => self.start(),
                false => Step::Done(Outcome::Conflict),
            },
            (Sent::DryRun, Strategy::Apply) => match self.rejection(&answer) {
                None => self.send(Sent::Write, self.request(self.write, self.object)),
                Some(rejection) => Step::Done(Outcome::Rejected(rejection)),
            },
            (Sent::DryRun, _) => match harmed(self.object, &answer) {
                managers if managers.is_empty() => {
                    self.send(Sent::Write, self.request(self.write, self.object))
                }
                managers => Step::Done(Outcome::Harmful { managers }),
            },
            (Sent::Identity, _) if self.write.decides_again => {
                let is_changed = answer.resource_version() != self.object.resource_version();
                Step::Done(if is_changed { Outcome::IdentityWritten } else { Outcome::Conflict })
            }
            (Sent::Identity, _) => {
                let write = rewritten(&answer, self.crd, self.terms, self.write);
                self.send(Sent::Write, self.request(&write, &answer))
            }
            (Sent::Write, strategy) => {
                let may_own = match strategy {
                    Strategy::Rewrite | Strategy::Follow => true,
                    // If the server's view lacked a default that the view which Etch read had.
                    Strategy::Apply => self.keeps_fields || is_pinned(self.write),
                    Strategy::Merge | Strategy::Embed => is_pinned(self.write),
                    // It names nothing, and the view lacks nothing.
                    Strategy::Status => false,
                };
                match release(&answer).filter(|_| may_own) {
                    Some(body) => self.send(Sent::Release, Request::operations(&body, &answer)),
                    None => self.written(answer),
                }
            }
            (Sent::Release, _) => self.written(answer),
            (Sent::Repeat(resource_version), _) if answer.resource_version() == resource_version => {
                Step::Done(Outcome::Written {
                    resource_version: resource_version.clone(),
                    proof: Proof::RepeatChangedNothing,
                })
            }
            (Sent::RepeatDryRun(resource_version, again), _) => match self.rejection(&answer) {
                None => self.send(Sent::Repeat(resource_version.clone()), again.clone()),
                Some(rejection) => Step::Done(Outcome::Rejected(rejection)),
            },
            (Sent::Repeat(_), _) => Step::Done(self.harm(&answer).unwrap_or(Outcome::Altered)),
        }
    }

    /// The fields that others own and that neither the object nor the last answer shows: the write may have
    /// dropped them.
    pub fn unseen(&self) -> &[Path] {
        &self.unseen
    }

    /// Records that the last request was refused.
    pub fn refused(&mut self, refusal: Refusal) -> Step {
        let refusal = refusal.without_keys(&self.crd.storage().schema);
        match &self.sent {
            // The test failed: this server shows something else.
            Sent::LagCheck if refusal.is_failed_operation() => Step::Done(Outcome::Conflict),
            Sent::LagCheck => match classify(refusal) {
                // No manager may take the value away, and nothing is proved.
                Ok(Outcome::Rejected(_) | Outcome::NeedsRewrite) => self.start(),
                other => other.map_or_else(Step::Failed, Step::Done),
            },
            // Refused because the object is invalid without the new default (422), or because it is stored at
            // S and its owners still name another version (500): the rewrite alone stores it too, but raises
            // the generation.
            Sent::Identity if matches!(refusal.code, 422 | 500) => {
                self.send(Sent::Write, self.request(self.write, self.object))
            }
            // A place is not there on this server: it serves another schema than the one that showed it.
            // Where the object is not valid, fields are named.
            Sent::Write | Sent::Repeat(_) if self.keeps_fields && refusal.is_failed_operation() => {
                Step::Done(Outcome::Conflict)
            }
            // A test of the patch failed: the entry is no longer where it was.
            Sent::Release if refusal.code == 422 => Step::Done(Outcome::Conflict),
            _ => classify(refusal).map_or_else(Step::Failed, Step::Done),
        }
    }

    /// Whether the last request found each field of the object on the server that carried it out (fact W30),
    /// so that only admission can have removed one since. With several versions, that server may store the
    /// object at another one, which lacks the field.
    fn is_checked(&self) -> bool {
        self.keeps_fields && self.crd.versions().len() == 1
    }

    /// Whether admission changes the object on each write, so that no repeat can prove anything.
    fn is_mutated(&self) -> bool {
        self.alterations.as_ref().is_some_and(Alterations::are_endless)
    }

    /// Continues as if nothing were doubtful.
    fn start(&mut self) -> Step {
        let (sent, request) = first(self.crd, self.object, self.write, self.terms);
        self.send(sent, request)
    }

    fn request(&self, write: &Write, object: &Object) -> Request {
        request(self.crd, object, write)
    }

    fn send(&mut self, sent: Sent, request: Request) -> Step {
        self.sent = sent;
        self.keeps_fields = request.keeps_fields;
        Step::Send(request)
    }

    /// The owners that the object no longer has.
    fn lost(&self, answer: &Object) -> Vec<String> {
        let lost = lost(self.object, answer, &self.crd.storage().schema);
        lost.map(|owner| owner.manager.to_owned()).collect()
    }

    /// The outcome of a write that no proof can follow: owners are lost, or admission changes the object on
    /// each write.
    fn harm(&self, answer: &Object) -> Option<Outcome> {
        let managers = self.lost(answer);
        if !managers.is_empty() {
            return Some(Outcome::OwnersLost { managers });
        }
        self.is_mutated().then(|| Outcome::Mutated { resource_version: answer.resource_version().to_owned() })
    }

    /// Why an apply whose dry run has this answer is not sent; `None` if it takes no field from another
    /// owner.
    fn rejection(&self, answer: &Object) -> Option<Rejection> {
        let schema = &self.crd.storage().schema;
        let found = difference(self.object.json(), answer.json(), schema, schema);
        let taken = [found.changes, found.disappears].concat();
        let is_harmless = taken.is_empty() && self.lost(answer).is_empty();
        (!is_harmless).then(|| Rejection::lossy(taken))
    }

    /// The outcome of the write, as far as its last answer shows it; otherwise the request that proves it.
    fn written(&mut self, answer: Object) -> Step {
        if let Some(harm) = self.harm(&answer) {
            return Step::Done(harm);
        }
        if self.write.strategy == Strategy::Follow {
            // A server that does not serve the schema yet has filled the old default in again.
            return Step::Done(match has_followed(self.object, &answer, self.write) {
                true => Outcome::Followed(Box::new(answer)),
                false => Outcome::Unproved,
            });
        }
        if has_gap(&answer, self.crd) {
            return Step::Done(Outcome::Unproved);
        }
        let resource_version = answer.resource_version().to_owned();
        if resource_version == self.object.resource_version() {
            return Step::Done(Outcome::AlreadyStored(Proof::WriteChangedNothing));
        }
        if !self.write.prove {
            return Step::Done(Outcome::Written { resource_version, proof: Proof::WriteAnswered });
        }
        let again = self.request(&repeat(&answer, self.crd, self.write), &answer);
        // Since the write, Etch owns fields.
        match again.kind == PatchKind::Apply && apply_may_lose_fields(&answer, self.crd, self.terms) {
            true => {
                let dry_run = Request::plain(PatchKind::ApplyDryRun, again.body.clone());
                self.send(Sent::RepeatDryRun(resource_version, again), dry_run)
            }
            false => self.send(Sent::Repeat(resource_version), again),
        }
    }
}

/// The first request: the write, or its dry run.
fn first(crd: &Crd, object: &Object, write: &Write, terms: &Terms) -> (Sent, Request) {
    let ahead = match write.strategy {
        Strategy::Apply if !is_pinned(write) && apply_may_lose_fields(object, crd, terms) => {
            return (Sent::DryRun, Request::plain(PatchKind::ApplyDryRun, write.body.json().clone()));
        }
        Strategy::Embed => {
            return (Sent::DryRun, Request::plain(PatchKind::DryRun, write.body.json().clone()));
        }
        Strategy::Rewrite if !is_pinned(write) => ahead_of_rewrite(object, crd),
        Strategy::Rewrite | Strategy::Apply | Strategy::Merge | Strategy::Follow | Strategy::Status => None,
    };
    match ahead {
        Some(body) => (Sent::Identity, Request::plain(PatchKind::Apply, body)),
        None => (Sent::Write, request(crd, object, write)),
    }
}

fn request(crd: &Crd, object: &Object, write: &Write) -> Request {
    let kind = match &write.body {
        Body::Operations(operations) => return Request::operations(operations, object),
        Body::Identity(_) | Body::Values(_) => PatchKind::Apply,
        Body::Metadata(_) => PatchKind::Merge,
    };
    if write.strategy == Strategy::Status {
        return Request { to_status: true, ..Request::plain(kind, write.body.json().clone()) };
    }
    match presence::checked(write, object, crd) {
        Some(body) => Request { kind: PatchKind::Json, body, keeps_fields: true, to_status: false },
        None => Request::plain(kind, write.body.json().clone()),
    }
}

/// Whether a write is sent with values, as a list of operations.
fn is_pinned(write: &Write) -> bool {
    write.strategy != Strategy::Follow && matches!(write.body, Body::Operations(_))
}
