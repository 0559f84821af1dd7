//! How many writes are under way at once, and how many begin per second: as many as the server bears.
//! It must not know what is written.

mod strain;
#[cfg(test)]
mod tests;

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use strain::Strain;

/// How many writes are under way at once at most, where nobody says otherwise.
pub const MAX_IN_FLIGHT: usize = 16;

/// After the limit was halved, further refusals count as the same one for this long: they answer requests sent before it.
const ONE_CUT: Duration = Duration::from_millis(500);
/// A write that takes this many times the usual is a sign to send no more at once.
const SLOW: f64 = 4.0;
/// Where a new pace begins, if its maximum is higher.
const CAREFUL: f64 = 4.0;
/// A gentle pace sends more at once while writes take less than this many times as long as alone…
const CALM: f64 = 1.3;
/// …and fewer when they take more than this many times as long.
const STRAINED: f64 = 1.6;
/// What is left of the limit then, and when the server refuses writes.
const LESS: f64 = 0.75;
const HALF: f64 = 0.5;
/// The least limit of a gentle pace: below 1 it is the share of the time in which there is a write, one at a time, and it rests
/// between them.
const LEAST: f64 = 0.25;
/// How much of that share is added to it where there may be more.
const MORE: f64 = 0.125;
/// How many writes, one at a time, show how long one takes alone.
const ALONE: usize = 4;
/// How many writes it takes until the strain shows what a cut has done.
const SHOWN: usize = 10;

/// How much of the server a pace takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Haste {
    /// So little that other clients hardly notice it: fewer writes at once as soon as they take longer than alone, and rests
    /// between them where one at a time is too much.
    #[default]
    Gentle,
    /// As much as there is: fewer writes at once when the server refuses some.
    Fast,
}

/// The limits that all writers of a process share. Whoever waits longest is served first.
#[derive(Debug)]
pub struct Pace {
    max: f64,
    haste: Haste,
    interval: Option<Duration>,
    state: Mutex<State>,
    places: Semaphore,
}

#[derive(Debug)]
struct State {
    limit: f64,
    /// Writes that have given their place back and are still under way.
    aside: usize,
    /// Places that are taken or free; drawn towards the limit.
    places: usize,
    in_flight: usize,
    usual: Option<f64>,
    strain: Strain,
    /// While it is found out how long a write takes alone.
    alone: Option<Alone>,
    /// Writes since the limit was cut for their strain.
    seen: usize,
    closed_until: Instant,
    next_start: Instant,
    /// When the server last refused so many writes that the limit was halved.
    halved: Option<Instant>,
}

/// A look at how long a write takes alone.
#[derive(Clone, Copy, Debug)]
struct Alone {
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
    aside: bool,
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
    pub fn new(max: usize, per_second: Option<u32>, haste: Haste) -> Self {
        let now = Instant::now();
        let max = max.clamp(1, Semaphore::MAX_PERMITS) as f64;
        let limit = max.min(CAREFUL);
        let alone = (haste == Haste::Gentle).then_some(Alone { left: ALONE, since: now });
        let places = alone.map_or(limit as usize, |_| 1);
        Self {
            max,
            haste,
            interval: per_second.filter(|rate| *rate > 0).map(|rate| Duration::from_secs(1) / rate),
            state: Mutex::new(State {
                limit,
                aside: 0,
                places,
                in_flight: 0,
                usual: None,
                strain: Strain::default(),
                alone,
                seen: 0,
                closed_until: now,
                next_start: now,
                halved: None,
            }),
            places: Semaphore::new(places),
        }
    }

    /// Waits for the right to begin a write.
    pub async fn admit(&self) -> Permit<'_> {
        let place = self.places.acquire().await.expect("the semaphore is never closed");
        place.forget();
        self.lock().in_flight += 1;
        let mut permit = Permit { pace: self, began: Instant::now(), aside: false };
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
    /// How many places there should be.
    fn wanted(&self) -> usize {
        match self.alone {
            Some(_) => 1,
            None => (self.limit as usize).max(1),
        }
    }

    /// Lets the limit grow unless the write took much longer than usual.
    fn hurry(&mut self, seconds: f64, max: f64) {
        let usual = *self.usual.get_or_insert(seconds);
        self.usual = Some(usual + (seconds.min(usual * SLOW) - usual) * 0.05);
        if seconds < usual * SLOW {
            self.grow(max);
        }
    }

    /// Lets the limit follow the strain.
    fn adapt(&mut self, max: f64) {
        if self.alone.is_some() {
            return;
        }
        let strain = self.strain.mean();
        self.seen += 1;
        if strain < CALM {
            self.grow(max);
        } else if strain > STRAINED && self.seen >= SHOWN {
            self.cut(LESS, LEAST);
            self.seen = 0;
        }
    }

    fn grow(&mut self, max: f64) {
        let more = if self.limit < 1.0 { self.limit * MORE } else { 1.0 / self.limit };
        self.limit = (self.limit + more).min(max);
    }

    /// Halves the limit, unless the same pressure has done so already.
    fn halve(&mut self, now: Instant) {
        if self.halved.is_none_or(|halved| now - halved >= ONE_CUT) {
            self.cut(HALF, 1.0);
            self.halved = Some(now);
        }
    }

    /// Leaves a share of the limit, and no less than `least` of what was more.
    fn cut(&mut self, share: f64, least: f64) {
        self.limit = (self.limit * share).max(least.min(self.limit));
    }

    /// Lets nobody begin for some time after a write, where less than one at a time is right.
    fn rest(&mut self, took: Duration, now: Instant) {
        let rest = took.mul_f64((1.0 / self.limit - 1.0).max(0.0));
        self.next_start = self.next_start.max(now + rest);
    }

    /// Takes in how long a write has taken. Every now and then a few are let through one at a time, to see how long one takes
    /// alone.
    fn measure(&mut self, began: Instant, now: Instant) -> f64 {
        match &mut self.alone {
            None if self.strain.is_stale(now) && self.limit >= 2.0 => {
                self.alone = Some(Alone { left: ALONE, since: now });
            }
            Some(alone) if began >= alone.since => {
                alone.left -= 1;
                self.alone = self.alone.filter(|alone| alone.left > 0);
            }
            None | Some(_) => {}
        }
        self.strain.note((now - began).as_secs_f64(), now)
    }

    /// Counts the places by which the limit has grown; returns how many.
    fn widen(&mut self) -> usize {
        let grown = self.wanted().saturating_sub(self.places);
        self.places += grown;
        grown
    }

    /// Takes back free places that are too many; those that are taken go as they are given back.
    fn shrink(&mut self, places: &Semaphore) {
        let surplus = self.places.saturating_sub(self.wanted());
        self.places -= places.forget_permits(surplus);
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
        state.alone = None;
        let grown = state.widen();
        drop(state);
        self.pace.places.add_permits(grown);
    }

    /// Lets others write in the place of this write, which takes long and goes on: what it waits for may be a webhook that
    /// never answers, and that must not hold up what has nothing to do with it.
    ///
    /// Nothing changes where as many are aside already as may be under way at most: then it is the server that is slow.
    pub fn step_aside(&mut self) {
        let mut state = self.pace.lock();
        if !self.aside && (state.aside as f64) < self.pace.max {
            state.aside += 1;
            drop(state);
            self.aside = true;
            self.give_back();
        }
    }

    /// Frees the place, and those by which the limit has grown.
    fn give_back(&self) {
        let mut state = self.pace.lock();
        if state.places > state.wanted() {
            state.places -= 1;
            return;
        }
        let grown = state.widen();
        drop(state);
        self.pace.places.add_permits(1 + grown);
    }

    /// Says how the server bore the write, and by how many times longer it took than alone, where another pace knows that;
    /// returns the same for another pace.
    pub fn finish(self, pressure: Pressure, known: Option<f64>) -> Option<f64> {
        let now = Instant::now();
        let (began, pace) = (self.began, self.pace);
        let mut state = pace.lock();
        match (pressure, pace.haste) {
            // How long a webhook takes shows nothing about the server.
            (Pressure::None | Pressure::Unknown, _) if self.aside => None,
            (Pressure::None | Pressure::Unknown, Haste::Fast) => {
                state.hurry((now - began).as_secs_f64(), pace.max);
                None
            }
            (Pressure::None, Haste::Gentle) => {
                let strain = match known {
                    Some(strain) => {
                        state.alone = None;
                        state.strain.weigh(strain);
                        strain
                    }
                    None => state.measure(began, now),
                };
                state.adapt(pace.max);
                state.rest(now - began, now);
                state.shrink(&pace.places);
                Some(strain)
            }
            (Pressure::Unknown, Haste::Gentle) => None,
            (Pressure::Overload(asked), _) => {
                state.halve(now);
                state.shrink(&pace.places);
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
        if self.aside {
            state.aside -= 1;
            return;
        }
        drop(state);
        self.give_back();
    }
}
