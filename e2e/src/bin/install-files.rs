//! Writes the CRDs, yaml/install.yaml and the generated parts of config/chart, or with `--check` names those
//! that are out of date.
//!
//! What they are and how they are made is in `e2e::install`.

use std::process::ExitCode;

use e2e::drift::{File, main as write};
use e2e::install::{Generated, versioned};

fn main() -> ExitCode {
    write("install-files", "generate", || {
        let file = |file: Generated| {
            Ok(File { name: file.name().to_owned(), path: file.path(), text: file.text()? })
        };
        // Some of what is generated contains the version.
        Ok(versioned()?.into_iter().map(Ok).chain(Generated::ALL.into_iter().map(file)))
    })
}
