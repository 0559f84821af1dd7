//! Validates an object by a schema: `cargo run --example validate -- SCHEMA.json OBJECT.json`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::io::Write as _;

use kube_crd_validation::{defaults, validate};
use kube_structural_schema::{Json, Schema};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let mut next =
        || Ok::<_, Box<dyn Error>>(Json::parse(&std::fs::read(files.next().ok_or("two files")?)?)?);
    let (schema, object) = (Schema::parse(&*next()?)?, next()?);
    let mut out = std::io::stdout().lock();
    for finding in defaults(&schema).by_server.iter().chain(&validate(&schema, &object)) {
        writeln!(out, "{}: {}: {}", finding.kind, finding.field, finding.detail)?;
    }
    Ok(())
}
