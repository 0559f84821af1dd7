//! The cases of `cases/values.json`: whatever objects, defaults and answers hold, no text that Etch publishes
//! has it (law 9).

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Times, Timestamp, laws, settings};
use crate::api::{DefaultsReportStatus, Mode};
use crate::condition::Condition;
use crate::crd::Crd;
use crate::crd::sample::{things_document, with_spec};
use crate::event::Regarding;
use crate::findings::judge;
use crate::object::{IGNORE_ANNOTATION, Object};
use crate::object_state::{ObjectState, Skipped};
use crate::plan::{Outcome, Plan, Record, Step, Terms, WriteMachine, decide, unproved};
use crate::refusal::Refusal;
use crate::report::dropped_fields::DroppedFields;
use crate::report::state::ReportState;
use crate::report::tally::Tally;
use crate::{event, message};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;
use kube_structural_schema::schema::Pool;

/// What objects hold, and answers quote.
const OBJECTS: [&str; 2] = ["object-canary", "27182818"];
/// What schemas give. A report lists it as the value of a default, and nowhere else.
const DEFAULTS: [&str; 2] = ["default-canary", "31415926"];

/// An object, the schema that it is under, and what the server answers to a write of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueCase {
    name: String,
    /// The schemas of the fields of its spec.
    properties: Value,
    spec: Value,
    /// Fields that an owner has, as `fieldsV1`.
    owned: Option<Value>,
    /// The document that was last applied.
    applied: Option<Value>,
    #[serde(default)]
    ignored: bool,
    /// A `Status`.
    answer: Option<Value>,
    /// What the report contains nevertheless: without this, the case would show nothing.
    found: Vec<String>,
}

impl ValueCase {
    fn crd(&self) -> Value {
        things_document(with_spec(self.properties.clone()))
    }

    fn object(&self) -> Object {
        let mut annotations = json!({});
        if self.ignored {
            annotations[IGNORE_ANNOTATION] = "true".into();
        }
        if let Some(applied) = &self.applied {
            annotations["kubectl.kubernetes.io/last-applied-configuration"] = applied.to_string().into();
        }
        let owned = self.owned.clone().unwrap_or_else(|| json!({ "f:spec": {} }));
        let owner = json!({
            "manager": "user", "operation": "Update", "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": owned,
        });
        let document = json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "spec": self.spec,
            "metadata": {
                "name": "a", "namespace": "ns", "uid": "uid-a", "resourceVersion": "9",
                "annotations": annotations,
                "managedFields": [owner],
            },
        });
        Object::from(Json::from(document))
    }

    /// The object's state, and what it lacks.
    fn state(&self, object: &Object, crd: &Crd) -> (ObjectState, Vec<Path>) {
        let terms = Terms::default();
        match decide(object, crd, &terms, &Record::default()) {
            Plan::Skip(why) => {
                let lacks = !unproved(object, crd).is_empty();
                (ObjectState::Skipped(Skipped { why, lacks }), Vec::new())
            }
            Plan::Hold(held) => (ObjectState::Held(held), Vec::new()),
            Plan::Stored(_) => (ObjectState::Stored, Vec::new()),
            Plan::Write(write) => {
                // Without a write there is no answer.
                let Some(answer) = &self.answer else { return (ObjectState::Due, write.missing) };
                let code = answer["code"].as_u64().and_then(|code| u16::try_from(code).ok());
                let refusal = Refusal::read(code.expect("a code"), None, answer.to_string().as_bytes());
                let (mut machine, _) = WriteMachine::begin(crd, object, &write, &terms);
                let step = machine.refused(refusal);
                let Step::Done(Outcome::Rejected(rejection)) = step else {
                    panic!("{}: {step:?}", self.name)
                };
                (ObjectState::Rejected(rejection), write.missing)
            }
        }
    }
}

/// What is published of a CRD with one object.
struct Published {
    conditions: Vec<Condition>,
    report: DefaultsReportStatus,
    events: Vec<String>,
}

impl Published {
    fn of(case: &ValueCase) -> Self {
        let (crd, findings) = judge(&case.crd().into(), &Pool::default());
        let settings = findings.permitted(settings(Mode::Persist, None));
        let crd = crd.unwrap_or_else(|| panic!("{}: {findings:?}", case.name));
        let mut tally = Tally::default();
        let status = match message::without_objects(&crd, &settings, &findings) {
            Some(status) => status,
            None => {
                let object = case.object();
                let (state, missing) = case.state(&object, &crd);
                laws::of_a_state(&state);
                tally.add(object.identity(), state, &missing);
                message::of(&findings, &settings, &tally)
            }
        };
        let conditions = status.conditions(1, &[], "2026-01-01T00:00:00Z");
        let times = Times {
            started: Some(Timestamp::UNIX_EPOCH),
            finished: Some(Timestamp::UNIX_EPOCH),
            ..Times::default()
        };
        let report = ReportState::open(None, &crd, &settings, "5", Timestamp::UNIX_EPOCH);
        let report =
            report.status(status.reason.as_str(), &tally, Some(77), times, &DroppedFields::default());
        let regarding = Regarding {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name: crd.name().to_owned(),
            uid: crd.uid().to_owned(),
        };
        let mut published = event::about_crd(&regarding, &[], &conditions, status.without_names());
        published.extend(event::about_objects(&event::ObjectKind::from(&crd), None, &report));
        let events = published.into_iter().map(|event| format!("{}: {}", event.reason, event.note));
        Self { conditions, report, events: events.collect() }
    }

    /// All of it, without the values of defaults that a report lists as such.
    fn text(&self) -> String {
        let mut report = self.report.clone();
        report.defaults.iter_mut().for_each(|default| default.value = None);
        let report = serde_json::to_string_pretty(&report).expect("JSON");
        format!("{:#?}\n{report}\n{:#?}", self.conditions, self.events)
    }
}

#[test]
fn no_text_has_a_value_of_an_object_or_of_a_default() {
    let cases: Vec<ValueCase> = serde_json::from_str(include_str!("../cases/values.json")).expect("cases");
    let (mut wrong, mut shown) = (Vec::new(), 0);
    for case in &cases {
        let has = |text: &str, canaries: &[&str]| canaries.iter().any(|canary| text.contains(canary));
        assert!(has(&case.properties.to_string(), &DEFAULTS), "{}: no default to find", case.name);
        assert!(has(&case.object().json().to_string(), &OBJECTS), "{}: no value to find", case.name);
        let published = Published::of(case);
        let text = published.text();
        let report = serde_json::to_string(&published.report).expect("JSON");
        shown += usize::from(has(&report, &DEFAULTS));
        let missing = case.found.iter().filter(|expected| !text.contains(*expected));
        let mut faults: Vec<String> = missing.map(|expected| format!("no {expected}")).collect();
        if has(&text, &OBJECTS) || has(&report, &OBJECTS) {
            faults.push("a value of the object".to_owned());
        }
        if has(&text, &DEFAULTS) {
            faults.push("a value of a default".to_owned());
        }
        if !faults.is_empty() {
            wrong.push(format!("{}: {} in {text}", case.name, faults.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(shown > 0, "no report lists the value of a default: nothing was left out of the text");
}
