//! A port for a server that another process starts later. It must not be one that the system gives to
//! outgoing connections meanwhile: those of an API server to etcd are hundreds.

use std::net::TcpListener;
use std::ops::Range;

use anyhow::{Context, Result};

/// Below what systems take for outgoing connections: from 32768 on Linux, and from 49152 elsewhere.
const RANGE: Range<u16> = 15_000..32_000;
const TRIES: usize = 100;

/// A port of the loopback address on which no process listens.
///
/// # Errors
/// None was found.
pub fn free_port() -> Result<u16> {
    let mut chosen = std::iter::repeat_with(|| fastrand::u16(RANGE)).take(TRIES);
    chosen.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).context("no free port")
}
