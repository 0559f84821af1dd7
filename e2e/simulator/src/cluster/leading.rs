//! The cluster with two replicas: one of them leads, and only its drivers work.

use std::time::{Duration, Instant};

use super::{Cluster, Violation};
use crate::etch::Driver;
use crate::laws::Law;
use crate::replicas::{News, REPLICAS, Replicas, Surroundings};

/// For how long attempts are made one by one where a longer time passes.
const ATTEMPTED: Duration = Duration::from_secs(60);
/// More steps than an election takes.
const STEPS: usize = 20_000;

impl Cluster {
    /// Has two replicas do the work in turns.
    pub fn replicate(&mut self) {
        let replicas = Replicas::new(&mut self.dice, self.now);
        self.replicas = Some(replicas);
        self.drivers.clear();
    }

    pub(super) fn with_replicas<T>(
        &mut self,
        act: impl FnOnce(&mut Replicas, &mut Surroundings<'_>) -> T,
    ) -> Option<T> {
        let Self { replicas, clock, dice, now, has_faults, sabotage, .. } = self;
        let mut at = Surroundings { clock, dice, now: *now, has_faults: *has_faults, sabotage: *sabotage };
        Some(act(replicas.as_mut()?, &mut at))
    }

    /// Whether a driver's replica is not stopped.
    pub(super) fn runs(&self, driver: &Driver) -> bool {
        self.replicas.as_ref().is_none_or(|replicas| replicas.runs(driver.replica))
    }

    /// How many requests of replicas for the Lease are under way.
    pub(super) fn lease_choices(&self) -> usize {
        self.replicas.as_ref().map_or(0, Replicas::choices)
    }

    /// Replicas look at their clocks.
    pub(super) fn look_at_clocks(&mut self) {
        let news = self.with_replicas(Replicas::look_at_clocks).unwrap_or_default();
        news.into_iter().for_each(|news| self.lead(news));
        self.judge_leaders();
    }

    /// A request of a replica for the Lease continues.
    pub(super) fn advance_lease(&mut self, choice: usize) {
        let news = self.with_replicas(|replicas, at| replicas.advance(choice, at));
        if let Some(Some(news)) = news {
            self.lead(news);
        }
        self.judge_leaders();
    }

    fn judge_leaders(&mut self) {
        if self.replicas.as_ref().is_some_and(|replicas| replicas.are_two_leading(self.now)) {
            self.broken.get_or_insert(Law::Leads.into());
        }
    }

    fn lead(&mut self, news: News) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{} {news:?}", self.date));
        }
        self.may_stay = true;
        match news {
            News::Leads(replica) => {
                for index in 0..self.resources.len() {
                    let mut driver = self.driver(index, replica, Vec::new());
                    driver.replica = replica;
                    self.drivers.push(driver);
                }
            }
            News::Ends(replica) => {
                let (ending, rest) = std::mem::take(&mut self.drivers)
                    .into_iter()
                    .partition(|driver| driver.replica == replica);
                self.drivers = rest;
                let ending: Vec<Box<Driver>> = ending;
                for driver in ending {
                    driver.end(&mut self.strays);
                }
            }
        }
    }

    /// Ends every replica that leads, or all where none does; others start in their place.
    pub(super) fn restart_leaders(&mut self, releases: bool) {
        let is_led = !self.drivers.is_empty();
        for replica in 0..REPLICAS {
            if is_led && self.drivers.iter().all(|driver| driver.replica != replica) {
                continue;
            }
            let ended = self.with_replicas(|replicas, at| replicas.restart(replica, releases, at));
            if let Some(Some(news)) = ended {
                self.lead(news);
            }
        }
    }

    /// Lets time pass in which replicas ask about the Lease, and do nothing else.
    pub(super) fn pass_with_lease(&mut self, time: Duration) {
        let (end, until) = (self.now + time, self.now + time.min(ATTEMPTED));
        while self.now < until {
            let next = self.lease_timeout().map_or(until, |next| next.min(until));
            let moment = next.saturating_duration_since(self.now).max(Duration::from_millis(1));
            self.pass(moment);
            self.look_at_clocks();
            while self.lease_choices() > 0 {
                self.advance_lease(0);
            }
        }
        let rest = end.saturating_duration_since(self.now);
        if let Some(replicas) = &mut self.replicas {
            replicas.stand_still(rest);
        }
        self.pass(rest);
    }

    pub(super) fn lease_timeout(&self) -> Option<Instant> {
        self.replicas.as_ref()?.timeout(self.now)
    }

    /// Continues until one replica leads and nothing stops it: from then on it leads for good.
    pub(super) fn elect(&mut self) -> Result<(), Violation> {
        let now = self.now;
        self.with_replicas(|replicas, _| replicas.heal(now));
        for _ in 0..STEPS {
            if self.replicas.as_mut().is_none_or(Replicas::settle) {
                return Ok(());
            }
            if !self.step()? {
                self.wait();
            }
        }
        Err(self.in_the_end("no replica leads"))
    }
}
