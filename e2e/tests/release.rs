//! What `just release` makes is what its users take: the archive as krew installs it, the image and the chart
//! from a registry on loopback, the chart on a real control plane.
//!
//! The binary in it is the one that all tests use, which need not be static.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, parse_documents};
use e2e::control_plane::{ControlPlane, Options};
use e2e::dist::{Binary, Release, VERSION, push, sha256};
use e2e::install::{Tool, actionlint, root};
use e2e::operator::binary;
use e2e::scene::{NAMESPACE, place};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_repeatable_and_installs() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let registry = Registry::start()?;
    let release = Release::new(&format!("{}/acme", registry.address), "https://example.com/acme/etch")?;
    let etch = Binary::read(binary()?)?;
    let dist = dir.path().join("dist");
    // A second release takes the place of the first.
    release.make(std::slice::from_ref(&etch), &dist)?;
    let first = files(&dist)?;
    release.make(&[etch], &dist)?;
    let second = files(&dist)?;
    ensure!(first.keys().eq(second.keys()), "{:?} and {:?}", first.keys(), second.keys());
    for (name, sum) in &first {
        ensure!(second[name] == *sum, "{name} has other bytes the second time");
    }
    checksums_fit(&dist, &first)?;
    archives_contain_everything(&dist, dir.path())?;
    krew_installs(&dist, dir.path())?;
    the_bill_names_each_crate(&dist)?;
    let pushed = push(&dist)?;
    let [image, chart] = &pushed[..] else { anyhow::bail!("an image and a chart: {pushed:?}") };
    the_image_runs(&registry, image, dir.path())?;
    ensure!(chart.starts_with(&format!("{}/acme/charts/etch@sha256:", registry.address)), "{chart}");
    the_chart_installs(&registry, image, &dist, dir.path()).await
}

#[test]
fn a_folder_with_something_else_is_left_alone() -> Result<()> {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("precious"), "")?;
    let release = Release::new("registry.example.com", "https://example.com/etch")?;
    let error = release.make(&[], dir.path()).expect_err("a refusal").to_string();
    ensure!(error.ends_with("exists and contains no release; name another folder"), "{error}");
    ensure!(dir.path().join("precious").is_file());
    Ok(())
}

/// Workflows have no mistakes that actionlint finds, and call recipes that exist.
#[test]
fn workflows_call_the_recipes() -> Result<()> {
    let mut workflows = Vec::new();
    for entry in fs::read_dir(root().join(".github/workflows"))? {
        workflows.push(entry?.path().canonicalize()?);
    }
    actionlint(workflows.iter().map(PathBuf::as_path))?;
    let justfile = fs::read_to_string(root().join("justfile"))?;
    let mut called = BTreeSet::new();
    for path in workflows {
        let workflow: Value = serde_yaml_ng::from_str(&fs::read_to_string(path)?)?;
        let jobs = workflow["jobs"].as_object().into_iter().flatten();
        let steps = jobs.filter_map(|(_, job)| job["steps"].as_array()).flatten();
        for run in steps.filter_map(|step| step["run"].as_str()) {
            ensure!(!run.contains("cargo "), "a recipe should do this: {run}");
            let lines = run.lines().filter_map(|line| line.trim().strip_prefix("just "));
            called.extend(lines.filter_map(|line| line.split(' ').next()).map(str::to_owned));
        }
    }
    for recipe in &called {
        let is_head = |line: &str| line.contains(':') && line.split([' ', ':']).next() == Some(recipe);
        ensure!(justfile.lines().any(is_head), "there is no recipe {recipe}");
    }
    let wanted = ["ci", "publish", "release", "release-binaries"];
    ensure!(called.iter().map(String::as_str).eq(wanted), "{called:?}");
    Ok(())
}

#[test]
fn the_changelog_describes_this_version() -> Result<()> {
    let changelog = fs::read_to_string(root().join("docs/changelog.md"))?;
    ensure!(changelog.lines().any(|line| line.starts_with(&format!("## {VERSION}"))), "no section {VERSION}");
    Ok(())
}

/// Every file of a folder with its digest, by its path.
fn files(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder)?.to_str().context("a name")?.to_owned();
                found.insert(name, sha256(&fs::read(&path)?));
            }
        }
    }
    Ok(found)
}

/// `SHA256SUMS` names each file that is downloaded.
fn checksums_fit(dist: &Path, files: &BTreeMap<String, String>) -> Result<()> {
    let sums = fs::read_to_string(dist.join("SHA256SUMS"))?;
    let named: BTreeMap<_, _> =
        sums.lines().filter_map(|line| line.split_once("  ")).map(|(sum, name)| (name, sum)).collect();
    let expected: BTreeMap<_, _> = files
        .iter()
        .filter(|(name, _)| !name.contains('/') && *name != "SHA256SUMS")
        .map(|(name, sum)| (name.as_str(), sum.as_str()))
        .collect();
    ensure!(named == expected, "{named:?} and {expected:?}");
    Ok(())
}

/// The name of the only archive.
fn archive(dist: &Path) -> Result<PathBuf> {
    let paths: Vec<_> = fs::read_dir(dist)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let mut archives = paths.into_iter().filter(|path| path.to_string_lossy().ends_with(".tar.gz"));
    archives.next().context("an archive")
}

fn archives_contain_everything(dist: &Path, dir: &Path) -> Result<()> {
    let archive = archive(dist)?;
    let folder =
        archive.file_name().and_then(|name| name.to_str()).context("a name")?.trim_end_matches(".tar.gz");
    tar::Archive::new(GzDecoder::new(File::open(&archive)?)).unpack(dir.join("unpacked"))?;
    let unpacked = dir.join("unpacked").join(folder);
    ensure!(version(&unpacked.join("etch"))? == format!("etch {VERSION}"));
    ensure!(fs::metadata(unpacked.join("etch"))?.permissions().mode() & 0o777 == 0o755);
    ensure!(fs::read(unpacked.join("LICENSE"))? == fs::read(root().join("LICENSE"))?);
    for (file, text) in [
        ("README.md", "# Etch"),
        ("completions/bash/etch", "_etch()"),
        ("completions/fish/etch.fish", "complete -c etch"),
        ("completions/zsh/_etch", "#compdef etch"),
        ("man/man1/etch.1", ".TH etch 1"),
        ("man/man1/etch-audit.1", ".TH etch-audit 1"),
        ("THIRD-PARTY-LICENSES.txt", "tokio 1."),
        // Its license asks for this line.
        ("THIRD-PARTY-LICENSES.txt", "Brian Smith"),
    ] {
        let found = fs::read_to_string(unpacked.join(file)).with_context(|| file.to_owned())?;
        ensure!(found.contains(text), "{file} does not contain {text:?}");
    }
    Ok(())
}

/// krew itself takes manifest and archive, checks them, and links the plugin.
fn krew_installs(dist: &Path, dir: &Path) -> Result<()> {
    let mut krew = Command::new(Tool::Krew.program()?);
    krew.arg("install").arg("--manifest").arg(dist.join("etch.yaml")).arg("--archive").arg(archive(dist)?);
    let home = dir.join("krew-home");
    krew.env("KREW_ROOT", &home).env("HOME", dir).env("KREW_NO_UPGRADE_CHECK", "1");
    output(&mut krew)?;
    ensure!(version(&home.join("bin/kubectl-etch"))? == format!("kubectl etch {VERSION}"));
    let folder = home.join("store/etch").join(format!("v{VERSION}"));
    ensure!(folder.join("LICENSE").is_file() && folder.join("THIRD-PARTY-LICENSES.txt").is_file());
    Ok(())
}

/// The bill names each crate whose source the binary names, with the checksum of `Cargo.lock`.
fn the_bill_names_each_crate(dist: &Path) -> Result<()> {
    let bill: Value = serde_json::from_slice(&fs::read(dist.join(format!("etch-{VERSION}.cdx.json")))?)?;
    let lock = fs::read_to_string(root().join("Cargo.lock"))?;
    let mut named = BTreeSet::new();
    for component in bill["components"].as_array().context("components")? {
        let text = |field: &str| component[field].as_str().unwrap_or_default().to_owned();
        let entry = format!("[[package]]\nname = {:?}\nversion = {:?}\n", text("name"), text("version"));
        let (_, locked) = lock.split_once(&entry).with_context(|| format!("{entry} is not locked"))?;
        let locked = locked.split("\n\n").next().unwrap_or_default();
        let sum = component["hashes"][0]["content"].as_str();
        ensure!(sum.is_none_or(|sum| locked.contains(&format!("checksum = {sum:?}"))), "{component}");
        ensure!(sum.is_some() == locked.contains("checksum = "), "{component}");
        ensure!(
            !component["licenses"][0]["expression"].as_str().unwrap_or_default().is_empty(),
            "{component}"
        );
        if component["scope"] == "required" {
            named.insert(format!("{}-{}", text("name"), text("version")));
        }
    }
    for own in ["etch-core", "etch-lint", "etch-admission", "go-text"] {
        ensure!(named.contains(&format!("{own}-{VERSION}")), "{own}");
    }
    // Messages of panics have paths such as
    // `.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/kube-client-5.0.0/src/…`.
    let code = fs::read(binary()?)?;
    let code = String::from_utf8_lossy(&code);
    let is_outside = |c: char| !c.is_ascii_alphanumeric() && !"-_.+".contains(c);
    let sources = code.split("/registry/src/").skip(1).filter_map(|path| path.split('/').nth(1));
    let sources = sources.filter_map(|name| name.split(is_outside).next()).filter(|name| !name.is_empty());
    let sources: BTreeSet<_> = sources.map(str::to_owned).collect();
    ensure!(sources.len() > 20, "the binary names its sources: {sources:?}");
    let missing: Vec<_> = sources.difference(&named).collect();
    ensure!(missing.is_empty(), "the bill does not name {missing:?}");
    let dependencies = bill["dependencies"].as_array().context("dependencies")?;
    let known: BTreeSet<_> = dependencies.iter().filter_map(|node| node["ref"].as_str()).collect();
    ensure!(known.len() == bill["components"].as_array().map_or(0, Vec::len) + 1);
    for node in dependencies {
        let needed = node["dependsOn"].as_array().into_iter().flatten().filter_map(Value::as_str);
        ensure!(needed.collect::<BTreeSet<_>>().is_subset(&known), "{node}");
    }
    Ok(())
}

/// The image is complete, has the configuration to run, and contains only the binary.
fn the_image_runs(registry: &Registry, image: &str, dir: &Path) -> Result<()> {
    ensure!(image.starts_with(&format!("{}/acme/etch@sha256:", registry.address)), "{image}");
    registry.crane(&["validate", "--remote", image])?;
    let tags = registry.crane(&["ls", &format!("{}/acme/etch", registry.address)])?;
    ensure!(String::from_utf8(tags)?.trim() == VERSION);
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let platform = format!("--platform=linux/{architecture}");
    let config: Value = serde_json::from_slice(&registry.crane(&["config", &platform, image])?)?;
    ensure!(config["config"]["Entrypoint"] == json!(["/etch"]) && config["config"]["User"] == "65532:65532");
    ensure!(config["config"]["Labels"]["org.opencontainers.image.version"] == VERSION, "{config}");
    let pulled = dir.join("pulled");
    tar::Archive::new(registry.crane(&["export", &platform, image, "-"])?.as_slice()).unpack(&pulled)?;
    let names: Vec<_> = fs::read_dir(&pulled)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    ensure!(names == ["etch"], "{names:?}");
    ensure!(version(&pulled.join("etch"))? == format!("etch {VERSION}"));
    Ok(())
}

/// Helm takes the chart from the registry; what it installs is what `install.yaml` of the release contains.
async fn the_chart_installs(registry: &Registry, image: &str, dist: &Path, dir: &Path) -> Result<()> {
    let control_plane = ControlPlane::start(Options::new(dir.join("cluster"))).await?;
    let cluster = Cluster::of(&control_plane).await?;
    let mut helm = Command::new(Tool::Helm.program()?);
    helm.args(["install", "etch", &format!("oci://{}/acme/charts/etch", registry.address), "--plain-http"]);
    helm.args(["--version", VERSION, "--namespace", NAMESPACE, "--create-namespace"]);
    helm.env("KUBECONFIG", control_plane.kubeconfig(0)).env("HOME", dir).env("HELM_NO_PLUGINS", "1");
    output(&mut helm)?;
    let deployment = cluster.get(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/etch")).await?;
    let installed = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    let digest = image.split_once('@').context("a digest")?.1;
    ensure!(*installed == format!("{}/acme/etch:{VERSION}@{digest}", registry.address), "{installed}");
    let mut kinds = BTreeSet::new();
    for expected in parse_documents(&fs::read_to_string(dist.join("install.yaml"))?)? {
        let found = cluster
            .get(&place(&expected)?)
            .await
            .with_context(|| expected["metadata"]["name"].to_string())?;
        if expected["kind"] == "Deployment" {
            ensure!(expected["spec"]["template"]["spec"]["containers"][0]["image"] == *installed);
        }
        if expected["kind"] == "ClusterRole" && expected["aggregationRule"].is_null() {
            ensure!(found["rules"] == expected["rules"], "{found}");
        }
        kinds.insert(expected["kind"].as_str().context("a kind")?.to_owned());
    }
    for kind in ["CustomResourceDefinition", "ClusterRole", "Deployment", "DefaultsPolicy"] {
        ensure!(kinds.contains(kind), "{kind}");
    }
    Ok(())
}

/// What `etch --version` prints.
fn version(program: &Path) -> Result<String> {
    Ok(String::from_utf8(output(Command::new(program).arg("--version"))?)?.trim().to_owned())
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}

/// A registry on loopback; it ends when it is dropped.
struct Registry {
    crane: PathBuf,
    server: Child,
    address: String,
}

impl Registry {
    fn start() -> Result<Self> {
        let crane = Tool::Crane.program()?;
        let mut serve = Command::new(&crane);
        serve.args(["registry", "serve", "--address", "127.0.0.1:0"]).env_remove("PORT");
        let mut server = serve.stderr(Stdio::piped()).spawn().context("run crane")?;
        let mut log = BufReader::new(server.stderr.take().context("a log")?);
        let mut line = String::new();
        log.read_line(&mut line)?;
        let port = line.trim().rsplit_once("serving on port ").with_context(|| line.clone())?.1.to_owned();
        // A full pipe would stop it.
        std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
        Ok(Self { crane, server, address: format!("127.0.0.1:{port}") })
    }

    fn crane(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        output(Command::new(&self.crane).args(arguments))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
