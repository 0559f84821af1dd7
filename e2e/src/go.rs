//! Calling Go's own command.

use std::env;
use std::process::Command;

/// How much of the heap Go's compiler lets grow before it collects garbage, in percent. At Go's default, 100, a
/// build of `k8s.io/client-go/kubernetes` from nothing took 224 s of processor time, and 182 s at this.
const HEAP_GROWTH: &str = "400";

/// `go`, building with more memory in less time, unless `GOGC` is set.
pub fn go() -> Command {
    let mut go = Command::new("go");
    if env::var_os("GOGC").is_none() {
        go.env("GOGC", HEAP_GROWTH);
    }
    go
}
