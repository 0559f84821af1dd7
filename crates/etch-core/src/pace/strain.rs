//! How much a pace strains the server, by how long its writes take: what other clients of the server notice
//! of it too. `limits` decides how many writes there may be.
//!
//! A single time means little: the server collects garbage, and compacts. So interquartile means are
//! compared: those of the middle half of the recent times, sorted.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How many recent times count.
const RECENT: usize = 16;
/// Fewer show nothing yet.
const FEW: usize = 8;
/// For how long a mean counts as usual. What a write costs changes with the objects and the server.
const WINDOW: Duration = Duration::from_secs(60);
/// How far apart the means are that show what is usual.
const APART: Duration = Duration::from_millis(250);
/// What a signal that was found elsewhere weighs in the mean.
const SHARE: f64 = 0.1;

/// Whether another write was in flight at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// None of ours was under way at the same time.
    Alone,
    /// Another was.
    Beside,
}

/// What the times of writes show; 1 is no strain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strain {
    /// How many times as long a write takes beside another one: above 1, they wait for each other; none while
    /// that is not known.
    pub queueing: Option<f64>,
    /// How long a write takes alone, as a multiple of what is usual: above 1, the server does more for
    /// others.
    pub load: f64,
}

/// The times of writes of one kind.
#[derive(Debug, Default)]
pub(super) struct Times {
    alone: Recent,
    beside: Recent,
    /// The means of a window of time, in seconds.
    means: VecDeque<(Instant, f64)>,
}

impl Times {
    /// Records how many seconds a write has taken.
    pub(super) fn note(&mut self, seconds: f64, company: Company, now: Instant) {
        match company {
            Company::Alone => self.alone.push(seconds),
            Company::Beside => self.beside.push(seconds),
        }
        if self.means.back().is_some_and(|(last, _)| now - *last < APART) {
            return;
        }
        if let (Company::Alone, Some(middle)) = (company, self.alone.middle()) {
            self.means.push_back((now, middle));
        }
        while self.means.front().is_some_and(|(first, _)| now - *first > WINDOW) {
            self.means.pop_front();
        }
    }

    /// Forgets how long writes take beside others: so many are no longer under way.
    pub(super) fn forget_beside(&mut self) {
        self.beside.0.clear();
    }

    /// How long a write takes alone; `None` while that is not known.
    pub(super) fn alone(&self) -> Option<Duration> {
        self.alone.middle().map(Duration::from_secs_f64)
    }

    /// What they show.
    pub(super) fn strain(&self) -> Strain {
        // A clock may be too coarse for a write.
        let ratio = |one: f64, by: f64| if by > 0.0 { one / by } else { 1.0 };
        let alone = self.alone.middle();
        Strain {
            queueing: self.beside.middle().zip(alone).map(|(beside, alone)| ratio(beside, alone)),
            load: alone.zip(self.usual()).map_or(1.0, |(alone, usual)| ratio(alone, usual)),
        }
    }

    /// How long a write alone takes on a calm server: one of eight means is less. The minimum would be an
    /// outlier that makes all others look slow.
    fn usual(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.means.iter().map(|(_, mean)| *mean).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 8).copied()
    }
}

/// The last times, in seconds.
#[derive(Debug, Default)]
struct Recent(VecDeque<f64>);

impl Recent {
    fn push(&mut self, seconds: f64) {
        if self.0.len() == RECENT {
            self.0.pop_front();
        }
        self.0.push_back(seconds);
    }

    /// The mean of the middle half; none of too few.
    fn middle(&self) -> Option<f64> {
        let count = self.0.len();
        if count < FEW {
            return None;
        }
        let mut sorted: Vec<f64> = self.0.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let middle = &sorted[count / 4..count - count / 4];
        Some(middle.iter().sum::<f64>() / middle.len() as f64)
    }
}

impl Strain {
    /// The mean with one that was found elsewhere.
    pub(super) fn weigh(self, other: Self) -> Self {
        let mean = |known: f64, found: f64| known + (found - known) * SHARE;
        Self {
            queueing: match (self.queueing, other.queueing) {
                (Some(known), Some(found)) => Some(mean(known, found)),
                (known, found) => known.or(found),
            },
            load: mean(self.load, other.load),
        }
    }
}
