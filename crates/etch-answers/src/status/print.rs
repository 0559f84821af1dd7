//! The overview of `etch status`, for people: one screen of 80 columns.

use std::io::{self, Write};

use etch_core::words;
use jiff::Timestamp;

use super::overview::{
    MissingView, Overview, PassView, PolicyProblem, PolicyView, ProblemsView, SchemaProblem,
};
use crate::{Cell, Style, Table, Tone, counted, plain, shortened};

/// How wide it is, where the terminal is not narrower.
const WIDTH: usize = 80;
/// How many passes, and CRDs of one line, are named.
const NAMED: usize = 5;
/// How much of the name of a policy and of a CRD stands in a table, in characters: they may have 253. JSON
/// and YAML have the whole name.
const POLICY: usize = 26;
const CRD: usize = 36;

/// Writes it for people. `now` is what ages are counted from.
///
/// # Errors
/// What the writer answers.
pub fn table(out: &mut dyn Write, style: &Style, overview: &Overview, now: Timestamp) -> io::Result<()> {
    let style = &Style { width: Some(style.width.map_or(WIDTH, |width| width.min(WIDTH))), ..*style };
    let flags = plain(&overview.flags);
    head(out, style, overview, now)?;
    if overview.installed == Some(false) {
        writeln!(out, "Etch is not installed: the cluster does not have its CRDs.")?;
    }
    if overview.lacks_reports {
        writeln!(out, "The CRD of DefaultsReports is missing: `etch crds | kubectl apply{flags} -f -`")?;
    }
    if overview.old_crds {
        writeln!(out, "Etch's CRDs are of an older Etch: `etch crds | kubectl apply{flags} -f -`")?;
    }
    policies(out, style, overview)?;
    schemas(out, style, &overview.schema_problems)?;
    states(out, style, overview)?;
    passes(out, style, &overview.passes, now)?;
    for missing in &overview.missing_permissions {
        missing_permission(out, style, missing)?;
    }
    problems(out, style, &overview.problems)
}

fn head(out: &mut dyn Write, style: &Style, overview: &Overview, now: Timestamp) -> io::Result<()> {
    let kubernetes = overview.versions.kubernetes.as_deref().unwrap_or("of unknown version");
    writeln!(out, "Etch {}, Kubernetes {}", overview.versions.etch, plain(kubernetes))?;
    match &overview.leader {
        Some(leader) => {
            let since = leader.since.map(|since| format!(" for {}", age(since, now)));
            let line =
                format!("Leader: {}/{}{}", leader.namespace, leader.instance, since.unwrap_or_default());
            wrapped(out, style, Tone::Plain, &line)
        }
        None if overview.is_leaderless => {
            wrapped(out, style, Tone::Bad, "No operator leads: none renews the Lease etch.")
        }
        None => Ok(()),
    }
}

fn policies(out: &mut dyn Write, style: &Style, overview: &Overview) -> io::Result<()> {
    if !overview.policies.is_empty() {
        writeln!(out)?;
        let mut table = Table::new(["POLICY", "MODE", "CRDS", "GUARD", "NOTE"]).numbers(&["CRDS"]);
        for policy in &overview.policies {
            let short = |paused: &String| {
                let words: Vec<String> = paused.split(' ').map(|word| shortened(word, POLICY - 2)).collect();
                format!("paused by {}", words.join(" "))
            };
            let paused = policy.paused.as_ref().map(short);
            table.row([
                Cell::new(shortened(&policy.name, POLICY), Tone::Strong),
                policy.mode.as_str().into(),
                policy.crds.to_string().into(),
                guard(policy, overview.unguarded.is_some()),
                Cell::new(paused.unwrap_or_default(), Tone::Warning),
            ]);
        }
        table.write(out, style)?;
    }
    for PolicyProblem { policy, reason, message } in overview.policy_problems.iter().take(NAMED) {
        wrapped(out, style, Tone::Warning, &format!("{policy}: {reason}: {message}"))?;
    }
    match overview.policy_problems.len().saturating_sub(NAMED) {
        0 => {}
        more => writeln!(out, "and {more} more: `kubectl get defaultspolicies`")?,
    }
    if let Some(why) = overview.unguarded.as_ref().filter(|_| overview.denies()) {
        wrapped(out, style, Tone::Bad, &format!("guard: Deny refuses nothing: {why}"))?;
    }
    match overview.ungoverned {
        None | Some(0) => Ok(()),
        Some(ungoverned) => writeln!(out, "No policy selects {}.", counted(ungoverned, "CRD")),
    }
}

/// What a policy's guard is set to, and whether API servers ask it.
fn guard(policy: &PolicyView, is_unserved: bool) -> Cell {
    match policy.guard.as_str() {
        guard if !is_unserved || guard == "Off" => guard.into(),
        guard => {
            Cell::new(format!("{guard} (not served)"), if guard == "Deny" { Tone::Bad } else { Tone::Plain })
        }
    }
}

fn schemas(out: &mut dyn Write, style: &Style, problems: &[SchemaProblem]) -> io::Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    for SchemaProblem { embedded_schema, reason, message } in problems.iter().take(NAMED) {
        wrapped(out, style, Tone::Bad, &format!("EmbeddedSchema {embedded_schema}: {reason}: {message}"))?;
    }
    match problems.len().saturating_sub(NAMED) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more: `kubectl get embeddedschemas`"),
    }
}

fn states(out: &mut dyn Write, style: &Style, overview: &Overview) -> io::Result<()> {
    if overview.crds.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(["STATE", "CRDS", "FIRST"]).numbers(&["CRDS"]);
    for state in &overview.crds {
        let tone = if state.is_problem { Tone::Bad } else { Tone::Plain };
        let first = first(&state.names, state.crds);
        let first = if state.is_problem { first } else { String::new() };
        table.row([Cell::new(&state.state, tone), state.crds.to_string().into(), first.into()]);
    }
    table.write(out, style)
}

fn passes(out: &mut dyn Write, style: &Style, passes: &[PassView], now: Timestamp) -> io::Result<()> {
    if passes.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let heads = ["OBJECTS", "WRITTEN", "PER SECOND", "FOR"];
    let mut table = Table::new(["PASS", heads[0], heads[1], heads[2], heads[3]]).numbers(&heads);
    for pass in passes.iter().take(NAMED) {
        table.row([
            Cell::new(shortened(&pass.crd, CRD), Tone::Strong),
            pass.objects.to_string().into(),
            pass.written.to_string().into(),
            pass.per_second.map(|rate| rate.to_string()).unwrap_or_default().into(),
            pass.started.map(|started| age(started, now)).unwrap_or_default().into(),
        ]);
    }
    table.write(out, style)?;
    match passes.len().saturating_sub(NAMED) as u64 {
        0 => Ok(()),
        more => writeln!(out, "and {more} more"),
    }
}

fn missing_permission(out: &mut dyn Write, style: &Style, missing: &MissingView) -> io::Result<()> {
    writeln!(out)?;
    let MissingView { crds, command, policy: _ } = missing;
    let line = format!("A permission is missing for {}; grant it:", first(crds, crds.len() as u64));
    wrapped(out, style, Tone::Bad, &line)?;
    writeln!(out, "  {}", plain(command))
}

fn problems(out: &mut dyn Write, style: &Style, problems: &ProblemsView) -> io::Result<()> {
    let ProblemsView { held, rejected, objects } = problems;
    if held + rejected == 0 {
        return Ok(());
    }
    writeln!(out)?;
    let of = [(rejected, "rejected"), (held, "held")];
    let of = of.iter().filter(|(count, _)| **count > 0);
    let of: Vec<String> =
        of.map(|(count, state)| format!("{} {state}", counted(**count, "object"))).collect();
    writeln!(out, "{}:", of.join(", "))?;
    for problem in objects {
        let crd = problem.crd.split('.').next().unwrap_or_default();
        let line = format!("  {crd} {} ({}): {}", problem.object, problem.reason, problem.message);
        wrapped(out, style, Tone::Warning, &line)?;
    }
    match (held + rejected).saturating_sub(objects.len() as u64) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more; `kubectl get defaultsreports` counts them by CRD"),
    }
}

/// The first of so many names.
fn first(names: &[String], all: u64) -> String {
    words::first(names, all, NAMED)
}

/// Writes a text in lines that fit, broken at spaces, and within words that do not fit; those after the first
/// are indented.
fn wrapped(out: &mut dyn Write, style: &Style, tone: Tone, text: &str) -> io::Result<()> {
    let text = plain(text);
    let indent = text.len() - text.trim_start().len() + 2;
    let (mut line, width) = (" ".repeat(indent - 2), style.width.unwrap_or(WIDTH));
    let mut is_empty = true;
    let room = width.saturating_sub(indent).max(1);
    for word in text.split_whitespace().flat_map(|word| pieces(word, room)) {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            writeln!(out, "{}", style.paint(tone, &line))?;
            (line, is_empty) = (" ".repeat(indent), true);
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    writeln!(out, "{}", style.paint(tone, &line))
}

/// A word in pieces of so many characters.
fn pieces(word: &str, room: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(room).map(|piece| piece.iter().collect()).collect()
}

/// How long ago something was, as kubectl writes it: the largest unit that fits twice.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}
