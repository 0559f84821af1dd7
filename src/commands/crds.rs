//! `etch crds`: the CRDs that Etch brings.

use std::io::Write;

use clap::Args;
use etch_admission::installed_crds;

use crate::commands::emit::emit_objects;
use crate::commands::global::Format;
use crate::commands::outcome::Outcome;

/// Print Etch's own CRDs, for kubectl apply
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch crds | kubectl apply -f -
  etch crds -o json")]
pub(crate) struct Crds {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Crds {
    pub(crate) fn run(&self, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        emit_objects(out, self.output, &installed_crds::crds())?;
        Ok(Outcome::Clean)
    }
}
