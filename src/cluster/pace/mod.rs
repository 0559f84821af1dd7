//! How many writes are under way at once, and how many begin per second: as many as the server bears.
//! It must not know what is written.

mod slowdown;
#[cfg(test)]
mod tests;

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use slowdown::Slowdown;

/// How many writes are under way at once at most, where nobody says otherwise.
pub const MAX_IN_FLIGHT: usize = 16;

/// After the limit was halved, further refusals count as the same one for this long: they answer requests
/// sent before it.
const ONE_CUT: Duration = Duration::from_millis(500);
/// A write that takes this many times the usual is a sign to send no more at once.
const SLOW: f64 = 4.0;
/// Where a new pace begins, if its maximum is higher.
const INITIAL_LIMIT: f64 = 4.0;
/// A gentle pace sends more at once while writes take less than this many times as long as alone…
const GROW_BELOW: f64 = 1.3;
/// …and fewer when they take more than this many times as long.
const CUT_ABOVE: f64 = 1.6;
/// What is left of the limit then, and when the server refuses writes.
const CUT_FACTOR: f64 = 0.75;
const OVERLOAD_CUT_FACTOR: f64 = 0.5;
/// The least limit of a gentle pace: below 1 it is the share of the time in which there is a write, one at a
/// time, and it rests between them.
const MIN_LIMIT: f64 = 1.0 / 6.0;
/// How much of that share is added to it where there may be more.
const GROWTH: f64 = 0.125;
/// How many writes, one at a time, show how long one takes alone.
const PROBE_WRITES: usize = 4;
/// How many writes it takes until the slowdown shows the effect of a cut.
const SAMPLES_BETWEEN_CUTS: usize = 10;

/// How much of the server a pace takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaceMode {
    /// So little that other clients hardly notice it: fewer writes at once as soon as they take longer than
    /// alone, and rests between them where one at a time is too much.
    #[default]
    Gentle,
    /// As much as there is: fewer writes at once when the server refuses some.
    Fast,
}

/// The limits that all writers of a process share. Whoever waits longest is served first.
#[derive(Debug)]
pub struct Pace {
    max: f64,
    mode: PaceMode,
    interval: Option<Duration>,
    state: Mutex<State>,
    slots: Semaphore,
    /// Notified when a write gives its slot back and goes on.
    released: Notify,
}

#[derive(Debug)]
struct State {
    limit: f64,
    /// Writes under way whose slot was given to others.
    without_slot: usize,
    /// Slots that are taken or free; drawn towards the limit.
    slots: usize,
    in_flight: usize,
    usual: Option<f64>,
    slowdown: Slowdown,
    /// While it is found out how long a write takes alone.
    probe: Option<BaselineProbe>,
    /// Writes since the limit was cut for their slowdown.
    seen: usize,
    closed_until: Instant,
    next_start: Instant,
    /// When the server last refused so many writes that the limit was halved.
    halved: Option<Instant>,
}

/// The measurement of how long a write takes alone.
#[derive(Clone, Copy, Debug)]
struct BaselineProbe {
    /// Writes that are still to come.
    left: usize,
    /// When it began: a write that began before was not alone.
    since: Instant,
}

/// The right to have one write under way; given back when dropped.
#[derive(Debug)]
pub struct Permit<'a> {
    pace: &'a Pace,
    began: Instant,
    without_slot: bool,
}

/// How the server bore a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// It answered, and did the write.
    None,
    /// It answered something else, or not for its own sake: that says nothing of how long writes take.
    Unknown,
    /// 429, 503 or no answer; with the wait that it asked for.
    Overload(Option<Duration>),
}

impl Pace {
    /// At most `max` writes at once, of at most `per_second` that begin in a second.
    pub fn new(max: usize, per_second: Option<u32>, mode: PaceMode) -> Self {
        let now = Instant::now();
        let max = max.clamp(1, Semaphore::MAX_PERMITS) as f64;
        let limit = max.min(INITIAL_LIMIT);
        let probe = (mode == PaceMode::Gentle).then_some(BaselineProbe { left: PROBE_WRITES, since: now });
        let slots = probe.map_or(limit as usize, |_| 1);
        Self {
            max,
            mode,
            interval: per_second.filter(|rate| *rate > 0).map(|rate| Duration::from_secs(1) / rate),
            state: Mutex::new(State {
                limit,
                without_slot: 0,
                slots,
                in_flight: 0,
                usual: None,
                slowdown: Slowdown::default(),
                probe,
                seen: 0,
                closed_until: now,
                next_start: now,
                halved: None,
            }),
            slots: Semaphore::new(slots),
            released: Notify::new(),
        }
    }

    /// Waits for the right to begin a write.
    pub async fn admit(&self) -> Permit<'_> {
        let slot = self.slots.acquire().await.expect("the semaphore is never closed");
        slot.forget();
        self.lock().in_flight += 1;
        let mut permit = Permit { pace: self, began: Instant::now(), without_slot: false };
        self.wait_until_open().await;
        let start = self.next_start();
        // A timer takes a millisecond at least, even where its time has come.
        if start > Instant::now() {
            tokio::time::sleep_until(start).await;
            self.wait_until_open().await;
        }
        permit.began = Instant::now();
        permit
    }

    /// How many writes have given their slot back and are still under way: more than they may have become no
    /// object is held up by.
    pub fn without_slot(&self) -> usize {
        self.lock().without_slot
    }

    /// Waits until one more write has given its slot back, for one waiter; may be dropped at any time.
    pub async fn released(&self) {
        self.released.notified().await;
    }

    /// How many writes are under way, or about to be.
    pub fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    /// Waits for as long as the server has asked for, which may become longer meanwhile.
    async fn wait_until_open(&self) {
        loop {
            let until = self.lock().closed_until;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn next_start(&self) -> Instant {
        let mut state = self.lock();
        let start = state.next_start.max(Instant::now());
        if let Some(interval) = self.interval {
            state.next_start = start + interval;
        }
        start
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    /// How many slots there should be.
    fn wanted(&self) -> usize {
        match self.probe {
            Some(_) => 1,
            None => (self.limit as usize).max(1),
        }
    }

    /// Lets the limit grow unless the write took much longer than usual.
    fn update_fast(&mut self, seconds: f64, max: f64) {
        let usual = *self.usual.get_or_insert(seconds);
        self.usual = Some(usual + (seconds.min(usual * SLOW) - usual) * 0.05);
        if seconds < usual * SLOW {
            self.grow(max);
        }
    }

    /// Lets the limit grow while writes are as fast as alone, and cuts it when they are slow.
    fn update_gentle(&mut self, max: f64) {
        if self.probe.is_some() {
            return;
        }
        let slowdown = self.slowdown.mean();
        self.seen += 1;
        if slowdown < GROW_BELOW {
            self.grow(max);
        } else if slowdown > CUT_ABOVE && self.seen >= SAMPLES_BETWEEN_CUTS {
            self.cut(CUT_FACTOR, MIN_LIMIT);
            self.seen = 0;
        }
    }

    fn grow(&mut self, max: f64) {
        let more = if self.limit < 1.0 { self.limit * GROWTH } else { 1.0 / self.limit };
        self.limit = (self.limit + more).min(max);
    }

    /// Halves the limit, unless the same pressure has done so already.
    fn halve(&mut self, now: Instant) {
        if self.halved.is_none_or(|halved| now - halved >= ONE_CUT) {
            self.cut(OVERLOAD_CUT_FACTOR, 1.0);
            self.halved = Some(now);
        }
    }

    /// Leaves a share of the limit, and no less than `least` of what was more.
    fn cut(&mut self, share: f64, least: f64) {
        self.limit = (self.limit * share).max(least.min(self.limit));
    }

    /// Lets nobody begin for some time after a write, where less than one at a time is right.
    fn delay_next(&mut self, took: Duration, now: Instant) {
        let rest = took.mul_f64((1.0 / self.limit - 1.0).max(0.0));
        self.next_start = self.next_start.max(now + rest);
    }

    /// Takes in how long a write has taken. Every now and then a few are let through one at a time, to see
    /// how long one takes alone.
    fn measure(&mut self, began: Instant, now: Instant) -> f64 {
        match &mut self.probe {
            None if self.slowdown.is_stale(now) && self.limit >= 2.0 => {
                self.probe = Some(BaselineProbe { left: PROBE_WRITES, since: now });
            }
            Some(probe) if began >= probe.since => {
                probe.left -= 1;
                self.probe = self.probe.filter(|probe| probe.left > 0);
            }
            None | Some(_) => {}
        }
        self.slowdown.note((now - began).as_secs_f64(), now)
    }

    /// Counts the slots by which the limit has grown; returns how many.
    fn widen(&mut self) -> usize {
        let grown = self.wanted().saturating_sub(self.slots);
        self.slots += grown;
        grown
    }

    /// Takes back free slots that are too many; those that are taken go as they are given back.
    fn shrink(&mut self, slots: &Semaphore) {
        let surplus = self.slots.saturating_sub(self.wanted());
        self.slots -= slots.forget_permits(surplus);
    }
}

impl Permit<'_> {
    /// The write begins only now: it has waited for another pace too.
    pub fn begin(&mut self) {
        self.began = Instant::now();
    }

    /// The write takes long: to find out how long one takes alone, the others wait no longer.
    pub fn takes_long(&self) {
        let mut state = self.pace.lock();
        state.probe = None;
        let grown = state.widen();
        drop(state);
        self.pace.slots.add_permits(grown);
    }

    /// Lets others write instead of this write, which takes long and goes on: what it waits for may be a
    /// webhook that never answers, and that must not hold up what has nothing to do with it.
    ///
    /// Nothing changes where as many writes have no slot already as may be under way at most: then it is the
    /// server that is slow.
    pub fn release_slot(&mut self) {
        let mut state = self.pace.lock();
        if !self.without_slot && (state.without_slot as f64) < self.pace.max {
            state.without_slot += 1;
            drop(state);
            self.without_slot = true;
            self.return_slot();
            self.pace.released.notify_one();
        }
    }

    /// Frees the slot, and those by which the limit has grown.
    fn return_slot(&self) {
        let mut state = self.pace.lock();
        if state.slots > state.wanted() {
            state.slots -= 1;
            return;
        }
        let grown = state.widen();
        drop(state);
        self.pace.slots.add_permits(1 + grown);
    }

    /// Says how the server bore the write, and by how many times longer it took than alone, where another
    /// pace knows that; returns the same for another pace.
    pub fn finish(self, pressure: Pressure, known: Option<f64>) -> Option<f64> {
        let now = Instant::now();
        let (began, pace) = (self.began, self.pace);
        let mut state = pace.lock();
        match (pressure, pace.mode) {
            // How long a webhook takes shows nothing about the server.
            (Pressure::None | Pressure::Unknown, _) if self.without_slot => None,
            (Pressure::None | Pressure::Unknown, PaceMode::Fast) => {
                state.update_fast((now - began).as_secs_f64(), pace.max);
                None
            }
            (Pressure::None, PaceMode::Gentle) => {
                let slowdown = match known {
                    Some(slowdown) => {
                        state.probe = None;
                        state.slowdown.weigh(slowdown);
                        slowdown
                    }
                    None => state.measure(began, now),
                };
                state.update_gentle(pace.max);
                state.delay_next(now - began, now);
                state.shrink(&pace.slots);
                Some(slowdown)
            }
            (Pressure::Unknown, PaceMode::Gentle) => None,
            (Pressure::Overload(asked), _) => {
                state.halve(now);
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
        let mut state = self.pace.lock();
        state.in_flight -= 1;
        if self.without_slot {
            state.without_slot -= 1;
            return;
        }
        drop(state);
        self.return_slot();
    }
}
