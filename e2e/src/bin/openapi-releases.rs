//! Writes what released API servers publish to `e2e/openapi/releases`, or with `--check` names the files that
//! are out of date. The documents of all supported releases are made from the pinned Go modules, which are
//! downloaded if they are missing.
//!
//! What is left out, and where the documents are from, is in `e2e::releases`.

use std::process::ExitCode;

use e2e::drift::{File, main as write};
use e2e::releases::Release;

fn main() -> ExitCode {
    write("openapi-releases", "openapi-releases", || {
        let releases = Release::all()?.into_iter();
        let file = |release: Release| {
            Ok(File {
                name: format!("what Kubernetes {} publishes", release.version),
                path: release.path(),
                text: release.document,
            })
        };
        Ok(releases.map(file))
    })
}
