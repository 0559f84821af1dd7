//! One life of a cluster: a script of events, and between them requests under way, in an order that depends
//! on the seed alone. Then faults stop, and the end is judged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use etch_core::api::Mode;

use super::cluster::{Cluster, Happening, Violation};
use super::dice::Dice;
use super::etcd::{Edit, name};
use super::replicas::REPLICAS;
use super::sabotage::Sabotage;
use super::worlds::World;

/// A life.
#[derive(Clone)]
pub struct Life {
    /// What chance depends on.
    pub seed: u64,
    worlds: Vec<Arc<World>>,
    script: Vec<(Happening, usize)>,
    settle: Duration,
    /// Whether two replicas do the work in turns.
    is_replicated: bool,
    sabotage: Option<Sabotage>,
}

impl Life {
    /// The life of a seed, in some of these worlds.
    pub fn of(seed: u64, worlds: &[Arc<World>], sabotage: Option<Sabotage>) -> Self {
        let mut dice = Dice::of(seed);
        let worlds: Vec<_> = (0..1 + dice.roll(3)).map(|_| worlds[dice.roll(worlds.len())].clone()).collect();
        let settle = Duration::from_secs([0, 0, 300][dice.roll(3)]);
        // A few objects, mostly: their lives are short, and many.
        let objects = [3, 3, 6, 12, 120][dice.roll(5)];
        let mut script = Vec::new();
        for (resource, world) in worlds.iter().enumerate() {
            for _ in 0..dice.roll(objects) + 1 {
                let (object, request) = (dice.roll(objects), dice.roll(world.menu.len()));
                script.push((Happening::User { resource, object, request, is_behind: false }, 0));
            }
        }
        for _ in 0..dice.roll(60) + 10 {
            let happening = happening(&mut dice, &worlds, objects);
            let made_anew =
                if let Happening::MakeAnew(resource) = &happening { Some(*resource) } else { None };
            script.push((happening, dice.roll(12)));
            // Without objects little happens.
            if let Some(resource) = made_anew {
                let create = |object| Happening::User { resource, object, request: 0, is_behind: false };
                script.extend((0..objects.min(3)).map(|object| (create(object), 0)));
            }
        }
        let is_replicated = dice.roll(4) == 0;
        if dice.roll(6) == 0 {
            script = calm(&mut dice, &worlds);
        } else if is_replicated {
            for _ in 0..dice.roll(6) + 1 {
                let at = dice.roll(script.len());
                let happenings = about_the_lease(&mut dice);
                script.splice(at..at, happenings);
            }
        }
        Self { seed, worlds, script, settle, is_replicated, sabotage }
    }

    /// Lives it.
    ///
    /// # Errors
    /// The violation.
    pub fn live(&self) -> Result<(), Violation> {
        self.lived(&mut self.begin())
    }

    /// The same, and all that happened and Etch did.
    pub fn traced(&self) -> (Result<(), Violation>, Vec<String>) {
        let mut cluster = self.begin();
        cluster.trace = Some(Vec::new());
        let lived = self.lived(&mut cluster);
        (lived, cluster.trace.unwrap_or_default())
    }

    fn begin(&self) -> Cluster {
        let mut dice = Dice::of(!self.seed);
        let dice = Dice::of(dice.roll(1 << 40) as u64);
        let mut cluster = Cluster::new(&self.worlds, self.settle, self.sabotage, dice, Instant::now());
        if self.is_replicated {
            cluster.replicate();
        }
        cluster
    }

    fn lived(&self, cluster: &mut Cluster) -> Result<(), Violation> {
        for (happening, steps) in &self.script {
            cluster.happen(happening);
            for _ in 0..*steps {
                cluster.step()?;
            }
        }
        cluster.rest()?;
        cluster.judge()
    }

    /// The life with fewer events that still breaks a law.
    #[must_use]
    pub fn shrunk(mut self, violation: &Violation) -> Self {
        let mut part = self.script.len() / 2;
        while part > 0 {
            let mut first = 0;
            while first < self.script.len() {
                let mut shorter = self.clone();
                shorter.script.drain(first..(first + part).min(self.script.len()));
                match shorter.live() {
                    Err(other) if other.law == violation.law => self = shorter,
                    _ => first += part,
                }
            }
            part /= 2;
        }
        self
    }

    /// What happens in it.
    pub fn story(&self) -> String {
        let worlds: Vec<&str> = self.worlds.iter().map(|world| world.name).collect();
        let steps = self.script.iter().map(|(happening, steps)| match happening {
            Happening::User { resource, object, request, is_behind } => {
                let request = &self.worlds[*resource].menu[*request];
                let by = if *is_behind { ", to the server that lags behind" } else { "" };
                format!(
                    "  {} of {}, {}: {:?} at {} by {}: {}{by}; {steps} steps",
                    name(*object),
                    resource,
                    self.worlds[*resource].name,
                    request.verb,
                    request.version,
                    request.manager,
                    request.body
                )
            }
            happening => format!("  {happening:?}; {steps} steps"),
        });
        let steps: Vec<String> = steps.collect();
        let replicas = if self.is_replicated { "; two replicas" } else { "" };
        let (worlds, settle) = (worlds.join(", "), self.settle.as_secs());
        format!("  CRDs: {worlds}; settle {settle} s{replicas}\n{}", steps.join("\n"))
    }
}

fn happening(dice: &mut Dice, worlds: &[Arc<World>], objects: usize) -> Happening {
    let resource = dice.roll(worlds.len());
    match dice.roll(46) {
        0..16 => Happening::User {
            resource,
            object: dice.roll(objects),
            request: dice.roll(worlds[resource].menu.len()),
            is_behind: dice.roll(4) == 0,
        },
        16..22 => Happening::Upgrade { resource, is_back: dice.roll(4) == 0, is_slow: dice.roll(3) == 0 },
        22..24 => Happening::CatchUp(resource),
        24..30 => {
            let most = [5, 60, 900, 5000][dice.roll(4)];
            Happening::Wait(Duration::from_secs(dice.roll(most) as u64))
        }
        30 => Happening::SetClock(dice.roll(7200) as i64 - 3600),
        31 => Happening::Crash,
        32 | 33 => Happening::Pause(dice.roll(2) == 0),
        34 => Happening::Expire(resource),
        35 => Happening::Compact(resource),
        36 => Happening::BackUp(resource),
        37 => Happening::Restore(resource),
        38 => Happening::Refuse(resource, dice.roll(2) == 0),
        39 if dice.roll(2) == 0 => Happening::Overwrite(resource),
        39 => Happening::Permissions,
        40 => Happening::Mode([Mode::Persist, Mode::Persist, Mode::Audit, Mode::Ignore][dice.roll(4)]),
        41 => {
            let is_ignored = dice.roll(2) == 0;
            Happening::Ignore { resource, object: dice.roll(objects), is_ignored }
        }
        42 => Happening::Terminate { resource, object: dice.roll(objects) },
        43 => Happening::Finalize { resource, object: dice.roll(objects) },
        44 => Happening::EditReport(resource, [Edit::Label, Edit::State, Edit::Delete][dice.roll(3)]),
        _ => Happening::MakeAnew(resource),
    }
}

/// Objects that are left alone while their CRDs change, once or twice: what has no owner has followed in the
/// end.
fn calm(dice: &mut Dice, worlds: &[Arc<World>]) -> Vec<(Happening, usize)> {
    let resource = dice.roll(worlds.len());
    let users = (0..dice.roll(4) + 1).map(|_| {
        let (object, request) = (dice.roll(3), dice.roll(worlds[resource].menu.len()));
        (Happening::User { resource, object, request, is_behind: false }, dice.roll(12))
    });
    let mut script: Vec<_> = users.collect();
    for _ in 0..2 {
        let most = [5, 60, 1500][dice.roll(3)];
        script.push((Happening::Wait(Duration::from_secs(dice.roll(most) as u64)), dice.roll(200)));
        script.push((Happening::Upgrade { resource, is_back: false, is_slow: false }, dice.roll(200)));
        script.push((Happening::Wait(Duration::from_secs(dice.roll(most) as u64)), dice.roll(200)));
    }
    script
}

/// What happens to a replica, and time for the other one to take over.
fn about_the_lease(dice: &mut Dice) -> Vec<(Happening, usize)> {
    let replica = dice.roll(REPLICAS);
    let time = Duration::from_secs(dice.roll(60) as u64);
    let happening = match dice.roll(6) {
        0..3 => Happening::Stop { replica, time, steps: dice.roll(20), keeps_time: dice.roll(3) > 0 },
        3 | 4 => Happening::CutOff(replica, time),
        _ => Happening::HandOver,
    };
    let half = |dice: &mut Dice| (Happening::Wait(time / 2 + Duration::from_secs(1)), dice.roll(40));
    vec![(happening, dice.roll(12)), half(dice), half(dice)]
}
