//! How many writes are under way, on a clock that stands still.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use etch_core::pace::limits::{ONE_CUT, PAIR_EVERY, PROBE_WRITES, SHARE};

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

/// Performs writes on a server that does so many at once; how many were under way on average, and how often
/// just one was.
async fn on_a_server(pace: &Arc<Pace>, capacity: usize, writes: usize) -> (f64, usize) {
    let running = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..writes {
        let (pace, running) = (pace.clone(), running.clone());
        tasks.spawn(async move {
            let permit = pace.admit().await;
            let now = running.fetch_add(1, Ordering::Relaxed) + 1;
            tokio::time::sleep(WRITE.mul_f64((now as f64 / capacity as f64).max(1.0))).await;
            running.fetch_sub(1, Ordering::Relaxed);
            permit.finish(Pressure::None);
            now
        });
    }
    let seen = tasks.join_all().await;
    let alone = seen.iter().filter(|running| **running == 1).count();
    (seen.iter().sum::<usize>() as f64 / writes as f64, alone)
}

#[tokio::test(start_paused = true)]
async fn who_finds_a_place_begins_at_once() {
    let pace = Pace::new(16, Some(1_000), PaceMode::Fast);
    // Timers end at whole milliseconds.
    tokio::time::advance(Duration::from_micros(300)).await;
    let begun = Instant::now();
    pace.admit().await.finish(Pressure::None);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// A server on which a write takes its time alone up to so many at once, and waits for the others beyond
/// that.
async fn limit_on(capacity: usize) -> (f64, f64, usize) {
    let pace = Arc::new(Pace::new(16, None, PaceMode::Gentle));
    on_a_server(&pace, capacity, 3_000).await;
    let (under_way, _) = on_a_server(&pace, capacity, 500).await;
    let at_once = pace.state.lock().slots;
    (pace.state.lock().limits.limit(), under_way, at_once)
}

#[tokio::test(start_paused = true)]
async fn a_gentle_pace_takes_a_share_of_one_write_at_a_time_where_two_wait_for_each_other() {
    let (limit, _, at_once) = limit_on(1).await;
    assert_eq!((limit, at_once), (SHARE, 1));
}

#[tokio::test(start_paused = true)]
async fn a_gentle_pace_grows_to_what_the_server_does_without_a_queue_and_a_fast_one_beyond() {
    let (limit, _, _) = limit_on(3).await;
    assert!((1.0..5.0).contains(&limit), "{limit}");
    let (limit, under_way, _) = limit_on(12).await;
    assert!(limit > 6.0 && under_way > 5.0, "it grows where there is more room: {limit}, {under_way}");
    let fast = Arc::new(Pace::new(16, None, PaceMode::Fast));
    on_a_server(&fast, 3, 2_000).await;
    let (under_way, _) = on_a_server(&fast, 3, 2_000).await;
    assert!(under_way > 15.0, "{under_way}");
}

#[tokio::test(start_paused = true)]
async fn starts_are_spaced_out_evenly_but_for_the_pairs() {
    let pace = Arc::new(Pace::new(8, None, PaceMode::Gentle));
    let (starts, running) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    // A timer counts in milliseconds.
    let took = Duration::from_millis(14);
    for _ in 0..400 {
        let (pace, starts, running) = (pace.clone(), starts.clone(), running.clone());
        tasks.spawn(async move {
            let permit = pace.admit().await;
            starts.lock().push(Instant::now());
            let now = running.fetch_add(1, Ordering::Relaxed) + 1;
            tokio::time::sleep(took * now as u32).await;
            running.fetch_sub(1, Ordering::Relaxed);
            permit.finish(Pressure::None);
        });
    }
    tasks.join_all().await;
    let starts = starts.lock();
    let gaps: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).skip(100).collect();
    let even = took.div_f64(SHARE);
    let is_even = |gap: &&Duration| gap.abs_diff(even) <= Duration::from_millis(1);
    let others = gaps.iter().filter(|gap| !is_even(gap)).count();
    let pairs = gaps.len() / PAIR_EVERY + 1;
    assert!(others <= pairs * 2, "{others} of {} are not {even:?}", gaps.len());
    assert!(gaps.contains(&Duration::ZERO), "some begin together");
}

#[tokio::test(start_paused = true)]
async fn a_gentle_pace_yields_to_others_who_make_writes_slow_and_comes_back_after_them() {
    let pace = Pace::new(8, None, PaceMode::Gentle);
    let some = async |writes, took| {
        for _ in 0..writes {
            let permit = pace.admit().await;
            tokio::time::sleep(took).await;
            permit.finish(Pressure::None);
        }
        pace.state.lock().limits.limit()
    };
    assert_eq!(some(200, WRITE).await, SHARE);
    let others = some(100, WRITE * 3).await;
    assert!(others < SHARE / 2.0, "{others}");
    assert_eq!(some(500, WRITE).await, SHARE);
}

#[tokio::test(start_paused = true)]
async fn what_has_become_slow_for_good_is_usual_after_a_minute() {
    let pace = Pace::new(8, None, PaceMode::Gentle);
    let some = async |writes, took| {
        for _ in 0..writes {
            let permit = pace.admit().await;
            tokio::time::sleep(took).await;
            permit.finish(Pressure::None);
        }
        pace.state.lock().limits.limit()
    };
    some(2_000, WRITE).await;
    assert!(some(200, WRITE * 3).await < SHARE / 2.0);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(90) {
        some(20, WRITE * 3).await;
    }
    assert_eq!(some(20, WRITE * 3).await, SHARE);
}

#[tokio::test(start_paused = true)]
async fn a_lucky_moment_is_not_taken_for_the_usual() {
    let pace = Pace::new(8, None, PaceMode::Gentle);
    for write in 0..4_000 {
        let permit = pace.admit().await;
        let is_lucky = write % 500 >= 380;
        tokio::time::sleep(if is_lucky { WRITE } else { WRITE * 3 }).await;
        permit.finish(Pressure::None);
        let limit = pace.state.lock().limits.limit();
        assert!(write < 1_000 || limit >= SHARE, "{limit} after {write}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pace_of_many_crds_goes_by_the_strain_that_those_of_the_crds_find() {
    let shared = Arc::new(Pace::new(8, None, PaceMode::Gentle));
    // One CRD's writes take a hundred times as long as another's, which is no strain.
    let own = [1, 100].map(|times| (Arc::new(Pace::of_one_crd(8, None, PaceMode::Gentle)), WRITE * times));
    for round in 0..400 {
        let (own, took) = &own[round % 2];
        let mut own = own.admit().await;
        let permit = shared.admit().await;
        own.begin();
        tokio::time::sleep(*took).await;
        permit.finish_both(Pressure::None, own, Pressure::None);
    }
    assert_eq!(shared.state.lock().limits.limit(), SHARE);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_not_answered_in_time_slows_down_its_own_crd_alone_unless_others_waited_for_it() {
    for (pressure, makes_room, expected) in [
        (Pressure::Overload(None), true, SHARE),
        (Pressure::Overload(None), false, SHARE / 2.0),
        (Pressure::Overload(Some(WRITE)), true, SHARE / 2.0),
    ] {
        let (own, shared) =
            (Pace::of_one_crd(8, None, PaceMode::Gentle), Pace::new(8, None, PaceMode::Gentle));
        let (of_crd, mut permit) = (own.admit().await, shared.admit().await);
        if makes_room {
            permit.release_slot();
        }
        permit.finish_both(pressure, of_crd, pressure);
        let limit = |pace: &Pace| pace.state.lock().limits.limit();
        assert_eq!((limit(&own), limit(&shared)), (SHARE / 2.0, expected), "{pressure:?}, {makes_room}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gentle_pace_begins_with_writes_one_at_a_time_unless_they_take_long() {
    let pace = Pace::new(8, None, PaceMode::Gentle);
    let is_full = async || tokio::time::timeout(WRITE, pace.admit()).await.is_err();
    for _ in 0..PROBE_WRITES {
        let permit = pace.admit().await;
        assert!(is_full().await);
        permit.finish(Pressure::None);
    }
    let own = Pace::of_one_crd(8, None, PaceMode::Gentle);
    let four = (own.admit().await, own.admit().await, own.admit().await, own.admit().await);
    assert!(tokio::time::timeout(WRITE, own.admit()).await.is_err(), "four of one CRD");
    drop(four);
}

#[tokio::test(start_paused = true)]
async fn who_waited_for_another_pace_is_not_taken_for_slow() {
    let (own, shared) = (Pace::of_one_crd(8, None, PaceMode::Gentle), Pace::new(8, None, PaceMode::Gentle));
    for _ in 0..100 {
        let mut permit = own.admit().await;
        tokio::time::sleep(WRITE * 10).await;
        let place = shared.admit().await;
        permit.begin();
        tokio::time::sleep(WRITE).await;
        place.finish_both(Pressure::None, permit, Pressure::None);
    }
    assert_eq!(own.state.lock().limits.alone(), Some(WRITE));
}

#[tokio::test(start_paused = true)]
async fn who_steps_aside_lets_another_write_and_no_more_do_than_the_maximum() {
    let pace = Pace::new(2, None, PaceMode::Fast);
    let is_full = async || tokio::time::timeout(WRITE, pace.admit()).await.is_err();
    let mut aside = Vec::new();
    for _ in 0..2 {
        let mut permit = pace.admit().await;
        permit.release_slot();
        permit.release_slot();
        aside.push(permit);
    }
    let (mut one, other) = (pace.admit().await, pace.admit().await);
    assert!(is_full().await);
    one.release_slot();
    assert!(is_full().await, "as many are aside as may be");
    assert_eq!(pace.in_flight(), 4);
    drop(aside.pop());
    one.release_slot();
    assert!(!is_full().await);
    drop((one, other, aside));
    let all = (pace.admit().await, pace.admit().await);
    assert!(is_full().await, "no place was given back twice");
    drop(all);
}

#[tokio::test(start_paused = true)]
async fn overload_halves_the_limit_once_and_closes_for_as_long_as_asked() {
    let pace = Pace::new(8, None, PaceMode::Fast);
    let (first, second) = (pace.admit().await, pace.admit().await);
    let before = Instant::now();
    first.finish(Pressure::Overload(Some(Duration::from_secs(3))));
    second.finish(Pressure::Overload(None));
    assert_eq!(pace.state.lock().limits.limit(), 2.0);
    drop(pace.admit().await);
    assert!(before.elapsed() >= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn answers_in_time_raise_the_limit_up_to_the_maximum_and_no_further() {
    let pace = Arc::new(Pace::new(6, None, PaceMode::Fast));
    assert_eq!(most_at_once(&pace, 4).await, 4, "a fast one begins with care");
    most_at_once(&pace, 200).await;
    assert_eq!(most_at_once(&pace, 200).await, 6);
    assert_eq!(pace.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cut_counts_for_places_that_are_free_as_for_those_that_are_taken() {
    let pace = Arc::new(Pace::new(8, None, PaceMode::Fast));
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
    assert_eq!(pace.state.lock().limits.limit(), 1.0, "one write at a time goes on");
    drop(pace.admit().await);
}

#[tokio::test(start_paused = true)]
async fn writes_begin_no_faster_than_the_rate() {
    let pace = Pace::new(8, Some(10), PaceMode::Gentle);
    let before = Instant::now();
    for _ in 0..21 {
        pace.admit().await.finish(Pressure::None);
    }
    assert_eq!(before.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_for_its_turn_waits_on_when_the_server_asks_for_it() {
    let pace = Pace::new(8, Some(1), PaceMode::Fast);
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
    let pace = Pace::new(1, Some(1), PaceMode::Gentle);
    drop(pace.admit().await);
    let given_up = tokio::time::timeout(WRITE, pace.admit()).await;
    assert!(given_up.is_err(), "the rate is one a second");
    assert_eq!(pace.in_flight(), 0);
    drop(pace.admit().await);
}

#[tokio::test(start_paused = true)]
async fn who_waits_longest_is_served_first_however_many_somebody_else_has() {
    let pace = Arc::new(Pace::new(1, None, PaceMode::Gentle));
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = tokio::task::JoinSet::new();
    let first = pace.admit().await;
    for name in ["big", "big", "big", "small", "big", "big"] {
        let (pace, order) = (pace.clone(), order.clone());
        tasks.spawn(async move {
            let permit = pace.admit().await;
            order.lock().push(name);
            tokio::time::sleep(WRITE).await;
            permit.finish(Pressure::None);
        });
        tokio::task::yield_now().await;
    }
    drop(first);
    tasks.join_all().await;
    assert_eq!(*order.lock(), ["big", "big", "big", "small", "big", "big"]);
}
