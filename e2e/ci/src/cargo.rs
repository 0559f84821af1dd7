//! Calling cargo from a program that cargo has started.

use std::process::Command;

/// Hides from a command the package whose program or test calls it.
///
/// Cargo sets variables for it, and build scripts watch these: passed on to another cargo, they would have it
/// build half of the tree again, and the next one without them build it once more.
pub fn forget_package(command: &mut Command) {
    let about_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(about_package) {
            command.env_remove(name);
        }
    }
}
