//! An operator with permissions in some namespaces only, which are all that its policy names: it reads,
//! watches and writes the objects of these alone, and claims nothing about others.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use etch::cluster::Cluster;
use etch_core::engine::sweep::Form;
use etch_core::namespaces::Namespaces;
use etch_core::scope::Scope;
use serde_json::{Value, json};

use super::lists::things;
use super::pass_status::set_policy;
use super::server::{Answer, Log, Request, serve};
use super::world::{CRD, CRDS, MINUTE, THINGS, World, is_write, thing};

const ALL: &str = "/apis/example.com/v1/things";
const ONLY: &str =
    "only namespaces team-a, team-b are read, all others are not selected by DefaultsPolicy default";

/// The namespaces in which the operator has permissions; `*` for all.
#[derive(Clone, Default)]
struct Granted(Arc<Mutex<BTreeSet<&'static str>>>);

impl Granted {
    fn to(namespaces: &[&'static str]) -> Self {
        Self(Arc::new(Mutex::new(namespaces.iter().copied().collect())))
    }

    fn set(&self, namespaces: &[&'static str]) {
        *self.0.lock().expect("no test panics here") = namespaces.iter().copied().collect();
    }

    fn allows(&self, namespace: &str) -> bool {
        let granted = self.0.lock().expect("no test panics here");
        granted.contains("*") || granted.contains(namespace)
    }

    /// What the API server answers because of that.
    fn answer(&self, request: &Request) -> Option<Answer> {
        let spec = &request.body["spec"];
        if request.path.ends_with("/selfsubjectaccessreviews") {
            let namespace = spec["resourceAttributes"]["namespace"].as_str().unwrap_or("*");
            return Some(Answer::json(json!({ "status": { "allowed": self.allows(namespace) } })));
        }
        if request.path.ends_with("/selfsubjectrulesreviews") {
            let allows = self.allows(spec["namespace"].as_str().unwrap_or_default());
            let rules = json!([{
                "verbs": ["list"], "resources": if allows { json!(["things"]) } else { json!([]) },
            }]);
            return Some(Answer::json(json!({ "status": { "resourceRules": rules } })));
        }
        let is_of_all = request.path == ALL && !self.allows("*");
        let namespace = namespace_of(request).unwrap_or("*");
        let is_refused = is_of_all || namespace != "*" && !self.allows(namespace);
        is_refused.then(|| Answer::status(403, "Forbidden", "forbidden: User \"etch\" cannot"))
    }
}

/// The namespace of the objects that a request is about; `None` if it is about those of all.
fn namespace_of(request: &Request) -> Option<&str> {
    request.path.strip_prefix("/apis/example.com/v1/namespaces/")?.split('/').next()
}

fn thing_in(namespace: &str, name: &str) -> Value {
    let mut object = thing(name);
    object["metadata"]["namespace"] = json!(namespace);
    object
}

/// A world with an object in each of three namespaces, two of which the policy names, and these permissions.
fn world(granted: &Granted) -> World {
    let world = World::with(&[]);
    for (namespace, name) in [("team-a", "a"), ("team-b", "b"), ("other", "c")] {
        world.put(THINGS, thing_in(namespace, name));
    }
    set_policy(&world, 2, json!({ "objects": { "namespaces": ["team-b", "team-a"] } }));
    let granted = granted.clone();
    world.fails(move |request| granted.answer(request));
    world
}

/// Ends all watches, and answers those of one namespace so until what is returned is false.
fn disturb(world: &World, granted: Granted, answer: fn() -> Answer) -> Arc<AtomicBool> {
    let lasts = Arc::new(AtomicBool::new(true));
    let still = lasts.clone();
    world.fails(move |request| {
        let is_of_a = request.is_watch() && namespace_of(request) == Some("team-a");
        if is_of_a && still.load(Ordering::Relaxed) { Some(answer()) } else { granted.answer(request) }
    });
    world.end_watches();
    lasts
}

/// The namespaces in which the requests are that `which` picks, in order.
fn namespaces(log: &Log, which: impl Fn(&Request) -> bool) -> Vec<String> {
    let of_things = log.of(|request| which(request) && request.path.starts_with("/apis/example.com/"));
    of_things.iter().map(|request| namespace_of(request).unwrap_or("*").to_owned()).collect()
}

fn is_whole_list(request: &Request) -> bool {
    request.is_list() && !request.is_for_metadata()
}

fn persisted(objects: &str) -> String {
    format!("True AllPersisted: {objects} store their defaults; {ONLY}")
}

#[tokio::test(start_paused = true)]
async fn only_the_namespaces_of_the_policy_are_read_and_spoken_of() {
    let granted = Granted::to(&["team-a", "team-b"]);
    let world = world(&granted);
    let log = world.operate(MINUTE).await;
    assert_eq!(["a", "b", "c"].map(|name| world.is_persisted(name)), [true, true, false]);
    assert_eq!(world.persisted(), persisted("all 2 selected objects"));
    let status = world.report(CRD).expect("a report")["status"].clone();
    assert_eq!((&status["counts"]["objects"], &status["counts"]["notSelected"]), (&json!(2), &json!(0)));
    assert_eq!(status["readNamespaces"], json!(["team-a", "team-b"]));
    let is_metadata = |request: &Request| request.is_list() && request.is_for_metadata();
    assert_eq!(namespaces(&log, is_whole_list), ["team-a", "team-b"]);
    // How many there are of the pass, and the list that verifies it, after the same question.
    assert_eq!(namespaces(&log, is_metadata), ["team-b", "team-a", "team-b", "team-b"]);
    let watches = log.of(|request| request.is_watch() && request.path.contains("/things"));
    // They begin at the same time.
    let mut watched = namespaces(&log, Request::is_watch);
    watched.sort();
    assert_eq!(watched, ["team-a", "team-b"]);
    assert_eq!(watches[0].asked("resourceVersion"), watches[1].asked("resourceVersion"));
    // A restart finds it all on record.
    assert_eq!(world.operate(MINUTE).await.count(is_write), 0);
    assert_eq!(world.persisted(), persisted("all 2 selected objects"));
}

#[tokio::test(start_paused = true)]
async fn permissions_for_all_objects_are_used_and_what_is_proved_outlasts_them() {
    let granted = Granted::to(&["*"]);
    let world = world(&granted);
    let log = world.operate(MINUTE).await;
    let counted = "all 2 selected objects store their defaults; 1 not selected by DefaultsPolicy default";
    assert_eq!(world.persisted(), format!("True AllPersisted: {counted}"));
    assert_eq!(world.report(CRD).expect("a report")["status"]["readNamespaces"], Value::Null);
    assert!(namespaces(&log, is_whole_list).iter().all(|namespace| namespace == "*"));
    granted.set(&["team-a", "team-b"]);
    assert_eq!(world.operate(MINUTE).await.count(is_write), 0);
    assert_eq!(world.persisted(), persisted("all 2 selected objects"));
    assert_eq!(world.report(CRD).expect("a report")["status"]["readNamespaces"], json!(["team-a", "team-b"]));
    granted.set(&["*"]);
    assert_eq!(world.operate(MINUTE).await.count(is_write), 0);
    assert_eq!(world.persisted(), format!("True AllPersisted: {counted}"));
    assert!(!world.is_persisted("c"));
}

#[tokio::test(start_paused = true)]
async fn an_access_review_without_an_answer_ends_no_watch() {
    let granted = Granted::to(&["*"]);
    let world = world(&granted);
    let (operator, log) = world.operates(60 * MINUTE);
    tokio::time::sleep(20 * MINUTE).await;
    let wording = world.persisted();
    assert!(wording.starts_with("True AllPersisted"), "{wording}");
    let lists = log.count(Request::is_list);
    // The rules change without a change for these objects, and the server is about to restart.
    let mut unanswered = 2;
    world.fails(move |request| {
        if request.path.ends_with("/selfsubjectaccessreviews") && unanswered > 0 {
            unanswered -= 1;
            return Some(Answer::unavailable());
        }
        if request.path.ends_with("/selfsubjectrulesreviews") {
            let rules = json!([{ "verbs": ["list"], "resources": ["things", "others"] }]);
            return Some(Answer::json(json!({ "status": { "resourceRules": rules } })));
        }
        granted.answer(request)
    });
    // Etch looks at its rules again while it works.
    world.put_unfilled_object(THINGS, thing_in("team-a", "d"));
    for _ in 0..120 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!world.persisted().contains("retrying"), "{}", world.persisted());
    }
    assert!(world.persisted().starts_with("True AllPersisted"), "{}", world.persisted());
    assert_eq!(log.count(Request::is_list), lists);
    let asked = log.count(|request| request.path.ends_with("/selfsubjectaccessreviews"));
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(log.count(|request| request.path.ends_with("/selfsubjectaccessreviews")), asked);
    operator.await.expect("it ends by itself");
}

#[tokio::test(start_paused = true)]
async fn a_change_in_any_of_the_namespaces_is_noticed() {
    let world = world(&Granted::to(&["team-a", "team-b"]));
    let (operator, _) = world.operates(30 * MINUTE);
    tokio::time::sleep(MINUTE).await;
    for (namespace, name) in [("team-b", "b2"), ("other", "c2"), ("team-a", "a2")] {
        world.put_unfilled_object(THINGS, thing_in(namespace, name));
    }
    // Totals alone are reported some minutes later.
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(["a2", "b2", "c2"].map(|name| world.is_persisted(name)), [true, true, false]);
    assert_eq!(world.persisted(), persisted("all 4 selected objects"));
    operator.abort();
}

/// One watch expires: where nothing has happened it goes on, and else everything is listed again.
#[tokio::test(start_paused = true)]
async fn one_watch_that_expires_expires_all() {
    for happens in [false, true] {
        let (granted, expired) = (Granted::to(&["team-a", "team-b"]), Arc::new(AtomicUsize::new(0)));
        let world = world(&granted);
        let (operator, log) = world.operates(30 * MINUTE);
        tokio::time::sleep(MINUTE).await;
        let lists = namespaces(&log, is_whole_list).len();
        let left = expired.clone();
        left.store(1, Ordering::Relaxed);
        world.fails(move |request| {
            let is_expired = request.is_watch()
                && request.asked("sendInitialEvents").is_empty()
                && namespace_of(request) == Some("team-a")
                && left.swap(0, Ordering::Relaxed) == 1;
            if is_expired {
                return Some(Answer::status(410, "Expired", "too old resource version"));
            }
            granted.answer(request)
        });
        if happens {
            // No watch shows it before the next one begins.
            world.remove(THINGS, "a");
            world.put_unfilled_object(THINGS, thing_in("team-a", "a2"));
        }
        world.end_watches();
        tokio::time::sleep(MINUTE).await;
        assert_eq!(expired.load(Ordering::Relaxed), 0, "the watch was answered by 410");
        let again = namespaces(&log, is_whole_list)[lists..].to_vec();
        let resumed = namespaces(&log, |request| !request.asked("sendInitialEvents").is_empty());
        match happens {
            // The object is new, so its write is verified.
            true => assert_eq!(again[..2], ["team-a", "team-b"]),
            false => {
                assert_eq!((again, resumed), (Vec::new(), vec!["team-a".to_owned(), "team-b".to_owned()]))
            }
        }
        assert_eq!(world.persisted(), persisted("all 2 selected objects"));
        assert!(world.is_persisted(if happens { "a2" } else { "a" }));
        operator.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_one_namespace_do_not_hide_that_the_watch_of_another_fails() {
    let granted = Granted::to(&["team-a", "team-b"]);
    let world = world(&granted);
    let (operator, _) = world.operates(60 * MINUTE);
    tokio::time::sleep(MINUTE).await;
    let fails = disturb(&world, granted, || Answer::status(500, "InternalError", "no"));
    for index in 0..10 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        world.put_unfilled_object(THINGS, thing_in("team-b", &format!("new{index}")));
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(world.persisted().starts_with("Unknown WatchFailing"), "{}", world.persisted());
    assert!((0..10).all(|index| world.is_persisted(&format!("new{index}"))), "the others go on");
    fails.store(false, Ordering::Relaxed);
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(world.persisted(), persisted("all 12 selected objects"));
    operator.abort();
}

/// What a report records was delivered by every watch: else a restart would pass over what one has not shown.
#[tokio::test(start_paused = true)]
async fn a_restart_finds_what_a_silent_watch_has_not_shown() {
    let granted = Granted::to(&["team-a", "team-b"]);
    let world = world(&granted);
    let (operator, _) = world.operates(60 * MINUTE);
    // Once the pass is verified, its record follows the watches.
    tokio::time::sleep(20 * MINUTE).await;
    let is_silent = disturb(&world, granted, || Answer::open_watch([]));
    tokio::time::sleep(Duration::from_secs(20)).await;
    world.put_unfilled_object(THINGS, thing_in("team-a", "a2"));
    world.put_unfilled_object(THINGS, thing_in("team-b", "b2"));
    // Totals alone are reported some minutes later.
    tokio::time::sleep(Duration::from_secs(270)).await;
    assert_eq!(["a2", "b2"].map(|name| world.is_persisted(name)), [false, true]);
    assert_eq!(world.persisted(), persisted("all 3 selected objects"));
    let recorded = world.report(CRD).expect("a report")["status"]["through"].clone();
    let not_shown = world.stored(THINGS, "a2").expect("an object")["metadata"]["resourceVersion"].clone();
    let [recorded, not_shown] = [recorded, not_shown].map(|version| version.as_str()?.parse::<u64>().ok());
    assert!(recorded.is_some() && recorded < not_shown, "{recorded:?}, {not_shown:?}");
    operator.abort();
    is_silent.store(false, Ordering::Relaxed);
    world.operate(MINUTE).await;
    assert!(world.is_persisted("a2"));
    assert_eq!(world.persisted(), persisted("all 4 selected objects"));
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_taken_back_is_named_with_its_namespace() {
    let granted = Granted::to(&["team-a", "team-b"]);
    let world = world(&granted);
    let (operator, log) = world.operates(60 * MINUTE);
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(world.persisted(), persisted("all 2 selected objects"));
    granted.set(&["team-a"]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let rule =
        r#"{apiGroups: ["example.com"], resources: ["things"], verbs: ["get", "list", "watch", "patch"]}"#;
    let missing =
        format!("a permission is missing; add this rule to Etch's Role in namespace team-b: {rule}");
    assert_eq!(world.persisted(), format!("False Forbidden: {missing}"));
    granted.set(&["team-a", "team-b"]);
    let writes = log.count(is_write);
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(world.persisted(), persisted("all 2 selected objects"));
    assert_eq!(log.count(is_write), writes, "what is on record is not written again");
    operator.abort();
}

/// No list of namespaces could be read that the pattern matches, and new ones may come.
#[tokio::test(start_paused = true)]
async fn a_pattern_of_namespaces_needs_permissions_for_all_objects() {
    let world = world(&Granted::to(&["team-a", "team-b"]));
    set_policy(&world, 3, json!({ "objects": { "namespaces": ["team-*"] } }));
    let log = world.operate(MINUTE).await;
    assert!(world.persisted().starts_with("False Forbidden"), "{}", world.persisted());
    assert!(world.persisted().contains("add this rule to Etch's ClusterRole"), "{}", world.persisted());
    assert_eq!((log.count(is_write), namespaces(&log, Request::is_list)), (0, Vec::new()));
}

/// A server with two pages in one namespace, none in the next, and one in the last.
fn paged(request: &Request) -> Answer {
    let names: &[&str] = match (namespace_of(request), request.asked("continue")) {
        (Some("a"), "") => &["a1", "a2"],
        (Some("a"), "more") => &["a3"],
        (Some("c"), "") => &["c1"],
        _ => &[],
    };
    let is_first = namespace_of(request) == Some("a") && request.asked("continue").is_empty();
    let items: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({
                "metadata": { "namespace": namespace_of(request), "name": name, "resourceVersion": "1" },
            })
        })
        .collect();
    let mut metadata =
        json!({ "resourceVersion": format!("1{}", namespace_of(request).map_or(0, str::len)) });
    if is_first {
        metadata = json!({ "resourceVersion": "10", "continue": "more", "remainingItemCount": 1 });
    }
    Answer::json(json!({ "metadata": metadata, "items": items }))
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_all_namespaces_are_one_list() {
    let (cluster, log) = serve(paged);
    let scope = |names: &[&str]| {
        Scope::Namespaces(Namespaces::new(names.iter().map(|name| (*name).to_owned())).expect("some"))
    };
    assert_eq!(
        pages(&cluster, &scope(&["a", "b", "c"])).await,
        [
            (vec!["a/a1".to_owned(), "a/a2".to_owned()], ["10", "10"].map(str::to_owned), Some(4)),
            (vec!["a/a3".to_owned()], ["11", "11"].map(str::to_owned), None),
            (vec!["c/c1".to_owned()], ["11", "11"].map(str::to_owned), None),
        ]
    );
    let asked: Vec<String> =
        log.of(is_whole_list).iter().filter_map(namespace_of).map(str::to_owned).collect();
    assert_eq!(asked, ["a", "a", "b", "c"]);
    // Where the first ones are empty, the page has the resource version of the very first list, beside its
    // own.
    let began = serve(|request| {
        let version = if namespace_of(request) == Some("a") { "20" } else { "30" };
        let mut items = Vec::new();
        if namespace_of(request) == Some("b") {
            items.push(json!({ "metadata": { "namespace": "b", "name": "b1", "resourceVersion": "1" } }));
        }
        Answer::json(json!({ "metadata": { "resourceVersion": version }, "items": items }))
    });
    assert_eq!(
        pages(&began.0, &scope(&["a", "b", "c"])).await,
        [
            (vec!["b/b1".to_owned()], ["20", "30"].map(str::to_owned), Some(1)),
            (Vec::new(), ["30", "30"].map(str::to_owned), None),
        ]
    );
}

/// Where the objects of each page stand, the resource versions of its first and its last list, and how many
/// objects there are.
async fn pages(cluster: &Cluster, scope: &Scope) -> Vec<(Vec<String>, [String; 2], Option<u64>)> {
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let page = cluster.raw_page(&things(), scope, Form::Whole, after.as_deref()).await.expect("a page");
        let page = page.into_page(Instant::now()).expect("names");
        let total = page.total.filter(|_| after.is_none());
        found.push((page.keys, [page.resource_version, page.latest], total));
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

/// Whatever is stored in the namespaces that are read shows nothing of the others.
#[tokio::test(start_paused = true)]
async fn old_versions_stay_where_not_all_objects_are_read() {
    let world = world(&Granted::to(&["team-a", "team-b"]));
    let mut crd = world.stored(CRDS, CRD).expect("the CRD");
    crd["metadata"]["generation"] = json!(2);
    crd["status"] = json!({ "storedVersions": ["v1beta1", "v1"] });
    world.put(CRDS, crd);
    let objects = json!({ "namespaces": ["team-a", "team-b"] });
    set_policy(&world, 3, json!({ "objects": objects, "storedVersions": "Trim" }));
    world.operate(30 * MINUTE).await;
    assert_eq!(world.persisted(), persisted("all 2 selected objects"));
    let found = world.report(CRD).expect("a report")["status"]["storedVersions"].clone();
    assert_eq!((&found["proved"], &found["verified"]), (&json!(2), &json!(true)));
    assert_eq!(found["removable"], json!([]));
    assert_eq!(found["kept"][0]["reasons"], json!(["Etch reads only namespaces team-a, team-b"]));
    let crd = world.stored(CRDS, CRD).expect("the CRD");
    assert_eq!(crd["status"]["storedVersions"], json!(["v1beta1", "v1"]));
}
