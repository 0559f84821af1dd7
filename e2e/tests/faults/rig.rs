//! A cluster, a proxy, an operator that is started again when it is killed, and the play of some plans
//! together.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use e2e::cluster::{GUARD, eventually};
use e2e::faults::{Proxy, Seen};
use e2e::operator::Operator;
use e2e::scene::Scene;
use futures::future::{Either, join_all, select};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, TryStreamExt, stream};

use crate::history::History;
use crate::invariants::{self, is_stable};
use crate::plan::Plan;
use crate::workload::{GROUP, LONG, Subject};

/// How long a request may be waited for that comes when a plan has become stable, such as that of its report.
const SOON: Duration = Duration::from_secs(10);
/// How many CRDs are set up beside each other.
const SET_UP: usize = 4;

pub(crate) struct Rig {
    pub(crate) scene: Scene,
    proxy: Proxy,
    kubeconfig: PathBuf,
    history: History,
    /// How many plans were played here.
    played: usize,
    /// When it was started, in seconds.
    begun: u64,
}

/// The result of a plan.
pub(crate) struct Played {
    pub(crate) plan: Plan,
    pub(crate) plural: String,
    /// Whether its faults have happened.
    pub(crate) has_struck: bool,
    /// What is broken.
    pub(crate) broken: Vec<String>,
    /// How often each object was written, and how often it may have been.
    pub(crate) writes: BTreeMap<String, (usize, usize)>,
    /// Why its user had to try again.
    pub(crate) refusal: Option<String>,
}

/// A plan under way.
struct Act {
    plan: Plan,
    subject: Subject,
    /// Whether its user has acted.
    has_acted: AtomicBool,
    /// Why it had to try again.
    refusal: OnceLock<String>,
    /// Why it could not act at all.
    failure: OnceLock<String>,
}

impl Rig {
    pub(crate) async fn start() -> Result<Self> {
        // After a compaction, etcd would not return what it held before.
        let keep = |options: &mut e2e::control_plane::Options| {
            options.apiserver_flags.push("--etcd-compaction-interval=0".to_owned());
        };
        let scene = Scene::start_with(&[GROUP], keep).await?;
        let proxy = Proxy::start(scene.kubeconfig()).await?;
        let kubeconfig = PathBuf::from(scene.file("faults.kubeconfig", "")?);
        proxy.write_kubeconfig(&kubeconfig)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let history = History::start(scene.control_plane.etcd_url(), GROUP).await?;
        Ok(Self { scene, proxy, kubeconfig, history, played: 0, begun: now.as_secs() })
    }

    fn operator(&self) -> Result<Operator> {
        let flags = ["--settle=200ms", "--listen=127.0.0.1:0", "--leader-elect=false"];
        Operator::start(&self.kubeconfig, &self.scene.log_path(), &flags)
    }

    /// Plays plans beside each other; returns the result of each, and the requests that came by.
    pub(crate) async fn play(&mut self, plans: &[Plan]) -> Result<(Vec<Played>, Vec<Seen>)> {
        let first = self.played;
        self.played += plans.len();
        let acts: Vec<Act> = plans
            .iter()
            .enumerate()
            .map(|(index, plan)| Act {
                plan: *plan,
                subject: Subject::new(first + index, plan.workload),
                has_acted: AtomicBool::new(plan.deed.is_none()),
                refusal: OnceLock::new(),
                failure: OnceLock::new(),
            })
            .collect();
        let set_up = stream::iter(&acts).map(|act| async {
            act.subject.set_up(&self.scene).await.with_context(|| format!("{:?}", act.plan))
        });
        set_up.buffer_unordered(SET_UP).try_collect::<Vec<()>>().await?;
        let begun = self.history.settle(self.scene.cluster.etcd()).await?;
        self.proxy.forget();
        self.proxy.add(
            acts.iter().enumerate().flat_map(|(index, act)| act.plan.rules(index, &act.subject.plural())),
        );
        let mut operator = Some(self.operator()?);
        let ended = self.while_alive(&mut operator, self.until_silent(&acts)).await?;
        operator.context("an operator")?.stop().await?;
        let (ended, seen, is_silent) = ended;
        let mut all = Vec::new();
        for (index, (act, ended)) in acts.iter().zip(ended).enumerate() {
            let (mut broken, writes) = match ended {
                Ok(()) => invariants::broken(&self.scene, &self.history, &act.subject, &seen, begun).await?,
                Err(error) => (vec![format!("{error:#}")], BTreeMap::new()),
            };
            broken.extend(act.failure.get().map(|failure| format!("its user is refused: {failure}")));
            let has_struck = act.plan.has_struck(index, &seen) && act.has_acted.load(Ordering::Relaxed);
            all.push(Played {
                plan: act.plan,
                plural: act.subject.plural(),
                has_struck,
                broken,
                writes,
                refusal: act.refusal.get().cloned(),
            });
        }
        let mut of_all = invariants::of_all(&self.scene)?;
        if !is_silent {
            of_all.push("objects were written after everything was stable".to_owned());
        }
        if let Some(played) = all.first_mut() {
            played.broken.extend(of_all);
        }
        Ok((all, seen))
    }

    /// Plays all until nothing is written any more; how each ended, what came by, and whether then it was
    /// silent.
    async fn until_silent(&self, acts: &[Act]) -> Result<(Vec<Result<()>>, Vec<Seen>, bool)> {
        let playing = pin!(join_all(acts.iter().enumerate().map(|(index, act)| self.end_of(index, act))));
        let ended = match select(playing, pin!(self.act(acts))).await {
            Either::Left((ended, _)) => ended,
            Either::Right((never, _)) => match never {},
        };
        let seen = self.proxy.seen();
        self.proxy.heal();
        // What is written after that is written without need.
        let etcd = self.scene.cluster.etcd();
        let from = self.history.settle(etcd).await?;
        self.scene.barrier().await?;
        self.history.settle(etcd).await?;
        let objects = format!("/registry/{GROUP}/");
        let later = self.history.of(|key| key.starts_with(&objects));
        Ok((ended, seen, later.last().is_none_or(|event| event.revision < from)))
    }

    /// Waits until a plan is stable and all its faults have happened.
    async fn end_of(&self, index: usize, act: &Act) -> Result<()> {
        let Act { plan, subject, has_acted, .. } = act;
        subject.happen(&self.scene.cluster, &self.history).await?;
        let what = format!("{} is stable", subject.crd());
        let is_stable = || is_stable(&self.history, subject).then_some(());
        let stable = self.history.until(LONG, &what, is_stable).await;
        stable.with_context(|| invariants::unstable(&self.history, subject))?;
        let has_struck = || self.proxy.look(|seen| plan.has_struck(index, seen));
        let is_over = || has_acted.load(Ordering::Relaxed) && has_struck();
        // The caller checks whether it did.
        let _ = self.history.until(SOON, "what is to befall it", || is_over().then_some(())).await;
        self.history.until(LONG, &what, is_stable).await
    }

    /// Has users act at the requests that wait for it, without end.
    async fn act(&self, acts: &[Act]) -> Infallible {
        let mut acting = FuturesUnordered::new();
        loop {
            let held = match select(pin!(self.proxy.held()), acting.next()).await {
                Either::Left((held, _)) => held,
                Either::Right((Some(()), _)) => continue,
                // No user acts: only a request can change that.
                Either::Right((None, held)) => held.await,
            };
            acting.push(async move {
                let Some(act) = acts.get(Plan::of_rule(held.rule)) else { return };
                let Some((_, deed)) = act.plan.deed else { return };
                let name = act.plan.acted_on();
                let acting = || act.subject.act(&self.scene.cluster, deed, &name);
                if let Err(error) = acting().await {
                    // Only the first request is held.
                    let _ = act.refusal.set(format!("{error:#}"));
                    drop(held);
                    let again = eventually(GUARD, "a user", async || acting().await.map(Some)).await;
                    let _ = again.map_err(|error| act.failure.set(format!("{error:#}")));
                }
                act.has_acted.store(true, Ordering::Relaxed);
            });
        }
    }

    /// Does something while the operator is killed and started again as rules want it.
    async fn while_alive<T>(
        &self,
        operator: &mut Option<Operator>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut work = pin!(work);
        loop {
            let wanted = pin!(self.proxy.kill_wanted());
            match select(work, wanted).await {
                Either::Left((ended, _)) => return ended,
                Either::Right(((), rest)) => {
                    work = rest;
                    operator.take().context("an operator")?.kill().await?;
                    *operator = Some(self.operator()?);
                }
            }
        }
    }

    /// Copies the operator's log to where it outlives the rig.
    pub(crate) fn keep_log(&self) -> Result<PathBuf> {
        let copy =
            std::env::temp_dir().join(format!("etch-faults-{}-{}.log", std::process::id(), self.begun));
        std::fs::copy(self.scene.log_path(), &copy)?;
        Ok(copy)
    }
}
