//! Validates a CRD as the newest server does when it is created, or replaces another:
//! `cargo run --release --example crd -- CRD.json [OLD.json]`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::io::Write as _;
use std::time::Instant;

use kube_crd_validation::crd::{validate_create, validate_update};
use kube_structural_schema::Json;

fn main() -> Result<(), Box<dyn Error>> {
    let read = |path: String| Ok::<_, Box<dyn Error>>(Json::parse(&std::fs::read(path)?)?);
    let mut files = std::env::args().skip(1);
    let crd = read(files.next().ok_or("a file with a CRD")?)?;
    let old = files.next().map(read).transpose()?;
    let started = Instant::now();
    let found = match &old {
        Some(old) => validate_update(&crd, old)?,
        None => validate_create(&crd)?,
    };
    let took = started.elapsed();
    let mut out = std::io::stdout().lock();
    for finding in &found {
        writeln!(out, "{}", finding.line())?;
    }
    Ok(writeln!(out, "{} errors, {} ms", found.len(), took.as_millis())?)
}
