//! Several replicas, of which one works: the work goes on whatever happens to it, and no law is broken in
//! between.
//!
//! etcd itself is asked: for what each object holds, and for how often it was written.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, GUARD, eventually};
use e2e::environment::number;
use e2e::operator::Operator;
use e2e::scene::{NAMESPACE, Scene};
use e2e::widgets::Widgets;

const GROUP: &str = "replicas.example.com";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/etch-system/leases/etch";
/// A pass over all objects takes some seconds, so that something can happen in the middle of it.
const PACE: &str = "--max-writes-per-second=30";
/// How many passes may end before what should happen in the middle of one.
const ATTEMPTS: usize = 10;

/// What happens to the replica at work.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// It is asked to end, as in a rolling update.
    Stop,
    /// It crashes.
    Kill,
    /// Its machine is suspended, and goes on when another has taken over.
    Pause,
}

#[tokio::test(flavor = "multi_thread")]
async fn work_is_handed_over_and_no_law_is_broken() -> Result<()> {
    let mut story = Story::begin(200).await?;
    for event in [Event::Stop, Event::Kill, Event::Pause] {
        story.round(event).await?;
    }
    story.end().await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten minutes, or as many seconds as CHURN_SECONDS says: `just churn`"]
async fn no_law_is_broken_in_ten_minutes_of_churn() -> Result<()> {
    let seconds = number("CHURN_SECONDS")?.unwrap_or(600);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut story = Story::begin(400).await?;
    let mut events = [Event::Pause, Event::Kill, Event::Stop].into_iter().cycle();
    while Instant::now() < until {
        story.round(events.next().context("it never ends")?).await?;
    }
    story.end().await
}

/// Even without a lease to agree on: two at work at once write each object once.
#[tokio::test(flavor = "multi_thread")]
async fn two_writers_at_once_break_no_law() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let mut objects = Widgets::create(&scene.cluster, GROUP, "Widget", 150).await?;
    // Unhurried they would go through the same list one behind the other, and the second would find all
    // stored.
    let alone = ["--leader-elect=false"];
    let (one, two) = (scene.replica("one", &alone)?, scene.replica("two", &alone)?);
    // One may be done before the other has seen the change, which shows nothing.
    let mut both = false;
    for _ in 0..ATTEMPTS {
        let written = || -> Result<[usize; 2]> {
            let count = |log: String| log.matches("stored defaults").count();
            Ok([count(one.log()?), count(two.log()?)])
        };
        let before = written()?;
        objects.add_default().await?;
        objects.stored().await?;
        both = written()?.iter().zip(before).all(|(after, before)| *after > before);
        if both {
            break;
        }
    }
    ensure!(both, "they were never at work at once");
    one.stop().await?;
    two.stop().await?;
    objects.keep_the_laws().await
}

/// One cluster, two replicas, and a new default in each round.
struct Story {
    scene: Scene,
    objects: Widgets,
    /// Some, but in the middle of a round.
    leader: Option<Operator>,
    next: Option<Operator>,
    started: usize,
}

impl Story {
    async fn begin(objects: usize) -> Result<Self> {
        let scene = Scene::start(&[GROUP]).await?;
        let objects = Widgets::create(&scene.cluster, GROUP, "Widget", objects).await?;
        let leader = scene.replica("0", &[PACE])?;
        holder(&scene.cluster, "").await?;
        let next = scene.replica("1", &[PACE])?;
        Ok(Self { scene, objects, leader: Some(leader), next: Some(next), started: 1 })
    }

    /// A default is added; in the middle of the pass something happens to the replica at work.
    async fn round(&mut self, event: Event) -> Result<()> {
        let cluster = self.scene.cluster.clone();
        let before = holder(&cluster, "").await?;
        let was = self.leader.take().context("the replica at work")?;
        self.suspend_in_a_pass(&was).await?;
        match event {
            Event::Stop => {
                was.resume().await?;
                was.stop().await?;
                let lease = cluster.get(LEASE).await?;
                ensure!(
                    lease["spec"]["holderIdentity"] != before,
                    "it ends and leaves the lease taken: {lease}"
                );
            }
            Event::Kill => was.kill().await?,
            Event::Pause => {
                holder(&cluster, &before).await?;
                was.resume().await?;
                // For a moment both are at work.
                self.objects.stored().await?;
                eventually(GUARD, "the other notices", async || {
                    Ok(was.log()?.contains("the lease").then_some(()))
                })
                .await?;
                was.stop().await?;
            }
        }
        holder(&cluster, &before).await?;
        self.objects.stored().await?;
        // Only now, so that it is known who takes over.
        self.started += 1;
        let replica = self.scene.replica(&self.started.to_string(), &[PACE])?;
        self.leader = self.next.replace(replica);
        self.objects.keep_the_laws().await.with_context(|| format!("after {event:?}"))
    }

    /// Adds defaults until a replica is suspended before all objects hold the newest one.
    async fn suspend_in_a_pass(&mut self, replica: &Operator) -> Result<()> {
        for _ in 0..ATTEMPTS {
            self.objects.add_default().await?;
            self.objects.some_are_stored().await?;
            self.objects.edit_some().await?;
            replica.pause().await?;
            if self.objects.missing().await? > 0 {
                return Ok(());
            }
            replica.resume().await?;
            self.objects.stored().await?;
        }
        anyhow::bail!("each pass was over before anything could happen in it")
    }

    async fn end(self) -> Result<()> {
        for replica in [self.next, self.leader] {
            let replica = replica.context("a replica")?;
            // A process that has just started does not handle signals yet.
            eventually(GUARD, "it has begun", async || {
                Ok(replica.log()?.contains("etch started").then_some(()))
            })
            .await?;
            replica.stop().await?;
        }
        let lease = self.scene.cluster.get(LEASE).await?;
        ensure!(lease["spec"]["holderIdentity"] == "", "the last one leaves the lease free: {lease}");
        Ok(())
    }
}

/// Waits for a holder of the Lease other than `not`.
async fn holder(cluster: &Cluster, not: &str) -> Result<String> {
    eventually(GUARD, &format!("a replica of {NAMESPACE} at work"), async || {
        let lease = cluster.get(LEASE).await?;
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        Ok((!holder.is_empty() && holder != not).then(|| holder.to_owned()))
    })
    .await
}
