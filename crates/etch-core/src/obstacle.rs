//! Why the operator writes no object of a CRD, or not a certain one, by what it reported itself: for commands
//! that predict what it does. What a policy sets is not among it.

use crate::api::{AfterCanary, DefaultsReportStatus, LostOwners, ObjectProblem, RESUME_ANNOTATION, Settings};
use crate::condition::{Condition, Reason, TYPES, present};
use crate::crd::Crd;
use crate::engine::canary::CanaryHold;
use crate::engine::stop_reason::StopReason;
use crate::message::{MISSING_PERMISSION, canary};
use crate::object::Object;
use kube_structural_schema::json::Json;

/// What keeps the operator from writing any object of a CRD.
#[derive(Clone, Debug, PartialEq)]
pub enum Obstacle {
    /// The schema is not structural.
    NonStructural,
    /// A permission is missing.
    Permission,
    /// A write made the API server drop field owners.
    OwnersLost(LostOwners),
    /// A canary waits for a user.
    Canary(CanaryHold),
}

impl Obstacle {
    /// The obstacle of a CRD with this `document`; `None` if the operator reports none, or has not looked at
    /// this generation yet. `settings` are those of the policy that governs the CRD.
    pub fn of(
        document: &Json,
        crd: &Crd,
        report: Option<&DefaultsReportStatus>,
        settings: Option<&Settings>,
    ) -> Option<Self> {
        let [.., persisted] = TYPES;
        let is_of_now = |condition: &Condition| {
            condition.r#type == persisted
                && condition.observed_generation.is_none_or(|generation| generation == crd.generation())
        };
        if let Some(condition) = present(document).into_iter().find(is_of_now) {
            if condition.reason == Reason::NonStructural.as_str() {
                return Some(Self::NonStructural);
            }
            // A schema that settles may lack a permission as well.
            if condition.reason == Reason::Forbidden.as_str()
                || condition.message.contains(MISSING_PERMISSION)
            {
                return Some(Self::Permission);
            }
        }
        let report = report?;
        if let Some(lost) = report.owners_lost.as_ref().filter(|_| report.digest == crd.digest()) {
            return Some(Self::OwnersLost(lost.clone()));
        }
        let progress = report.canary.as_ref().filter(|canary| canary.generation == crd.generation())?;
        let resumed = &document["metadata"]["annotations"][RESUME_ANNOTATION];
        let is_resumed = resumed.as_str().and_then(|resumed| resumed.parse().ok()) == Some(crd.generation());
        let hold = CanaryHold::of(progress, crd.name()).filter(|_| !is_resumed)?;
        let goes_on = settings.is_some_and(|settings| match settings.canary {
            None => true,
            Some(canary) => canary.then == AfterCanary::Continue && !hold.is_refused,
        });
        (!goes_on).then_some(Self::Canary(hold))
    }

    /// The obstacle and what to do about it, without a full stop. `grant` is the command that grants the
    /// permissions.
    pub fn in_words(&self, grant: &str) -> String {
        match self {
            Self::NonStructural => {
                "the schema is not structural; make it structural (condition NonStructural)".to_owned()
            }
            Self::Permission => format!("{MISSING_PERMISSION}; to grant it, run: {grant}"),
            Self::OwnersLost(LostOwners { object, managers }) => {
                StopReason::OwnersLost { object: object.clone(), managers: managers.clone() }.to_string()
            }
            Self::Canary(hold) => canary(hold),
        }
    }
}

/// Why the API server rejected the operator's last write of this object, as the report has it; `None` if the
/// report names no such object, or is about other defaults.
pub fn rejection<'a>(
    report: Option<&'a DefaultsReportStatus>,
    crd: &Crd,
    object: &Object,
) -> Option<&'a ObjectProblem> {
    let report = report.filter(|report| report.digest == crd.digest())?;
    report.rejected.iter().find(|problem| problem.uid == object.uid())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::api::{Amount, Canary, CanaryProgress, CanaryState, DefaultsPolicySpec, Policies, assign};
    use crate::crd::sample::{things_document, with_spec};

    const GRANT: &str = "etch rbac --policy default | kubectl apply -f -";

    fn document(status: &Value, annotations: Value) -> Json {
        let mut document = things_document(with_spec(json!({ "size": { "type": "integer", "default": 1 } })));
        document["metadata"]["annotations"] = annotations;
        document["status"] = json!({ "conditions": [status] });
        document.into()
    }

    fn condition(reason: &str, message: &str, generation: i64) -> Value {
        json!({
            "type": "DefaultsPersisted", "status": "False", "reason": reason, "message": message,
            "observedGeneration": generation,
        })
    }

    fn words(document: &Json, report: &DefaultsReportStatus, settings: Option<&Settings>) -> Option<String> {
        let crd = Crd::read(document).expect("a CRD");
        let report = DefaultsReportStatus { digest: crd.digest(), ..report.clone() };
        let obstacle = Obstacle::of(document, &crd, Some(&report), settings);
        obstacle.map(|obstacle| obstacle.in_words(GRANT))
    }

    fn settings(canary: Option<AfterCanary>) -> Settings {
        let canary = canary.map(|then| Canary { objects: Amount::Objects(5), then });
        let spec = DefaultsPolicySpec { canary, ..DefaultsPolicySpec::default() };
        let policies = Policies::from([("default".to_owned(), spec)]);
        let assigned =
            assign(&policies, "things.example.com", "example.com", &BTreeMap::new(), Duration::ZERO);
        assigned.expect("selected").settings
    }

    #[test]
    fn a_condition_about_this_generation_names_what_is_missing() {
        let report = DefaultsReportStatus::default();
        let permission = format!("a permission is missing; to grant it, run: {GRANT}");
        let structural = "the schema is not structural; make it structural (condition NonStructural)";
        for (reason, message, generation, expected) in [
            ("Forbidden", "a permission is missing; add this rule", 1, Some(permission.clone())),
            ("Settling", "the schema changed; a permission is missing; add it", 1, Some(permission)),
            ("Forbidden", "a permission is missing; add this rule", 0, None),
            ("NonStructural", "", 1, Some(structural.to_owned())),
            ("ObjectsRejected", "1 rejected: default/a", 1, None),
            ("AllPersisted", "", 1, None),
        ] {
            let document = document(&condition(reason, message, generation), json!({}));
            assert_eq!(words(&document, &report, Some(&settings(None))), expected, "{reason} {generation}");
        }
    }

    #[test]
    fn a_canary_holds_until_it_is_resumed() {
        let waiting = "the canary wrote 5 objects; to write the others, run: etch resume things.example.com";
        let rejected = "the canary wrote 5 objects and stopped, because a write was rejected; to write the \
            others, run: etch resume things.example.com";
        let [wait, goes_on] = [AfterCanary::Wait, AfterCanary::Continue].map(|then| settings(Some(then)));
        for (state, generation, resumed, settings, expected) in [
            (CanaryState::Waiting, 1, None, Some(&wait), Some(waiting)),
            (CanaryState::Waiting, 1, None, None, Some(waiting)),
            (CanaryState::Waiting, 1, Some("0"), Some(&wait), Some(waiting)),
            (CanaryState::Waiting, 1, Some("1"), Some(&wait), None),
            (CanaryState::Waiting, 0, None, Some(&wait), None),
            (CanaryState::Waiting, 1, None, Some(&goes_on), None),
            (CanaryState::Waiting, 1, None, Some(&settings(None)), None),
            (CanaryState::Rejected, 1, None, Some(&goes_on), Some(rejected)),
            (CanaryState::Running, 1, None, Some(&wait), None),
            (CanaryState::Passed, 1, None, Some(&wait), None),
        ] {
            let annotations = resumed.map_or(json!({}), |resumed| json!({ RESUME_ANNOTATION: resumed }));
            let document = document(&condition("CanaryWaiting", "", 1), annotations);
            let canary = Some(CanaryProgress { generation, state, written: 5 });
            let report = DefaultsReportStatus { canary, ..DefaultsReportStatus::default() };
            let found = words(&document, &report, settings);
            assert_eq!(found.as_deref(), expected, "{state:?} {generation} {resumed:?}");
        }
    }

    #[test]
    fn a_lost_owner_and_a_rejected_object_are_named_as_the_report_has_them() {
        let document = document(&condition("ObjectsRejected", "", 1), json!({}));
        let lost = LostOwners { object: "default/a".to_owned(), managers: vec!["web".to_owned()] };
        let problem = ObjectProblem { uid: "1".to_owned(), ..ObjectProblem::default() };
        let report = DefaultsReportStatus {
            owners_lost: Some(lost),
            rejected: vec![problem.clone()],
            ..DefaultsReportStatus::default()
        };
        let found = words(&document, &report, None).expect("an obstacle");
        assert!(
            found.starts_with("a write to default/a made the API server drop the field owners"),
            "{found}"
        );
        let crd = Crd::read(&document).expect("a CRD");
        let object = |uid: &str| Object::from(json!({ "metadata": { "name": "a", "uid": uid } }));
        assert_eq!(rejection(Some(&report), &crd, &object("1")), None, "about other defaults");
        let report = DefaultsReportStatus { digest: crd.digest(), ..report };
        assert_eq!(rejection(Some(&report), &crd, &object("1")), Some(&problem));
        assert_eq!(rejection(Some(&report), &crd, &object("2")), None);
    }
}
