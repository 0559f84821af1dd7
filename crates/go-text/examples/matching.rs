//! Prints the lines that match a pattern of Go: `cargo run --example matching -- PATTERN <FILE`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};

use go_text::regexp::Pattern;

fn main() -> Result<(), Box<dyn Error>> {
    let pattern = std::env::args().nth(1).ok_or("a pattern is missing")?;
    let pattern = Pattern::new(&pattern)?;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        if pattern.matches(&line) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}
