//! Calling Go's own command.

use std::env;
use std::process::Command;

/// How much of the heap Go's compiler lets grow before it collects garbage, in percent. At Go's default, 100,
/// `GOCACHE=$(mktemp -d) go build k8s.io/client-go/kubernetes` in `build/kubernetes-1.37` took 243 s of
/// processor time, and 203 s at this.
const HEAP_GROWTH: &str = "400";

/// Exactly the pinned modules, and nothing for debuggers, which takes time to make.
const FLAGS: &str = "-mod=readonly -buildvcs=false -trimpath -gcflags=all=-dwarf=false -ldflags=-s";

/// `go`, whatever workspace and flags the user has set, and with more memory in less time, unless `GOGC` is
/// set.
///
/// It builds all programs with the same flags: many contain the same packages, and its cache has a package
/// once for each set of flags.
pub fn go() -> Command {
    let mut go = Command::new("go");
    if env::var_os("GOGC").is_none() {
        go.env("GOGC", HEAP_GROWTH);
    }
    go.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", FLAGS);
    go
}
