//! What is known of fields that come and go with their defaults: which objects may hold them, and which
//! passes prove those that are left.

use super::*;
use crate::api::{self, Counts};
use crate::object::Object;
use crate::plan::{FormerDefault, HiddenEvidence, Plan, decide, hidden};

/// One state of a CRD after the other, as Etch reports them.
struct Story {
    report: Option<DefaultsReportStatus>,
    generation: i64,
    crd: Crd,
    revision: u64,
}

impl Story {
    fn begin(properties: Value) -> Self {
        let mut story = Self { report: None, generation: 0, crd: crd(), revision: 0 };
        story.becomes(10, properties);
        story
    }

    /// The CRD is seen with these properties of `spec` at a resource version.
    fn becomes(&mut self, revision: u64, properties: Value) {
        let mut document = crate::crd::sample::things_document(with_spec(properties));
        self.generation += 1;
        document["metadata"]["generation"] = self.generation.into();
        self.crd = Crd::read(&document.into()).expect("a CRD");
        self.revision = revision;
        self.report = Some(self.open().idle("Settling", &DroppedFields::default()));
    }

    fn open(&self) -> ReportState {
        let revision = self.revision.to_string();
        let settings = settings(Mode::Persist, None);
        ReportState::open(self.report.as_ref(), &self.crd, &settings, &revision, Timestamp::UNIX_EPOCH)
    }

    /// A pass ends that has processed every object up to a resource version; it `verifies`, or another one is
    /// to.
    fn passes(&mut self, through: u64, verifies: bool) {
        let mut state = self.open();
        if verifies {
            state.served_everywhere_since(through, &self.crd);
        }
        let verify_at = (!verifies).then_some(Timestamp::UNIX_EPOCH);
        let times = Times { finished: Some(Timestamp::UNIX_EPOCH), verify_at, ..Times::default() };
        let dropped = DroppedFields::default();
        self.report = Some(state.status("AllPersisted", &Tally::default(), Some(through), times, &dropped));
    }

    /// The fields that an object may hold which was last written at a resource version.
    fn hidden(&self, revision: u64) -> Vec<String> {
        let object = object(revision, json!({ "o": {} }));
        let report = self.report.as_ref().expect("a report");
        let former = on_record(report, &self.crd).hidden.former.clone();
        hidden(&object, &self.crd, &former).iter().map(Path::to_string).collect()
    }

    /// Up to which resource version earlier passes prove the defaults.
    fn proved(&self) -> Option<u64> {
        Checkpoint::from_report(self.report.as_ref()?, &self.crd)?.record.through
    }
}

fn object(revision: u64, spec: Value) -> Object {
    let owner = json!({
        "manager": "user", "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": { ".": {} } },
    });
    Object::from(json!({
        "metadata": {
            "name": "n", "uid": "u", "resourceVersion": revision.to_string(), "managedFields": [owner],
        },
        "spec": spec,
    }))
}

fn number(default: i64) -> Value {
    json!({ "type": "integer", "default": default })
}

#[test]
fn a_default_may_be_hidden_in_what_was_written_while_the_schema_had_it() {
    let mut story = Story::begin(json!({ "b": number(1), "o": { "type": "object" } }));
    story.passes(15, true);
    story.becomes(20, json!({ "a": number(1), "b": number(1), "o": { "type": "object" } }));
    story.passes(25, true);
    assert_eq!(story.hidden(22), [""; 0], "it is shown");
    story.becomes(30, json!({ "b": number(1), "c": number(1), "o": { "type": "object" } }));
    assert_eq!(story.hidden(16), [".spec.a"]);
    assert_eq!(story.hidden(31), [".spec.a"], "a server may lag behind");
    story.passes(40, false);
    assert_eq!(story.hidden(31), [".spec.a"]);
    story.passes(45, true);
    assert_eq!([story.hidden(45), story.hidden(46)], [vec![".spec.a".to_owned()], vec![]]);
    // More schemas than a report remembers as a whole.
    for step in 5..12 {
        story.becomes(step * 10, json!({ "c": number(step as i64), "o": { "type": "object" } }));
        story.passes(step * 10 + 5, true);
    }
    assert_eq!([story.hidden(45), story.hidden(46)], [vec![".spec.a", ".spec.b"], vec![".spec.b"]]);
}

#[test]
fn a_field_that_stays_without_its_default_is_remembered_until_it_goes() {
    let mut story = Story::begin(json!({ "o": { "type": "object" } }));
    story.becomes(20, json!({ "a": number(1) }));
    story.becomes(30, json!({ "a": { "type": "integer" }, "c": number(1) }));
    assert_eq!(story.hidden(25), [""; 0]);
    story.becomes(40, json!({ "c": number(1) }));
    assert_eq!(story.hidden(25), [".spec.a"]);
    // It comes back, with or without its default, and goes again.
    story.becomes(50, json!({ "a": number(2), "c": number(1) }));
    assert_eq!(story.hidden(25), [""; 0]);
    story.becomes(60, json!({ "c": number(1) }));
    assert_eq!([story.hidden(25), story.hidden(55)], [[".spec.a"], [".spec.a"]]);
}

#[test]
fn a_pass_that_was_not_verified_proves_nothing_under_another_schema() {
    for (verifies, proved) in [(true, Some(15)), (false, None)] {
        for (next, back) in [
            (json!({ "a": number(2) }), json!({ "a": number(1), "b": number(1) })),
            (json!({ "a": number(1), "b": number(1), "c": number(1) }), json!({ "b": number(1) })),
        ] {
            let mut story = Story::begin(json!({ "a": number(1), "b": number(1) }));
            story.passes(15, verifies);
            story.becomes(20, next);
            story.becomes(30, back);
            assert_eq!(story.proved(), proved, "verified: {verifies}");
        }
    }
}

#[test]
fn only_a_verification_shows_that_no_server_knows_a_field() {
    // Nothing is written under a schema without defaults, and so nothing is verified.
    let mut story = Story::begin(json!({ "a": number(1) }));
    story.passes(15, true);
    story.becomes(20, json!({}));
    story.becomes(30, json!({ "c": number(1) }));
    story.passes(35, false);
    assert_eq!(story.hidden(25), [".spec.a"], "a server that lags behind may have stored it");
    story.passes(40, true);
    assert_eq!([story.hidden(40), story.hidden(41)], [vec![".spec.a".to_owned()], vec![]]);
    // A field that goes without a default leaves the defaults as they were verified.
    let mut story = Story::begin(json!({ "a": number(1), "b": number(1) }));
    story.passes(15, true);
    story.becomes(20, json!({ "a": { "type": "integer" }, "b": number(1) }));
    story.passes(25, true);
    story.becomes(30, json!({ "b": number(1) }));
    assert_eq!(story.hidden(35), [".spec.a"]);
}

#[test]
fn after_a_restore_no_earlier_pass_counts_and_any_object_may_hold_a_former_default() {
    let mut story = Story::begin(json!({ "a": number(1), "b": number(1), "c": number(1) }));
    story.passes(15, true);
    story.becomes(20, json!({ "b": number(1), "c": number(1) }));
    story.passes(25, true);
    story.becomes(30, json!({ "b": number(1) }));
    assert_eq!((story.proved(), story.hidden(26)), (Some(25), vec![".spec.c".to_owned()]));
    let mut state = story.open();
    state.forget_record();
    story.report = Some(state.idle("Restored", &DroppedFields::default()));
    assert_eq!((story.proved(), story.hidden(26)), (None, vec![".spec.a".to_owned(), ".spec.c".to_owned()]));
}

#[test]
fn a_generation_that_was_not_seen_may_have_known_a_field_again() {
    let mut story = Story::begin(json!({ "a": number(1), "b": number(1) }));
    story.becomes(20, json!({ "b": number(1) }));
    story.passes(30, true);
    assert_eq!(story.hidden(31), [""; 0]);
    story.generation += 1;
    story.becomes(40, json!({ "b": number(2) }));
    assert_eq!(story.hidden(31), [".spec.a"]);
}

#[test]
fn a_part_of_a_default_may_go_alone() {
    let nested =
        |fields: Value, default: Value| json!({ "type": "object", "properties": fields, "default": default });
    let (x, y) = (json!({ "type": "integer" }), json!({ "type": "integer" }));
    let both = nested(json!({ "x": x, "y": y }), json!({ "x": 1, "y": 1 }));
    let mut story = Story::begin(json!({}));
    story.becomes(20, json!({ "o": both }));
    story.becomes(30, json!({ "o": nested(json!({ "x": x }), json!({ "x": 1 })), "c": number(1) }));
    assert_eq!(story.hidden(25), [".spec.o.y"]);
}

#[test]
fn a_pass_for_more_defaults_proves_those_that_a_rollback_leaves() {
    let both = || json!({ "a": number(1), "b": number(2) });
    for (after, is_proved) in [
        (json!({ "a": number(1) }), true),
        (json!({ "a": number(1), "b": { "type": "integer" } }), true),
        // A value that has changed may have to be followed.
        (json!({ "a": number(3) }), false),
        (json!({ "a": number(1), "c": number(1) }), false),
    ] {
        let mut story = Story::begin(both());
        story.passes(15, true);
        story.becomes(20, after.clone());
        assert_eq!(story.proved(), is_proved.then_some(15), "{after}");
        assert_eq!(story.open().is_lag_harmless(), is_proved, "{after}");
    }
    let mut story = Story::begin(both());
    story.passes(15, false);
    story.becomes(20, json!({ "a": number(1) }));
    assert!(!story.open().is_lag_harmless(), "a server may still serve the schema before that one");
    let mut story = Story::begin(both());
    story.becomes(20, json!({ "a": number(1) }));
    assert_eq!(story.proved(), None, "no pass has ended");
    // A generation that Etch did not see may have had none of the defaults, and a server may still serve it.
    for after in [both(), json!({ "a": number(1) })] {
        let mut story = Story::begin(both());
        story.passes(15, true);
        story.generation += 1;
        story.becomes(20, after.clone());
        assert!(!story.open().is_lag_harmless(), "{after}");
    }
    // An upgrade is taken back before its pass has ended: what was written meanwhile has these as well.
    let mut story = Story::begin(json!({ "a": number(1) }));
    story.passes(15, true);
    story.becomes(20, both());
    story.becomes(25, json!({ "a": number(1) }));
    let known = Checkpoint::from_report(story.report.as_ref().expect("a report"), &story.crd);
    let record = known.expect("a record").record;
    assert_eq!((record.through, record.versions_disagree), (Some(15), false));
    assert!(story.open().is_lag_harmless());
}

#[test]
fn a_null_that_was_allowed_is_no_default() {
    let nullable = json!({ "type": "integer", "nullable": true, "default": 1 });
    for (before, after, is_proved) in
        [(&nullable, &number(1), false), (&number(1), &nullable, true), (&nullable, &nullable, true)]
    {
        let mut story = Story::begin(json!({ "a": before, "b": number(1) }));
        story.passes(15, true);
        story.becomes(20, json!({ "a": after }));
        assert_eq!(story.proved().is_some(), is_proved, "{before} {after}");
    }
}

#[test]
fn what_a_write_would_destroy_is_held_unless_the_policy_drops_it() {
    let crd = things(with_spec(json!({ "c": number(1) })));
    let former = vec![FormerDefault::of_any_time(".spec.a".parse().expect("a path"))];
    let hidden = Arc::new(HiddenEvidence { former, ..HiddenEvidence::default() });
    let record = Record { hidden, ..Record::default() };
    let plan = |hidden_fields| {
        decide(&object(5, json!({})), &crd, &Terms { hidden_fields, ..Terms::default() }, &record)
    };
    let Plan::Hold(held) = plan(crate::plan::HiddenFields::Hold) else { panic!("not held") };
    assert_eq!((held.reason, held.paths), (Hold::HiddenFields, vec![".spec.a".parse().expect("a path")]));
    assert!(matches!(plan(crate::plan::HiddenFields::Drop), Plan::Write(_)));
}

#[test]
fn former_defaults_survive_the_report() {
    let mut story = Story::begin(json!({ "a": number(1) }));
    story.becomes(20, json!({ "b": number(1) }));
    story.passes(30, true);
    let report = story.report.expect("a report");
    let former = api::FormerDefault { path: ".spec.a".to_owned(), until: Some("30".to_owned()) };
    assert_eq!(report.former_defaults, [former]);
    let text = serde_json::to_string(&report).expect("JSON");
    assert_eq!(serde_json::from_str::<DefaultsReportStatus>(&text).expect("a report"), report);
    assert_eq!(report.counts, Counts::default());
}
