//! A child process that cannot outlive this one, however this one ends.
//!
//! It knows nothing of what it runs, and it never blocks for longer than a killed process takes to go.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// Runs `"$@"` and, beside it, a guard that reads signal names from standard input.
///
/// Only the parent holds the other end of that pipe, so the guard sees it closed at the moment the parent is
/// gone, killed ones included, and then kills the child. Each signal sent is acknowledged by the child's
/// process id. The guard ignores SIGPIPE: the parent may die between asking for a signal and reading the
/// acknowledgement. Once the child has ended, what it left behind in the process group is ended too
/// (compilers under `go build`, and the guard itself).
const SUPERVISOR: &str = r#"
exec 3<&0
"$@" </dev/null >&2 3<&- &
child=$!
(
  trap '' PIPE
  while read -r signal <&3; do
    kill -s "$signal" "$child" 2>&-
    echo "$child" || :
  done
  kill -s KILL "$child" 2>&-
) &
exec >&- 3<&-
wait "$child"
status=$?
trap '' TERM
kill -s TERM 0
wait
exit "$status"
"#;

/// A running child; dropping it kills it and waits until it is gone.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    /// `None` once closed, which is what kills the child.
    signals: Option<ChildStdin>,
    delivered: BufReader<ChildStdout>,
}

impl Supervised {
    /// Starts `command`, whose output of both kinds goes to `output`.
    ///
    /// The child gets a process group of its own: Ctrl-C in a terminal reaches only this process, which then
    /// decides in which order to stop what it runs.
    ///
    /// # Errors
    /// There is no `/bin/sh`. A program that is missing ends with 127.
    pub fn spawn(command: &Command, output: Stdio) -> Result<Self> {
        let program = command.get_program();
        let mut supervisor = Command::new("/bin/sh");
        supervisor.arg("-c").arg(SUPERVISOR).arg("supervisor").arg(program).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => supervisor.env(name, value),
                None => supervisor.env_remove(name),
            };
        }
        if let Some(dir) = command.get_current_dir() {
            supervisor.current_dir(dir);
        }
        supervisor.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(output).process_group(0);
        let mut supervisor =
            supervisor.spawn().with_context(|| format!("start {}", program.to_string_lossy()))?;
        let signals = supervisor.stdin.take();
        let delivered = supervisor.stdout.take().context("the supervisor's standard output is piped")?;
        Ok(Self { supervisor, signals, delivered: BufReader::new(delivered) })
    }

    /// As [`Self::spawn`], with the output appended to the file `log`.
    ///
    /// # Errors
    /// Those of [`Self::spawn`], and where `log` cannot be opened.
    pub fn spawn_logged(command: &Command, log: &Path) -> Result<Self> {
        let file = File::options().create(true).append(true).open(log);
        Self::spawn(command, file.with_context(|| format!("open {}", log.display()))?.into())
    }

    /// The status of a child that has ended.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.supervisor.try_wait().context("wait for a child process")
    }

    /// Sends the signal of this name (`TERM`, `CONT`, …), and returns the child's process id once it has
    /// been sent.
    ///
    /// `None` for a child that has already ended.
    pub fn signal(&mut self, name: &str) -> Option<u32> {
        writeln!(self.signals.as_mut()?, "{name}").ok()?;
        let mut child = String::new();
        // Nothing to read means that the guard has gone, and the child before it.
        self.delivered.read_line(&mut child).ok()?;
        child.trim().parse().ok()
    }

    /// Whether no thread of the process `child` can run, or this one has ended. After a signal that stops it,
    /// a busy machine may take its time.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn is_at_rest(&mut self, child: u32) -> Result<bool> {
        Ok(self.ended()?.is_some() || all_stopped(child))
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.signals = None;
        // An error here means that there is no child to wait for.
        let _ = self.supervisor.wait();
    }
}

/// Whether no thread of a process can run. Where there is no `/proc`, the signal is all that can be had.
fn all_stopped(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut states = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    // The state follows the name in parentheses, which may itself hold any character.
    states.all(|stat| stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['T', 'Z', 'X'])))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::Supervised;

    /// Far from what any of this takes.
    const GUARD: Duration = Duration::from_secs(60);

    fn sleep() -> Supervised {
        let mut command = Command::new("sleep");
        command.arg("600");
        Supervised::spawn(&command, Stdio::null()).expect("sleep starts")
    }

    fn status_within(child: &mut Supervised, limit: Duration) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = child.ended().expect("the child can be waited for") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    #[test]
    fn the_status_of_the_child_is_passed_on() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 7"]);
        let mut child = Supervised::spawn(&command, Stdio::null()).expect("sh starts");
        assert_eq!(status_within(&mut child, GUARD), Some(7));
    }

    #[test]
    fn a_missing_program_ends_with_127() {
        let mut child =
            Supervised::spawn(&Command::new("/no/such/program"), Stdio::null()).expect("sh starts");
        assert_eq!(status_within(&mut child, GUARD), Some(127));
    }

    #[test]
    fn signals_reach_the_child() {
        let mut child = sleep();
        let process = child.signal("STOP").expect("it runs");
        while !child.is_at_rest(process).expect("the child can be waited for") {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.signal("TERM");
        assert_eq!(status_within(&mut child, Duration::from_millis(200)), None, "a stopped child cannot act");
        child.signal("CONT");
        assert_eq!(status_within(&mut child, GUARD), Some(128 + 15));
        assert_eq!(child.signal("TERM"), None);
    }

    #[test]
    fn dropping_kills_at_once_even_a_stopped_child() {
        let mut child = sleep();
        child.signal("STOP");
        let start = Instant::now();
        drop(child);
        assert!(start.elapsed() < GUARD);
    }
}
