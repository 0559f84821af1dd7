//! A cluster that lives on virtual time: events from outside, requests under way in any order, and what must
//! hold at rest.

mod happening;
mod judging;
mod leading;
mod resting;

use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use etch_core::api::{Mode, Pause, Settings, StoredVersions};
use etch_core::engine::Now;
use etch_core::plan::{HiddenFields, Terms};
use jiff::{SignedDuration, Timestamp};

pub use self::happening::Happening;
use super::dice::{Dice, Script};
use super::etcd::{Clock, CrdState, Resource};
use super::etch::{Driver, Stray, Surroundings};
use super::laws::Law;
use super::replicas::Replicas;
use super::sabotage::Sabotage;
use super::worlds::World;

/// A violation of a law.
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

/// A cluster that lives.
#[derive(Clone)]
pub struct Cluster {
    settle: Duration,
    sabotage: Option<Sabotage>,
    dice: Dice,
    clock: Clock,
    now: Instant,
    date: Timestamp,
    resources: Vec<Resource>,
    /// They are large, and taken out for each step.
    drivers: Vec<Box<Driver>>,
    strays: Vec<Stray>,
    pause: Option<Pause>,
    mode: Mode,
    /// Two of them with a Lease, or `None` for one that always leads.
    replicas: Option<Replicas>,
    /// A violation that was found where no error can be returned.
    broken: Option<Violation>,
    has_faults: bool,
    /// Whether anything has happened after which a value may stay at an old default: a server that lagged
    /// behind, a restore, a request that outlived its sender, or a crash.
    may_stay: bool,
    /// How many upgrades users tried.
    upgrades: usize,
    /// Whether no value at an old default can be one that a user meant: one upgrade, and no user after it.
    is_simple: bool,
    /// All that happens and Etch does, where it is wanted.
    pub trace: Option<Vec<String>>,
}

impl Cluster {
    /// A cluster with a CRD in each of these worlds.
    pub fn new(
        worlds: &[Arc<World>],
        settle: Duration,
        sabotage: Option<Sabotage>,
        dice: Dice,
        now: Instant,
    ) -> Self {
        let mut clock = Clock::default();
        let resources = worlds.iter().map(|world| Resource::new(world.clone(), &mut clock)).collect();
        let mut cluster = Self {
            settle,
            sabotage,
            dice,
            clock,
            now,
            date: Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000),
            resources,
            drivers: Vec::new(),
            strays: Vec::new(),
            pause: None,
            mode: Mode::Persist,
            replicas: None,
            broken: None,
            has_faults: true,
            may_stay: false,
            upgrades: 0,
            is_simple: true,
            trace: None,
        };
        cluster.begin();
        cluster
    }

    /// The choices, where they are made one by one.
    pub fn script(&mut self) -> Option<&mut Script> {
        self.dice.script()
    }

    /// The CRDs and their objects.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Whether any request that was given up may still arrive.
    pub fn has_strays(&self) -> bool {
        !self.strays.is_empty()
    }

    /// Whether there is anything to choose from: a request, an answer or an event.
    pub fn has_choices(&self) -> bool {
        self.has_strays() || self.drivers.iter().any(|driver| self.choices(driver) > 0)
    }

    fn choices(&self, driver: &Driver) -> usize {
        if self.runs(driver) { driver.choices(&self.resources[driver.resource()]) } else { 0 }
    }

    fn drivers_of(&mut self, resource: usize) -> impl Iterator<Item = &mut Driver> {
        self.drivers.iter_mut().map(Box::as_mut).filter(move |driver| driver.resource() == resource)
    }

    /// Whether a CRD has changed without Etch's knowing.
    pub fn has_news(&self) -> bool {
        self.drivers.iter().any(|driver| driver.has_news(&self.resources[driver.resource()]))
    }

    /// Counts the limits that the documents name as broken laws.
    pub fn be_strict(&mut self) {
        self.resources.iter_mut().for_each(|resource| resource.is_strict = true);
    }

    /// The identity of a cluster state.
    pub fn digest(&self) -> u64 {
        let Self { drivers, resources, strays, clock, now, date, pause, mode, .. } = self;
        let mut digest = Digest(DefaultHasher::new());
        let known = (strays, clock, now, date, (pause, mode), self.has_faults, self.may_stay, self.is_simple);
        // A fault may leave no trace, and another one is not left then.
        let known = (known, self.dice.left());
        // A digest takes in everything.
        let _ = write!(digest, "{known:?}");
        for driver in drivers {
            let resource = &resources[driver.resource()];
            let _ = write!(digest, "{driver:?} {:?}", resource.shown_to(driver.delivered()));
        }
        digest.0.finish()
    }

    fn settings(&self, resource: usize) -> Settings {
        let World { terms, follow, .. } = &*self.resources[resource].world;
        let sabotage = self.sabotage;
        let terms = match sabotage {
            Some(Sabotage::IgnoresHiddenFields) => {
                Terms { hidden_fields: HiddenFields::Drop, ..terms.clone() }
            }
            _ => terms.clone(),
        };
        let stored_versions = if terms.moves { StoredVersions::Trim } else { StoredVersions::default() };
        let follow = if sabotage == Some(Sabotage::FollowsNothing) { Vec::new() } else { follow.clone() };
        Settings {
            policy: "default".to_owned(),
            mode: self.mode,
            terms,
            settle: self.settle,
            max_writes_per_second: None,
            stop_after_rejected: None,
            stored_versions,
            canary: None,
            pause: None,
            names_paths: !follow.is_empty(),
            follow,
        }
    }

    /// Begins with each CRD as it is now.
    fn begin(&mut self) {
        self.drivers = (0..self.resources.len()).map(|index| self.driver(index, 0, Vec::new())).collect();
    }

    fn driver(&mut self, resource: usize, replica: usize, dropped: Dropped) -> Box<Driver> {
        let settings = self.settings(resource);
        let pause = self.pause.clone();
        let (resources, mut at) = self.split_for(replica);
        let driver = Driver::new(resource, &resources[resource], &settings, pause, dropped, &mut at);
        let mut driver = Box::new(driver);
        driver.replica = replica;
        driver
    }

    /// Restarts with a CRD that has changed.
    fn learn(&mut self, index: usize) {
        let (resource, replica) = (self.drivers[index].resource(), self.drivers[index].replica);
        let next = self.driver(resource, replica, Vec::new());
        let before = std::mem::replace(&mut self.drivers[index], next);
        let dropped = before.end(&mut self.strays);
        if !dropped.is_empty() {
            self.drivers[index] = self.driver(resource, replica, dropped);
        }
    }

    fn split(&mut self) -> (&mut Vec<Resource>, Surroundings<'_>) {
        self.split_for(0)
    }

    /// What a replica meets, on its own time of day.
    fn split_for(&mut self, replica: usize) -> (&mut Vec<Resource>, Surroundings<'_>) {
        let skew = self.replicas.as_ref().map(|replicas| replicas.skew(replica)).unwrap_or_default();
        let Self { sabotage, dice, clock, now, date, resources, strays, has_faults, trace, .. } = self;
        let surroundings = Surroundings {
            dice,
            clock,
            now: Now { at: *now, date: second(*date + skew) },
            strays,
            has_faults: *has_faults,
            sabotage: *sabotage,
            trace,
        };
        (resources, surroundings)
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

    /// Has Etch begin its commands, and one thing under way continue; whether there was anything.
    ///
    /// # Errors
    /// What must not be, and is.
    pub fn step(&mut self) -> Result<bool, Violation> {
        let moment = self.dice.seed(20);
        self.pass(Duration::from_millis(moment));
        self.look_at_clocks();
        let has_done = self.perform(true);
        let choices = self.drivers.iter().map(|driver| self.choices(driver));
        let choices: Vec<usize> = choices.chain([self.strays.len(), self.lease_choices()]).collect();
        if choices.iter().all(|weight| *weight == 0) {
            return self.broken.clone().map_or(Ok(has_done), Err);
        }
        let drivers = self.drivers.len();
        match self.dice.pick(&choices) {
            (index, number) if index == drivers => self.arrive(number)?,
            (index, number) if index > drivers => self.advance_lease(number),
            (index, _) => self.with_driver(index, Driver::advance)?,
        }
        self.broken.clone().map_or(Ok(true), Err)
    }

    /// Has Etch begin its commands, and learn changes of CRDs where it `learns`; whether there was anything.
    fn perform(&mut self, learns: bool) -> bool {
        let mut has_done = false;
        for index in 0..self.drivers.len() {
            if !self.runs(&self.drivers[index]) {
                continue;
            }
            let driver = &self.drivers[index];
            let is_new = driver.has_news(&self.resources[driver.resource()]) || driver.mode() != self.mode;
            if learns && is_new && (!self.has_faults || self.dice.one_in(6)) {
                self.learn(index);
            }
            let mut driver = self.drivers.remove(index);
            let (_, mut at) = self.split_for(driver.replica);
            let (has_asked, is_changed) = driver.perform(&mut at);
            self.drivers.insert(index, driver);
            has_done |= has_asked;
            if is_changed {
                self.learn(index);
            }
        }
        has_done
    }

    /// A request arrives whose sender has given it up.
    fn arrive(&mut self, number: usize) -> Result<(), Violation> {
        let stray = self.strays.swap_remove(number);
        self.may_stay = true;
        let (resources, at) = self.split();
        let resource = stray.resource;
        let before = resources[resource].crd_state();
        stray.arrive(&mut resources[resource], at.clock)?;
        self.show_crd(resource, before);
        Ok(())
    }

    /// Has the watch of CRDs show a CRD that is not as before: of our conditions the operator sees only the
    /// entry in managedFields.
    fn show_crd(&mut self, resource: usize, before: CrdState) {
        if self.resources[resource].crd_state() != before {
            let (now, revision) = (self.now, self.resources[resource].crd_revision());
            self.drivers_of(resource).for_each(|driver| driver.crd_shown(now, revision.clone()));
        }
    }

    /// Brings everything on that meets nothing else: its order changes nothing. Of reports
    /// that is so where none is lost, restored, or read by another replica.
    ///
    /// # Errors
    /// What must not be, and is.
    pub fn bring_on(&mut self, with_reports: bool) -> Result<(), Violation> {
        let has_faults = std::mem::replace(&mut self.has_faults, false);
        let mut goes_on = true;
        while goes_on {
            self.perform(false);
            goes_on = false;
            for index in 0..self.drivers.len() {
                goes_on |= self
                    .with_driver(index, |driver, resource, at| driver.bring_on(with_reports, resource, at))?;
            }
        }
        self.has_faults = has_faults;
        Ok(())
    }

    fn with_driver<T>(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Driver, &mut Resource, &mut Surroundings<'_>) -> Result<T, Law>,
    ) -> Result<T, Violation> {
        let mut driver = self.drivers.remove(index);
        let (resources, mut at) = self.split_for(driver.replica);
        let number = driver.resource();
        let resource = &mut resources[number];
        let before = resource.crd_state();
        let done = act(&mut driver, resource, &mut at);
        self.drivers.insert(index, driver);
        self.show_crd(number, before);
        Ok(done?)
    }
}

/// What is printed into it, as a number.
struct Digest(DefaultHasher);

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// A time of day as Etch takes it in.
fn second(date: Timestamp) -> Timestamp {
    Timestamp::from_second(date.as_second()).unwrap_or(date)
}

type Dropped = Vec<(etch_core::object::Identity, Vec<kube_structural_schema::path::Path>)>;
