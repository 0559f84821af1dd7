//! Shows who owns what an object holds:
//! `kubectl get KIND NAME -o json --show-managed-fields | cargo run --example owners`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::io::{Read as _, Write as _};

use kube_managed_fields::owners;
use kube_structural_schema::Json;

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    let object = Json::parse(&text)?;
    let mut out = std::io::stdout().lock();
    for owner in owners(&object) {
        writeln!(out, "{} {} {} {}", owner.manager, owner.operation, owner.api_version, owner.subresource)?;
        writeln!(out, "  {}", owner.fields)?;
    }
    Ok(())
}
