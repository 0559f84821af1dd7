//! What is published about a type: each default, and when it applies.

use std::io::{self, Write};

use etch_lint::published::{AppliesWhen, PublishedDefault, TypeName, short};
use kube_structural_schema::json::is_zero;
use serde_json::{Value, json};

use crate::{Style, Table, counted};

/// The defaults of a type, or of a place in it, as JSON.
pub fn document(of: &TypeName, place: &[String], defaults: &[PublishedDefault]) -> Value {
    json!({
        "apiVersion": of.api_version, "kind": of.kind, "place": format!(".{}", place.join(".")),
        "defaults": defaults.iter().map(default).collect::<Vec<_>>(),
    })
}

/// The same for people, without zero values, which are counted.
///
/// # Errors
/// What the writer answers.
pub fn table(out: &mut dyn Write, style: &Style, defaults: &[PublishedDefault]) -> io::Result<()> {
    let (zero, shown): (Vec<_>, Vec<_>) = defaults.iter().partition(|published| is_zero(&published.default));
    rows(out, style, &shown)?;
    let zero = zero.len() as u64;
    match (shown.is_empty(), zero) {
        (true, 0) => writeln!(out, "No default is published here."),
        (true, zero) => {
            writeln!(out, "No default is published here but {}; -o json lists them.", zeros(zero))
        }
        (false, 0) => Ok(()),
        (false, zero) => writeln!(out, "\nNot shown: {}; -o json lists them.", zeros(zero)),
    }
}

/// Generators of Go types write one for each field that is no pointer, and a program reads a missing field as
/// the same value.
fn zeros(count: u64) -> String {
    format!("{} with a zero value ({{}}, \"\", 0 and the like)", counted(count, "default"))
}

fn rows(out: &mut dyn Write, style: &Style, defaults: &[&PublishedDefault]) -> io::Result<()> {
    if defaults.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(["PATH", "DEFAULT", "APPLIES", "DECLARED BY"]);
    for PublishedDefault { path, default, applies_when, definition } in defaults {
        table.row([
            path.to_string().into(),
            default.to_string().into(),
            applies(applies_when).into(),
            short(definition).into(),
        ]);
    }
    table.write(out, style)
}

fn applies(applies_when: &AppliesWhen) -> String {
    match applies_when {
        AppliesWhen::Always => "always".to_owned(),
        AppliesWhen::Given(path) => format!("if {path} is given"),
        AppliesWhen::Null => "to a null only".to_owned(),
    }
}

fn default(published: &PublishedDefault) -> Value {
    let PublishedDefault { path, default, applies_when, definition } = published;
    let given = match applies_when {
        AppliesWhen::Given(path) => Some(path.to_string()),
        AppliesWhen::Always | AppliesWhen::Null => None,
    };
    json!({
        "path": path.to_string(), "default": default, "ifGiven": given,
        "nullsOnly": *applies_when == AppliesWhen::Null,
        "definition": definition,
    })
}
