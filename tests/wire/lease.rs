//! The Lease, on a server that shows what a real one does seldom.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use etch::cluster::{Cluster, Lease};
use etch_core::engine::leader::Leader;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::requests::not_found;
use super::server::{Answer, Request, serve};

const PERIODS: Duration = Duration::from_secs(7);

/// A server of one Lease.
#[derive(Clone, Default)]
struct Leases(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    lease: Option<Value>,
    revision: u64,
    /// Whether answers to writes are lost.
    is_deaf: bool,
}

impl Leases {
    fn answer(&self, request: &Request) -> Answer {
        let mut stored = self.0.lock().expect("no test panics here");
        let known = stored.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
        if request.path == "/apis/coordination.k8s.io/v1/leases" {
            assert_eq!(request.asked("fieldSelector"), "metadata.name%3Detch");
            return Answer::json(json!({ "items": stored.lease.iter().collect::<Vec<_>>() }));
        }
        match (request.method.as_str(), known) {
            ("GET", None) => return not_found("etch"),
            ("GET", Some(_)) => return Answer::json(stored.lease.clone().unwrap_or_default()),
            ("PUT", Some(known)) if request.body["metadata"]["resourceVersion"] != known => {
                return Answer::status(409, "Conflict", "the object has been modified");
            }
            _ => {}
        }
        stored.put(request.body.clone());
        match stored.is_deaf {
            true => Answer::Refuse,
            false => Answer::json(stored.lease.clone().unwrap_or_default()),
        }
    }

    fn stored(&self) -> std::sync::MutexGuard<'_, Stored> {
        self.0.lock().expect("no test panics here")
    }

    fn lease(&self) -> Value {
        self.stored().lease.clone().expect("there is one")
    }

    /// A replica holds it, for as long as the task lives.
    async fn held(&self) -> (watch::Receiver<()>, JoinHandle<()>) {
        let leases = self.clone();
        let (cluster, _) = serve(move |request| leases.answer(request));
        let mut lease = Lease::new(cluster, "etch-system", "etch", "me");
        let set_back = lease.set_back();
        lease.acquire(|| ()).await;
        (set_back, tokio::spawn(async move { lease.hold().await }))
    }
}

impl Stored {
    fn put(&mut self, mut lease: Value) {
        self.revision += 1;
        lease["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        self.lease = Some(lease);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_set_back_is_a_sign_and_held_on() {
    for is_gone in [false, true] {
        let leases = Leases::default();
        let (mut set_back, holding) = leases.held().await;
        let before = leases.lease();
        tokio::time::sleep(PERIODS).await;
        assert!(!set_back.has_changed().expect("it is held"));
        leases.stored().lease = (!is_gone).then_some(before);
        tokio::time::sleep(PERIODS).await;
        assert!(set_back.has_changed().expect("it is held"));
        set_back.mark_unchanged();
        tokio::time::sleep(PERIODS).await;
        assert!(!set_back.has_changed().expect("it is held"), "once");
        assert_eq!(leases.lease()["spec"]["holderIdentity"], "me");
        holding.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_no_sign_and_nor_is_a_label() {
    let leases = Leases::default();
    let (set_back, holding) = leases.held().await;
    leases.stored().is_deaf = true;
    tokio::time::sleep(PERIODS).await;
    leases.stored().is_deaf = false;
    tokio::time::sleep(PERIODS).await;
    let mut lease = leases.lease();
    lease["metadata"]["labels"] = json!({ "a": "b" });
    leases.stored().put(lease);
    tokio::time::sleep(PERIODS).await;
    assert!(!set_back.has_changed().expect("it is held"));
    assert_eq!(leases.lease()["metadata"]["labels"]["a"], "b");
    holding.abort();
}

const SINCE: &str = "2026-01-01T00:00:00.000000Z";

/// A lease that this process holds.
fn held_by(holder: &str) -> Value {
    json!({
        "metadata": { "name": "etch", "namespace": "etch-system" },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": SINCE },
    })
}

#[tokio::test(start_paused = true)]
async fn who_leads_is_found_by_its_renewals_and_by_nothing_else() {
    let leases = Leases::default();
    let answering = leases.clone();
    let (cluster, _): (Cluster, _) = serve(move |request| answering.answer(request));
    let leader = async || cluster.leader("etch").await.expect("an answer");
    assert_eq!(leader().await, None, "no lease");
    // One that crashed, one that gave its lease up, and another program's of the same name.
    for holder in ["etch-1_1-17", "", "node_7d1c0ec2"] {
        leases.stored().put(held_by(holder));
        assert_eq!(leader().await, None, "{holder}");
    }
    leases.stored().put(held_by("etch-1_1-17"));
    let renewing = leases.clone();
    let renewals = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let lease = renewing.lease();
            renewing.stored().put(lease);
        }
    });
    let (namespace, instance) = ("etch-system".to_owned(), "etch-1".to_owned());
    let since = Some(SINCE.to_owned());
    assert_eq!(leader().await, Some(Leader { namespace, instance, since }));
    renewals.abort();
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_comes_in_between_does_not_keep_the_lease() {
    let leases = Leases::default();
    let (served, is_late) = (leases.clone(), AtomicBool::new(false));
    let (cluster, _) = serve(move |request| {
        let releases = request.body["spec"]["holderIdentity"] == "";
        if releases && !is_late.swap(true, Relaxed) {
            let renewed = served.lease();
            served.stored().put(renewed);
        }
        served.answer(request)
    });
    let mut lease = Lease::new(cluster, "etch-system", "etch", "me");
    lease.acquire(|| ()).await;
    lease.release().await;
    assert_eq!(leases.lease()["spec"]["holderIdentity"], "");
}
