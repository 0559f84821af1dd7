//! What is worth an event: the difference between what stood there before and what is said now.
//! It must not know the clock or the cluster, so that a restart finds nothing new in what was told before.

use crate::api::{DefaultsReportStatus, ObjectProblem};
use crate::cluster::{Event, Regarding};
use crate::domain::condition::{Condition, list};
use crate::domain::crd::Crd;

/// Reasons of `DefaultsPersisted` that say only where things stand on the way, or that there is nothing to do.
const QUIET: [&str; 5] = ["InProgress", "Settling", "NoDefaults", "Ignored", "NonStructural"];
/// Those that are no reason to look.
const WELL: [&str; 2] = ["AllPersisted", "AuditOnly"];

/// The events about a CRD when its conditions change from `before` to `said`.
pub(super) fn about_crd(crd: &Regarding, before: &[Condition], said: &[Condition]) -> Vec<Event> {
    said.iter()
        .filter_map(|condition| {
            let stood = before.iter().find(|before| before.r#type == condition.r#type);
            let (reason, warning, action) = if condition.r#type == "DefaultsPersisted" {
                let is_new = stood.is_none_or(|stood| stood.reason != condition.reason);
                let is_told = is_new && !QUIET.contains(&condition.reason.as_str());
                let warning = !WELL.contains(&condition.reason.as_str());
                is_told.then_some((&condition.reason, warning, "PersistDefaults"))?
            } else {
                let is_new = stood.is_none_or(|stood| stood.status != "True");
                (is_new && condition.status == "True").then_some((&condition.r#type, true, "CheckSchema"))?
            };
            let note = if condition.message.is_empty() { reason } else { &condition.message };
            Some(Event {
                regarding: crd.clone(),
                warning,
                reason: reason.clone(),
                action,
                note: note.clone(),
            })
        })
        .collect()
}

/// The events about objects that a report names for a reason for which the report before it did not.
pub(super) fn about_objects(
    crd: &Crd,
    before: Option<&DefaultsReportStatus>,
    now: &DefaultsReportStatus,
) -> Vec<Event> {
    let known = |problem: &ObjectProblem| {
        before.is_some_and(|before| {
            let mut all = before.held.iter().chain(&before.rejected);
            all.any(|known| (&known.uid, &known.reason) == (&problem.uid, &problem.reason))
        })
    };
    let news = now.held.iter().chain(&now.rejected).filter(|problem| !known(problem));
    news.map(|problem| event(crd, problem)).collect()
}

fn event(crd: &Crd, problem: &ObjectProblem) -> Event {
    let ObjectProblem { namespace, name, uid, reason, message, paths } = problem;
    let mut note = format!("its defaults are not stored: {message}");
    if !paths.is_empty() {
        note.push_str(&list(paths, ""));
    }
    let regarding = Regarding {
        api_version: crd.api_version(),
        kind: crd.kind().to_owned(),
        namespace: namespace.clone(),
        name: name.clone(),
        uid: uid.clone(),
    };
    Event { regarding, warning: true, reason: reason.clone(), action: "PersistDefaults", note }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn told(before: &[Condition], said: &[Condition]) -> Vec<String> {
        let events = about_crd(&crd(), before, said);
        events.iter().map(|event| format!("{} {} {}", event.warning, event.reason, event.note)).collect()
    }

    #[test]
    fn a_crd_has_an_event_for_each_new_reason_that_is_no_mere_step() {
        let persisted = |reason| [condition("DefaultsPersisted", "False", reason)];
        assert_eq!(told(&[], &persisted("InProgress")), [""; 0]);
        assert_eq!(
            told(&persisted("InProgress"), &persisted("Forbidden")),
            ["true Forbidden Forbidden it is"]
        );
        assert_eq!(told(&persisted("Forbidden"), &persisted("Forbidden")), [""; 0]);
        assert_eq!(told(&[], &persisted("AllPersisted")), ["false AllPersisted AllPersisted it is"]);
    }

    #[test]
    fn what_is_wrong_with_a_crd_is_told_when_it_becomes_so() {
        let invalid = |status| [condition("InvalidDefaults", status, "Any")];
        assert_eq!(told(&invalid("False"), &invalid("True")), ["true InvalidDefaults Any it is"]);
        assert_eq!(told(&[], &invalid("True")), ["true InvalidDefaults Any it is"]);
        assert_eq!(told(&invalid("True"), &invalid("True")), [""; 0]);
        assert_eq!(told(&invalid("True"), &invalid("False")), [""; 0]);
    }

    #[test]
    fn an_object_has_an_event_for_each_reason_that_the_report_did_not_give_before() {
        let document = serde_json::json!({
            "metadata": { "name": "things.example.com", "uid": "crd" },
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": { "kind": "Thing", "plural": "things" },
                "versions": [{ "name": "v1", "served": true, "storage": true }],
            },
        });
        let crd = Crd::read(&document.into()).expect("a CRD");
        let problem = |uid: &str, reason: &str| ObjectProblem {
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
        let told = |before| -> Vec<_> {
            about_objects(&crd, before, &now)
                .into_iter()
                .map(|event| (event.regarding.uid, event.reason))
                .collect()
        };
        let both = [("a".to_owned(), "Invalid".to_owned()), ("b".to_owned(), "Invalid".to_owned())];
        assert_eq!(told(Some(&before)), both);
        assert_eq!(told(None).len(), 3);
        assert_eq!(told(Some(&now)), []);
        let event = &about_objects(&crd, Some(&before), &now)[0];
        assert_eq!(event.note, "its defaults are not stored: no: .spec.a");
        assert_eq!(
            (event.regarding.api_version.as_str(), event.action),
            ("example.com/v1", "PersistDefaults")
        );
    }
}
