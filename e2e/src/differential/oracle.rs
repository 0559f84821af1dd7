//! A running oracle: the API server's own code, asked over pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, bail, ensure};
use kube_structural_schema::json::{DEPTH, Json};
use serde_json::Value;

use super::build::{Program, Release, build};
use crate::conformance::{Case, Outcome};

/// An oracle's answer to one case.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// What a server returns. More than one where that depends on the random order of Go's maps.
    Outcomes(Vec<Outcome>),
    /// The API server's code cannot answer: it panics, or the object is one that no server has stored.
    None(String),
}

/// One oracle process. It ends with this value.
pub struct Oracle {
    process: Child,
    requests: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    answers: BufReader<ChildStdout>,
    asked: u64,
    answered: u64,
}

impl Oracle {
    /// Starts an oracle, building it first where need be.
    ///
    /// # Errors
    /// It cannot be built or started.
    pub fn start(release: Release) -> anyhow::Result<Self> {
        let program = build(release, Program::Oracle)?;
        let mut process = Command::new(&program)
            // It holds next to nothing, and would collect garbage for a third of its time.
            .env("GOGC", "800")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let input = process.stdin.take().context("the oracle has no standard input")?;
        let output = process.stdout.take().context("the oracle has no standard output")?;
        let (requests, waiting) = mpsc::channel();
        Ok(Self {
            process,
            requests: Some(requests),
            writer: Some(thread::spawn(move || feed(input, &waiting))),
            answers: BufReader::with_capacity(1 << 20, output),
            asked: 0,
            answered: 0,
        })
    }

    /// Sends questions without waiting for the answers. `repeat` is how often each is evaluated, to see
    /// whether the API server always gives the same answer.
    pub fn ask<'a>(&mut self, cases: impl IntoIterator<Item = &'a Case>, repeat: u32) {
        let mut lines = Vec::new();
        for case in cases {
            let mut line = case.to_request(&self.asked.to_string());
            if repeat > 1 {
                line.pop();
                line.extend_from_slice(format!(r#","repeat":{repeat}}}"#).as_bytes());
            }
            line.push(b'\n');
            lines.extend(line);
            self.asked += 1;
        }
        // A writer that is gone shows in the answers that do not come.
        if let Some(requests) = &self.requests {
            let _ = requests.send(lines);
        }
    }

    /// The answer to the first question that has none yet.
    ///
    /// # Errors
    /// The oracle ended, or answered something else.
    pub fn answer(&mut self) -> anyhow::Result<Answer> {
        ensure!(self.answered < self.asked, "the oracle was not asked");
        let mut line = Vec::new();
        if self.answers.read_until(b'\n', &mut line).context("read from the oracle")? == 0 {
            bail!("the oracle ended before it answered question {}", self.answered);
        }
        // With its defaults an object may be deeper than it was.
        let mut document = Json::parse_around(&line, DEPTH).context("the oracle wrote no JSON")?;
        let Value::Object(fields) = &mut *document else { bail!("the oracle wrote no object") };
        let number = self.answered.to_string();
        ensure!(fields.get("id") == Some(&Value::from(number)), "the oracle answered another question");
        self.answered += 1;
        if let Some(Value::String(failure)) = fields.get("failure") {
            return Ok(Answer::None(failure.clone()));
        }
        let mut outcomes = Vec::new();
        let first = fields.get_mut("expect").context("the oracle gave no answer")?;
        outcomes.push(Outcome::take(&mut first.take().into())?);
        if let Some(Value::Array(others)) = fields.get_mut("alternatives") {
            for other in others {
                outcomes.push(Outcome::take(&mut other.take().into())?);
            }
        }
        Ok(Answer::Outcomes(outcomes))
    }
}

/// Requests are written from a thread of their own, so that two full pipes never wait for each other.
fn feed(mut input: ChildStdin, waiting: &mpsc::Receiver<Vec<u8>>) {
    for lines in waiting {
        if input.write_all(&lines).is_err() {
            return;
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // Without requests the writer closes the oracle's input, and the oracle ends.
        self.requests = None;
        if self.answered < self.asked {
            // Unread answers would block it forever; it holds nothing that could be lost.
            let _ = self.process.kill();
        }
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        let _ = self.process.wait();
    }
}
