//! Runs a program to its end, and measures its time and its memory.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::usage::peak_memory;

/// Between two looks at its memory. The peak never falls, so that only what comes in the last of these is
/// missed.
const LOOKS: Duration = Duration::from_millis(5);

/// The results of a program that ran to its end.
pub(super) struct Ended {
    pub(super) time: Duration,
    pub(super) peak_rss: u64,
    pub(super) output: Vec<u8>,
}

/// Runs a program with a kubeconfig. Exit 1 means findings.
pub(super) async fn run(program: &Path, arguments: &[&str], kubeconfig: &Path) -> anyhow::Result<Ended> {
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("start {}", program.display()))?;
    let process = child.id().context("it has just been started")?;
    let mut stdout = child.stdout.take().context("its output is piped")?;
    let mut output = Vec::new();
    let mut peak_rss = 0;
    let reading = stdout.read_to_end(&mut output);
    tokio::pin!(reading);
    loop {
        tokio::select! {
            read = &mut reading => {
                read.context("its output")?;
                break;
            }
            () = tokio::time::sleep(LOOKS) => peak_rss = peak_rss.max(peak_memory(process).unwrap_or_default()),
        }
    }
    let status = child.wait().await?;
    let time = begun.elapsed();
    ensure!(matches!(status.code(), Some(0 | 1)), "{} ended with {status}", program.display());
    ensure!(peak_rss > 0, "its memory was never seen: this needs /proc");
    Ok(Ended { time, peak_rss, output })
}
