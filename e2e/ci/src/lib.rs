//! How the checks of the project call cargo, and where they find what it builds.

pub mod cargo;
pub mod target;

use std::path::Path;

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
