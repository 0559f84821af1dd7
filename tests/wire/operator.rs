//! The operator as a whole, on a server that fails: how often it asks, what it reports meanwhile, and that it
//! gets there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::pass_status::set_policy;
use super::served_elsewhere::is_about_server;
use super::server::{Answer, Request, gaps, status};
use super::world::{
    CRD, CRDS, DAY, HOUR, MINUTE, OTHERS, POLICIES, THINGS, World, is_about_objects, is_object_list, is_of,
    is_write, operate, thing,
};

pub(crate) fn is_of_report(request: &Request) -> bool {
    request.method == "GET" && request.path.contains("/defaultsreports/")
}

#[tokio::test(start_paused = true)]
async fn a_healthy_cluster_is_written_once_and_then_left_in_peace() {
    let world = World::with(&["a", "b", "c"]);
    let log = world.operate(HOUR).await;
    assert!(["a", "b", "c"].iter().all(|name| world.is_persisted(name)));
    assert_eq!(world.persisted(), "True AllPersisted: all 3 objects store their defaults");
    assert_eq!(log.count(is_write), 3);
    let begun = log.all()[0].at;
    let is_late = |request: &Request| request.at > begun + MINUTE && !request.is_watch();
    // Who serves the objects is asked before each watch.
    let late = log.of(|request| is_late(request) && !is_about_server(request));
    let (rules, others): (Vec<_>, Vec<_>) = late.iter().partition(|request| is_about_rules(request));
    let (reports, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|request| is_of_report(request));
    // What was written in the minutes after the change of the schema is verified once more.
    let lists = others.iter().filter(|request| request.is_list()).count();
    assert!(lists == 1 && others.len() <= 8, "{others:?}");
    assert!(reports.len() <= 15, "{} looks at the report in an hour", reports.len());
    assert!(rules.len() <= 180, "{} looks at the permissions in an hour", rules.len());
    let watches = log.count(|request| request.is_watch() && is_about_objects(request));
    assert!((12..=14).contains(&watches), "{watches} watches of 290 s in an hour");
}

/// Once its field has gone, nothing else shows that a value was a default.
#[tokio::test(start_paused = true)]
async fn the_report_names_the_defaults_before_the_first_of_them_is_stored() {
    let world = World::with(&["a"]);
    set_policy(&world, 2, json!({ "settle": "0s" }));
    let at_write = Arc::new(Mutex::new(None));
    let noted = at_write.clone();
    world.loses(move |world, request| {
        if is_write(request) && is_about_objects(request) {
            let mut noted = noted.lock().expect("a lock");
            noted.get_or_insert_with(|| world.report("things.example.com"));
        }
        None
    });
    world.operate(MINUTE).await;
    let report = at_write.lock().expect("a lock").clone().flatten().expect("a report");
    assert_eq!(report["status"]["defaults"][0]["path"], ".spec.size", "{report:#}");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_nothing_is_written() {
    let world = World::with(&["a", "b"]);
    world.operate(HOUR).await;
    let log = world.operate(HOUR).await;
    assert_eq!(log.count(|request| request.method == "PATCH"), 0, "{:?}", log.of(|it| it.method == "PATCH"));
    assert_eq!(log.count(is_object_list), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_object_is_read_and_left_alone_for_it_was_created_with_its_defaults() {
    let world = World::with(&["a"]);
    let (cluster, log) = world.serve();
    let late = world.clone();
    let operator = tokio::spawn(super::world::operate(cluster, HOUR));
    tokio::time::sleep(MINUTE).await;
    let mut created = thing("late");
    created["spec"]["size"] = 1.into();
    late.put(THINGS, created);
    let as_created = late.stored(THINGS, "late");
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(log.count(is_of("late")), 0);
    operator.await.expect("it ends by itself");
    // The server that stored it may have lagged behind: it is asked about once.
    assert_eq!((log.count(is_of("late")), late.stored(THINGS, "late")), (1, as_created));
}

#[tokio::test(start_paused = true)]
async fn writes_that_the_server_cannot_answer_are_repeated_a_few_times_and_then_ever_more_seldom() {
    let world = World::with(&["a"]);
    world.fails(|request| is_write(request).then(Answer::unavailable));
    let log = world.operate(HOUR).await;
    let writes = log.of(is_write);
    // Six attempts a round; a round takes 13 s, and the wait between rounds grows to two minutes and a half
    // at most.
    assert!((100..=250).contains(&writes.len()), "{} writes in an hour", writes.len());
    assert!(gaps(&writes[..6]).iter().all(|gap| *gap < Duration::from_secs(10)), "{:?}", gaps(&writes[..6]));
    let last_hour = gaps(&writes);
    assert!(last_hour.iter().any(|gap| gap.as_secs() >= 120), "{last_hour:?}");
    assert!(world.persisted().starts_with("False InProgress"), "{}", world.persisted());
    world.heals();
    world.operate(MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
}

#[tokio::test(start_paused = true)]
async fn one_refused_object_stops_only_itself_and_is_tried_ever_more_seldom() {
    let world = World::with(&["a", "bad", "c"]);
    let refuses = |request: &Request| {
        let denied = "admission webhook \"v.example.com\" denied the request: never";
        (is_write(request) && is_of("bad")(request)).then(|| Answer::status(403, "Forbidden", denied))
    };
    world.fails(refuses);
    let log = world.operate(DAY).await;
    assert!(world.is_persisted("a") && world.is_persisted("c"));
    let wording = world.persisted();
    assert!(
        wording.starts_with("False ObjectsRejected: 2 of 3 objects are known to store their defaults"),
        "{wording}"
    );
    assert!(wording.contains("ns/bad"), "{wording}");
    let tries = log.count(|request| is_write(request) && is_of("bad")(request));
    assert!((24..=40).contains(&tries), "{tries} tries in a day");
    let report = world.report("things.example.com").expect("a report");
    assert_eq!(report["status"]["rejected"][0]["message"], "webhook v.example.com refused it");
    // The webhook goes; the next try stores it, which a restart does not hasten.
    world.heals();
    world.operate(HOUR).await;
    assert!(world.is_persisted("bad"));
    assert_eq!(world.persisted(), "True AllPersisted: all 3 objects store their defaults");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_refused_by_a_later_change_is_counted_once() {
    let world = World::with(&[]);
    let (cluster, log) = world.serve();
    world.fails(|request| is_write(request).then(|| Answer::invalid("no")));
    let operator = tokio::spawn(super::world::operate(cluster, 10 * MINUTE));
    tokio::time::sleep(MINUTE).await;
    world.put_unfilled(THINGS, "late");
    operator.await.expect("it ends by itself");
    let begun = log.count(is_object_list);
    assert_eq!(begun, 1, "the task has not failed and begun again");
    let counts = world.report("things.example.com").expect("a report")["status"]["counts"].clone();
    assert!(counts["objects"].as_u64() <= Some(1) && counts["rejected"].as_u64() <= Some(1), "{counts}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_serve_the_version_yet_is_not_taken_for_a_missing_object() {
    let world = World::with(&["a"]);
    // Behind one address there may be a server that has not seen the CRD's new version.
    let behind = |request: &Request| is_write(request) || request.method == "GET" && is_of("a")(request);
    world.fails(move |request| behind(request).then(|| Answer::text(404, "404 page not found\n")));
    world.operate(MINUTE).await;
    let wording = world.persisted();
    assert!(wording.starts_with("False InProgress"), "{wording}");
    world.heals();
    world.operate(MINUTE).await;
    assert!(world.is_persisted("a"));
}

/// An API server that starts, or a proxy before one, answers so for a moment.
#[tokio::test(start_paused = true)]
async fn a_crd_whose_read_is_answered_as_if_it_were_not_served_is_read_again() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(10 * MINUTE);
    tokio::time::sleep(MINUTE).await;
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    let is_read = |request: &Request| request.method == "GET" && request.path.ends_with(CRD);
    world.fails(move |request| is_read(request).then(|| Answer::text(404, "404 page not found\n")));
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    crd["metadata"]["generation"] = json!(2);
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["late"] = json!({ "type": "integer", "default": 1 });
    let before = log.count(is_read);
    world.put(CRDS, crd);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!((2..20).contains(&(log.count(is_read) - before)), "{}", log.count(is_read) - before);
    world.heals();
    tokio::time::sleep(5 * MINUTE).await;
    let report = world.report(CRD).expect("a report");
    assert_eq!(report["status"]["generation"], 2, "{report}");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_served_again_is_read_soon_however_long_it_was_not() {
    let world = World::with(&["a"]);
    let (cluster, log) = world.serve();
    world.fails(move |request| is_object_list(request).then(|| Answer::text(404, "404 page not found\n")));
    let operator = tokio::spawn(super::world::operate(cluster, 20 * MINUTE));
    tokio::time::sleep(10 * MINUTE).await;
    let lists = log.count(is_object_list);
    assert!((2..=80).contains(&lists), "{lists} lists in ten minutes");
    world.heals();
    // The longest wait, and its spread.
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(world.is_persisted("a"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_said_now_is_said_later() {
    let world = World::with(&["a"]);
    let (cluster, log) = world.serve();
    world.fails(|request| (request.method == "PATCH" && !is_write(request)).then(Answer::unavailable));
    let operator = tokio::spawn(super::world::operate(cluster, HOUR));
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(world.persisted(), "");
    let tries = log.count(|request| request.path.ends_with("/status"));
    assert!(tries <= 250, "{tries} tries in ten minutes");
    world.heals();
    tokio::time::sleep(6 * MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
    assert_eq!(world.report("things.example.com").expect("a report")["status"]["state"], "AllPersisted");
    operator.await.expect("it ends by itself");
    assert_eq!(log.count(is_write), 1, "and the object was written but once");
}

#[tokio::test(start_paused = true)]
async fn conditions_that_somebody_takes_away_are_said_again_although_much_goes_on() {
    let world = World::with(&["a", "busy"]);
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, 10 * MINUTE));
    tokio::time::sleep(MINUTE).await;
    let mut crd = world.stored(CRDS, "things.example.com").expect("the CRD");
    crd["status"] = serde_json::json!({ "conditions": [] });
    // As the server has it: what is gone has no owner.
    crd["metadata"]["managedFields"] = serde_json::json!([]);
    world.put(CRDS, crd);
    for round in 0..60 {
        let mut busy = world.stored(THINGS, "busy").expect("it is there");
        busy["spec"]["name"] = round.to_string().into();
        world.put(THINGS, busy);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    operator.await.expect("it ends by itself");
    let wording =
        log.count(|request| request.path.ends_with("customresourcedefinitions/things.example.com/status"));
    assert!(wording <= 4, "{wording} times");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_always_too_old_does_not_list_in_a_loop() {
    let world = World::with(&["a"]);
    world.fails(|request| {
        (request.is_watch() && is_about_objects(request)).then(|| Answer::status(410, "Expired", "too old"))
    });
    let log = world.operate(HOUR).await;
    let lists = log.count(is_object_list);
    assert!((20..=60).contains(&lists), "{lists} lists in an hour");
    assert_eq!(log.count(is_write), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_at_once_is_opened_ever_more_seldom() {
    let world = World::with(&["a"]);
    world.fails(|request| (request.is_watch() && is_about_objects(request)).then(|| Answer::events([])));
    let log = world.operate(HOUR).await;
    let watches = log.count(|request| request.is_watch() && is_about_objects(request));
    assert!((90..=130).contains(&watches), "{watches} watches in an hour");
    // The pass, and the sweep that verifies it.
    assert_eq!(log.count(is_object_list), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_repeated_ever_more_seldom_and_reported() {
    for fault in [Answer::unavailable, || Answer::Refuse, || Answer::Hang, || Answer::text(200, "{")] {
        let world = World::with(&["a"]);
        world.fails(move |request| is_object_list(request).then(fault));
        let log = world.operate(HOUR).await;
        let lists = log.count(is_object_list);
        assert!((15..=45).contains(&lists), "{lists} lists in an hour");
        let wording = world.persisted();
        assert!(wording.starts_with("False InProgress: cannot list the objects"), "{wording}");
        world.heals();
        world.operate(MINUTE).await;
        assert!(world.is_persisted("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_asked_for_seldom_and_noticed_within_a_minute() {
    let world = World::with(&["a"]);
    let (cluster, log) = world.serve();
    world.fails(|request| {
        let asked = &request.body["spec"]["resourceAttributes"]["verb"];
        (asked == "patch").then(|| Answer::json(serde_json::json!({ "status": { "allowed": false } })))
    });
    let operator = tokio::spawn(super::world::operate(cluster, 2 * HOUR));
    tokio::time::sleep(HOUR).await;
    let wording = world.persisted();
    assert!(wording.starts_with("False Forbidden") && wording.contains(r#"verbs: ["patch"]"#), "{wording}");
    let asked = log.count(|request| !is_about_rules(request));
    assert!(asked <= 200, "{asked} requests in an hour");
    world.heals();
    tokio::time::sleep(MINUTE).await;
    assert!(world.is_persisted("a"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_taken_away_is_noticed_although_the_watch_stays_open() {
    let world = World::with(&["a"]);
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, HOUR));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
    let watches = log.count(|request| request.is_watch() && is_about_objects(request));
    world.fails(|request| {
        let others = serde_json::json!([{ "verbs": ["get"], "apiGroups": ["other.io"], "resources": ["*"] }]);
        let asks = request.path.ends_with("/selfsubjectaccessreviews");
        match () {
            () if is_about_rules(request) => {
                Some(Answer::json(serde_json::json!({ "status": { "resourceRules": others } })))
            }
            () => asks.then(|| Answer::json(serde_json::json!({ "status": { "allowed": false } }))),
        }
    });
    tokio::time::sleep(Duration::from_secs(30)).await;
    let wording = world.persisted();
    assert!(
        wording.starts_with("False Forbidden") && wording.contains(r#"apiGroups: ["example.com"]"#),
        "{wording}"
    );
    assert_eq!(log.count(|request| request.is_watch() && is_about_objects(request)), watches);
    world.heals();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: 1 of 1 object stores its defaults");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_cannot_be_made_is_no_success() {
    let world = World::with(&["a", "bad"]);
    let (cluster, _) = world.serve();
    world.fails(|request| (is_write(request) && is_of("bad")(request)).then(|| Answer::invalid("no")));
    let operator = tokio::spawn(super::world::operate(cluster, HOUR));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.persisted().starts_with("False ObjectsRejected"), "{}", world.persisted());
    // The retries cannot even read it.
    world.fails(|request| (request.method == "GET" && is_of("bad")(request)).then(Answer::unavailable));
    tokio::time::sleep(10 * MINUTE).await;
    assert!(world.persisted().starts_with("False "), "{}", world.persisted());
    world.heals();
    operator.await.expect("it ends by itself");
    assert!(world.is_persisted("bad"));
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_could_not_be_seen_to_is_not_forgotten() {
    let world = World::with(&["a", "b"]);
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, HOUR));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.persisted(), "True AllPersisted: all 2 objects store their defaults");
    world.fails(|request| is_write(request).then(Answer::unavailable));
    // Its default is not even shown, as through a server that does not know the schema yet.
    world.put_unfilled(THINGS, "late");
    tokio::time::sleep(5 * MINUTE).await;
    assert!(world.persisted().starts_with("False InProgress"), "{}", world.persisted());
    let tries = log.count(|request| is_write(request) && is_of("late")(request));
    assert!((6..=40).contains(&tries), "{tries} tries in five minutes");
    world.heals();
    operator.await.expect("it ends by itself");
    assert!(world.is_persisted("late"));
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_cannot_be_served_holds_no_place_in_the_queue_of_the_others() {
    // Sixteen writes may be under way at once, for all CRDs together. One CRD's writes have just been sent
    // when its watch breaks and cannot be opened again; another's do not wait for that.
    let world = World::with(&["a"]);
    world.put(CRDS, super::world::crd_named(OTHERS));
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, 10 * MINUTE));
    tokio::time::sleep(MINUTE).await;
    let slow_then_gone = |request: &Request| match () {
        () if is_write(request) => Some(Answer::unavailable().after(Duration::from_secs(1))),
        () if request.is_watch() && is_about_objects(request) && request.path.ends_with("/things") => {
            Some(Answer::text(429, "").with_header("retry-after", "300"))
        }
        () => None,
    };
    world.fails(slow_then_gone);
    for index in 0..16 {
        world.put_unfilled(THINGS, &format!("o{index}"));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.end_watches();
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.put_unfilled(OTHERS, "other");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let served = log.count(|request| request.method == "PATCH" && request.path.ends_with("/others/other"));
    assert!(served >= 1, "the other CRD's object waits");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn objects_that_somebody_fights_over_do_not_hold_up_the_others() {
    let world = World::with(&["a"]);
    let names: Vec<String> = (0..20).map(|index| format!("fought{index}")).collect();
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(super::world::operate(cluster, HOUR));
    tokio::time::sleep(MINUTE).await;
    // A writer that drops the default again and again (W10), faster than it can be stored.
    for _ in 0..60 {
        for name in &names {
            world.put_unfilled(THINGS, name);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let wording = world.persisted();
    assert!(
        wording.starts_with("False InProgress"),
        "some wait, and lack their default meanwhile: {wording}"
    );
    let fought = log.count(is_write);
    // Each store takes a proof as well. Fought over every two seconds, an object is written a dozen times.
    assert!(fought <= 20 * 24, "{fought} writes in two minutes, for 20 objects");
    world.put_unfilled(THINGS, "calm");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(world.is_persisted("calm"));
    tokio::time::sleep(10 * MINUTE).await;
    assert!(names.iter().all(|name| world.is_persisted(name)), "and the last word is Etch's");
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn a_user_who_deletes_an_object_meanwhile_has_the_last_word() {
    let world = World::with(&["a", "gone"]);
    world.fails(|request| {
        let missing = is_write(request) && is_of("gone")(request);
        let message = "things.example.com \"gone\" is forbidden: User \"etch\" cannot create resource \
            \"things\" in API group \"example.com\"";
        missing.then(|| Answer::text(403, status(403, "Forbidden", message).to_string()))
    });
    let log = world.operate(MINUTE).await;
    assert_eq!(log.count(|request| is_write(request) && is_of("gone")(request)), 1);
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
}

/// Whether a watch of objects begins where it left off.
fn resumes(request: &Request) -> bool {
    request.is_watch() && is_about_objects(request) && request.asked("sendInitialEvents").is_empty()
}

/// A server that keeps what happened for less than five minutes, and sends no bookmarks: every second watch
/// expires at once.
fn compacts(world: &World) {
    let mut is_gone = false;
    world.fails(move |request| {
        is_gone ^= resumes(request);
        let refused = is_gone && resumes(request);
        refused.then(|| Answer::status(410, "Expired", "too old resource version"))
    });
}

#[tokio::test(start_paused = true)]
async fn an_idle_crd_is_not_listed_again_when_its_watch_expires() {
    let world = World::with(&["a", "b"]);
    let (cluster, log) = world.serve();
    let operator = tokio::spawn(operate(cluster, 3 * HOUR));
    tokio::time::sleep(20 * MINUTE).await;
    compacts(&world);
    let is_other = |request: &Request| {
        request.method == "PATCH" || request.is_list() || request.path.ends_with("/selfsubjectaccessreviews")
    };
    let before = log.count(is_other);
    tokio::time::sleep(HOUR).await;
    // Something else goes on in the cluster.
    world.put(
        POLICIES,
        serde_json::json!({
            "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy", "metadata": {
                "name": "other", "uid": "o",
            },
            "spec": { "selector": { "groups": ["nobody.io"] } },
        }),
    );
    tokio::time::sleep(HOUR).await;
    let others = log.of(is_other).split_off(before);
    let others: Vec<_> = others.iter().filter(|request| !request.path.contains("defaultspolicies")).collect();
    assert!(others.is_empty(), "{others:?}");
    let streamed = log.count(|request| request.asked("sendInitialEvents") == "true");
    assert!((10..=26).contains(&streamed), "{streamed}");
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn what_happened_before_a_watch_expired_is_found() {
    let happenings: [fn(&World); 2] =
        [|world| world.put_unfilled(THINGS, "c"), |world| world.remove(THINGS, "a")];
    for happens in happenings {
        let world = World::with(&["a", "b"]);
        let (operator, log) = world.operates(3 * HOUR);
        tokio::time::sleep(20 * MINUTE).await;
        let mut is_lost = false;
        world.fails(move |request| {
            let is_first = resumes(request) && !is_lost;
            is_lost |= is_first;
            is_first.then(|| Answer::status(410, "Expired", "too old resource version"))
        });
        let lists = log.count(is_object_list);
        world.end_watches();
        happens(&world);
        tokio::time::sleep(10 * MINUTE).await;
        assert!(log.count(is_object_list) > lists);
        let wording = world.persisted();
        assert!(
            wording == "True AllPersisted: all 3 objects store their defaults"
                || wording == "True AllPersisted: 1 of 1 object stores its defaults",
            "{wording}"
        );
        operator.abort();
    }
}

/// Whether it is the one request by which the operator notices that its permissions have changed.
fn is_about_rules(request: &Request) -> bool {
    request.path.ends_with("/selfsubjectrulesreviews")
}

#[tokio::test(start_paused = true)]
async fn an_operator_without_work_sends_nothing_but_watches() {
    let world = World::with(&["a"]);
    let (operator, log) = world.operates(HOUR);
    tokio::time::sleep(15 * MINUTE).await;
    assert!(world.is_persisted("a"));
    let before = log.all().len();
    tokio::time::sleep(40 * MINUTE).await;
    let mut others = log.all().split_off(before);
    others.retain(|request| !request.is_watch() && !is_of_report(request) && !is_about_server(request));
    assert!(others.is_empty(), "{others:?}");
    operator.abort();
}
