//! What a release publishes, made from this commit and static binaries of it: the same commit gives the same
//! bytes.

mod archive;
mod binary;
mod chart;
mod crates;
mod image;
mod krew;
mod layout;
mod licenses;
mod publish;
mod sbom;
mod shell;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::install::{Generated, root};

pub use binary::Binary;
pub use publish::push;

/// The version of everything that is released; `Cargo.toml` sets it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Names every other file of a release, with its SHA-256.
const CHECKSUMS: &str = "SHA256SUMS";

/// A commit, and where its release is published.
#[derive(Clone, Debug)]
pub struct Release {
    registry: String,
    source: String,
    revision: String,
    time: Timestamp,
}

impl Release {
    /// This commit, to be published in a registry, such as `ghcr.io/acme`. `source` is the URL of the
    /// repository.
    ///
    /// # Errors
    /// There is no commit, and the environment does not set `SOURCE_DATE_EPOCH`.
    pub fn new(registry: &str, source: &str) -> Result<Self> {
        let git = |arguments: &[&str]| shell::output("git", arguments).map(|text| text.trim().to_owned());
        let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(seconds) => seconds,
            Err(_) => git(&["log", "-1", "--format=%ct"]).context("set SOURCE_DATE_EPOCH, or use a clone")?,
        };
        let seconds = seconds.parse().with_context(|| format!("SOURCE_DATE_EPOCH={seconds}"))?;
        Ok(Self {
            registry: registry.trim_end_matches('/').to_owned(),
            source: source.trim_end_matches('/').to_owned(),
            // Sources without a repository have no revision.
            revision: git(&["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"])
                .unwrap_or_default(),
            time: Timestamp::from_second(seconds)?,
        })
    }

    /// Makes the release in a folder, in place of an earlier one.
    ///
    /// # Errors
    /// No binary runs on this machine, two are for one architecture, or something cannot be read or written.
    pub fn make(&self, binaries: &[Binary], folder: &Path) -> Result<()> {
        let is_free = !folder.exists() || folder.join(CHECKSUMS).is_file();
        ensure!(is_free, "{} exists and contains no release; name another folder", folder.display());
        // A file in its final place is complete.
        let unfinished = folder.with_extension("unfinished");
        for old in [&unfinished, folder] {
            if old.exists() {
                fs::remove_dir_all(old).with_context(|| format!("remove {}", old.display()))?;
            }
        }
        fs::create_dir_all(&unfinished).with_context(|| format!("create {}", unfinished.display()))?;
        self.fill(binaries, &unfinished)?;
        fs::rename(&unfinished, folder).with_context(|| format!("write {}", folder.display()))
    }

    fn fill(&self, binaries: &[Binary], folder: &Path) -> Result<()> {
        let architectures: BTreeSet<_> = binaries.iter().map(|binary| binary.architecture).collect();
        ensure!(architectures.len() == binaries.len(), "two binaries are for the same architecture");
        let mut sums = Vec::new();
        let mut write = |name: &str, bytes: &[u8]| -> Result<()> {
            fs::write(folder.join(name), bytes).with_context(|| format!("write {name}"))?;
            sums.push(format!("{}  {name}\n", sha256(bytes)));
            Ok(())
        };
        let crates = crates::of_etch()?;
        let extras = [binary::documentation(binaries)?, licenses::entries(&crates)?].concat();
        let mut archives = Vec::new();
        for binary in binaries {
            let (name, bytes) = archive::of(binary, &extras, self.time)?;
            write(&name, &bytes)?;
            archives.push((binary.architecture, name, sha256(&bytes)));
        }
        write("etch.yaml", krew::manifest(self, &archives)?.as_bytes())?;
        write(&format!("etch-{VERSION}.cdx.json"), sbom::document(self, &crates)?.as_bytes())?;
        let digest = image::write(self, binaries, &folder.join("image"))?;
        let (name, package) = chart::package(self, &digest)?;
        write(&name, &package)?;
        chart::write(self, &package, &folder.join("chart"))?;
        let install = fs::read_to_string(Generated::Install.path())?;
        let own = format!("image: etch:{VERSION}\n");
        let install = replace_once(&install, &own, &format!("image: {}@{digest}\n", self.image()))?;
        write("install.yaml", install.as_bytes())?;
        write("crds.yaml", &fs::read(Generated::Crds.path())?)?;
        sums.sort_by(|one, other| one[66..].cmp(&other[66..]));
        fs::write(folder.join(CHECKSUMS), sums.concat()).context(CHECKSUMS)
    }

    /// The reference of the image.
    pub fn image(&self) -> String {
        format!("{}/etch:{VERSION}", self.registry)
    }

    /// The reference of the chart, which has the tag of the chart's version, as Helm expects it.
    pub fn chart(&self) -> String {
        format!("{}/charts/etch:{VERSION}", self.registry)
    }

    /// The annotations that a release adds to images.
    fn annotations(&self) -> Value {
        let mut all = serde_json::json!({
            "org.opencontainers.image.title": "etch",
            "org.opencontainers.image.description": "Makes Kubernetes CRD defaults stored facts",
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.source": self.source,
            "org.opencontainers.image.version": VERSION,
        });
        if !self.revision.is_empty() {
            all["org.opencontainers.image.revision"] = self.revision.as_str().into();
        }
        all
    }
}

/// A file of the repository.
fn file(name: &str) -> Result<Vec<u8>> {
    fs::read(root().join(name)).with_context(|| format!("read {name}"))
}

/// The SHA-256 of some bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts one text in the place of another, which has to occur exactly once.
fn replace_once(text: &str, from: &str, to: &str) -> Result<String> {
    let count = text.matches(from).count();
    ensure!(count == 1, "{:?} occurs {count} times, and should occur once", from.trim());
    Ok(text.replace(from, to))
}
