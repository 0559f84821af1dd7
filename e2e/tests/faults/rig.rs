//! A cluster, a proxy, an operator that is started again when it is killed, and the play of some plans together.
//! It must not judge what came of them.

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;

use anyhow::{Context, Result};
use e2e::cluster::eventually;
use e2e::faults::Proxy;
use e2e::operator::Operator;
use e2e::scene::Scene;
use futures::future::{Either, join_all, select};

use crate::invariants;
use crate::plan::Plan;
use crate::workload::{GROUP, LONG, Subject};

pub(crate) struct Rig {
    pub(crate) scene: Scene,
    proxy: Proxy,
    kubeconfig: PathBuf,
}

impl Rig {
    pub(crate) async fn start() -> Result<Self> {
        let scene = Scene::start(&[GROUP]).await?;
        let proxy = Proxy::start(scene.kubeconfig()).await?;
        let kubeconfig = PathBuf::from(scene.file("faults.kubeconfig", "")?);
        proxy.write_kubeconfig(&kubeconfig)?;
        Ok(Self { scene, proxy, kubeconfig })
    }

    fn operator(&self) -> Result<Operator> {
        let flags = ["--settle=200ms", "--listen=127.0.0.1:0", "--leader-elect=false"];
        Operator::start(&self.kubeconfig, &self.scene.log_path(), &flags)
    }

    /// Plays plans beside each other; what is broken, with the plan.
    pub(crate) async fn play(&self, plans: &[Plan]) -> Result<Vec<String>> {
        let mut subjects = Vec::new();
        for (index, plan) in plans.iter().enumerate() {
            let mut subject = Subject::new(index, plan.workload);
            subject.set_up(&self.scene).await.with_context(|| format!("{plan:?}"))?;
            subjects.push(subject);
        }
        self.proxy.add(plans.iter().zip(&subjects).map(|(plan, subject)| plan.rule(&subject.plural())));
        let mut operator = Some(self.operator()?);
        let mut kills = 0;
        let ended = self.while_alive(&mut operator, &mut kills, async {
            let cluster = &self.scene.cluster;
            let ended = join_all(subjects.iter_mut().map(|subject| async {
                subject.happen(cluster).await?;
                let what = format!("{} is stable", subject.crd());
                eventually(LONG, &what, async || {
                    Ok(invariants::is_stable(cluster, subject).await?.then_some(()))
                })
                .await
            }))
            .await;
            let seen = self.proxy.seen();
            self.proxy.heal();
            // What is written after that is written without need.
            let before = invariants::revisions(cluster).await?;
            self.scene.barrier().await?;
            let after = invariants::revisions(cluster).await?;
            anyhow::Ok((ended, seen, before == after))
        });
        let (ended, seen, is_silent) = ended.await?;
        operator.context("an operator")?.stop().await?;
        let mut broken = Vec::new();
        if !is_silent {
            broken.push("objects were written after everything was stable".to_owned());
        }
        let log = self.scene.log_path();
        for ((plan, subject), ended) in plans.iter().zip(&subjects).zip(ended) {
            let found = match ended {
                Ok(()) => invariants::broken(&self.scene.cluster, subject, &seen, kills).await?,
                Err(error) => vec![format!("{error:#}")],
            };
            broken.extend(found.into_iter().map(|found| format!("{}: {plan:?}: {found}", subject.crd())));
        }
        if !broken.is_empty() {
            let copy = std::env::temp_dir().join(format!("etch-faults-{}.log", std::process::id()));
            std::fs::copy(&log, &copy)?;
            broken.push(format!("the operator's log: {}", copy.display()));
        }
        Ok(broken)
    }

    /// Does something while the operator is killed and started again as rules want it.
    async fn while_alive<T>(
        &self,
        operator: &mut Option<Operator>,
        kills: &mut i64,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut work = pin!(work);
        loop {
            let wanted = pin!(self.proxy.kill_wanted());
            match select(work, wanted).await {
                Either::Left((ended, _)) => return ended,
                Either::Right(((), rest)) => {
                    work = rest;
                    *kills += 1;
                    operator.take().context("an operator")?.kill().await?;
                    *operator = Some(self.operator()?);
                }
            }
        }
    }
}
