//! Asks at a steady rate, whether or not there are answers yet: a client that waits for an answer before it
//! asks again does not see how long others wait.

use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at};

/// Asks so often in a second until `ended`; how long each answer took from when its request was due, in
/// milliseconds, the shortest first.
///
/// # Errors
/// A request has no good answer.
pub(super) async fn times<A>(per_second: u32, ended: impl Future, ask: impl Fn(u64) -> A) -> Result<Vec<f64>>
where
    A: Future<Output = Result<()>> + Send + 'static,
{
    let period = Duration::from_secs(1) / per_second;
    let mut due = interval_at(Instant::now() + period, period);
    let mut ended = std::pin::pin!(ended);
    let mut asking = JoinSet::new();
    for number in 0.. {
        let at = tokio::select! {
            at = due.tick() => at,
            _ = &mut ended => break,
        };
        let asked = ask(number);
        asking.spawn(async move {
            asked.await?;
            anyhow::Ok(at.elapsed().as_secs_f64() * 1e3)
        });
    }
    let mut times = Vec::new();
    while let Some(time) = asking.join_next().await {
        times.push(time??);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_late_holds_up_no_request() {
        let ask = |number: u64| async move {
            sleep(Duration::from_millis(if number == 0 { 500 } else { 1 })).await;
            Ok(())
        };
        // Between the tenth request and the one after it.
        let times = times(10, sleep(Duration::from_millis(1_050)), ask).await.expect("answers");
        assert_eq!(times.len(), 10);
        assert!(times[8] < 10.0 && times[9] >= 500.0, "{times:?}");
    }
}
