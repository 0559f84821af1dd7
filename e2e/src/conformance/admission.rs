//! Vectors of what a provider's own webhooks answered, and how EmbeddedSchemas answer the same requests.
//! It has no rule of a provider: it asks, compares and counts.
//!
//! A line is skipped where no schema is for its platform, and where the vectors state that the answer depends
//! on how Go decodes and writes values: their README has the flags. Updates are judged as if all of them were
//! new, as those webhooks do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use etch::source;
use etch_admission::{Compiled, Lookup, Named, Operation, Request, Review, review};
use flate2::bufread::MultiGzDecoder;
use kube_structural_schema::json::{Json, same};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Tally;

/// Lines with these flags are about Go's decoder, not about rules.
const FLAGS: [&str; 5] = ["decodeError", "goCoerced", "goDropped", "goRemarshal", "panic"];

/// How many ids are shown beside a disagreement.
const SHOWN: usize = 5;

/// One line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// What names it in reports.
    pub id: String,
    /// What is done to the object.
    pub operation: Operation,
    platform: String,
    /// What the webhook knew of its cluster.
    pub facts: Map<String, Value>,
    /// The object as the webhook gets it.
    pub object: Json,
    old_object: Option<Json>,
    #[serde(default)]
    secrets: Vec<String>,
    expect: Expected,
}

#[derive(Debug, Deserialize)]
struct Expected {
    allowed: bool,
    defaulted: Option<Json>,
    errors: Vec<ExpectedError>,
    #[serde(flatten)]
    flags: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct ExpectedError {
    field: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The schemas that answer.
#[derive(Debug)]
pub struct Schemas(Vec<(String, Compiled)>);

impl Schemas {
    /// Reads the EmbeddedSchemas of files and folders.
    ///
    /// # Errors
    /// There is none, or one that cannot be served.
    pub fn read(paths: &[PathBuf]) -> Result<Self> {
        let found = source::embedded_schemas(paths, &mut io::empty())?;
        Ok(Self(found.into_iter().map(|one| (one.name, one.schema.without_ratcheting())).collect()))
    }

    /// Whether there is a schema for a platform: one whose name ends with it.
    fn has(&self, platform: &str) -> bool {
        let ending = format!("-{}", platform.to_lowercase());
        self.0.iter().any(|(name, _)| name.ends_with(&ending))
    }

    /// Answers a line; `object` replaces the line's own.
    pub fn review(&self, line: &Line, object: &Value) -> Review {
        let exists = |lookup: &Lookup<'_>| {
            let name = format!("{}/{}", lookup.namespace, lookup.name);
            (lookup.resource == "secrets").then(|| line.secrets.contains(&name))
        };
        let facts: Vec<(&Compiled, Value)> =
            self.0.iter().map(|(_, schema)| (schema, schema.facts(&line.facts).0)).collect();
        let schemas: Vec<(&Compiled, &Value)> =
            facts.iter().map(|(schema, facts)| (*schema, facts)).collect();
        let request = Request {
            named: Named::Kind,
            operation: line.operation,
            object,
            old_object: line.old_object.as_deref(),
            facts: &Value::Null,
            exists: &exists,
        };
        review(&schemas, &request)
    }
}

impl Line {
    /// Reads a line of a file.
    ///
    /// # Errors
    /// It is no vector.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("not a vector")
    }

    /// Whether the webhooks let it pass.
    pub fn is_allowed(&self) -> bool {
        self.expect.allowed
    }

    /// The object with what the mutating webhook has set; `None` if that has refused it.
    pub fn defaulted(&self) -> Option<&Json> {
        self.expect.defaulted.as_ref()
    }

    /// Whether it is about decoding.
    pub fn is_flagged(&self) -> bool {
        FLAGS.iter().any(|flag| self.expect.flags.contains_key(*flag))
    }

    /// Where an answer differs, by rule; nothing where it agrees.
    pub fn disagreements(&self, review: &Review) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        if self.expect.allowed != review.answer.is_allowed() {
            let expected = if self.expect.allowed { "allowed" } else { "denied" };
            found.insert(format!("expected to be {expected}"));
        }
        let expected: BTreeMap<&str, &str> =
            self.expect.errors.iter().map(|error| (&*error.field, &*error.kind)).collect();
        let given: BTreeMap<&str, &str> =
            review.answer.errors.iter().map(|error| (&*error.field, error.kind.as_str())).collect();
        for (field, kind) in expected.iter().filter(|(field, _)| !given.contains_key(*field)) {
            found.insert(format!("no error at {} ({kind})", without_indices(field)));
        }
        for (field, kind) in given.iter().filter(|(field, _)| !expected.contains_key(*field)) {
            found.insert(format!("error at {} ({kind})", without_indices(field)));
        }
        if self.operation == Operation::Create {
            match (&self.expect.defaulted, &review.object) {
                (Some(expected), Some(given)) => {
                    for change in etch_core::patch::patch(expected, given) {
                        let change = serde_json::to_value(change).unwrap_or_default();
                        let path = change["path"].as_str().unwrap_or_default().to_owned();
                        found.insert(format!("object differs at {path}"));
                    }
                }
                (None, Some(_)) => drop(found.insert("object is defaulted".to_owned())),
                (Some(_), None) => drop(found.insert("object is not defaulted".to_owned())),
                (None, None) => {}
            }
        }
        found
    }

    /// Whether the types of errors agree too.
    fn kinds_agree(&self, review: &Review) -> bool {
        let expected: BTreeSet<_> =
            self.expect.errors.iter().map(|error| (&*error.field, &*error.kind)).collect();
        let given: BTreeSet<_> =
            review.answer.errors.iter().map(|error| (&*error.field, error.kind.as_str())).collect();
        expected == given
    }
}

/// `disks[0].name` is the same rule as `disks[1].name`.
fn without_indices(field: &str) -> String {
    let mut written = String::new();
    for part in field.split_inclusive(['[', ']']) {
        match part.strip_suffix(']') {
            Some(index) if index.bytes().all(|byte| byte.is_ascii_digit()) => written.push_str("*]"),
            _ => written.push_str(part),
        }
    }
    written
}

/// Which laws of defaulting an answer breaks: a present value is never changed, but an empty one may be;
/// defaulting twice equals defaulting once; the same request has the same answer.
pub fn broken_laws(schemas: &Schemas, line: &Line) -> Vec<&'static str> {
    let first = schemas.review(line, &line.object);
    let mut broken = Vec::new();
    if schemas.review(line, &line.object) != first {
        broken.push("the same request has another answer");
    }
    let Some(object) = &first.object else { return broken };
    if !keeps(&line.object, object) {
        broken.push("a present value was changed or dropped");
    }
    if schemas.review(line, object).object.is_none_or(|second| !same(&second, object)) {
        broken.push("defaulting twice is not defaulting once");
    }
    if line.operation == Operation::Update && !same(object, &line.object) {
        broken.push("an update was defaulted");
    }
    broken
}

/// Whether everything that was there is unchanged, except null and empty values.
fn keeps(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(name, value)| after.get(name).is_some_and(|after| keeps(value, after)))
        }
        (Value::Array(before), Value::Array(after)) if !before.is_empty() => {
            before.len() == after.len()
                && before.iter().zip(after).all(|(before, after)| keeps(before, after))
        }
        (before, after) => {
            same(before, after)
                || before.is_null()
                || [Value::from(""), Value::from(0), Value::from(false), Value::Array(Vec::new())]
                    .iter()
                    .any(|empty| same(before, empty))
        }
    }
}

/// The results of a platform's lines.
#[derive(Debug, Default)]
struct Count {
    passed: usize,
    failed: usize,
    same_types: usize,
}

/// Answers all lines of `paths` by `schemas` and writes the disagreements by rule to `report`.
///
/// # Errors
/// Files cannot be read, or `report` not written.
pub fn run(schemas: &Schemas, paths: &[PathBuf], report: &mut impl Write) -> Result<Tally> {
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut rules: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    each_line(paths, &mut |line| {
        if !schemas.has(&line.platform) {
            *skipped.entry(format!("no schema for {}", line.platform)).or_default() += 1;
            return;
        }
        if line.is_flagged() {
            *skipped.entry(format!("{}: about Go's decoder", line.platform)).or_default() += 1;
            return;
        }
        let review = schemas.review(&line, &line.object);
        let disagreements = line.disagreements(&review);
        let count = counts.entry(line.platform.clone()).or_default();
        count.same_types += usize::from(line.kinds_agree(&review));
        if disagreements.is_empty() {
            count.passed += 1;
            return;
        }
        count.failed += 1;
        for rule in disagreements {
            rules.entry((line.platform.clone(), rule)).or_default().push(line.id.clone());
        }
    })?;
    for ((platform, rule), ids) in &rules {
        let shown = ids.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if ids.len() > SHOWN { ", …" } else { "" };
        writeln!(report, "{platform}: {rule}: {} ({shown}{more})", ids.len())?;
    }
    for (platform, Count { passed, failed, same_types }) in &counts {
        let lines = passed + failed;
        let percent = *passed as f64 * 100.0 / lines as f64;
        writeln!(
            report,
            "{platform}: {passed} of {lines} agree ({percent:.2} %); the types of errors agree in \
             {same_types}"
        )?;
    }
    for (why, lines) in &skipped {
        writeln!(report, "{lines} skipped: {why}")?;
    }
    let sum = |of: fn(&Count) -> usize| counts.values().map(of).sum();
    Ok(Tally { passed: sum(|count| count.passed), failed: sum(|count| count.failed) })
}

/// Visits the vectors of files and folders.
///
/// # Errors
/// One that cannot be read, with its place.
pub fn each_line(paths: &[PathBuf], visit: &mut dyn FnMut(Line)) -> Result<()> {
    for path in paths {
        if path.is_dir() {
            let entries = path.read_dir().with_context(|| format!("read {}", path.display()))?;
            let mut below: Vec<PathBuf> =
                entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
            below.retain(|path| path.is_dir() || is_vectors(path));
            below.sort();
            each_line(&below, visit)?;
            continue;
        }
        for (number, text) in opened(path)?.lines().enumerate() {
            let place = || format!("{}:{}", path.display(), number + 1);
            let text = text.with_context(place)?;
            if !text.trim().is_empty() {
                visit(Line::parse(&text).with_context(place)?);
            }
        }
    }
    Ok(())
}

fn is_vectors(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(".jsonl") || path.ends_with(".jsonl.gz"))
}

fn opened(path: &Path) -> Result<BufReader<Box<dyn Read>>> {
    let file = File::open(path).with_context(|| format!("read {}", path.display()))?;
    let zipped = path.extension().is_some_and(|ending| ending == "gz");
    let reader: Box<dyn Read> =
        if zipped { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { Box::new(file) };
    Ok(BufReader::new(reader))
}
