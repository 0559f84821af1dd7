//! How the checks of the project call cargo and go, and where they find what these build.

pub mod cargo;
pub mod go;
pub mod programs;
pub mod supervised;
pub mod target;

use std::path::Path;

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
