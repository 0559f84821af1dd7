//! How many writes are under way at once, and how many begin per second: as many as the server bears.
//! It must not know what is written.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// After a cut, further signs of pressure count as the same one for this long: they answer requests sent before it.
const ONE_CUT: Duration = Duration::from_millis(500);
/// A write that takes this many times the usual is a sign to send no more at once.
const SLOW: f64 = 4.0;

/// The limits that all writers of a process share.
#[derive(Debug)]
pub struct Pace {
    max: f64,
    interval: Option<Duration>,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    limit: f64,
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
        Self {
            max: max.max(1) as f64,
            interval: per_second.filter(|rate| *rate > 0).map(|rate| Duration::from_secs(1) / rate),
            state: Mutex::new(State {
                limit: (max as f64).clamp(1.0, 4.0),
                in_flight: 0,
                usual: None,
                closed_until: now,
                next_start: now,
                last_cut: None,
            }),
            freed: Notify::new(),
        }
    }

    /// Waits for the right to begin a write.
    pub async fn admit(&self) -> Permit<'_> {
        loop {
            let freed = self.freed.notified();
            match self.try_admit() {
                Ok(began) => {
                    let permit = Permit { pace: self, began };
                    tokio::time::sleep_until(began).await;
                    return permit;
                }
                Err(Some(reopened)) => tokio::time::sleep_until(reopened).await,
                Err(None) => freed.await,
            }
        }
    }

    /// How many writes are under way.
    pub fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    /// Takes a place: when the write may begin; or until when there is none, if that is known.
    fn try_admit(&self) -> Result<Instant, Option<Instant>> {
        let mut state = self.lock();
        let now = Instant::now();
        if state.closed_until > now {
            return Err(Some(state.closed_until));
        }
        if state.in_flight as f64 + 1.0 > state.limit.max(1.0) {
            return Err(None);
        }
        state.in_flight += 1;
        let start = state.next_start.max(now);
        if let Some(interval) = self.interval {
            state.next_start = start + interval;
        }
        Ok(start)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Says how the server bore the write.
    pub fn finish(self, pressure: Pressure) {
        let now = Instant::now();
        let seconds = (now - self.began).as_secs_f64();
        let mut state = self.pace.lock();
        match pressure {
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
        drop(state);
        self.pace.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    async fn answers_in_time_raise_the_limit_up_to_the_maximum() {
        let pace = Pace::new(6, None);
        for _ in 0..100 {
            let permit = pace.admit().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            permit.finish(Pressure::None);
        }
        assert_eq!(pace.lock().limit, 6.0);
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
    async fn a_permit_that_is_dropped_makes_room() {
        let pace = Pace::new(1, None);
        drop(pace.admit().await);
        drop(pace.admit().await);
        assert_eq!(pace.in_flight(), 0);
    }
}
