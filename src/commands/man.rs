//! `etch man`: manual pages.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::generate_to;

use crate::commands::outcome::Outcome;

/// Write the manual pages to a folder
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The folder; created if it does not exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Man {
    /// `definition` is all that can be typed.
    pub(crate) fn run(&self, definition: Command) -> anyhow::Result<Outcome> {
        let written = fs::create_dir_all(&self.folder).and_then(|()| generate_to(definition, &self.folder));
        written.with_context(|| format!("{}: cannot be written", self.folder.display()))?;
        Ok(Outcome::Clean)
    }
}
