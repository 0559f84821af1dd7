//! What Etch reports of policies that do not do what their author meant, and what their edits cost.

use std::time::Duration;

use serde_json::{Value, json};

use super::generation::slow;
use super::pass_status::set_policy;
use super::server::{Answer, Request};
use super::world::{CRD, CRDS, HOUR, MINUTE, POLICIES, World, is_write};

/// A condition of a policy, as `status reason: message`.
fn wording(world: &World, policy: &str, kind: &str) -> String {
    let policy = world.stored(POLICIES, policy).expect("the policy");
    let conditions = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}

fn follows(path: &str) -> Value {
    json!({ "onChange": [{ "path": path, "action": "Follow" }] })
}

#[tokio::test(start_paused = true)]
async fn a_place_that_no_schema_has_is_told_once_and_until_it_is_corrected() {
    let world = World::with(&["a"]);
    set_policy(&world, 2, follows(".spec.sice"));
    let (operator, _) = world.operates(30 * MINUTE);
    tokio::time::sleep(10 * MINUTE).await;
    let unknown = "onChange names fields that no schema of its CRDs has: .spec.sice";
    assert_eq!(wording(&world, "default", "UnknownPaths"), format!("True NoSuchField: {unknown}"));
    let reported: Vec<_> =
        world.events().into_iter().filter(|(event, _)| event.contains("DefaultsPolicy/default")).collect();
    assert_eq!(reported, [(format!("Warning NoSuchField DefaultsPolicy/default: {unknown}"), 1)]);
    set_policy(&world, 3, follows(".spec.size"));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(wording(&world, "default", "UnknownPaths"), "False AllKnown: ");
    operator.abort();
    // What stands there is not reported again.
    set_policy(&world, 4, follows(".spec.sice"));
    world.operate(MINUTE).await;
    let log = world.operate(10 * MINUTE).await;
    assert_eq!(log.count(|request| request.path.starts_with("/apis/events.k8s.io/")), 0);
}

#[tokio::test(start_paused = true)]
async fn a_policy_shows_whether_it_selects_something() {
    let world = World::with(&["a"]);
    set_policy(&world, 2, json!({ "selector": { "names": ["things.exmaple.com"] } }));
    world.operate(MINUTE).await;
    let none = "True NothingSelected: the selector matches no CRD in the cluster";
    assert_eq!(wording(&world, "default", "Ready"), none);
    set_policy(&world, 3, json!({ "selector": { "names": ["things.example.com"] } }));
    world.operate(MINUTE).await;
    assert_eq!(wording(&world, "default", "Ready"), "True InForce: this policy governs 1 CRD");
}

#[tokio::test(start_paused = true)]
async fn a_policy_whose_status_is_refused_holds_up_no_other() {
    let world = World::with(&["a"]);
    let metadata = json!({ "name": "another", "uid": "q", "generation": 1 });
    let spec = json!({ "selector": { "names": ["others.example.com"] } });
    world.put(POLICIES, json!({ "kind": "DefaultsPolicy", "metadata": metadata, "spec": spec }));
    let is_status = |request: &Request| request.path.ends_with("/defaultspolicies/another/status");
    world.fails(move |request| {
        is_status(request).then(|| Answer::status(403, "Forbidden", "a policy of the cluster denies it"))
    });
    let (operator, log) = world.operates(31 * MINUTE);
    tokio::time::sleep(30 * MINUTE).await;
    set_policy(&world, 2, json!({ "selector": { "names": ["things.exmaple.com"] } }));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(wording(&world, "default", "Ready").starts_with("True NothingSelected"));
    let refused = log.count(is_status);
    assert!((8..20).contains(&refused), "{refused} attempts in half an hour");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_edited_all_the_time_lets_each_object_be_written_once() {
    // Where another version lacks the default, only a repeat of the write proves that it is stored.
    for (is_old_served, requests_for_each) in [(false, 1), (true, 2)] {
        let world = slow(100, 20, json!({}));
        if is_old_served {
            let mut crd = world.stored(CRDS, CRD).expect("the CRD");
            let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            let old = json!({
                "name": "v1beta1", "served": true, "storage": false, "schema": { "openAPIV3Schema": schema },
            });
            crd["spec"]["versions"].as_array_mut().expect("versions").push(old);
            world.put(CRDS, crd);
        }
        let (operator, log) = world.operates(HOUR);
        for edit in 0..60 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            set_policy(&world, 3 + edit, json!({ "maxWritesPerSecond": 20 + edit % 2 }));
        }
        assert_eq!(log.count(is_write), 100 * requests_for_each, "{is_old_served}");
        assert_eq!(world.persisted(), "True AllPersisted: all 100 objects store their defaults");
        operator.abort();
    }
}
