//! What is printed, and asked, before anything is written.
//! Only a terminal is asked.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::bail;
use etch_answers::persist::policy_warnings;
use etch_answers::scope;
use etch_answers::{counted, plain};
use etch_core::scope::Scope;

use super::Persist;
use super::choose::Chosen;
use crate::commands::streams::stderr;

impl Persist {
    /// Prints what is about to be done and the warnings from policies, and asks for confirmation if that
    /// concerns all CRDs.
    ///
    /// # Errors
    /// The answer is no.
    pub(super) fn announce(&self, scope: &Scope, chosen: &[Chosen]) -> anyhow::Result<()> {
        let mut err = stderr();
        let what = match chosen {
            [] => return Ok(()),
            [Chosen { name, .. }] => plain(name).to_string(),
            all if self.crds.is_empty() => format!("all {} with defaults", counted(all.len() as u64, "CRD")),
            all => counted(all.len() as u64, "CRD"),
        };
        let verb = match (self.dry_run, self.every_object) {
            (true, _) => "Planning for",
            (false, true) => "Asking about every object of",
            (false, false) => "Storing defaults of",
        };
        writeln!(err, "{verb} {what}, {}.", scope::in_words(scope))?;
        let wording = chosen.iter().map(|chosen| (chosen.name.as_str(), chosen.warnings.as_slice()));
        for warning in policy_warnings::warnings(wording) {
            writeln!(err, "warning: {}", plain(&warning))?;
        }
        if self.is_to_ask() {
            write!(err, "Write to the objects of {what}, {}? [y/N] ", scope::in_words(scope))?;
            err.flush()?;
            let mut answer = String::new();
            io::stdin().lock().read_line(&mut answer)?;
            if !matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
                bail!("not confirmed; nothing was written");
            }
        }
        Ok(())
    }

    fn is_to_ask(&self) -> bool {
        self.crds.is_empty()
            && !self.dry_run
            && !self.yes
            && io::stdin().is_terminal()
            && io::stderr().is_terminal()
    }
}
