//! How a plan is printed: numbered steps with their commands for people, everything for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use etch_core::impact::Counts;
use etch_lint::Finding;
use etch_lint::upgrade_plan::{DryRun, Phase, Step, StepKind};
use serde_json::{Value, json};

use super::planned::Planned;
use crate::markdown::{code, write_command};
use crate::{Style, Tone, plain};

/// Everything that is planned, as JSON.
pub fn document(all: &[Planned]) -> Value {
    json!({ "crds": all.iter().map(crd).collect::<Vec<_>>() })
}

fn crd(Planned { impact, has_objects, dry_run, plan }: &Planned) -> Value {
    let (dry_run, why) = match dry_run {
        DryRun::NotAsked => (Value::Null, None),
        DryRun::SameAsInstalled => ("same".into(), None),
        DryRun::Accepted { conflicts: false } => ("accepted".into(), None),
        DryRun::Accepted { conflicts: true } => ("conflicts".into(), None),
        DryRun::Refused(why) | DryRun::Guarded { refusal: why, .. } => ("refused".into(), Some(why)),
        DryRun::Failed(why) => ("failed".into(), Some(why)),
    };
    let finding = |finding: &Finding| {
        json!({
            "code": finding.rule.code, "severity": finding.rule.severity.as_str(), "version": finding.version,
            "path": finding.place(), "message": finding.message,
        })
    };
    let findings = |findings: &[Finding]| findings.iter().map(finding).collect::<Vec<_>>();
    let Counts { total, protected, hidden, invalid, open, .. } = impact.tally.counts;
    let objects = has_objects.then(|| {
        json!({
            "total": total, "protectedByPersist": protected, "hidden": hidden, "invalid": invalid,
            "unknown": open,
        })
    });
    json!({
        "crd": impact.crd,
        "storageVersion": { "old": impact.old_version, "new": impact.new_version },
        "dryRun": { "answer": dry_run, "message": why },
        "refused": findings(&impact.refusals),
        "incompatible": findings(&impact.incompatible),
        "objects": objects,
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "unknown": plan.unknown,
    })
}

fn step(Step { kind, phase, what, why, command }: &Step) -> Value {
    json!({
        "step": kind.as_str(), "phase": phase.as_str(), "what": what, "why": why, "command": command,
    })
}

/// The steps of all CRDs, one after the other: every one before the upgrade comes before it, whatever CRD it
/// is about, because one file may bring all of them.
struct Printed<'a> {
    step: &'a Step,
    /// The CRD, where there are several.
    of: Option<&'a str>,
}

/// The steps in order. The files are applied once, for all CRDs: by force where one of them needs it.
fn in_order(all: &[Planned]) -> Vec<Printed<'_>> {
    let steps = all.iter().flat_map(|planned| {
        let of = (all.len() > 1).then_some(planned.impact.crd.as_str());
        planned.plan.steps.iter().map(move |step| Printed { step, of })
    });
    let mut steps: Vec<Printed<'_>> = steps.collect();
    // Sorting is stable.
    steps.sort_by_key(|printed| printed.step.phase);
    let applies = |printed: &Printed<'_>| printed.step.kind == StepKind::Apply;
    let by_force = steps.iter().position(|printed| applies(printed) && !printed.step.why.is_empty());
    let kept = by_force.or_else(|| steps.iter().position(applies));
    let mut index = 0..;
    steps.retain(|printed| index.next() == kept || !applies(printed));
    steps
}

impl Printed<'_> {
    /// What to do, with the CRD that it is about.
    fn what(&self) -> String {
        match self.of {
            Some(_) if self.step.kind == StepKind::Apply => "Apply the CRDs, all at once".to_owned(),
            Some(crd) => format!("{crd}: {}", self.step.what),
            None => self.step.what.clone(),
        }
    }
}

/// The CRDs, and the steps for people in one numbered list.
///
/// # Errors
/// What the writer answers.
pub fn table(out: &mut dyn Write, style: &Style, all: &[Planned]) -> io::Result<()> {
    for planned in all {
        let name = style.paint(Tone::Strong, plain(&planned.impact.crd));
        writeln!(out, "{name} ({}){}", versions(planned), nothing(planned, all))?;
    }
    if all.iter().all(|planned| planned.plan.steps.is_empty()) {
        writeln!(out, "Nothing to do.")?;
    }
    let mut phase = None;
    for (index, printed) in in_order(all).iter().enumerate() {
        if phase != Some(printed.step.phase) {
            phase = Some(printed.step.phase);
            writeln!(out, "\n{}", style.paint(Tone::Strong, head(printed.step.phase)))?;
        }
        let what = printed.what();
        writeln!(out, "{:>3}. {}", index + 1, style.paint(tone(printed.step.kind), plain(&what)))?;
        for why in &printed.step.why {
            writeln!(out, "     - {}", plain(why))?;
        }
        if let Some(command) = &printed.step.command {
            writeln!(out, "     $ {}", plain(command))?;
        }
    }
    let unknown = unknown(all);
    if !unknown.is_empty() {
        writeln!(out, "\n{}", style.paint(Tone::Strong, "Not known"))?;
        for unknown in &unknown {
            writeln!(out, "     - {}", plain(unknown))?;
        }
    }
    writeln!(out)
}

/// The same for a comment on a pull request.
///
/// # Errors
/// What the writer answers.
pub fn markdown(out: &mut dyn Write, all: &[Planned]) -> io::Result<()> {
    writeln!(out, "## CRD upgrade plan\n")?;
    for planned in all {
        let nothing = nothing(planned, all);
        writeln!(out, "- {} ({}){nothing}", code(&planned.impact.crd), code(&versions(planned)))?;
    }
    writeln!(out)?;
    if all.iter().all(|planned| planned.plan.steps.is_empty()) {
        writeln!(out, "Nothing to do.\n")?;
    }
    for (index, printed) in in_order(all).iter().enumerate() {
        writeln!(out, "{}. **{}:** {}", index + 1, head(printed.step.phase), text(&printed.what()))?;
        for why in &printed.step.why {
            writeln!(out, "   - {}", code(why))?;
        }
        if let Some(command) = &printed.step.command {
            writeln!(out)?;
            write_command(out, "   ", command)?;
        }
        writeln!(out)?;
    }
    let unknown = unknown(all);
    if !unknown.is_empty() {
        writeln!(out, "Not known:\n")?;
        for unknown in &unknown {
            writeln!(out, "- {}", text(unknown))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What follows the name of a CRD without steps among others with some.
fn nothing(planned: &Planned, all: &[Planned]) -> &'static str {
    let is_one_of_some =
        planned.plan.steps.is_empty() && all.iter().any(|other| !other.plan.steps.is_empty());
    if is_one_of_some { ": nothing to do" } else { "" }
}

/// What is not known, with the CRD where there are several and it is not the same for all.
fn unknown(all: &[Planned]) -> Vec<String> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut order = Vec::new();
    for planned in all {
        for unknown in &planned.plan.unknown {
            let crds = found.entry(unknown).or_default();
            if crds.is_empty() {
                order.push(unknown.as_str());
            }
            crds.push(&planned.impact.crd);
        }
    }
    let named = |unknown: &str| match &found[unknown] {
        crds if crds.len() == all.len() => unknown.to_owned(),
        crds => format!("{}: {unknown}", crds.join(", ")),
    };
    order.into_iter().map(named).collect()
}

fn versions(Planned { impact, .. }: &Planned) -> String {
    plain(&impact.versions()).into_owned()
}

fn head(phase: Phase) -> &'static str {
    match phase {
        Phase::Before => "Before the upgrade",
        Phase::Upgrade => "Upgrade",
        Phase::After => "After the upgrade",
    }
}

fn tone(kind: StepKind) -> Tone {
    match kind {
        StepKind::Fix | StepKind::Repair => Tone::Bad,
        StepKind::Review | StepKind::Unignore | StepKind::Save | StepKind::Hold => Tone::Warning,
        _ => Tone::Plain,
    }
}

/// A sentence of ours, with the names of others in it.
fn text(sentence: &str) -> String {
    let special = |character: char| "\\*_[]<>|#@".contains(character);
    let mut text = String::with_capacity(sentence.len());
    for character in plain(sentence).chars() {
        if special(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}
