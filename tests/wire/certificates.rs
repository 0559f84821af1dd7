//! Certificates that Etch makes itself: replicas share a Secret, and API servers trust each certificate
//! before it is presented.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use etch::metrics::Metrics;
use etch::operator::{Admission, Clock, SelfManaged};
use etch::server::Readiness;
use etch::server::admission::{AcceptedKeys, Certificates, Presented, ServedSchemas, trusted};
use etch_admission::renewal::Lifetimes;
use etch_admission::{Endpoint, Injection};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::server::{Answer, Log, Request};
use super::world::{FACTS, MINUTE, POLICIES, SCHEMAS, SECRETS, WEBHOOKS, World};

const SECRET: &str = "etch-admission-certificates";
const HOST: &str = "etch-admission.ns.svc";
/// How long what is presented is valid; an authority is valid four times as long.
const LIFETIME: Duration = Duration::from_secs(20 * 60);

/// A replica that serves admission by certificates of its own.
struct Replica {
    ready: Arc<Readiness>,
    metrics: Arc<Metrics>,
    log: Log,
    tasks: [JoinHandle<()>; 2],
}

impl Replica {
    /// `behind` is how far its clock is behind.
    fn start(world: &World, leads: bool, behind: Duration) -> Self {
        let (cluster, log) = world.serve();
        let (ready, metrics) = (Arc::new(Readiness::default()), cluster.metrics().clone());
        ready.knows_the_leader();
        ready.set_listed(true);
        ready.serves_admission();
        let endpoint = Endpoint { namespace: "ns".to_owned(), url: None, inject: Injection::None };
        let certificates = Certificates::new(metrics.clone());
        let options = SelfManaged {
            namespace: "ns".to_owned(),
            secret: SECRET.to_owned(),
            host: HOST.to_owned(),
            lifetimes: Lifetimes::of(LIFETIME),
        };
        // The time of day goes on as the clock of the test does.
        let (begun, time) = (Instant::now(), Timestamp::now() - behind);
        let clock = move || time + begun.elapsed();
        let authority = certificates.authority();
        let (schemas, keys) = (ServedSchemas::default(), AcceptedKeys::default());
        let admission = Admission::start(cluster, schemas, keys, ready.clone(), endpoint, authority);
        let clock = Clock::new(clock);
        let (admission, presented) = admission.by(clock.clone()).issuing(options, clock);
        let lead = tokio::spawn(async move {
            if leads {
                match admission.lead().await {}
            }
            std::future::pending::<()>().await;
            drop(admission);
        });
        let has = ready.clone();
        let serve = tokio::spawn(async move {
            match certificates.follow_secret(SECRET, presented, || has.has_a_certificate()).await {}
        });
        Self { ready, metrics, log, tasks: [lead, serve] }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A world with a schema, so that there are webhooks.
fn world() -> World {
    let world = World::with(&[]);
    world.remove(POLICIES, "default");
    let object =
        json!({ "version": "v1", "resource": "configs", "name": "it", "group": "config.example.com" });
    world.put(
        SCHEMAS,
        json!({
            "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema",
            "metadata": { "name": "one", "uid": "one", "generation": 1 },
            "spec": {
                "targets": [{
                    "group": "example.com", "version": "v1", "resource": "things", "path": ".spec",
                }],
                "facts": [{ "name": "id", "path": ".id", "object": object }],
                // So that it has a webhook of each kind.
                "defaults": [{ "path": ".note", "when": "false", "value": "'none'" }],
            },
        }),
    );
    let metadata = json!({ "name": "it", "uid": "1" });
    world.put(
        FACTS,
        json!({ "apiVersion": "config.example.com/v1", "kind": "Config", "metadata": metadata, "id": "a" }),
    );
    world
}

fn decoded(value: &Value) -> Vec<u8> {
    serde_json::from_value::<ByteString>(value.clone()).unwrap_or_default().0
}

/// What replicas present that have seen the Secret.
fn presented(world: &World) -> Option<Presented> {
    let data = world.stored(SECRETS, SECRET)?["data"].take();
    Some(Presented {
        certificate: decoded(&data["tls.crt"]),
        key: decoded(&data["tls.key"]),
        authority: Some(decoded(&data["ca.crt"])),
    })
}

/// What API servers trust, by both configurations: the authorities of each webhook.
fn bundles(world: &World) -> Vec<Vec<u8>> {
    let configurations = WEBHOOKS.iter().filter_map(|which| world.stored(which, "etch"));
    let webhooks = configurations.flat_map(|found| found["webhooks"].as_array().cloned().unwrap_or_default());
    webhooks.map(|webhook| decoded(&webhook["clientConfig"]["caBundle"])).collect()
}

fn authorities(bundle: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(bundle).flatten().collect()
}

fn is_trusted(presented: &Presented, bundle: &[u8]) -> bool {
    trusted(presented, HOST, &authorities(bundle)).is_some()
}

/// What was seen of a world while it changed.
#[derive(Default)]
struct Seen {
    /// All that was presented, in order, with the time of it.
    leaves: Vec<(Instant, Presented)>,
    signers: BTreeSet<Vec<u8>>,
    writes: usize,
    /// Since when API servers trust which bundle.
    trusts: Vec<(Instant, Vec<u8>)>,
    most_at_once: usize,
    broken: Vec<String>,
}

impl Seen {
    /// Looks on: after each write, the API server trusts the latest certificate and the one before; and a new
    /// signer was trusted for a minute before.
    fn watch(world: &World) -> Arc<Mutex<Self>> {
        let seen = Arc::new(Mutex::new(Self::default()));
        let looking = seen.clone();
        world.loses(move |world, request| {
            if ["POST", "PATCH"].contains(&request.method.as_str()) {
                looking.lock().expect("no panic").look(world, request);
            }
            None
        });
        seen
    }

    fn look(&mut self, world: &World, request: &Request) {
        self.writes += usize::from(request.path.contains("/secrets"));
        let Some(now) = presented(world) else { return };
        let bundles = bundles(world);
        for bundle in &bundles {
            if self.trusts.last().is_none_or(|(_, last)| last != bundle) {
                self.trusts.push((Instant::now(), bundle.clone()));
            }
        }
        let held = authorities(now.authority.as_deref().unwrap_or_default());
        self.most_at_once = self.most_at_once.max(held.len());
        self.signers.extend(held.first().map(|signer| signer.to_vec()));
        let is_new = self.leaves.last().is_none_or(|(_, last)| last.certificate != now.certificate);
        if is_new {
            let by = |trust: &&(Instant, Vec<u8>)| is_trusted(&now, &trust.1);
            let since = self.trusts.iter().find(by).map(|(since, _)| *since);
            if !self.leaves.is_empty() && since.is_none_or(|since| since.elapsed() < MINUTE) {
                self.broken.push(format!("presented when it was trusted since {since:?}"));
            }
            self.leaves.push((Instant::now(), now));
        }
        for (_, leaf) in self.leaves.iter().rev().take(2) {
            if !bundles.iter().all(|bundle| is_trusted(leaf, bundle)) {
                self.broken
                    .push(format!("after {} {} a certificate is not trusted", request.method, request.path));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_certificate_is_trusted_before_it_is_presented_and_while_it_may_be() {
    let world = world();
    let seen = Seen::watch(&world);
    let replica = Replica::start(&world, true, Duration::ZERO);
    let other = Replica::start(&world, false, Duration::ZERO);
    sleep(MINUTE).await;
    assert_eq!((replica.ready.lacks(), other.ready.lacks()), (None, None));
    assert_eq!(bundles(&world).len(), 2);
    sleep(6 * 60 * MINUTE).await;
    let seen = seen.lock().expect("no panic");
    assert_eq!(seen.broken, Vec::<String>::new());
    // Two thirds of 20 minutes, and of 80.
    assert!((25..=35).contains(&seen.leaves.len()), "{} certificates in six hours", seen.leaves.len());
    assert!((6..=8).contains(&seen.signers.len()), "{} authorities in six hours", seen.signers.len());
    assert_eq!(seen.most_at_once, 2);
    assert!(seen.writes <= 60, "{} writes", seen.writes);
    assert_eq!(other.log.count(|request| request.method == "PATCH"), 0, "only the leader renews");
    assert_eq!(replica.metrics.certificate_failures.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn leaders_that_do_not_know_of_each_other_do_not_fight() {
    let world = world();
    let seen = Seen::watch(&world);
    let one = Replica::start(&world, true, Duration::ZERO);
    let two = Replica::start(&world, true, 20 * MINUTE / 24);
    sleep(6 * 60 * MINUTE).await;
    let seen = seen.lock().expect("no panic");
    assert_eq!(seen.broken, Vec::<String>::new());
    assert!((25..=35).contains(&seen.leaves.len()), "{} certificates in six hours", seen.leaves.len());
    assert!((6..=8).contains(&seen.signers.len()), "{} authorities in six hours", seen.signers.len());
    drop((one, two));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_makes_the_first_and_no_other() {
    let world = world();
    let replica = Replica::start(&world, false, Duration::ZERO);
    sleep(MINUTE).await;
    assert_eq!(replica.ready.lacks(), None);
    let secret = world.stored(SECRETS, SECRET).expect("a Secret");
    assert_eq!(secret["type"], "kubernetes.io/tls");
    world.remove(SECRETS, SECRET);
    sleep(60 * MINUTE).await;
    assert_eq!(world.stored(SECRETS, SECRET), None);
    drop(replica);
    // What cannot be read counts as nothing: a replica without a certificate makes one.
    let metadata = json!({ "name": SECRET, "namespace": "ns" });
    let junk = json!({ "tls.crt": "Y2FuYXJ5", "tls.key": "Y2FuYXJ5", "other": "Y2FuYXJ5" });
    world.put(SECRETS, json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": junk }));
    let replica = Replica::start(&world, false, Duration::ZERO);
    sleep(MINUTE).await;
    assert_eq!(replica.ready.lacks(), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_broken_is_repaired_without_a_moment_of_distrust() {
    let world = world();
    let seen = Seen::watch(&world);
    let replica = Replica::start(&world, true, Duration::ZERO);
    sleep(5 * MINUTE).await;
    // No replica can sign any more, and nothing can be written to the webhooks for a while.
    world.fails(|request| {
        let refused = || Answer::status(403, "Forbidden", "no");
        (request.method == "PATCH" && request.path.contains("webhookconfigurations")).then(refused)
    });
    let mut secret = world.stored(SECRETS, SECRET).expect("a Secret");
    secret["data"]["ca.key"] = json!("Y2FuYXJ5");
    world.put(SECRETS, secret);
    sleep(5 * MINUTE).await;
    {
        let seen = seen.lock().expect("no panic");
        assert_eq!((seen.signers.len(), seen.leaves.len()), (2, 1), "the new signer is not trusted yet");
    }
    world.heals();
    sleep(5 * MINUTE).await;
    {
        let seen = seen.lock().expect("no panic");
        assert_eq!((seen.signers.len(), seen.leaves.len()), (2, 2));
        assert_eq!(seen.broken, Vec::<String>::new());
    }
    // A CA that another client adds goes.
    let mut secret = world.stored(SECRETS, SECRET).expect("a Secret");
    let mut bundle = decoded(&secret["data"]["ca.crt"]);
    let foreign = rcgen::generate_simple_self_signed(vec!["foreign".to_owned()]).expect("a certificate");
    bundle.extend(foreign.cert.pem().into_bytes());
    secret["data"]["ca.crt"] = json!(ByteString(bundle));
    world.put(SECRETS, secret);
    sleep(MINUTE).await;
    let kept = presented(&world).and_then(|presented| presented.authority).expect("authorities");
    assert!(!authorities(&kept).contains(foreign.cert.der()));
    assert_eq!(seen.lock().expect("no panic").broken, Vec::<String>::new());
    // A certificate that is gone is made at once.
    world.remove(SECRETS, SECRET);
    sleep(MINUTE).await;
    let now = presented(&world).expect("a Secret");
    assert!(bundles(&world).iter().all(|bundle| is_trusted(&now, bundle)));
    drop(replica);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_may_not_be_written_is_tried_again() {
    let world = world();
    world.fails(|request| {
        let refused = || Answer::status(403, "Forbidden", "no");
        (request.method != "GET" && request.path.contains("/secrets")).then(refused)
    });
    let replica = Replica::start(&world, true, Duration::ZERO);
    sleep(10 * MINUTE).await;
    assert!(replica.ready.lacks().is_some_and(|what| what.contains("certificate")));
    let tries = replica.log.count(|request| request.method == "POST" && request.path.contains("/secrets"));
    assert!((5..=25).contains(&tries), "{tries} tries in ten minutes");
    assert_eq!(replica.metrics.certificate_failures.get(), tries as u64);
    world.heals();
    sleep(2 * MINUTE).await;
    assert_eq!(replica.ready.lacks(), None);
    assert_eq!(bundles(&world).len(), 2);
}
