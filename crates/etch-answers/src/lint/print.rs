//! The findings for people, and for the log of a GitHub workflow.

use std::collections::BTreeMap;
use std::io::{self, Write};

use etch_lint::{Finding, Rule, Severity};

use super::checked::{Checked, Located};
use crate::{Cell, Style, Table, Tone, counted};

/// The findings as a table. Infos are counted only, unless they are asked for: a CRD with copies of core
/// types has dozens.
///
/// # Errors
/// What the writer answers.
pub fn table(
    out: &mut dyn Write,
    style: &Style,
    checked: &Checked,
    severity: Option<Severity>,
) -> io::Result<()> {
    let least = severity.unwrap_or(Severity::Warning);
    let about = if checked.types > 0 { "KIND" } else { "CRD" };
    let mut table = Table::new(["SEVERITY", "CODE", about, "VERSION", "PATH", "MESSAGE"]);
    let (open, accepted): (Vec<&Located>, Vec<_>) =
        checked.findings.iter().partition(|located| located.accepted.is_none());
    let (shown, hidden): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|located| located.finding.rule.severity >= least);
    for Located { crd, finding, .. } in shown.iter().filter(|located| located.finding.go.is_none()) {
        let Finding { rule, version, message, .. } = finding;
        table.row([
            Cell::new(rule.severity.as_str(), tone(rule.severity)),
            rule.code.into(),
            crd.into(),
            version.into(),
            finding.place().into(),
            message.into(),
        ]);
    }
    for table in [table, go_table(&shown)] {
        if !table.is_empty() {
            table.write(out, style)?;
            writeln!(out)?;
        }
    }
    let count =
        |severity| shown.iter().filter(|located| located.finding.rule.severity == severity).count() as u64;
    let others = checked.looked_at().any(|(count, what)| count > 0 && what != "CRD");
    let is_there = |(count, what): &(u64, &str)| *count > 0 || !others && *what == "CRD";
    let looked_at: Vec<_> =
        checked.looked_at().filter(is_there).map(|(count, what)| counted(count, what)).collect();
    write!(out, "{}: ", looked_at.join(", "))?;
    match (count(Severity::Error), count(Severity::Warning), count(Severity::Info)) {
        (0, 0, 0) => write!(out, "nothing found")?,
        (errors, warnings, infos) => {
            let parts = [(errors, "error"), (warnings, "warning"), (infos, "info")];
            let parts: Vec<_> =
                parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| counted(n, what)).collect();
            write!(out, "{}", parts.join(", "))?;
        }
    }
    if !accepted.is_empty() {
        write!(out, "; {} accepted", counted(accepted.len() as u64, "finding"))?;
    }
    if hidden.is_empty() {
        writeln!(out)
    } else {
        writeln!(out, "; {} not shown (--severity info)", counted(hidden.len() as u64, "info"))
    }
}

/// A rule that finds more in a package than this is shown in one row: such findings are mostly a habit of the
/// package.
const MOST_OF_A_RULE: usize = 5;
/// How many fields that row names.
const NAMED: usize = 3;

/// The findings in Go. Errors have a row each.
fn go_table(shown: &[&Located]) -> Table {
    let mut table = Table::new(["SEVERITY", "CODE", "LINE", "FIELD", "MESSAGE"]);
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for located in shown {
        if let (Some(place), Some(line), Some(origin)) = (&located.finding.go, located.line, &located.origin)
        {
            let group = (place.package.as_str(), located.finding.rule.code);
            groups.entry(group).or_default().push((
                place,
                format!("{}:{line}", origin.file),
                &located.finding,
            ));
        }
    }
    let is_habit = |rule: &Rule, count: usize| count > MOST_OF_A_RULE && rule.severity < Severity::Error;
    // In the order in which they are found; a group is at the place of its first finding.
    for located in shown {
        let Finding { rule, message, go: Some(place), .. } = &located.finding else { continue };
        let Some(group) = groups.get(&(place.package.as_str(), rule.code)) else { continue };
        let Some(index) = group.iter().position(|(.., finding)| std::ptr::eq(*finding, &located.finding))
        else {
            continue;
        };
        let (_, line, _) = &group[index];
        let (field, message) = match group.len() {
            count if !is_habit(rule, count) => (place.name.clone(), message.clone()),
            _ if index > 0 => continue,
            count => {
                let names: Vec<_> = group.iter().take(NAMED).map(|(place, ..)| place.name.as_str()).collect();
                let others = counted((count - NAMED) as u64, "other");
                (
                    format!("{} and {others}", names.join(", ")),
                    format!("{}; -o json lists all {count}", rule.summary),
                )
            }
        };
        table.row([
            Cell::new(rule.severity.as_str(), tone(rule.severity)),
            rule.code.into(),
            line.into(),
            field.into(),
            message.into(),
        ]);
    }
    table
}

/// Commands of the workflow log:
/// <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>.
///
/// # Errors
/// What the writer answers.
pub fn github(out: &mut dyn Write, checked: &Checked) -> io::Result<()> {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    for Located { origin, crd, line, finding, .. } in
        checked.findings.iter().filter(|located| located.accepted.is_none())
    {
        let Finding { rule, message, .. } = finding;
        let command = match rule.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        write!(out, "::{command} ")?;
        if let Some(origin) = origin {
            write!(out, "file={},", property(&origin.file))?;
        }
        if let Some(line) = line {
            write!(out, "line={line},")?;
        }
        let title = property(&format!("{} {}", rule.code, rule.name));
        let place = escaped(&format!("{}: {message}", place(crd, finding)));
        writeln!(out, "title={title}::{place}")?;
    }
    Ok(())
}

/// What a finding is about, in one line.
pub(super) fn place(crd: &str, finding: &Finding) -> String {
    match &finding.go {
        Some(place) => format!("{}.{}", place.package, place.name),
        None => format!("{crd} {} {}", finding.version, finding.place()),
    }
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Warning,
        Severity::Info => Tone::Faint,
    }
}

/// All rules as a table, for people.
///
/// # Errors
/// What the writer answers.
pub fn rules(out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["CODE", "NAME", "SEVERITY", "FINDS"]);
    for rule in etch_lint::rules() {
        table.row([rule.code.into(), rule.name.into(), rule.severity.as_str().into(), rule.summary.into()]);
    }
    table.write(out, &Style::default())
}

/// One rule, for people.
///
/// # Errors
/// What the writer answers.
pub fn rule(out: &mut dyn Write, rule: &Rule) -> io::Result<()> {
    let Rule { code, name, severity, summary, help, .. } = rule;
    writeln!(out, "{code} {name} ({severity}): {summary}\n\n{help}")
}
