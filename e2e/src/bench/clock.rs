//! Timing of short functions.
//! It reports no mean: the best round is the one with the least of everything else in it.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A time, of one call.
pub(super) type Nanoseconds = f64;

/// How often a function is timed, and for how long each time: short enough that on a busy machine some rounds
/// are undisturbed. Go's benchmarks are given the same.
pub(super) const ROUNDS: u32 = 40;
pub(super) const ROUND: Duration = Duration::from_millis(2);
/// Calls between two looks at the clock.
const BATCH: u32 = 64;

/// The time of a call.
pub(super) fn each<T>(mut call: impl FnMut() -> T) -> Nanoseconds {
    best(|| {
        let start = Instant::now();
        for _ in 0..BATCH {
            black_box(call());
        }
        start.elapsed()
    })
}

/// The time of a call that changes what it is given; making and dropping that does not count.
pub(super) fn fresh<T>(make: impl Fn() -> T, mut call: impl FnMut(&mut T)) -> Nanoseconds {
    best(|| {
        let mut given: Vec<T> = (0..BATCH).map(|_| make()).collect();
        let start = Instant::now();
        for one in &mut given {
            call(black_box(one));
        }
        start.elapsed()
    })
}

fn best(mut batch: impl FnMut() -> Duration) -> Nanoseconds {
    let rounds = (0..ROUNDS).map(|_| {
        let (mut spent, mut calls) = (Duration::ZERO, 0);
        // What is not timed may take far longer than what is.
        let start = Instant::now();
        while spent < ROUND && start.elapsed() < 4 * ROUND {
            spent += batch();
            calls += BATCH;
        }
        spent.as_secs_f64() * 1e9 / f64::from(calls)
    });
    let best = rounds.fold(f64::INFINITY, f64::min);
    (10.0 * best).round() / 10.0
}
