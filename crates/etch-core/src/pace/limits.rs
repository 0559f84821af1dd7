//! How many writes may be under way on average, and how they follow each other, by how the server coped with
//! those before.
//!
//! A gentle pace takes a share of the time for one write at a time and spaces their starts out evenly. It
//! goes beyond that only where writes do not wait for each other: every now and then two begin together, and
//! while each takes as long as alone, the server has processors to spare.

use std::time::{Duration, Instant};

use super::strain::{Company, Strain, Times};

/// How much of the server's capacity a pace uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaceMode {
    /// Leaves capacity for other clients: one write at a time, evenly spaced with pauses, and more only while
    /// writes do not slow each other down.
    #[default]
    Gentle,
    /// Uses the full capacity: fewer concurrent writes when the server refuses some.
    Fast,
}

/// After the limit was halved, further refusals count as the same one for this long: they answer requests
/// sent before it.
pub const ONE_CUT: Duration = Duration::from_millis(500);
/// A write that takes this many times the usual is a sign to send no more at once.
const SLOW: f64 = 4.0;
/// Where a fast pace begins, if its maximum is higher, and what one CRD may have under way at least.
const INITIAL_LIMIT: f64 = 4.0;
/// The share of the time in which a gentle pace has a write under way, one at a time, on a server that shows
/// no strain: what another client notices of it is in docs/benchmarks.md.
pub const SHARE: f64 = 0.65;
/// The least share, on a server that is slower than usual.
const LEAST_SHARE: f64 = 1.0 / 6.0;
/// Writes hardly wait for each other while one takes less than this many times as long beside another one:
/// the server has room for more…
const ROOMY: f64 = 1.1;
/// …and they do above this.
const CROWDED: f64 = 1.3;
/// The server does no more for others than before while a write takes less than this many times as long
/// alone…
const CALM: f64 = 1.5;
/// …and much more above this.
const BUSY: f64 = 2.5;
/// What is left of the limit then, and when the server refuses writes.
const CUT_FACTOR: f64 = 0.75;
const OVERLOAD_CUT_FACTOR: f64 = 0.5;
/// What a write adds to a share that was cut, as a part of it.
const RECOVERY: f64 = 0.05;
/// By how many times the limit grows beyond that at once.
const STEP: f64 = 1.25;
/// How many writes, one at a time, show how long one takes alone…
pub const PROBE_WRITES: usize = 8;
/// …and how often that is found out, where there are always several.
const PROBE_EVERY: Duration = Duration::from_secs(10);
/// One in so many writes is begun together with the next one, to see whether they wait for each other…
pub const PAIR_EVERY: usize = 32;
/// …and one in so many while that is not known.
const FIRST_PAIRS_EVERY: usize = 4;
/// How many writes beside others it takes until their times show what has changed the limit.
const SAMPLES_BETWEEN_CHANGES: usize = 16;

/// The limit of one pace.
#[derive(Debug)]
pub struct Limits {
    mode: PaceMode,
    max: f64,
    /// How many writes are under way on average; less than one is a share of the time.
    limit: f64,
    /// Whether another pace spaces the writes out.
    is_beneath: bool,
    /// How long writes take.
    times: Times,
    /// What they show; of several CRDs, the mean of what each one's do.
    strain: Option<Strain>,
    /// How long a write usually takes, in seconds; only a fast pace knows it.
    usual: Option<f64>,
    /// Writes that are still to come one at a time, to find out how long one takes alone.
    probe: usize,
    probed: Option<Instant>,
    /// Starts since two began together.
    since_pair: usize,
    /// Whether the next start is the second of two.
    is_pair: bool,
    /// Writes, and those beside others, since the limit has changed.
    since_change: [usize; 2],
    /// When the server last refused so many writes that the limit was halved.
    halved: Option<Instant>,
}

impl Limits {
    /// The limit with which a pace begins, of at most `max` writes at once, of which there is at least one.
    pub fn new(max: usize, mode: PaceMode) -> Self {
        let max = max.max(1) as f64;
        let (limit, probe) = match mode {
            PaceMode::Gentle => (SHARE, PROBE_WRITES),
            PaceMode::Fast => (max.min(INITIAL_LIMIT), 0),
        };
        Self {
            mode,
            max,
            limit,
            is_beneath: false,
            times: Times::default(),
            strain: None,
            usual: None,
            probe,
            probed: None,
            since_pair: 0,
            is_pair: false,
            since_change: [0; 2],
            halved: None,
        }
    }

    /// The limit of one CRD's writes, which another pace spaces out.
    pub fn beneath_another(self) -> Self {
        Self { is_beneath: true, ..self }
    }

    /// The most writes at once.
    pub fn max(&self) -> usize {
        self.max as usize
    }

    /// How many slots there should be.
    pub fn slots(&self) -> usize {
        let slots = match self.mode {
            PaceMode::Fast => self.limit as usize,
            // The other pace limits how many are under way: these are so many that may remain unanswered.
            PaceMode::Gentle if self.is_beneath => self.limit.max(INITIAL_LIMIT) as usize,
            PaceMode::Gentle if self.probe > 0 => 1,
            PaceMode::Gentle if self.is_pair => (self.limit.ceil() as usize).max(2),
            PaceMode::Gentle => self.limit.ceil() as usize,
        };
        slots.clamp(1, self.max())
    }

    /// How long after a start the next one may be; asked once for each.
    pub fn spacing(&mut self) -> Duration {
        let Some(alone) = self.times.alone().filter(|_| self.mode == PaceMode::Gentle && !self.is_beneath)
        else {
            return Duration::ZERO;
        };
        let spacing = alone.div_f64(self.limit);
        if std::mem::take(&mut self.is_pair) {
            return spacing * 2;
        }
        self.since_pair += 1;
        if self.is_pair_due() {
            (self.is_pair, self.since_pair) = (true, 0);
            return Duration::ZERO;
        }
        spacing
    }

    /// Whether two writes are to begin together: where there are always several, that happens by itself.
    fn is_pair_due(&self) -> bool {
        let is_known = self.strain.is_some_and(|strain| strain.queueing.is_some());
        let every = if is_known { PAIR_EVERY } else { FIRST_PAIRS_EVERY };
        self.probe == 0 && self.limit <= 1.0 && self.since_pair >= every
    }

    /// Ends the measurement of how long a write takes alone.
    pub fn end_probe(&mut self) {
        self.probe = 0;
    }

    /// Handles a write that the server did; returns the strain that is known now, by `known` where another
    /// pace has found it.
    pub fn written(
        &mut self,
        took: Duration,
        company: Company,
        known: Option<Strain>,
        now: Instant,
    ) -> Option<Strain> {
        match self.mode {
            PaceMode::Fast => {
                self.answered(took);
                None
            }
            PaceMode::Gentle => {
                self.times.note(took.as_secs_f64(), company, now);
                let [all, beside] = &mut self.since_change;
                *all += 1;
                *beside += usize::from(company == Company::Beside);
                self.probe_at_times(company, now);
                let strain = match known {
                    Some(known) => self.strain.map_or(known, |strain| strain.weigh(known)),
                    None => self.times.strain(),
                };
                self.strain = Some(strain);
                self.adapt(strain);
                Some(strain)
            }
        }
    }

    /// Handles an answer that shows how long the server takes, if not for a write: a fast pace grows unless
    /// that was much longer than usual.
    pub fn answered(&mut self, took: Duration) {
        if self.mode == PaceMode::Gentle {
            return;
        }
        let seconds = took.as_secs_f64();
        let usual = *self.usual.get_or_insert(seconds);
        self.usual = Some(usual + (seconds.min(usual * SLOW) - usual) * 0.05);
        if seconds < usual * SLOW {
            self.limit = (self.limit + 1.0 / self.limit).min(self.max);
        }
    }

    /// Halves the limit, unless the same pressure has done so already.
    pub fn refused(&mut self, now: Instant) {
        if self.halved.is_none_or(|halved| now - halved >= ONE_CUT) {
            let least = if self.limit < 1.0 { LEAST_SHARE } else { 1.0 };
            self.cut(OVERLOAD_CUT_FACTOR, least);
            self.halved = Some(now);
        }
    }

    /// Every now and then a few writes begin one at a time where there are always several.
    fn probe_at_times(&mut self, company: Company, now: Instant) {
        let since = *self.probed.get_or_insert(now);
        if self.probe > 0 && company == Company::Alone {
            self.probe -= 1;
        } else if self.limit > 1.0 && now - since >= PROBE_EVERY {
            self.probe = PROBE_WRITES;
            self.probed = Some(now);
        }
    }

    /// Lets the limit grow where there is room, and cuts it where there is not. Both wait for what the last
    /// change has changed.
    fn adapt(&mut self, Strain { queueing, load }: Strain) {
        let [all, beside] = self.since_change.map(|writes| writes >= SAMPLES_BETWEEN_CHANGES);
        if self.probe > 0 || !all {
            return;
        }
        let is = |test: fn(f64) -> bool| beside && queueing.is_some_and(test);
        if load > BUSY {
            self.cut(CUT_FACTOR, LEAST_SHARE);
        } else if self.limit > SHARE && is(|queueing| queueing > CROWDED) {
            self.cut(CUT_FACTOR, SHARE);
        } else if self.limit < SHARE && load < CALM {
            self.limit = (self.limit * (1.0 + RECOVERY)).min(SHARE);
        } else if self.limit >= SHARE && load < CALM && is(|queueing| queueing < ROOMY) {
            self.change((self.limit * STEP).min(self.max));
        }
    }

    /// Leaves a part of the limit, and no less than `least` of what was more.
    fn cut(&mut self, part: f64, least: f64) {
        self.change((self.limit * part).max(least.min(self.limit)));
    }

    fn change(&mut self, limit: f64) {
        self.limit = limit;
        self.since_change = [0; 2];
        self.times.forget_beside();
    }

    /// How long a write takes alone; `None` while that is not known.
    pub fn alone(&self) -> Option<Duration> {
        self.times.alone()
    }

    /// How many writes are under way on average.
    pub fn limit(&self) -> f64 {
        self.limit
    }
}
