//! Lists what files of YAML or JSON contain, and where: `cargo run --example kinds -- FILE...`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::io::Write as _;
use std::ops::ControlFlow;

fn main() -> Result<(), Box<dyn Error>> {
    let mut lines = Vec::new();
    for file in std::env::args().skip(1) {
        let _ = kube_manifests::read(&file, std::fs::read(&file)?, &mut |document| {
            lines.push(match document {
                Ok(document) => format!("{}: {}", document.origin, document.what()),
                Err((origin, malformed)) => format!("{origin}: {malformed}"),
            });
            ControlFlow::Continue(())
        });
    }
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
