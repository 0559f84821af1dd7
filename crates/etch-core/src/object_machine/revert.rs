//! One object on its way to lose what passes have stored in it, after a CRD was rolled back.
//! [`Unstorable`] decides what goes.

use std::sync::Arc;

use super::machine::Meaning;
use super::{ATTEMPTS, Again, Machine, Step};
use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{Outcome, Plan, Rejection, Terms, Unstorable, Unstoring, Write};
use kube_structural_schema::path::Path;

const NO_ANSWER: &str = "the API server did not answer";

/// The outcome for one object.
#[derive(Clone, Debug, Default)]
pub struct Reverted {
    /// The places that went, in the object's own terms.
    pub removed: Vec<Path>,
    /// What is left: what would be removed and what stays, as it was decided last.
    pub left: Unstoring,
    /// Why what would be removed was not.
    pub failure: Option<Failure>,
    /// Whether the object is gone.
    pub is_gone: bool,
}

/// Why a write did not remove what it should.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The server or admission refused it.
    Rejected(Rejection),
    /// Others wrote each time, the server filled the value in again, or it did not answer: nothing is known.
    Unknown(&'static str),
}

/// One object on its way; see [`Self::into_reverted`] for what it comes to.
#[derive(Clone, Debug)]
pub struct RevertMachine {
    crd: Arc<Crd>,
    unstorable: Arc<Unstorable>,
    /// Whether values are removed; otherwise they are only found.
    removes: bool,
    object: Object,
    reverted: Reverted,
    /// How many writes were to be tried again.
    failures: u32,
}

impl RevertMachine {
    /// Begins with an object as it was read. Unless it `removes` values, that is all.
    pub fn begin(
        crd: Arc<Crd>,
        unstorable: Arc<Unstorable>,
        removes: bool,
        object: Object,
    ) -> (Self, Step<()>) {
        let reverted = Reverted::default();
        let mut machine = Self { crd, unstorable, removes, object, reverted, failures: 0 };
        let step = machine.decide();
        (machine, step)
    }

    /// What it came to, or how far if it was stopped.
    pub fn into_reverted(self) -> Reverted {
        self.reverted
    }

    fn decide(&mut self) -> Step<()> {
        self.reverted.left = self.unstorable.decide(&self.object, &self.crd, &Terms::default());
        match self.planned() {
            Some(_) if self.removes => Step::Write,
            _ => Step::Done(()),
        }
    }

    fn gone(&mut self) -> Step<()> {
        self.reverted.is_gone = true;
        Step::Done(())
    }

    fn failed(&mut self, failure: Failure) -> Step<()> {
        self.reverted.failure = Some(failure);
        Step::Done(())
    }
}

impl Machine for RevertMachine {
    type End = ();

    fn object(&self) -> &Object {
        &self.object
    }

    fn planned(&self) -> Option<&Write> {
        match &self.reverted.left.plan {
            Some(Plan::Write(write)) => Some(write),
            _ => None,
        }
    }

    fn attempts(&self) -> u32 {
        self.failures + 1
    }

    fn wrote(&mut self, outcome: Option<Outcome>) -> Step<()> {
        let why = match Meaning::from(outcome) {
            Meaning::Followed(after) => {
                self.reverted.removed.append(&mut self.reverted.left.removed);
                self.object = *after;
                return self.decide();
            }
            Meaning::Gone => return self.gone(),
            Meaning::Rejected(rejection) => return self.rejected(rejection),
            Meaning::Mutated { .. } => return self.rejected(Rejection::mutated()),
            Meaning::Forbidden(verb) => return Step::AskOthers(verb),
            Meaning::Stop(stop) => return self.stop(stop),
            Meaning::Again(Some(Outcome::Unproved)) => {
                "the API server, or admission, fills the value in again; an API server may lag behind the CRD"
            }
            Meaning::Again(None) => NO_ANSWER,
            Meaning::Again(Some(_)) | Meaning::Written { .. } | Meaning::AlreadyStored => {
                "others write the object at the same time"
            }
        };
        self.failures += 1;
        match self.failures == ATTEMPTS {
            true => self.failed(Failure::Unknown(why)),
            false => Step::ReadAgain { waits: true },
        }
    }

    fn read(&mut self, again: Again) -> Step<()> {
        match again {
            Again::Read(fresh) => self.object = *fresh,
            Again::Gone => return self.gone(),
            // A resource version that is no longer current conflicts.
            Again::Unanswered => {}
        }
        self.decide()
    }

    fn rejected(&mut self, rejection: Rejection) -> Step<()> {
        self.failed(Failure::Rejected(rejection))
    }

    fn unknown(&mut self) -> Step<()> {
        self.failed(Failure::Unknown(NO_ANSWER))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Stop;
    use super::*;
    use crate::crd::sample::{things, with_spec};
    use crate::plan::{Exceptions, RecordedDefault, RejectionKind, StoredDefault};
    use crate::rbac::Verb;

    fn object(resource_version: &str, spec: Value) -> Object {
        let owner = json!({
            "manager": "user", "operation": "Update", "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": { "f:spec": {} },
        });
        Object::from(json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "spec": spec,
            "metadata": {
                "name": "n", "uid": "u", "resourceVersion": resource_version, "managedFields": [owner],
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
        }))
    }

    /// A machine whose object holds a value that a pass has stored, and its first step.
    fn begun(removes: bool) -> (RevertMachine, Step<()>) {
        let crd = things(with_spec(json!({ "size": { "type": "integer" } })));
        let stored = StoredDefault {
            value: json!(5).into(),
            through: 10,
            finished: "2026-01-02T00:00:00Z".parse().expect("a time"),
            exceptions: Exceptions::default(),
        };
        let path = ".spec.size".parse().expect("a path");
        let recorded = RecordedDefault { path, stored: vec![stored], is_too_long: false };
        let unstorable = Arc::new(Unstorable::new(vec![recorded], &crd));
        RevertMachine::begin(Arc::new(crd), unstorable, removes, object("7", json!({ "size": 5 })))
    }

    fn writing() -> RevertMachine {
        let (machine, step) = begun(true);
        assert!(matches!(step, Step::Write) && machine.planned().is_some(), "{step:?}");
        machine
    }

    fn read(spec: Value) -> Again {
        Again::Read(Box::new(object("8", spec)))
    }

    fn places(paths: &[Path]) -> Vec<String> {
        paths.iter().map(Path::to_string).collect()
    }

    #[test]
    fn what_is_only_shown_is_not_written() {
        let (machine, step) = begun(false);
        assert!(matches!(step, Step::Done(())), "{step:?}");
        let Reverted { removed, left, failure, is_gone } = machine.into_reverted();
        assert_eq!((removed.len(), places(&left.removed)), (0, vec![".spec.size".to_owned()]));
        assert!(failure.is_none() && !is_gone);
    }

    #[test]
    fn it_ends_once_nothing_is_left_to_remove() {
        let mut machine = writing();
        let step = machine.wrote(Some(Outcome::Followed(Box::new(object("8", json!({}))))));
        assert!(matches!(step, Step::Done(())) && machine.object().resource_version() == "8", "{step:?}");
        let Reverted { removed, left, failure, .. } = machine.into_reverted();
        assert_eq!((places(&removed), left.removed.len()), (vec![".spec.size".to_owned()], 0));
        assert!(failure.is_none());
    }

    #[test]
    fn each_outcome_ends_it_or_has_the_object_read_again() {
        let refused =
            Rejection { kind: RejectionKind::Admission, message: "no".to_owned(), fields: Vec::new() };
        for (outcome, expected) in [
            (Outcome::Rejected(refused), RejectionKind::Admission),
            (Outcome::Mutated { resource_version: "8".to_owned() }, RejectionKind::Mutated),
        ] {
            let mut machine = writing();
            assert!(matches!(machine.wrote(Some(outcome)), Step::Done(())));
            let failure = machine.into_reverted().failure;
            assert!(matches!(failure, Some(Failure::Rejected(found)) if found.kind == expected));
        }
        for outcome in [
            Some(Outcome::Conflict),
            Some(Outcome::Unproved),
            Some(Outcome::Altered),
            Some(Outcome::NeedsRewrite),
            None,
        ] {
            let step = writing().wrote(outcome);
            assert!(matches!(step, Step::ReadAgain { waits: true }), "{step:?}");
        }
        let lost = Outcome::OwnersLost { managers: Vec::new() };
        for (outcome, expected) in [
            (lost, Stop::OwnersLost(Vec::new())),
            (Outcome::FieldsDropped { paths: Vec::new() }, Stop::FieldsDropped(Vec::new())),
            (Outcome::CrdChanged, Stop::CrdChanged),
        ] {
            let step = writing().wrote(Some(outcome));
            assert!(matches!(&step, Step::Stop(stop) if *stop == expected), "{step:?}");
        }
        let mut machine = writing();
        assert!(matches!(machine.wrote(Some(Outcome::Gone)), Step::Done(())));
        assert!(machine.into_reverted().is_gone);
        let mut machine = writing();
        machine.wrote(None);
        assert!(matches!(machine.read(Again::Gone), Step::Done(())));
        assert!(machine.into_reverted().is_gone);
    }

    #[test]
    fn after_some_attempts_the_last_reason_is_the_failure() {
        for (outcome, expected) in
            [(None, NO_ANSWER), (Some(()), "the API server, or admission, fills the value in again")]
        {
            let mut machine = writing();
            let mut step = Step::Write;
            for attempt in 1..=ATTEMPTS {
                assert!(matches!(step, Step::Write) && machine.attempts() == attempt, "{step:?}");
                let is_last = attempt == ATTEMPTS;
                let failed = machine.wrote(outcome.filter(|()| is_last).map(|()| Outcome::Unproved));
                assert!(matches!(failed, Step::ReadAgain { waits: true }) != is_last, "{failed:?}");
                let again = if attempt % 2 == 0 { Again::Unanswered } else { read(json!({ "size": 5 })) };
                step = if is_last { failed } else { machine.read(again) };
            }
            assert!(matches!(step, Step::Done(())), "{step:?}");
            let Reverted { left, failure, .. } = machine.into_reverted();
            let Some(Failure::Unknown(why)) = failure else { panic!("{failure:?}") };
            assert!(why.starts_with(expected) && left.removed.len() == 1, "{why}");
        }
    }

    #[test]
    fn what_was_removed_before_it_was_stopped_counts_and_what_was_not_is_left() {
        let mut machine = writing();
        // A server that removes the value, and another client that writes it again.
        machine.wrote(Some(Outcome::Followed(Box::new(object("8", json!({ "size": 5 }))))));
        machine.interrupt();
        let Reverted { removed, left, failure, .. } = machine.into_reverted();
        assert_eq!(
            (places(&removed), places(&left.removed)),
            (vec![".spec.size".to_owned()], vec![".spec.size".to_owned()])
        );
        assert!(matches!(left.plan, Some(Plan::Write(_))) && failure.is_none());
    }

    #[test]
    fn a_refusal_of_one_object_is_its_own_and_one_of_all_ends_the_writes() {
        for may in [Some(true), Some(false), None] {
            let mut machine = writing();
            let step = machine.wrote(Some(Outcome::Forbidden { verb: Verb::Patch }));
            assert!(matches!(step, Step::AskOthers(Verb::Patch)), "{step:?}");
            let step = machine.may_write_others(Verb::Patch, may);
            let failure = machine.into_reverted().failure;
            match may {
                Some(true) => assert!(matches!(failure, Some(Failure::Rejected(_)))),
                Some(false) => assert!(matches!(step, Step::Stop(Stop::Forbidden(Verb::Patch)))),
                None => assert!(matches!(failure, Some(Failure::Unknown(NO_ANSWER)))),
            }
        }
    }
}
