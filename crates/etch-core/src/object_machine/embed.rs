//! One object whose embedded extensions lack defaults: what it lacks, the write, and the proof by reading it
//! again. No server fills such defaults in, so a read shows what etcd holds.
//!
//! ```text
//! begin ──> Rest::Lacking ── lacks ──┬──> Step::Write ── wrote ──┬──> Rest::Kept, Step::Stop
//!                ^                   └──> Rest::Kept             │
//!                └───── read ─────── Step::ReadAgain <───────────┘
//! ```

use std::mem::replace;
use std::sync::Arc;

use super::machine::Meaning;
use super::{ATTEMPTS, Again, Machine, Step, Stop};
use crate::crd::Crd;
use crate::object::Object;
use crate::patch::Change;
use crate::plan::{
    Embedding, HiddenEvidence, Outcome, Rejection, RejectionKind, Skip, Withheld, Write, embed, harmed,
};

const NOT_KEPT: &str = "the API server does not keep the defaults: the CRD prunes them, or they are in a \
                        subresource, or admission removes them";

/// The outcome for the defaults of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It holds its defaults.
    Stored,
    /// It is gone, or being deleted: it does not count.
    Gone,
    /// Its annotation has Etch ignore it.
    Ignored,
    /// The policy does not select it.
    NotSelected,
    /// A write would do harm.
    Held(Withheld),
    /// With its defaults it would break this rule of the schema.
    Breaks(String),
    /// It was refused, for this reason.
    Rejected(String),
    /// A webhook did not answer about it, for this reason, which may pass.
    Unanswered(String),
    /// It could not be found out.
    Unknown,
}

/// What the machine rests with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The caller has to find out what the object lacks, as it was read last: see [`EmbedMachine::lacks`].
    Lacking,
    /// The outcome.
    Kept(Kept),
}

/// One object on its way to have the defaults of an embedded extension stored.
#[derive(Clone, Debug)]
pub struct EmbedMachine {
    crd: Arc<Crd>,
    hidden: Arc<HiddenEvidence>,
    object: Object,
    planned: Option<Write>,
    last: LastWrite,
    attempts: u32,
    has_written: bool,
}

/// What the write before the next decision has come to.
#[derive(Clone, Debug)]
enum LastWrite {
    /// Nothing that a read could prove, or there was none.
    Nothing,
    /// It changed nothing, so it stored nothing either.
    Unchanged,
    /// It left the object at this resource version. A read is to prove that the defaults are there.
    Changed(String),
    /// The object was read after that, and is still at the resource version, or no longer.
    Read { is_ours: bool },
}

impl EmbedMachine {
    /// Begins with an object as it was read, and with what is known of fields that no read shows.
    pub fn begin(crd: Arc<Crd>, hidden: Arc<HiddenEvidence>, object: Object) -> (Self, Step<Rest>) {
        let last = LastWrite::Nothing;
        let machine = Self { crd, hidden, object, planned: None, last, attempts: 0, has_written: false };
        (machine, Step::Done(Rest::Lacking))
    }

    /// Handles the changes that its defaults make, and the rule that the object breaks only with them.
    pub fn lacks(&mut self, changes: &[Change], breaks: Option<String>) -> Step<Rest> {
        if let LastWrite::Read { is_ours } = replace(&mut self.last, LastWrite::Nothing) {
            return match (changes.is_empty(), is_ours) {
                (true, _) => kept(Kept::Stored),
                (false, true) => kept(Kept::Rejected(NOT_KEPT.to_owned())),
                (false, false) => Step::ReadAgain { waits: true },
            };
        }
        if self.attempts == ATTEMPTS {
            return kept(Kept::Unknown);
        }
        self.attempts += 1;
        kept(match embed(&self.object, &self.crd, changes, &self.hidden.former) {
            Embedding::Skip(Skip::Terminating) => Kept::Gone,
            Embedding::Skip(Skip::Ignored | Skip::IgnoredUnclear) => Kept::Ignored,
            Embedding::Skip(Skip::NotSelected) => Kept::NotSelected,
            Embedding::Skip(Skip::TooDeep) => Kept::Unknown,
            Embedding::Stored => Kept::Stored,
            Embedding::Hold(why) => Kept::Held(why),
            Embedding::Write(write) => match breaks {
                Some(rule) => Kept::Breaks(rule),
                None => {
                    self.planned = Some(write);
                    return Step::Write;
                }
            },
        })
    }

    /// Whether a write of ours has stored something in it.
    pub fn has_written(&self) -> bool {
        self.has_written
    }

    /// The object as it was read last.
    pub fn into_object(self) -> Object {
        self.object
    }
}

impl Machine for EmbedMachine {
    type End = Rest;

    fn object(&self) -> &Object {
        &self.object
    }

    fn planned(&self) -> Option<&Write> {
        self.planned.as_ref()
    }

    fn attempts(&self) -> u32 {
        self.attempts
    }

    fn wrote(&mut self, outcome: Option<Outcome>) -> Step<Rest> {
        self.planned = None;
        match Meaning::from(outcome) {
            Meaning::Written { resource_version, .. } => {
                (self.last, self.has_written) = (LastWrite::Changed(resource_version), true);
                Step::ReadAgain { waits: false }
            }
            Meaning::AlreadyStored => {
                self.last = LastWrite::Unchanged;
                Step::ReadAgain { waits: true }
            }
            Meaning::Gone => kept(Kept::Gone),
            Meaning::Rejected(rejection) => self.rejected(rejection),
            Meaning::Forbidden(verb) => Step::AskOthers(verb),
            Meaning::Stop(stop) => self.stop(stop),
            Meaning::Again(Some(Outcome::Harmful { .. } | Outcome::NeedsRewrite)) => {
                kept(Kept::Held(Withheld::Owned))
            }
            // Whatever admission changes beside the defaults, a read shows whether they are there.
            Meaning::Again(_) | Meaning::Mutated { .. } | Meaning::Followed(_) => {
                Step::ReadAgain { waits: true }
            }
        }
    }

    fn read(&mut self, again: Again) -> Step<Rest> {
        let fresh = match (again, &self.last) {
            (Again::Read(fresh), _) => *fresh,
            (Again::Gone, _) => return kept(Kept::Gone),
            (Again::Unanswered, LastWrite::Changed(_)) if self.attempts == ATTEMPTS => {
                return kept(Kept::Unknown);
            }
            (Again::Unanswered, LastWrite::Changed(_)) => {
                self.attempts += 1;
                return Step::ReadAgain { waits: true };
            }
            (Again::Unanswered, _) => {
                self.last = LastWrite::Nothing;
                return Step::Done(Rest::Lacking);
            }
        };
        let is_same = |resource_version: &str| fresh.resource_version() == resource_version;
        self.last = match &self.last {
            // It lacks the defaults as before: no other client has stored them.
            LastWrite::Unchanged if is_same(self.object.resource_version()) => {
                return kept(Kept::Rejected(NOT_KEPT.to_owned()));
            }
            LastWrite::Changed(ours) => {
                let is_ours = is_same(ours);
                let managers = if is_ours { harmed(&self.object, &fresh) } else { Vec::new() };
                if !managers.is_empty() {
                    return self.stop(Stop::OwnersLost(managers));
                }
                LastWrite::Read { is_ours }
            }
            LastWrite::Nothing | LastWrite::Unchanged | LastWrite::Read { .. } => LastWrite::Nothing,
        };
        self.object = fresh;
        Step::Done(Rest::Lacking)
    }

    fn rejected(&mut self, rejection: Rejection) -> Step<Rest> {
        kept(match rejection.kind {
            RejectionKind::Unavailable => Kept::Unanswered(rejection.message),
            _ => Kept::Rejected(rejection.message),
        })
    }

    fn unknown(&mut self) -> Step<Rest> {
        kept(Kept::Unknown)
    }
}

fn kept(kept: Kept) -> Step<Rest> {
    Step::Done(Rest::Kept(kept))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::crd::sample::{things, with_spec};
    use crate::plan::Proof;
    use crate::rbac::Verb;

    /// An object at this resource version, of which the user owns these fields below `spec`.
    fn object(resource_version: &str, fields: Value) -> Object {
        let owner = json!({
            "manager": "user", "operation": "Update", "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": { "f:spec": fields },
        });
        Object::from(json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "spec": { "ext": { "a": 1 } },
            "metadata": {
                "name": "n", "uid": "u", "resourceVersion": resource_version, "managedFields": [owner],
            },
        }))
    }

    fn own() -> Value {
        json!({ "f:ext": { "f:a": {} } })
    }

    fn default() -> Vec<Change> {
        vec![Change::Add { path: "/spec/ext/b".to_owned(), value: json!(2).into() }]
    }

    /// A machine whose object lacks a default, and is about to be written.
    fn writing() -> EmbedMachine {
        let ext = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let crd = Arc::new(things(with_spec(json!({ "ext": ext }))));
        let (mut machine, step) = EmbedMachine::begin(crd, Arc::default(), object("7", own()));
        assert!(matches!(step, Step::Done(Rest::Lacking)), "{step:?}");
        assert!(matches!(machine.lacks(&default(), None), Step::Write) && machine.planned().is_some());
        machine
    }

    fn read(resource_version: &str) -> Again {
        Again::Read(Box::new(object(resource_version, own())))
    }

    fn written() -> Outcome {
        Outcome::Written { resource_version: "8".to_owned(), proof: Proof::WriteAnswered }
    }

    fn rejection(kind: RejectionKind) -> Rejection {
        Rejection { kind, message: "no".to_owned(), fields: Vec::new() }
    }

    #[track_caller]
    fn rests(step: &Step<Rest>, expected: &Rest) {
        assert!(matches!(step, Step::Done(rest) if rest == expected), "{step:?}, not {expected:?}");
    }

    #[track_caller]
    fn ends(step: &Step<Rest>, expected: Kept) {
        rests(step, &Rest::Kept(expected));
    }

    #[test]
    fn each_outcome_ends_it_or_has_the_object_read_again() {
        let no = || "no".to_owned();
        for (outcome, expected) in [
            (Outcome::Gone, Kept::Gone),
            (Outcome::Rejected(rejection(RejectionKind::Admission)), Kept::Rejected(no())),
            (Outcome::Rejected(rejection(RejectionKind::Unavailable)), Kept::Unanswered(no())),
            (Outcome::Harmful { managers: vec!["user".to_owned()] }, Kept::Held(Withheld::Owned)),
            (Outcome::NeedsRewrite, Kept::Held(Withheld::Owned)),
        ] {
            ends(&writing().wrote(Some(outcome)), expected);
        }
        for (outcome, must_wait) in [
            (Some(written()), false),
            (Some(Outcome::AlreadyStored(Proof::WriteChangedNothing)), true),
            (Some(Outcome::Conflict), true),
            (Some(Outcome::IdentityWritten), true),
            (Some(Outcome::Unproved), true),
            (Some(Outcome::Altered), true),
            (Some(Outcome::Mutated { resource_version: "8".to_owned() }), true),
            (None, true),
        ] {
            let step = writing().wrote(outcome);
            assert!(matches!(step, Step::ReadAgain { waits } if waits == must_wait), "{step:?}");
        }
        for (outcome, expected) in [
            (Outcome::OwnersLost { managers: Vec::new() }, Stop::OwnersLost(Vec::new())),
            (Outcome::FieldsDropped { paths: Vec::new() }, Stop::FieldsDropped(Vec::new())),
            (Outcome::CrdChanged, Stop::CrdChanged),
        ] {
            let step = writing().wrote(Some(outcome));
            assert!(matches!(&step, Step::Stop(stop) if *stop == expected), "{step:?}");
        }
    }

    #[test]
    fn what_would_break_a_rule_is_not_written() {
        let mut machine = writing();
        machine.wrote(Some(Outcome::Conflict));
        rests(&machine.read(read("8")), &Rest::Lacking);
        let breaks = "spec.rules[0] at .spec".to_owned();
        ends(&machine.lacks(&default(), Some(breaks.clone())), Kept::Breaks(breaks));
    }

    #[test]
    fn only_a_read_after_the_write_proves_it() {
        let mut machine = writing();
        machine.wrote(Some(written()));
        assert!(matches!(machine.read(Again::Unanswered), Step::ReadAgain { waits: true }));
        rests(&machine.read(read("8")), &Rest::Lacking);
        ends(&machine.lacks(&[], None), Kept::Stored);
        assert!(machine.has_written() && machine.into_object().resource_version() == "8");

        let mut machine = writing();
        machine.wrote(Some(written()));
        machine.read(read("8"));
        ends(&machine.lacks(&default(), None), Kept::Rejected(NOT_KEPT.to_owned()));

        // Another client has written since, so that nothing is known of what the server keeps.
        let mut machine = writing();
        machine.wrote(Some(written()));
        machine.read(read("9"));
        assert!(matches!(machine.lacks(&default(), None), Step::ReadAgain { waits: true }));
        rests(&machine.read(read("10")), &Rest::Lacking);
        assert!(matches!(machine.lacks(&default(), None), Step::Write));
    }

    #[test]
    fn an_owner_that_the_write_has_changed_ends_all_writes_and_one_that_another_client_changed_does_not() {
        for (resource_version, is_ours) in [("8", true), ("9", false)] {
            let mut machine = writing();
            machine.wrote(Some(written()));
            let step = machine.read(Again::Read(Box::new(object(resource_version, json!({})))));
            match is_ours {
                true => {
                    assert!(matches!(step, Step::Stop(Stop::OwnersLost(managers)) if managers == ["user"]))
                }
                false => rests(&step, &Rest::Lacking),
            }
        }
    }

    #[test]
    fn a_write_that_changes_nothing_is_not_kept_unless_another_client_has_written() {
        let stored = || Some(Outcome::AlreadyStored(Proof::WriteChangedNothing));
        let mut machine = writing();
        machine.wrote(stored());
        ends(&machine.read(read("7")), Kept::Rejected(NOT_KEPT.to_owned()));
        for again in [read("8"), Again::Unanswered] {
            let mut machine = writing();
            machine.wrote(stored());
            rests(&machine.read(again), &Rest::Lacking);
            assert!(matches!(machine.lacks(&default(), None), Step::Write));
        }
    }

    #[test]
    fn after_some_attempts_nothing_is_known() {
        let mut machine = writing();
        for attempt in 1..=ATTEMPTS {
            assert_eq!(machine.attempts(), attempt);
            machine.wrote((attempt % 2 == 0).then_some(Outcome::Conflict));
            let again = if attempt == 1 { Again::Unanswered } else { read("8") };
            rests(&machine.read(again), &Rest::Lacking);
            let step = machine.lacks(&default(), None);
            match attempt == ATTEMPTS {
                true => ends(&step, Kept::Unknown),
                false => assert!(matches!(step, Step::Write), "{step:?}"),
            }
        }
        let mut machine = writing();
        machine.wrote(Some(written()));
        for _ in 1..ATTEMPTS {
            assert!(matches!(machine.read(Again::Unanswered), Step::ReadAgain { waits: true }));
        }
        ends(&machine.read(Again::Unanswered), Kept::Unknown);
        let mut machine = writing();
        machine.wrote(Some(written()));
        ends(&machine.read(Again::Gone), Kept::Gone);
    }

    #[test]
    fn a_refusal_of_one_object_is_its_own_and_one_of_all_ends_the_writes() {
        for may in [Some(true), Some(false), None] {
            let mut machine = writing();
            let step = machine.wrote(Some(Outcome::Forbidden { verb: Verb::Patch }));
            assert!(matches!(step, Step::AskOthers(Verb::Patch)), "{step:?}");
            let step = machine.may_write_others(Verb::Patch, may);
            match may {
                Some(true) => ends(&step, Kept::Rejected(Rejection::forbidden(Verb::Patch).message)),
                Some(false) => assert!(matches!(step, Step::Stop(Stop::Forbidden(Verb::Patch)))),
                None => ends(&step, Kept::Unknown),
            }
        }
    }
}
