//! The end of a life: faults stop, and Etch comes to rest.

use std::time::Duration;

use etch_core::api::Mode;

use super::{Cluster, Violation};
use crate::laws::Law;

/// How long everything may take until nothing is left to be done: what is refused is tried ever more seldom.
const PATIENCE: Duration = Duration::from_secs(40 * 3600);
/// How long at least is waited for that: until servers have caught up, and everything was verified.
const VERIFIED: Duration = Duration::from_secs(1800);
/// How long nothing is written then.
const QUIET: Duration = Duration::from_secs(3600);
/// More steps than anything takes.
const STEPS: usize = 200_000;

impl Cluster {
    /// Faults stop, and Etch comes to rest.
    ///
    /// # Errors
    /// It does not, or it writes at rest.
    pub fn rest(&mut self) -> Result<(), Violation> {
        (self.has_faults, self.mode) = (false, Mode::Persist);
        self.set_pause(None);
        for resource in &mut self.resources {
            resource.catch_up();
            resource.refuses = false;
        }
        self.elect()?;
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
        let writes = self.writes_at_rest();
        let quiet = self.now + QUIET;
        while self.now < quiet {
            if !self.step()? {
                self.wait();
            }
        }
        match self.writes_at_rest() == writes {
            true => Ok(()),
            false => {
                Err(Violation { law: Some(Law::Idempotence), what: "objects are written at rest".to_owned() })
            }
        }
    }

    /// How many writes were sent; of objects that admission does not let pass, some more may always follow.
    fn writes_at_rest(&self) -> u64 {
        let drivers = self.drivers.iter();
        drivers
            .filter(|driver| !self.resources[driver.resource()].are_some_rejected_for_good())
            .map(|driver| driver.writes)
            .sum()
    }

    /// Advances the time to the next timeout.
    pub fn wait(&mut self) {
        let running = self.drivers.iter().filter(|driver| self.runs(driver));
        let next = running.filter_map(|driver| driver.timeout()).chain(self.lease_timeout()).min();
        let most = self.now + Duration::from_secs(600);
        let at = next.map_or(most, |at| at.min(most));
        self.pass(at.saturating_duration_since(self.now).max(Duration::from_millis(1)));
    }

    /// Whether it is at rest, and everything that it knows is reported.
    pub fn has_reported(&mut self) -> bool {
        let now = self.now;
        self.is_at_rest() && self.drivers.iter_mut().all(|driver| driver.has_reported(now))
    }

    /// Whether nothing is left to do.
    pub fn is_at_rest(&mut self) -> bool {
        let Self { drivers, resources, strays, .. } = self;
        strays.is_empty()
            && drivers.len() == resources.len()
            && drivers.iter_mut().all(|driver| {
                let resource = &resources[driver.resource()];
                let report = resource.report.as_ref().and_then(|report| report.status.as_ref());
                // The report on a CRD that has no defaults any more keeps what was known of its objects.
                let is_about_work = resource.crd().gives_defaults() || resource.is_to_be_trimmed();
                let waits = report.filter(|_| is_about_work).is_some_and(|status| {
                    let is_for_good = resource.are_some_rejected_for_good();
                    let rejected = if is_for_good { 0 } else { status.counts.rejected };
                    rejected + status.counts.unknown > 0 || status.verify_at.is_some()
                });
                driver.is_at_rest() && driver.choices(resource) == 0 && !waits
            })
    }
}
