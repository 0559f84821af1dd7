//! `etch completions`: completion scripts for shells.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::commands::outcome::Outcome;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  source <(etch completions bash)
  etch completions zsh > ~/.zfunc/_etch
  etch completions fish > ~/.config/fish/completions/etch.fish")]
pub(crate) struct Completions {
    /// The shell to complete for
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// `definition` is all that can be typed.
    pub(crate) fn run(&self, mut definition: Command, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        // clap_complete panics on a write error, so it writes to memory first.
        let mut script = Vec::new();
        generate(self.shell, &mut definition, "etch", &mut script);
        out.write_all(&script)?;
        Ok(Outcome::Clean)
    }
}
