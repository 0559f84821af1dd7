//! How many writes are under way at once, and how many begin per second: as many as the server bears.
//! It must not know what is written.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// After a cut, further signs of pressure count as the same one for this long: they answer requests sent before it.
const ONE_CUT: Duration = Duration::from_millis(500);
/// A write that takes this many times the usual is a sign to send no more at once.
const SLOW: f64 = 4.0;
/// Where a new pace begins, if its maximum is higher.
const CAREFUL: f64 = 4.0;

/// The limits that all writers of a process share. Whoever waits longest is served first.
#[derive(Debug)]
pub struct Pace {
    max: f64,
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
    closed_until: Instant,
    next_start: Instant,
    last_cut: Option<Instant>,
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
    /// It answered.
    None,
    /// 429, 503 or no answer; with the wait that it asked for.
    Overload(Option<Duration>),
}

impl Pace {
    /// At most `max` writes at once, of at most `per_second` that begin in a second.
    pub fn new(max: usize, per_second: Option<u32>) -> Self {
        let now = Instant::now();
        let max = max.clamp(1, Semaphore::MAX_PERMITS) as f64;
        let limit = max.min(CAREFUL);
        Self {
            max,
            interval: per_second.filter(|rate| *rate > 0).map(|rate| Duration::from_secs(1) / rate),
            state: Mutex::new(State {
                limit,
                aside: 0,
                places: limit as usize,
                in_flight: 0,
                usual: None,
                closed_until: now,
                next_start: now,
                last_cut: None,
            }),
            places: Semaphore::new(limit as usize),
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
        tokio::time::sleep_until(start).await;
        self.wait_until_open().await;
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
        (self.limit as usize).max(1)
    }
}

impl Permit<'_> {
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
        let grown = state.wanted() - state.places;
        state.places += grown;
        drop(state);
        self.pace.places.add_permits(1 + grown);
    }

    /// Says how the server bore the write.
    pub fn finish(self, pressure: Pressure) {
        let now = Instant::now();
        let seconds = (now - self.began).as_secs_f64();
        let mut state = self.pace.lock();
        match pressure {
            // How long a webhook takes shows nothing about the server.
            Pressure::None if self.aside => {}
            Pressure::None => {
                let usual = *state.usual.get_or_insert(seconds);
                state.usual = Some(usual + (seconds.min(usual * SLOW) - usual) * 0.05);
                if seconds < usual * SLOW {
                    state.limit = (state.limit + 1.0 / state.limit).min(self.pace.max);
                }
            }
            Pressure::Overload(asked) => {
                if state.last_cut.is_none_or(|cut| now - cut >= ONE_CUT) {
                    state.limit = (state.limit / 2.0).max(1.0);
                    state.last_cut = Some(now);
                    let surplus = state.places.saturating_sub(state.wanted());
                    state.places -= self.pace.places.forget_permits(surplus);
                }
                if let Some(asked) = asked {
                    state.closed_until = state.closed_until.max(now + asked);
                }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const WRITE: Duration = Duration::from_millis(5);

    /// Performs writes, all at once as far as the pace lets them; how many were under way at most.
    async fn most_at_once(pace: &Arc<Pace>, writes: usize) -> usize {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..writes {
            let (pace, running, most) = (pace.clone(), running.clone(), most.clone());
            tasks.spawn(async move {
                let permit = pace.admit().await;
                most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::time::sleep(WRITE).await;
                running.fetch_sub(1, Ordering::Relaxed);
                permit.finish(Pressure::None);
            });
        }
        tasks.join_all().await;
        most.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn who_steps_aside_lets_another_write_and_no_more_do_than_the_maximum() {
        let pace = Pace::new(2, None);
        let is_full = async || tokio::time::timeout(WRITE, pace.admit()).await.is_err();
        let mut aside = Vec::new();
        for _ in 0..2 {
            let mut permit = pace.admit().await;
            permit.step_aside();
            permit.step_aside();
            aside.push(permit);
        }
        let (mut one, other) = (pace.admit().await, pace.admit().await);
        assert!(is_full().await);
        one.step_aside();
        assert!(is_full().await, "as many are aside as may be");
        assert_eq!(pace.in_flight(), 4);
        drop(aside.pop());
        one.step_aside();
        assert!(!is_full().await);
        drop((one, other, aside));
        let all = (pace.admit().await, pace.admit().await);
        assert!(is_full().await, "no place was given back twice");
        drop(all);
    }

    #[tokio::test(start_paused = true)]
    async fn overload_halves_the_limit_once_and_closes_for_as_long_as_asked() {
        let pace = Pace::new(8, None);
        let (first, second) = (pace.admit().await, pace.admit().await);
        let before = Instant::now();
        first.finish(Pressure::Overload(Some(Duration::from_secs(3))));
        second.finish(Pressure::Overload(None));
        assert_eq!(pace.lock().limit, 2.0);
        drop(pace.admit().await);
        assert!(before.elapsed() >= Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_in_time_raise_the_limit_up_to_the_maximum_and_no_further() {
        let pace = Arc::new(Pace::new(6, None));
        assert_eq!(most_at_once(&pace, 4).await, 4, "it begins with care");
        most_at_once(&pace, 200).await;
        assert_eq!(most_at_once(&pace, 200).await, 6);
        assert_eq!(pace.in_flight(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_counts_for_places_that_are_free_as_for_those_that_are_taken() {
        let pace = Arc::new(Pace::new(8, None));
        most_at_once(&pace, 300).await;
        let held = [pace.admit().await, pace.admit().await, pace.admit().await];
        pace.admit().await.finish(Pressure::Overload(None));
        drop(held);
        assert_eq!(most_at_once(&pace, 4).await, 4, "half of eight");
        tokio::time::sleep(ONE_CUT).await;
        for _ in 0..5 {
            pace.admit().await.finish(Pressure::Overload(None));
            tokio::time::sleep(ONE_CUT).await;
        }
        assert_eq!(pace.lock().limit, 1.0, "one write at a time goes on");
        drop(pace.admit().await);
    }

    #[tokio::test(start_paused = true)]
    async fn writes_begin_no_faster_than_the_rate() {
        let pace = Pace::new(8, Some(10));
        let before = Instant::now();
        for _ in 0..21 {
            pace.admit().await.finish(Pressure::None);
        }
        assert_eq!(before.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_waits_for_its_turn_waits_on_when_the_server_asks_for_it() {
        let pace = Pace::new(8, Some(1));
        let first = pace.admit().await;
        let second = pace.admit();
        let ask = async {
            tokio::time::sleep(WRITE).await;
            first.finish(Pressure::Overload(Some(Duration::from_secs(60))));
        };
        let before = Instant::now();
        let (_second, ()) = tokio::join!(second, ask);
        assert!(before.elapsed() >= Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_that_is_dropped_makes_room_and_so_does_one_that_never_came() {
        let pace = Pace::new(1, Some(1));
        drop(pace.admit().await);
        let given_up = tokio::time::timeout(WRITE, pace.admit()).await;
        assert!(given_up.is_err(), "the rate is one a second");
        assert_eq!(pace.in_flight(), 0);
        drop(pace.admit().await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_longest_is_served_first_however_many_somebody_else_has() {
        let pace = Arc::new(Pace::new(1, None));
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        let first = pace.admit().await;
        for name in ["big", "big", "big", "small", "big", "big"] {
            let (pace, order) = (pace.clone(), order.clone());
            tasks.spawn(async move {
                let permit = pace.admit().await;
                order.lock().expect("no test panics here").push(name);
                tokio::time::sleep(WRITE).await;
                permit.finish(Pressure::None);
            });
            tokio::task::yield_now().await;
        }
        drop(first);
        tasks.join_all().await;
        assert_eq!(*order.lock().expect("no test panics here"), ["big", "big", "big", "small", "big", "big"]);
    }
}
