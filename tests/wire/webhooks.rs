//! What admission reads and writes in a cluster: EmbeddedSchemas and facts become what is served, webhooks
//! and statuses.

use std::sync::Arc;
use std::time::Duration;

use etch::metrics::{Metrics, ReviewOutcome};
use etch::operator::{Admission, Clock, Operator};
use etch::server::Readiness;
use etch::server::admission::{AcceptedKeys, Authority, ServedSchemas};
use etch_admission::{Endpoint, GUARD, GUARDS, Injection, MIGRATION_GUARD};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::server::{Answer, Log, Request};
use super::world::{CRDS, FACTS, MINUTE, POLICIES, SCHEMAS, THINGS, WEBHOOKS, World, crd_named, options};

/// A replica that serves admission in a world.
pub(crate) struct Replica {
    serving: ServedSchemas,
    ready: Arc<Readiness>,
    authority: watch::Sender<Authority>,
    pub(crate) log: Log,
    metrics: Arc<Metrics>,
    pub(crate) keys: AcceptedKeys,
    leading: JoinHandle<()>,
    _operator: Operator,
}

impl Replica {
    /// One that leads, and has a certificate of this authority.
    pub(crate) fn start(world: &World, authority: Authority) -> Self {
        Self::start_as(world, authority, true)
    }

    /// One that leads, or only follows.
    pub(crate) fn start_as(world: &World, authority: Authority, leads: bool) -> Self {
        Self::start_injected(world, authority, leads, Injection::None)
    }

    fn start_injected(world: &World, authority: Authority, leads: bool, inject: Injection) -> Self {
        let (cluster, log) = world.serve();
        let (serving, ready) = (ServedSchemas::default(), Arc::new(Readiness::default()));
        let metrics = cluster.metrics().clone();
        ready.knows_the_leader();
        ready.set_listed(true);
        ready.serves_admission();
        ready.has_a_certificate();
        let endpoint = Endpoint { namespace: "etch-system".to_owned(), url: None, inject };
        let (authority, bundle) = watch::channel(authority);
        let operator = Operator::start(cluster.clone(), options(), Arc::default());
        let keys = AcceptedKeys::default();
        // The time of day goes on as the clock of the test does.
        let (begun, time) = (Instant::now(), Timestamp::now());
        let admission =
            Admission::start(cluster, serving.clone(), keys.clone(), ready.clone(), endpoint, bundle)
                .by(Clock::new(move || time + begun.elapsed()))
                .guarding_upgrades(operator.policy_lookup());
        let leading = tokio::spawn(async move {
            if leads {
                match admission.lead().await {}
            }
            std::future::pending::<()>().await;
            drop(admission);
        });
        Self { serving, ready, authority, log, metrics, keys, leading, _operator: operator }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.lacks().is_none()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.leading.abort();
    }
}

/// A world without policies, so that no API server asks about upgrades, and whose things hold what others
/// describe.
pub(crate) fn unguarded() -> World {
    let world = World::with(&[]);
    world.remove(POLICIES, "default");
    let mut crd = crd_named(THINGS);
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = json!(true);
    world.put(CRDS, crd);
    world
}

pub(crate) fn signed() -> Authority {
    Authority::Named(b"PEM".to_vec())
}

pub(crate) fn schema(name: &str, path: &str) -> Value {
    json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema",
        "metadata": { "name": name, "uid": name, "generation": 1 },
        "spec": {
            "targets": [{ "group": "example.com", "version": "v1", "resource": "things", "path": path }],
            "facts": [{
                "name": "id", "path": ".id",
                "object": {
                    "group": "config.example.com", "version": "v1", "resource": "configs", "name": "it",
                },
            }],
            // So that it has a webhook of each kind.
            "defaults": [{ "path": ".note", "when": "false", "value": "'none'" }],
        },
    })
}

pub(crate) fn fact(id: &str) -> Value {
    json!({
        "apiVersion": "config.example.com/v1", "kind": "Config",
        "metadata": { "name": "it", "uid": "1" }, "id": id,
    })
}

fn webhooks(world: &World) -> [Vec<String>; 2] {
    WEBHOOKS.map(|which| {
        let configuration = world.stored(which, "etch").unwrap_or_default();
        let webhooks = configuration["webhooks"].as_array().cloned().unwrap_or_default();
        webhooks.iter().map(|webhook| webhook["name"].as_str().unwrap_or_default().to_owned()).collect()
    })
}

/// `Reason` of each condition, in the order of their types.
fn reasons(world: &World, schema: &str) -> Vec<String> {
    let schema = world.stored(SCHEMAS, schema).expect("a schema");
    let conditions = schema["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().map(|condition| condition["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

pub(crate) fn is_apply(request: &Request) -> bool {
    request.method == "PATCH"
}

fn is_of_webhooks(request: &Request) -> bool {
    request.path.contains("webhookconfigurations")
}

#[tokio::test(start_paused = true)]
async fn a_schema_is_served_by_its_facts_and_goes_with_its_webhooks() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    world.put(FACTS, fact("a"));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert!(replica.is_ready());
    assert_eq!(webhooks(&world), [["one.etch-operator.io"], ["one.etch-operator.io"]]);
    let bundle =
        world.stored(WEBHOOKS[1], "etch").expect("it is there")["webhooks"][0]["clientConfig"].take();
    assert_eq!(bundle["caBundle"], "UEVN");
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "Served"]);
    assert_eq!(replica.serving.now()["one"].facts, json!({ "id": "a" }));

    // Only the named object is asked for, and the next request is answered by what it is then.
    let asked = replica.log.of(|request| request.path.contains("/configs"));
    assert!(asked.iter().all(|request| request.asked("fieldSelector") == "metadata.name%3Dit"), "{asked:?}");
    world.put(FACTS, fact("b"));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(replica.serving.now()["one"].facts, json!({ "id": "b" }));
    world.remove(FACTS, "it");
    sleep(MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["FactsMissing", "Compiled", "Served"]);
    assert_eq!(replica.serving.now()["one"].missing, ["id"]);

    for schema in ["one", "*"] {
        replica.metrics.reviewed(schema, "CREATE", ReviewOutcome::Allowed);
    }
    world.remove(SCHEMAS, "one");
    sleep(MINUTE).await;
    assert_eq!(webhooks(&world), [[""; 0]; 2]);
    assert!(replica.serving.now().is_empty());
    let shown = replica.metrics.text();
    assert!(shown.contains(r#"schema="*""#) && !shown.contains(r#"schema="one""#), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_schema_is_not_served_before_its_webhooks_have_a_bundle() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    world.put(FACTS, fact("a"));
    let replica = Replica::start(&world, Authority::Unnamed);
    sleep(MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "NoCaBundle"], "there is no ca.crt");
    drop(replica);
    let replica = Replica::start_injected(&world, Authority::Unnamed, true, Injection::ServiceCa);
    sleep(MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "NoCaBundle"]);
    for which in WEBHOOKS {
        let mut configuration = world.stored(which, "etch").expect("it is there");
        configuration["webhooks"][0]["clientConfig"]["caBundle"] = json!("UEVN");
        world.put(which, configuration);
    }
    sleep(2 * MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "Served"]);
    drop(replica);
}

#[tokio::test(start_paused = true)]
async fn the_api_server_asks_about_upgrades_while_a_policy_asks_for_that() {
    let world = World::with(&[]);
    let govern = |generation: u64, spec: Value| {
        world.put(
            POLICIES,
            json!({
                "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
                "metadata": { "name": "default", "uid": "p", "generation": generation }, "spec": spec,
            }),
        );
    };
    govern(2, json!({ "guard": "Off" }));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(webhooks(&world), [[""; 0]; 2]);
    assert_eq!(replica.log.count(is_apply), 0, "nothing is made for nothing");
    govern(3, json!({}));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(webhooks(&world), [vec![], vec![GUARD, MIGRATION_GUARD]]);
    let webhook = world.stored(WEBHOOKS[1], "etch").expect("it is there")["webhooks"][0].take();
    assert_eq!(webhook["clientConfig"]["caBundle"], "UEVN");
    world.put(SCHEMAS, schema("one", ".spec"));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        webhooks(&world),
        [vec!["one.etch-operator.io"], vec!["one.etch-operator.io", GUARD, MIGRATION_GUARD]]
    );
    govern(4, json!({ "guard": "Off" }));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(webhooks(&world), [["one.etch-operator.io"], ["one.etch-operator.io"]]);
}

#[tokio::test(start_paused = true)]
async fn what_is_written_is_not_written_again() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    world.put(FACTS, fact("a"));
    drop({
        let replica = Replica::start(&world, signed());
        sleep(MINUTE).await;
        // Both configurations, and the status once or, before and after the look at existing objects, twice.
        let applies = replica.log.count(is_apply);
        assert!((3..=4).contains(&applies), "{:?}", replica.log.of(is_apply));
        replica
    });
    let replica = Replica::start(&world, signed());
    sleep(10 * MINUTE).await;
    assert_eq!(replica.log.count(is_apply), 0, "{:?}", replica.log.of(is_apply));
    // What another client takes away comes back.
    world.remove(WEBHOOKS[0], "etch");
    sleep(2 * MINUTE).await;
    assert_eq!(webhooks(&world), [["one.etch-operator.io"], ["one.etch-operator.io"]]);
}

/// What the webhook of a schema has in both configurations.
fn fields(world: &World, field: &str) -> [Value; 2] {
    WEBHOOKS.map(|which| world.stored(which, "etch").expect("it is there")["webhooks"][0][field].take())
}

#[tokio::test(start_paused = true)]
async fn conditions_that_a_schema_no_longer_has_go_and_those_of_others_too() {
    let world = unguarded();
    let mut trial = schema("one", ".spec");
    trial["spec"]["webhooks"] = json!({
        "matchConditions": [{ "name": "trial", "expression": "false" }],
        "namespaceSelector": { "matchLabels": { "trial": "yes" } },
    });
    world.put(SCHEMAS, trial);
    world.put(FACTS, fact("a"));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(fields(&world, "matchConditions")[0][0]["name"], "trial");
    let mut everywhere = schema("one", ".spec");
    everywhere["metadata"]["generation"] = json!(2);
    world.put(SCHEMAS, everywhere);
    sleep(MINUTE).await;
    assert_eq!(fields(&world, "matchConditions"), [json!([]), json!([])]);
    assert_eq!(
        fields(&world, "namespaceSelector").map(|selector| selector["matchLabels"].clone()),
        [(); 2].map(|()| Value::Null)
    );

    for which in WEBHOOKS {
        let mut tampered = world.stored(which, "etch").expect("it is there");
        let webhook = &mut tampered["webhooks"][0];
        webhook["matchConditions"] = json!([{ "name": "never", "expression": "false" }]);
        webhook["objectSelector"] = json!({ "matchLabels": { "no": "object" } });
        world.put(which, tampered);
    }
    sleep(2 * MINUTE).await;
    assert_eq!(fields(&world, "matchConditions"), [json!([]), json!([])]);
    assert_eq!(fields(&world, "objectSelector"), [json!({}), json!({})]);
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "Served"]);
    let before = replica.log.count(is_of_webhooks);
    sleep(10 * MINUTE).await;
    let asked = replica.log.of(is_of_webhooks);
    assert!(asked[before..].iter().all(|request| request.method == "GET"), "{:?}", &asked[before..]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_cannot_be_put_right_is_named() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    world.put(FACTS, fact("a"));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    let mut changed = world.stored(WEBHOOKS[1], "etch").expect("it is there");
    changed["webhooks"][0]["matchConditions"] = json!([{ "name": "never", "expression": "false" }]);
    world.put(WEBHOOKS[1], changed.clone());
    // As a webhook of another client would have it.
    world.fails(move |request| {
        let is_patch = request.verb() == "PATCH json" && is_of_webhooks(request);
        is_patch.then(|| Answer::json(changed.clone()))
    });
    sleep(2 * MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "WebhookAltered"]);
    let message =
        world.stored(SCHEMAS, "one").expect("it is there")["status"]["conditions"][2]["message"].take();
    let expected = "another client changes the webhook of this schema: matchConditions is not as declared";
    assert_eq!(message, expected);
    world.heals();
    sleep(2 * MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "Served"]);
    drop(replica);
}

#[tokio::test(start_paused = true)]
async fn no_webhook_is_written_without_a_certificate_and_another_authority_is_written_at_once() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    let replica = Replica::start(&world, Authority::Unknown);
    sleep(MINUTE).await;
    assert_eq!(replica.log.count(|request| is_apply(request) && is_of_webhooks(request)), 0);
    assert_eq!(reasons(&world, "one"), ["FactsMissing", "Compiled", "NoCertificate"]);
    for (authority, expected) in [(signed(), "UEVN"), (Authority::Named(b"PEN".to_vec()), "UEVO")] {
        replica.authority.send_replace(authority);
        sleep(Duration::from_secs(1)).await;
        let found = world.stored(WEBHOOKS[0], "etch").expect("it is there");
        assert_eq!(found["webhooks"][0]["clientConfig"]["caBundle"], expected);
    }
    assert_eq!(reasons(&world, "one"), ["FactsMissing", "Compiled", "Served"]);
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_does_not_compile_leaves_the_last_good_one_in_place() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    world.put(FACTS, fact("a"));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    let before =
        (webhooks(&world), replica.log.count(|request| is_apply(request) && is_of_webhooks(request)));
    let mut broken = world.stored(SCHEMAS, "one").expect("it is there");
    broken["spec"]["when"] = json!("nothing(");
    broken["metadata"]["generation"] = json!(2);
    world.put(SCHEMAS, broken);
    sleep(MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Invalid", "LastGoodServed", "Invalid"]);
    assert!(replica.serving.now().contains_key("one"));
    let after = (webhooks(&world), replica.log.count(|request| is_apply(request) && is_of_webhooks(request)));
    assert_eq!(after, before);
    drop(replica);
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(
        reasons(&world, "one"),
        ["AllKnown", "Invalid", "LastGoodServed", "Invalid"],
        "after a restart"
    );
    assert!(replica.serving.now().contains_key("one"));
    assert_eq!(webhooks(&world), before.0);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_the_server_does_not_take_keeps_no_other_from_being_asked() {
    let world = unguarded();
    for name in ["bad", "good"] {
        world.put(SCHEMAS, schema(name, ".spec"));
    }
    world.put(FACTS, fact("a"));
    world.fails(|request| {
        let webhooks = request.body["webhooks"].as_array()?;
        let at = webhooks.iter().position(|webhook| webhook["name"] == "bad.etch-operator.io")?;
        let mut status = super::server::status(422, "Invalid", "canary");
        let field = format!("webhooks[{at}].matchConditions[0].expression");
        status["details"] = json!({ "causes": [{ "field": field }] });
        let body = status.to_string().into_bytes();
        Some(Answer::Reply { code: 422, headers: Vec::new(), body })
    });
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(webhooks(&world), [["good.etch-operator.io"], ["good.etch-operator.io"]]);
    assert_eq!(reasons(&world, "good"), ["AllKnown", "Compiled", "Served"]);
    assert_eq!(reasons(&world, "bad"), ["AllKnown", "Compiled", "WebhookRefused"]);
    let bad = world.stored(SCHEMAS, "bad").expect("it is there").to_string();
    assert!(bad.contains("matchConditions[0].expression is invalid") && !bad.contains("canary"), "{bad}");
    world.heals();
    sleep(2 * MINUTE).await;
    assert_eq!(reasons(&world, "bad"), ["AllKnown", "Compiled", "Served"]);
    assert!(replica.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_a_certificate_takes_webhooks_back_and_adds_none() {
    let world = unguarded();
    let failing = |generation: u64, policy: &str| {
        let mut schema = schema("one", ".spec");
        schema["metadata"]["generation"] = json!(generation);
        schema["spec"]["webhooks"] = json!({ "validationFailurePolicy": policy });
        schema
    };
    world.put(SCHEMAS, failing(1, "Fail"));
    world.put(SCHEMAS, schema("two", ".spec"));
    world.put(FACTS, fact("a"));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    drop(replica);
    let there = || world.stored(WEBHOOKS[1], "etch").expect("it is there")["webhooks"].take();
    let before = there();
    assert_eq!((before.as_array().map(Vec::len), &before[0]["failurePolicy"]), (Some(2), &json!("Fail")));
    let _replica = Replica::start(&world, Authority::Unknown);
    sleep(MINUTE).await;
    assert_eq!(there(), before);
    world.put(SCHEMAS, failing(2, "Ignore"));
    world.remove(SCHEMAS, "two");
    world.put(SCHEMAS, schema("three", ".spec"));
    sleep(MINUTE).await;
    let after = there();
    assert_eq!((after.as_array().map(Vec::len), &after[0]["failurePolicy"]), (Some(1), &json!("Ignore")));
    assert_eq!(after[0]["clientConfig"]["caBundle"], before[0]["clientConfig"]["caBundle"]);
    assert_eq!(reasons(&world, "one")[2], "NoCertificate");
}

/// A mistake does not take away what guards the objects meanwhile; the rest of the change counts.
#[tokio::test(start_paused = true)]
async fn a_webhook_keeps_the_conditions_that_the_server_took_last() {
    let world = unguarded();
    let with_condition = |generation: u64, expression: &str, policy: &str| {
        let mut schema = schema("one", ".spec");
        schema["metadata"]["generation"] = json!(generation);
        let conditions = json!([{ "name": "some", "expression": expression }]);
        schema["spec"]["webhooks"] =
            json!({ "validationFailurePolicy": policy, "matchConditions": conditions });
        schema
    };
    world.put(SCHEMAS, with_condition(1, "true", "Fail"));
    world.put(FACTS, fact("a"));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "Served"]);
    world.fails(|request| {
        let webhooks = request.body["webhooks"].as_array()?;
        let at = webhooks.iter().position(|webhook| webhook.to_string().contains("object."))?;
        let mut status = super::server::status(422, "Invalid", "no");
        let field = format!("webhooks[{at}].matchConditions[0].expression");
        status["details"] = json!({ "causes": [{ "field": field }] });
        Some(Answer::Reply { code: 422, headers: Vec::new(), body: status.to_string().into_bytes() })
    });
    world.put(SCHEMAS, with_condition(2, "object.", "Ignore"));
    sleep(2 * MINUTE).await;
    assert_eq!(reasons(&world, "one")[2], "WebhookRefused");
    let webhook = &world.stored(WEBHOOKS[1], "etch").expect("it is there")["webhooks"][0];
    let conditions = webhook["matchConditions"].to_string();
    assert!(conditions.contains(r#""true""#) && !conditions.contains("object."), "{conditions}");
    assert_eq!(webhook["failurePolicy"], "Ignore");
    let before = WEBHOOKS.map(|which| world.stored(which, "etch"));
    sleep(10 * MINUTE).await;
    assert_eq!(WEBHOOKS.map(|which| world.stored(which, "etch")), before, "something is written");
    assert!(replica.is_ready());
}

/// A policy of the cluster may refuse a target. Those that were enforced before are still.
#[tokio::test(start_paused = true)]
async fn a_webhook_keeps_the_rules_that_admission_let_pass_last() {
    for names_field in [true, false] {
        let world = unguarded();
        world.put(SCHEMAS, schema("one", ".spec"));
        world.put(FACTS, fact("a"));
        let _replica = Replica::start(&world, signed());
        sleep(MINUTE).await;
        world.fails(move |request| {
            let webhooks = request.body["webhooks"].as_array()?;
            let at = webhooks.iter().position(|webhook| webhook["rules"].to_string().contains("pods"))?;
            let mut status = super::server::status(422, "Invalid", "no");
            if names_field {
                status["details"] = json!({ "causes": [{ "field": format!("webhooks[{at}].rules[1]") }] });
            }
            Some(Answer::Reply { code: 422, headers: Vec::new(), body: status.to_string().into_bytes() })
        });
        let before =
            WEBHOOKS.map(|which| world.stored(which, "etch").expect("it is there")["webhooks"].take());
        let mut more = schema("one", ".spec");
        more["metadata"]["generation"] = json!(2);
        let pods = json!({ "version": "v1", "resource": "pods", "path": ".spec" });
        more["spec"]["targets"].as_array_mut().expect("targets").push(pods);
        world.put(SCHEMAS, more);
        sleep(2 * MINUTE).await;
        assert_eq!(reasons(&world, "one")[2], "WebhookRefused");
        let now = WEBHOOKS.map(|which| world.stored(which, "etch").expect("it is there")["webhooks"].take());
        assert_eq!(now, before, "{names_field}");
    }
}

#[tokio::test(start_paused = true)]
async fn configurations_that_are_deleted_are_back_at_once() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    world.put(FACTS, fact("a"));
    let _replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    let before = webhooks(&world);
    for which in WEBHOOKS {
        world.remove(which, "etch");
        sleep(Duration::from_secs(2)).await;
        assert_eq!(webhooks(&world), before, "{which}");
    }
}

/// A webhook that is refused, by its name, and what the refusal names.
fn refuses(world: &World, webhook: &'static str, names_it: bool) {
    world.fails(move |request| {
        let webhooks = request.body["webhooks"].as_array()?;
        let at = webhooks.iter().position(|there| there["name"] == webhook)?;
        let mut status = super::server::status(422, "Invalid", "canary");
        if names_it {
            status["details"] = json!({ "causes": [{ "field": format!("webhooks[{at}].rules[0]") }] });
        }
        Some(Answer::Reply { code: 422, headers: Vec::new(), body: status.to_string().into_bytes() })
    });
}

#[tokio::test(start_paused = true)]
async fn no_webhook_that_is_refused_holds_up_the_others_whatever_the_refusal_names() {
    let cases = [(GUARD, true), (GUARD, false), (MIGRATION_GUARD, false), ("bad.etch-operator.io", false)];
    for (refused, names_it) in cases {
        let world = World::with(&[]);
        for name in ["bad", "good"] {
            world.put(SCHEMAS, schema(name, ".spec"));
        }
        world.put(FACTS, fact("a"));
        refuses(&world, refused, names_it);
        let replica = Replica::start(&world, signed());
        sleep(2 * MINUTE).await;
        let all = ["bad.etch-operator.io", "good.etch-operator.io", GUARD, MIGRATION_GUARD];
        let left: Vec<_> = all.into_iter().filter(|name| *name != refused).collect();
        assert_eq!(webhooks(&world)[1], left, "{refused} {names_it}");
        let expected = if GUARDS.contains(&refused) { "Served" } else { "WebhookRefused" };
        assert_eq!(reasons(&world, "bad"), ["AllKnown", "Compiled", expected], "{refused} {names_it}");
        assert_eq!(reasons(&world, "good"), ["AllKnown", "Compiled", "Served"], "{refused} {names_it}");
        world.heals();
        sleep(2 * MINUTE).await;
        assert_eq!(webhooks(&world)[1], all, "{refused} {names_it}");
        drop(replica);
    }
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_is_refused_as_such_takes_no_webhook_away() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    world.put(FACTS, fact("a"));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    let before = webhooks(&world);
    world.fails(|request| {
        let refused = || Answer::status(422, "Invalid", "no");
        (is_apply(request) && is_of_webhooks(request)).then(refused)
    });
    replica.authority.send_replace(Authority::Named(b"PEN".to_vec()));
    sleep(10 * MINUTE).await;
    assert_eq!(webhooks(&world), before);
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "WebhooksNotWritten"]);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_refused_holds_up_no_other() {
    let world = unguarded();
    for name in ["bad", "good"] {
        world.put(SCHEMAS, schema(name, ".spec"));
    }
    world.put(FACTS, fact("a"));
    world.fails(|request| {
        let failed = || Answer::status(500, "InternalError", "failed calling webhook \"a\": no");
        request.path.ends_with("/bad/status").then(failed)
    });
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert_eq!(reasons(&world, "bad"), [""; 0]);
    assert_eq!(reasons(&world, "good"), ["AllKnown", "Compiled", "Served"]);
    drop(replica);
}

#[tokio::test(start_paused = true)]
async fn a_fact_that_may_not_be_read_holds_up_nothing() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    world.fails(|request| {
        let forbidden = || Answer::status(403, "Forbidden", "no");
        request.path.contains("/configs").then(forbidden)
    });
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert!(replica.is_ready());
    assert_eq!(reasons(&world, "one"), ["FactsMissing", "Compiled", "Served"]);
    world.put(FACTS, fact("a"));
    world.heals();
    sleep(2 * MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "Served"]);
    assert_eq!(replica.serving.now()["one"].facts, json!({ "id": "a" }));
}

#[tokio::test(start_paused = true)]
async fn a_replica_waits_for_an_api_server_that_does_not_answer_about_facts() {
    for answer in [Answer::unavailable, || Answer::Hang] {
        let world = unguarded();
        world.put(SCHEMAS, schema("one", ".spec"));
        world.put(FACTS, fact("a"));
        world.fails(move |request| request.path.contains("/configs").then(answer));
        let replica = Replica::start_as(&world, signed(), false);
        sleep(MINUTE / 2).await;
        assert!(!replica.is_ready());
        sleep(MINUTE).await;
        assert!(replica.is_ready(), "it may never answer");
        drop(replica);
        world.fails({
            let mut left = 3;
            move |request| {
                let is_asked = request.path.contains("/configs") && left > 0;
                left -= u64::from(is_asked);
                is_asked.then(Answer::unavailable)
            }
        });
        let replica = Replica::start_as(&world, signed(), false);
        sleep(MINUTE / 2).await;
        assert!(replica.is_ready(), "{:?}", replica.serving.now()["one"].missing);
        assert_eq!(replica.serving.now()["one"].facts, json!({ "id": "a" }));
    }
}

/// A schema of objects in each other.
fn nested(name: &str, levels: usize) -> Value {
    let inside = (0..levels).fold(
        json!({ "type": "object" }),
        |inside, _| json!({ "type": "object", "properties": { "a": inside } }),
    );
    let mut schema = schema(name, ".spec");
    schema["spec"]["schema"] = json!({ "openAPIV3Schema": inside });
    schema
}

#[tokio::test(start_paused = true)]
async fn a_schema_or_fact_that_is_nested_deeply_keeps_no_other_from_being_served() {
    let world = unguarded();
    world.put(SCHEMAS, schema("good", ".spec"));
    world.put(SCHEMAS, nested("deep", 100));
    world.put(SCHEMAS, nested("deepest", 600));
    let mut deep = fact("a");
    deep["status"] = (0..200).fold(json!({}), |inside, _| json!([inside]));
    world.put(FACTS, deep);
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert!(replica.is_ready());
    assert_eq!(reasons(&world, "good"), ["AllKnown", "Compiled", "Served"]);
    assert_eq!(replica.serving.now()["good"].facts, json!({ "id": "a" }));
    assert_eq!(reasons(&world, "deep"), ["AllKnown", "Compiled", "Served"]);
    assert_eq!(reasons(&world, "deepest"), ["NotServed", "Invalid", "NotServed", "Invalid"]);
    assert_eq!(message(&world, "deepest", "Ready"), "spec: nested more than 1000 levels deep");
    // The same while it watches.
    world.remove(SCHEMAS, "deep");
    world.put(SCHEMAS, nested("later", 100));
    sleep(MINUTE).await;
    assert_eq!(reasons(&world, "later"), ["AllKnown", "Compiled", "Served"]);
}

/// The message of a condition.
fn message(world: &World, schema: &str, kind: &str) -> String {
    let schema = world.stored(SCHEMAS, schema).expect("a schema");
    let conditions = schema["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind).expect("a condition");
    found["message"].as_str().expect("a message").to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_fallback_is_used_only_where_it_is_known_that_the_object_gives_no_value() {
    let world = unguarded();
    let mut with_fallback = schema("one", ".spec");
    with_fallback["spec"]["facts"][0]["fallback"] = json!("default");
    world.put(SCHEMAS, with_fallback);
    let answers = |code: u16, reason: &'static str| {
        move |request: &Request| {
            request.path.contains("/configs").then(|| Answer::status(code, reason, "canary"))
        }
    };
    world.put(FACTS, fact("a"));
    world.fails(answers(403, "Forbidden"));
    let replica = Replica::start(&world, signed());
    sleep(MINUTE).await;
    assert!(replica.is_ready());
    assert_eq!(reasons(&world, "one"), ["FactsMissing", "Compiled", "Served"]);
    assert_eq!(replica.serving.now()["one"].missing, ["id"]);
    assert_eq!(
        message(&world, "one", "FactsKnown"),
        "Etch does not apply the schema: no value for id (Etch may not list configs.config.example.com, see \
         `etch rbac`)"
    );
    // Where no API server serves the resource, there is no such object.
    world.fails(answers(404, "NotFound"));
    sleep(2 * MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "Served"]);
    assert_eq!(replica.serving.now()["one"].facts, json!({ "id": "default" }));
    world.heals();
    sleep(2 * MINUTE).await;
    assert_eq!(replica.serving.now()["one"].facts, json!({ "id": "a" }));
    // It is known that the object has gone, and what it was while Etch may not read it.
    world.remove(FACTS, "it");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(replica.serving.now()["one"].facts, json!({ "id": "default" }));
    world.fails(answers(403, "Forbidden"));
    world.end_watches();
    sleep(MINUTE).await;
    assert_eq!(replica.serving.now()["one"].facts, json!({ "id": "default" }));
}

#[tokio::test(start_paused = true)]
async fn webhooks_that_cannot_be_written_are_in_the_status_and_tried_again() {
    let world = unguarded();
    world.put(SCHEMAS, schema("one", ".spec"));
    world.put(FACTS, fact("a"));
    world.fails(|request| {
        let refused = || Answer::status(403, "Forbidden", "no");
        (is_apply(request) && is_of_webhooks(request)).then(refused)
    });
    let replica = Replica::start(&world, signed());
    sleep(10 * MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "WebhooksNotWritten"]);
    let tries = replica.log.count(|request| is_apply(request) && is_of_webhooks(request));
    assert!((5..=25).contains(&tries), "{tries} tries in ten minutes");
    world.heals();
    sleep(2 * MINUTE).await;
    assert_eq!(reasons(&world, "one"), ["AllKnown", "Compiled", "Served"]);
}
