//! Values that may not be stored: a server that lags behind shows what a changed default gave before, and any
//! write through it stores that (fact R6).

use serde_json::{Value, json};

use super::follow::{self, Change};
use super::{Doubt, Strategy, Write, body};
use crate::object::Object;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};

/// The most places that one dry run checks: a server accepts a JSON patch of 10,000 operations.
const MOST: usize = 4_000;

/// The write, preceded by a dry run if the object shows, at a place that the write does not move, the
/// previous value of a changed default.
///
/// The dry run tests the value and removes it, in one request (fact W23). A server that answers with the new
/// default there, or without a value if there is none now, fills that in, and showed the old value all the
/// same: so etcd holds it. A server that answers with the same value lags behind, and one where the test
/// fails never showed it; any other value is one that admission has set, and proves neither. Then nothing is
/// written, and Etch reads the object again. If the dry run is refused, nothing is proved, and the write
/// follows.
///
/// A rewrite that begins with the identity alone ends with that: the object shows more defaults then, and
/// Etch decides about it again.
///
/// For the time in which servers may lag behind. Of more than 4,000 such places, the first are checked; those
/// below `status`, and those of items of lists, are not.
#[must_use]
pub fn with_lag_check(write: Write, object: &Object, changes: &[Change]) -> Write {
    let moved = if write.strategy == Strategy::Follow { &write.missing[..] } else { &[] };
    let is_moved = |place: &Path| moved.iter().any(|moved| moved.contains(place));
    let may_be_removed = |place: &Path| match place.steps() {
        // A write of the object leaves the subresource alone.
        [Step::Field(first), ..] if first == "status" => false,
        // An item cannot be taken out of a list without moving the others.
        [.., Step::Index(_)] => false,
        _ => true,
    };
    let shown = follow::shown_past(object, changes).into_iter();
    let doubtful = shown
        .filter(|(place, _)| may_be_removed(place) && !is_moved(place))
        .map(|(place, default)| Doubt { place, default: default.cloned() })
        .take(MOST)
        .collect();
    Write { doubtful, decides_again: !changes.is_empty(), ..write }
}

/// The body of the dry run.
pub(super) fn dry_run(object: &Object, doubtful: &[Doubt]) -> Json {
    let mut operations = body::of_this(object);
    for Doubt { place, .. } in doubtful {
        let pointer = place.pointer();
        let value = object.json().pointer(&pointer).cloned().unwrap_or_default();
        operations.push(json!({ "op": "test", "path": pointer, "value": value }));
        operations.push(json!({ "op": "remove", "path": pointer }));
    }
    Json::from(Value::from(operations))
}

/// Whether the answer to the dry run shows that etcd holds the values
/// ([`super::Proof::DryRunShowsNewDefault`]).
pub(super) fn are_stored(answer: &Object, doubtful: &[Doubt]) -> bool {
    doubtful.iter().all(|Doubt { place, default }| follow::shows(answer, place, default.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, PatchKind, Request, Terms, WriteMachine, changes, past_of};
    use super::super::{Step as Next, rewritten};
    use super::*;
    use crate::crd::Crd;
    use crate::crd::sample::{things, with_spec};
    use crate::refusal::Refusal;

    fn crd(size: Value) -> Crd {
        things(with_spec(json!({ "size": size, "note": { "type": "string", "default": "n" } })))
    }

    fn object(spec: Value) -> Object {
        let metadata = json!({ "name": "a", "uid": "u", "resourceVersion": "7" });
        Object::from(json!({ "metadata": metadata, "spec": spec }))
    }

    /// The CRD whose default has changed from 1 to 5, and that change.
    fn changed() -> (Crd, Vec<Change>) {
        let default = |value| crd(json!({ "type": "integer", "default": value }));
        let (old, new) = (default(1), default(5));
        let changes = changes(&past_of(&old), &new, &[]);
        (new, changes)
    }

    fn merge(object: &Object) -> Write {
        Write::new(Strategy::Merge, body::merge(object), Vec::new())
    }

    /// What happens to an object that shows `spec`, where the default has changed from 1 to 5.
    fn begun(spec: Value, then: impl FnOnce(WriteMachine<'_>, Request)) {
        let (new, changes) = changed();
        let object = object(spec);
        let (write, terms) = (with_lag_check(merge(&object), &object, &changes), Terms::default());
        let (machine, request) = WriteMachine::begin(&new, &object, &write, &terms);
        then(machine, request);
    }

    #[test]
    fn after_the_identity_ahead_of_a_rewrite_the_object_is_decided_about_again() {
        let (new, changes) = changed();
        let (object, terms) = (object(json!({ "note": "n" })), Terms::default());
        let apply = Write { prove: true, ..Write::new(Strategy::Apply, body::merge(&object), Vec::new()) };
        let rewrite = rewritten(&object, &new, &terms, &apply);
        let stored = || {
            let mut json = object.json().clone();
            (json["spec"]["size"], json["metadata"]["resourceVersion"]) = (1.into(), "8".into());
            Object::from(json)
        };
        for (changes, is_over) in [(changes, true), (Vec::new(), false)] {
            let write = with_lag_check(rewrite.clone(), &object, &changes);
            let (mut machine, request) = WriteMachine::begin(&new, &object, &write, &terms);
            assert_eq!(request.kind, PatchKind::Apply, "the identity alone");
            let next = machine.answered(stored());
            assert_eq!(matches!(next, Next::Done(Outcome::IdentityWritten)), is_over, "{next:?}");
        }
    }

    #[test]
    fn a_place_that_was_missing_when_an_apply_was_refused_is_doubtful_where_it_shows_an_old_default_now() {
        let (_, changes) = changed();
        let object = object(json!({ "size": 1 }));
        let place: Path = ".spec.size".parse().expect("a path");
        let doubt = Doubt { place: place.clone(), default: Some(Json::from(json!(5))) };
        for (strategy, doubtful) in [(Strategy::Rewrite, vec![doubt]), (Strategy::Follow, Vec::new())] {
            let write =
                Write { prove: true, ..Write::new(strategy, body::merge(&object), vec![place.clone()]) };
            let write = with_lag_check(write, &object, &changes);
            assert_eq!(write.doubtful, doubtful, "{strategy:?}");
        }
    }

    #[test]
    fn what_no_default_gave_is_written_at_once() {
        for size in [json!(5), json!(9)] {
            begun(json!({ "size": size, "note": "n" }), |_, first| assert_eq!(first.kind, PatchKind::Json));
        }
    }

    #[test]
    fn a_server_that_fills_in_something_else_shows_what_is_stored() {
        begun(json!({ "size": 1, "note": "n" }), |mut machine, first| {
            assert_eq!(first.kind, PatchKind::DryRun);
            let asked = json!([
                { "op": "replace", "path": "/metadata/uid", "value": "u" },
                { "op": "replace", "path": "/metadata/resourceVersion", "value": "7" },
                { "op": "test", "path": "/spec/size", "value": 1 },
                { "op": "remove", "path": "/spec/size" },
            ]);
            assert_eq!(first.body, Json::from(asked));
            let next = machine.answered(object(json!({ "size": 5, "note": "n" })));
            assert!(matches!(next, Next::Send(Request { kind: PatchKind::Json, .. })), "{next:?}");
        });
    }

    #[test]
    fn a_default_that_is_gone_is_shown_by_an_answer_without_a_value() {
        let (old, new) = (crd(json!({ "type": "integer", "default": 1 })), crd(json!({ "type": "integer" })));
        let shown = object(json!({ "size": 1, "note": "n" }));
        let write = with_lag_check(merge(&shown), &shown, &changes(&past_of(&old), &new, &[]));
        assert!(are_stored(&object(json!({ "note": "n" })), &write.doubtful));
        assert!(!are_stored(&object(json!({ "size": 2, "note": "n" })), &write.doubtful));
    }

    #[test]
    fn a_value_that_admission_sets_in_the_answer_proves_nothing() {
        begun(json!({ "size": 1, "note": "n" }), |mut machine, _| {
            let next = machine.answered(object(json!({ "size": 9, "note": "n" })));
            assert!(matches!(next, Next::Done(Outcome::Conflict)), "{next:?}");
        });
    }

    #[test]
    fn nothing_is_written_where_a_server_lags_behind_or_shows_something_else() {
        begun(json!({ "size": 1, "note": "n" }), |mut machine, _| {
            let next = machine.answered(object(json!({ "size": 1, "note": "n" })));
            assert!(matches!(next, Next::Done(Outcome::Conflict)), "{next:?}");
        });
        begun(json!({ "size": 1, "note": "n" }), |mut machine, _| {
            let next = machine.refused(Refusal::read(422, None, b"{}"));
            assert!(matches!(next, Next::Done(Outcome::Conflict)), "{next:?}");
        });
        begun(json!({ "size": 1, "note": "n" }), |mut machine, _| {
            let next = machine.refused(Refusal::read(503, None, b""));
            assert!(matches!(next, Next::Failed(_)), "{next:?}");
        });
    }

    #[test]
    fn where_the_value_cannot_be_taken_away_nothing_is_proved_and_the_write_goes_on() {
        let invalid =
            br#"{ "reason": "Invalid", "details": { "name": "a", "causes": [{ "field": "spec.size" }] } }"#;
        begun(json!({ "size": 1, "note": "n" }), |mut machine, _| {
            let next = machine.refused(Refusal::read(422, None, invalid));
            assert!(matches!(next, Next::Send(Request { kind: PatchKind::Json, .. })), "{next:?}");
        });
    }
}
