//! What is answered to the author of an upgrade, of the deletion or of a migration of a CRD: the objects are
//! listed within the request, and nothing waits for them for long.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use etch::metrics::Metrics;
use etch::operator::{Operator, UpgradeGuard};
use etch::server::admission::{AdmissionHandler, References, ServedSchemas, Upgrades};
use etch_core::upgrade::{ALLOW_ANNOTATION, ALLOW_DELETION_ANNOTATION, ALLOW_MIGRATION_ANNOTATION, digest};
use futures::FutureExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::pass_status::set_policy;
use super::server::{Answer, Log, Request};
use super::world::{CRDS, POLICIES, World, crd_named, filled, is_about_objects, options, thing};

const NAME: &str = "things.example.com";

/// A replica that looks at upgrades in a world.
struct Replica {
    router: Router,
    log: Log,
    metrics: Arc<Metrics>,
    _operator: Operator,
}

impl Replica {
    async fn start(world: &World) -> Self {
        let (cluster, log) = world.serve();
        let operator = Operator::start(cluster.clone(), options(), Arc::default());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let guard = UpgradeGuard::new(cluster, operator.policy_lookup());
        let upgrades = Upgrades::new(move |update, until| {
            let guard = guard.clone();
            async move { guard.judge(update, until).await }.boxed()
        });
        let metrics = Arc::new(Metrics::default());
        let references = References::new(|_| async { None }.boxed());
        let handler =
            AdmissionHandler::new(ServedSchemas::default(), references, metrics.clone()).guarded_by(upgrades);
        Self { router: handler.router(), log, metrics, _operator: operator }
    }

    async fn ask(&self, request: Value) -> Value {
        answered(self.router.clone(), request).await
    }

    /// How often objects were listed.
    fn lists(&self) -> usize {
        self.log.count(is_about_objects)
    }
}

async fn answered(router: Router, request: Value) -> Value {
    let review =
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
    let request = http::Request::post("/guard").body(Body::from(review.to_string())).expect("a request");
    let answer = router.oneshot(request).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    let mut review: Value = serde_json::from_slice(&body).expect("JSON");
    review["response"].take()
}

/// An update that changes the CRD in this way.
fn update(change: impl FnOnce(&mut Value)) -> Value {
    let old = crd_named("things");
    let mut new = old.clone();
    change(&mut new);
    json!({
        "uid": "7", "operation": "UPDATE", "name": NAME,
        "kind": { "group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition" },
        "resource": { "group": "apiextensions.k8s.io", "version": "v1", "resource": CRDS },
        "object": new, "oldObject": old,
    })
}

fn size(crd: &mut Value) -> &mut Value {
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    &mut schema["properties"]["spec"]["properties"]["size"]
}

/// The deletion of a CRD that this was done to before.
fn deletion(change: impl FnOnce(&mut Value)) -> Value {
    let mut request = update(change);
    let crd = request["object"].take();
    request["operation"] = json!("DELETE");
    request["oldObject"] = crd;
    request
}

/// The default changes, so every object shows another value.
fn upgrade() -> Value {
    update(|crd| size(crd)["default"] = json!(5))
}

fn govern(world: &World, spec: Value) {
    let policy = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
        "metadata": { "name": "default", "uid": "p", "generation": 2 }, "spec": spec,
    });
    world.put(POLICIES, policy);
}

const CHANGES: &str = "etch: 2 of 2 objects: .spec.size may change: ns/a, ns/b";

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_changes_objects_is_warned_of_and_one_that_does_not_is_not() {
    let world = World::with(&["a", "b"]);
    let replica = Replica::start(&world).await;
    let allowed = json!({ "uid": "7", "allowed": true });
    let answer = replica.ask(upgrade()).await;
    assert_eq!(answer, json!({ "uid": "7", "allowed": true, "warnings": [CHANGES] }));
    // A dry run gets the same answer.
    let mut dry = upgrade();
    dry["dryRun"] = json!(true);
    assert_eq!(replica.ask(dry).await, answer);
    let silent = update(|crd| size(crd)["maximum"] = json!(9));
    assert_eq!(replica.ask(silent).await, allowed);
    assert!(replica.lists() > 0);
    let shown = replica.metrics.text();
    let counted = r#"etch_admission_reviews_total{schema="/guard",operation="UPDATE",outcome="Warned"} 2"#;
    assert!(shown.contains(counted), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_touch_objects_asks_for_nothing() {
    let world = World::with(&["a"]);
    govern(&world, json!({ "guard": "Deny" }));
    let replica = Replica::start(&world).await;
    let labels = update(|crd| crd["metadata"]["labels"] = json!({ "a": "b" }));
    let finalizers = update(|crd| crd["metadata"]["finalizers"] = json!(["a"]));
    let mut status = upgrade();
    status["subResource"] = json!("status");
    let mut terminating = upgrade();
    terminating["object"]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut own = upgrade();
    own["object"]["spec"]["group"] = json!("etch-operator.io");
    for request in [labels, finalizers, status, terminating, own] {
        assert_eq!(replica.ask(request).await, json!({ "uid": "7", "allowed": true }));
    }
    assert_eq!(replica.lists(), 0);
}

#[tokio::test(start_paused = true)]
async fn deny_names_the_digest_that_lets_the_upgrade_through() {
    let world = World::with(&["a", "b"]);
    govern(&world, json!({ "guard": "Deny" }));
    let replica = Replica::start(&world).await;
    let refused = replica.ask(upgrade()).await;
    assert_eq!((&refused["allowed"], &refused["status"]["code"]), (&json!(false), &json!(403)));
    let digest = digest(&upgrade()["oldObject"], &upgrade()["object"]);
    let expected = format!(
        "upgrading {NAME} would harm objects:\n- 2 of 2 objects: .spec.size may change: ns/a, ns/b\nTo allow \
         exactly this upgrade, set the annotation {ALLOW_ANNOTATION}: {digest}"
    );
    assert_eq!(refused["status"]["message"], expected);
    let annotated = |default: u64| {
        update(|crd| {
            size(crd)["default"] = json!(default);
            crd["metadata"]["annotations"] = json!({ ALLOW_ANNOTATION: digest });
        })
    };
    let allowed = replica.ask(annotated(5)).await;
    assert_eq!((&allowed["allowed"], &allowed["warnings"]), (&json!(true), &json!([CHANGES])));
    assert_eq!(replica.ask(annotated(6)).await["allowed"], false, "that is another upgrade");
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_crd_with_objects_is_warned_of_or_refused() {
    let world = World::with(&["a", "b"]);
    let replica = Replica::start(&world).await;
    let deleted = "2 objects are deleted with it: ns/a, ns/b";
    let warned = json!({ "uid": "7", "allowed": true, "warnings": [format!("etch: {deleted}")] });
    assert_eq!(replica.ask(deletion(|_| ())).await, warned);
    let foreign = replica.ask(deletion(|crd| crd["metadata"]["uid"] = json!("another"))).await;
    let unknown = "etch: not all objects counted: the CRD in the request is not the stored one; \
        `kubectl get things.example.com -A` lists them";
    assert_eq!(foreign["warnings"], json!([unknown]));
    let (lists, allowed) = (replica.lists(), json!({ "uid": "7", "allowed": true }));
    let again = deletion(|crd| crd["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert_eq!(replica.ask(again).await, allowed, "it is being deleted");
    assert_eq!(replica.lists(), lists);

    let world = World::with(&["a", "b"]);
    govern(&world, json!({ "guard": "Deny" }));
    let replica = Replica::start(&world).await;
    let refused = replica.ask(deletion(|_| ())).await;
    let uid = crd_named("things")["metadata"]["uid"].clone();
    let uid = uid.as_str().expect("a uid");
    let expected = format!(
        "deleting {NAME} would delete its objects:\n- {deleted}\nTo allow it, annotate the CRD first: \
         kubectl annotate crd {NAME} {ALLOW_DELETION_ANNOTATION}={uid}"
    );
    assert_eq!(refused["status"]["message"], expected);
    let annotate = |value: &'static str| {
        move |crd: &mut Value| {
            crd["metadata"]["annotations"] = json!({ ALLOW_DELETION_ANNOTATION: value });
        }
    };
    assert_eq!(replica.ask(deletion(annotate("another"))).await["allowed"], false);
    let uid: &'static str = uid.to_owned().leak();
    assert_eq!(replica.ask(deletion(annotate(uid))).await, warned);

    let world = World::with(&[]);
    govern(&world, json!({ "guard": "Deny" }));
    assert_eq!(Replica::start(&world).await.ask(deletion(|_| ())).await, allowed, "it has no objects");
}

/// The creation of a StorageVersionMigration for this resource.
fn migration(resource: &str, annotations: &Value) -> Value {
    let group = json!({ "group": "example.com", "resource": resource });
    json!({
        "uid": "7", "operation": "CREATE", "name": "m",
        "kind": { "group": "storagemigration.k8s.io", "version": "v1", "kind": "StorageVersionMigration" },
        "resource": {
            "group": "storagemigration.k8s.io", "version": "v1", "resource": "storageversionmigrations",
        },
        "object": { "metadata": { "name": "m", "annotations": annotations }, "spec": { "resource": group } },
    })
}

#[tokio::test(start_paused = true)]
async fn a_migration_is_warned_of_or_refused_where_it_destroys_hidden_fields() {
    let world = World::with(&["a", "b"]);
    let replica = Replica::start(&world).await;
    let filled = "etch: 2 of 2 objects: the migration may store defaults that etcd lacks: ns/a, ns/b";
    let expected = json!({ "uid": "7", "allowed": true, "warnings": [filled] });
    assert_eq!(replica.ask(migration("things", &Value::Null)).await, expected);
    let (lists, allowed) = (replica.lists(), json!({ "uid": "7", "allowed": true }));
    assert_eq!(replica.ask(migration("others", &Value::Null)).await, allowed, "it is no CRD");
    assert_eq!(replica.lists(), lists);

    govern(&world, json!({ "guard": "Deny" }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(replica.ask(migration("things", &Value::Null)).await, expected, "that is no harm");
    let mut hiding = thing("c");
    hiding["metadata"]["managedFields"] = json!([{ "manager": "user", "operation": "Update",
        "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": { "f:old": {} } } }]);
    world.put(super::world::THINGS, hiding);
    let refused = replica.ask(migration("things", &Value::Null)).await;
    let message = refused["status"]["message"].as_str().expect("a message");
    let expected = format!(
        "migrating the objects of {NAME} would harm them:\n- 1 of 3 objects: the migration destroys hidden \
         fields: ns/c"
    );
    assert!(message.starts_with(&expected), "{message}");
    let uid = crd_named("things")["metadata"]["uid"].clone();
    let uid = uid.as_str().expect("a uid");
    assert!(message.ends_with(&format!("{ALLOW_MIGRATION_ANNOTATION}: {uid}")), "{message}");
    let annotated = migration("things", &json!({ ALLOW_MIGRATION_ANNOTATION: uid }));
    assert_eq!(replica.ask(annotated).await["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_policy_can_turn_it_off() {
    for spec in [json!({ "guard": "Off" }), json!({ "mode": "Ignore" })] {
        let world = World::with(&["a"]);
        govern(&world, spec);
        let replica = Replica::start(&world).await;
        assert_eq!(replica.ask(upgrade()).await, json!({ "uid": "7", "allowed": true }));
        assert_eq!(replica.lists(), 0);
    }
    let world = World::with(&["a"]);
    world.remove(POLICIES, "default");
    let replica = Replica::start(&world).await;
    assert_eq!(replica.ask(upgrade()).await, json!({ "uid": "7", "allowed": true }));
    assert_eq!(replica.lists(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_in_time_is_not_waited_for() {
    let world = World::with(&["a", "b"]);
    govern(&world, json!({ "guard": "Deny" }));
    // The last of them is asked for when the third was taken over, and so the first evaluated.
    world.fails(|request| {
        let page = |number: u32| {
            let next = (number + 1).to_string();
            let metadata = json!({ "continue": next, "remainingItemCount": 38 - number * 2 });
            Answer::json(json!({ "metadata": metadata, "items": [seen("a"), seen("b")] }))
        };
        let answer = || match request.asked("continue").parse().unwrap_or(0) {
            number @ 0..4 => page(number),
            _ => Answer::Hang,
        };
        is_about_objects(request).then(answer)
    });
    let replica = Replica::start(&world).await;
    let asking = tokio::spawn(answered(replica.router.clone(), upgrade()));
    until(&replica, |request| request.asked("continue") == "4").await;
    tokio::time::advance(Duration::from_millis(1_600)).await;
    let refused = asking.await.expect("no panic");
    let message = refused["status"]["message"].as_str().expect("a refusal");
    assert!(message.contains("that were checked: .spec.size may change: ns/a, ns/b"), "{message}");
    assert!(message.contains("\n- not fully checked, "), "{message}");
    assert!(message.contains(" of about 40 objects: the time limit expired; "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_looked_at_is_a_warning_and_refuses_nothing() {
    let world = World::with(&["a"]);
    govern(&world, json!({ "guard": "Deny" }));
    let replica = Replica::start(&world).await;
    world.fails(|request| is_about_objects(request).then(|| Answer::status(403, "Forbidden", "canary")));
    let unchecked = "etch: not fully checked, 0 objects: Etch may not list things.example.com, see \
        `etch rbac`; `etch impact -f FILE --live` checks all";
    let answer = replica.ask(upgrade()).await;
    assert_eq!(answer, json!({ "uid": "7", "allowed": true, "warnings": [unchecked] }));

    world.fails(|request| is_about_objects(request).then_some(Answer::Hang));
    let before = replica.lists();
    let asking = tokio::spawn(answered(replica.router.clone(), upgrade()));
    while replica.lists() == before {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(Duration::from_millis(1_600)).await;
    let answer = asking.await.expect("no panic");
    let warning = answer["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("not fully checked, 0 objects: the time limit expired"), "{warning}");
    assert_eq!(answer["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_cannot_be_looked_at_is_warned_of() {
    let world = World::with(&["a"]);
    govern(&world, json!({ "guard": "Deny" }));
    let replica = Replica::start(&world).await;
    let warned = |why: &str| {
        let warning = format!("etch: not all objects checked: {why}; `etch audit {NAME}` checks all");
        json!({ "uid": "7", "allowed": true, "warnings": [warning] })
    };
    let asks = |request: &Request| request.path.contains("/customresourcedefinitions/");
    world.fails(move |request| asks(request).then(|| Answer::status(500, "InternalError", "canary")));
    let answer = replica.ask(migration("things", &Value::Null)).await;
    assert_eq!(answer, warned("the API server answered 500 to the list"));
    let silent = replica.ask(migration("others", &Value::Null)).await;
    assert_eq!(silent, json!({ "uid": "7", "allowed": true }), "it is no CRD");
    world.fails(move |request| asks(request).then_some(Answer::Hang));
    let asking = tokio::spawn(answered(replica.router.clone(), migration("things", &Value::Null)));
    tokio::time::sleep(Duration::from_millis(1_600)).await;
    assert_eq!(asking.await.expect("no panic"), warned("no time was left to check it"));
    set_policy(&world, 3, json!({ "guard": "Off" }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.fails(move |request| asks(request).then(|| Answer::status(500, "InternalError", "canary")));
    let silent = replica.ask(migration("things", &Value::Null)).await;
    assert_eq!(silent, json!({ "uid": "7", "allowed": true }));
}

/// Has a CRD store its objects at a version that it does not serve.
fn store_unserved(crd: &mut Value) {
    let mut stored = crd["spec"]["versions"][0].clone();
    crd["spec"]["versions"][0]["storage"] = json!(false);
    stored["name"] = json!("v2");
    stored["served"] = json!(false);
    crd["spec"]["versions"].as_array_mut().expect("a list").push(stored);
}

#[tokio::test(start_paused = true)]
async fn objects_whose_storage_version_is_not_served_count_for_a_deletion() {
    let world = World::with(&["a", "b"]);
    let mut crd = crd_named("things");
    store_unserved(&mut crd);
    world.put(CRDS, crd);
    govern(&world, json!({ "guard": "Deny" }));
    world.fails(|request| {
        let is_unserved = request.path.starts_with("/apis/example.com/v2/");
        is_unserved.then(|| Answer::text(404, "404 page not found\n"))
    });
    let replica = Replica::start(&world).await;
    let refused = replica.ask(deletion(store_unserved)).await;
    let message = refused["status"]["message"].as_str().expect("a refusal");
    assert!(message.contains("\n- 2 objects are deleted with it: ns/a, ns/b\n"), "{message}");
    assert!(message.contains("\n- stored at a version that nothing shows: 2\n"), "{message}");

    let lists = replica.lists();
    let mut request = update(|crd| {
        store_unserved(crd);
        size(crd)["default"] = json!(5);
    });
    store_unserved(&mut request["oldObject"]);
    let unchecked = "etch: not fully checked, 0 objects: the storage version v2 is not served; \
                     `etch impact -f FILE --live` checks all";
    assert_eq!(replica.ask(request).await, json!({ "uid": "7", "allowed": true, "warnings": [unchecked] }));
    assert_eq!(replica.lists(), lists);
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_changes_the_labels_is_judged_by_the_stricter_policy() {
    let strict = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
        "metadata": { "name": "strict", "uid": "s", "generation": 1 },
        "spec": { "guard": "Deny", "selector": { "matchLabels": { "guard": "strict" } } },
    });
    let label = |crd: &mut Value| crd["metadata"]["labels"] = json!({ "guard": "strict" });
    for spec in [json!({}), json!({ "mode": "Ignore" })] {
        let world = World::with(&["a", "b"]);
        govern(&world, spec);
        world.put(POLICIES, strict.clone());
        let replica = Replica::start(&world).await;
        let mut dropping = upgrade();
        label(&mut dropping["oldObject"]);
        let mut adding = upgrade();
        label(&mut adding["object"]);
        for request in [dropping, adding] {
            assert_eq!(replica.ask(request).await["allowed"], false);
        }
        assert_eq!(replica.ask(upgrade()).await["allowed"], true);
    }
}

/// Waits until something has been asked. The clock stands still as long as a thread is busy with a request,
/// so nothing is slept.
async fn until(replica: &Replica, asked: impl Fn(&Request) -> bool) {
    while replica.log.count(&asked) == 0 {
        tokio::task::yield_now().await;
    }
}

/// An object as a server shows it.
fn seen(name: &str) -> Value {
    filled(&thing(name))
}

#[tokio::test(start_paused = true)]
async fn objects_are_listed_only_where_the_old_crd_is_the_stored_one() {
    let world = World::with(&["a", "b"]);
    let replica = Replica::start(&world).await;
    let forgeries: [fn(&mut Value); 5] = [
        |old| old["metadata"]["uid"] = json!("another"),
        |old| old["metadata"]["generation"] = json!(2),
        |old| drop(old["metadata"].as_object_mut().map(|metadata| metadata.remove("uid"))),
        |old| old["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({ "type": "object" }),
        |old| old["metadata"]["name"] = json!("nothings.example.com"),
    ];
    for forge in forgeries {
        let mut request = upgrade();
        forge(&mut request["oldObject"]);
        let answer = replica.ask(request).await.to_string();
        assert!(answer.contains("not fully checked") && !answer.contains("ns/a"), "{answer}");
    }
    assert_eq!(replica.lists(), 0);
    // What Etch itself writes beside the spec does not count.
    let mut request = upgrade();
    request["oldObject"]["metadata"]["resourceVersion"] = json!("1");
    request["oldObject"]["status"] = json!({ "conditions": [] });
    assert_eq!(replica.ask(request).await["warnings"], json!([CHANGES]));
}
