//! How this program is called, in command lines that it prints.

use std::path::{Path, PathBuf};

use etch_core::shell::quoted;

/// This program as it was called, or as kubectl calls it.
pub(crate) fn program() -> String {
    let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    match program.file_stem().and_then(|stem| stem.to_str()) {
        None => "etch".to_owned(),
        Some("kubectl-etch") => "kubectl etch".to_owned(),
        Some(_) => quoted(&Path::display(&program).to_string()),
    }
}
