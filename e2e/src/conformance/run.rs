//! Runs every vector of files and folders on all cores.
//! No line is lost: what cannot be read counts as failed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use anyhow::Context;
use flate2::bufread::MultiGzDecoder;
use parking_lot::Mutex;

use super::{Case, Outcome, Vector, compare};

/// Lines that one worker takes at a time.
const BATCH: usize = 32;

/// How many vectors agreed and how many did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Vectors whose answer agreed.
    pub passed: usize,
    /// Vectors whose answer did not, and lines and paths that could not be read.
    pub failed: usize,
}

/// Answers all vectors of `paths` with `answer` and writes each mismatch to `report`, in the order of the
/// lines.
///
/// A folder means all `.jsonl` and `.jsonl.gz` files below it, by name.
///
/// # Errors
/// `report` cannot be written.
pub fn run(
    paths: &[PathBuf],
    answer: impl Fn(&Case) -> Outcome + Sync,
    report: &mut impl Write,
) -> io::Result<Tally> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let lines = Mutex::new(Lines::new(paths));
    let (verdicts, incoming) = mpsc::sync_channel::<(usize, Vec<Verdict>)>(4 * workers);
    thread::scope(|scope| {
        for _ in 0..workers {
            let (verdicts, lines, answer) = (verdicts.clone(), &lines, &answer);
            scope.spawn(move || {
                loop {
                    let (number, batch) = lines.lock().batch();
                    let judged: Vec<_> = batch.into_iter().map(|line| judge(line, answer)).collect();
                    if judged.is_empty() || verdicts.send((number, judged)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(verdicts);
        write_in_order(incoming, report)
    })
}

/// Nothing where the vector agreed, else what to report.
type Verdict = Option<String>;

fn judge(line: io::Result<Line>, answer: &impl Fn(&Case) -> Outcome) -> Verdict {
    let line = match line {
        Ok(line) => line,
        Err(error) => return Some(format!("FAIL {error}")),
    };
    let place = format!("{}:{}", line.file.display(), line.number);
    match Vector::parse(&line.text) {
        Ok(Vector { id, case, expect }) => compare(case.op, &expect, &answer(&case))
            .err()
            .map(|diff| format!("FAIL {id} ({}, {place})\n{}", case.op, indent(&diff))),
        Err(error) => Some(format!("FAIL {place}: not a vector: {error:#}")),
    }
}

fn indent(diff: &str) -> String {
    diff.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

fn write_in_order(
    incoming: mpsc::Receiver<(usize, Vec<Verdict>)>,
    report: &mut impl Write,
) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut early = BTreeMap::new();
    let mut next = 0;
    for (number, verdicts) in incoming {
        early.insert(number, verdicts);
        while let Some(verdicts) = early.remove(&next) {
            next += 1;
            for verdict in verdicts {
                match verdict {
                    None => tally.passed += 1,
                    Some(text) => {
                        tally.failed += 1;
                        writeln!(report, "{text}")?;
                    }
                }
            }
        }
    }
    Ok(tally)
}

struct Line {
    file: PathBuf,
    number: usize,
    text: Vec<u8>,
}

/// All lines of all files, read as they are asked for.
struct Lines {
    waiting: Vec<PathBuf>,
    open: Option<(PathBuf, usize, Box<dyn BufRead + Send>)>,
    batches: usize,
}

impl Lines {
    fn new(paths: &[PathBuf]) -> Self {
        Self { waiting: paths.iter().rev().cloned().collect(), open: None, batches: 0 }
    }

    /// The next lines and which batch they are; an empty batch is the end.
    fn batch(&mut self) -> (usize, Vec<io::Result<Line>>) {
        let lines: Vec<_> = self.by_ref().take(BATCH).collect();
        self.batches += 1;
        (self.batches - 1, lines)
    }

    /// Opens the next file, or puts the content of the next folder in its place.
    fn open(&mut self, path: PathBuf) -> anyhow::Result<()> {
        if path.is_dir() {
            let mut found = Vec::new();
            for entry in path.read_dir()? {
                let path = entry?.path();
                if path.is_dir() || is_vectors(&path) {
                    found.push(path);
                }
            }
            found.sort();
            self.waiting.extend(found.into_iter().rev());
            return Ok(());
        }
        let file = BufReader::new(File::open(&path)?);
        let reader: Box<dyn BufRead + Send> = if path.extension().is_some_and(|extension| extension == "gz") {
            Box::new(BufReader::new(MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        };
        self.open = Some((path, 0, reader));
        Ok(())
    }
}

fn is_vectors(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
}

impl Iterator for Lines {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((file, number, reader)) = &mut self.open else {
                let path = self.waiting.pop()?;
                let shown = path.display().to_string();
                if let Err(error) = self.open(path).with_context(|| format!("{shown} cannot be read")) {
                    return Some(Err(io::Error::other(format!("{error:#}"))));
                }
                continue;
            };
            let mut text = Vec::new();
            *number += 1;
            match reader.read_until(b'\n', &mut text) {
                Ok(0) => self.open = None,
                Ok(_) if text.trim_ascii().is_empty() => {}
                Ok(_) => return Some(Ok(Line { file: file.clone(), number: *number, text })),
                Err(error) => {
                    let place = format!("{}:{number} cannot be read: {error}", file.display());
                    self.open = None;
                    return Some(Err(io::Error::other(place)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flate2::{Compression, write::GzEncoder};
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_mismatches_and_unreadable_lines_as_failed() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = |id: &str, kept: &str| {
            json!({"id": id, "op": "read", "schema": {}, "object": {"a": 1}, "expect": {"object": {kept: 1}}})
                .to_string()
        };
        let nested = folder.path().join("nested");
        fs::create_dir(&nested).expect("a folder");
        let plain = format!("{}\n\n{}\nnot a line\n", line("right", "a"), line("wrong", "b"));
        fs::write(nested.join("a.jsonl"), plain).expect("a file");
        fs::write(nested.join("b.txt"), "left alone").expect("a file");
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(line("packed", "a").as_bytes()).expect("packed");
        fs::write(folder.path().join("z.jsonl.gz"), packed.finish().expect("packed")).expect("a file");
        fs::write(folder.path().join("torn.jsonl.gz"), b"not gzip").expect("a file");

        let mut report = Vec::new();
        let paths = [folder.path().to_owned(), folder.path().join("absent.jsonl")];
        let tally = run(&paths, |case| Outcome::Object(case.object.clone()), &mut report).expect("a report");

        let report = String::from_utf8(report).expect("text");
        assert_eq!(tally, Tally { passed: 2, failed: 4 }, "{report}");
        for part in [
            "FAIL wrong (read, ",
            "+ .a: 1",
            "a.jsonl:4: not a vector",
            "torn.jsonl.gz:1 cannot",
            "absent.jsonl cannot",
        ] {
            assert!(report.contains(part), "{part} is missing in:\n{report}");
        }
    }
}
