//! One operator that never has nothing to do: upgrades, users, CRDs that come and go, and an API server that
//! restarts.
//!
//! Whether it holds what it promises to the end, and whether its memory grows.

#![expect(clippy::print_stdout, reason = "how memory grows is worth a line")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::environment::number;
use e2e::scene::Scene;
use e2e::usage::{memory, peak_memory};
use e2e::widgets::Widgets;
use serde_json::json;

const GROUP: &str = "soak.example.com";
const KINDS: [&str; 4] = ["Anvil", "Bolt", "Cog", "Drill"];

/// How much happens before something less frequent does.
struct Story {
    /// Objects of each CRD.
    objects: usize,
    /// Defaults that a CRD gains before it is deleted and created again.
    defaults: usize,
    /// Upgrades before the API server restarts.
    upgrades: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn crds_come_and_go_and_the_api_server_restarts() -> Result<()> {
    let story = Story { objects: 30, defaults: 2, upgrades: 5 };
    story.play(|upgrades, _| upgrades < 2 * story.upgrades).await.map(drop)
}

/// What is promised for any time: no growth of more than 1 MiB in an hour. `SOAK_SECONDS` is another time.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes an hour, or as many seconds as SOAK_SECONDS says: `just soak`"]
async fn an_hour_of_work_takes_no_more_memory_than_its_beginning() -> Result<()> {
    let seconds = number("SOAK_SECONDS")?.unwrap_or(3600);
    let story = Story { objects: 60, defaults: 12, upgrades: 100 };
    let memory = story.play(|_, time| time < Duration::from_secs(seconds)).await?;
    // What is filled once, such as caches and the pages of the program, is filled by then.
    let (_, late) = memory.split_at(memory.len() / 4);
    let slope = slope(late);
    println!("{}", json!({ "seconds": seconds, "upgrades": memory.len(), "MiBPerHour": slope }));
    ensure!(slope <= 1.0, "memory grows by {slope:.2} MiB in an hour");
    Ok(())
}

impl Story {
    /// Goes on while `goes_on` returns true for the number of upgrades and the time since the beginning;
    /// returns seconds and MiB after each upgrade.
    async fn play(&self, goes_on: impl Fn(usize, Duration) -> bool) -> Result<Vec<(f64, f64)>> {
        let mut scene = Scene::start(&[GROUP]).await?;
        let cluster = scene.cluster.clone();
        let mut kinds = Vec::new();
        for kind in KINDS {
            kinds.push(Widgets::create(&cluster, GROUP, kind, self.objects).await?);
        }
        let operator = scene.measured(&[])?;
        let begun = Instant::now();
        let (mut used, mut minutes) = (Vec::new(), 0);
        while goes_on(used.len(), begun.elapsed()) {
            let number = used.len();
            let at = number % KINDS.len();
            if kinds[at].defaults() == self.defaults {
                kinds.remove(at).delete().await?;
                kinds.insert(at, Widgets::create(&cluster, GROUP, KINDS[at], self.objects).await?);
            }
            let widgets = &mut kinds[at];
            widgets.add_default().await?;
            widgets.edit_some().await?;
            widgets.renew_some().await?;
            widgets.stored().await.with_context(|| format!("upgrade {number}"))?;
            widgets.keep_the_laws().await.with_context(|| format!("upgrade {number}"))?;
            used.push((begun.elapsed().as_secs_f64(), memory(operator.id()?)? as f64 / f64::from(1 << 20)));
            if (number + 1).is_multiple_of(self.upgrades) {
                scene.control_plane.stop_apiserver(0).await?;
                scene.control_plane.start_apiserver(0).await?;
            }
            if begun.elapsed().as_secs() / 60 > minutes {
                minutes = begun.elapsed().as_secs() / 60;
                println!("{minutes} min, {} upgrades, {:.1} MiB", used.len(), used[number].1);
            }
        }
        for widgets in &kinds {
            widgets.keep_the_laws().await.context("at the end")?;
        }
        println!("{} MiB at most", peak_memory(operator.id()?)? >> 20);
        operator.stop().await?;
        let log = std::fs::read_to_string(scene.log_path())?;
        ensure!(!log.contains("panicked"), "something panicked:\n{log}");
        Ok(used)
    }
}

/// By how many MiB memory grows in an hour: the slope of the line that is nearest to all points of seconds
/// and MiB.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (time, level) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - time) * (point.1 - level)).sum();
    let spread: f64 = points.iter().map(|point| (point.0 - time).powi(2)).sum();
    both / spread * 3600.0
}

#[test]
fn the_slope_is_what_an_hour_adds() {
    assert_eq!(slope(&[(0.0, 10.0), (1800.0, 11.0), (3600.0, 12.0)]), 2.0);
    assert_eq!(slope(&[(0.0, 10.0), (60.0, 12.0), (120.0, 10.0)]), 0.0);
}
