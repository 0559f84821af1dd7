use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::core::ApiResource;
use serde_json::json;

use super::*;
use crate::api::DefaultsPolicy;

const NAME: &str = "things.example.com";

fn crd(name: &str, generation: i64) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        uid: Some(format!("uid of {name}")),
        generation: Some(generation),
        ..ObjectMeta::default()
    }
}

fn policy(name: &str, spec: serde_json::Value) -> DynamicObject {
    let resource = ApiResource::erase::<DefaultsPolicy>(&());
    let mut policy = DynamicObject::new(name, &resource).data(json!({ "spec": spec }));
    policy.metadata.generation = Some(1);
    policy
}

fn listed(crds: &[&str], policies: &[DynamicObject]) -> Index {
    let mut index = Index::default();
    index.list_crds();
    for name in crds {
        assert_eq!(index.crd_applied(&crd(name, 1)), Change::Crd((*name).to_owned()));
    }
    assert_eq!(index.crds_listed(), Change::All);
    index.list_policies();
    for policy in policies {
        assert_eq!(index.policy_applied(policy).0, Change::Nothing);
    }
    assert!(!index.is_complete());
    assert_eq!(index.policies_listed(), Change::All);
    assert!(index.is_complete());
    index
}

fn governing(index: &Index, name: &str) -> Option<String> {
    index.assignment(name, Duration::ZERO).map(|assignment| assignment.settings.policy)
}

#[test]
fn a_crd_is_governed_by_a_policy_that_selects_its_group() {
    let examples = policy("examples", json!({ "selector": { "groups": ["example.com"] } }));
    let index = listed(&[NAME, "others.other.io"], &[examples]);
    assert_eq!(governing(&index, NAME).as_deref(), Some("examples"));
    assert_eq!(governing(&index, "others.other.io"), None);
    assert_eq!(governing(&index, "absent.example.com"), None);
}

#[test]
fn what_changes_a_crd_is_noticed_once() {
    let mut index = listed(&[NAME], &[]);
    let mut changed = crd(NAME, 1);
    changed.resource_version = Some("2".to_owned());
    assert_eq!(index.crd_applied(&changed), Change::Crd(NAME.to_owned()));
    assert_eq!(index.crd_applied(&changed), Change::Nothing);
    let mut others = |change: fn(&mut ObjectMeta)| {
        change(&mut changed);
        index.crd_applied(&changed)
    };
    let noticed = Change::Crd(NAME.to_owned());
    assert_eq!(others(|crd| crd.generation = Some(2)), noticed);
    assert_eq!(
        others(|crd| drop(crd.labels.get_or_insert_default().insert("l".to_owned(), "v".to_owned()))),
        noticed
    );
    let resume = |crd: &mut ObjectMeta| {
        drop(crd.annotations.get_or_insert_default().insert(RESUME_ANNOTATION.to_owned(), "2".to_owned()))
    };
    assert_eq!(others(resume), noticed);
    assert_eq!(others(|crd| crd.uid = Some("another".to_owned())), noticed);
    let entry = |fields| {
        Some(vec![ManagedFieldsEntry {
            manager: Some(MANAGER.to_owned()),
            subresource: Some("status".to_owned()),
            fields_v1: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }])
    };
    changed.managed_fields = entry(json!({ "f:status": { "f:conditions": {} } }));
    assert_eq!(index.crd_applied(&changed), noticed);
    assert_eq!(index.crd_applied(&changed), Change::Nothing);
    changed.managed_fields = entry(json!({ "f:status": {} }));
    assert_eq!(index.crd_applied(&changed), noticed);
    // Another apply in our name.
    let ours = changed.managed_fields.as_mut().and_then(|entries| entries.first_mut());
    ours.expect("an entry").time =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
    assert_eq!(index.crd_applied(&changed), noticed);
}

#[test]
fn what_a_list_does_not_name_is_gone() {
    let mut index = listed(&[NAME, "others.example.com"], &[policy("default", json!({}))]);
    index.list_crds();
    assert_eq!(index.crd_applied(&crd(NAME, 1)), Change::Nothing);
    assert!(index.crd("others.example.com").is_some(), "until the list is complete");
    assert_eq!(index.crds_listed(), Change::All);
    assert!(index.crd("others.example.com").is_none());
    index.list_policies();
    assert_eq!(index.policies_listed(), Change::All);
    assert_eq!(governing(&index, NAME), None);
}

#[test]
fn a_policy_of_a_generation_that_is_known_is_read_anew_where_it_is_listed() {
    let mut index = listed(&[NAME], &[policy("default", json!({}))]);
    index.list_policies();
    index.policy_applied(&policy("default", json!({ "paused": true })));
    assert_eq!(index.policies_listed(), Change::All);
    let assignment = index.assignment(NAME, Duration::ZERO).expect("it selects the CRD");
    assert!(assignment.settings.pause.is_some());
}

#[test]
fn a_crd_that_is_being_deleted_is_gone() {
    let mut index = listed(&[NAME], &[policy("default", json!({}))]);
    let mut ending = crd(NAME, 2);
    ending.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
    assert_eq!(index.crd_applied(&ending), Change::Gone(NAME.to_owned()));
    assert!(index.crd(NAME).is_none());
    assert_eq!(index.crd_deleted(NAME.to_owned()), Change::Gone(NAME.to_owned()));
}

#[test]
fn a_status_of_a_policy_is_no_news_and_a_policy_that_cannot_be_read_governs_and_pauses() {
    let mut index = listed(&[NAME], &[policy("default", json!({}))]);
    let mut reported = policy("default", json!({}));
    reported.data["status"] = json!({ "observedGeneration": 1 });
    assert_eq!(index.policy_applied(&reported).0, Change::PolicyStatus);
    let mut odd = policy("default", json!({ "mode": "Dream" }));
    odd.metadata.generation = Some(2);
    assert_eq!(index.unreadable_policies(), 0);
    assert_eq!(index.policy_applied(&odd).0, Change::All);
    assert_eq!(index.unreadable_policies(), 1);
    let assignment = index.assignment(NAME, Duration::ZERO).expect("it selects the CRD still");
    assert_eq!(assignment.settings.pause.expect("a pause").paused.as_deref(), Some("default"));
}
