//! Writing what a command found, in the form that was asked for.
//! It does not flush: `main` does, also after a failure.

use std::io::{self, Write};

use anyhow::Result;
use etch_answers::{write_json, write_yaml};
use serde::Serialize;
use serde_json::json;

use super::failure;
use super::global::{Format, Output};
use super::outcome::Outcome;

/// Writes a report: as a table for people, or as a document for programs.
pub(crate) fn emit<D: Serialize>(
    out: &mut dyn Write,
    output: Output,
    document: impl FnOnce() -> D,
    table: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match output {
        Output::Table => table(out),
        Output::Json => emit_object(out, Format::Json, &document()),
        Output::Yaml => emit_object(out, Format::Yaml, &document()),
    }
}

/// Writes one Kubernetes object, or another document for programs.
pub(crate) fn emit_object(out: &mut dyn Write, format: Format, object: &impl Serialize) -> io::Result<()> {
    match format {
        Format::Json => write_json(out, object),
        Format::Yaml => write_yaml(out, object),
    }
}

/// Writes Kubernetes objects as `kubectl apply` takes them.
pub(crate) fn emit_objects(
    out: &mut dyn Write,
    format: Format,
    objects: &[impl Serialize],
) -> io::Result<()> {
    match format {
        Format::Yaml => objects.iter().try_for_each(|object| {
            writeln!(out, "---")?;
            emit_object(out, format, object)
        }),
        Format::Json => {
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
            emit_object(out, format, &list)
        }
    }
}

/// The outcome of a command that printed what it could: a failure if anything failed.
pub(crate) fn ended(failures: Vec<String>, is_clean: bool) -> Result<Outcome> {
    match (failures.is_empty(), is_clean) {
        (false, _) => Err(failure(failures)),
        (true, true) => Ok(Outcome::Clean),
        (true, false) => Ok(Outcome::Findings),
    }
}
