//! Fills the defaults of a schema into an object: `cargo run --example fill -- SCHEMA.json OBJECT.json`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::io::Write as _;

use kube_structural_schema::{Compiled, Json, Schema, structural_errors};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let mut next =
        || Ok::<_, Box<dyn Error>>(Json::parse(&std::fs::read(files.next().ok_or("two files")?)?)?);
    let (schema, mut object) = (Schema::parse(&*next()?)?, next()?);
    let mut out = std::io::stdout().lock();
    for error in structural_errors(&schema) {
        writeln!(out, "# not structural: {}: {}", error.field, error.detail)?;
    }
    let compiled = Compiled::new(&schema);
    compiled.fill(&mut object);
    writeln!(out, "# digest {}", compiled.digest())?;
    writeln!(out, "{object}", object = *object)?;
    Ok(())
}
