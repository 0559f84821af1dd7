//! What parsing, copying and dropping a document of any depth costs beside serde_json's own, in one run:
//! `cargo run --release --package kube-structural-schema --example json_cost -- DOCUMENT.json`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use kube_structural_schema::Json;
use serde_json::Value;

/// The median of many runs, those of both taken in turns.
fn medians(mut first: impl FnMut(), mut second: impl FnMut()) -> (Duration, Duration) {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    let (mut a, mut b): (Vec<_>, Vec<_>) = (0..301).map(|_| (time(&mut first), time(&mut second))).unzip();
    a.sort();
    b.sort();
    (a[150], b[150])
}

fn main() -> Result<(), Box<dyn Error>> {
    let bytes = std::fs::read(std::env::args().nth(1).ok_or("a document")?)?;
    let (document, value) = (Json::parse(&bytes)?, serde_json::from_slice::<Value>(&bytes)?);
    let parsed = medians(
        || drop(black_box(Json::parse(&bytes))),
        || drop(black_box(serde_json::from_slice::<Value>(&bytes))),
    );
    let copied = medians(|| drop(black_box(document.clone())), || drop(black_box(value.clone())));
    let mut out = std::io::stdout().lock();
    for (what, (ours, theirs)) in [("parse and drop", parsed), ("copy and drop", copied)] {
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        writeln!(out, "{what}: Json {ours:?}, Value {theirs:?}, ratio {ratio:.2}")?;
    }
    Ok(())
}
