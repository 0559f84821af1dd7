//! One life of a cluster: what happens to it, by a script, and in between whatever comes of what is under way,
//! in an order that depends on the seed alone. Then faults stop, and what must be so in the end is judged.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use etch_core::api::{Mode, Pause, Settings};
use etch_core::condition::Reason;
use etch_core::engine::Now;
use etch_core::plan::{HiddenFields, Terms};
use jiff::{SignedDuration, Timestamp};

use super::dice::Dice;
use super::etcd::{Clock, Resource, Server, name};
use super::etch::{Driver, Stray, Surroundings};
use super::laws::{self, Law};
use super::sabotage::Sabotage;
use super::worlds::World;

/// How long everything may take until nothing is left to be done: what is refused is tried ever more seldom.
const PATIENCE: Duration = Duration::from_secs(40 * 3600);
/// How long at least is waited for that: until servers have caught up, and everything was verified.
const VERIFIED: Duration = Duration::from_secs(1800);
/// How long nothing is written then.
const QUIET: Duration = Duration::from_secs(3600);
/// More steps than anything takes.
const STEPS: usize = 200_000;

/// What happens to a cluster, apart from what Etch does.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A user sends the request of this number for an object.
    User {
        /// Of which CRD.
        resource: usize,
        /// Which object.
        object: usize,
        /// Which request of the world.
        request: usize,
        /// To which server.
        is_behind: bool,
    },
    /// A CRD changes, to what comes next or back.
    Upgrade {
        /// Which CRD.
        resource: usize,
        /// Whether it goes back.
        is_back: bool,
        /// Whether a server lags behind.
        is_slow: bool,
    },
    /// The server that lags behind has caught up.
    CatchUp(usize),
    /// Time passes.
    Wait(Duration),
    /// The wall clock is set.
    SetClock(i64),
    /// Etch ends, and another replica begins.
    Crash,
    /// Writes are paused, or may go on.
    Pause(bool),
    /// The watch of a CRD's objects cannot go on.
    Expire(usize),
    /// etcd forgets what has happened.
    Compact(usize),
    /// etcd is backed up.
    BackUp(usize),
    /// etcd is restored.
    Restore(usize),
    /// Admission refuses what Etch sends for every second object, or does so no more.
    Refuse(usize, bool),
    /// Somebody takes our conditions away.
    Overwrite(usize),
    /// Permissions have changed.
    Permissions,
}

/// A life.
#[derive(Clone)]
pub struct Life {
    /// What chance depends on.
    pub seed: u64,
    worlds: Vec<Arc<World>>,
    script: Vec<(Happening, usize)>,
    settle: Duration,
    sabotage: Option<Sabotage>,
}

/// Something that must not be.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The law that is broken, where it is one that a single request can break.
    pub law: Option<Law>,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.law {
            Some(law) => write!(f, "law {}", law.name())?,
            None => f.write_str("in the end")?,
        }
        if self.what.is_empty() { Ok(()) } else { write!(f, ": {}", self.what) }
    }
}

impl From<Law> for Violation {
    fn from(law: Law) -> Self {
        Self { law: Some(law), what: String::new() }
    }
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
            script.push((happening, dice.roll(12)));
        }
        Self { seed, worlds, script, settle, sabotage }
    }

    /// Lives it.
    ///
    /// # Errors
    /// What must not be, and is.
    pub fn live(&self) -> Result<(), Violation> {
        Cluster::new(self, None).live()
    }

    /// The same, and all that happened and Etch did.
    pub fn traced(&self) -> (Result<(), Violation>, Vec<String>) {
        let mut cluster = Cluster::new(self, Some(Vec::new()));
        let lived = cluster.live();
        (lived, cluster.trace.unwrap_or_default())
    }

    /// The same with fewer happenings, as far as one that must not be is left.
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
        format!("  CRDs: {}; settle {} s\n{}", worlds.join(", "), self.settle.as_secs(), steps.join("\n"))
    }
}

fn happening(dice: &mut Dice, worlds: &[Arc<World>], objects: usize) -> Happening {
    let resource = dice.roll(worlds.len());
    match dice.roll(40) {
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
        _ if dice.roll(2) == 0 => Happening::Overwrite(resource),
        _ => Happening::Permissions,
    }
}

/// A cluster that lives.
struct Cluster<'a> {
    life: &'a Life,
    dice: Dice,
    clock: Clock,
    now: Instant,
    date: Timestamp,
    resources: Vec<Resource>,
    drivers: Vec<Driver>,
    strays: Vec<Stray>,
    pause: Option<Pause>,
    has_faults: bool,
    /// Whether anything has happened after which a value may stay at an old default: a server that lagged
    /// behind, a restore, a request that outlived its sender, or a crash.
    may_stay: bool,
    trace: Option<Vec<String>>,
}

impl<'a> Cluster<'a> {
    fn new(life: &'a Life, trace: Option<Vec<String>>) -> Self {
        let (mut dice, mut clock) = (Dice::of(!life.seed), Clock::default());
        let resources = life.worlds.iter().map(|world| Resource::new(world.clone(), &mut clock)).collect();
        let date = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000);
        let mut cluster = Self {
            life,
            dice: Dice::of(dice.roll(1 << 40) as u64),
            clock,
            now: Instant::now(),
            date,
            resources,
            drivers: Vec::new(),
            strays: Vec::new(),
            pause: None,
            has_faults: true,
            may_stay: false,
            trace,
        };
        cluster.begin();
        cluster
    }

    fn live(&mut self) -> Result<(), Violation> {
        for (happening, steps) in &self.life.script {
            if let Some(trace) = &mut self.trace {
                trace.push(format!("{} {happening:?}", second(self.date)));
            }
            self.happen(happening)?;
            for _ in 0..*steps {
                self.step()?;
            }
        }
        self.rest()?;
        self.judge()
    }

    fn settings(&self, resource: usize) -> Settings {
        let World { terms, follow, .. } = &*self.life.worlds[resource];
        let sabotage = self.life.sabotage;
        let terms = match sabotage {
            Some(Sabotage::IgnoresHiddenFields) => Terms { hidden_fields: HiddenFields::Drop, ..*terms },
            _ => *terms,
        };
        let follow = if sabotage == Some(Sabotage::FollowsNothing) { Vec::new() } else { follow.clone() };
        Settings {
            policy: "default".to_owned(),
            mode: Mode::Persist,
            terms,
            settle: self.life.settle,
            max_writes_per_second: None,
            stop_after_rejected: None,
            pause: None,
            names_paths: !follow.is_empty(),
            follow,
        }
    }

    /// Begins with each CRD as it is now.
    fn begin(&mut self) {
        self.drivers = (0..self.resources.len()).map(|index| self.driver(index, Vec::new())).collect();
    }

    fn driver(&mut self, index: usize, dropped: Dropped) -> Driver {
        let settings = self.settings(index);
        let pause = self.pause.clone();
        let (resources, mut at) = self.split();
        Driver::new(index, &resources[index], &settings, pause, dropped, &mut at)
    }

    /// Begins anew with a CRD that has changed.
    fn learn(&mut self, index: usize) {
        let next = self.driver(index, Vec::new());
        let before = std::mem::replace(&mut self.drivers[index], next);
        let dropped = before.end(&mut self.strays);
        if !dropped.is_empty() {
            self.drivers[index] = self.driver(index, dropped);
        }
    }

    fn split(&mut self) -> (&mut Vec<Resource>, Surroundings<'_>) {
        let Self { life, dice, clock, now, date, resources, strays, has_faults, trace, .. } = self;
        let surroundings = Surroundings {
            dice,
            clock,
            now: Now { at: *now, date: second(*date) },
            strays,
            has_faults: *has_faults,
            sabotage: life.sabotage,
            trace,
        };
        (resources, surroundings)
    }

    fn happen(&mut self, happening: &Happening) -> Result<(), Violation> {
        let now = self.now;
        match happening {
            Happening::User { resource, object, request, is_behind } => {
                let (resources, at) = self.split();
                let resource = &mut resources[*resource];
                let request = resource.world.menu[*request].clone();
                let server =
                    if *is_behind && resource.may_store_late() { Server::Behind } else { Server::Current };
                // What is refused has not happened.
                let _ = resource.process(at.clock, &name(*object), server, &request);
            }
            Happening::Upgrade { resource, is_back, is_slow } => {
                let (resources, at) = self.split();
                let is_slow = resources[*resource].upgrade(*is_back, *is_slow, now, at.clock) && *is_slow;
                self.may_stay |= is_slow;
            }
            Happening::CatchUp(resource) => self.resources[*resource].catch_up(),
            Happening::Wait(time) => self.pass(*time),
            Happening::SetClock(seconds) => {
                // A limit: Etch begins anew with the wall clock, and takes servers to have caught up by that.
                self.resources.iter_mut().for_each(Resource::catch_up);
                self.date += SignedDuration::from_secs(*seconds);
            }
            Happening::Crash => {
                self.may_stay = true;
                for driver in std::mem::take(&mut self.drivers) {
                    driver.end(&mut self.strays);
                }
                self.begin();
            }
            Happening::Pause(is_paused) => {
                let pause = Pause { paused: Some("default".to_owned()), ..Pause::default() };
                self.set_pause(is_paused.then_some(pause));
            }
            Happening::Expire(resource) => self.drivers[*resource].expire(),
            Happening::Compact(resource) => self.resources[*resource].compact(),
            Happening::BackUp(resource) => self.resources[*resource].back_up(),
            // A limit: what was found out since the backup, and was not reported yet, is reported afterwards
            // where the backup holds the report that Etch knows.
            Happening::Restore(resource)
                if !self.drivers[*resource].has_reported(now)
                    && self.drivers[*resource].knows_report(self.resources[*resource].report_in_backup()) => {
            }
            Happening::Restore(resource) => {
                let (resources, at) = self.split();
                if resources[*resource].restore(at.clock) {
                    self.may_stay = true;
                    self.drivers[*resource].expire();
                    // The watch of CRDs brings them as they are now.
                    self.drivers[*resource].conditions_changed(now);
                }
            }
            Happening::Refuse(resource, refuses) => self.resources[*resource].refuses = *refuses,
            Happening::Overwrite(resource) => {
                self.resources[*resource].conditions.clear();
                self.drivers[*resource].conditions_changed(now);
            }
            Happening::Permissions => self.drivers.iter_mut().for_each(Driver::permissions_changed),
        }
        Ok(())
    }

    fn set_pause(&mut self, pause: Option<Pause>) {
        self.pause.clone_from(&pause);
        for driver in &mut self.drivers {
            driver.set_pause(self.now, pause.clone());
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.date += SignedDuration::try_from(time).unwrap_or_default();
        for resource in &mut self.resources {
            resource.take_time(self.now);
        }
    }

    /// Has Etch do what it has to, and something come of what is under way; whether there was anything.
    fn step(&mut self) -> Result<bool, Violation> {
        let moment = self.dice.roll(20) as u64;
        self.pass(Duration::from_millis(moment));
        let mut has_done = false;
        for index in 0..self.drivers.len() {
            let is_new = self.drivers[index].knows() != self.resources[index].generation();
            if is_new && (!self.has_faults || self.dice.roll(6) == 0) {
                self.learn(index);
            }
            let Self { drivers, .. } = self;
            let mut driver = drivers.remove(index);
            let (_, mut at) = self.split();
            let (has_asked, is_changed) = driver.perform(&mut at);
            self.drivers.insert(index, driver);
            has_done |= has_asked;
            if is_changed {
                self.learn(index);
            }
        }
        let choices: Vec<usize> = self
            .drivers
            .iter()
            .zip(&self.resources)
            .map(|(driver, resource)| driver.choices(resource))
            .collect();
        let all: usize = choices.iter().sum();
        let strays = self.strays.len();
        if all + strays == 0 {
            return Ok(has_done);
        }
        let mut choice = self.dice.roll(all + strays);
        if choice >= all {
            let stray = self.strays.swap_remove(choice - all);
            self.may_stay = true;
            let (resources, at) = self.split();
            let resource = stray.resource;
            stray.arrive(&mut resources[resource], at.clock)?;
            // It may have replaced conditions.
            self.drivers[resource].conditions_changed(self.now);
            return Ok(true);
        }
        for (index, of_this) in choices.into_iter().enumerate() {
            if choice < of_this {
                let mut driver = self.drivers.remove(index);
                let (resources, mut at) = self.split();
                let advanced = driver.advance(&mut resources[index], &mut at);
                self.drivers.insert(index, driver);
                advanced?;
                return Ok(true);
            }
            choice -= of_this;
        }
        Ok(true)
    }

    /// Faults stop, and Etch comes to rest.
    fn rest(&mut self) -> Result<(), Violation> {
        self.has_faults = false;
        self.set_pause(None);
        for resource in &mut self.resources {
            resource.catch_up();
            resource.refuses = false;
        }
        let (begun, mut steps) = (self.now, 0);
        while self.now < begun + VERIFIED || !self.is_at_rest() {
            if self.now > begun + PATIENCE {
                return Err(self.in_the_end("something is left to be done for ever"));
            }
            steps += 1;
            if steps > STEPS {
                return Err(self.in_the_end("it never comes to rest"));
            }
            if !self.step()? {
                self.wait();
            }
        }
        let writes: u64 = self.drivers.iter().map(|driver| driver.writes).sum();
        let quiet = self.now + QUIET;
        while self.now < quiet {
            if !self.step()? {
                self.wait();
            }
        }
        let since: u64 = self.drivers.iter().map(|driver| driver.writes).sum();
        match since == writes {
            true => Ok(()),
            false => {
                Err(Violation { law: Some(Law::Idempotence), what: "objects are written at rest".to_owned() })
            }
        }
    }

    /// Lets time pass until somebody has something to do.
    fn wait(&mut self) {
        let next = self.drivers.iter().filter_map(Driver::timeout).min();
        let most = self.now + Duration::from_secs(600);
        let at = next.map_or(most, |at| at.min(most));
        self.pass(at.saturating_duration_since(self.now).max(Duration::from_millis(1)));
    }

    /// Whether everything is said and done.
    fn is_at_rest(&mut self) -> bool {
        let Self { drivers, resources, strays, .. } = self;
        strays.is_empty()
            && drivers.iter_mut().zip(resources).all(|(driver, resource)| {
                let report = resource.report.as_ref().and_then(|report| report.status.as_ref());
                // The report on a CRD that has no defaults any more keeps what was known of its objects.
                let has_defaults = resource.crd().compiled().has_defaults();
                let waits = report.filter(|_| has_defaults).is_some_and(|status| {
                    status.counts.rejected + status.counts.unknown > 0 || status.verify_at.is_some()
                });
                driver.is_at_rest() && driver.choices(resource) == 0 && !waits
            })
    }

    fn in_the_end(&self, what: &str) -> Violation {
        let said: Vec<String> = self
            .resources
            .iter()
            .map(|resource| {
                let said =
                    resource.conditions.iter().find(|condition| condition.r#type == "DefaultsPersisted");
                said.map_or_else(
                    || "no condition".to_owned(),
                    |said| format!("{} {}: {}", said.status, said.reason, said.message),
                )
            })
            .collect();
        Violation { law: None, what: format!("{what} ({})", said.join("; ")) }
    }

    /// What must be so where nothing is left to be done.
    fn judge(&self) -> Result<(), Violation> {
        self.resources.iter().try_for_each(|resource| self.judge_resource(resource))
    }

    fn judge_resource(&self, resource: &Resource) -> Result<(), Violation> {
        let said = resource.conditions.iter().find(|condition| condition.r#type == "DefaultsPersisted");
        let Some(said) = said else { return Err(self.in_the_end("a CRD has no condition")) };
        let status = resource.report.as_ref().and_then(|report| report.status.as_ref());
        let has_defaults = resource.crd().compiled().has_defaults();
        if !has_defaults {
            return match said.reason == Reason::NoDefaults.as_str() {
                true => Ok(()),
                false => Err(self.in_the_end("a CRD without defaults is not said to be one")),
            };
        }
        let Some(status) = status else { return Err(self.in_the_end("a CRD has no report")) };
        if status.counts.objects != resource.objects.len() as u64 {
            return Err(self.in_the_end(&format!("there are {} objects", resource.objects.len())));
        }
        for (name, live) in &resource.objects {
            let is_named = status.held.iter().any(|held| held.name == *name) || status.counts.held > 50;
            if !is_named && !resource.release().is_stored(&live.content) {
                let law = Some(if said.status == "True" { Law::Persisted } else { Law::Undone });
                return Err(Violation { law, what: format!("{name} {:?}; {}", live.content, said.message) });
            }
            if laws::keeps_an_entry(&resource.world, &live.content) && !is_named {
                return Err(Violation {
                    law: Some(Law::Owners),
                    what: format!("{name} keeps an entry of Etch"),
                });
            }
            let last =
                resource.generations.len().checked_sub(2).map(|last| &resource.generations[last].release);
            let stays = last.is_some_and(|last| {
                laws::stays_behind(&resource.world, resource.release(), last, &live.content)
            });
            if stays && !is_named && !self.may_stay && self.life.is_simple() {
                return Err(Violation {
                    law: Some(Law::Follows),
                    what: format!("{name} {:?}", live.content),
                });
            }
        }
        Ok(())
    }
}

impl Life {
    /// Whether nothing in it leaves a value at an old default that somebody may have meant: one upgrade, and no
    /// user after it.
    fn is_simple(&self) -> bool {
        let mut upgrades = 0;
        self.script.iter().all(|(happening, _)| {
            upgrades += usize::from(matches!(happening, Happening::Upgrade { .. }));
            upgrades <= 2 && !(upgrades > 0 && matches!(happening, Happening::User { .. }))
        })
    }
}

/// A time of day as Etch takes it in.
fn second(date: Timestamp) -> Timestamp {
    Timestamp::from_second(date.as_second()).unwrap_or(date)
}

type Dropped = Vec<(etch_core::object::Identity, Vec<kube_structural_schema::path::Path>)>;
