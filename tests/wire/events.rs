//! What Etch reports as events: once, counted up if it reports it again, and never at the price of anything
//! else.

use serde_json::json;

use super::pass_status::set_policy;
use super::server::{Answer, Request};
use super::world::{DAY, MINUTE, THINGS, World, is_write, thing};

fn is_event(request: &Request) -> bool {
    request.path.starts_with("/apis/events.k8s.io/")
}

/// A webhook that refuses the object `bad`.
fn refuses_bad(request: &Request) -> Option<Answer> {
    let denied = "admission webhook \"v.example.com\" denied the request: hunter2";
    (is_write(request) && request.path.ends_with("/bad")).then(|| Answer::status(403, "Forbidden", denied))
}

fn reported(world: &World) -> Vec<String> {
    world.events().into_iter().map(|(event, count)| format!("{count}x {event}")).collect()
}

const REFUSED: [&str; 2] = [
    "1x Warning Admission Thing/bad: Etch did not store its defaults: webhook v.example.com refused it",
    "1x Warning ObjectsRejected CustomResourceDefinition/things.example.com: \
     2 of 3 objects are known to store their defaults; 1 rejected",
];
const DONE: &str = "1x Normal AllPersisted CustomResourceDefinition/things.example.com: \
                    all 3 objects store their defaults";

#[tokio::test(start_paused = true)]
async fn an_end_and_a_refusal_are_told_once_although_it_is_tried_for_a_day() {
    let world = World::with(&["a", "bad", "c"]);
    world.fails(refuses_bad);
    let log = world.operate(DAY).await;
    assert_eq!(reported(&world), REFUSED);
    assert_eq!(log.count(is_event), 2, "{:?}", log.of(is_event));
    // Nor after a restart.
    let log = world.operate(DAY).await;
    assert_eq!(log.count(is_event), 0, "{:?}", log.of(is_event));
    world.heals();
    world.operate(20 * MINUTE).await;
    assert_eq!(reported(&world), [DONE, REFUSED[0], REFUSED[1]]);
}

#[tokio::test(start_paused = true)]
async fn what_is_told_again_is_counted_up() {
    let world = World::with(&["a", "bad", "c"]);
    world.fails(refuses_bad);
    for count in 1..=2 {
        world.operate(MINUTE).await;
        let object = format!("{count}x{}", &REFUSED[0][2..]);
        assert!(reported(&world).contains(&object), "{:?}", reported(&world));
        // What was reported is forgotten.
        world.lose_reports();
    }
    assert_eq!(world.events().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_no_events_stops_nothing() {
    let faults: [fn() -> Answer; 4] = [
        || Answer::Hang,
        || Answer::Refuse,
        || Answer::status(403, "Forbidden", "no"),
        || Answer::status(500, "InternalError", "no"),
    ];
    for fault in faults {
        let world = World::with(&["a", "b", "c"]);
        world.fails(move |request| is_event(request).then(fault));
        let log = world.operate(10 * MINUTE).await;
        assert_eq!(world.persisted(), "True AllPersisted: all 3 objects store their defaults");
        let wording = log.of(|request| request.path.ends_with("things.example.com/status"));
        assert!(wording.iter().all(|request| request.at - log.all()[0].at < MINUTE), "{wording:?}");
        assert_eq!(log.count(is_event), 1, "an event is not worth a second try");
    }
}

#[tokio::test(start_paused = true)]
async fn events_about_a_crd_name_no_object() {
    let world = World::with(&["secret-a", "secret-b"]);
    let mut ignored = thing("secret-c");
    ignored["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
    world.put(THINGS, ignored);
    let mut held = thing("secret-d");
    held["metadata"]["managedFields"][0]["fieldsV1"] = json!({ "f:spec": { "f:legacy": {} } });
    world.put(THINGS, held);
    let mut is_down = false;
    world.fails(move |request| {
        is_down |= request.path.ends_with("secret-b");
        let refused = is_write(request) && request.path.ends_with("/secret-b");
        refused.then(|| Answer::invalid("no")).or_else(|| {
            (is_down && request.is_watch() && request.path.ends_with("/things"))
                .then(|| Answer::status(500, "", "no"))
        })
    });
    world.operate(20 * MINUTE).await;
    assert!(
        world.persisted().contains("secret-b") && world.persisted().contains("secret-d"),
        "{}",
        world.persisted()
    );
    let events = world.events();
    let of_crd: Vec<_> =
        events.iter().filter(|(event, _)| event.contains("CustomResourceDefinition/")).collect();
    assert!(
        of_crd.iter().any(|(event, _)| event.contains("1 held: a write would destroy fields")),
        "{of_crd:?}"
    );
    assert!(of_crd.iter().any(|(event, _)| event.contains("WatchFailing")), "{of_crd:?}");
    assert!(
        of_crd.iter().all(|(event, _)| !event.contains("secret-") && !event.contains("ns/")),
        "{of_crd:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_missing_makes_one_event_which_is_true() {
    for settle in ["0s", "1m"] {
        let world = World::with(&["a"]);
        set_policy(&world, 2, json!({ "settle": settle }));
        world.fails(|request| {
            let asks = request.path.ends_with("/selfsubjectaccessreviews");
            asks.then(|| Answer::json(json!({ "status": { "allowed": false } })))
        });
        world.operate(10 * MINUTE).await;
        let rule = r#"{apiGroups: ["example.com"], resources: ["things"], verbs: ["get", "list", "watch", "patch"]}"#;
        let expected = format!(
            "1x Warning Forbidden CustomResourceDefinition/things.example.com: a permission is missing; add \
             this rule to Etch's ClusterRole: {rule}"
        );
        assert_eq!(reported(&world), [expected], "settle {settle}");
    }
}
