//! Static binaries: which this toolchain builds, how, and what their headers contain.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::archive::Entry;
use super::shell;
use crate::cargo::forget_package;
use crate::install::root;
use crate::target::target_folder;

/// A processor that images are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// As Go, and so OCI and krew, name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// As Rust names it.
    fn rust(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// Its number in the header of an ELF file.
    fn machine(self) -> u16 {
        match self {
            Self::Amd64 => 62,
            Self::Arm64 => 183,
        }
    }

    /// The first target that the toolchain has a standard library for: musl's libc is made to be linked
    /// statically.
    fn target(self) -> Result<Option<String>> {
        for libc in ["musl", "gnu"] {
            let target = format!("{}-unknown-linux-{libc}", self.rust());
            let libraries = shell::output("rustc", &["--print", "target-libdir", "--target", &target])?;
            if Path::new(libraries.trim()).is_dir() {
                return Ok(Some(target));
            }
        }
        Ok(None)
    }
}

/// A binary of Etch for Linux.
#[derive(Clone, Debug)]
pub struct Binary {
    pub(super) architecture: Architecture,
    pub(super) bytes: Vec<u8>,
    is_dynamic: bool,
}

impl Binary {
    /// Reads a binary; its header names its architecture.
    ///
    /// # Errors
    /// It is no binary for a supported architecture.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
        let header = Header::read(&bytes).with_context(|| format!("{}: no ELF file", path.display()))?;
        let known = Architecture::ALL.into_iter().find(|known| known.machine() == header.machine);
        let architecture = known.with_context(|| format!("{}: neither amd64 nor arm64", path.display()))?;
        Ok(Self { architecture, bytes, is_dynamic: header.is_dynamic })
    }

    /// Builds a binary for each architecture that the toolchain has a standard library for.
    ///
    /// # Errors
    /// There is none, or it does not build.
    pub fn build_all() -> Result<Vec<Self>> {
        let mut built = Vec::new();
        for architecture in Architecture::ALL {
            if let Some(target) = architecture.target()? {
                let binary = Self::read(&build(&target)?)?;
                binary.ensure_static()?;
                built.push(binary);
            }
        }
        ensure!(!built.is_empty(), "rustc has no standard library for Linux; `rustup target add` one");
        Ok(built)
    }

    /// Fails if it needs libraries, which the image does not contain.
    ///
    /// # Errors
    /// It does.
    pub fn ensure_static(&self) -> Result<()> {
        let name = self.architecture.name();
        ensure!(!self.is_dynamic, "the binary for {name} is not static; it would not run in the image");
        Ok(())
    }

    /// Writes it to a folder, as `etch-ARCHITECTURE`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join(format!("etch-{}", self.architecture.name()));
        fs::write(&path, &self.bytes).with_context(|| format!("write {}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(path)
    }

    fn runs_here(&self) -> bool {
        cfg!(target_os = "linux") && self.architecture.rust() == env::consts::ARCH
    }
}

/// The header of a little-endian ELF file of 64 bits.
struct Header {
    machine: u16,
    /// Whether it names an interpreter, which loads libraries.
    is_dynamic: bool,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        const INTERPRETER: u32 = 3;
        let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let segments = usize::try_from(u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?)).ok()?;
        let (size, count) = (usize::from(half(54)?), usize::from(half(56)?));
        let kinds: Option<Vec<u32>> = (0..count).map(|index| word(segments + index * size)).collect();
        let is_elf = bytes.starts_with(b"\x7fELF\x02\x01");
        is_elf.then_some(Self { machine: half(18)?, is_dynamic: kinds?.contains(&INTERPRETER) })
    }
}

/// Builds for a target, and returns where the binary is.
fn build(target: &str) -> Result<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))).context("no home folder")?;
    let folder = target_folder()?;
    let absolute = |path: &Path| path.canonicalize().with_context(|| path.display().to_string());
    let mut prefixes = vec![(absolute(&home)?, "/cargo"), (absolute(root())?, "/etch")];
    if !folder.starts_with(&prefixes[1].0) {
        prefixes.push((folder.clone(), "/etch/target"));
    }
    // No path of this machine: the same commit gives the same bytes.
    let renamed = |flag: &str| -> Vec<String> {
        prefixes.iter().map(|(from, to)| format!("{flag}={}={to}", from.display())).collect()
    };
    let rust = ["-Ctarget-feature=+crt-static".to_owned()].into_iter().chain(renamed("--remap-path-prefix"));
    let mut cargo = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    cargo.args(["build", "--release", "--locked", "--package", "etch", "--bin", "etch", "--target", target]);
    // These flags, and none that a user has set.
    cargo.current_dir(root()).env("CARGO_ENCODED_RUSTFLAGS", rust.collect::<Vec<_>>().join("\u{1f}"));
    // The same for C code, whose assertions name files.
    cargo.env(format!("CFLAGS_{}", target.replace('-', "_")), renamed("-ffile-prefix-map").join(" "));
    forget_package(&mut cargo);
    let status = cargo.status().context("run cargo")?;
    ensure!(status.success(), "etch does not build for {target}: {status}");
    Ok(folder.join(target).join("release/etch"))
}

/// Completions and manual pages, as the binary for this machine writes them.
pub(super) fn documentation(binaries: &[Binary]) -> Result<Vec<Entry>> {
    let Some(binary) = binaries.iter().find(|binary| binary.runs_here()) else {
        bail!("none of the binaries runs on this machine; it has to write completions and manual pages");
    };
    let folder = tempfile::tempdir()?;
    let program = binary.save(folder.path())?;
    let run = |arguments: &[&str]| -> Result<Vec<u8>> {
        let output = Command::new(&program).args(arguments).output().context("run etch")?;
        ensure!(output.status.success(), "etch {arguments:?}: {}", output.status);
        Ok(output.stdout)
    };
    let mut entries = Vec::new();
    for (shell, file) in [("bash", "etch"), ("fish", "etch.fish"), ("zsh", "_etch")] {
        entries.push(Entry::new(format!("completions/{shell}/{file}"), run(&["completions", shell])?));
    }
    let pages = folder.path().join("man1");
    run(&["man", pages.to_str().context("a path in UTF-8")?])?;
    for page in fs::read_dir(pages)? {
        let page = page?;
        let name = page.file_name().into_string().ok().context("a name in UTF-8")?;
        entries.push(Entry::new(format!("man/man1/{name}"), fs::read(page.path())?));
    }
    Ok(entries)
}
