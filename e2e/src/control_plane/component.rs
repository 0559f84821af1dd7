//! A server process with its log: started on a free port, waited for, and asked why when it is gone.
//!
//! It does not know which server it is, nor what being ready means.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use ci::supervised::Supervised;
use tokio::time::{Instant, sleep, timeout};

use crate::ports::free_port;

/// How long a server may take until it is ready; far more than it needs on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long one look at a starting server may take, and the time between two.
const LOOK: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// How long a server that is asked to stop may take to finish its requests.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// Another process may take a free port before it is used.
const PORT_TRIES: usize = 3;
/// Lines of a log that an error shows.
const TAIL: usize = 20;

/// A server that has been started once, and may have been stopped since.
#[derive(Debug)]
pub(super) struct Component {
    name: String,
    log: PathBuf,
    /// `None` while it is stopped on purpose.
    process: Option<Supervised>,
}

impl Component {
    /// Starts `command` and waits until `ready`. The output is appended to `<dir>/<name>.log`.
    pub(super) async fn start<F>(
        name: String,
        dir: &Path,
        command: &Command,
        ready: impl Fn() -> F,
    ) -> Result<Self>
    where
        F: Future<Output = bool>,
    {
        let log = dir.join(format!("{name}.log"));
        let process = Some(Supervised::spawn_logged(command, &log)?);
        let mut component = Self { name, log, process };
        let start = Instant::now();
        loop {
            component.check()?;
            if timeout(LOOK, ready()).await.unwrap_or(false) {
                return Ok(component);
            }
            ensure!(start.elapsed() < START_LIMIT, "{} is not ready; {}", component.name, component.tail());
            sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Fails if the process has ended by itself.
    pub(super) fn check(&mut self) -> Result<()> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let Some(status) = process.ended()? else { return Ok(()) };
        bail!("{} ended with {status}; {}", self.name, self.tail())
    }

    /// Whether it has been stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.process.is_none()
    }

    /// Lets it finish its requests, for a while, and ends it.
    pub(super) async fn stop(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        process.signal("TERM");
        let deadline = Instant::now() + STOP_GRACE;
        while process.ended()?.is_none() && Instant::now() < deadline {
            sleep(BETWEEN_LOOKS).await;
        }
        Ok(())
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        self.process = None;
    }

    /// Keeps it from doing anything, until [`Self::resume`]; returns once none of its threads runs.
    pub(super) async fn pause(&mut self) -> Result<()> {
        let process = self.process.as_mut().context("pause a server that has been stopped")?;
        let child = process.signal("STOP").context("pause a process that has ended")?;
        while !process.is_at_rest(child)? {
            sleep(BETWEEN_LOOKS).await;
        }
        Ok(())
    }

    /// Lets it continue.
    pub(super) fn resume(&mut self) {
        self.process();
    }

    /// Its process id, if it runs: learned by a signal, which changes nothing unless it is paused.
    pub(super) fn process(&mut self) -> Option<u32> {
        self.process.as_mut()?.signal("CONT")
    }

    fn tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
        format!("the end of {}:\n{tail}", self.log.display())
    }
}

/// Starts something on a port that is free, and on another one if another process has taken that.
pub(super) async fn on_free_port<T>(start: impl AsyncFn(u16) -> Result<T>) -> Result<T> {
    let mut tries = 1;
    loop {
        match start(free_port()?).await {
            // The end of the log is part of the error.
            Err(error) if tries < PORT_TRIES && format!("{error:#}").contains("address already in use") => {
                tries += 1
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Component, on_free_port};

    #[tokio::test]
    async fn a_port_that_was_taken_is_tried_again_and_other_errors_are_not() {
        for (message, tries) in [("bind: address already in use", 3), ("no such flag", 1)] {
            let seen = std::cell::Cell::new(0);
            let error = on_free_port(async |_| {
                seen.set(seen.get() + 1);
                anyhow::bail!("{message}") as anyhow::Result<()>
            });
            assert_eq!(error.await.expect_err("it always fails").to_string(), message);
            assert_eq!(seen.get(), tries);
        }
    }

    #[tokio::test]
    async fn a_process_that_ends_early_is_an_error_with_the_end_of_its_log() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("sh");
        command.args(["-c", "echo to be skipped; seq 21 39; echo the reason >&2; exit 9"]);
        let started = Component::start("server".into(), dir.path(), &command, async || false).await;
        let error = started.expect_err("it ends at once").to_string();
        assert!(error.contains("server ended with exit status: 9"), "{error}");
        assert!(error.ends_with("39\nthe reason") && !error.contains("skipped"), "{error}");
    }
}
