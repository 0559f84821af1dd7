//! What an audit counts and lists of one CRD.

use etch_core::api::{DefaultsReportStatus, ObjectProblem};
use etch_core::audit::{Exact, Lacking, Missing, State, Totals, overall};
use etch_core::crd::Crd;
use etch_core::object::{Identity, Object};
use etch_core::obstacle::rejection;
use etch_core::plan::{Held, Prediction, Record, Skip, predict};
use etch_core::prediction::{PendingChanges, deciding};
use etch_core::scope::Scope;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;
use kube_structural_schema::schema::rules::crd::judge;
use serde_json::{Value, json};

use super::unknown::{Unknown, Unwritable};
use crate::failures::{self, Failure};
use crate::policy::Rules;
use crate::sample::Sample;
use crate::scope;

/// What is reported of one CRD.
#[derive(Default)]
pub struct Audited {
    /// Its name.
    pub(super) crd: String,
    /// Its storage version; `None` if it cannot be read.
    pub(super) storage_version: Option<String>,
    /// The numbers of its objects.
    pub totals: Totals,
    /// The first objects that are not, or not for certain, as they should be.
    pub(super) details: Sample<Detail>,
    /// Why there are no numbers, or not all.
    pub error: Option<String>,
    /// Whether objects are listed by name.
    pub(super) keep_details: bool,
    /// What is on record of the CRD; nothing where only a snapshot is looked at.
    pub record: Record,
    /// The report on the CRD, where it was read.
    pub report: Option<DefaultsReportStatus>,
    /// What would come of writing its unknown objects.
    pub(super) unknown: Unknown,
    /// How the operator treats the objects.
    pub rules: Rules,
    /// The changed defaults whose old values are still to be looked for.
    pub due: Option<PendingChanges>,
    /// Why its schema is not structural, where it is not: the operator writes none of its objects.
    pub(super) non_structural: Option<String>,
}

/// An object that is not, or not for certain, as it should be.
#[derive(Default)]
pub(super) struct Detail {
    /// The defaults that etcd does not hold, or may not hold.
    pub(super) missing: Vec<Missing>,
    /// Why a write would do harm, if it would.
    pub(super) held: Option<Held>,
    /// Why Etch skips it, if it does.
    pub(super) skipped: Option<Skip>,
    /// Why the operator's last write was rejected, where the report has it.
    pub(super) rejected: Option<String>,
    /// Values that move to a changed default.
    pub(super) follows: Vec<Path>,
    /// Fields that only etcd holds.
    pub(super) hidden: Vec<Path>,
    /// Why nothing is known of it, if that is so.
    pub(super) unreadable: Option<String>,
}

impl Audited {
    /// A CRD before its objects are looked at. `limit` is how many of them are listed by name, if they are;
    /// `None` for all.
    pub fn new(crd: &Crd, document: &Json, rules: Rules, keep_details: bool, limit: Option<usize>) -> Self {
        Self {
            crd: crd.name().to_owned(),
            storage_version: Some(crd.storage().name.clone()),
            details: Sample::new(limit),
            keep_details,
            rules,
            non_structural: judge(&document["spec"]).message(),
            ..Self::default()
        }
    }

    /// A CRD that cannot be read.
    pub fn failed(name: &str, error: String) -> Self {
        Self { crd: name.to_owned(), error: Some(error), ..Self::default() }
    }

    /// Whether it failed before anything was read.
    pub fn is_nothing(&self) -> bool {
        self.error.is_some() && self.totals.objects == 0
    }

    /// Counts an object, and lists it where there is something to list.
    fn add(&mut self, crd: &Crd, object: &Object, missing: Vec<Missing>, hidden: Vec<Path>) {
        let prediction = self.prediction(crd, object, missing.is_empty());
        let held = prediction.as_ref().and_then(|prediction| prediction.held().cloned());
        let follows = prediction.map(|prediction| prediction.moved).unwrap_or_default();
        self.totals.following += u64::from(!follows.is_empty());
        let skipped = self.rules.terms().skip(object);
        self.totals.add(&missing, held.is_some(), skipped);
        self.totals.hidden += u64::from(!hidden.is_empty());
        let rejected = rejection(self.report.as_ref(), crd, object).filter(|_| !missing.is_empty());
        let rejected = rejected.map(ObjectProblem::in_words);
        if overall(&missing) == State::Unknown {
            // The exceptions of a report may also be objects that the policy, a pause or a canary left open.
            let is_exception = self.report.is_none() && self.record.exceptions.contains(object.uid());
            let is_refused = rejected.is_some() || is_exception;
            let unwritable = match () {
                () if skipped.is_some() || self.non_structural.is_some() => Some(Unwritable::Skipped),
                () if held.is_some() => Some(Unwritable::Held),
                () if is_refused => Some(Unwritable::Refused(rejected.as_deref())),
                () => None,
            };
            self.unknown.add(&self.crd, &object.identity(), unwritable);
        }
        let is_plain = missing.is_empty() && hidden.is_empty() && follows.is_empty();
        if self.keep_details && !(is_plain && held.is_none() && skipped.is_none()) {
            let detail = Detail { missing, held, skipped, rejected, follows, hidden, unreadable: None };
            self.details.add(object.identity(), detail);
        }
    }

    /// What the operator does with an object, as far as it looks at it; `None` if there is nothing to decide.
    fn prediction(&self, crd: &Crd, object: &Object, is_stored: bool) -> Option<Prediction> {
        let changes = self.due.as_ref().map_or(&[][..], |due| due.of(object));
        if self.rules.is_ignored() || is_stored && changes.is_empty() {
            return None;
        }
        let record = deciding(&self.record, self.report.as_ref());
        Some(predict(object, crd, &self.rules.terms(), &record, changes))
    }

    /// Records what is known about an object, or why nothing is.
    pub fn take(&mut self, crd: &Crd, identity: Identity, exact: Result<Exact, String>) {
        match exact {
            Ok(exact) => self.add(crd, &exact.object, exact.missing, exact.hidden),
            Err(unreadable) => {
                self.totals.add_unreadable();
                if !self.keep_details {
                    return;
                }
                let detail = Detail { unreadable: Some(unreadable), ..Detail::default() };
                self.details.add(identity, detail);
            }
        }
    }

    /// For programs.
    fn document(&self) -> Value {
        let Totals {
            objects,
            stored,
            phantom,
            unknown,
            unreadable,
            held,
            ignored,
            terminating,
            too_deep,
            not_selected,
            following,
            hidden,
            paths,
        } = &self.totals;
        let mut document = json!({
            "crd": self.crd,
            "storageVersion": self.storage_version,
            "policy": self.rules.document(),
            "objects": objects,
            "stored": stored,
            "phantom": phantom,
            "unknown": unknown,
            "held": held,
            "ignored": ignored,
            "terminating": terminating,
            "tooDeep": too_deep,
            "notSelected": not_selected,
            "following": following,
            "hidden": hidden,
            "unreadable": unreadable,
            "paths": paths
                .iter()
                .map(|(path, Lacking { missing, unknown })| {
                    json!({ "path": path.to_string(), "missing": missing, "unknown": unknown })
                })
                .collect::<Vec<_>>(),
        });
        if self.keep_details {
            document["details"] =
                self.details.iter().map(|(identity, detail)| detail.document(identity)).collect();
        }
        if let Some(violations) = &self.non_structural {
            document["nonStructural"] = Value::from(violations.as_str());
        }
        if let Some(error) = &self.error {
            document["error"] = Value::from(error.as_str());
        }
        document
    }
}

impl Detail {
    /// The state in a word.
    pub(super) fn state(&self) -> &'static str {
        match &self.unreadable {
            Some(_) => "unreadable",
            None => match overall(&self.missing) {
                State::Gap => State::Phantom.as_str(),
                state => state.as_str(),
            },
        }
    }

    fn document(&self, identity: &Identity) -> Value {
        let Identity { namespace, name, uid: _ } = identity;
        let Self { missing, held, skipped, rejected, follows, hidden, unreadable } = self;
        let texts = |paths: &[Path]| paths.iter().map(Path::to_string).collect::<Vec<_>>();
        json!({
            "namespace": namespace,
            "name": name,
            "state": self.state(),
            "defaults": missing
                .iter()
                .map(|missing| json!({ "path": missing.path.to_string(), "state": missing.state.as_str() }))
                .collect::<Vec<_>>(),
            "held": held.as_ref().map(|held| json!({
                "reason": held.reason.as_str(), "paths": texts(&held.paths),
                "broken": held.broken.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })),
            "rejected": rejected,
            "ignored": skipped.is_some_and(Skip::is_by_annotation),
            "terminating": *skipped == Some(Skip::Terminating),
            "tooDeep": *skipped == Some(Skip::TooDeep),
            "notSelected": *skipped == Some(Skip::NotSelected),
            "follows": texts(follows),
            "hidden": texts(hidden),
            "unreadable": unreadable,
        })
    }
}

/// Of all CRDs, for programs.
pub fn document(all: &[Audited], scope: &Scope) -> Value {
    scope::in_document(json!({ "crds": all.iter().map(Audited::document).collect::<Vec<_>>() }), scope)
}

/// What went wrong with each CRD.
pub fn failed(all: &[Audited], scope: &Scope) -> Vec<String> {
    let failures = all.iter().filter_map(|audited| {
        let error = audited.error.clone()?;
        Some(Failure { crd: audited.crd.clone(), error, resume: String::new() })
    });
    failures::lines(failures.collect(), scope)
}

#[cfg(test)]
mod tests {
    use etch_core::plan::Exceptions;

    use super::*;

    fn crd() -> Crd {
        let spec = json!({ "type": "object", "properties": { "size": { "type": "integer", "default": 1 } } });
        let document = json!({
            "metadata": { "name": "things.example.com" },
            "spec": {
                "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } } }],
            },
        });
        Crd::read(&document.into()).expect("a CRD")
    }

    /// What is advised after an audit of one object that shows the default and has the uid `1`.
    fn advice(audited: Audited, state: State) -> String {
        let mut audited = Audited { crd: "things.example.com".to_owned(), ..audited };
        let object = Object::from(json!({ "metadata": { "name": "a", "uid": "1" }, "spec": { "size": 1 } }));
        let missing = Missing { path: Path::root(), state };
        audited.add(&crd(), &object, vec![missing], Vec::new());
        let mut out = Vec::new();
        Unknown::write([&audited.unknown].into_iter(), false, &mut out).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_pass_is_advised_unless_it_was_refused_the_object() {
        let persist = "run `etch persist`";
        let refused =
            "The last pass was refused the write of 1 unknown object, or held it: things.example.com a";
        let report = |uid: &str| DefaultsReportStatus {
            digest: crd().digest(),
            rejected: vec![ObjectProblem {
                uid: uid.to_owned(),
                message: "webhook w refused it".to_owned(),
                ..ObjectProblem::default()
            }],
            ..DefaultsReportStatus::default()
        };
        let record =
            |uid: &str| Record { exceptions: Exceptions::from_iter([uid.to_owned()]), ..Record::default() };
        assert!(advice(Audited::default(), State::Unknown).contains(persist));
        let named = advice(Audited { report: Some(report("1")), ..Audited::default() }, State::Unknown);
        assert!(named.contains(&format!("{refused} (webhook w refused it).")) && !named.contains(persist));
        let other = Audited { report: Some(report("2")), record: record("1"), ..Audited::default() };
        assert!(advice(other, State::Unknown).contains(persist), "a report has other exceptions");
        let by_hand = advice(Audited { record: record("1"), ..Audited::default() }, State::Unknown);
        assert!(by_hand.contains(&format!("{refused}.")) && !by_hand.contains(persist));
        let structure = Some("a violation".to_owned());
        let not_structural = Audited { non_structural: structure, ..Audited::default() };
        assert!(!advice(not_structural, State::Unknown).contains(persist));
        let known = advice(Audited { report: Some(report("1")), ..Audited::default() }, State::Phantom);
        assert!(!known.contains("refused"), "{known}");
    }
}
