//! The commands that a plan names, from what was typed.

use std::path::{Path, PathBuf};

use etch_core::shell::quoted;
use etch_lint::upgrade_plan::Words;

/// What was typed.
#[derive(Debug)]
pub struct Typed<'a> {
    /// How Etch is called.
    pub etch: String,
    /// The files after the upgrade.
    pub new: &'a [PathBuf],
    /// The files before the upgrade.
    pub old: &'a [PathBuf],
    /// The files with the CRDs, each behind `-f`, as kubectl takes them; `None` where they were piped in.
    pub apply: Option<String>,
    /// The options that lead to the cluster, with a space before each.
    pub cluster: String,
}

impl Typed<'_> {
    /// The words of the commands that a plan names. `persist` are the flags of `etch persist`, and
    /// `installed` is the CRD that the cluster has, if the new one is compared with that.
    pub(super) fn words(&self, persist: &str, installed: Option<&str>) -> Words {
        let Self { etch, new, old, apply, cluster } = self;
        let path = |path: &PathBuf| quoted(&path.display().to_string());
        let listed = |option: &str, paths: &[PathBuf]| -> String {
            paths.iter().map(|file| format!(" {option} {}", path(file))).collect()
        };
        let old = listed("--old", old);
        let read = installed.map(|name| format!("kubectl get crd {}{cluster} --output yaml", quoted(name)));
        Words {
            etch: etch.clone(),
            new: listed("-f", new).trim_start().to_owned(),
            apply: apply.clone(),
            lint: lint_command(etch, read.as_deref(), &old, new),
            cluster: cluster.clone(),
            old,
            persist: persist.to_owned(),
        }
    }
}

/// The comparison by `etch lint` with the CRD that a command reads from the cluster, or else with the `old`
/// ones.
fn lint_command(etch: &str, read: Option<&str>, old: &str, new: &[PathBuf]) -> String {
    // Standard input is read once.
    let is_taken = new.iter().any(|file| file == Path::new("-"));
    let new: String = new.iter().map(|file| format!(" {}", quoted(&file.display().to_string()))).collect();
    match read {
        Some(read) if is_taken => format!("{etch} lint --old <({read}){new}"),
        Some(read) => format!("{read} | {etch} lint --old -{new}"),
        None => format!("{etch} lint{old}{new}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lint_command_reads_standard_input_once() {
        let command = |read, new: &str| lint_command("etch", read, " --old old.yaml", &[PathBuf::from(new)]);
        let read = Some("kubectl get crd things.example.com --output yaml");
        assert_eq!(
            command(read, "new.yaml"),
            "kubectl get crd things.example.com --output yaml | etch lint --old - new.yaml"
        );
        assert_eq!(
            command(read, "-"),
            "etch lint --old <(kubectl get crd things.example.com --output yaml) -"
        );
        assert_eq!(command(None, "new.yaml"), "etch lint --old old.yaml new.yaml");
    }
}
