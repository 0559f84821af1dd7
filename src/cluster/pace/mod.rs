//! How many writes are under way at once, and how many begin per second: as many as the server can take.

#[cfg(test)]
mod tests;

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use etch_core::pace::Pressure;
use etch_core::pace::limits::{Limits, PaceMode};
use etch_core::pace::strain::{Company, Strain};

/// How many writes are under way at once at most, by default.
pub const MAX_IN_FLIGHT: usize = 16;

/// The limits that all writers of a process share, or those of one CRD. The writer that waits longest is
/// served first.
#[derive(Debug)]
pub struct Pace {
    interval: Option<Duration>,
    state: Mutex<State>,
    slots: Semaphore,
    /// Notified when a write gives its slot back and continues.
    released: Notify,
}

#[derive(Debug)]
struct State {
    limits: Limits,
    /// Writes under way whose slot was given to others.
    without_slot: usize,
    /// Slots that are taken or free; drawn towards the limit.
    slots: usize,
    /// Writes under way, or about to be.
    in_flight: usize,
    /// Writes that have begun and not ended, and how many have ever begun.
    running: usize,
    begun: u64,
    closed_until: Instant,
    next_start: Instant,
}

/// The right to have one write under way; given back when dropped.
#[derive(Debug)]
pub struct Permit<'a> {
    pace: &'a Pace,
    start: Option<Start>,
    without_slot: bool,
}

/// When a write began, and beside which others.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: Instant,
    /// How many have begun by then, this one included.
    number: u64,
    was_alone: bool,
}

impl Pace {
    /// At most `max` writes at once, of at most `per_second` that begin in a second.
    pub fn new(max: usize, per_second: Option<u32>, mode: PaceMode) -> Self {
        Self::with(Limits::new(max.min(Semaphore::MAX_PERMITS), mode), per_second)
    }

    /// The same for the writes of one CRD, which another pace spaces out: see [`Permit::finish_both`].
    pub fn of_one_crd(max: usize, per_second: Option<u32>, mode: PaceMode) -> Self {
        Self::with(Limits::new(max.min(Semaphore::MAX_PERMITS), mode).beneath_another(), per_second)
    }

    fn with(limits: Limits, per_second: Option<u32>) -> Self {
        let now = Instant::now();
        let slots = limits.slots();
        Self {
            interval: per_second.filter(|rate| *rate > 0).map(|rate| Duration::from_secs(1) / rate),
            state: Mutex::new(State {
                limits,
                without_slot: 0,
                slots,
                in_flight: 0,
                running: 0,
                begun: 0,
                closed_until: now,
                next_start: now,
            }),
            slots: Semaphore::new(slots),
            released: Notify::new(),
        }
    }

    /// Waits for the right to begin a write.
    pub async fn admit(&self) -> Permit<'_> {
        let slot = self.slots.acquire().await.expect("the semaphore is never closed");
        slot.forget();
        self.state.lock().in_flight += 1;
        let mut permit = Permit { pace: self, start: None, without_slot: false };
        self.wait_until_open().await;
        let start = self.next_start();
        // A timer takes a millisecond at least, even where its time has come.
        if start > Instant::now() {
            tokio::time::sleep_until(start).await;
            self.wait_until_open().await;
        }
        permit.begin();
        permit
    }

    /// How many writes have given their slot back and are still under way: as many more objects may be
    /// processed at once, so that none waits for them.
    pub fn without_slot(&self) -> usize {
        self.state.lock().without_slot
    }

    /// Waits until one more write has given its slot back, for one waiter; may be dropped at any time.
    pub async fn released(&self) {
        self.released.notified().await;
    }

    /// How many writes are under way, or about to be.
    pub fn in_flight(&self) -> usize {
        self.state.lock().in_flight
    }

    /// Waits for as long as the server has asked for, which may become longer meanwhile.
    async fn wait_until_open(&self) {
        loop {
            let until = self.state.lock().closed_until;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn next_start(&self) -> Instant {
        let mut state = self.state.lock();
        let start = state.next_start.max(Instant::now());
        let spacing = state.limits.spacing();
        state.next_start = start + self.interval.unwrap_or_default().max(spacing);
        let grown = state.widen();
        drop(state);
        self.slots.add_permits(grown);
        start
    }
}

impl State {
    /// Counts the slots by which the limit has grown; returns how many.
    fn widen(&mut self) -> usize {
        let grown = self.limits.slots().saturating_sub(self.slots);
        self.slots += grown;
        grown
    }

    /// Removes surplus slots that are free; those in use are removed when they are returned.
    fn shrink(&mut self, slots: &Semaphore) {
        let surplus = self.slots.saturating_sub(self.limits.slots());
        self.slots -= slots.forget_permits(surplus);
    }
}

impl<'a> Permit<'a> {
    /// The write begins only now: it has waited for another pace too.
    pub fn begin(&mut self) {
        let mut state = self.pace.state.lock();
        if self.start.is_none() {
            state.running += 1;
            state.begun += 1;
        }
        let number = self.start.map_or(state.begun, |start| start.number);
        let was_alone = state.running == 1;
        self.start = Some(Start { at: Instant::now(), number, was_alone });
    }

    /// The write takes long: the others no longer wait for the measurement of how long one takes alone.
    pub fn takes_long(&self) {
        let mut state = self.pace.state.lock();
        state.limits.end_probe();
        let grown = state.widen();
        drop(state);
        self.pace.slots.add_permits(grown);
    }

    /// Lets others write instead of this write, which takes long and continues: what it waits for may be a
    /// webhook that never answers, and it must not delay writes that do not depend on that webhook.
    ///
    /// Nothing changes if as many writes without a slot are under way as there may be writes at most: then
    /// the server itself is slow.
    pub fn release_slot(&mut self) {
        let mut state = self.pace.state.lock();
        if !self.without_slot && state.without_slot < state.limits.max() {
            state.without_slot += 1;
            drop(state);
            self.without_slot = true;
            self.return_slot();
            self.pace.released.notify_one();
        }
    }

    /// Frees the slot, and those by which the limit has grown.
    fn return_slot(&self) {
        let mut state = self.pace.state.lock();
        if state.slots > state.limits.slots() {
            state.slots -= 1;
            return;
        }
        let grown = state.widen();
        drop(state);
        self.pace.slots.add_permits(1 + grown);
    }

    /// Reports how the server coped with the write.
    pub fn finish(self, pressure: Pressure) {
        let company = self.company();
        self.end(pressure, company, None);
    }

    /// Reports how the server coped with the write, also to the pace of its CRD: how long a write takes
    /// depends on the CRD, so the CRD's pace judges how much the server is strained.
    pub fn finish_both(self, pressure: Pressure, own: Permit<'a>, own_pressure: Pressure) {
        let company = self.company();
        let strain = own.end(own_pressure, company, None);
        // That no answer came in time may be due to a webhook of this CRD: others have written meanwhile.
        let pressure = match pressure {
            Pressure::Overload(None) if self.without_slot => Pressure::Unknown,
            pressure => pressure,
        };
        self.end(pressure, company, strain);
    }

    /// Whether another write was under way at any time while this one was.
    fn company(&self) -> Company {
        let begun = self.pace.state.lock().begun;
        match self.start {
            Some(start) if start.was_alone && start.number == begun => Company::Alone,
            _ => Company::Beside,
        }
    }

    /// Records how the write went; returns the strain that this and earlier ones show, where they do.
    fn end(self, pressure: Pressure, company: Company, known: Option<Strain>) -> Option<Strain> {
        let start = self.start?;
        let (now, pace) = (Instant::now(), self.pace);
        let took = now - start.at;
        let mut state = pace.state.lock();
        match pressure {
            // How long a webhook takes shows nothing about the server.
            Pressure::None | Pressure::Unknown if self.without_slot => None,
            Pressure::None => {
                let strain = state.limits.written(took, company, known, now.into_std());
                state.shrink(&pace.slots);
                strain
            }
            Pressure::Unknown => {
                state.limits.answered(took);
                None
            }
            Pressure::Overload(asked) => {
                state.limits.refused(now.into_std());
                state.shrink(&pace.slots);
                if let Some(asked) = asked {
                    state.closed_until = state.closed_until.max(now + asked);
                }
                None
            }
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.pace.state.lock();
        state.in_flight -= 1;
        state.running -= usize::from(self.start.is_some());
        if self.without_slot {
            state.without_slot -= 1;
            return;
        }
        drop(state);
        self.return_slot();
    }
}
