//! Lists the keys in a snapshot of etcd that start with a prefix, and the sizes of their values:
//! `cargo run --example keys -- SNAPSHOT /registry/apiextensions.k8s.io/`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::io::Write as _;
use std::ops::ControlFlow;

use etcd_snapshot::Snapshot;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let saved = std::fs::read(arguments.next().ok_or("a snapshot")?)?;
    let prefix = arguments.next().unwrap_or_default();
    let length = saved.len() as u64;
    let mut lines = Vec::new();
    Snapshot::open(saved, length)?.each(&|key| key.starts_with(prefix.as_bytes()), &mut |key, value| {
        lines.push(format!("{} {}", String::from_utf8_lossy(key), value.len()));
        ControlFlow::Continue(())
    })?;
    lines.sort();
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
