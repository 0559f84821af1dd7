//! `etch crds`: the CRDs that Etch brings.

use std::io::Write;

use clap::Args;
use etch::installed_crds;
use etch::report::write_yaml;
use serde_json::json;

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
        let crds = installed_crds::crds();
        match self.output {
            Format::Yaml => {
                for crd in crds {
                    writeln!(out, "---")?;
                    write_yaml(out, &crd)?;
                }
            }
            Format::Json => {
                let list = json!({ "apiVersion": "v1", "kind": "List", "items": crds });
                writeln!(out, "{}", serde_json::to_string_pretty(&list)?)?;
            }
        }
        Ok(Outcome::Clean)
    }
}
