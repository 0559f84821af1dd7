//! Runs the rules of a schema over an object: `cargo run --example rules -- SCHEMA.json OBJECT.json`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::io::Write as _;

use kube_structural_schema::{Json, Schema};
use kube_validation_rules::{Program, RUNTIME_BUDGET};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let mut next =
        || Ok::<_, Box<dyn Error>>(Json::parse(&std::fs::read(files.next().ok_or("two files")?)?)?);
    let (schema, object) = (Schema::parse(&*next()?)?, next()?);
    let program = Program::compile(&schema, true).ok_or("the schema has no rules")?;
    let mut out = std::io::stdout().lock();
    for rule in program.broken_rules() {
        writeln!(out, "does not compile: {}: {}", rule.place, rule.error)?;
    }
    let mut findings = Vec::new();
    let left = program.validate(&object, None, "", RUNTIME_BUDGET, &mut findings);
    for finding in findings {
        writeln!(out, "{}: {}", finding.field, finding.detail)?;
    }
    writeln!(out, "cost: {}", RUNTIME_BUDGET - left)?;
    Ok(())
}
