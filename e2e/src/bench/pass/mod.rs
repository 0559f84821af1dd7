//! How long it takes until every object of a CRD stores a new default, what that costs the API server, and
//! what another client notices of it: Etch, a bare loop that sends the same patches, and the migration that
//! Kubernetes brings.
//!
//! All measure the same objects of the same API server, one after the other: each upgrades the CRD by one
//! more default. The data of etcd do not wait for the disk, so that the disk is not what is measured.

mod bare;
mod bystander;
mod in_tree;
mod migrator;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use super::figures::{median, percentile, rounded};
use super::objects;
use crate::control_plane::read_kubeconfig;
use crate::operator::Operator;
use crate::scene::{MIGRATOR, Scene};
use crate::usage::{peak_memory, processor_time};
use bystander::Bystander;
use migrator::Migrator;

/// How long the other client is alone before its waits are measured.
const ALONE: Duration = Duration::from_secs(20);
/// How long a pass may take: a guard against hanging.
const PASS: Duration = Duration::from_secs(3_600);
/// Between two of them, for the API server to finish what it does beside.
const REST: Duration = Duration::from_secs(5);
/// Of so many objects, one is read from etcd to see that its default is stored.
const LOOK_AT: usize = 500;

/// Who has the objects stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Writer {
    /// A loop with Etch's service account and 16 writes at once, as many as Etch has at most.
    Bare,
    /// `etch run` with its defaults.
    Etch,
    /// `etch run --pace fast`.
    EtchFast,
    /// A StorageVersionMigration.
    InTree,
    /// kube-storage-version-migrator, as its manifests start it.
    Migrator,
}

/// The process that is started before anything is measured.
enum Running {
    /// No process of the test: the writer is this process, or part of the control plane.
    Nobody,
    Etch(Operator),
    Migrator(Migrator),
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How many objects.
    pub objects: usize,
    /// Their size as etcd holds them, in bytes.
    pub bytes: usize,
    /// How often each writer is measured, in turn; every other round goes backwards.
    pub rounds: usize,
    /// Who.
    pub writers: Vec<Writer>,
    /// How many writes the bare loop begins in a second at most, one at a time: with each of these rates it
    /// is a writer of its own. Without any, it sends 16 at once, as fast as it can.
    pub bare_per_second: Vec<u32>,
}

/// One writer of a round.
#[derive(Clone, Copy, Debug)]
struct Turn {
    writer: Writer,
    /// The bare loop's rate; see [`Wanted::bare_per_second`].
    per_second: Option<u32>,
}

impl Wanted {
    fn turns(&self) -> Vec<Turn> {
        let rates = || self.bare_per_second.iter().copied().map(Some);
        let turns_of = |writer: &Writer| {
            let rates: Vec<_> = if *writer == Writer::Bare { rates().collect() } else { Vec::new() };
            let rates = if rates.is_empty() { vec![None] } else { rates };
            rates.into_iter().map(|per_second| Turn { writer: *writer, per_second }).collect::<Vec<_>>()
        };
        self.writers.iter().flat_map(turns_of).collect()
    }
}

/// What was measured of one writer: medians over the rounds, except maximums.
#[derive(Clone, Debug, Serialize)]
pub struct PassMeasurement {
    /// Who.
    pub writer: Writer,
    /// The bare loop's rate, in writes per second; `None` if it goes as fast as it can.
    pub per_second: Option<u32>,
    /// How many objects.
    pub objects: usize,
    /// Their size in bytes.
    pub bytes: usize,
    /// From when the upgraded CRD is served until every object is known to be stored.
    pub seconds: f64,
    /// The bare loop's time divided by this one's; `None` if there is no bare loop.
    pub speed: Option<f64>,
    /// Processor time of the API server for each object, in milliseconds, without what it takes in the same
    /// time while no client writes.
    pub apiserver_ms_per_object: f64,
    /// The most memory that the writer's process had, in MiB; none for the bare loop, which is in the process
    /// that measures.
    pub peak_mib: Option<u64>,
    /// Writes for each object, by the audit log; only of Etch.
    pub writes_per_object: Option<f64>,
    /// How long another client waits for an answer, in milliseconds.
    pub other_p50_ms: f64,
    /// The same for 99 of 100 answers.
    pub other_p99_ms: f64,
    /// The same for 99 of 100 answers while no client writes.
    pub alone_p99_ms: f64,
}

struct Round {
    seconds: f64,
    apiserver_seconds: f64,
    peak: Option<u64>,
    writes: Option<usize>,
    times: Vec<f64>,
}

/// What was measured while only the other client wrote, once in each round.
#[derive(Default)]
struct Alone {
    /// The other client's p99 in milliseconds.
    p99: Vec<f64>,
    /// The share of a processor that the API server took.
    apiserver_share: Vec<f64>,
}

impl Alone {
    /// Measures once; the other client's p99 in milliseconds.
    async fn measure(&mut self, scene: &mut Scene, bystander: Bystander) -> Result<f64> {
        let apiserver = apiserver(scene)?;
        let (before, begun) = (processor_time(apiserver)?, Instant::now());
        sleep(ALONE).await;
        self.apiserver_share.push((processor_time(apiserver)? - before) / begun.elapsed().as_secs_f64());
        let p99 = percentile(&bystander.stop().await?, 99);
        self.p99.push(p99);
        Ok(p99)
    }
}

/// Measures on a control plane of its own; progress goes to `say`.
///
/// # Errors
/// The control plane does not start, a writer fails, or an object does not store what it should.
pub async fn measure(wanted: &Wanted, say: &dyn Fn(&str)) -> Result<Vec<PassMeasurement>> {
    let Wanted { objects: count, bytes, rounds, .. } = wanted;
    let turns = wanted.turns();
    ensure!(*rounds > 0 && *count > 0, "there is nothing to measure");
    // A CRD that never had a default gets no condition, so nothing would show that the operator is ready.
    let first = wanted.writers.first().context("there is no writer")?;
    let is_etch = matches!(first, Writer::Etch | Writer::EtchFast);
    ensure!(!is_etch, "--writers: begin with another than Etch, which needs a CRD that had defaults before");
    let controllers = MIGRATOR.map(str::to_owned).to_vec();
    let mut scene = Scene::start_with(&[objects::GROUP], |options| options.controllers = controllers).await?;
    say(&format!("writing {count} objects of {bytes} bytes to etcd"));
    objects::write(&scene.cluster, *count, *bytes).await?;
    scene.cluster.apply_crd(&objects::release(0)).await?;
    let config = bystander::account(&scene.cluster, &scene.control_plane).await?;
    let mut alone = Alone::default();
    let mut measured: Vec<Vec<Round>> = turns.iter().map(|_| Vec::new()).collect();
    let mut release = 0;
    for number in 1..=*rounds {
        sleep(REST).await;
        let p99 = alone.measure(&mut scene, Bystander::start(config.clone())?).await?;
        say(&format!("round {number}: nobody writes, another client's p99 {p99:.1} ms"));
        // What changes with time, as a heap or the machine's speed, is then for none of them.
        let mut in_turn: Vec<_> = turns.iter().zip(&mut measured).collect();
        if number % 2 == 0 {
            in_turn.reverse();
        }
        for (turn, rounds) in in_turn {
            release += 1;
            let running = start(&scene, turn.writer).await?;
            sleep(REST).await;
            let bystander = Bystander::start(config.clone())?;
            let mut round = pass(&mut scene, *turn, running, release).await?;
            round.times = bystander.stop().await?;
            check(&scene, *count, release).await?;
            let p99 = percentile(&round.times, 99);
            let Turn { writer, per_second } = turn;
            let rate = per_second.map(|rate| format!(" at {rate}/s")).unwrap_or_default();
            say(&format!(
                "round {number}: {writer:?}{rate} {:.1} s, {:.0} objects per second, another client's p99 \
                 {p99:.1} ms",
                round.seconds,
                *count as f64 / round.seconds,
            ));
            rounds.push(round);
        }
    }
    let bare = turns.iter().position(|turn| turn.writer == Writer::Bare && turn.per_second.is_none());
    let bare = bare.map(|bare| median(&seconds(&measured[bare])));
    let all = turns.iter().zip(&measured);
    Ok(all.map(|(turn, rounds)| summary(wanted, *turn, rounds, bare, &alone)).collect())
}

/// Starts the operator or the migrator, if it is the writer, and waits until the operator has nothing to do.
async fn start(scene: &Scene, writer: Writer) -> Result<Running> {
    let flags: &[&str] = match writer {
        Writer::Bare | Writer::InTree => return Ok(Running::Nobody),
        Writer::Migrator => {
            let kubeconfig = scene.control_plane.kubeconfig(0);
            return Ok(Running::Migrator(Migrator::start(&scene.cluster, &kubeconfig).await?));
        }
        Writer::Etch => &[],
        Writer::EtchFast => &["--pace=fast"],
    };
    let operator = scene.measured(flags)?;
    scene.cluster.persisted(objects::CRD, "AllPersisted", PASS).await?;
    Ok(Running::Etch(operator))
}

/// Upgrades the CRD, and has every object stored.
async fn pass(
    scene: &mut Scene,
    Turn { writer, per_second }: Turn,
    running: Running,
    release: usize,
) -> Result<Round> {
    let apiserver = apiserver(scene)?;
    scene.cluster.apply_crd(&objects::release(release)).await?;
    let writes = |scene: &Scene| scene.requests_to(objects::GROUP, &["patch", "update"]);
    let (before, written) = (processor_time(apiserver)?, writes(scene)?);
    let name = format!("release-{release}");
    let begun = Instant::now();
    let peak = match (&running, writer) {
        (Running::Etch(operator), _) => {
            all_persisted(scene).await?;
            Some(peak_memory(operator.id()?)?)
        }
        (Running::Migrator(migrator), _) => {
            migrator.store(&scene.cluster, &name, PASS).await?;
            Some(peak_memory(migrator.id()?)?)
        }
        (Running::Nobody, Writer::InTree) => {
            in_tree::store(&scene.cluster, &name, PASS).await?;
            scene.control_plane.controllers_process().map(peak_memory).transpose()?
        }
        (Running::Nobody, _) => {
            let config = read_kubeconfig(scene.kubeconfig()).await?;
            bare::store(config, etch::cluster::MAX_IN_FLIGHT, per_second).await?;
            None
        }
    };
    let seconds = begun.elapsed().as_secs_f64();
    let apiserver_seconds = processor_time(apiserver)? - before;
    let writes = match running {
        Running::Etch(operator) => {
            operator.stop().await?;
            Some(writes(scene)? - written)
        }
        Running::Nobody | Running::Migrator(_) => None,
    };
    Ok(Round { seconds, apiserver_seconds, peak, writes, times: Vec::new() })
}

/// Waits for the condition without asking all the time: another writer's turn has no such client.
async fn all_persisted(scene: &Scene) -> Result<()> {
    let client = Client::try_from(read_kubeconfig(&scene.control_plane.kubeconfig(0)).await?)?;
    let crds = Api::all_with(client, &ApiResource::erase::<CustomResourceDefinition>(&()));
    let is_persisted = |crd: Option<&DynamicObject>| {
        let generation = crd.and_then(|crd| crd.metadata.generation);
        let conditions = crd.and_then(|crd| crd.data["status"]["conditions"].as_array());
        conditions.into_iter().flatten().any(|condition| {
            condition["type"] == "DefaultsPersisted"
                && condition["reason"] == "AllPersisted"
                && condition["observedGeneration"].as_i64() == generation
        })
    };
    timeout(PASS, await_condition(crds, objects::CRD, is_persisted)).await??;
    scene.cluster.persisted(objects::CRD, "AllPersisted", PASS).await?;
    Ok(())
}

fn apiserver(scene: &mut Scene) -> Result<u32> {
    scene.control_plane.apiserver_process(0).context("the API server has ended")
}

/// Some of the objects hold in etcd what the newest release fills.
async fn check(scene: &Scene, count: usize, release: usize) -> Result<()> {
    let field = objects::newest(release);
    for index in (0..count).step_by(LOOK_AT).chain([count - 1]) {
        let name = objects::name(index);
        let raw = scene.cluster.raw(objects::GROUP, objects::PLURAL, Some("default"), &name).await?;
        ensure!(raw["spec"][&field].is_number(), "{name} does not store {field}");
    }
    Ok(())
}

fn summary(
    wanted: &Wanted,
    Turn { writer, per_second }: Turn,
    rounds: &[Round],
    bare: Option<f64>,
    alone: &Alone,
) -> PassMeasurement {
    let seconds = median(&seconds(rounds));
    let of = |each: &dyn Fn(&Round) -> f64| median(&rounds.iter().map(each).collect::<Vec<_>>());
    let without_writes = median(&alone.apiserver_share);
    PassMeasurement {
        writer,
        per_second,
        objects: wanted.objects,
        bytes: wanted.bytes,
        seconds: rounded(seconds, 2),
        speed: bare.map(|bare| rounded(bare / seconds, 2)),
        apiserver_ms_per_object: rounded(
            of(&|round| {
                (round.apiserver_seconds - without_writes * round.seconds) * 1e3 / wanted.objects as f64
            }),
            2,
        ),
        peak_mib: rounds.iter().filter_map(|round| round.peak).max().map(|peak| peak.div_ceil(1 << 20)),
        writes_per_object: rounds
            .iter()
            .filter_map(|round| round.writes)
            .max()
            .map(|writes| rounded(writes as f64 / wanted.objects as f64, 2)),
        other_p50_ms: rounded(of(&|round| percentile(&round.times, 50)), 2),
        other_p99_ms: rounded(of(&|round| percentile(&round.times, 99)), 2),
        alone_p99_ms: rounded(median(&alone.p99), 2),
    }
}

fn seconds(rounds: &[Round]) -> Vec<f64> {
    rounds.iter().map(|round| round.seconds).collect()
}
