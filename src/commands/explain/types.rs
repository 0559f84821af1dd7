//! What is published about a type: each default, and when it applies.

use std::io::{self, Write};

use anyhow::Result;
use etch_answers::{Table, counted};
use etch_lint::published::{AppliesWhen, Document, Named, PublishedDefault, named, short};
use kube_structural_schema::json::is_zero;
use serde_json::{Value, json};

use crate::commands::emit::emit;
use crate::commands::global::{Global, Output};

/// Prints the defaults of the type, or of the field in it, that was typed.
pub(super) fn explain(
    typed: &str,
    documents: &[Document],
    global: &Global,
    output: Output,
    out: &mut dyn Write,
) -> Result<()> {
    let Named { document, of, place } = named(typed, documents)?;
    let defaults = document.published(of, &place).map_err(|error| anyhow::anyhow!("{of}: {error}"))?;
    let programs = || {
        json!({
            "apiVersion": of.api_version, "kind": of.kind, "place": format!(".{}", place.join(".")),
            "defaults": defaults.iter().map(default).collect::<Vec<_>>(),
        })
    };
    emit(out, output, programs, |out| {
        let (zero, shown): (Vec<_>, Vec<_>) =
            defaults.iter().partition(|published| is_zero(&published.default));
        table(out, global, &shown)?;
        let zero = zero.len() as u64;
        match (shown.is_empty(), zero) {
            (true, 0) => writeln!(out, "No default is published here."),
            (true, zero) => {
                writeln!(out, "No default is published here but {}; -o json lists them.", zeros(zero))
            }
            (false, 0) => Ok(()),
            (false, zero) => writeln!(out, "\nNot shown: {}; -o json lists them.", zeros(zero)),
        }
    })?;
    Ok(())
}

/// Generators of Go types write one for each field that is no pointer, and a program reads a missing field as
/// the same value.
fn zeros(count: u64) -> String {
    format!("{} with a zero value ({{}}, \"\", 0 and the like)", counted(count, "default"))
}

fn table(out: &mut dyn Write, global: &Global, defaults: &[&PublishedDefault]) -> io::Result<()> {
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
    table.write(out, &global.style())
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
