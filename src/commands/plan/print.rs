//! How a plan is printed: numbered steps with their commands for people, everything for programs.

use std::io::{self, Write};

use etch::report::markdown::{code, write_command};
use etch::report::{self, Style, Tone};
use etch_core::impact::Counts;
use etch_lint::Finding;
use etch_lint::upgrade_plan::{DryRun, Phase, Step, StepKind};
use serde_json::{Value, json};

use super::Planned;

/// Everything that is planned, as JSON.
pub(super) fn document(all: &[Planned]) -> Value {
    json!({ "crds": all.iter().map(crd).collect::<Vec<_>>() })
}

fn crd(Planned { impact, dry_run, plan }: &Planned) -> Value {
    let (dry_run, why) = match dry_run {
        DryRun::NotAsked => (Value::Null, None),
        DryRun::SameAsInstalled => ("same".into(), None),
        DryRun::Accepted { conflicts: false } => ("accepted".into(), None),
        DryRun::Accepted { conflicts: true } => ("conflicts".into(), None),
        DryRun::Refused(why) => ("refused".into(), Some(why)),
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
    json!({
        "crd": impact.crd,
        "storageVersion": { "old": impact.old_version, "new": impact.new_version },
        "dryRun": { "answer": dry_run, "message": why },
        "refused": findings(&impact.refusals),
        "incompatible": findings(&impact.incompatible),
        "objects": {
            "total": total, "protectedByPersist": protected, "hidden": hidden, "invalid": invalid, "unknown": open,
        },
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "unknown": plan.unknown,
    })
}

fn step(Step { kind, phase, what, why, command }: &Step) -> Value {
    json!({
        "step": kind.as_str(), "phase": phase.as_str(), "what": what, "why": why, "command": command,
    })
}

/// The steps for people: those of a CRD are numbered.
pub(super) fn table(out: &mut dyn Write, style: &Style, all: &[Planned]) -> io::Result<()> {
    for planned in all {
        let name = style.paint(Tone::Strong, report::plain(&planned.impact.crd));
        writeln!(out, "{name} ({})", versions(planned))?;
        if planned.plan.steps.is_empty() {
            writeln!(out, "Nothing to do.")?;
        }
        let mut phase = None;
        for (index, step) in planned.plan.steps.iter().enumerate() {
            if phase != Some(step.phase) {
                phase = Some(step.phase);
                writeln!(out, "\n{}", style.paint(Tone::Strong, head(step.phase)))?;
            }
            let what = report::plain(&step.what);
            writeln!(out, "{:>3}. {}", index + 1, style.paint(tone(step.kind), what))?;
            for why in &step.why {
                writeln!(out, "     - {}", report::plain(why))?;
            }
            if let Some(command) = &step.command {
                writeln!(out, "     $ {}", report::plain(command))?;
            }
        }
        if !planned.plan.unknown.is_empty() {
            writeln!(out, "\n{}", style.paint(Tone::Strong, "Not known"))?;
            for unknown in &planned.plan.unknown {
                writeln!(out, "     - {}", report::plain(unknown))?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The same for a comment on a pull request.
pub(super) fn markdown(out: &mut dyn Write, all: &[Planned]) -> io::Result<()> {
    writeln!(out, "## CRD upgrade plan\n")?;
    for planned in all {
        writeln!(out, "### {} ({})\n", code(&planned.impact.crd), code(&versions(planned)))?;
        if planned.plan.steps.is_empty() {
            writeln!(out, "Nothing to do.\n")?;
        }
        for (index, step) in planned.plan.steps.iter().enumerate() {
            writeln!(out, "{}. **{}:** {}", index + 1, head(step.phase), text(&step.what))?;
            for why in &step.why {
                writeln!(out, "   - {}", code(why))?;
            }
            if let Some(command) = &step.command {
                writeln!(out)?;
                write_command(out, "   ", command)?;
            }
            writeln!(out)?;
        }
        if !planned.plan.unknown.is_empty() {
            writeln!(out, "Not known:\n")?;
            for unknown in &planned.plan.unknown {
                writeln!(out, "- {}", text(unknown))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn versions(Planned { impact, .. }: &Planned) -> String {
    let version = match &impact.old_version {
        None => format!("{}, new", impact.new_version),
        Some(old) if *old == impact.new_version => old.clone(),
        Some(old) => format!("{old} to {}", impact.new_version),
    };
    report::plain(&version).into_owned()
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
    for character in report::plain(sentence).chars() {
        if special(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}
