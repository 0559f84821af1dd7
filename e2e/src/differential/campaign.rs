//! Asks the oracle and a subject the same cases, and keeps what they disagree on. It must not take the API
//! server's own wavering for a mistake: what it answers only sometimes is agreement too.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::anyhow;
use parking_lot::Mutex;

use super::build::Release;
use super::generate::{Seeds, case};
use super::oracle::{Answer, Oracle};
use super::shrink::shrink;
use crate::conformance::{Case, Issue, Op, Outcome, Vector, compare, compare_words, settle, without_quotes};

/// Cases that a worker takes at a time.
const BATCH: u64 = 64;
/// Evaluations that show whether the API server always gives the same answer.
const REPEAT: u32 = 40;
/// Cases tried at most to make one mismatch small.
const SHRINK_TRIES: usize = 4_000;

/// The subject that is compared with the oracle.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// A function of this program.
    Function(&'a (dyn Fn(&Case) -> Outcome + Sync)),
    /// The API server's code of another release.
    Release(Release),
}

/// What to run.
#[derive(Clone, Copy)]
pub struct Campaign<'a> {
    /// Whose answers are right.
    pub release: Release,
    /// The subject whose answers are compared.
    pub subject: Subject<'a>,
    /// Where all cases come from.
    pub seed: u64,
    /// What real CRDs cases may grow out of.
    pub seeds: &'a Seeds,
    /// The first case's number.
    pub first: u64,
    /// Cases at most.
    pub pairs: u64,
    /// When to stop.
    pub until: Option<Instant>,
    /// Kinds of mismatches after which to stop.
    pub kinds: usize,
    /// Oracles at work at a time; none for as many as there are cores.
    pub workers: Option<NonZeroUsize>,
}

/// How a campaign of one op went.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases answered by both and compared.
    pub compared: u64,
    /// Cases that the API server's code could not answer, by the reason that it gave.
    pub unanswered: BTreeMap<String, u64>,
    /// Cases in which the API server does not always give the same answer, and the subject gave one of them.
    pub wavering: u64,
    /// One mismatch of each kind, and how many there were of it.
    pub mismatches: BTreeMap<String, Mismatch>,
}

/// Cases on which subject and oracle disagree in the same way.
#[derive(Debug)]
pub struct Mismatch {
    /// How many cases.
    pub count: u64,
    /// The first of them, made small, with the oracle's answer.
    pub vector: Vector,
    /// How the subject's answer to it differs.
    pub diff: String,
}

impl Campaign<'_> {
    /// Runs the campaign of one op.
    ///
    /// # Errors
    /// An oracle cannot be built or started, or it dies.
    pub fn run(&self, op: Op) -> anyhow::Result<Report> {
        let workers = self.workers.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let report = Mutex::new(Report::default());
        thread::scope(|scope| {
            let running: Vec<_> =
                (0..workers).map(|_| scope.spawn(|| self.work(op, &next, &stop, &report))).collect();
            running.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|_| Err(anyhow!("a worker of the campaign panicked")))
            })
        })?;
        Ok(report.into_inner())
    }

    fn work(
        &self,
        op: Op,
        next: &AtomicU64,
        stop: &AtomicBool,
        report: &Mutex<Report>,
    ) -> anyhow::Result<()> {
        let mut bench = Bench::new(self)?;
        loop {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            let late = self.until.is_some_and(|until| Instant::now() >= until);
            if from >= self.pairs || late || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let numbers = self.first + from..self.first + (from + BATCH).min(self.pairs);
            let cases: Vec<_> =
                numbers.clone().map(|number| case(self.seeds, self.seed, number, op)).collect();
            let verdicts = match bench.judge(&cases, 1) {
                Ok(verdicts) => verdicts,
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error.context(format!("{op}, seed {}, cases {numbers:?}", self.seed)));
                }
            };
            let mut suspects = Vec::new();
            {
                let mut report = report.lock();
                for ((number, case), verdict) in numbers.zip(cases).zip(verdicts) {
                    match verdict {
                        Verdict::Agreed => report.compared += 1,
                        Verdict::Unanswered(why) => *report.unanswered.entry(why).or_default() += 1,
                        Verdict::Differs { .. } => suspects.push((number, case)),
                    }
                }
            }
            for (number, case) in suspects {
                self.examine(&mut bench, number, &case, stop, report)?;
            }
        }
    }

    /// Distinguishes a mistake from wavering, and makes the first one of each kind small.
    fn examine(
        &self,
        bench: &mut Bench<'_>,
        number: u64,
        suspect: &Case,
        stop: &AtomicBool,
        report: &Mutex<Report>,
    ) -> anyhow::Result<()> {
        let report = || report.lock();
        let verdict = bench.judge(std::slice::from_ref(suspect), REPEAT)?.pop();
        let Some(Verdict::Differs { expected, found }) = verdict else {
            let mut report = report();
            report.compared += 1;
            report.wavering += 1;
            return Ok(());
        };
        let kind = kind_of(suspect.op, &expected, &found);
        {
            let mut report = report();
            report.compared += 1;
            if let Some(known) = report.mismatches.get_mut(&kind) {
                known.count += 1;
                return Ok(());
            }
        }
        let fails_alike = |verdict: &Verdict| match verdict {
            Verdict::Differs { expected, found } => kind_of(suspect.op, expected, found) == kind,
            _ => false,
        };
        let small = shrink(suspect, SHRINK_TRIES, |cases| {
            bench.judge(cases, 6).map(|verdicts| verdicts.iter().map(fails_alike).collect())
        })?;
        let (case, expected, found) = match bench.judge(std::slice::from_ref(&small), REPEAT)?.pop() {
            Some(Verdict::Differs { expected, found }) => (small, expected, found),
            _ => (suspect.clone(), expected, found),
        };
        let diff = compare_words(case.op, &expected, &found).err().unwrap_or_default();
        let id = format!("{}-{}-{number}", case.op, self.seed);
        let vector = Vector { id, case, expect: expected };
        let mut report = report();
        match report.mismatches.get_mut(&kind) {
            Some(known) => known.count += 1,
            None => drop(report.mismatches.insert(kind, Mismatch { count: 1, vector, diff })),
        }
        if report.mismatches.len() >= self.kinds {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

enum Verdict {
    Agreed,
    Unanswered(String),
    Differs { expected: Outcome, found: Outcome },
}

/// A worker's two contestants.
struct Bench<'a> {
    oracle: Oracle,
    subject: Contestant<'a>,
}

enum Contestant<'a> {
    Function(&'a (dyn Fn(&Case) -> Outcome + Sync)),
    Oracle(Box<Oracle>),
}

impl<'a> Bench<'a> {
    fn new(campaign: &Campaign<'a>) -> anyhow::Result<Self> {
        let subject = match campaign.subject {
            Subject::Function(function) => Contestant::Function(function),
            Subject::Release(release) => Contestant::Oracle(Box::new(Oracle::start(release)?)),
        };
        Ok(Self { oracle: Oracle::start(campaign.release)?, subject })
    }

    fn judge(&mut self, cases: &[Case], repeat: u32) -> anyhow::Result<Vec<Verdict>> {
        self.oracle.ask(cases, repeat);
        // The subject works while the oracle does.
        let found: Vec<Answer> = match &mut self.subject {
            Contestant::Function(function) => {
                cases.iter().map(|case| Answer::Outcomes(vec![function(case)])).collect()
            }
            Contestant::Oracle(other) => {
                other.ask(cases, repeat);
                cases.iter().map(|_| other.answer()).collect::<anyhow::Result<_>>()?
            }
        };
        let mut verdicts = Vec::with_capacity(cases.len());
        for (case, found) in cases.iter().zip(found) {
            let (mut expected, mut found) = match (self.oracle.answer()?, found) {
                (Answer::Outcomes(expected), Answer::Outcomes(found)) => (expected, found),
                (Answer::None(why), _) | (_, Answer::None(why)) => {
                    verdicts.push(Verdict::Unanswered(why.lines().next().unwrap_or_default().to_owned()));
                    continue;
                }
            };
            let agreed = expected
                .iter()
                .any(|expected| found.iter().any(|found| compare_words(case.op, expected, found).is_ok()));
            verdicts.push(if agreed {
                Verdict::Agreed
            } else {
                let expected = expected.swap_remove(0);
                let found = settle(&found.swap_remove(0), &expected);
                Verdict::Differs { expected, found }
            });
        }
        Ok(verdicts)
    }
}

/// A name for the way in which two answers differ, without names and values of the case.
fn kind_of(op: Op, expected: &Outcome, found: &Outcome) -> String {
    let words = |text: &str| {
        let plain = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_alphabetic());
        text.split_whitespace().filter(plain).take(8).collect::<Vec<_>>().join(" ")
    };
    let details = op == Op::Structural || op.is_about_crds() || compare(op, expected, found).is_ok();
    match (expected, found) {
        (Outcome::Issues(expected), Outcome::Issues(found)) => {
            let only = |these: &[Issue], others: &[Issue], sign: &str| {
                let alone = |issue: &&Issue| {
                    !others.iter().any(|other| {
                        other.kind == issue.kind
                            && other.field == issue.field
                            && (!details || without_quotes(other).detail == without_quotes(issue).detail)
                    })
                };
                these.iter().find(alone).map(|issue| format!("{sign}{} {}", issue.kind, words(&issue.detail)))
            };
            [only(expected, found, "-"), only(found, expected, "+")]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ")
        }
        (Outcome::Object(_), Outcome::Object(_)) => {
            let diff = compare(op, expected, found).err().unwrap_or_default();
            let gist = |line: &str| {
                let value = line.split_once(": ").map_or("", |(_, value)| value);
                let what = match value.chars().next() {
                    Some('"') => "text",
                    Some('{') => "object",
                    Some('[') => "list",
                    Some('n') => "null",
                    Some('t' | 'f') => "boolean",
                    _ => "number",
                };
                format!("{}{what}", line.chars().next().unwrap_or(' '))
            };
            let lines: Vec<_> = diff.lines().take(2).map(gist).collect();
            format!("object {}", lines.join(" "))
        }
        (Outcome::Refused(why), _) => format!("-refused {}", words(why)),
        (_, Outcome::Refused(why)) => format!("+refused {}", words(why)),
        _ => "different kinds of answers".to_owned(),
    }
}
