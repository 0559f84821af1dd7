//! An impact as one page of HTML, which loads nothing from elsewhere.
//! It must not print a value of an object, nor a key of its maps; the values of defaults are the schema's.

use std::io::{self, Write};

use etch_core::impact::EffectKind;
use etch_core::scope::Scope;
use etch_lint::Finding;

use super::crd_impact::CrdImpact;
use super::looked::Looked;
use super::print::{
    Happening, ONLY_MOVES, SchemaRow, advice, affected, floating, happenings, named, schema_rows, tone, word,
};
use crate::html::{STYLE, bar, code, text, value};
use crate::{Tone, counted, scope};

/// Everything that is reported, CRDs to which nothing happens in one sentence, and first what it is about.
///
/// # Errors
/// What the writer answers.
pub fn write(out: &mut dyn Write, all: &[Looked], scope: &Scope, about: &[String]) -> io::Result<()> {
    let title = format!("What the CRD upgrade changes {}", scope::in_words(scope));
    let title = text(&title);
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(
        out,
        "<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>"
    )?;
    for sentence in about {
        writeln!(out, "<p class=\"faint\">{}</p>", text(sentence))?;
    }
    let (same, changed): (Vec<_>, Vec<_>) = all.iter().partition(|looked| looked.impact.is_same());
    for looked in changed {
        crd(out, looked)?;
    }
    if !same.is_empty() {
        let names: Vec<_> = same.iter().map(|looked| code(&looked.impact.crd)).collect();
        writeln!(out, "<p>Nothing changes for {}.</p>", names.join(", "))?;
    }
    writeln!(out, "</main>\n</body>\n</html>")
}

fn crd(out: &mut dyn Write, looked: &Looked) -> io::Result<()> {
    let impact = &looked.impact;
    let version = text(&impact.versions());
    writeln!(out, "<section>\n<h2>{} <span class=\"version\">{version}</span></h2>", code(&impact.crd))?;
    if !impact.in_cluster {
        writeln!(out, "<p>The cluster does not have this CRD, so there are no objects to check.</p>")?;
    }
    for refusal in &impact.refusals {
        let (place, message) = (code(&refusal.place()), text(&refusal.message));
        writeln!(out, "<p class=\"advice refused\">The API server refuses it: {place}: {message}</p>")?;
    }
    if impact.tally.counts.total > 0 {
        writeln!(out, "<p class=\"faint\">Policy: {}</p>", text(&impact.rules.in_words()))?;
        objects(out, looked)?;
    }
    if impact.only_moves() {
        writeln!(out, "<p>{ONLY_MOVES}</p>")?;
    }
    schemas(out, impact)?;
    narrowed(out, &impact.narrowed)?;
    for advice in floating(impact, &code) {
        writeln!(out, "<p class=\"advice\">{advice}</p>")?;
    }
    named_objects(out, impact)?;
    writeln!(out, "</section>")
}

/// What happens to the objects, and what to do about it.
fn objects(out: &mut dyn Write, looked: &Looked) -> io::Result<()> {
    let impact = &looked.impact;
    let total = counted(impact.tally.counts.total, "object");
    if impact.details.all() == 0 {
        writeln!(out, "<p>{total}; nothing changes for them.</p>")?;
    } else {
        of_objects(out, impact, &total)?;
    }
    for advice in advice(looked, &code) {
        writeln!(out, "<p class=\"advice\">{advice}</p>")?;
    }
    Ok(())
}

/// How many objects each effect is on, and how many at each place.
fn of_objects(out: &mut dyn Write, impact: &CrdImpact, total: &str) -> io::Result<()> {
    let tally = &impact.tally;
    let whole = tally.counts.total;
    writeln!(out, "<h3>{total}, {}</h3>\n<table class=\"effects\">", text(&affected(impact)))?;
    head(out, &["Effect", "#Objects", ""])?;
    for ((effect, is_open), objects) in &tally.effects {
        row(out, (*effect, *is_open), &[], *objects, whole)?;
    }
    writeln!(out, "</table>\n<table class=\"places\">")?;
    head(out, &["Effect", "Where", "#Objects", ""])?;
    for (place, objects) in &tally.summary {
        row(out, (place.effect, place.is_open), &[code(&place.text)], *objects, whole)?;
    }
    writeln!(out, "</table>")
}

/// The heads of columns; one that begins with `#` is of numbers.
fn head(out: &mut dyn Write, heads: &[&str]) -> io::Result<()> {
    write!(out, "<tr>")?;
    for head in heads {
        match head.strip_prefix('#') {
            Some(number) => write!(out, "<th class=\"number\">{number}</th>")?,
            None => write!(out, "<th>{head}</th>")?,
        }
    }
    writeln!(out, "</tr>")
}

fn row(
    out: &mut dyn Write,
    (effect, is_open): (EffectKind, bool),
    cells: &[String],
    objects: u64,
    whole: u64,
) -> io::Result<()> {
    let class = class(tone(effect));
    write!(out, "<tr><td class=\"word {class}\">{}</td>", text(word(effect, is_open)))?;
    for cell in cells {
        write!(out, "<td>{cell}</td>")?;
    }
    let bar = bar(objects, whole, class);
    writeln!(out, "<td class=\"number\">{objects}</td><td class=\"share\">{bar}</td></tr>")
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Bad => "bad",
        Tone::Warning => "warning",
        _ => "plain",
    }
}

fn schemas(out: &mut dyn Write, impact: &CrdImpact) -> io::Result<()> {
    if impact.has_same_schemas() {
        return Ok(());
    }
    writeln!(out, "<h3>Schema</h3>\n<table class=\"schema\">")?;
    head(out, &["Change", "Path", "Before", "After"])?;
    for SchemaRow { tone, word, path, old, new } in schema_rows(impact) {
        let (class, word, path) = (class(tone), text(&word), code(&path.to_string()));
        let [old, new] = [old, new].map(|default| default.map(|default| value(default)).unwrap_or_default());
        writeln!(
            out,
            "<tr><td class=\"word {class}\">{word}</td><td>{path}</td><td>{old}</td><td>{new}</td></tr>"
        )?;
    }
    writeln!(out, "</table>")
}

fn narrowed(out: &mut dyn Write, findings: &[Finding]) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h3>Can refuse objects</h3>\n<table>")?;
    head(out, &["Code", "Version", "Path", "Change"])?;
    for Finding { rule, version, path, message, .. } in findings {
        let (version, path, message) = (text(version), code(&path.to_string()), text(message));
        let rule = rule.code;
        writeln!(
            out,
            "<tr><td class=\"word bad\">{rule}</td><td>{version}</td><td>{path}</td><td>{message}</td></tr>"
        )?;
    }
    writeln!(out, "</table>")
}

/// The first objects to which something happens, folded.
fn named_objects(out: &mut dyn Write, impact: &CrdImpact) -> io::Result<()> {
    if impact.details.all() == 0 {
        return Ok(());
    }
    writeln!(out, "<details>\n<summary>Objects</summary>\n<table>")?;
    head(out, &["Object", "Effect", "Where"])?;
    for (identity, detail) in impact.details.iter() {
        for Happening { kind, word, places } in happenings(&detail.effect, false) {
            let places: Vec<_> = places.iter().map(|place| code(place)).collect();
            let (name, class) = (code(&named(identity, detail)), class(tone(kind)));
            let places = places.join("<br>");
            writeln!(out, "<tr><td>{name}</td><td class=\"word {class}\">{word}</td><td>{places}</td></tr>")?;
        }
    }
    writeln!(out, "</table>")?;
    if impact.details.left() > 0 {
        let left = counted(impact.details.left(), "more object");
        writeln!(out, "<p>and {left}; --limit 0 lists all</p>")?;
    }
    writeln!(out, "</details>")
}
