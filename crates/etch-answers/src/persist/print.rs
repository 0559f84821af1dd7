//! The results of a pass, or of a dry run, as text and as JSON or YAML.
//! They claim nothing about an object that was left out.

use std::io::{self, Write};

use etch_core::api::{Counts, DroppedField};
use etch_core::scope::Scope;
use serde_json::{Value, json};

use super::CrdPass;
use super::plan::UNPROVED;
use crate::sample::write_left;
use crate::scope::in_document;
use crate::{Cell, Style, Table, Tone, counted};

/// A number of the totals, and its label for that many objects.
type Count = (&'static str, fn(&Counts) -> u64, &'static str);

const COUNTS: [Count; 10] = [
    ("written", |counts| counts.written, "written"),
    ("due", |counts| counts.due, "to be written"),
    ("unproved", |counts| counts.unproved, UNPROVED),
    ("alreadyStored", |counts| counts.already_stored, "already stored"),
    ("held", |counts| counts.held, "held"),
    ("rejected", |counts| counts.rejected, "rejected"),
    ("ignored", |counts| counts.ignored, "ignored by annotation"),
    ("terminating", |counts| counts.terminating, "being deleted"),
    ("tooDeep", |counts| counts.too_deep, "nested too deeply"),
    ("unknown", |counts| counts.unknown, "unknown"),
];

/// The answer for programs. `not_begun` CRDs were left over.
pub fn document(all: &[CrdPass], not_begun: u64, scope: &Scope, dry_run: bool) -> Value {
    let document = json!({
        "crds": all.iter().map(|crd_pass| crd_pass.document(dry_run)).collect::<Vec<_>>(),
        "totals": totals(all, not_begun),
    });
    in_document(document, scope)
}

fn sum(all: &[CrdPass], count: impl Fn(&Counts) -> u64) -> u64 {
    all.iter().map(|crd_pass| count(&crd_pass.passed.counts)).sum()
}

fn left_out(all: &[CrdPass]) -> u64 {
    all.iter().map(|crd_pass| crd_pass.passed.left_out).sum()
}

/// How many CRDs were not processed to the end: those that failed or were interrupted, and those that were
/// not begun.
fn not_completed(all: &[CrdPass], not_begun: u64) -> u64 {
    all.iter().filter(|crd_pass| crd_pass.error.is_some()).count() as u64 + not_begun
}

fn totals(all: &[CrdPass], not_begun: u64) -> Value {
    let mut totals = json!({
        "objects": sum(all, |counts| counts.objects),
        "notLookedAt": left_out(all),
        "crds": all.len() as u64 + not_begun,
        "crdsNotCompleted": not_completed(all, not_begun),
    });
    for (key, count, _) in COUNTS {
        totals[key] = sum(all, count).into();
    }
    totals
}

/// The totals as a sentence.
fn summary(all: &[CrdPass], not_begun: u64) -> String {
    let objects = counted(sum(all, |counts| counts.objects), "object");
    let mut parts: Vec<String> = COUNTS
        .iter()
        .filter_map(|(_, count, what)| Some((sum(all, count), what)).filter(|(number, _)| *number > 0))
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    let (left_out, left) = (left_out(all), not_completed(all, not_begun));
    if parts.is_empty() && left == 0 {
        parts.push("nothing to do".to_owned());
    }
    let mut sentences: Vec<String> =
        Some(parts.join(", ")).filter(|parts| !parts.is_empty()).into_iter().collect();
    if left_out > 0 {
        sentences.push(format!("{left_out} not checked"));
    }
    let crds = counted(all.len() as u64 + not_begun, "CRD");
    if left > 0 {
        sentences.push(format!("{left} of {crds} not completed"));
    }
    format!("{objects} of {crds}: {}.", sentences.join("; "))
}

/// Writes the answer for people, with no more objects of each CRD than the limit.
///
/// # Errors
/// What the writer answers.
pub fn table(
    out: &mut dyn Write,
    style: &Style,
    all: &[CrdPass],
    not_begun: u64,
    dry_run: bool,
    limit: Option<usize>,
) -> io::Result<()> {
    if dry_run {
        plans(out, style, all)?;
    } else {
        numbers(out, style, all)?;
        problems(out, style, all, limit)?;
        drops(out, style, all)?;
    }
    writeln!(out, "\n{}", summary(all, not_begun))?;
    if sum(all, |counts| counts.unproved) > 0 {
        let does_nothing_else = !all.iter().any(|crd_pass| crd_pass.plans.drops());
        let if_stored = if does_nothing_else { "; it changes nothing if they do" } else { "" };
        writeln!(out, "Only a write shows whether unproved objects store their defaults{if_stored}.")?;
    }
    Ok(())
}

fn numbers(out: &mut dyn Write, style: &Style, all: &[CrdPass]) -> io::Result<()> {
    let mut table = Table::new([
        "CRD",
        "OBJECTS",
        "WRITTEN",
        "STORED",
        "HELD",
        "REJECTED",
        "IGNORED",
        "TERMINATING",
        "UNKNOWN",
        "NOTE",
    ])
    .numbers(&["OBJECTS", "WRITTEN", "STORED", "HELD", "REJECTED", "IGNORED", "TERMINATING", "UNKNOWN"]);
    for crd_pass in all {
        let counts = crd_pass.passed.counts;
        let numbers = [
            counts.objects,
            counts.written,
            counts.already_stored,
            counts.held,
            counts.rejected,
            counts.ignored,
            counts.terminating,
            counts.too_deep + counts.unknown,
        ];
        let numbers = numbers.iter().map(|number| Cell::from(number.to_string()));
        table.row([Cell::from(crd_pass.crd.as_str())].into_iter().chain(numbers).chain([crd_pass.note()]));
    }
    table.write(out, style)
}

fn problems(out: &mut dyn Write, style: &Style, all: &[CrdPass], limit: Option<usize>) -> io::Result<()> {
    let mut problems = Table::new(["CRD", "OBJECT", "REASON", "WHY"]);
    let mut left = 0;
    for crd_pass in all {
        let known = &crd_pass.passed.problems;
        let first = limit.map_or(known.len(), |limit| limit.min(known.len()));
        left += (known.len() - first) as u64;
        for problem in &known[..first] {
            let name = named(problem.namespace.as_deref(), &problem.name);
            problems.row([
                crd_pass.crd.as_str().into(),
                name.into(),
                problem.reason.as_str().into(),
                problem.in_words().into(),
            ]);
        }
    }
    problems.write_below(out, style)?;
    write_left(out, left)
}

/// The hidden fields that writes have destroyed.
fn drops(out: &mut dyn Write, style: &Style, all: &[CrdPass]) -> io::Result<()> {
    let mut drops = Table::new(["CRD", "DROPPED", "OBJECTS"]).numbers(&["OBJECTS"]);
    for crd_pass in all {
        for DroppedField { path, objects } in &crd_pass.passed.dropped {
            drops.row([crd_pass.crd.as_str().into(), path.as_str().into(), objects.to_string().into()]);
        }
    }
    if drops.is_empty() {
        return Ok(());
    }
    drops.write_below(out, style)?;
    writeln!(out, "The schema no longer has these fields; etcd may have held values there.")
}

/// The numbers first, by action and place; then the first objects.
fn plans(out: &mut dyn Write, style: &Style, all: &[CrdPass]) -> io::Result<()> {
    let mut numbers = Table::new(["CRD", "OBJECTS", "ACTION", "REASON", "WHERE"]).numbers(&["OBJECTS"]);
    let mut objects = Table::new(["CRD", "OBJECT", "ACTION", "REASON", "WHERE"]);
    for crd_pass in all {
        let crd = || Cell::from(crd_pass.crd.as_str());
        if let Some(error) = &crd_pass.error {
            let failed = Cell::new("failed", Tone::Bad);
            numbers.row([crd(), Cell::default(), failed, Cell::default(), error.as_str().into()]);
        }
        for cells in crd_pass.plans.summary.rows(|_| Tone::Plain) {
            numbers.row([crd()].into_iter().chain(cells));
        }
        for (identity, plan) in crd_pass.plans.objects.iter() {
            let broken = plan.broken.iter().take(1).map(|broken| format!("({broken})"));
            let notes = broken.chain(plan.dropped.iter().map(|path| format!("(drops {path})")));
            objects.row([crd()].into_iter().chain(plan.action.cells(identity, Tone::Plain, notes)));
        }
    }
    if numbers.is_empty() {
        return write!(out, "Nothing to do.");
    }
    numbers.write(out, style)?;
    objects.write_below(out, style)?;
    write_left(out, all.iter().map(|crd_pass| crd_pass.plans.objects.left()).sum())
}

fn named(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

impl CrdPass {
    fn note(&self) -> Cell {
        let left_out = self.passed.left_out;
        match (&self.error, &self.after) {
            (Some(error), _) => Cell::new(error, Tone::Bad),
            (None, Some(after)) if left_out > 0 => {
                let text = format!("{left_out} up to {} not checked", after.trim_start_matches('/'));
                Cell::new(text, Tone::Warning)
            }
            _ if !self.passed.verified => {
                Cell::new("not verified: objects changed in each verification; run it again", Tone::Warning)
            }
            _ => Cell::default(),
        }
    }

    fn document(&self, dry_run: bool) -> Value {
        let counts = self.passed.counts;
        let mut document = json!({
            "crd": self.crd,
            "objects": counts.objects,
            "alreadyStored": counts.already_stored,
            "held": counts.held,
            "ignored": counts.ignored,
            "terminating": counts.terminating,
            "tooDeep": counts.too_deep,
            "notLookedAt": self.passed.left_out,
        });
        if dry_run {
            document["due"] = counts.due.into();
            document["unproved"] = counts.unproved.into();
            document["plans"] =
                self.plans.objects.iter().map(|(identity, plan)| plan.document(identity)).collect();
        } else {
            document["written"] = counts.written.into();
            document["rejected"] = counts.rejected.into();
            document["unknown"] = counts.unknown.into();
            document["dropped"] = self.passed.dropped.iter().map(|field| json!(field)).collect();
            document["verified"] = self.passed.verified.into();
            document["recorded"] = (self.passed.proved.is_some() && self.unrecorded.is_none()).into();
            document["problems"] = self.passed.problems.iter().map(|problem| json!(problem)).collect();
        }
        if !self.warnings.is_empty() {
            document["warnings"] = json!(self.warnings);
        }
        for (key, value) in [("after", &self.after), ("error", &self.error), ("resume", &self.resume)] {
            if let Some(value) = value {
                document[key] = Value::from(value.as_str());
            }
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use etch_core::api::ObjectProblem;
    use etch_core::engine::by_hand::Passed;

    use super::*;

    fn crd_pass(written: u64, error: Option<&str>) -> CrdPass {
        let counts = Counts { objects: written, written, ..Counts::default() };
        let passed = Passed { counts, ..Passed::default() };
        CrdPass { passed, error: error.map(str::to_owned), ..CrdPass::default() }
    }

    #[test]
    fn a_table_lists_no_more_problems_than_the_limit() {
        let problem = |name: &str| ObjectProblem { name: name.to_owned(), ..ObjectProblem::default() };
        let problems = ["a", "b", "c"].map(problem).to_vec();
        let passed = Passed { problems, verified: true, ..Passed::default() };
        let all = [CrdPass { crd: "things.example.com".to_owned(), passed, ..CrdPass::default() }];
        let rows = |limit| {
            let mut out = Vec::new();
            table(&mut out, &Style::default(), &all, 0, false, limit).expect("memory");
            let text = String::from_utf8(out).expect("text");
            (
                text.matches("\nthings.example.com   ").count() - 1,
                text.contains("and 2 more; --limit 0 lists all"),
            )
        };
        assert_eq!((rows(None), rows(Some(3)), rows(Some(1))), ((3, false), (3, false), (1, true)));
    }

    #[test]
    fn totals_name_what_was_not_completed() {
        let done = [crd_pass(1, None), crd_pass(0, None)];
        assert_eq!(summary(&done, 0), "1 object of 2 CRDs: 1 written.");
        assert_eq!(summary(&[crd_pass(0, None)], 0), "0 objects of 1 CRD: nothing to do.");
        let ended = [crd_pass(7, None), crd_pass(3, Some("interrupted"))];
        assert_eq!(summary(&ended, 2), "10 objects of 4 CRDs: 10 written; 3 of 4 CRDs not completed.");
        assert_eq!(
            summary(&[crd_pass(0, Some("interrupted"))], 0),
            "0 objects of 1 CRD: 1 of 1 CRD not completed."
        );
        let totals = totals(&ended, 2);
        assert_eq!((&totals["crds"], &totals["crdsNotCompleted"]), (&json!(4), &json!(3)));
    }
}
