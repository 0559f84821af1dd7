//! Watches that fail for long: what is said of objects of which nobody hears any more.

use std::time::Duration;

use super::server::{Answer, Request};
use super::world::{THINGS, World, is_about_objects, operate, thing};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn is_watch(request: &Request) -> bool {
    request.is_watch() && is_about_objects(request)
}

#[tokio::test(start_paused = true)]
async fn while_watches_fail_nothing_is_known_and_that_is_said() {
    let answers: [fn() -> Answer; 6] = [
        || Answer::status(503, "ServiceUnavailable", "no"),
        || Answer::status(429, "TooManyRequests", "no").with_header("retry-after", "5"),
        || Answer::events([]),
        || Answer::text(200, "no JSON\n"),
        || Answer::broken([]),
        || Answer::Refuse,
    ];
    for answer in answers {
        let world = World::with(&["a"]);
        let (cluster, _) = world.serve();
        let operator = tokio::spawn(operate(cluster, 2 * HOUR));
        tokio::time::sleep(MINUTE).await;
        assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "{}", world.persisted());
        world.fails(move |request| is_watch(request).then(answer));
        world.end_watches();
        tokio::time::sleep(MINUTE / 2).await;
        assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "a short gap is none");
        tokio::time::sleep(MINUTE).await;
        let said = world.persisted();
        assert!(said.starts_with("Unknown WatchFailing: "), "{said}");
        // A phantom that nobody hears of.
        world.put(THINGS, thing("unheard"));
        tokio::time::sleep(HOUR).await;
        assert_eq!(world.persisted(), said);
        world.heals();
        tokio::time::sleep(10 * MINUTE).await;
        assert!(world.persisted().starts_with("True AllPersisted: 2 of 2"), "{}", world.persisted());
        operator.await.expect("it ends by itself");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_in_good_order_every_few_seconds_is_no_failure() {
    let world = World::with(&["a"]);
    let (cluster, _) = world.serve();
    let operator = tokio::spawn(operate(cluster, HOUR));
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.end_watches();
    }
    assert!(world.persisted().starts_with("True AllPersisted: 1 of 1"), "{}", world.persisted());
    operator.await.expect("it ends by itself");
}
