//! How many writes are under way, on a clock that stands still.

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
            permit.finish(Pressure::None, None);
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
            permit.finish(Pressure::None, None);
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
    pace.admit().await.finish(Pressure::None, None);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_gentle_pace_keeps_to_what_the_server_does_without_a_queue_and_a_fast_one_does_not() {
    let gentle = Arc::new(Pace::new(16, None, PaceMode::Gentle));
    on_a_server(&gentle, 3, 2_000).await;
    let (under_way, _) = on_a_server(&gentle, 3, 2_000).await;
    assert!((2.0..5.0).contains(&under_way), "{under_way}");
    let (under_way, _) = on_a_server(&gentle, 12, 4_000).await;
    assert!(under_way > 6.0, "it grows where there is more room: {under_way}");
    let fast = Arc::new(Pace::new(16, None, PaceMode::Fast));
    on_a_server(&fast, 3, 2_000).await;
    let (under_way, _) = on_a_server(&fast, 3, 2_000).await;
    assert!(under_way > 15.0, "{under_way}");
}

#[tokio::test(start_paused = true)]
async fn a_gentle_pace_looks_every_now_and_then_how_long_a_write_takes_alone() {
    let pace = Arc::new(Pace::new(8, None, PaceMode::Gentle));
    on_a_server(&pace, 8, 1_000).await;
    let begun = Instant::now();
    // A server that has become slower for good: without such a probe all of it would be taken for a queue.
    let (_, alone) = on_a_server(&pace, 1, 4_000).await;
    let windows = begun.elapsed().as_secs() / 10;
    assert!(windows > 0 && alone >= windows as usize * PROBE_WRITES, "{alone} in {windows}");
}

#[tokio::test(start_paused = true)]
async fn a_pace_of_many_crds_goes_by_the_strain_that_those_of_the_crds_tell() {
    let shared = Arc::new(Pace::new(8, None, PaceMode::Gentle));
    let finish = async |slowdown| {
        for _ in 0..200 {
            let permit = shared.admit().await;
            // One CRD's writes take a hundred times as long as another's.
            tokio::time::sleep(WRITE * 100).await;
            permit.finish(Pressure::None, Some(slowdown));
        }
        shared.lock().limit
    };
    shared.admit().await.finish(Pressure::None, Some(1.0));
    assert_eq!(finish(1.0).await, 8.0);
    assert_eq!(finish(3.0).await, MIN_LIMIT);
}

#[tokio::test(start_paused = true)]
async fn where_one_write_at_a_time_is_too_much_a_gentle_pace_rests_in_between() {
    let pace = Pace::new(8, None, PaceMode::Gentle);
    let some = async |writes, slowdown| {
        for _ in 0..writes {
            let permit = pace.admit().await;
            tokio::time::sleep(WRITE).await;
            permit.finish(Pressure::None, Some(slowdown));
        }
    };
    some(1_000, 3.0).await;
    let begun = Instant::now();
    some(200, 3.0).await;
    assert_eq!(begun.elapsed(), WRITE * 1_200, "a sixth of the time");
    some(200, 1.0).await;
    assert_eq!(pace.lock().limit, 8.0, "it grows again where there is room");
    let begun = Instant::now();
    some(200, 1.0).await;
    assert_eq!(begun.elapsed(), WRITE * 200);
}

#[tokio::test(start_paused = true)]
async fn a_gentle_pace_begins_with_writes_one_at_a_time_unless_they_take_long() {
    let pace = Pace::new(8, None, PaceMode::Gentle);
    let is_full = async || tokio::time::timeout(WRITE, pace.admit()).await.is_err();
    for _ in 0..PROBE_WRITES {
        let permit = pace.admit().await;
        assert!(is_full().await);
        permit.finish(Pressure::None, None);
    }
    let first = pace.admit().await;
    assert!(!is_full().await);
    drop(first);
    let pace = Pace::new(8, None, PaceMode::Gentle);
    let lost = pace.admit().await;
    assert!(tokio::time::timeout(WRITE, pace.admit()).await.is_err());
    lost.takes_long();
    let others = (pace.admit().await, pace.admit().await, pace.admit().await);
    assert!(tokio::time::timeout(WRITE, pace.admit()).await.is_err(), "four at first");
    drop(others);
}

#[tokio::test(start_paused = true)]
async fn who_waited_for_another_pace_is_not_taken_for_slow() {
    let pace = Pace::new(8, None, PaceMode::Gentle);
    let took = async |wait| {
        let mut permit = pace.admit().await;
        tokio::time::sleep(wait).await;
        permit.begin();
        tokio::time::sleep(WRITE).await;
        permit.finish(Pressure::None, None).expect("a slowdown")
    };
    assert_eq!(took(Duration::ZERO).await, 1.0);
    assert_eq!(took(WRITE * 10).await, 1.0);
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
    first.finish(Pressure::Overload(Some(Duration::from_secs(3))), None);
    second.finish(Pressure::Overload(None), None);
    assert_eq!(pace.lock().limit, 2.0);
    drop(pace.admit().await);
    assert!(before.elapsed() >= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn overload_halves_the_limit_however_lately_it_was_cut_for_strain() {
    let pace = Pace::new(8, None, PaceMode::Gentle);
    let finish = async |pressure, known| pace.admit().await.finish(pressure, known);
    for _ in 0..200 {
        finish(Pressure::None, Some(1.0)).await;
    }
    assert_eq!(pace.lock().limit, 8.0);
    while pace.lock().limit == 8.0 {
        finish(Pressure::None, Some(4.0)).await;
    }
    assert_eq!(pace.lock().limit, 6.0);
    finish(Pressure::Overload(None), None).await;
    assert_eq!(pace.lock().limit, 3.0);
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
    pace.admit().await.finish(Pressure::Overload(None), None);
    drop(held);
    assert_eq!(most_at_once(&pace, 4).await, 4, "half of eight");
    tokio::time::sleep(ONE_CUT).await;
    for _ in 0..5 {
        pace.admit().await.finish(Pressure::Overload(None), None);
        tokio::time::sleep(ONE_CUT).await;
    }
    assert_eq!(pace.lock().limit, 1.0, "one write at a time goes on");
    drop(pace.admit().await);
}

#[tokio::test(start_paused = true)]
async fn writes_begin_no_faster_than_the_rate() {
    let pace = Pace::new(8, Some(10), PaceMode::Gentle);
    let before = Instant::now();
    for _ in 0..21 {
        pace.admit().await.finish(Pressure::None, None);
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
        first.finish(Pressure::Overload(Some(Duration::from_secs(60))), None);
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
            order.lock().expect("no test panics here").push(name);
            tokio::time::sleep(WRITE).await;
            permit.finish(Pressure::None, None);
        });
        tokio::task::yield_now().await;
    }
    drop(first);
    tasks.join_all().await;
    assert_eq!(*order.lock().expect("no test panics here"), ["big", "big", "big", "small", "big", "big"]);
}
