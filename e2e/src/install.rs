//! The installation's generated files: what they are made from, and how.
//! It must not apply anything: that is for kubectl and the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::operator;

/// A file that is kept in the repository and made from other files of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generated {
    /// The CRDs, as `etch crds` prints them.
    Crds,
    /// Everything in `config/default`, the CRDs included, as kustomize prints it.
    Install,
}

impl Generated {
    /// All of them, each after what it is made from.
    pub const ALL: [Self; 2] = [Self::Crds, Self::Install];

    /// Where the file is, from the root of the repository.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crds => "config/crd/crds.yaml",
            Self::Install => "yaml/install.yaml",
        }
    }

    /// The same as a path that can be opened.
    pub fn path(self) -> PathBuf {
        root().join(self.name())
    }

    /// What the file should hold.
    ///
    /// # Errors
    /// `etch` or kustomize does not build or fails.
    pub fn text(self) -> Result<String> {
        let (source, text) = match self {
            Self::Crds => ("`etch crds`", output(Command::new(operator::binary()?).arg("crds"))?),
            Self::Install => ("config/default", kustomize("config/default")?),
        };
        Ok(format!("# Generated from {source}; make it again with `just generate`.\n{text}"))
    }
}

/// What `kustomize build` makes of a folder, named from the root of the repository.
///
/// The kustomize is the one that `build/kustomize` pins; go builds it once and keeps it.
///
/// # Errors
/// There is no go, or kustomize refuses the folder.
pub fn kustomize(folder: &str) -> Result<String> {
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/build/kustomize");
    let mut go = Command::new("go");
    go.args(["-C", module, "tool", "kustomize", "build"]).arg(root().join(folder));
    // Exactly the pinned modules, whatever workspace or flags the user has set.
    go.env("GOWORK", "off").env("GOFLAGS", "-mod=readonly").env("CGO_ENABLED", "0");
    output(&mut go)
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("run {command:?}"))?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
