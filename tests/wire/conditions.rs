//! Our conditions on a CRD, where others write conditions too.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use super::pass_status::{set_default, set_policy};
use super::server::{Answer, Request};
use super::world::{
    CRD, CRDS, HOUR, MINUTE, POLICIES, THINGS, World, crd_named, is_about_objects, is_write, operate,
};

const STORED: &str = "True AllPersisted: 1 of 1 object stores its defaults";

fn is_of_conditions(request: &Request) -> bool {
    request.method == "PATCH" && request.path.ends_with("customresourcedefinitions/things.example.com/status")
}

/// A read of the CRD with its schema.
fn is_of_crd(request: &Request) -> bool {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
    request.method == "GET" && request.path == path && !request.accepts.contains("PartialObjectMetadata")
}

/// Another client's conditions, by which it takes ownership of ours.
fn replace_conditions(world: &World, by: &str) {
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    let condition = |name: &str| json!({ "type": name, "status": "True", "reason": "Mine", "message": by });
    let all: Vec<Value> =
        ["NonStructural", "InvalidDefaults", "DefaultsPersisted"].into_iter().map(condition).collect();
    crd["status"] = json!({ "conditions": all });
    // As the server has it: what another client has changed is no longer ours.
    crd["metadata"]["managedFields"] = json!([]);
    world.put(CRDS, crd);
}

#[tokio::test(start_paused = true)]
async fn conditions_that_somebody_has_replaced_are_ours_again() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(10 * MINUTE);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    // The client that patches all conditions owns them; what is not forced is refused from then on.
    world.fails(|request| {
        let refused = is_of_conditions(request) && request.asked("force") != "true";
        let conflict =
            "Apply failed with 3 conflicts: conflicts with \"kubectl-patch\" using apiextensions.k8s.io/v1";
        refused.then(|| Answer::status(409, "Conflict", conflict))
    });
    replace_conditions(&world, "a merge patch");
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), STORED, "{} writes", log.count(is_of_conditions));
    operator.await.expect("it ends by itself");
}

/// A replica that led before had sent it, or a task that has ended.
#[tokio::test(start_paused = true)]
async fn a_condition_that_arrives_late_in_our_own_name_is_set_right() {
    let world = World::with(&["a"]);
    world.fails(|request| is_write(request).then(|| Answer::invalid("no")));
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("False ObjectsRejected"), "{}", world.persisted());
    let last = log.of(is_of_conditions).pop().expect("a write").body;
    let mut late = last.clone();
    for condition in late["status"]["conditions"].as_array_mut().expect("conditions") {
        if condition["type"] == "DefaultsPersisted" {
            (condition["status"], condition["reason"]) = (json!("True"), json!("AllPersisted"));
        }
    }
    // It was made for the CRD as it was before the last write, which has replaced it.
    let Answer::Reply { code: 409, .. } = world.set_conditions(CRD, &late) else {
        panic!("it is carried out")
    };
    // No condition was written since.
    late["metadata"]["resourceVersion"] =
        world.stored(CRDS, CRD).expect("the CRD")["metadata"]["resourceVersion"].clone();
    world.set_conditions(CRD, &late);
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("False ObjectsRejected"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_another_client_has_edited_is_read_once_and_before_its_conditions_are_written() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(20 * MINUTE).await;
    let (read, written) = (log.count(is_of_crd), log.count(is_of_conditions));
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    crd["metadata"]["annotations"] = json!({ "team": "a" });
    world.put(CRDS, crd);
    tokio::time::sleep(MINUTE).await;
    world.put_unfilled(THINGS, "b");
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    assert_eq!((log.count(is_of_crd) - read, log.count(is_of_conditions) - written), (1, 1));
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn conditions_that_no_manager_owns_any_more_go_with_the_policy() {
    let world = World::with(&["a"]);
    let (operator, _) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    crd["metadata"]["managedFields"] = json!([]);
    world.put(CRDS, crd);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    set_policy(&world, 2, json!({ "selector": { "groups": ["other.io"] } }));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), "");
    operator.abort();
}

/// Until the policies are listed, it is not known that none selects a CRD.
#[tokio::test(start_paused = true)]
async fn conditions_stay_while_a_restarted_operator_cannot_list_policies() {
    let world = World::with(&["a"]);
    world.operate(10 * MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    let before = world.stored(CRDS, CRD).expect("the CRD")["status"].clone();
    world.fails(|request| {
        let lists = request.method == "GET" && request.path.ends_with(POLICIES);
        lists.then(Answer::unavailable)
    });
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(MINUTE).await;
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    crd["metadata"]["annotations"] = json!({ "team": "a" });
    world.put(CRDS, crd);
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(log.count(is_of_conditions), 0, "{:#?}", log.of(is_of_conditions));
    assert_eq!(world.stored(CRDS, CRD).expect("the CRD")["status"], before);
    world.heals();
    operator.await.expect("it ends by itself");
    assert_eq!(world.persisted(), STORED);
}

#[tokio::test(start_paused = true)]
async fn our_own_conditions_are_not_read_again_after_they_were_written() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(10 * MINUTE);
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    assert!(log.count(is_of_conditions) > 1);
    assert_eq!(log.count(is_of_crd), 1);
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_not_taken_for_a_crd_that_is_gone() {
    let world = World::with(&["a"]);
    let (cluster, _) = world.serve();
    let mut conflicts = 12;
    world.fails(move |request| {
        conflicts -= i32::from(is_of_conditions(request));
        let conflict = || Answer::status(409, "Conflict", "the object has been modified");
        (is_of_conditions(request) && conflicts >= 0).then(conflict)
    });
    let operator = tokio::spawn(operate(cluster, 10 * MINUTE));
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(world.persisted(), STORED);
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_was_created_anew_gets_no_condition_that_was_meant_for_the_old_one() {
    let world = World::with(&["a"]);
    let (cluster, log) = world.serve();
    let created = AtomicBool::new(false);
    let anew = world.clone();
    world.loses(move |_, request| {
        if !is_of_conditions(request) || created.swap(true, Ordering::Relaxed) {
            return None;
        }
        let mut crd = anew.stored(CRDS, CRD).expect("the CRD");
        anew.remove(CRDS, CRD);
        crd["metadata"]["uid"] = json!("another");
        crd["metadata"]["managedFields"] = json!([]);
        crd["status"] = json!({});
        anew.put(CRDS, crd);
        Some(Answer::status(409, "Conflict", "Precondition failed: UID in precondition: crd-things"))
    });
    let operator = tokio::spawn(operate(cluster, 5 * MINUTE));
    tokio::time::sleep(4 * MINUTE).await;
    let uid = |request: &Request| request.body["metadata"]["uid"] == "crd-things";
    assert_eq!(log.count(|request| is_of_conditions(request) && uid(request)), 1);
    assert_eq!(world.persisted(), STORED);
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn two_releases_that_both_insist_write_ever_more_seldom() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(3 * HOUR);
    tokio::time::sleep(MINUTE).await;
    let others = Arc::new(AtomicU64::new(0));
    let other = others.clone();
    let answered = world.clone();
    world.loses(move |_, request| {
        if is_of_conditions(request) {
            replace_conditions(&answered, &other.fetch_add(1, Ordering::Relaxed).to_string());
        }
        if request.method == "PATCH" && request.path.ends_with("defaultspolicies/default/status") {
            let mut policy = answered.stored(POLICIES, "default").expect("the policy");
            policy["status"] = json!({ "crds": 77 });
            answered.put(POLICIES, policy);
        }
        None
    });
    replace_conditions(&world, "another release");
    let mut policy = world.stored(POLICIES, "default").expect("the policy");
    policy["status"] = json!({ "crds": 77 });
    world.put(POLICIES, policy);
    let before = log.all().len();
    tokio::time::sleep(HOUR).await;
    let hour = log.all().split_off(before);
    let conditions = hour.iter().filter(|request| is_of_conditions(request)).count();
    let policies = hour.iter().filter(|request| {
        request.method == "PATCH" && request.path.ends_with("defaultspolicies/default/status")
    });
    let policies = policies.count();
    assert!((3..=14).contains(&conditions), "{conditions} writes of conditions in an hour");
    assert!((3..=14).contains(&policies), "{policies} writes of a policy's status in an hour");
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_crd_without_defaults_says_so_once_and_costs_nothing_more() {
    let world = World::with(&["a"]);
    set_default(&world, 1, None);
    let log = world.operate(MINUTE).await;
    assert_eq!(world.persisted(), "True NoDefaults: the storage version v1 has no defaults");
    assert_eq!(log.count(is_of_conditions), 1);
    assert_eq!(log.count(is_about_objects), 0, "its objects are not read");
    assert_eq!(world.report(CRD), None);
    let conditions = world.stored(CRDS, CRD).expect("the CRD")["status"]["conditions"].clone();
    assert_eq!(conditions.as_array().map(Vec::len), Some(3), "{conditions}");
    let log = world.operate(MINUTE).await;
    assert_eq!(log.count(|request| request.method == "PATCH"), 0, "nor does a restart");
    // Whatever the policy asks for; not where there is none.
    set_policy(&world, 2, json!({ "mode": "Ignore" }));
    let log = world.operate(MINUTE).await;
    assert_eq!((world.persisted().starts_with("True NoDefaults"), log.count(is_of_conditions)), (true, 0));
    set_policy(&world, 3, json!({ "selector": { "groups": ["other.io"] } }));
    world.operate(MINUTE).await;
    assert_eq!(world.persisted(), "");
}

#[tokio::test(start_paused = true)]
async fn first_conditions_of_many_crds_without_defaults_are_written_one_at_a_time() {
    const CRDS_THERE: usize = 300;
    let world = World::with(&[]);
    for index in 0..CRDS_THERE {
        let plural = format!("kinds{index}");
        let mut crd = crd_named(&plural);
        let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["properties"]["size"].as_object_mut().expect("a schema").remove("default");
        crd["metadata"]["name"] = json!(format!("{plural}.example.com"));
        world.put(CRDS, crd);
    }
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(10 * MINUTE).await;
    let is_first = |request: &Request| request.method == "PATCH" && request.path.contains("/kinds");
    assert_eq!(log.count(is_first), CRDS_THERE);
    // A CRD is read when the one before it is written.
    let of_crds = log.of(|request| {
        request.path.contains("/customresourcedefinitions/kinds")
            && ["GET", "PATCH"].contains(&request.method.as_str())
    });
    let (mut read, mut written, mut most) = (BTreeSet::new(), 0, 0);
    for request in &of_crds {
        // What follows a write looks at what stands there.
        match request.method.as_str() {
            "GET" => drop(read.insert(request.path.clone())),
            _ => written += 1,
        }
        most = most.max(read.len() - written);
    }
    assert!(most <= 2, "{most} CRDs were read and not yet written");
    operator.abort();
}
