//! Which events to publish: the difference between the conditions and reports before and now. They depend on
//! nothing else, so that a restart publishes nothing again.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition as PolicyCondition;
use kube::Resource as _;

use crate::api::{DefaultsPolicy, DefaultsReportStatus, ObjectProblem};
use crate::condition::{Condition, EventType, PERSISTED, Reason, first, list};
use crate::crd::Crd;
use crate::message::MISSING_PERMISSION;
use crate::plan::Skip;
use crate::policy::UNKNOWN_PATHS;
use crate::words::counted;

/// What happened, and to which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object.
    pub regarding: Regarding,
    /// Whether a user should look at it.
    pub warning: bool,
    /// Why, in one word.
    pub reason: String,
    /// What was being done, in one word.
    pub action: &'static str,
    /// What happened, in a sentence without values.
    pub note: String,
}

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regarding {
    /// `stable.example.com/v1`
    pub api_version: String,
    /// `CronTab`
    pub kind: String,
    /// `None` for cluster-scoped objects, whose events are in `default`.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// The events about a CRD when its conditions change from `before` to `now`. They are in the namespace
/// `default`, whose readers may not see the objects: `nameless` is the message of `DefaultsPersisted` without
/// their names.
pub fn about_crd(crd: &Regarding, before: &[Condition], now: &[Condition], nameless: &str) -> Vec<Event> {
    // A permission may be missing long before it is needed.
    let settling = Reason::Settling.as_str();
    let lacking = Reason::Forbidden.as_str();
    let lacks = |condition: &Condition| {
        condition.reason == settling && condition.message.contains(MISSING_PERMISSION)
    };
    now.iter()
        .filter_map(|condition| {
            let stood = before.iter().find(|before| before.r#type == condition.r#type);
            let (reason, warning, action) = if condition.r#type == PERSISTED {
                if lacks(condition) && !stood.is_some_and(lacks) {
                    return Some(about(crd, lacking, true, "PersistDefaults", nameless));
                }
                let is_reported = condition.reason == lacking && stood.is_some_and(lacks);
                let is_new = stood.is_none_or(|stood| stood.reason != condition.reason) && !is_reported;
                let kind = Reason::named(&condition.reason).and_then(Reason::event).filter(|_| is_new)?;
                (&condition.reason, kind == EventType::Warning, "PersistDefaults")
            } else {
                let is_new = stood.is_none_or(|stood| stood.status != "True");
                (is_new && condition.status == "True").then_some((&condition.r#type, true, "CheckSchema"))?
            };
            let message = if action == "PersistDefaults" { nameless } else { &condition.message };
            let note = if message.is_empty() { reason } else { message };
            Some(about(crd, reason, warning, action, note))
        })
        .collect()
}

fn about(crd: &Regarding, reason: &str, warning: bool, action: &'static str, note: &str) -> Event {
    Event { regarding: crd.clone(), warning, reason: reason.to_owned(), action, note: note.to_owned() }
}

/// The events about a policy when its conditions change from `before` to `now`.
pub fn about_policy(
    name: &str,
    uid: &str,
    before: &[PolicyCondition],
    now: &[PolicyCondition],
) -> Vec<Event> {
    let warned =
        now.iter().filter(|condition| condition.type_ == UNKNOWN_PATHS && condition.status == "True");
    let is_new = |condition: &&PolicyCondition| {
        let stood = before.iter().find(|before| before.type_ == condition.type_);
        stood.is_none_or(|stood| (&stood.status, &stood.message) != (&condition.status, &condition.message))
    };
    let event = |condition: &PolicyCondition| Event {
        regarding: Regarding {
            api_version: DefaultsPolicy::api_version(&()).into_owned(),
            kind: DefaultsPolicy::kind(&()).into_owned(),
            namespace: None,
            name: name.to_owned(),
            uid: uid.to_owned(),
        },
        warning: true,
        reason: condition.reason.clone(),
        action: "CheckPolicy",
        note: condition.message.clone(),
    };
    warned.filter(is_new).map(event).collect()
}

/// What the objects of a CRD are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKind {
    /// `stable.example.com/v1`, at the storage version.
    api_version: String,
    kind: String,
}

impl From<&Crd> for ObjectKind {
    fn from(crd: &Crd) -> Self {
        Self { api_version: crd.api_version(), kind: crd.kind().to_owned() }
    }
}

/// The events about objects that a report names for a reason for which the report before it did not.
pub fn about_objects(
    objects: &ObjectKind,
    before: Option<&DefaultsReportStatus>,
    now: &DefaultsReportStatus,
) -> Vec<Event> {
    let known = |problem: &ObjectProblem| {
        before.is_some_and(|before| {
            let mut all =
                before.held.iter().chain(&before.rejected).chain(&before.ignored).chain(&before.too_deep);
            all.any(|known| (&known.uid, &known.reason) == (&problem.uid, &problem.reason))
        })
    };
    let unclear = now.ignored.iter().filter(|problem| problem.reason == Skip::IgnoredUnclear.as_str());
    let news = now.held.iter().chain(&now.rejected).chain(unclear).chain(&now.too_deep);
    let news = news.filter(|problem| !known(problem));
    news.map(|problem| event(objects, problem)).collect()
}

/// The event about fields that were dropped since the report before; `None` if there were none.
pub fn about_drops(
    crd: &Regarding,
    before: Option<&DefaultsReportStatus>,
    now: &DefaultsReportStatus,
) -> Option<Event> {
    let earlier = |path: &str| {
        let known = before.into_iter().flat_map(|before| &before.dropped).find(|known| known.path == path);
        known.map_or(0, |known| known.objects)
    };
    let news = now.dropped.iter().filter_map(|field| {
        let objects = field.objects.saturating_sub(earlier(&field.path));
        (objects > 0).then(|| format!("{}: {}", counted(objects, "object"), field.path))
    });
    let news: Vec<String> = news.collect();
    (!news.is_empty()).then(|| Event {
        regarding: crd.clone(),
        warning: true,
        reason: "HiddenFieldsDropped".to_owned(),
        action: "PersistDefaults",
        note: list(&news, "writes dropped what etcd may have held of these fields"),
    })
}

fn event(objects: &ObjectKind, problem: &ObjectProblem) -> Event {
    let ObjectProblem { namespace, name, uid, reason, message, paths, more_paths } = problem;
    // An ignored object may lack no default.
    let what = if reason == Skip::IgnoredUnclear.as_str() {
        "skips this object"
    } else {
        "did not store its defaults"
    };
    let mut note = format!("Etch {what}: {message}");
    if !paths.is_empty() {
        note.push_str(&format!(": {}", first(paths, paths.len() as u64 + more_paths)));
    }
    let regarding = Regarding {
        api_version: objects.api_version.clone(),
        kind: objects.kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
        uid: uid.clone(),
    };
    Event { regarding, warning: true, reason: reason.clone(), action: "PersistDefaults", note }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::api::DroppedField;
    use crate::crd::sample::things;

    fn condition(name: &str, status: &str, reason: &str) -> Condition {
        Condition {
            r#type: name.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: format!("{reason} it is"),
            observed_generation: None,
            last_transition_time: None,
        }
    }

    fn crd() -> Regarding {
        Regarding {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name: "things.example.com".to_owned(),
            uid: "u".to_owned(),
        }
    }

    fn published(before: &[Condition], now: &[Condition]) -> Vec<String> {
        let nameless = now.last().map_or("", |condition| &condition.message);
        let events = about_crd(&crd(), before, now, nameless);
        events.iter().map(|event| format!("{} {} {}", event.warning, event.reason, event.note)).collect()
    }

    #[test]
    fn a_crd_has_an_event_for_each_new_reason_that_is_no_mere_step() {
        let persisted = |reason| [condition("DefaultsPersisted", "False", reason)];
        assert_eq!(published(&[], &persisted("InProgress")), [""; 0]);
        assert_eq!(
            published(&persisted("InProgress"), &persisted("Forbidden")),
            ["true Forbidden Forbidden it is"]
        );
        assert_eq!(published(&persisted("Forbidden"), &persisted("Forbidden")), [""; 0]);
        assert_eq!(published(&[], &persisted("AllPersisted")), ["false AllPersisted AllPersisted it is"]);
    }

    #[test]
    fn settling_has_an_event_and_so_has_a_permission_that_is_missing_meanwhile() {
        let settling = |message: &str| {
            [Condition { message: message.to_owned(), ..condition("DefaultsPersisted", "False", "Settling") }]
        };
        let (well, lacking) =
            (settling("until then"), settling("until then; a permission is missing; add it"));
        assert_eq!(published(&[], &well), ["false Settling until then"]);
        assert_eq!(
            published(&well, &lacking),
            ["true Forbidden until then; a permission is missing; add it"]
        );
        assert_eq!(published(&[], &lacking), ["true Forbidden until then; a permission is missing; add it"]);
        assert_eq!(published(&lacking, &lacking), [""; 0], "nor after a restart");
        assert_eq!(published(&lacking, &well), [""; 0]);
    }

    #[test]
    fn a_policy_is_warned_of_places_that_are_not_there_once() {
        let unknown = |status: &str, message: &str| PolicyCondition {
            type_: UNKNOWN_PATHS.to_owned(),
            status: status.to_owned(),
            reason: "NoSuchField".to_owned(),
            message: message.to_owned(),
            observed_generation: None,
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
        };
        let published = |before: &[PolicyCondition], now: PolicyCondition| -> Vec<String> {
            let events = about_policy("p", "u", before, &[now]);
            events
                .into_iter()
                .map(|event| format!("{} {}: {}", event.regarding.kind, event.reason, event.note))
                .collect()
        };
        let (none, one) = (unknown("False", ""), unknown("True", ".spec.a"));
        assert_eq!(published(&[], one.clone()), ["DefaultsPolicy NoSuchField: .spec.a"]);
        assert_eq!(published(std::slice::from_ref(&none), one.clone()).len(), 1);
        assert_eq!(published(std::slice::from_ref(&one), one.clone()), [""; 0]);
        assert_eq!(published(&[one], unknown("True", ".spec.b")), ["DefaultsPolicy NoSuchField: .spec.b"]);
        assert_eq!(published(&[], none), [""; 0]);
    }

    #[test]
    fn what_is_wrong_with_a_crd_is_told_when_it_becomes_so() {
        let invalid = |status| [condition("InvalidDefaults", status, "Any")];
        assert_eq!(published(&invalid("False"), &invalid("True")), ["true InvalidDefaults Any it is"]);
        assert_eq!(published(&[], &invalid("True")), ["true InvalidDefaults Any it is"]);
        assert_eq!(published(&invalid("True"), &invalid("True")), [""; 0]);
        assert_eq!(published(&invalid("True"), &invalid("False")), [""; 0]);
    }

    #[test]
    fn what_was_dropped_since_the_report_before_is_told_by_field() {
        let report = |fields: &[(&str, u64)]| {
            let dropped = fields
                .iter()
                .map(|(path, objects)| DroppedField { path: (*path).to_owned(), objects: *objects });
            DefaultsReportStatus { dropped: dropped.collect(), ..DefaultsReportStatus::default() }
        };
        let now = report(&[(".spec.legacy", 3), (".spec.old", 1)]);
        let note =
            |before: Option<&DefaultsReportStatus>| about_drops(&crd(), before, &now).map(|event| event.note);
        let all = "writes dropped what etcd may have held of these fields: \
                   3 objects: .spec.legacy, 1 object: .spec.old";
        assert_eq!(note(None).as_deref(), Some(all));
        let more = note(Some(&report(&[(".spec.legacy", 1), (".spec.old", 1)]))).expect("news");
        assert!(more.ends_with("of these fields: 2 objects: .spec.legacy"), "{more}");
        assert_eq!(note(Some(&now)), None);
    }

    #[test]
    fn an_object_has_an_event_for_each_reason_that_the_report_did_not_give_before() {
        let crd = things(serde_json::json!({}));
        let problem = |uid: &str, reason: &str| ObjectProblem {
            more_paths: 0,
            namespace: Some("ns".to_owned()),
            name: uid.to_owned(),
            uid: uid.to_owned(),
            reason: reason.to_owned(),
            message: "no".to_owned(),
            paths: vec![".spec.a".to_owned()],
        };
        let report = |held: Vec<ObjectProblem>, rejected: Vec<ObjectProblem>| DefaultsReportStatus {
            held,
            rejected,
            ..DefaultsReportStatus::default()
        };
        let before = report(vec![problem("a", "HiddenFields")], vec![]);
        let now = report(
            vec![problem("a", "HiddenFields")],
            vec![problem("a", "Invalid"), problem("b", "Invalid")],
        );
        let published = |before| -> Vec<_> {
            about_objects(&ObjectKind::from(&crd), before, &now)
                .into_iter()
                .map(|event| (event.regarding.uid, event.reason))
                .collect()
        };
        let both = [("a".to_owned(), "Invalid".to_owned()), ("b".to_owned(), "Invalid".to_owned())];
        assert_eq!(published(Some(&before)), both);
        assert_eq!(published(None).len(), 3);
        assert_eq!(published(Some(&now)), []);
        let event = &about_objects(&ObjectKind::from(&crd), Some(&before), &now)[0];
        assert_eq!(event.note, "Etch did not store its defaults: no: .spec.a");
        assert_eq!(
            (event.regarding.api_version.as_str(), event.action),
            ("example.com/v1", "PersistDefaults")
        );
    }
}
