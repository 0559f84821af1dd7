//! Follows changed defaults in one object, before its missing defaults are stored.

use std::sync::Arc;

use crate::crd::Crd;
use crate::object::Object;
use crate::object_state::{ObjectState, StateKind};
use crate::plan::{Change, Held, Hold, Plan, Record, Rejection, Strategy, Terms, Write, follow};
use crate::report::changed_defaults::Followed;
use crate::report::ledger::ObjectLedger;
use kube_structural_schema::path::Path;

/// The outcomes for the changed defaults in one object so far.
#[derive(Clone, Debug)]
pub(crate) struct FollowChanges {
    changes: Arc<[Change]>,
    /// Whether they are still to be followed.
    is_open: bool,
    moved: Vec<Path>,
    kept: Vec<Path>,
    /// The resource version after the last move.
    resource_version: Option<String>,
    rejection: Option<Rejection>,
    /// Why what would be moved is not: it would make the object invalid.
    held: Option<Held>,
}

impl FollowChanges {
    /// Nothing has been done yet.
    pub(crate) fn new(known: &ObjectLedger) -> Self {
        Self {
            changes: known.changes.clone(),
            is_open: known.concerns,
            moved: Vec::new(),
            kept: Vec::new(),
            resource_version: None,
            rejection: None,
            held: None,
        }
    }

    /// What to do next, where `plan` is what is to be done apart from changed defaults: to follow comes
    /// first, unless the write must rewrite the owners. An audit does not follow, and counts what would.
    pub(crate) fn plan(
        &mut self,
        plan: Plan,
        object: &Object,
        crd: &Crd,
        terms: &Terms,
        record: &Record,
        is_audit: bool,
    ) -> Plan {
        let may_follow = match &plan {
            Plan::Stored(_) => true,
            Plan::Write(write) => write.strategy != Strategy::Rewrite || is_audit,
            Plan::Skip(_) | Plan::Hold(_) => false,
        };
        if !self.is_open || !may_follow {
            return plan;
        }
        let following = follow(object, crd, terms, &self.changes, record);
        self.kept = following.kept;
        self.held = None;
        match following.plan {
            Some(Plan::Hold(held)) if held.reason == Hold::InvalidDefaults => {
                self.kept.extend(following.moved);
                self.held = Some(held.without_keys());
                plan
            }
            Some(Plan::Write(_)) if is_audit => {
                self.moved = following.moved;
                plan
            }
            instead => instead.unwrap_or(plan),
        }
    }

    /// Whether there are changes that are still to be followed.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Records what a write has moved.
    pub(crate) fn moved(&mut self, object: &Object, write: &Write) {
        self.moved.extend(write.missing.iter().cloned());
        self.resource_version = Some(object.resource_version().to_owned());
    }

    /// Whether a write has moved values.
    pub(crate) fn has_moved(&self) -> bool {
        self.resource_version.is_some()
    }

    /// Records that a move was rejected; there will be no other.
    pub(crate) fn rejected(&mut self, rejection: Rejection) {
        self.rejection = Some(rejection);
        self.is_open = false;
    }

    /// What was moved, and what is kept beside it, before nothing more could be done.
    pub(crate) fn interrupted(self) -> Option<Followed> {
        let Self { moved, kept, resource_version, .. } = self;
        resource_version.map(|_| Followed { moved, kept, written: true })
    }

    /// The final state of the object, from its state apart from changed defaults; and the outcome for these,
    /// if it is known.
    pub(crate) fn finish(self, state: ObjectState) -> (ObjectState, Option<Followed>) {
        let Self { moved, kept, resource_version, rejection, held, .. } = self;
        let is_known = !matches!(state, ObjectState::Unknown) && rejection.is_none();
        let has_moved = !moved.is_empty();
        let followed = is_known.then(|| Followed { moved, kept, written: resource_version.is_some() });
        let state = match held {
            Some(held) if state.is_stored() => ObjectState::Held(held),
            _ => state,
        };
        let state = match (rejection, resource_version) {
            (Some(rejection), _) if state.is_stored() => ObjectState::Rejected(rejection),
            (None, Some(resource_version)) if state.kind() == StateKind::Stored => {
                ObjectState::Written { resource_version }
            }
            (None, None) if matches!(state, ObjectState::Stored | ObjectState::Unproved) && has_moved => {
                ObjectState::Due
            }
            _ => state,
        };
        (state, followed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::api::{DefaultValue, DefaultsPolicySpec, Policies, PreviousDefaults, assign};
    use crate::crd::sample::{things, with_spec};
    use crate::plan::{Proof, Record};
    use crate::report::changed_defaults::ChangedDefaults;
    use crate::report::ledger::{Found, Ledger};

    fn object(spec: Value) -> Object {
        let owner = json!({
            "manager": "user", "operation": "Update", "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": { "f:spec": {} },
        });
        Object::from(json!({
            "metadata": { "name": "n", "uid": "u", "resourceVersion": "7", "managedFields": [owner] },
            "spec": spec,
        }))
    }

    /// These defaults were 3 before, and the first of them is followed.
    fn changed(crd: &Crd, paths: &[&str]) -> Ledger {
        let before = |path: &&str| DefaultValue {
            path: (*path).to_owned(),
            value: Some("3".to_owned()),
            nullable: false,
        };
        let previous = PreviousDefaults {
            through: Some("5".to_owned()),
            defaults: paths.iter().map(before).collect(),
            ..PreviousDefaults::default()
        };
        let policy = json!({ "onChange": [{ "path": paths[0], "action": "Follow" }] });
        let policy: DefaultsPolicySpec = serde_json::from_value(policy).expect("a policy");
        let policies = Policies::from([("default".to_owned(), policy)]);
        let assigned =
            assign(&policies, "things.example.com", "example.com", &BTreeMap::new(), Duration::ZERO);
        let settings = assigned.expect("it selects all").settings;
        let changes = ChangedDefaults::open(None, &[previous], crd, &settings);
        Ledger { changes, ..Ledger::default() }
    }

    fn stored() -> Plan {
        Plan::Stored(Proof::NothingToFill)
    }

    #[test]
    fn what_a_move_would_break_is_held_without_the_keys_of_maps() {
        let size = json!({ "type": "integer", "default": 5 });
        let rule = json!([{ "rule": "!has(self.size) || self.size < 4" }]);
        let pool =
            json!({ "type": "object", "properties": { "size": size }, "x-kubernetes-validations": rule });
        let crd = things(with_spec(json!({ "pools": { "type": "object", "additionalProperties": pool } })));
        let ledger = changed(&crd, &[".spec.pools{}.size"]);
        let (read, record) = (object(json!({ "pools": { "alice": { "size": 3 } } })), Record::default());
        let mut following = FollowChanges::new(&ledger.of_object(&read, &read.identity(), &record));
        following.plan(stored(), &read, &crd, &Terms::default(), &record, false);
        let (ObjectState::Held(held), _) = following.finish(ObjectState::Stored) else { panic!("not held") };
        let wording = format!("{held:?}");
        assert!(wording.contains("pools") && !wording.contains("alice"), "{wording}");
    }

    #[test]
    fn what_is_kept_beside_a_move_that_was_interrupted_is_counted_once() {
        let size = json!({ "type": "integer", "default": 5 });
        let crd = things(with_spec(json!({ "a": size, "b": size })));
        let mut ledger = changed(&crd, &[".spec.a", ".spec.b"]);
        let (read, record) = (object(json!({ "a": 3, "b": 3 })), Record::default());

        let mut first = FollowChanges::new(&ledger.of_object(&read, &read.identity(), &record));
        let plan = first.plan(stored(), &read, &crd, &Terms::default(), &record, false);
        let Plan::Write(write) = plan else { panic!("{plan:?}") };
        let moved = object(json!({ "a": 5, "b": 3 }));
        first.moved(&moved, &write);
        let found = |followed| Found { followed, ..Found::default() };
        ledger.enter(&read.identity(), found(first.interrupted()));
        let mut again = FollowChanges::new(&ledger.of_object(&moved, &moved.identity(), &record));
        assert_eq!(again.plan(stored(), &moved, &crd, &Terms::default(), &record, false), stored());
        ledger.enter(&moved.identity(), found(again.finish(ObjectState::Stored).1));
        assert_eq!(ledger.changes.summary(), "1 followed a changed default; 1 keeps the previous default");
    }
}
