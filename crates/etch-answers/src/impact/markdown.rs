//! An impact as Markdown, for a comment on a pull request.
//! It must not print a value of an object, nor a key of its maps, because its readers may lack access to the
//! cluster; the values of defaults are the schema's.

use std::io::{self, Write};

use etch_core::scope::Scope;
use etch_lint::Finding;
use kube_structural_schema::json::Json;

use super::crd_impact::CrdImpact;
use super::looked::Looked;
use super::print::{
    Happening, ONLY_MOVES, SchemaRow, advice, affected, floating, happenings, named, schema_rows, word,
};
use crate::markdown::{MarkdownTable, code, value};
use crate::{counted, scope};

/// Everything that is reported, CRDs to which nothing happens in one sentence, and first what it is about.
///
/// # Errors
/// What the writer answers.
pub fn write(out: &mut dyn Write, all: &[Looked], scope: &Scope, about: &[String]) -> io::Result<()> {
    writeln!(out, "## What the CRD upgrade changes {}\n", scope::in_words(scope))?;
    for sentence in about {
        writeln!(out, "{sentence}\n")?;
    }
    let (same, changed): (Vec<_>, Vec<_>) = all.iter().partition(|looked| looked.impact.is_same());
    for looked in changed {
        crd(out, looked)?;
    }
    if !same.is_empty() {
        let names: Vec<_> = same.iter().map(|looked| code(&looked.impact.crd)).collect();
        writeln!(out, "Nothing changes for {}.", names.join(", "))?;
    }
    Ok(())
}

fn crd(out: &mut dyn Write, looked: &Looked) -> io::Result<()> {
    let impact = &looked.impact;
    writeln!(out, "### {} ({})\n", code(&impact.crd), code(&impact.versions()))?;
    if !impact.in_cluster {
        writeln!(out, "The cluster does not have this CRD, so there are no objects to check.\n")?;
    }
    if !impact.refusals.is_empty() {
        writeln!(out, "**The API server refuses it:**\n")?;
        let mut table = MarkdownTable::new(["Field", "Error"]);
        for refusal in &impact.refusals {
            table.row([code(&refusal.place()), code(&refusal.message)]);
        }
        table.write(out)?;
    }
    if impact.only_moves() {
        writeln!(out, "{ONLY_MOVES}\n")?;
    }
    schemas(out, impact)?;
    narrowed(out, &impact.narrowed)?;
    if impact.tally.counts.total > 0 {
        objects(out, looked)?;
    }
    for advice in floating(impact, &code) {
        writeln!(out, "{advice}\n")?;
    }
    Ok(())
}

fn schemas(out: &mut dyn Write, impact: &CrdImpact) -> io::Result<()> {
    let mut table = MarkdownTable::new(["Schema", "Path", "Default"]);
    let shown = |default: &Json| value(&default.to_string());
    for SchemaRow { word, path, old, new, .. } in schema_rows(impact) {
        let values = match (old, new) {
            (Some(old), Some(new)) => format!("{} → {}", shown(old), shown(new)),
            (Some(old), None) => format!("{} → none", shown(old)),
            (None, Some(new)) => shown(new),
            (None, None) => String::new(),
        };
        table.row([word, code(&path.to_string()), values]);
    }
    table.write(out)
}

fn narrowed(out: &mut dyn Write, findings: &[Finding]) -> io::Result<()> {
    let mut table = MarkdownTable::new(["Can refuse objects", "Version", "Path", "Change"]);
    for Finding { rule, version, path, message, .. } in findings {
        table.row([rule.code.to_owned(), code(version), code(&path.to_string()), code(message)]);
    }
    table.write(out)
}

/// What happens to the objects, and what to do about it.
fn objects(out: &mut dyn Write, looked: &Looked) -> io::Result<()> {
    let impact = &looked.impact;
    let total = counted(impact.tally.counts.total, "object");
    if impact.details.all() == 0 {
        writeln!(out, "{total}; nothing changes for them.\n")?;
    } else {
        writeln!(out, "**{total}, {}:**\n", affected(impact))?;
        of_objects(out, impact)?;
    }
    for advice in advice(looked, &code) {
        writeln!(out, "{advice}\n")?;
    }
    Ok(())
}

/// The numbers by effect and place, then the first objects, folded.
fn of_objects(out: &mut dyn Write, impact: &CrdImpact) -> io::Result<()> {
    let mut table = MarkdownTable::new(["Objects", "Effect", "Where"]);
    for (place, objects) in &impact.tally.summary {
        let effect = word(place.effect, place.is_open);
        table.row([objects.to_string(), effect.to_owned(), code(&place.text)]);
    }
    table.write(out)?;
    writeln!(out, "<details><summary>Objects</summary>\n")?;
    let mut table = MarkdownTable::new(["Object", "Effect", "Where"]);
    for (identity, detail) in impact.details.iter() {
        for Happening { word, places, .. } in happenings(&detail.effect, false) {
            let places: Vec<_> = places.iter().map(|place| code(place)).collect();
            table.row([code(&named(identity, detail)), word.to_owned(), places.join(" ")]);
        }
    }
    table.write(out)?;
    if impact.details.left() > 0 {
        writeln!(out, "and {}\n", counted(impact.details.left(), "more object"))?;
    }
    writeln!(out, "</details>\n")
}

#[cfg(test)]
mod tests {
    use etch_core::impact::Effect;
    use kube_structural_schema::path::{Path, Step};

    use super::*;

    #[test]
    fn keys_of_maps_are_left_out() {
        let field = |name: &str| Step::Field(name.to_owned());
        let place = Path::from(vec![field("pools"), Step::Key("secret".to_owned()), field("size")]);
        let effect = Effect { appears: vec![place], ..Effect::default() };
        let places = |with_keys: bool| happenings(&effect, with_keys).remove(0).places;
        assert_eq!(
            (places(true), places(false)),
            (vec![r#".pools["secret"].size"#.to_owned()], vec![r#".pools["*"].size"#.to_owned()])
        );
    }
}
