//! The cases of `cases/`: the states of objects, how they are counted, what the condition shows, and what the
//! report keeps. Each case is also held against the laws: sums agree, nothing grows without bound, no value
//! is shown.

mod laws;
mod rollback;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_structural_schema::finding::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

use super::checkpoint::{Checkpoint, on_record, record_of};
use super::dropped_fields::DroppedFields;
use super::schema::past;
use super::state::{ReportState, Times, object_problem};
use super::tally::Tally;
use crate::api::{Counts, DefaultsReportStatus, Mode, Pause, Settings, StoredVersions, StoredVersionsReport};
use crate::crd::Crd;
use crate::crd::sample::{things, with_spec};
use crate::findings::SchemaFindings;
use crate::message;
use crate::object::Identity;
use crate::object_machine::Rules;
use crate::object_state::{ObjectState, Skipped, StateKind};
use crate::plan::{Broken, Held, Hold, Record, Rejection, RejectionKind, Skip, Terms};
use crate::selection::ObjectSelector;
use kube_structural_schema::path::Path;

/// One object of a case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    name: String,
    state: String,
    /// Of a state `Held`.
    hold: Option<String>,
    /// Of a state `Held`.
    #[serde(default)]
    paths: Vec<String>,
    /// Of a state `Held` for what the object would break.
    #[serde(default)]
    broken: Vec<String>,
    /// Of a state `Rejected`.
    #[serde(default)]
    fields: Vec<String>,
    /// Of a state `Rejected`: whether it is unanswered.
    #[serde(default)]
    unavailable: bool,
    /// Of a state `Ignored`, `Terminating` or `TooDeep`.
    #[serde(default)]
    lacks: bool,
    /// The defaults that were missing.
    #[serde(default)]
    missing: Vec<String>,
}

impl Object {
    fn identity(&self) -> Identity {
        identity(&self.name)
    }

    fn missing(&self) -> Vec<Path> {
        self.missing.iter().map(|path| path.parse().expect("a path")).collect()
    }

    fn state(&self) -> ObjectState {
        let paths = || self.paths.iter().map(|path| path.parse().expect("a path")).collect();
        let broken = self.broken.iter().map(|place| Broken {
            place: place.parse().expect("a path"),
            requirement: "must be less than the limit".to_owned(),
            refused: Refused::Changes,
            judged: None,
        });
        match self.state.as_str() {
            "Stored" => ObjectState::Stored,
            "AlreadyStored" => ObjectState::AlreadyStored,
            "Written" => ObjectState::Written { resource_version: "9".to_owned() },
            "Ignored" => ObjectState::Skipped(Skipped { why: Skip::Ignored, lacks: self.lacks }),
            "Terminating" => ObjectState::Skipped(Skipped { why: Skip::Terminating, lacks: self.lacks }),
            "NotSelected" => ObjectState::Skipped(Skipped { why: Skip::NotSelected, lacks: false }),
            "TooDeep" => ObjectState::Skipped(Skipped { why: Skip::TooDeep, lacks: self.lacks }),
            "Gone" => ObjectState::Gone,
            "Held" => {
                let hold = Hold::ALL.iter().find(|hold| Some(hold.as_str()) == self.hold.as_deref());
                let reason = *hold.expect("a reason to hold");
                ObjectState::Held(Held { reason, paths: paths(), broken: broken.collect() })
            }
            "Rejected" => ObjectState::Rejected(Rejection {
                kind: if self.unavailable { RejectionKind::Unavailable } else { RejectionKind::Admission },
                message: "webhook v.example.com refused it".to_owned(),
                fields: self.fields.clone(),
            }),
            "Due" => ObjectState::Due,
            "Unproved" => ObjectState::Unproved,
            "Unknown" => ObjectState::Unknown,
            other => panic!("no state: {other}"),
        }
    }
}

fn identity(name: &str) -> Identity {
    Identity { namespace: Some("ns".to_owned()), name: name.to_owned(), uid: format!("uid-{name}") }
}

fn tally_of(objects: &[Object]) -> Tally {
    let mut tally = Tally::default();
    objects.iter().for_each(|object| tally.add(object.identity(), object.state(), &object.missing()));
    tally
}

fn settings(mode: Mode, pause: Option<Pause>) -> Settings {
    Settings {
        policy: "default".to_owned(),
        mode,
        terms: Terms::default(),
        settle: Duration::ZERO,
        max_writes_per_second: None,
        stop_after_rejected: None,
        canary: None,
        stored_versions: StoredVersions::default(),
        pause,
        follow: Vec::new(),
        names_paths: false,
    }
}

/// A CRD with the default `.spec.size`.
fn crd() -> Crd {
    things(with_spec(json!({ "size": { "type": "integer", "default": 1 } })))
}

/// The report after a pass up to a resource version, as it comes back from the API server.
fn reported(tally: &Tally, through: u64) -> DefaultsReportStatus {
    let state = ReportState::open(None, &crd(), &settings(Mode::Persist, None), "5", Timestamp::UNIX_EPOCH);
    let times = Times {
        started: Some(Timestamp::UNIX_EPOCH),
        finished: Some(Timestamp::UNIX_EPOCH),
        ..Times::default()
    };
    let status = state.status("AllPersisted", tally, Some(through), times, &DroppedFields::default());
    let sent = serde_json::to_string(&status).expect("JSON");
    serde_json::from_str(&sent).expect("a report")
}

/// The counts that are not zero, by name.
fn numbers(counts: Counts) -> BTreeMap<String, u64> {
    let all: BTreeMap<String, u64> =
        serde_json::from_value(serde_json::to_value(counts).expect("JSON")).expect("numbers");
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// What an object's state is called, and what keeps it from storing its defaults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateCase {
    object: Object,
    kind: String,
    /// Whether the state is the end of a request.
    request: bool,
    /// `Reason: message: paths`; `None` if there is no problem.
    problem: Option<String>,
}

#[test]
fn every_state_has_its_word_its_reason_and_its_sentence() {
    let cases: Vec<StateCase> = serde_json::from_str(include_str!("../cases/states.json")).expect("cases");
    let mut seen = Vec::new();
    for StateCase { object, kind, request, problem } in cases {
        let state = object.state();
        laws::of_a_state(&state);
        assert_eq!((state.kind().as_str(), state.took_request()), (&*kind, request), "{object:?}");
        let found = state.problem().map(|found| {
            let found = object_problem(&object.identity(), found);
            format!("{}: {}: {}", found.reason, found.message, found.paths.join(" "))
        });
        assert_eq!(found, problem, "{object:?}");
        seen.push(state.kind());
    }
    assert!(StateKind::ALL.iter().all(|kind| seen.contains(kind)), "a state has no case: {seen:?}");
}

/// What happens to the objects of a CRD one after the other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TallyCase {
    name: String,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    add: Option<Object>,
    update: Option<Object>,
    create: Option<Object>,
    delete: Option<String>,
    /// Whether the status changes with it; not asked where it is added.
    news: Option<bool>,
    counts: BTreeMap<String, u64>,
    #[serde(default)]
    phantoms: u64,
}

#[test]
fn what_becomes_of_objects_is_counted() {
    let cases: Vec<TallyCase> = serde_json::from_str(include_str!("../cases/tally.json")).expect("cases");
    for TallyCase { name, steps } in cases {
        let mut tally = Tally::default();
        for (index, step) in steps.iter().enumerate() {
            let news = match step {
                Step { add: Some(object), .. } => {
                    tally.add(object.identity(), object.state(), &object.missing());
                    None
                }
                Step { update: Some(object), .. } => {
                    Some(tally.update(&object.identity(), object.state(), &object.missing()))
                }
                Step { create: Some(object), .. } => {
                    Some(tally.created(&object.identity(), object.state(), &object.missing()))
                }
                Step { delete: Some(name), .. } => Some(tally.deleted(&identity(name))),
                step => panic!("{name}: nothing happens in {step:?}"),
            };
            let context = format!("{name}, step {index}");
            assert_eq!(news, step.news, "{context}");
            assert_eq!(numbers(tally.counts()), step.counts, "{context}");
            assert_eq!(tally.phantoms(), step.phantoms, "{context}");
            laws::of_a_tally(&tally);
        }
    }
}

/// The condition after a pass.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageCase {
    objects: Vec<Object>,
    #[serde(default)]
    audit: bool,
    #[serde(default)]
    paused: bool,
    condition: String,
}

#[test]
fn each_object_that_is_due_is_known_however_many_there_are() {
    const DUE: usize = 1_500;
    let name = |index: usize| identity(&format!("due-{index:04}"));
    let mut tally = Tally::default();
    (0..DUE).for_each(|index| tally.add(name(index), ObjectState::Due, &[]));
    for index in (0..DUE).step_by(2) {
        assert!(tally.update(&name(index), ObjectState::Stored, &[]), "{index}");
        assert!(!tally.update(&name(index + 1), ObjectState::Due, &[]), "{index}");
    }
    assert_eq!(
        numbers(tally.counts()),
        BTreeMap::from([
            ("alreadyStored".to_owned(), 750),
            ("due".to_owned(), 750),
            ("objects".to_owned(), 1_500)
        ])
    );
    assert!((0..DUE).all(|index| tally.deleted(&name(index)) == (index % 2 == 1)));
    assert_eq!(tally.counts().objects, 0);
}

#[test]
fn the_condition_says_how_many_and_why_and_where() {
    let cases: Vec<MessageCase> =
        serde_json::from_str(include_str!("../cases/messages.json")).expect("cases");
    for MessageCase { mut objects, audit, paused, condition } in cases {
        let mode = if audit { Mode::Audit } else { Mode::Persist };
        let pause = paused.then(|| Pause { paused: Some("default".to_owned()), ..Pause::default() });
        let settings = settings(mode, pause);
        let wording = |objects: &[Object]| {
            let tally = tally_of(objects);
            laws::of_a_tally(&tally);
            let status = message::of(&SchemaFindings::default(), &settings, &tally);
            let condition =
                status.conditions(1, &[], "2026-01-01T00:00:00Z").pop().expect("three conditions");
            laws::of_a_condition(&condition);
            format!("{} {}: {}", condition.status, condition.reason, condition.message)
        };
        assert_eq!(wording(&objects), condition);
        objects.reverse();
        assert_eq!(wording(&objects), condition, "the order of the objects does not count");
    }
}

/// What the next run knows from the report.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointCase {
    name: String,
    objects: Vec<Object>,
    /// The uids of the objects that the record excepts; `None` if nothing is on record.
    exceptions: Option<Vec<String>>,
}

#[test]
fn the_next_run_knows_what_the_report_keeps() {
    let cases: Vec<CheckpointCase> =
        serde_json::from_str(include_str!("../cases/checkpoints.json")).expect("cases");
    for CheckpointCase { name, objects, exceptions } in cases {
        let (tally, crd) = (tally_of(&objects), Arc::new(crd()));
        let report = reported(&tally, 77);
        laws::of_a_report(&report);
        let known = Checkpoint::from_report(&report, &crd);
        let uids = || objects.iter().map(|object| object.identity().uid);
        let excepted = |record: &Record| uids().filter(|uid| record.exceptions.contains(uid)).collect();
        let found: Option<Vec<String>> = known.as_ref().map(|known| excepted(&known.record));
        assert_eq!(found, exceptions, "{name}");
        if let Some(known) = known {
            let rules = Rules {
                crd: crd.clone(),
                terms: Terms::default(),
                mode: Mode::Persist,
                since: Arc::default(),
            };
            let expected = record_of(&tally, Some(77), &rules, &known.record.hidden);
            assert_eq!(
                excepted(&expected),
                found.unwrap_or_default(),
                "{name}: what is read back is what was known"
            );
            assert_eq!(known.record.through, expected.through, "{name}");
        }
        let another: Value =
            serde_json::from_str(&serde_json::to_string(&report).expect("JSON")).expect("JSON");
        assert_eq!(another["through"], "77", "{name}");
    }
}

#[test]
fn where_generations_were_not_seen_or_defaults_are_back_the_storage_version_may_have_changed() {
    let crd = crd();
    let of = |report: &DefaultsReportStatus| {
        Checkpoint::from_report(report, &crd).map(|known| known.record.storage_changed)
    };
    let mut report = reported(&tally_of(&[]), 77);
    assert_eq!(of(&report), Some(false));
    report.generation -= 2;
    assert_eq!(of(&report), Some(true));
    report.generation += 2;
    let past = past(&report);
    let (digest, defaults) = ("other".to_owned(), Vec::new());
    let back = DefaultsReportStatus { digest, defaults, previous: vec![past], ..report };
    assert_eq!(of(&back), Some(true));
}

#[test]
fn that_all_objects_are_at_the_storage_version_stays_known_while_no_other_generation_may_have_had_another() {
    let (crd, settings) = (crd(), settings(Mode::Persist, None));
    let next = |report: &DefaultsReportStatus| {
        let state = ReportState::open(Some(report), &crd, &settings, "6", Timestamp::UNIX_EPOCH);
        let next = state.idle("Settling", &DroppedFields::default());
        assert_eq!(on_record(report, &crd).all_at_storage_version, next.all_at_storage_version);
        next
    };
    let proved = |verified, removable: &[&str]| StoredVersionsReport {
        verified,
        removable: removable.iter().map(|name| (*name).to_owned()).collect(),
        ..StoredVersionsReport::default()
    };
    let report = reported(&tally_of(&[]), 77);
    for (verified, removable, is_proved) in
        [(true, &["v0"][..], true), (false, &["v0"][..], false), (true, &[][..], false)]
    {
        let stored_versions = Some(proved(verified, removable));
        let report = DefaultsReportStatus { stored_versions, ..report.clone() };
        assert_eq!(next(&report).all_at_storage_version, is_proved);
    }
    let known = DefaultsReportStatus { all_at_storage_version: true, ..report };
    let after = next(&next(&known));
    assert!(after.all_at_storage_version, "once the list is short, the report has no other trace of it");
    let other_defaults = DefaultsReportStatus { digest: "other".to_owned(), ..known.clone() };
    assert!(next(&other_defaults).all_at_storage_version);
    let unseen = DefaultsReportStatus { generation: known.generation - 2, ..known.clone() };
    let moved = DefaultsReportStatus { storage_version: "v0".to_owned(), ..known };
    for doubtful in [unseen, moved] {
        assert!(!next(&doubtful).all_at_storage_version);
    }
}

#[test]
fn what_is_still_to_be_verified_may_have_been_written_through_a_server_that_lags_behind() {
    let report = reported(&tally_of(&[]), 77);
    let lags = |verify_at: Option<Timestamp>| {
        let report = DefaultsReportStatus { verify_at: verify_at.map(Time), ..report.clone() };
        on_record(&report, &crd()).servers_lag
    };
    assert_eq!((lags(None), lags(Some(Timestamp::UNIX_EPOCH))), (false, true));
}

#[test]
fn a_record_is_about_the_objects_that_were_selected() {
    let report_under = |objects: &ObjectSelector| {
        let mut settings = settings(Mode::Persist, None);
        settings.terms.selection = Some(objects.clone()).into();
        let state = ReportState::open(None, &crd(), &settings, "5", Timestamp::UNIX_EPOCH);
        let finished = Times { finished: Some(Timestamp::UNIX_EPOCH), ..Times::default() };
        let tally = tally_of(&[]);
        let report = state.status("AllPersisted", &tally, Some(77), finished, &DroppedFields::default());
        let sent = serde_json::to_string(&report).expect("JSON");
        serde_json::from_str::<DefaultsReportStatus>(&sent).expect("a report")
    };
    let team = ObjectSelector { namespaces: vec!["team-a".to_owned()], ..ObjectSelector::default() };
    let report = report_under(&team);
    let known = Checkpoint::from_report(&report, &crd()).expect("it is on record");
    assert_eq!((known.record.through, known.record.selection), (Some(77), Some(team).into()));
    assert_eq!(past(&report).through, None, "what goes on from earlier defaults is about all objects");
    let all = report_under(&ObjectSelector::default());
    assert_eq!((past(&all).through.as_deref(), all.objects), (Some("77"), None));
    // No report has room for it: then nothing is on record.
    let labels = ["a", "b"].map(|name| (name.to_owned(), "v".repeat(9_000)));
    let report = report_under(&ObjectSelector { match_labels: labels.into(), ..ObjectSelector::default() });
    assert_eq!((report.through.clone(), report.objects.clone()), (None, None));
    assert!(Checkpoint::from_report(&report, &crd()).is_none());
}

#[test]
fn the_named_and_the_rest_are_all_that_are_counted() {
    for state in ["Due", "Rejected", "Held", "Unknown"] {
        let objects = (0..1_215).map(|index| {
            let object = json!({
                "name": format!("n{index}"), "state": state, "hold": "HiddenFields", "paths": [".spec.f"],
            });
            serde_json::from_value(object).expect("an object")
        });
        let tally = tally_of(&objects.collect::<Vec<Object>>());
        let message = message::of(&SchemaFindings::default(), &settings(Mode::Audit, None), &tally).message;
        assert!(message.contains("1215") && message.contains(" and 1210 more"), "{message}");
    }
}

#[test]
fn a_report_is_bounded_whatever_becomes_of_objects() {
    let long = "n".repeat(200);
    let objects = |state: &str| -> Vec<Object> {
        (0..3000)
            .map(|index| {
                let held = (state == "Held").then_some("HiddenFields");
                let object = json!({
                    "name": format!("{index:05}{long}"), "state": state, "hold": held, "paths": [
                        format!(".spec.f{index}"),
                    ],
                    "fields": [format!("spec.f{index}")], "lacks": true,
                });
                serde_json::from_value(object).expect("an object")
            })
            .collect()
    };
    for kind in StateKind::ALL {
        let tally = tally_of(&objects(kind.as_str()));
        laws::of_a_tally(&tally);
        laws::of_a_report(&reported(&tally, 1));
        let status = message::of(&SchemaFindings::default(), &settings(Mode::Persist, None), &tally);
        let conditions = status.conditions(1, &[], "2026-01-01T00:00:00Z");
        conditions.iter().for_each(laws::of_a_condition);
    }
}
