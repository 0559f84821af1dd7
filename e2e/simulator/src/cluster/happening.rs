//! What happens to a cluster, apart from what Etch does in it.

use std::time::Duration;

use etch_core::api::{Mode, Pause};
use jiff::SignedDuration;

use super::Cluster;
use super::second;
use crate::etcd::{Edit, Marks, Resource, Server, name};
use crate::etch::Driver;

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
    /// Writes are paused, or may continue.
    Pause(bool),
    /// The policy gets another mode.
    Mode(Mode),
    /// A user sets or removes the annotation that has Etch ignore an object.
    Ignore {
        /// Of which CRD.
        resource: usize,
        /// Which object.
        object: usize,
        /// Whether it is set.
        is_ignored: bool,
    },
    /// A user deletes an object that a finalizer holds.
    Terminate {
        /// Of which CRD.
        resource: usize,
        /// Which object.
        object: usize,
    },
    /// The finalizers of an object have finished.
    Finalize {
        /// Of which CRD.
        resource: usize,
        /// Which object.
        object: usize,
    },
    /// A user changes the report on a CRD.
    EditReport(usize, Edit),
    /// A CRD is deleted with its objects, and created again.
    MakeAnew(usize),
    /// The watch of a CRD's objects cannot continue.
    Expire(usize),
    /// etcd forgets what has happened.
    Compact(usize),
    /// etcd is backed up.
    BackUp(usize),
    /// etcd is restored.
    Restore(usize),
    /// Admission refuses what Etch sends for every second object, or does so no more.
    Refuse(usize, bool),
    /// A user removes our conditions.
    Overwrite(usize),
    /// Permissions have changed.
    Permissions,
    /// A replica stands still.
    Stop {
        /// Which replica.
        replica: usize,
        /// For how long.
        time: Duration,
        /// How many steps it continues for before it looks at its clock.
        steps: usize,
        /// Whether its clock continues meanwhile.
        keeps_time: bool,
    },
    /// The requests of a replica for the Lease are lost, for so long.
    CutOff(usize, Duration),
    /// The leader ends in an orderly way, and another replica begins.
    HandOver,
}

impl Cluster {
    /// Something happens.
    pub fn happen(&mut self, happening: &Happening) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{} {happening:?}", second(self.date)));
        }
        self.upgrades += usize::from(matches!(happening, Happening::Upgrade { .. }));
        let is_user = matches!(
            happening,
            Happening::User { .. }
                | Happening::Ignore { .. }
                | Happening::Terminate { .. }
                | Happening::MakeAnew(_)
        );
        self.is_simple &= self.upgrades <= 2 && !(self.upgrades > 0 && is_user);
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
                // Of what was never reported nothing is known afterwards.
                let was_reported = resources[*resource].was_reported();
                let is_changed = resources[*resource].upgrade(*is_back, *is_slow, now, at.clock);
                self.may_stay |= is_changed && (*is_slow || !was_reported);
            }
            Happening::CatchUp(resource) => self.resources[*resource].catch_up(),
            Happening::Wait(time) if self.replicas.is_some() => self.pass_with_lease(*time),
            Happening::Wait(time) => self.pass(*time),
            Happening::SetClock(seconds) => {
                // A limit: Etch restarts with the wall clock, and takes servers to have caught up by that.
                self.resources.iter_mut().for_each(Resource::catch_up);
                self.date += SignedDuration::from_secs(*seconds);
            }
            Happening::Crash if self.replicas.is_some() => self.restart_leaders(false),
            Happening::HandOver => self.restart_leaders(true),
            Happening::Stop { replica, time, steps, keeps_time } => {
                self.drivers.iter_mut().filter(|driver| driver.replica == *replica).for_each(|driver| {
                    driver.stops_until(now + *time);
                });
                self.with_replicas(|replicas, at| {
                    replicas.stop(*replica, at.now + *time, *steps, *keeps_time, at.now);
                });
            }
            Happening::CutOff(replica, time) => {
                self.with_replicas(|replicas, at| replicas.cut_off(*replica, at.now + *time));
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
            Happening::Mode(mode) => {
                self.mode = *mode;
                self.may_stay = true;
            }
            Happening::Ignore { resource, object, is_ignored } => {
                self.may_stay = true;
                let (resources, at) = self.split();
                let change = |marks: &mut Marks| marks.is_ignored = *is_ignored;
                resources[*resource].mark(&name(*object), change, at.clock);
            }
            Happening::Terminate { resource, object } => {
                let (resources, at) = self.split();
                resources[*resource].mark(&name(*object), |marks| marks.is_terminating = true, at.clock);
            }
            Happening::Finalize { resource, object } => {
                let (resources, at) = self.split();
                resources[*resource].finalize(&name(*object), at.clock);
            }
            Happening::EditReport(resource, edit) => {
                self.may_stay = true;
                let (resources, at) = self.split();
                resources[*resource].edit_report(*edit, at.clock);
            }
            Happening::MakeAnew(resource) => {
                self.may_stay = true;
                self.strays.retain(|stray| !stray.is_of_status(*resource));
                let (resources, at) = self.split();
                let before = resources[*resource].crd_state();
                resources[*resource].make_anew(now, at.clock);
                self.show_crd(*resource, before);
            }
            Happening::Expire(resource) => self.drivers_of(*resource).for_each(Driver::expire),
            Happening::Compact(resource) => self.resources[*resource].compact(),
            Happening::BackUp(resource) => self.resources[*resource].back_up(),
            // A limit: what was found out since the backup, and was not reported yet, is reported afterwards
            // where the backup holds the report that Etch knows.
            Happening::Restore(resource) if self.restores_what_is_not_reported(*resource) => {}
            Happening::Restore(resource) => {
                let (resources, at) = self.split();
                let before = resources[*resource].crd_state();
                if resources[*resource].restore(now, at.clock) {
                    self.may_stay = true;
                    self.drivers_of(*resource).for_each(Driver::expire);
                    // CRDs are listed again.
                    self.show_crd(*resource, before);
                }
            }
            Happening::Refuse(resource, refuses) => self.resources[*resource].refuses = *refuses,
            Happening::Overwrite(resource) => {
                let (resources, at) = self.split();
                let before = resources[*resource].crd_state();
                resources[*resource].overwrite_conditions(at.clock);
                self.show_crd(*resource, before);
            }
            Happening::Permissions => self.drivers.iter_mut().for_each(|driver| driver.permissions_changed()),
        }
    }

    fn restores_what_is_not_reported(&mut self, resource: usize) -> bool {
        let (now, report) = (self.now, self.resources[resource].report_in_backup().cloned());
        self.drivers_of(resource)
            .any(|driver| !driver.has_reported(now) && driver.knows_report(report.as_ref()))
    }
}
