//! The defaults of a CRD that are no longer what they were: which values follow, which are kept, and how
//! many.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::api::{ChangeAction, ChangedDefault, DefaultsReportStatus, PreviousDefaults, Settings};
use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{Change, OldDefault, Record, changes, past};
use crate::report::schema::is_on_record;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

/// How many changed defaults the report names, at most.
const LISTED: usize = 500;

/// What has changed since the pass before, and the results so far.
#[derive(Clone, Debug, Default)]
pub struct ChangedDefaults {
    list: Arc<[Change]>,
    totals: Totals,
    /// `None` if no server lags behind.
    suspects: Option<Suspects>,
}

/// What has happened to the changed defaults in one object.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// The places whose values follow.
    pub moved: Vec<Path>,
    /// The places that keep the old value.
    pub kept: Vec<Path>,
    /// Whether the object was written, or only would be.
    pub written: bool,
}

#[derive(Clone, Debug, Default)]
struct Suspects {
    /// Hashes of the uids and resource versions of objects that were read with an old default, or without any
    /// place that takes one.
    versions: BTreeSet<u64>,
    /// Whether no server lags behind any more.
    is_over: bool,
    /// Whether some may be missing: the first pass that notes them has begun with a record of another one.
    misses_some: Option<bool>,
}

#[derive(Clone, Debug, Default)]
struct Totals {
    /// Whether every object has been processed since the change.
    over: bool,
    followed: u64,
    /// How many objects would follow, if the policies allowed writes.
    would: u64,
    kept: u64,
    /// How many values followed and how many objects kept one, by the default's place in the schema.
    places: BTreeMap<String, (u64, u64)>,
    /// Hashes of the uids of objects that are counted already.
    counted: BTreeSet<u64>,
}

impl ChangedDefaults {
    /// What is due by the last report on the defaults in force, if there is one, and the `previous` ones.
    ///
    /// A change is due until a pass has ended, and again when a policy begins to follow it or selects other
    /// objects. What followed stays counted then; what is kept is counted again.
    pub fn open(
        report: Option<&DefaultsReportStatus>,
        previous: &[PreviousDefaults],
        crd: &Crd,
        settings: &Settings,
    ) -> Self {
        let list = changes(&history(previous), crd, &settings.follow);
        let over = report.is_some_and(|report| {
            is_on_record(report)
                && report.counts.unknown == 0
                && report.objects.as_ref() == settings.terms.selection.selector()
                && !begins_to_follow(&list, report)
        });
        let mut totals = Totals { over, ..Totals::default() };
        if let Some(report) = report {
            totals.followed = report.counts.followed;
            totals.kept = if over { report.counts.kept } else { 0 };
            let places = report.changed.iter();
            totals.places = places
                .map(|place| (place.path.clone(), (place.followed, if over { place.kept } else { 0 })))
                .collect();
        }
        Self { list: list.into(), totals, suspects: None }
    }

    /// Whether objects have to be processed for a default that has changed.
    pub fn are_pending(&self) -> bool {
        !self.list.is_empty() && !self.totals.over
    }

    /// Notes that every object has been processed, apart from those that the record excepts.
    pub fn set_processed(&mut self) {
        self.totals.over = true;
        self.totals.counted.clear();
    }

    /// Where no record shows any more which objects were not processed, all are again.
    pub fn record_is_lost(&mut self) {
        let totals = &mut self.totals;
        if std::mem::take(&mut totals.over) {
            (totals.would, totals.kept) = (0, 0);
            totals.places.values_mut().for_each(|(_, kept)| *kept = 0);
        }
    }

    /// The changes that concern an object: all of them until every object was processed, and later for those
    /// that were not. A client that sets the old value after that means it.
    pub fn for_object(&self, object: &Object, record: &Record) -> &[Change] {
        let concerned = !self.totals.over || record.exceptions.contains(object.uid());
        if concerned { &self.list } else { &[] }
    }

    /// Counts the result for one object, once.
    pub fn count(&mut self, uid: &str, followed: &Followed) {
        let Followed { moved, kept, written } = followed;
        if moved.is_empty() && kept.is_empty() {
            return;
        }
        let mut hasher = DefaultHasher::new();
        uid.hash(&mut hasher);
        let totals = &mut self.totals;
        if !totals.counted.insert(hasher.finish()) {
            return;
        }
        let followed = u64::from(!moved.is_empty());
        if *written {
            totals.followed += followed;
        } else {
            totals.would += followed;
        }
        totals.kept += u64::from(!kept.is_empty());
        let places =
            |paths: &[Path]| paths.iter().map(|path| path.to_schema().to_string()).collect::<BTreeSet<_>>();
        for place in places(moved).into_iter().filter(|_| *written) {
            totals.places.entry(place).or_default().0 += 1;
        }
        for place in places(kept) {
            totals.places.entry(place).or_default().1 += 1;
        }
    }

    /// What has changed.
    pub fn list(&self) -> &Arc<[Change]> {
        &self.list
    }

    /// From now on servers may lag behind: notes which objects are read as such a server might show them.
    pub fn watch_suspects(&mut self) {
        self.suspects.get_or_insert_default().is_over = false;
    }

    /// A pass begins, with a record of objects that were read before or without one.
    pub fn pass_begins(&mut self, has_record: bool) {
        if let Some(suspects) = &mut self.suspects {
            suspects.misses_some.get_or_insert(has_record);
        }
    }

    /// Whether some object may have been read as a server that lags behind shows it, and is not noted: by
    /// another run, or before a pause.
    pub fn misses_suspects(&self) -> bool {
        self.suspects.as_ref().is_some_and(|suspects| suspects.misses_some == Some(true))
    }

    /// Whether an old default that an object shows may not be stored, and a place that it does not show may
    /// be.
    pub fn servers_may_lag(&self) -> bool {
        self.suspects.as_ref().is_some_and(|suspects| !suspects.is_over)
    }

    /// No server lags behind any more; which objects were noted is still known.
    pub fn servers_have_caught_up(&mut self) {
        if let Some(suspects) = &mut self.suspects {
            suspects.is_over = true;
        }
    }

    /// Notes versions of objects that showed an old default, or no place that takes one. They hold that; or a
    /// server that lags behind has filled it in or left it out, and they change with the server.
    pub fn note_suspects(&mut self, versions: Vec<u64>) {
        if let Some(suspects) = self.suspects.as_mut().filter(|suspects| !suspects.is_over) {
            suspects.versions.extend(versions);
        }
    }

    /// Whether an object, as it is, was read as a server that lags behind might show it.
    pub fn is_suspect(&self, object: &Object) -> bool {
        self.suspects.as_ref().is_some_and(|suspects| suspects.versions.contains(&version_of(object)))
    }

    /// Forgets which objects were noted, and notes no others.
    pub fn forget_suspects(&mut self) {
        self.suspects = None;
    }

    /// Puts the numbers into a report.
    pub fn add_to_report(&self, status: &mut DefaultsReportStatus) {
        let totals = &self.totals;
        (status.counts.followed, status.counts.kept) = (totals.followed, totals.kept);
        let counted = |change: &Change| {
            let path = change.path().to_string();
            let (followed, kept) = totals.places.get(&path).copied().unwrap_or_default();
            ChangedDefault { path, action: action(change), followed, kept }
        };
        status.changed = self.list.iter().take(LISTED).map(counted).collect();
    }

    /// The numbers in a sentence; empty where there are none.
    pub fn summary(&self) -> String {
        let totals = &self.totals;
        let mut sentences = Vec::new();
        if totals.followed > 0 {
            sentences.push(format!("{} followed a changed default", totals.followed));
        }
        if totals.would > 0 {
            sentences.push(format!("{} would follow a changed default", totals.would));
        }
        if totals.kept > 0 {
            let verb = if totals.kept == 1 { "keeps" } else { "keep" };
            sentences.push(format!("{} {verb} the previous default", totals.kept));
        }
        sentences.join("; ")
    }
}

/// What distinguishes this version of an object from others.
pub fn version_of(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    (object.uid(), object.resource_version()).hash(&mut hasher);
    hasher.finish()
}

fn action(change: &Change) -> ChangeAction {
    if change.is_followed() { ChangeAction::Follow } else { ChangeAction::Keep }
}

/// Whether a change is to be followed that was not by the report.
fn begins_to_follow(list: &[Change], report: &DefaultsReportStatus) -> bool {
    list.iter().filter(|change| change.is_followed()).any(|change| {
        let path = change.path().to_string();
        report.changed.iter().any(|known| known.path == path && known.action == ChangeAction::Keep)
    })
}

/// What the defaults gave before: back to the last schema for which a pass was made, and what was written in
/// its course verified. Until then a server may show and store what an older schema gave.
fn history(previous: &[PreviousDefaults]) -> Vec<OldDefault> {
    previous.iter().rev().fold(Vec::new(), |older, schema| {
        let values = schema.defaults.iter().filter_map(|default| {
            let value = Json::parse(default.value.as_ref()?.as_bytes()).ok()?;
            Some(OldDefault { path: default.path.parse().ok()?, values: vec![value] })
        });
        past(values.collect(), schema.through.is_some() && schema.verify_at.is_none(), older)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::api::{Counts, DefaultValue};
    use crate::crd::sample::{things, with_spec};

    fn crd(default: Value) -> Crd {
        things(with_spec(json!({ "a": { "type": "integer", "default": default } })))
    }

    fn schema(value: &str, through: Option<&str>) -> PreviousDefaults {
        PreviousDefaults {
            through: through.map(str::to_owned),
            defaults: vec![DefaultValue {
                path: ".spec.a".to_owned(),
                value: Some(value.to_owned()),
                nullable: false,
            }],
            ..PreviousDefaults::default()
        }
    }

    fn settings() -> Settings {
        let spec: crate::api::DefaultsPolicySpec =
            serde_json::from_value(json!({ "onChange": [{ "path": ".spec.a", "action": "Follow" }] }))
                .expect("a policy");
        let policies = crate::api::Policies::from([("default".to_owned(), spec)]);
        let assigned = crate::api::assign(
            &policies,
            "things.example.com",
            "example.com",
            &BTreeMap::new(),
            Duration::ZERO,
        );
        assigned.expect("it selects all").settings
    }

    fn object(value: i64) -> Object {
        Object::from(json!({ "metadata": { "uid": "u" }, "spec": { "a": value } }))
    }

    #[test]
    fn the_past_goes_back_to_the_last_schema_that_was_seen_to() {
        let values = |previous: &[PreviousDefaults]| -> Vec<String> {
            let past = history(previous);
            past.iter().flat_map(|past| &past.values).map(|value| value.to_string()).collect()
        };
        assert_eq!(values(&[schema("3", Some("7")), schema("2", Some("5"))]), ["3"]);
        assert_eq!(values(&[schema("3", None), schema("2", Some("5")), schema("1", Some("2"))]), ["3", "2"]);
        assert_eq!(values(&[schema("3", None), schema("2", None), schema("3.0", None)]), ["3", "2"]);
        // Where servers may still lag behind, an object may hold or show what the schema before it gave.
        let verify_at =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        let unverified = PreviousDefaults { verify_at, ..schema("3", Some("7")) };
        assert_eq!(values(&[unverified, schema("2", Some("5")), schema("1", Some("2"))]), ["3", "2"]);
    }

    #[test]
    fn a_change_concerns_every_object_until_all_are_seen_to_and_then_those_that_were_not() {
        let previous = [schema("3", Some("7"))];
        let mut changes = ChangedDefaults::open(None, &previous, &crd(json!(5)), &settings());
        assert!(changes.are_pending());
        let mut record = Record { through: Some(9), ..Record::default() };
        assert_eq!(changes.for_object(&object(3), &record).len(), 1);
        changes.set_processed();
        assert!(!changes.are_pending());
        assert_eq!(changes.for_object(&object(3), &record), []);
        record.exceptions = ["u".to_owned()].into_iter().collect();
        assert_eq!(changes.for_object(&object(3), &record).len(), 1);
        record.exceptions = crate::plan::Exceptions::default();
        changes.record_is_lost();
        assert_eq!(changes.for_object(&object(3), &record).len(), 1, "it may not have been processed");
        assert!(
            !ChangedDefaults::open(None, &previous, &crd(json!(3)), &settings()).are_pending(),
            "nothing has changed"
        );
    }

    #[test]
    fn an_object_is_counted_once_and_a_restart_goes_on_counting() {
        let previous = [schema("3", Some("7"))];
        let crd = crd(json!(5));
        let mut changes = ChangedDefaults::open(None, &previous, &crd, &settings());
        let place: Path = ".spec.a".parse().expect("a path");
        let followed = |moved: &[Path], kept: &[Path], written| Followed {
            moved: moved.into(),
            kept: kept.into(),
            written,
        };
        let place = std::slice::from_ref(&place);
        changes.count("u", &followed(place, &[], true));
        changes.count("u", &followed(place, &[], true));
        changes.count("v", &followed(&[], place, false));
        changes.count("w", &followed(place, &[], false));
        let mut status = DefaultsReportStatus::default();
        changes.add_to_report(&mut status);
        let changed =
            ChangedDefault { path: ".spec.a".to_owned(), action: ChangeAction::Follow, followed: 1, kept: 1 };
        assert_eq!((status.counts.followed, status.counts.kept), (1, 1));
        assert_eq!(status.changed, [changed]);
        assert_eq!(
            changes.summary(),
            "1 followed a changed default; 1 would follow a changed default; 1 keeps the previous default"
        );
        // In the middle of the pass: what followed is not seen again, what is kept is.
        let mut again = ChangedDefaults::open(Some(&status), &previous, &crd, &settings());
        assert_eq!(again.summary(), "1 followed a changed default");
        again.count("v", &followed(&[], place, false));
        assert!(again.are_pending());
        // After it.
        status.finished =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        let after = ChangedDefaults::open(Some(&status), &previous, &crd, &settings());
        assert_eq!(after.summary(), "1 followed a changed default; 1 keeps the previous default");
        assert!(!after.are_pending());
        // When the policy begins to follow what was kept.
        status.changed[0].action = ChangeAction::Keep;
        assert!(ChangedDefaults::open(Some(&status), &previous, &crd, &settings()).are_pending());
        assert_eq!(status.counts, Counts { followed: 1, kept: 1, ..Counts::default() });
    }
}
